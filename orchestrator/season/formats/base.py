"""What every format offers to the season.

A format unfolds into rounds. ``pair`` draws one round: at once where the pairings do not
depend on results (round robin, match), or None while results of earlier rounds are
missing (Swiss, knockout). Engines are numbers from 0 in the order of their seeds, and
``slot`` counts the openings of the event from 0: boards of one slot share an opening.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from orchestrator.season import tally


@dataclasses.dataclass(frozen=True, slots=True)
class Board:
    """One game to be played; ``tag`` is its PGN Round."""

    white: int
    black: int
    slot: int
    tag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pairing:
    """A drawn round in its order of play; cycles and rounds count from 1."""

    cycle: int
    round: int
    boards: tuple[Board, ...]


class Format(Protocol):
    """The schedule of one event for a field of known size."""

    @property
    def games(self) -> int:
        """Return how many games the event is expected to have."""

    @property
    def openings(self) -> int:
        """Return how many opening slots the event is expected to use."""

    @property
    def rounds(self) -> int:
        """Return how many rounds the event is expected to have."""

    def boards_in(self, index: int) -> int:
        """Return how many games round ``index`` (from 0) is expected to have."""

    def pair(self, index: int, played: tally.Tally) -> Pairing | None:
        """Draw round ``index`` (from 0), or return None while results are missing."""

    def complete(self, paired: int, played: tally.Tally) -> bool:
        """Say whether nothing is left to be paired after ``paired`` rounds."""
