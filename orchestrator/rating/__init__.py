"""Ratings, pure: rating lists by Ordo's model, live Elo, Elo differences, sequential tests."""
