"""What may be changed in a running season: the checks before a fact is written."""
