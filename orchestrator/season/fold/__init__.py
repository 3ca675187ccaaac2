"""A season's state, folded from its journal: entries, pairings, tables, orders."""
