"""``farm match``: games on this machine without Redis, for engine authors.

Same referee, dead man and clock as an official game; the argument language of
cutechess-cli and fastchess. ``command`` is the way in, ``arguments`` and ``engines`` read
what was asked, ``schedule`` unfolds it into numbered games, ``runner`` plays them,
``journal`` keeps what is finished, ``report`` tells it.
"""
