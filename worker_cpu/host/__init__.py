"""The host: its processor time, what it took from engines, its heartbeat."""
