"""What may be seen of a season, as plain data: for tables, ``--json`` and pages alike.

Nothing here tells the seed before the season is over, nor an opening before its game is
finished (draws are sealed). Times are milliseconds of the day by Redis' clock,
durations seconds, points are numbers of whole and half points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.season import blockers, decisions, playoffs, published
from orchestrator.season.file import wording
from orchestrator.season.fold import (
    crosstable,
    events,
    openings,
    orders,
    own_book,
    progress,
    tiebreaks,
    titles,
)
from orchestrator.season.fold import standings as standings_
from orchestrator.season.fold import state as season_state


def event_ids(state: season_state.SeasonState, event: str | None = None) -> list[str]:
    """Return the ids of all events, or of the one named; raise ``RefusedError``."""
    if event is None:
        return list(state.events)
    return [state.event(event).id]


def name(state: season_state.SeasonState, engine: str, event_id: str = "") -> str:
    """Return an engine's name; with an event the one it plays there, whatever it is updated to."""
    if not event_id:
        return state.engines[engine].name
    return orders.pinned(state, state.events[event_id], engine).name


def status(state: season_state.SeasonState) -> str:
    """Say in a word where it stands: running, paused, held, waiting, finished or abandoned."""
    if state.over:
        return "finished" if state.finished else "abandoned"
    if state.held:
        return "held"
    if state.paused:
        return "paused"
    return "running" if state.current is not None else "waiting"


def season(state: season_state.SeasonState) -> dict[str, Any]:
    """Return where a season stands."""
    parts, running = progress.of_events(state), state.running
    whole = progress.whole(parts.values())
    title = state.launched.season.title
    return {
        "season": state.launched.id,
        "name": state.launched.season.name,
        "hall": state.hall,
        "status": status(state),
        "reason": state.abandoned or ("" if state.over else state.held or state.paused),
        "launched_ms": state.launched_ms,
        "seed_sha256": state.launched.seed_sha256,
        "seed": state.launched.seed if state.over else None,
        "champion": name(state, state.champion) if state.finished else None,
        "title": None if title is None else {"name": title.name, "holder": titles.holder(state)},
        "journal_entries": state.seq,
        "games": {"played": whole.played, "total": whole.total},
        "remaining_seconds": round(whole.remaining_seconds, 1),
        "next_gate_ms": state.next_deadline_ms(),
        "pauses_at_ms": None if state.planned_pause is None else state.planned_pause.at_ms,
        "away": {host: list(fact.engines) for host, fact in state.away.items()},
        "away_policy": state.away_policy,
        "flags": [flag.model_dump(mode="json") for flag in own_book.standing(state)],
        "decisions": [asked.model_dump(mode="json") for asked in decisions.outstanding(state)],
        "interruptions": interruptions(state),
        "running": None if running is None else _running(state, running),
        "next": blockers.coming(state),
        "waits": blockers.waits(state),
        "events": [_event(state, e, done) for e, done in parts.items()],
    }


def interruptions(state: season_state.SeasonState) -> list[dict[str, Any]]:
    """Return the interrupted games that are not over, with the verdict on each."""
    if state.over:
        return []
    return [
        {
            "game": game.id,
            "asks": game.asks,
            "ply": game.progress.ply,
            "told": [record.model_dump(mode="json") for record in game.progress.interruptions],
        }
        for game in state.interrupted()
        if game.progress is not None
    ]


def _running(state: season_state.SeasonState, attempt: season_state.Attempt) -> dict[str, Any]:
    game = state.game(attempt.game)
    return {
        "game": game.id,
        "event": game.event,
        "white": name(state, game.white, game.event),
        "black": name(state, game.black, game.event),
        "attempt": attempt.attempt,
        "host": attempt.host,
        "started_ms": attempt.started_ms,
        "abort": attempt.abort,
    }


def event(state: season_state.SeasonState, event_id: str) -> dict[str, Any]:
    """Return where an event stands."""
    return _event(state, event_id, progress.of_event(state, event_id))


def _event(
    state: season_state.SeasonState, event_id: str, done: progress.Progress
) -> dict[str, Any]:
    event_state = state.events[event_id]
    return {
        "event": event_state.id,
        "name": event_state.spec.name,
        "status": event_state.status.value,
        "format": event_state.spec.format.kind,
        "time_control": str(event_state.spec.time_control),  # as PGN writes it
        "time_control_words": wording.control(event_state.spec.time_control),
        "opens_at_ms": event_state.opens_at_ms,
        "entrants": [name(state, engine, event_state.id) for engine in event_state.entrants],
        "substitutes": dict(event_state.substitutes),
        "excused": {
            name(state, engine, event_state.id): n for engine, n in event_state.excused.items()
        },
        "excused_allowed": event_state.spec.interruptions.excused_flags,
        "games": {"played": done.played, "total": done.total},
        "remaining_seconds": round(done.remaining_seconds, 1),
    }


def standings(state: season_state.SeasonState, event_id: str) -> dict[str, Any]:
    """Return an event's table with every tiebreak number, and its crosstable's cells."""
    lines = crosstable.crosstable(state, event_id)
    document = table(state, event_id, [line.row for line in lines])
    for row, line in zip(document["rows"], lines, strict=True):
        row["results"] = [None if cell is None else cell.text for cell in line.cells]
    return document


def table(
    state: season_state.SeasonState, event_id: str, rows: Iterable[standings_.Row]
) -> dict[str, Any]:
    """Return an event's table with every tiebreak number."""
    event_state = state.events[event_id]
    ranked = event_state.status is events.Status.RANKED
    season = state.launched.season
    undecided = len(list(decisions.questions(season, event_state))) if ranked else 0
    return {
        "event": event_state.id,
        "name": event_state.spec.name,
        "status": event_state.status.value,
        "final": ranked and not undecided and not playoffs.due(season, event_state),
        "open_decisions": undecided,
        "chain": [criterion.value for criterion in event_state.spec.tiebreaks],
        "rows": [_row(state, event_id, row) for row in rows],
    }


def _row(state: season_state.SeasonState, event_id: str, row: standings_.Row) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "engine": row.engine,
        "name": name(state, row.engine, event_id),
        "rating": state.engines[row.engine].rating,
        "provisional": _rated_by_tests(state, row.engine),
        "points": row.points,
        "games": row.games,
        "wins": row.wins,
        "draws": row.draws,
        "losses": row.losses,
        "tiebreaks": {c.value: tiebreaks.points(c, n) for c, n in row.tiebreaks.items()},
        "decided_by": row.decided_by,
    }


def schedule(state: season_state.SeasonState, event_id: str, now_ms: int) -> list[dict[str, Any]]:
    """Return an event's games in their order of play; a start that lies ahead is estimated."""
    mean_ms = progress.of_event(state, event_id).mean_seconds * 1000
    starts_ms: float = now_ms
    rows = []
    for game_id in state.events[event_id].order:
        row = game(state, game_id)
        if state.games[game_id].open and not state.over:
            row["estimated_start_ms"] = None if row["running"] else round(starts_ms)
            starts_ms += mean_ms
        rows.append(row)
    return rows


def game(state: season_state.SeasonState, game_id: str) -> dict[str, Any]:
    """Return a paired game, with its result and opening once it is finished."""
    paired = state.game(game_id)
    played = paired.finished
    running = state.running if state.running and state.running.game == paired.id else None
    row: dict[str, Any] = {
        "game": paired.id,
        "event": paired.event,
        "number": paired.number,
        "round": paired.round,
        "white": name(state, paired.white, paired.event),
        "black": name(state, paired.black, paired.event),
        "running": running is not None,
        "result": None,
        "cancelled": state.dropped(paired) and played is None,
        "annulled": published.annulled(state, paired),
    }
    if running is not None:
        row["started_ms"] = running.started_ms
    if played is not None:
        row |= {
            "result": played.result,
            "ending": played.ending.value,
            "details": played.details,
            "note": published.note(state, paired),
            "plies": played.plies,
            "started_ms": played.started_ms,
            "duration_seconds": round((played.ended_ms - played.started_ms) / 1000, 1),
            "attempt": played.attempt,
            "interruptions": len(paired.progress.interruptions) if paired.progress else 0,
            "opening": _opening(state, paired),
        }
    return row


def _opening(state: season_state.SeasonState, paired: events.Game) -> str:
    if paired.finished is not None and (paired.finished.imported or published.unplayed(paired)):
        return ""  # its drawn opening was not played, and may be still to come
    return openings.of_game(state, paired).name


def _rated_by_tests(state: season_state.SeasonState, engine: str) -> bool:
    """Say whether an engine's rating is provisional: that of its tests (S16-14e, S17-14e).

    A new engine has it until it has finished an event; one that was excluded from the event
    has not finished it.
    """
    return state.engines[engine].provisional and not _has_finished(state, engine)


def _has_finished(state: season_state.SeasonState, engine: str) -> bool:
    return any(
        event.status is events.Status.RANKED
        and engine in event.entrants
        and engine not in event.excluded
        for event in state.events.values()
    )
