"""The audit: everything that the rule texts say, recomputed from a PGN archive."""
