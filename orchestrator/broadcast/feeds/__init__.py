"""Files for other people's viewers: TCEC's, Lichess'."""
