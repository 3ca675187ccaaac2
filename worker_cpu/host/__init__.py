"""The host: processor time, stalls, heartbeat."""
