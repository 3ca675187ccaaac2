"""The season core: pure decisions over a journal of facts; no Redis, no clock, no engine."""
