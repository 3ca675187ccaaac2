"""The organizers' answer about a place that only a disqualified engine is left to take.

What may be answered: an engine that has no place there yet, or nobody where enough are left
(S16-15c, S17-15c; the question is in ``vacancies``).
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import substitute
from orchestrator.season.fold import entries, events, plan, vacancies
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import registry


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
        raise errors.UsageError(f"{asked.decision} needs one engine, or {vacancies.NOBODY}")
    if choose[0] == vacancies.NOBODY:
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
            (promotion,) = (candidate for candidate in event.spec.promote if candidate.to == to.id)
            field -= sum(not vacancies.taker(event, to.id, rank) for rank in promotion.places)
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
        engine_ids = ", ".join(state.engines)
        raise errors.RefusedError(f"no engine {engine!r} in this season; there are {engine_ids}")
    (promotion,) = (candidate for candidate in event.spec.promote if candidate.to == to.id)
    going = {
        vacancies.taker(event, to.id, rank)
        for rank in promotion.places
        if event.rows[rank - 1].engine not in event.excluded
        or vacancies.decision_id(event, to.id, rank) in event.answers
    }
    if engine in going:
        raise errors.RefusedError(f"{engine} goes on to {to.id} already, by another place")
    if engine not in asked.engines:
        substitute.require_seat(state, to, engine, besides=event.id)
