"""The playing hall: referees every game; knows nothing of seasons."""
