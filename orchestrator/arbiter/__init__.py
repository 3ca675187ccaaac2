"""One game, pure: board, clock arithmetic, verdicts, openings, scores and the PGN record."""
