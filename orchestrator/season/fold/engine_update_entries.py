"""The kinds of entries by which engines change between events, and what each carries.

They stand in the season's journal beside those of ``entries``, with name and reason.
What plays in an event is pinned by its ``event_started``; an update is the version that
the next events pin. ``apply_engine_updates`` applies them, ``engine_update`` decides them.
"""

from __future__ import annotations

from typing import Final

from orchestrator import contract
from orchestrator.season.spec import model

ENGINE_UPDATED: Final = "engine_updated"
ENGINE_ADDED: Final = "engine_added"
DEADLINE_SET: Final = "deadline_set"


class EngineUpdated(contract.DeferredMessage):
    """An engine is another version, or has other settings, in all events that begin later.

    ``events`` are those that it can play next.
    """

    engine: contract.EngineSpec
    entry: model.EngineEntry
    events: tuple[str, ...]
    reason: str
    name: str


class EngineAdded(contract.DeferredMessage):
    """An engine joins the roster; ``event`` is the one it enters, '' for a reserve."""

    engine: contract.EngineSpec
    entry: model.EngineEntry
    event: str
    reason: str
    name: str


class DeadlineSet(contract.DeferredMessage):
    """The director sets a submission deadline, for all engines of an event or for one."""

    event: str
    engine: str
    at_ms: int
    reason: str
    name: str
