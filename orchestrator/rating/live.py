"""nTCEC's live Elo: a rating moves after each game by its surprise (N1 Engine Ratings).

An engine starts from the rating it is given (CCRL 40/40, else CEGT corrected, else its
author's tests); a new version inherits it. The rule text gives no K. These come from the
change that the headers of Season 4 show (logistic Elo, /400), by rating: about 17 below
2600, 16 to 2800, 13 to 3100, 12 above.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from orchestrator.common import errors
from orchestrator.rating import elo

K_BY_RATING = ((2600.0, 17.0), (2800.0, 16.0), (3100.0, 13.0))
K_ABOVE = 12.0
_WHITE_POINTS = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}


def measured_k(rating: float) -> float:
    """Return the K that nTCEC's headers show at a rating."""
    return next((k for below, k in K_BY_RATING if rating < below), K_ABOVE)


@dataclasses.dataclass(frozen=True)
class Change:
    """What a game did to both ratings."""

    white: float
    black: float


class LiveElo:
    """The ratings after each game; versions of one family share one."""

    def __init__(
        self,
        start: Mapping[str, float],
        families: Mapping[str, str] | None = None,
        k: Callable[[float], float] = measured_k,
    ) -> None:
        """Start from the ratings given, by engine or family."""
        self._families = families or {}
        self._k = k
        self.ratings = {self._name(engine): rating for engine, rating in start.items()}

    def _name(self, engine: str) -> str:
        return self._families.get(engine, engine)

    def rating(self, engine: str) -> float:
        """Return an engine's rating; raise ``UsageError`` where it never got a first one."""
        try:
            return self.ratings[self._name(engine)]
        except KeyError:
            raise errors.UsageError(
                f"{engine!r} has no rating to start from; give it one in the roster"
            ) from None

    def play(self, white: str, black: str, result: str) -> Change:
        """Count a game; one without a result changes nothing."""
        first, second = self.rating(white), self.rating(black)
        if result not in _WHITE_POINTS:
            return Change(0.0, 0.0)
        surprise = _WHITE_POINTS[result] - elo.expected(first - second)
        change = Change(self._k(first) * surprise, -self._k(second) * surprise)
        self.ratings[self._name(white)] = first + change.white
        self.ratings[self._name(black)] = second + change.black
        return change

    def play_all(self, games: Iterable[tuple[str, str, str]]) -> None:
        """Count games in their order of play."""
        for white, black, result in games:
            self.play(white, black, result)
