"""Ready-made season files, launched by name."""
