"""The link: an attempt between Redis and its referee, its lease, and whose a fault is."""
