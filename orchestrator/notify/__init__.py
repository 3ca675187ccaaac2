"""Notices to people: what happened that somebody must know, by mail and webhook."""
