"""An event's statistics: results by colour, reasons of endings, lengths and durations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from orchestrator import contract
from orchestrator.season import views
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState


def statistics(results: Iterable[contract.GameFinished]) -> dict[str, Any]:
    """Count results by colour, reasons of endings, lengths and durations."""
    played = list(results)
    plies = sorted(one.plies for one in played)
    seconds = sorted(round((one.ended_ms - one.started_ms) / 1000, 1) for one in played)
    outcomes = Counter(one.result for one in played)
    return {
        "games": len(played),
        "white_wins": outcomes["1-0"],
        "draws": outcomes["1/2-1/2"],
        "black_wins": outcomes["0-1"],
        "endings": dict(Counter(one.details for one in played).most_common()),
        "plies": _spread(plies),
        "seconds": _spread(seconds),
    }


def _spread(values: list[Any]) -> dict[str, Any] | None:
    if not values:
        return None
    mean = round(sum(values) / len(values), 1)
    return {"min": values[0], "mean": mean, "max": values[-1]}


def counted(state: State, event: events.EventState) -> list[events.Game]:
    """Return the games of an event whose results stand, in their order of play."""
    games = (state.games[game] for game in event.order)
    return [game for game in games if game.finished is not None and not game.cancelled]


def of_event(state: State, event: events.EventState) -> dict[str, Any]:
    """Return an event's statistics, and each engine's results by its colour."""
    games = counted(state, event)
    told = statistics(game.finished for game in games if game.finished is not None)
    by_colour: Counter[tuple[str, contract.Side, contract.Result]] = Counter()
    for game in games:
        if game.finished is not None:
            by_colour[game.white, "white", game.finished.result] += 1
            by_colour[game.black, "black", game.finished.result] += 1
    return told | {
        "engines": [_by_colour(state, event, engine, by_colour) for engine in event.entrants]
    }


def _by_colour(
    state: State,
    event: events.EventState,
    engine: str,
    counts: Counter[tuple[str, contract.Side, contract.Result]],
) -> dict[str, Any]:
    told: dict[str, Any] = {"engine": engine, "name": views.name(state, engine, event.id)}
    for side, won, lost in _COLOURS:
        told[side] = {
            "wins": counts[engine, side, won],
            "draws": counts[engine, side, "1/2-1/2"],
            "losses": counts[engine, side, lost],
        }
    return told


_COLOURS: Final[tuple[tuple[contract.Side, contract.Result, contract.Result], ...]] = (
    ("white", "1-0", "0-1"),
    ("black", "0-1", "1-0"),
)
