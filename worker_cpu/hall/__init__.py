"""The hall's directory on disk, its files' checksums, its GPU seats."""
