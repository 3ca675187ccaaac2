"""The GPU box: hosts the neural engines' seats."""
