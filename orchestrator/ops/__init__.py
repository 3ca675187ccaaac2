"""Operating a farm: backup, restore, checks, users of Redis, processes, watchdog."""
