"""Frames between link and referee."""
