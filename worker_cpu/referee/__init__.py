"""The referee: plays one game, in a process of its own mostly, and owns its clock."""
