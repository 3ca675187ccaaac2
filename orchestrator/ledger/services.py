"""What the services of the control side report: ``serve`` and backups, each its last report.

Shown and alerted on; nothing in a season is decided by it. Times of day are those of Redis.
A report is replaced by the next one of the same service and is lost with Redis: the alerts take
an absent report for a service that has never run.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

import pydantic

from orchestrator import contract

SERVE: Final = "serve"
BACKUP: Final = "backup"
BEAT_SECONDS: Final = 10.0  # s: alerts wait for several of them
SILENT_SECONDS: Final = 60.0  # s: six beats, after which a service is taken not to be at work


class Serve(contract.Message):
    """One pass of ``farm serve`` that was completed.

    ``unsafe`` is what in Redis' settings can lose an acknowledged write: only the user of
    ``serve`` may read all of them. ``clock_skew_seconds`` is how far its host's time of day is
    ahead of Redis'. ``damaged`` are seasons that it has taken out of service,
    ``stopped`` those whose archive does not take a file.
    """

    schema_version: int = contract.SCHEMA
    at_ms: int
    version: str = ""
    host: str = ""
    clock_skew_seconds: float | None = None
    unsafe: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


class Backup(contract.Message):
    """The last backup: when one was complete, and what went wrong with the last one.

    ``complete_ms`` and ``away_ms`` are when the last complete copy was made, and when the last one
    was taken off the host; 0 is never. ``error`` is empty when the last run was a success.
    """

    schema_version: int = contract.SCHEMA
    at_ms: int
    target: str = ""
    host: str = ""
    complete_ms: int = 0
    away_ms: int = 0
    error: str = ""
    seconds: float = 0.0
    entries: int = 0


class Source(Protocol):
    """The one verb of the ledger that is wanted here."""

    def services(self) -> dict[str, str]:
        """Return the last report of each service."""


Report = TypeVar("Report", Serve, Backup)


def read(ledger: Source, name: str, kind: type[Report]) -> Report | None:
    """Return the last report of a service; None where there is none that this version can read."""
    payload = ledger.services().get(name)
    try:
        return None if payload is None else kind.decode(payload)
    except pydantic.ValidationError:
        return None  # a later version's: it waits for this one's upgrade
