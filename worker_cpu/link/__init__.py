"""The link: an attempt between Redis and its referee, its lease, and who is to blame."""
