"""What a hall's worker does: games, lanes, test games, recovery, checks."""
