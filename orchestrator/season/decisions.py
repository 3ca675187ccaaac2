"""Ties that only the organizers can decide (last criterion of a chain).

A chain that ends with ``organizers`` may leave engines level. Such a tie is a question
only where a line runs through it: between two places of which one is promoted to another
event than the other, is relegated, wins the season, or is among the ``seeding_places``.
A tie without a line stands as it is and stops nothing (S16-12a, S17-12a). What needs the answer
waits, everything else goes on; question and answer are journaled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import vacancy_answer
from orchestrator.season.fold import entries, events, standings, vacancies
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


def destinations(season: model.Season, event: model.Event, rank: int, size: int) -> frozenset[str]:
    """Say what a place (from 1) in a field of that size leads to; equal sets need no answer."""
    leads = {f"to {promotion.to}" for promotion in event.promote if rank in promotion.places}
    if rank > size - event.relegate:
        leads.add("relegated")
    if rank == 1 and event.id == season.events[-1].id:
        leads.add("champion")
    if rank <= event.seeding_places and event.seeding_ties == "organizers":
        leads.add(f"place {rank}")
    return frozenset(leads)


def questions(season: model.Season, event: events.EventState) -> Iterator[entries.DecisionNeeded]:
    """Yield the questions a journaled ranking leaves, in the order of its places."""
    yield from vacancies.questions(event)
    if event.spec.tiebreaks[-1:] == (model.Criterion.ORGANIZERS,):
        yield from (asked for asked, _ in level(season, event))


def level(
    season: model.Season, event: events.EventState
) -> Iterator[tuple[entries.DecisionNeeded, tuple[tuple[str, ...], ...]]]:
    """Yield the ties through which a line runs, and what each place of a tie leads to."""
    for tied in _ties(event.rows):
        leads = _leads(season, event, tied)
        if len(set(leads)) > 1:
            asked = entries.DecisionNeeded(
                decision=f"{event.id}:place-{tied[0].rank}",
                event=event.id,
                place=tied[0].rank,
                engines=tuple(row.engine for row in tied),
                choose=_needed(leads),
                about=_about(tied[0].rank, leads),
            )
            yield asked, tuple(tuple(sorted(lead)) for lead in leads)


def _ties(rows: Sequence[standings.Row]) -> Iterator[list[standings.Row]]:
    for _, level in itertools.groupby(rows, key=lambda row: row.rank):
        tied = list(level)
        if len(tied) > 1:
            yield tied


def _leads(
    season: model.Season, event: events.EventState, tied: Sequence[standings.Row]
) -> list[frozenset[str]]:
    """Return what each place of a tie leads to."""
    first, size = tied[0].rank, len(event.rows)
    places = range(first, first + len(tied))
    if event.parts is not None:  # a playoff: its places are those of the tie
        return [event.leads[rank - 1] for rank in places]
    leads = [destinations(season, event.spec, rank, size) for rank in places]
    if tied[0].engine in event.excluded and vacancies.may_be_empty(event):
        # Who is disqualified has no claim to a promoted place: that is a question of its own.
        ways = frozenset(f"to {promotion.to}" for promotion in event.spec.promote)
        leads = [lead - ways for lead in leads]
    return leads


def _needed(leads: Sequence[frozenset[str]]) -> int:
    """Return for how many places, best first, an engine must be named."""
    return max(k for k in range(1, len(leads)) if leads[k] != leads[k - 1])


def _about(first: int, leads: Sequence[frozenset[str]]) -> str:
    """Name the places and what they lead to, such as ``place 4: to l1; place 5: …``."""
    rest = _without(frozenset().union(*leads))
    clauses = []
    for rank, lead in enumerate(leads, start=first):
        outcomes = sorted("its seed" if way == f"place {rank}" else way for way in lead)
        clauses.append(f"place {rank}: {', '.join(outcomes) or rest}")
    return "; ".join(clauses)


def _without(leads: frozenset[str]) -> str:
    """Say what a place means that leads nowhere, by what the others of its tie lead to."""
    if leads == {"champion"}:
        return "not champion"
    if leads == {"relegated"}:
        return "not relegated"
    return "stays" if "relegated" in leads else "goes no further"


def blocked(event: events.EventState, promotion: model.Promotion) -> bool:
    """Say whether a promotion waits for an open decision: on who goes on, or in which order."""
    for asked in event.asked.values():
        if asked.to:
            if asked.to == promotion.to:
                return True
            continue
        places = range(asked.place, asked.place + len(asked.engines))
        taken = [rank for rank in places if rank in promotion.places]
        asks = event.spec.seeding_ties == "organizers"
        ordered = asks and asked.place <= event.spec.seeding_places
        if taken and (len(taken) < len(places) or ordered):
            return True
    return False


def choice(asked: entries.DecisionNeeded) -> str:
    """Say what a question may be answered with."""
    level = ", ".join(asked.engines)
    if asked.to:
        return f"choose {level}, another engine, or {vacancies.NOBODY}: the place stays empty"
    return f"choose {asked.choose} of {level}, best first"


def outstanding(state: season_state.SeasonState) -> list[entries.DecisionNeeded]:
    """Return the questions that wait for the organizers, and for no playoff."""
    played = {
        event.parts.decision
        for event in state.events.values()
        if event.parts is not None and event.status is not events.Status.ABANDONED
    }
    return [
        asked
        for event in state.events.values()
        for asked in event.asked.values()
        if asked.decision not in played
    ]


def decide(
    state: season_state.SeasonState,
    decision: str,
    choose: Sequence[str],
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Answer a question: ``choose`` names engines for its places, best first.

    Raise ``RefusedError`` for an unknown question, ``UsageError`` for engines that are not
    asked about, too few of them, or an answer without a reason.
    """
    state.require_unfinished()
    asked = next((needed for needed in outstanding(state) if needed.decision == decision), None)
    if asked is None:
        awaited = ", ".join(needed.decision for needed in outstanding(state)) or "none"
        raise errors.RefusedError(f"no decision {decision!r} is awaited; awaited: {awaited}")
    if asked.to:
        return vacancy_answer.decide(state, asked, choose, name, reason)
    _check_answer(asked, choose, reason)
    order = (*choose, *(engine for engine in asked.engines if engine not in choose))
    fact = entries.Decided(
        decision=decision,
        event=asked.event,
        choose=tuple(choose),
        rows=placed(state.events[asked.event].rows, asked, order, len(choose)),
        reason=reason,
        name=name,
    )
    return [contract.Draft.of(entries.DECIDED, fact)]


def _check_answer(asked: entries.DecisionNeeded, choose: Sequence[str], reason: str) -> None:
    tied = ", ".join(asked.engines)
    if not reason:
        raise errors.UsageError("a decision of the organizers needs --reason")
    if len(set(choose)) < len(choose) or not set(choose) <= set(asked.engines):
        raise errors.UsageError(f"{asked.decision} chooses among {tied}, each at most once")
    if len(choose) < asked.choose:
        raise errors.UsageError(
            f"{asked.decision} needs {asked.choose} of {tied}, best first ({asked.about})"
        )


def placed(
    rows: Sequence[standings.Row],
    asked: entries.DecisionNeeded,
    order: Sequence[str],
    chosen: int,
    parted_by: model.Criterion = model.Criterion.ORGANIZERS,
) -> tuple[standings.Row, ...]:
    """Return the table with tied engines in an order, of which the first are chosen."""
    by_engine = {row.engine: row for row in rows}
    all_parted = chosen >= len(order) - 1
    moved = []
    for index, engine in enumerate(order):
        parted = index < chosen or all_parted
        rank = asked.place + (index if parted else chosen)
        decided_by = parted_by.value if parted else ""
        moved.append(by_engine[engine].model_copy(update={"rank": rank, "decided_by": decided_by}))
    first = asked.place - 1
    return (*rows[:first], *moved, *rows[first + len(moved) :])
