"""Decide the next fact of a season, or that there is none to decide.

Pure: the state is only read, the time is an argument, draws follow from the season's
seed. The caller journals what is returned, applies it and asks again until nothing
comes. Each answer rests on journaled facts alone, so it does not matter where a crash
cuts the journal. A paused or held season starts no event and no game; rankings,
promotions and gates go on.

Order of events: a started event is played to its end before another one starts, in the
order of the file; only an event that still waits lets a later one go first (RULEBOOK §1).
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.season import entries, events, model, plan, standings
from orchestrator.season import state as season_state
from orchestrator.season.formats import base, registry

_BATCH = 500  # games paired in one answer: huge events reach the journal in small steps


def decide(state: season_state.SeasonState, now_ms: int) -> list[contract.Draft]:
    """Return the next facts, [] when nothing is to be decided now."""
    if state.launch is None or state.finished:
        return []
    return (
        _playing(state)
        or _promotion(state)
        or _gates(state, now_ms)
        or _season_end(state)
        or _start(state)
    )


# -- the event being played ----------------------------------------------------------


def _playing(state: season_state.SeasonState) -> list[contract.Draft]:
    event = state.current
    if event is None:
        return []
    return _hold(state) or _pair(state, event) or _ranking(event)


def _hold(state: season_state.SeasonState) -> list[contract.Draft]:
    limit = state.launched.season.hold_after_attempts
    if state.held or state.fruitless < limit:
        return []
    reason = (
        f"{state.fruitless} attempts at {state.fruitless_game} in a row ended without a "
        "journaled ply; look at the hall, then resume"
    )
    return [_draft(entries.HELD, entries.Held(reason=reason))]


def _pair(state: season_state.SeasonState, event: events.EventState) -> list[contract.Draft]:
    schedule = registry.build(event.spec.format, len(event.entrants))
    drafts: list[contract.Draft] = []
    index, number = event.rounds_paired, len(event.order)
    while number - len(event.order) < _BATCH and not schedule.complete(index, event.tally):
        pairing = schedule.pair(index, event.tally)
        if pairing is None:
            break
        drafts.append(_draft(entries.GAMES_PAIRED, _games(state, event, pairing, number)))
        index, number = index + 1, number + len(pairing.boards)
    return drafts


def _games(
    state: season_state.SeasonState,
    event: events.EventState,
    pairing: base.Pairing,
    played_before: int,
) -> entries.GamesPaired:
    opening = _Openings(state, event.spec)
    games = tuple(
        entries.PairedGame(
            game=f"{event.id}.{number}",
            number=number,
            round=board.tag,
            white=event.entrants[board.white],
            black=event.entrants[board.black],
            opening=opening.of(board.slot),
        )
        for number, board in enumerate(pairing.boards, start=played_before + 1)
    )
    return entries.GamesPaired(
        event=event.id, cycle=pairing.cycle, round=pairing.round, games=games
    )


class _Openings:
    """Which journaled exit of its book each opening slot of an event gets."""

    def __init__(self, state: season_state.SeasonState, spec: model.Event) -> None:
        launched = state.launched
        self._exits = 0 if spec.book is None else len(launched.books[spec.book])
        self._first = plan.first_exit(launched.season, len(launched.engines), spec.id)

    def of(self, slot: int) -> int | None:
        return (self._first + slot) % self._exits if self._exits else None


def _ranking(event: events.EventState) -> list[contract.Draft]:
    schedule = registry.build(event.spec.format, len(event.entrants))
    if not event.all_played or not schedule.complete(event.rounds_paired, event.tally):
        return []
    rows = standings.rank(event.tally, event.spec.tiebreaks)
    return [_draft(entries.EVENT_RANKED, entries.EventRanked(event=event.id, rows=rows))]


# -- between events ------------------------------------------------------------------


def _promotion(state: season_state.SeasonState) -> list[contract.Draft]:
    for event in state.events.values():
        if event.status is not events.Status.RANKED:
            continue
        for promotion in event.spec.promote:
            if promotion.to not in event.promoted:
                engines = tuple(row.engine for row in event.rows[: promotion.top])
                fact = entries.Promoted(event=event.id, to=promotion.to, engines=engines)
                return [_draft(entries.PROMOTED, fact)]
    return []


def _gates(state: season_state.SeasonState, now_ms: int) -> list[contract.Draft]:
    for event in state.events.values():
        if event.status is events.Status.WAITING and event.spec.break_ms is not None:
            done_ms = _awaited_done_ms(state, event)
            if done_ms is not None:
                fact = entries.GateSet(event=event.id, opens_at_ms=done_ms + event.spec.break_ms)
                return [_draft(entries.GATE_SET, fact)]
        if event.status is events.Status.GATE and now_ms >= (event.opens_at_ms or 0):
            opened = entries.GateOpened(event=event.id, cause="deadline")
            return [_draft(entries.GATE_OPENED, opened)]
    return []


def _awaited_done_ms(state: season_state.SeasonState, event: events.EventState) -> int | None:
    """Return when the last thing before an event's gate happened, None if it has not."""
    times = [state.launched_ms]
    for awaited in plan.awaited(state.launched.season, event.id):
        before = state.events[awaited]
        if not before.settled or before.ranked_ms is None:
            return None
        arrival = event.arrivals.get(awaited)
        times.append(before.ranked_ms if arrival is None else arrival.at_ms)
    return max(times)


def _start(state: season_state.SeasonState) -> list[contract.Draft]:
    if state.paused or state.held or state.current is not None:
        return []
    for event in state.events.values():
        entrants = _entrants(state, event)
        if entrants is not None and _may_start(event):
            fact = entries.EventStarted(event=event.id, entrants=entrants)
            return [_draft(entries.EVENT_STARTED, fact)]
    return []


def _may_start(event: events.EventState) -> bool:
    ungated = event.status is events.Status.WAITING and event.spec.break_ms is None
    return ungated or event.status is events.Status.OPEN


def _entrants(state: season_state.SeasonState, event: events.EventState) -> tuple[str, ...] | None:
    """Return the field in the order of its seeds, None while promotions are awaited."""
    listed = event.spec.entrants
    field = list(state.engines) if listed == "roster" else list(listed)
    for source in plan.sources(state.launched.season, event.id):
        arrival = event.arrivals.get(source.event)
        if arrival is None:
            return None
        field += arrival.engines
    return tuple(field)


def _season_end(state: season_state.SeasonState) -> list[contract.Draft]:
    if not all(event.settled for event in state.events.values()):
        return []
    last = list(state.events.values())[-1]
    fact = entries.SeasonFinished(champion=last.rows[0].engine, seed=state.launched.seed)
    return [_draft(entries.SEASON_FINISHED, fact)]


def _draft(kind: str, fact: contract.Message) -> contract.Draft:
    return contract.Draft(kind, fact.model_dump(mode="json", by_alias=True))
