"""What an act changes in a season, and what follows from it.

Nothing here is written by hand for an act: its facts are applied to a copy of the folded season,
and the copy is compared with the season as it was. What the farm decides next on its own
(``decide``) is what follows. No opening and no seed is told.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.season import blockers, decide, published, views
from orchestrator.season.fold import (
    amendment_entries,
    corrections,
    engine_update_entries,
    entries,
    pairing,
)
from orchestrator.season.fold import events as season_events
from orchestrator.season.fold import state as season_state

NO_GAME: Final = "not paired"
TO_PLAY: Final = "to be played"
RUNNING: Final = "in flight"
INTERRUPTED: Final = "interrupted"
ASKS: Final = "waits for the organizers"
CANCELLED: Final = "cancelled"
ANNULLED: Final = "annulled"
STEPS: Final = 200  # facts that are decided one after the other; more is a fault of the rules
_ADJUDICATE: Final = (
    "`farm game adjudicate` sets another result, `farm game replay` has it played again"
)
_UNDONE: Final = "; decisions, gates and games that --cascade took back do not come back"
# How an act is taken back, by the kind of its fact; one that is not here cannot be.
_BACK: Final[Mapping[str, str]] = {
    entries.PAUSED: "`farm season resume`",
    entries.RESUMED: "`farm season pause`",
    entries.GAME_ADJUDICATED: _ADJUDICATE,
    entries.GAME_FINISHED: _ADJUDICATE,
    amendment_entries.PAUSE_PLANNED: "`farm season resume`",
    amendment_entries.GATE_MOVED: "`farm season amend gate`, until the gate is open",
    amendment_entries.BOOK_MENDED: "`farm season amend book`, for games that are not played yet",
    amendment_entries.AWAY_POLICY_SET: "`farm season amend away-policy`",
    amendment_entries.GAMES_IMPORTED: "`farm game replay` has a game played, `farm game adjudicate`"
    " gives it another result",
    amendment_entries.HOST_AWAY: "`farm season amend host --back`",
    amendment_entries.HOST_BACK: "`farm season amend host --away`",
    engine_update_entries.ENGINE_UPDATED: "`farm engine update`, until its event begins",
    engine_update_entries.DEADLINE_SET: "`farm engine deadline`, until the event begins",
}


@dataclasses.dataclass(frozen=True)
class GameChange:
    """A game with its players' names; ``before`` and ``after`` are a result or one of the words.

    ``was_ended`` and ``ended`` say how it came to its result, '' without one; ``played`` is false
    where people have set the result ``before`` of a game that nobody played.
    """

    game: str
    event: str
    white: str
    black: str
    before: str
    after: str
    was_ended: str
    ended: str
    played: bool = True


@dataclasses.dataclass(frozen=True)
class ScoreChange:
    """An engine's points and place in an event; None where it is not in the table."""

    event: str
    engine: str
    points_before: float | None
    points_after: float | None
    place_before: int | None
    place_after: int | None


@dataclasses.dataclass(frozen=True)
class EventChange:
    """Where an event stands, once the farm has decided what it decides next."""

    event: str
    before: str
    after: str


@dataclasses.dataclass(frozen=True)
class GateDropped:
    """A time that people have set for the gate before an event, and that counts no longer."""

    event: str
    opens_at_ms: int


@dataclasses.dataclass(frozen=True)
class Follow:
    """A fact that the farm decides next, since the act has made it due."""

    kind: str
    event: str = ""
    engines: tuple[str, ...] = ()
    games: int = 0
    to: str = ""
    opens_at_ms: int | None = None


@dataclasses.dataclass(frozen=True)
class Consequences:
    """All that an act changes; ``next_game`` only where another one comes next than before."""

    games: tuple[GameChange, ...]
    scores: tuple[ScoreChange, ...]
    events: tuple[EventChange, ...]
    follows: tuple[Follow, ...]
    next_game: str
    taken_back_by: str  # the commands that do it, '' where it cannot be taken back
    gates: tuple[GateDropped, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class _Seen:
    """Of a season what is compared."""

    games: Mapping[str, tuple[str, str, str, str, bool]]  # white, black, standing, end, played
    tables: Mapping[str, Mapping[str, tuple[float, int]]]  # points and place


def of(
    before: season_state.SeasonState, drafts: Sequence[contract.Draft], now_ms: int
) -> Consequences:
    """Return what the facts of an act change in a season, which stays as it is."""
    after, anyway = copy.deepcopy(before), copy.deepcopy(before)
    decide.write(after, drafts, now_ms)
    old, new = _seen(before), _seen(after)
    games = tuple(_games(after, old, new))
    scores, gates = tuple(_scores(old, new)), tuple(_gates_dropped(before, after, now_ms))
    due_anyway = decide.settle(anyway, now_ms, STEPS)
    follows = [draft for draft in decide.settle(after, now_ms, STEPS) if draft not in due_anyway]
    next_game = _next_game(after)
    return Consequences(
        games=games,
        scores=scores,
        events=tuple(_events(anyway, after)),
        follows=tuple(map(_follow, follows)),
        next_game="" if next_game == _next_game(before) else next_game,
        taken_back_by="" if after.over else _taken_back_by(after, drafts),
        gates=gates,
    )


def _next_game(state: season_state.SeasonState) -> str:
    """Return the game that will be begun next, behind one in flight; '' where none may begin."""
    if state.ready_game() is None:
        return ""
    coming = blockers.coming(state)
    return "" if coming is None else str(coming["game"])


def stilled(state: season_state.SeasonState) -> season_state.SeasonState:
    """Return a copy of a season as if it was paused and no game was in flight: for a preview."""
    still = copy.deepcopy(state)
    still.paused, still.running = still.paused or "preview", None
    return still


def standing(state: season_state.SeasonState, game: season_events.Game) -> str:
    """Return a game's result if it counts, else the word for what becomes of it."""
    if game.finished is not None:
        return ANNULLED if published.annulled(state, game) else game.finished.result
    if state.dropped(game):
        return CANCELLED
    if state.running is not None and state.running.game == game.id:
        return RUNNING
    if game.asks:
        return ASKS
    return TO_PLAY if game.progress is None else INTERRUPTED


def named(state: season_state.SeasonState, game_id: str) -> str:
    """Return a game's id with its players, such as ``main.3 (Stockfish - Toga)``."""
    return f"{game_id} ({players(state, state.game(game_id))})"


def players(state: season_state.SeasonState, game: season_events.Game) -> str:
    """Return who plays a game, White first."""
    return " - ".join(views.name(state, name, game.event) for name in (game.white, game.black))


# -- comparing -----------------------------------------------------------------------


def _seen(state: season_state.SeasonState) -> _Seen:
    return _Seen(
        games={
            game.id: (
                game.white,
                game.black,
                standing(state, game),
                "" if game.finished is None else game.finished.ending.value,
                not published.unplayed(game),
            )
            for game in state.games.values()
        },
        tables={
            event.id: {row.engine: (row.points, row.rank) for row in pairing.table(state, event)}
            for event in state.events.values()
            if event.entrants
        },
    )


def _games(after: season_state.SeasonState, old: _Seen, new: _Seen) -> Iterator[GameChange]:
    nothing = ("", "", NO_GAME, "", True)
    for game_id, (white, black, now, ended, _) in new.games.items():
        was_white, was_black, was, was_ended, played = old.games.get(game_id, nothing)
        if (was_white, was_black, was, was_ended) == (white, black, now, ended):
            continue
        event = after.games[game_id].event
        yield GameChange(
            game=game_id,
            event=event,
            white=views.name(after, white, event),
            black=views.name(after, black, event),
            before=was,
            after=now,
            was_ended=was_ended,
            ended=ended,
            played=played,
        )


def _scores(old: _Seen, new: _Seen) -> Iterator[ScoreChange]:
    """Yield what changes in tables of events that are played on, the new table's best first."""
    for event, table in new.tables.items():
        was = old.tables.get(event, {})
        for engine in [*table, *(gone for gone in was if gone not in table)]:
            points_before, place_before = was.get(engine, (None, None))
            points_after, place_after = table.get(engine, (None, None))
            if was and (points_before, place_before) != (points_after, place_after):
                yield ScoreChange(
                    event, engine, points_before, points_after, place_before, place_after
                )


def _events(
    before: season_state.SeasonState, after: season_state.SeasonState
) -> Iterator[EventChange]:
    for event in after.events.values():
        was = before.events.get(event.id, event).status
        if was is not event.status:
            yield EventChange(event.id, was.value, event.status.value)


def _gates_dropped(
    before: season_state.SeasonState, after: season_state.SeasonState, now_ms: int
) -> Iterator[GateDropped]:
    """Yield the times ahead that were set for gates, and that an event that begins again lacks."""
    for event in after.events.values():
        was_ms = before.events[event.id].moved_to_ms if event.id in before.events else None
        if was_ms is not None and was_ms > now_ms and event.moved_to_ms is None:
            yield GateDropped(event.id, was_ms)


def _follow(draft: contract.Draft) -> Follow:
    data = draft.data
    engines = data.get("engines", ())
    if draft.kind == entries.EVENT_RANKED:
        engines = [row["engine"] for row in data["rows"]]
    elif draft.kind == entries.EVENT_STARTED:
        engines = data["entrants"]
    elif draft.kind in {entries.ENGINE_EXCLUDED, entries.SEASON_FINISHED}:
        engines = [data.get("engine") or data["champion"]]
    added = draft.kind == entries.EVENT_ADDED
    return Follow(
        kind=draft.kind,
        event=data["playoff"]["id"] if added else data.get("event", ""),
        engines=tuple(engines),
        games=len(data.get("games", ())),
        to=data.get("decision", "") or data.get("to", ""),
        opens_at_ms=data.get("opens_at_ms"),
    )


def _taken_back_by(after: season_state.SeasonState, drafts: Sequence[contract.Draft]) -> str:
    ways = [
        _way(after, draft)
        for draft in drafts
        if draft.kind != entries.EVENTS_UNDONE
        and (draft.kind != entries.ATTEMPT_JUDGED or len(drafts) == 1)  # its result can be changed
    ]
    if not ways or not all(ways):
        return ""
    undone = any(draft.kind == entries.EVENTS_UNDONE for draft in drafts)
    return ways[0] + (_UNDONE if undone else "")


def _way(after: season_state.SeasonState, draft: contract.Draft) -> str:
    if draft.kind == entries.DECIDED:
        return _asked_again(after, str(draft.data["event"]))
    if draft.kind == entries.GAME_VOIDED and not draft.data["replay"]:
        return "`farm game adjudicate` gives it a result"
    if draft.kind == amendment_entries.ENGINE_REPLACED and draft.data["played"] == "keep":
        return "`farm season amend engine` can give the seat back"
    return _BACK.get(draft.kind, "")


def _asked_again(after: season_state.SeasonState, event_id: str) -> str:
    """Say how a decision on an event's table is asked again: that is ranked again."""
    parts = after.events[event_id].parts
    event = event_id if parts is None else parts.event
    built = ",".join(corrections.hanging(after, event))
    return (
        f"`farm game adjudicate --cascade {built}` of a game of {event}, with another result or the"
        f" one that it has: {event} is ranked again, and the organizers are asked again"
    )
