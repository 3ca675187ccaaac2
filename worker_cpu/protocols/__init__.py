"""What engines say and are told, as pure text in and values out."""
