"""What viewers see, as plain data: games, tables, statistics, messages."""
