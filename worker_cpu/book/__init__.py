"""``farm match book``: opening books from game archives, by enumeration, or of Chess960."""
