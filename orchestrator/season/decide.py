"""Decide the next fact of a season, or that there is none to decide.

Pure: the state is only read, the time is an argument, draws follow from the season's
seed. The caller journals what is returned, applies it and asks again until nothing
comes. Each answer rests on journaled facts alone, so it does not matter where a crash
cuts the journal. A paused or held season starts no event and no game, and does not end, so
that a protest about its last game can be acted on; rankings, promotions and gates go on.

Order of events: a started event is played to its end before another one starts, in the
order of the file; only an event that still waits lets a later one go first.
One game is in flight at a time, day and night, and the next starts by itself (S16-1b,
S16-2a, S17-1c, S17-1d).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable

from orchestrator import contract
from orchestrator.season import decisions, playoffs
from orchestrator.season.amend import windows
from orchestrator.season.fold import (
    disqualification,
    entries,
    events,
    own_book,
    pairing,
    plan,
    seeding,
    vacancies,
)
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import holding


def decide(state: season_state.SeasonState, now_ms: int) -> list[contract.Draft]:
    """Return the next facts, [] when nothing is to be decided now."""
    if state.launch is None or state.over:
        return []
    return (
        _planned_pause(state, now_ms)
        or own_book.flagged(state)
        or disqualification.disqualified(state)
        or disqualification.refused(state)
        or disqualification.carried(state)
        or _playing(state)
        or playoffs.next_fact(state)
        or _question(state)
        or _promotion(state)
        or _gates(state, now_ms)
        or _season_end(state)
        or _start(state)
    )


def _planned_pause(state: season_state.SeasonState, now_ms: int) -> list[contract.Draft]:
    planned = state.planned_pause
    if planned is None or state.paused or now_ms < planned.at_ms:
        return []
    fact = entries.Paused(reason=planned.reason, name=planned.name, planned=True)
    return [contract.Draft.of(entries.PAUSED, fact)]


# -- the event being played ----------------------------------------------------------


def _playing(state: season_state.SeasonState) -> list[contract.Draft]:
    event = state.current
    if event is None:
        return []
    return (
        _hold(state)
        or _needless(state, event)
        or _pair(state, event)
        or disqualification.overdue(state, event)
        or _ranking(state, event)
    )


def _hold(state: season_state.SeasonState) -> list[contract.Draft]:
    limit = state.launched.season.hold_after_attempts
    if state.held or state.fruitless < limit:
        return []
    reason = holding.reason(state.fruitless, state.fruitless_game, state.fruitless_why)
    return [contract.Draft.of(entries.HELD, entries.Held(reason=reason))]


def _needless(state: season_state.SeasonState, event: events.EventState) -> list[contract.Draft]:
    games = tuple(pairing.needless(state, event))
    if not games:
        return []
    fact = entries.GamesCancelled(event=event.id, games=games, reason="the match is decided")
    return [contract.Draft.of(entries.GAMES_CANCELLED, fact)]


def _pair(state: season_state.SeasonState, event: events.EventState) -> list[contract.Draft]:
    return [contract.Draft.of(entries.GAMES_PAIRED, fact) for fact in pairing.pair(state, event)]


def _ranking(state: season_state.SeasonState, event: events.EventState) -> list[contract.Draft]:
    if not pairing.complete(state, event):
        return []
    rows = pairing.table(state, event)
    return [contract.Draft.of(entries.EVENT_RANKED, entries.EventRanked(event=event.id, rows=rows))]


# -- between events ------------------------------------------------------------------


def _question(state: season_state.SeasonState) -> list[contract.Draft]:
    for event in state.events.values():
        if event.status is events.Status.RANKED:
            for asked in decisions.questions(state.launched.season, event):
                if asked.decision not in event.asked:
                    return [contract.Draft.of(entries.DECISION_NEEDED, asked)]
    return []


def _promotion(state: season_state.SeasonState) -> list[contract.Draft]:
    for event in state.events.values():
        if event.status is not events.Status.RANKED:
            continue
        for promotion in event.spec.promote:
            waits = decisions.blocked(event, promotion)
            if promotion.to not in event.promoted and not waits:
                engines = vacancies.promoted(event, promotion)
                fact = entries.Promoted(event=event.id, to=promotion.to, engines=engines)
                return [contract.Draft.of(entries.PROMOTED, fact)]
    return []


def _gates(state: season_state.SeasonState, now_ms: int) -> list[contract.Draft]:
    for event in state.events.values():
        if event.status is events.Status.WAITING:
            fact = _gate_set(state, event, now_ms)
            if fact is not None:
                return [contract.Draft.of(entries.GATE_SET, fact)]
        opens_at_ms = event.opens_at_ms if event.status is events.Status.GATE else None
        if opens_at_ms is not None and now_ms >= opens_at_ms:
            opened = entries.GateOpened(event=event.id, cause="deadline")
            return [contract.Draft.of(entries.GATE_OPENED, opened)]
    return []


def _gate_set(
    state: season_state.SeasonState, event: events.EventState, now_ms: int
) -> entries.GateSet | None:
    """Return when the gate of an event opens, None where there is none or it is not set yet.

    The director's deadline for submissions holds an event, also one that has no break before
    it (S16-13c, S17-13c). What an event follows may be no part of its season, as the Swiss
    before a Cup: only the operator knows then (CUP-2a).
    """
    deadline_ms = windows.latest_deadline_ms(state, event)
    done_ms = _awaited_done_ms(state, event)
    if done_ms is None or (not event.spec.gated and deadline_ms <= now_ms):
        return None
    if event.spec.gated and event.spec.break_ms is None and event.moved_to_ms is None:
        return entries.GateSet(event=event.id, opens_at_ms=None)
    opens_at_ms = event.moved_to_ms or done_ms + (event.spec.break_ms or 0)
    return entries.GateSet(event=event.id, opens_at_ms=max(opens_at_ms, deadline_ms))


def _awaited_done_ms(state: season_state.SeasonState, event: events.EventState) -> int | None:
    """Return when the last thing before an event's gate happened, None if it has not.

    So no gate opens while a decision is outstanding on which its event depends.
    """
    times = [state.launched_ms]
    promoting = {source.event for source in plan.sources(state.launched.season, event.id)}
    for awaited in plan.awaited(state.launched.season, event.id):
        before, arrival = state.events[awaited], event.arrivals.get(awaited)
        if before.ranked_ms is None or (arrival is None and awaited in promoting):
            return None
        times.append(before.ranked_ms if arrival is None else arrival.at_ms)
    return max(times)


def _start(state: season_state.SeasonState) -> list[contract.Draft]:
    return [] if state.paused or state.held else next_event(state)


def next_event(state: season_state.SeasonState) -> list[contract.Draft]:
    """Start the event that is next, [] where none may start; a pause does not matter."""
    if state.current is not None:
        return []
    for event in state.events.values():
        fact = seeding.started(state, event) if _may_start(event) else None
        if fact is not None:
            return [contract.Draft.of(entries.EVENT_STARTED, fact)]
    return []


def begun(state: season_state.SeasonState, now_ms: int) -> season_state.SeasonState:
    """Return the season as it is once the next event has begun, on a copy; a pause does not matter.

    So the games that a pause keeps back can be seen before it ends.
    """
    if state.current is not None or state.over:
        return state
    paper = copy.deepcopy(state)
    if drafts := next_event(paper):
        write(paper, drafts, now_ms)
        settle(paper, now_ms)
    return paper


def write(state: season_state.SeasonState, drafts: Iterable[contract.Draft], now_ms: int) -> None:
    """Apply facts to a copy of a season, as they would be read from its journal."""
    for draft in drafts:
        plain = contract.loads(contract.dumps(draft.data))
        state.apply(contract.Entry(state.seq + 1, now_ms, draft.kind, "", plain))


def settle(
    state: season_state.SeasonState, now_ms: int, most: float = math.inf
) -> list[contract.Draft]:
    """Apply to a copy what is decided by itself, and return it, until it waits for something else.

    It ends as well when so many facts, or a few more, were decided.
    """
    decided: list[contract.Draft] = []
    while len(decided) < most and (drafts := decide(state, now_ms)):
        write(state, drafts, now_ms)
        decided += drafts
    return decided


def _may_start(event: events.EventState) -> bool:
    ungated = event.status is events.Status.WAITING and not event.spec.gated
    return ungated or event.status is events.Status.OPEN


def waits_to_end(state: season_state.SeasonState) -> bool:
    """Say whether only a pause, or a hold, keeps a season from its end."""
    still = bool(state.paused or state.held) and not state.over
    return still and all(event.settled for event in state.events.values())


def _season_end(state: season_state.SeasonState) -> list[contract.Draft]:
    if state.paused or state.held or not all(event.settled for event in state.events.values()):
        return []
    champion = state.final.rows[0].engine
    fact = entries.SeasonFinished(champion=champion, seed=state.launched.seed)
    return [contract.Draft.of(entries.SEASON_FINISHED, fact)]
