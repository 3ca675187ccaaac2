"""What authors, by the director's hand, change of a running season's engines.

Update (of settings too: S16-13b, S17-13b), addition and submission deadline: each returns
the draft to be journaled, or raises ``RefusedError`` with the clause that forbids it. The
entry is held to the rules of a roster again: limits, uniqueness (S16-16),
competition (S17-2).
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.engines import limits
from orchestrator.season.amend import windows
from orchestrator.season.file import checks, roster
from orchestrator.season.fold import (
    amendment_entries,
    apply_engine_updates,
    engine_update_entries,
    events,
    orders,
    plan,
)
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import registry
from orchestrator.season.spec import eligibility, model


def entries_of(state: season_state.SeasonState) -> dict[str, model.EngineEntry]:
    """Return the roster's entries as they are now, by engine id.

    Engines that were found on the host by name have none.
    """
    listed = state.launched.season.roster
    launched = {roster.id_of(entry): entry for entry in (*listed.engines, *listed.fill)}
    return {i: entry for i, entry in launched.items() if i in state.engines} | state.entered


def update(
    state: season_state.SeasonState,
    entry: model.EngineEntry,
    event_id: str | None,
    now_ms: int,
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Let an engine play its next events as ``entry`` says."""
    _require_reason(state, reason)
    engine = roster.spec(entry)
    if engine.id not in state.engines:
        engine_ids = ", ".join(state.engines)
        raise errors.RefusedError(f"no engine {engine.id!r} in this season; there are {engine_ids}")
    coming = windows.require_open(state, engine.id, event_id, now_ms)
    if entries_of(state).get(engine.id) == entry:
        raise errors.RefusedError(f"{engine.id} is what this entry says already")
    _require_rules(state, entry, coming)
    fact = engine_update_entries.EngineUpdated(
        engine=engine,
        entry=entry,
        events=tuple(event.id for event in coming),
        reason=reason,
        name=name,
    )
    return [contract.Draft.of(engine_update_entries.ENGINE_UPDATED, fact)]


def add(
    state: season_state.SeasonState,
    entry: model.EngineEntry,
    event_id: str,
    now_ms: int,
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Let an engine join: as an entrant of an event that has not started, or a reserve ('')."""
    _require_reason(state, reason)
    engine = roster.spec(entry)
    if engine.id in state.engines:
        text = f"{engine.id} is in this season already; `farm engine update` changes it"
        raise errors.RefusedError(text)
    entered = [state.event(event_id)] if event_id else []
    for event in entered:
        if event.status not in apply_engine_updates.NOT_STARTED:
            text = f"event {event.id} has started, nobody enters it any more; without --event"
            seat = f"{engine.id} is a reserve, to which `farm season amend engine` gives a seat"
            raise errors.RefusedError(f"{text} {seat}")
        windows.require_window(state, event, engine.id, now_ms)
        _require_room(state, event)
    _require_rules(state, entry, entered)
    fact = engine_update_entries.EngineAdded(
        engine=engine, entry=entry, event=event_id, reason=reason, name=name
    )
    return [contract.Draft.of(engine_update_entries.ENGINE_ADDED, fact)]


def set_deadline(
    state: season_state.SeasonState,
    event_id: str,
    engine: str,
    at_ms: int,
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Set the submission deadline of an event, for one engine or ('') for all (S16-13c).

    A gate that would open before it is moved to it; one that is not set yet, or an event without
    a break before it, waits for it (``decide``).
    """
    _require_reason(state, reason)
    event = state.event(event_id)
    if event.status not in apply_engine_updates.NOT_STARTED:
        raise errors.RefusedError(f"event {event_id} has started; its deadline is over")
    if engine and engine not in state.engines:
        raise errors.RefusedError(f"no engine {engine!r} in this season")
    windows.movable(state, event)
    if engine and event not in windows.upcoming(state, engine):
        raise errors.RefusedError(
            f"{engine} cannot play {event_id} any more; deadlines are for engines that may"
        )
    if event.deadlines.get(engine) == at_ms:
        raise errors.RefusedError(f"that is the deadline of {event_id} already")
    fact = engine_update_entries.DeadlineSet(
        event=event_id, engine=engine, at_ms=at_ms, reason=reason, name=name
    )
    drafts = [contract.Draft.of(engine_update_entries.DEADLINE_SET, fact)]
    if event.opens_at_ms is not None and event.opens_at_ms < at_ms:
        moved = amendment_entries.GateMoved(
            event=event_id,
            opens_at_ms=at_ms,
            before_ms=event.opens_at_ms,
            reason=f"submission deadline: {reason}",
            name=name,
        )
        drafts.append(contract.Draft.of(amendment_entries.GATE_MOVED, moved))
    return drafts


# -- the rules of a roster -------------------------------------------------------------


def _require_rules(
    state: season_state.SeasonState, entry: model.EngineEntry, coming: list[events.EventState]
) -> None:
    """Raise ``RefusedError`` for an entry that a roster would be refused for."""
    engine = roster.spec(entry)
    problem = (
        _listed_wrong(state, entry, engine)
        or _not_unique(state, entry, engine.id)
        or _wrong_competition(entry, coming)
        or _beyond_limits(state, engine)
    )
    if problem:
        raise errors.RefusedError(f"{engine.id}: {problem}")


def _listed_wrong(
    state: season_state.SeasonState, entry: model.EngineEntry, engine: contract.EngineSpec
) -> str:
    if wrong := checks.unboxed(entry):
        return f"{wrong}; allowed: the name of the GPU box that it runs on (S17-2b)"
    if entry.dropped:
        return "its entry says that it is dropped; `farm engine withdraw` takes an engine out"
    if any(other.name == engine.name and i != engine.id for i, other in state.engines.items()):
        return f"the name {engine.name!r} is another engine's; one name for each engine"
    unknown = sorted(set(engine.settings) - state.events.keys())
    if unknown:
        return f"settings for {', '.join(unknown)}, but there is no such event"
    for problem in checks.frozen(state.launched.season, [engine]):
        return f"{problem.where}: {problem.found}; allowed: {problem.allowed}"
    return ""


def _not_unique(state: season_state.SeasonState, entry: model.EngineEntry, engine: str) -> str:
    if entry.neural is None or entry.exception:
        return ""
    others = [
        other
        for i, other in entries_of(state).items()
        if i != engine and other.neural is not None and not other.exception
    ]
    problem = eligibility.clash(entry, others)
    return f"{problem}; allowed: {eligibility.ALLOWED}" if problem else ""


def _wrong_competition(entry: model.EngineEntry, coming: list[events.EventState]) -> str:
    for event in coming:
        if event.spec.competition not in {None, entry.competition}:
            wanted = event.spec.competition
            return f"of the {entry.competition} competition, but {event.id} is for {wanted} (S17-2)"
    return ""


def _beyond_limits(state: season_state.SeasonState, engine: contract.EngineSpec) -> str:
    """Name the first setting that breaks a limit of an event that has not started."""
    for event in state.events.values():
        if event.status in apply_engine_updates.NOT_STARTED:
            options = orders.engine_in(engine, event.id).options
            for breach in limits.breaches(options, event.spec.limits):
                where = f"option {breach.name} = {breach.value} in event {event.id}"
                clause = checks.limits_clause(event.spec)
                return f"{where}; allowed: {breach.limit} ({clause})"
    return ""


def _require_room(state: season_state.SeasonState, event: events.EventState) -> None:
    """Raise ``RefusedError`` when one more engine fits into no schedule or no book."""
    season, size = state.launched.season, len(state.launched.engines)
    field = plan.fields(season, size)[event.id] + len(event.added) + 1
    allowed = registry.field_error(event.spec.format, field)
    if allowed is not None:
        text = f"{event.id} would have a field of {field}; allowed: {allowed}"
        raise errors.RefusedError(text)
    if event.spec.max_engines is not None and field > event.spec.max_engines:
        text = f"{event.id} would have a field of {field}"
        raise errors.RefusedError(f"{text}; allowed: {event.spec.max_engines} (max_engines)")
    for problem in checks.winners(season, event.spec, field):
        raise errors.RefusedError(
            f"{event.id} would send {problem.found}; allowed: {problem.allowed}; let the engine"
            " take another's place (`farm season amend engine`)"
        )
    name = event.spec.book
    if name is None or season.books[name].repeat:
        return
    dealt = plan.exits_of(event.spec, plan.schedules(season, size)[event.id])
    schedule = registry.build(event.spec.format, registry.expected_field(event.spec.format, field))
    needed = plan.exits_of(event.spec, schedule)
    if needed > dealt:
        raise errors.RefusedError(
            f"{event.id} would need {needed} openings of the book {name}, which was dealt {dealt}"
            " for it at the launch; let the engine take another's place"
            " (`farm season amend engine`)"
        )


def _require_reason(state: season_state.SeasonState, reason: str) -> None:
    if not reason:
        raise errors.UsageError("a change of a season's engines needs --reason")
    state.require_unfinished()
