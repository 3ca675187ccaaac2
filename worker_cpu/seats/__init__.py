"""Seats: how a referee reaches an engine process."""
