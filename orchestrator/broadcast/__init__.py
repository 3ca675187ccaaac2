"""The broadcast: what spectators see, derived from journal and plies, and served to them."""
