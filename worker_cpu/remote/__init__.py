"""``farm work``: games of other people's test matches on this machine, through their gateway."""
