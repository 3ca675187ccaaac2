"""The rest of a season, simulated many times."""
