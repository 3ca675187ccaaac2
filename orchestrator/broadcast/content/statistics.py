"""An event's statistics: results by colour, reasons of endings, lengths and durations."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from orchestrator import contract
from orchestrator.season import published, views
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState

LAST: Final = 10  # results that stand beside a table, at most


class _Spread:
    """The least, the greatest and the sum of whole numbers."""

    def __init__(self) -> None:
        self._count = self._sum = self._min = self._max = 0

    def add(self, value: int) -> None:
        """Count a number."""
        self._min = min(self._min, value) if self._count else value
        self._max = max(self._max, value) if self._count else value
        self._count, self._sum = self._count + 1, self._sum + value

    def data(self, unit: int = 1) -> dict[str, Any] | None:
        """Return minimum, mean and maximum; ``unit`` of the numbers are one."""
        if not self._count:
            return None
        low, high = (value if unit == 1 else value / unit for value in (self._min, self._max))
        return {"min": low, "mean": round(self._sum / unit / self._count, 1), "max": high}


class Counts:
    """Running counts of results: each is counted once, whenever it comes."""

    def __init__(self) -> None:
        """Start without a result."""
        self._counted: set[str] = set()
        self._results: Counter[contract.Result] = Counter()
        self._endings: Counter[str] = Counter()
        self._plies, self._tenths = _Spread(), _Spread()

    def count(self, played: contract.GameFinished) -> None:
        """Count a result, if its game is not counted yet."""
        if played.game in self._counted:
            return
        self._counted.add(played.game)
        self._results[played.result] += 1
        self._endings[played.details] += 1
        self._plies.add(played.plies)
        self._tenths.add(round((played.ended_ms - played.started_ms) / 100))

    def as_json(self) -> dict[str, Any]:
        """Return results by colour, reasons of endings, lengths and durations."""
        return {
            "games": len(self._counted),
            "white_wins": self._results["1-0"],
            "draws": self._results["1/2-1/2"],
            "black_wins": self._results["0-1"],
            "endings": dict(self._endings.most_common()),
            "plies": self._plies.data(),
            "seconds": self._tenths.data(10),
        }


def counts(state: State, game: events.Game) -> bool:
    """Say whether a game has a result that counts: it is finished, and not annulled."""
    return game.finished is not None and not published.annulled(state, game)


def of_season(state: State) -> Counts:
    """Count the results of a season that count."""
    season_counts = Counts()
    for game in state.games.values():
        if game.finished is not None and counts(state, game):
            season_counts.count(game.finished)
    return season_counts


def counted(state: State, event: events.EventState) -> list[events.Game]:
    """Return the games of an event whose results count, in their order of play."""
    return [game for game in map(state.game, event.order) if counts(state, game)]


class EventCounts(Counts):
    """The counts of an event: those of each engine by its colour, too."""

    def __init__(self) -> None:
        """Start without a game."""
        super().__init__()
        self._by_colour: Counter[tuple[str, contract.Side, contract.Result]] = Counter()

    def add(self, game: events.Game) -> None:
        """Count a finished game, if it is not counted yet."""
        if game.finished is not None and game.id not in self._counted:
            self.count(game.finished)
            self._by_colour[game.white, "white", game.finished.result] += 1
            self._by_colour[game.black, "black", game.finished.result] += 1

    def data(self, state: State, event: events.EventState) -> dict[str, Any]:
        """Return the event's statistics, and each engine's results by its colour."""
        return self.as_json() | {
            "engines": [
                _by_colour(state, event, engine, self._by_colour) for engine in event.entrants
            ]
        }


def of_event(state: State, event: events.EventState) -> dict[str, Any]:
    """Return an event's statistics, and each engine's results by its colour."""
    event_counts = EventCounts()
    for game in counted(state, event):
        event_counts.add(game)
    return event_counts.data(state, event)


def _by_colour(
    state: State,
    event: events.EventState,
    engine: str,
    counts: Counter[tuple[str, contract.Side, contract.Result]],
) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": engine, "name": views.name(state, engine, event.id)}
    for side, won, lost in _COLOURS:
        row[side] = {
            "wins": counts[engine, side, won],
            "draws": counts[engine, side, "1/2-1/2"],
            "losses": counts[engine, side, lost],
        }
    return row


_COLOURS: Final[tuple[tuple[contract.Side, contract.Result, contract.Result], ...]] = (
    ("white", "1-0", "0-1"),
    ("black", "0-1", "1-0"),
)
