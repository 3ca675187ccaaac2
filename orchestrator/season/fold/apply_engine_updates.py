"""Apply submissions to the season's state: each verb records one journaled fact.

Part of the fold (``state``): nothing is decided here, and a fact that contradicts the
ones before it raises ``ContradictionError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from orchestrator import contract
from orchestrator.season.fold import apply_amendments, engine_update_entries, events

if TYPE_CHECKING:
    from orchestrator.season.fold import state as season_state

NOT_STARTED: Final = frozenset({events.Status.WAITING, events.Status.GATE, events.Status.OPEN})


def _engine_updated(
    state: season_state.SeasonState, fact: engine_update_entries.EngineUpdated, _at_ms: int
) -> None:
    apply_amendments.require(fact.engine.id in state.engines, "no such engine")
    for event in state.events.values():
        if event.status is events.Status.RUNNING and fact.engine.id in event.entrants:
            # A substitute, or an event of an older journal, may be unpinned so far.
            event.pinned.setdefault(fact.engine.id, state.engines[fact.engine.id])
    state.engines[fact.engine.id] = fact.engine
    state.entered[fact.engine.id] = fact.entry


def _engine_added(
    state: season_state.SeasonState, fact: engine_update_entries.EngineAdded, _at_ms: int
) -> None:
    apply_amendments.require(fact.engine.id not in state.engines, "the engine is there already")
    state.engines[fact.engine.id] = fact.engine
    state.entered[fact.engine.id] = fact.entry
    state.joined.add(fact.engine.id)
    if fact.event:
        event = state.events[fact.event]
        apply_amendments.require(event.status in NOT_STARTED, "the event has started")
        event.added = (*event.added, fact.engine.id)


def _deadline_set(
    state: season_state.SeasonState, fact: engine_update_entries.DeadlineSet, _at_ms: int
) -> None:
    state.events[fact.event].deadlines[fact.engine] = fact.at_ms


def pin_files(
    state: season_state.SeasonState, game: events.Game, fact: contract.GameFinished
) -> None:
    """Pin files that the hall was the first to see, for the rest of the event."""
    pinned = state.events[game.event].pinned
    for engine, files in ((game.white, fact.white_files), (game.black, fact.black_files)):
        if files:
            spec = pinned.get(engine, state.engines[engine])
            checksums = {**files, **spec.checksums}
            pinned[engine] = spec.model_copy(update={"checksums": checksums})


Verb = Callable[["season_state.SeasonState", Any, int], None]
VERBS: Final[Mapping[str, tuple[type[contract.Message], Verb]]] = {
    engine_update_entries.ENGINE_UPDATED: (engine_update_entries.EngineUpdated, _engine_updated),
    engine_update_entries.ENGINE_ADDED: (engine_update_entries.EngineAdded, _engine_added),
    engine_update_entries.DEADLINE_SET: (engine_update_entries.DeadlineSet, _deadline_set),
}
