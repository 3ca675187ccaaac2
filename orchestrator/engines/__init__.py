"""Engines as files and limits: builds, resources, cutechess' engine lists."""
