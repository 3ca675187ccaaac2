"""Data of the arbiter that others have collected; each file names source and licence."""
