"""The gateway: games of test matches for remote workers; their results are checked."""
