"""Engine processes: how a referee reaches one, and what keeps it in its place."""
