"""The exporter: what Prometheus reads of the farm, computed from Redis' state alone."""
