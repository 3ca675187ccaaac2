"""A season's documents for viewers: tables, schedule, bracket, as plain data.

Every document is a function of the season's state, its log and the briefs of its finished
games; none depends on when it is made. What ``season.views`` hides stays hidden: no seed
before the end, no opening before its game. Every event is told as not
started, running or finished (N1 The Live and Stage Tabs).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from orchestrator.arbiter import redact
from orchestrator.broadcast.content import badges, game_store, statistics
from orchestrator.season import views
from orchestrator.season.fold import (
    crosstable,
    events,
    orders,
    pairing,
    progress,
    standings,
    tally,
)
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import holding, model

State = season_state.SeasonState
Briefs = Callable[[events.Game], game_store.Brief | None]

COLOURS: Final = {
    **dict.fromkeys(("waiting", "gate", "open"), "orange"),
    "running": "green",
    "abandoned": "grey",
}
_TO_COME: Final = frozenset({events.Status.WAITING, events.Status.GATE, events.Status.OPEN})
_PUBLIC: Final = (
    *(
        "season",
        "name",
        "status",
        "reason",
        "launched_ms",
        "seed_sha256",
        "seed",
        "champion",
        "title",
    ),
    *("games", "remaining_seconds", "next_gate_ms", "decisions", "next", "waits"),
)


def season(state: State) -> dict[str, Any]:
    """Return where a season stands: its events with their colours, its running game."""
    seen = views.season(state)
    running = state.running
    starts = estimated_starts(state)
    return {key: seen[key] for key in _PUBLIC} | {
        "reason": _why(state, seen["reason"]),
        "waits": [wait | {"reason": _why(state, wait["reason"])} for wait in seen["waits"]],
        "site": state.launched.season.site,
        "badges": badges.of_season(state),
        "running": None if running is None else _pairing(state, state.game(running.game)),
        "events": [
            _tab(state, event) | {"estimated_start_ms": starts.get(event["event"])}
            for event in seen["events"]
        ],
    }


def _why(state: State, reason: str) -> str:
    """Return a reason in words for the public: of hosts' paths and doings only what it may know."""
    return redact.text(holding.in_public(reason) if reason == state.held else reason)


def _tab(state: State, event: dict[str, Any]) -> dict[str, Any]:
    spec = state.events[event["event"]].spec
    return event | {
        "colour": COLOURS.get(event["status"], "red"),
        "variant": spec.variant,
        "competition": spec.competition,
        "knockout": isinstance(spec.format, model.Knockout),
        "listed": _listed(spec),
    }


def _listed(spec: model.Event) -> bool:
    """Say whether a knockout's engines meet as they come from the round before."""
    drawn = not isinstance(spec.format, model.Knockout) or spec.format.bracket != "listed"
    return not drawn and spec.seeding == "entry"


def _pairing(state: State, game: events.Game) -> dict[str, Any]:
    return {
        "game": game.id,
        "event": game.event,
        "round": game.round,
        "white": views.name(state, game.white, game.event),
        "black": views.name(state, game.black, game.event),
    }


def base_ms(state: State) -> int:
    """Return the moment that estimates count from: the last thing that was journaled."""
    return state.running.started_ms if state.running is not None else state.at_ms


def estimated_starts(state: State) -> dict[str, int]:
    """Return when events that have not begun are expected to, by the pace so far."""
    from_ms = base_ms(state)
    at_ms, starts_ms = float(from_ms), {}
    for event_id, part in progress.of_events(state, from_ms).items():
        if state.events[event_id].status in _TO_COME:
            starts_ms[event_id] = round(at_ms + part.break_seconds * 1000)
        at_ms += part.remaining_seconds * 1000
    return starts_ms


def event(state: State, event_id: str) -> dict[str, Any]:
    """Return an event's standings, the cells of its crosstable with their games, its bracket."""
    lines = crosstable.crosstable(state, event_id)
    shown = event_table(state, event_id, [line.row for line in lines])
    for row, line in zip(shown["rows"], lines, strict=True):
        row["cells"] = [cell(encounter) for encounter in line.cells]
    played_event = state.events[event_id]
    counted = {"statistics": statistics.of_event(state, played_event)}
    return shown | {"last": last(state, played_event.order)} | counted


def event_table(state: State, event_id: str, rows: Sequence[standings.Row]) -> dict[str, Any]:
    """Return an event's standings and its bracket: all but what grows with its games."""
    played_event = state.events[event_id]
    shown = views.table(state, event_id, rows)
    for row in shown["rows"]:
        row["crashes"] = played_event.tally.scores[row["engine"]].crashes
        row["version"] = orders.pinned(state, played_event, row["engine"]).version
    return shown | {
        "format": played_event.spec.format.kind,
        "entrants": [
            views.name(state, engine, played_event.id) for engine in played_event.entrants
        ],
        "bracket": bracket(state, played_event),
    }


def last(state: State, games: Iterable[str]) -> list[str]:
    """Return the last results that stand among games: a number says nothing of one replayed."""
    listed = map(state.game, games)
    ended = ((g.finished.ended_ms, g.id) for g in listed if g.finished and not g.cancelled)
    return [game for _, game in heapq.nlargest(statistics.LAST, ended)]


def cell(cross: crosstable.Cell | None) -> dict[str, Any] | None:
    """Return a cell of a crosstable with its games; None on the diagonal."""
    if cross is None:
        return None
    return {"games": list(cross.games), "text": cross.text, "pairs": cross.pairs}


def bracket(state: State, event: events.EventState) -> dict[str, Any] | None:
    """Return the matches of a knockout round with real seeds and scores, None elsewhere."""
    if not isinstance(event.spec.format, model.Knockout):
        return None
    if not event.entrants:
        return {"pairs": event.spec.format.pairs, "matches": []}
    slots: list[str] = list(event.bracket) or [*event.entrants, *_bye(event)]
    winners = _winners(pairing.table(state, event), slots)
    return {
        "pairs": event.spec.format.pairs,
        "matches": [
            _match(state, event, number, slots[2 * number - 2 : 2 * number], winners)
            for number in range(1, len(slots) // 2 + 1)
        ],
    }


def _winners(rows: Sequence[standings.Row], slots: Sequence[str]) -> set[str]:
    """Return who has won a match: alone of its match on the first level of the table.

    As long as no match is decided, both engines of open matches stand there.
    """
    first = {row.engine for row in rows if row.rank == 1}
    pairs = zip(slots[::2], slots[1::2], strict=True)
    return {side for pair in pairs for side in pair if side and first.intersection(pair) == {side}}


def _bye(event: events.EventState) -> list[str]:
    return [""] if len(event.entrants) % 2 else []


def _match(
    state: State, event: events.EventState, number: int, sides: list[str], winners: set[str]
) -> dict[str, Any]:
    games = [
        state.games[game]
        for game in event.order
        if state.games[game].round_number == number and not state.games[game].cancelled
    ]
    halves = dict.fromkeys(sides, 0)
    for game in games:
        if game.finished is not None:
            taken = tally.halves(game.finished.result)
            halves[game.white] += taken[0]
            halves[game.black] += taken[1]
    running = state.running is not None and any(played.id == state.running.game for played in games)
    return {
        "match": number,
        "status": "running" if running else "played" if games else "waiting",
        "games": [game.id for game in games],
        "sides": [_side(state, event, side, halves[side], winners) for side in sides],
    }


def _side(
    state: State, event: events.EventState, engine: str, halves: int, winners: set[str]
) -> dict[str, Any] | None:
    if not engine:
        return None  # a bye
    number = event.entrants.index(engine)
    rank = event.ranks[number] if event.ranks else number
    return {
        "engine": engine,
        "name": views.name(state, engine, event.id),
        "seed": rank + 1,
        "score": halves / 2,
        "winner": engine in winners,
    }


def schedule(state: State, event_id: str, briefs: Briefs) -> list[dict[str, Any]]:
    """Return an event's games in their order of play; a start that lies ahead is estimated."""
    starts_ms = base_ms(state)
    parts = progress.of_events(state, starts_ms)
    before = itertools.takewhile(lambda other: other != event_id, parts)
    earlier = sum(parts[other].remaining_seconds for other in before)
    rows = views.schedule(state, event_id, starts_ms + round(earlier * 1000))
    return [_row(state, row, briefs) for row in rows]


def schedule_row(state: State, game_id: str, briefs: Briefs) -> dict[str, Any]:
    """Return a game of a schedule, without the estimate of its start."""
    return _row(state, views.game(state, game_id), briefs)


def _row(state: State, row: dict[str, Any], briefs: Briefs) -> dict[str, Any]:
    row.pop("attempt", None)
    if "note" in row:
        row["note"] = redact.text(row["note"])
    game = state.game(row["game"])
    brief = briefs(game) if game.finished is not None else None
    if brief is not None:
        row |= {
            "eco": brief.eco,
            "opening": brief.opening or row.get("opening", ""),
            "white_eval": brief.white_eval,
            "black_eval": brief.black_eval,
            "final_fen": brief.final_fen,
            "r_mobility": brief.r_mobility,
        }
    return row
