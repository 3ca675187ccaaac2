"""The gateway: games of test matches for remote workers, and what they tell, checked."""
