"""What every part of the farm may use, and what knows none of them."""
