"""The referee: one process that plays one game and owns its clock."""
