"""What must hold before a season: looked at, told with its reason and what to do."""
