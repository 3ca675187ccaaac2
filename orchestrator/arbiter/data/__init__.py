"""Tables that come with the farm: names of openings, and a book of balanced ones."""

import pathlib

BALANCED = pathlib.Path(__file__).with_name("balanced.pgn")
