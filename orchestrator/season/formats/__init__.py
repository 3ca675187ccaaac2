"""Formats of events: who meets whom, in which order, with which colours and openings."""
