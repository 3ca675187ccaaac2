"""The files and messages that TCEC's viewers read, derived from the same facts as our page."""
