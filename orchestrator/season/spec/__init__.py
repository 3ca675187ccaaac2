"""What a season file says, as values."""
