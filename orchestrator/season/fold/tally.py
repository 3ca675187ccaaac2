"""Running counts of one event: all that standings need, whatever the number of games.

Points are whole numbers of half points. The table of pairs holds what one engine took
from another, so every tiebreak costs time in the size of the field, not of the event.
A crash is a lost connection or a stalled one; a loss on time or by an illegal move is
a plain loss. Results of an excluded engine (S16-15c, withdrawal) count for
nobody; its crashes and those of its opponents stay counted until the event ends (S16-15d).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final

from orchestrator import contract

CRASHES: Final = frozenset({contract.Ending.DISCONNECT, contract.Ending.STALL})
R_MOBILITY_UNIT: Final = 1 << 40  # parts of a point; what is smaller leaves engines level
_HALVES: Final = {"1-0": (2, 0), "0-1": (0, 2), "1/2-1/2": (1, 1)}


def halves(result: contract.Result) -> tuple[int, int]:
    """Return the half points of White and Black for a result."""
    return _HALVES[result]


def crashed(finished: contract.GameFinished) -> contract.Side | None:
    """Return which side crashed in a game, also where the organizers have set its result since.

    A crash is a fact of its own (S16-12b, S16-15c, S16-15d): a result that is set does not undo it.
    Who cannot play such games at all has not crashed (FRC-1c).
    """
    if finished.refused:
        return None
    return finished.loser if finished.ending in CRASHES else finished.crashed


@dataclasses.dataclass(slots=True)
class Score:
    """The counts of one engine in one event; ``half_points`` 3 are 1½ points."""

    half_points: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    white_games: int = 0
    black_games: int = 0
    black_wins: int = 0
    black_losses: int = 0
    crashes: int = 0
    r_mobility: int = 0
    byes: int = 0

    @property
    def games(self) -> int:
        """Return how many games the engine has played."""
        return self.white_games + self.black_games


class Tally:
    """The counts of all engines of an event, kept up to date game by game."""

    def __init__(self, engines: tuple[str, ...] = (), excluded: Iterable[str] = ()) -> None:
        """Start with nobody having played; results of the excluded will not count."""
        self.engines = engines
        self.scores = {engine: Score() for engine in engines}
        self._pairs: dict[str, dict[str, tuple[int, int]]] = {engine: {} for engine in engines}
        self.games = 0
        self.duration_ms = 0
        self.excluded = frozenset(excluded)
        self.crashed: dict[str, int] = {}
        self.refused: dict[str, str] = {}  # who cannot play the event, and why
        self.tells_mobility = False

    def add(self, white: str, black: str, finished: contract.GameFinished) -> None:
        """Count a finished game."""
        self.games += 1
        self.duration_ms += max(0, finished.ended_ms - finished.started_ms)
        self.add_annulled(white, black, finished)
        if finished.refused and finished.loser is not None:
            self.refused[white if finished.loser == "white" else black] = finished.note
        if not self.excluded.isdisjoint((white, black)):
            return
        white_halves, black_halves = halves(finished.result)
        self._count(white, black, white_halves)
        self._count(black, white, black_halves)
        self.scores[white].white_games += 1
        self.scores[black].black_games += 1
        self.scores[black].black_wins += black_halves == 2
        self.scores[black].black_losses += black_halves == 0
        self.tells_mobility |= finished.r_mobility is not None
        mobility = white_halves / 2 if finished.r_mobility is None else finished.r_mobility
        self.scores[white].r_mobility += round(mobility * R_MOBILITY_UNIT)
        self.scores[black].r_mobility += round((1 - mobility) * R_MOBILITY_UNIT)

    def add_annulled(self, white: str, black: str, finished: contract.GameFinished) -> None:
        """Count of a game only who crashed in it, if that engine still plays (S16-15d)."""
        side = crashed(finished)
        engine = white if side == "white" else black
        if side is not None and engine in self.scores:
            self.scores[engine].crashes += 1
            self.crashed[engine] = self.scores[engine].crashes

    def bye(self, engine: str) -> None:
        """Count a round without an opponent: the points of a win, but no win (FIDE C.04)."""
        if engine not in self.excluded:
            self.scores[engine].half_points += 2
            self.scores[engine].byes += 1

    def _count(self, engine: str, opponent: str, half_points: int) -> None:
        score = self.scores[engine]
        score.half_points += half_points
        score.wins += half_points == 2
        score.draws += half_points == 1
        score.losses += half_points == 0
        taken, games = self._pairs[engine].get(opponent, (0, 0))
        self._pairs[engine][opponent] = (taken + half_points, games + 1)

    def opponents(self, engine: str) -> dict[str, tuple[int, int]]:
        """Return, by opponent, the half points taken from it and the games played."""
        return self._pairs[engine]

    def taken(self, engine: str, opponent: str) -> int:
        """Return the half points one engine took from another."""
        return self._pairs[engine].get(opponent, (0, 0))[0]
