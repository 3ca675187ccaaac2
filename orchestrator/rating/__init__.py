"""Ratings, pure: Elo differences with their errors, and sequential tests of a match."""
