"""Who plays games on this machine: found by an entry point, so that nothing here knows the hall."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from orchestrator import contract
from orchestrator.common import errors

GROUP = "farm.players"  # entry points: orders, hall and Redis (if any) to records

Play: TypeAlias = Callable[
    [Sequence[contract.GameOrder], str, str | None], Iterable[contract.GameRecord]
]


def player() -> Play:
    """Return who plays games on this machine; raise ``HostError`` where nobody does."""
    entries = list(importlib.metadata.entry_points(group=GROUP))
    if not entries:
        raise errors.HostError(
            "nothing on this machine plays games: install the farm again (entry points"
            f" {GROUP}), or run this on the hall's host"
        )
    try:
        play: Play = entries[0].load()
    except ModuleNotFoundError as error:  # what plays games needs Linux
        raise errors.HostError(
            f"nothing plays games here: they are played on Linux alone ({errors.reason(error)})"
        ) from error
    return play
