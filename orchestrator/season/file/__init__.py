"""Season files: load, check, describe; their schema."""
