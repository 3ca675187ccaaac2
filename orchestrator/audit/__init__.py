"""The audit: everything that the rulebook says, recomputed from a PGN archive."""
