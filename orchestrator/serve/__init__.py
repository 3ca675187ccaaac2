"""`farm serve`: one pass after another over all seasons, and what a pass consists of."""
