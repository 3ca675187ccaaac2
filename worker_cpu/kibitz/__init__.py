"""The kibitzer: an engine beside the hall that follows its games for spectators."""
