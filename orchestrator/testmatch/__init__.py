"""Test matches: an engine's new build against the old one, until an SPRT ends."""
