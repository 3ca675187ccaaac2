"""The engines' protocols as pure text: lines in, values and commands out."""
