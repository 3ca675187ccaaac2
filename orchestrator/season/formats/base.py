"""What every format offers to the season.

A format unfolds into pairings, drawn one after the other: at once where they do not
depend on results (round robin, match), or None while results are missing (Swiss,
knockout, the extensions of a match). Engines are numbers from 0 in the order of their
seeds, and ``slot`` counts the openings of the event from 0: boards of one slot share an
opening (CUP-4c). Formats are pure: they see the field and the history, and never a random seed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from orchestrator import contract


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """Who plays an event, as numbers from 0 in the order in which they entered.

    ``ranks`` gives for each engine the seed by which colours are told where that is not
    its place here (CUP-1d: the seeds 1 to 32 stay for the whole Cup); ``bracket`` gives
    the places of a knockout that was drawn, None for a bye.
    """

    size: int
    ranks: tuple[int, ...] = ()
    bracket: tuple[int | None, ...] = ()

    def rank(self, engine: int) -> int:
        """Return the seed of an engine; less is better."""
        return self.ranks[engine] if self.ranks else engine


@dataclasses.dataclass(frozen=True, slots=True)
class Board:
    """One game to be played; ``tag`` is its PGN Round."""

    white: int
    black: int
    slot: int
    tag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pairing:
    """A drawn round in its order of play; cycles and rounds count from 1.

    ``time_control`` differs from the event's in an extension of a match; ``replayed``
    says that its openings are drawn from those played earlier in the season (S16-8c), and
    ``byes`` who has a win without playing.
    """

    cycle: int
    round: int
    boards: tuple[Board, ...]
    time_control: contract.TimeControl | None = None
    replayed: bool = False
    byes: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Game:
    """A game that was paired; ``half_points`` of White and Black, None until it is played."""

    white: int
    black: int
    round: int
    half_points: tuple[int, int] | None = None


class History:
    """What has been paired and played so far; games are looked up only when asked for.

    ``out`` are engines that have left the event.
    """

    def __init__(
        self,
        paired: int = 0,
        games: Callable[[], Iterable[Game]] = tuple,
        byes: Iterable[tuple[int, int]] = (),
        out: Iterable[int] = (),
    ) -> None:
        """Start from the number of pairings; ``byes`` are (round, engine)."""
        self.paired = paired
        self.byes = tuple(byes)
        self.out = frozenset(out)
        self._load = games

    @functools.cached_property
    def games(self) -> tuple[Game, ...]:
        """Return all games of the event in their order of play, cancelled ones left out."""
        return tuple(self._load())

    @property
    def all_played(self) -> bool:
        """Say whether no paired game waits for its result."""
        return all(game.half_points is not None for game in self.games)

    def taken(self, engine: int, games: Iterable[Game]) -> int:
        """Return the half points that an engine took in some of the games."""
        return sum(
            game.half_points[int(game.black == engine)]
            for game in games
            if game.half_points is not None and engine in (game.white, game.black)
        )


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

    @property
    def open_ended(self) -> bool:
        """Say whether the event may need more openings than expected."""

    def remaining(self, played: History) -> Iterator[tuple[int, int]]:
        """Yield round number and size of what is still expected to be paired."""

    def pair(self, index: int, played: History) -> Pairing | None:
        """Draw pairing ``index`` (from 0), or return None while results are missing."""

    def complete(self, paired: int, played: History) -> bool:
        """Say whether nothing is left to be paired after ``paired`` pairings."""

    def built_from(self, number: int) -> int | None:
        """Return the first round that rests on the results of round ``number``; None: none."""

    def order(self, played: History) -> tuple[tuple[int, ...], ...] | None:
        """Return who shares which place, best first; None: points and tiebreaks decide."""
