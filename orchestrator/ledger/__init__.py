"""The ledger: the farm's truth in Redis, and the only code that knows its keys."""
