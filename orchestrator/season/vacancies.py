"""Places that only a disqualified engine is left to take (S16-15c, S17-15c).

Who is disqualified or withdrawn ranks last, so it comes to a promoted place only where fewer
other engines are left than go on. It has no claim to the place: the organizers name an engine
for it, that one or another, or leave it empty. Question and answer are journaled as those
about ties (``decisions``). Not in matches and Cups, where somebody has to go on (CUP-2e).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator import contract, errors
from orchestrator.season import entries, events, model, plan, replacing
from orchestrator.season import state as season_state
from orchestrator.season.formats import registry

NOBODY: Final = "nobody"
_MATCHES: Final = frozenset({"match", "knockout"})


def may_be_empty(event: events.EventState) -> bool:
    """Say whether places of an event may be left empty: it is a table, of points."""
    return event.spec.format.kind not in _MATCHES and event.parts is None


def questions(event: events.EventState) -> Iterator[entries.DecisionNeeded]:
    """Yield the promoted places of a ranked event that a disqualified engine has."""
    if not may_be_empty(event):
        return
    for promotion in event.spec.promote:
        for place in promotion.places if promotion.to not in event.promoted else ():
            engine = event.rows[place - 1].engine
            decision = _decision(event, promotion.to, place)
            if engine in event.excluded and decision not in event.answers:
                why = event.excluded[engine].reason or event.excluded[engine].cause
                yield entries.DecisionNeeded(
                    decision=decision,
                    event=event.id,
                    place=place,
                    engines=(engine,),
                    choose=1,
                    about=f"place {place}: to {promotion.to}; {engine} has left ({why})",
                    to=promotion.to,
                )


def _decision(event: events.EventState, to: str, place: int) -> str:
    return f"{event.id}:seat-{place}-{to}"


def taker(event: events.EventState, to: str, place: int) -> str:
    """Return who goes on from a place of a ranked event, '' where it was left empty."""
    answer = event.answers.get(_decision(event, to, place))
    if answer is None:
        return event.rows[place - 1].engine
    return "" if answer.choose == (NOBODY,) else answer.choose[0]


def promoted(event: events.EventState, promotion: model.Promotion) -> tuple[str, ...]:
    """Return who goes on to another event, best first, without the places left empty."""
    takers = (taker(event, promotion.to, place) for place in promotion.places)
    return tuple(engine for engine in takers if engine)


def decide(
    state: season_state.SeasonState,
    asked: entries.DecisionNeeded,
    choose: Sequence[str],
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Answer such a question; raise ``RefusedError``, ``UsageError``."""
    event, to = state.event(asked.event), state.event(asked.to)
    if not reason:
        raise errors.UsageError("a decision of the organizers needs --reason")
    if len(choose) != 1:
        raise errors.UsageError(f"{asked.decision} needs one engine, or {NOBODY}")
    if choose[0] == NOBODY:
        _require_enough(state, event, to)
    else:
        _require_free(state, event, to, choose[0], asked)
    fact = entries.Decided(
        decision=asked.decision,
        event=asked.event,
        choose=(choose[0],),
        rows=event.rows,
        reason=reason,
        name=name,
    )
    return [contract.Draft.of(entries.DECIDED, fact)]


def _require_enough(
    state: season_state.SeasonState, event: events.EventState, to: events.EventState
) -> None:
    """Raise ``RefusedError`` where an event could not be played with one engine fewer."""
    season = state.launched.season
    field = plan.fields(season, len(state.launched.engines))[to.id] + len(to.added) - 1
    for source in plan.sources(season, to.id):
        before = state.events[source.event]
        if source.event in to.arrivals:
            field -= source.engines - len(to.arrivals[source.event].engines)
        elif before is event:
            (promotion,) = (one for one in event.spec.promote if one.to == to.id)
            field -= sum(not taker(event, to.id, place) for place in promotion.places)
    allowed = registry.field_error(to.spec.format, field)
    if allowed is not None:
        raise errors.RefusedError(
            f"{to.id} would have a field of {field}; allowed: {allowed}; name an engine for it"
        )


def _require_free(
    state: season_state.SeasonState,
    event: events.EventState,
    to: events.EventState,
    engine: str,
    asked: entries.DecisionNeeded,
) -> None:
    """Raise ``RefusedError`` for an engine that cannot take the place."""
    if engine not in state.engines:
        known = ", ".join(state.engines)
        raise errors.RefusedError(f"no engine {engine!r} in this season; there are {known}")
    (promotion,) = (one for one in event.spec.promote if one.to == to.id)
    going = {
        taker(event, to.id, place)
        for place in promotion.places
        if event.rows[place - 1].engine not in event.excluded
        or _decision(event, to.id, place) in event.answers
    }
    if engine in going:
        raise errors.RefusedError(f"{engine} goes on to {to.id} already, by another place")
    if engine not in asked.engines:
        replacing.require_seat(state, to, engine, besides=event.id)
