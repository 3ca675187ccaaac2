"""The opening books of the ready-made season files."""
