"""The mirror of the farm's own journal (launches, drains, restores), kept by ``serve``.

No season depends on it, so a mirror that is damaged, or ahead of Redis, is told of once
and left as it is; the seasons go on or are refused by their own journals. One whose disk
refuses it is tried again with each look.
"""

from __future__ import annotations

import pathlib

import structlog

from orchestrator import errors
from orchestrator.ledger import api, mirror

log = structlog.get_logger()

BATCH = 1_000  # entries read at once: bounds memory, not work


class FarmMirror:
    """``<archive>/farm/journal.jsonl``; no season may have that id."""

    def __init__(self, ledger: api.Ledger, root: pathlib.Path) -> None:
        self._ledger = ledger
        self._path = root / api.FARM / "journal.jsonl"
        self._mirror: mirror.Mirror | None = None
        self._broken = False
        self._refused = ""  # what the disk said last

    def close(self) -> None:
        """Close the file; the next look opens it again."""
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def catch_up(self) -> int:
        """Mirror what is new; return the last sequence number of the journal."""
        last = self._ledger.last(api.FARM)
        if last and not self._broken:
            try:
                self._extend(last)
                self._refused = ""
            except (errors.DiskError, OSError) as error:
                self.close()
                if self._refused != str(error):
                    log.error("farm_journal.stands", error=str(error))  # noqa: TRY400 - no bug
                self._refused = str(error)
            except (errors.LedgerDamagedError, errors.RefusedError, errors.HostError) as error:
                self._broken = True
                self.close()
                log.error("farm_journal.damaged", error=str(error))  # noqa: TRY400 - no bug: said
        return last

    def _extend(self, last: int) -> None:
        if self._mirror is None:
            self._mirror = mirror.Mirror(self._path)
        if self._mirror.last > last:
            raise errors.LedgerDamagedError(
                f"Redis holds {last} entries of the farm's journal, {self._path}"
                f" {self._mirror.last}: Redis has lost facts; see `farm restore`"
            )
        while entries := self._ledger.read(api.FARM, self._mirror.last, BATCH):
            self._mirror.extend(entries)
