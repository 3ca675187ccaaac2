"""The farm's own engine, which plays demos and probes hosts."""
