"""The mirror of the farm's own journal (launches, drains, restores), kept by ``serve``.

No season depends on it, so a mirror that is damaged, or ahead of Redis, is reported once
and left as it is, and so is a journal that cannot be mirrored, for whatever reason; the seasons
go on or are refused by their own journals. One whose disk refuses it is tried again with each
look, one that Redis parts from when Redis is restarted.
"""

from __future__ import annotations

import pathlib

import structlog

from orchestrator.common import errors
from orchestrator.ledger import api, journal_mirror, store

log = structlog.get_logger()

BATCH = 1_000  # entries read at once: bounds memory, not work


class FarmMirror:
    """``<archive>/farm/journal.jsonl``; no season may have that id."""

    def __init__(self, ledger: store.RedisLedger, root: pathlib.Path) -> None:
        self._ledger = ledger
        self._path = root / api.FARM / "journal.jsonl"
        self._mirror: journal_mirror.Mirror | None = None
        self._broken = ""  # why the mirror is left as it is
        self._refused = ""  # what the disk said last
        self._run_id = ""  # the server that answered last
        self._seen, self._end = 0, ""  # the last entry that Redis and the mirror both have

    def close(self) -> None:
        """Close the file; the next look opens it again."""
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def reasons(self) -> dict[str, str]:
        """Return why the journal is out of service, if it is; see ``store.RedisLedger.alarms``."""
        why = self._broken or self._refused
        return {api.FARM: why} if why else {}

    def catch_up(self, run_id: str) -> int:
        """Mirror what is new; return the last sequence number of the journal.

        ``run_id`` names the server: another one may have again what this one has lost.
        """
        if run_id != self._run_id:
            self._run_id, self._broken = run_id, ""
        last = 0
        try:
            last = self._ledger.last(api.FARM)
            if (last or self._path.exists()) and not self._broken:
                self._extend(last)
                self._refused = ""
        except (errors.DiskError, OSError) as error:
            self.close()
            if self._refused != str(error):
                log.error("farm_journal.stands", error=str(error))  # noqa: TRY400 - no bug
            self._refused = str(error)
        except Exception as error:
            if errors.is_outage(error):
                raise
            self.close()
            if not self._broken:
                unforeseen = None if isinstance(error, errors.FarmError) else error
                log.error("farm_journal.damaged", error=str(error), exc_info=unforeseen)  # noqa: TRY400 - no bug where it is foreseen
            self._broken = str(error) or repr(error)
        return last

    def _extend(self, last: int) -> None:
        if self._mirror is None:
            self._mirror, self._seen = journal_mirror.Mirror(self._path), 0
        if self._mirror.last > last:
            raise errors.LedgerDamagedError(
                f"Redis holds {last} entries of the farm's journal, {self._path}"
                f" {self._mirror.last}: Redis has lost facts; stop `farm serve`, run `farm restore`"
            )
        while entries := self._ledger.read(api.FARM, max(0, self._seen - 1), BATCH):
            if self._seen and entries[0].line() != self._end:
                raise errors.LedgerDamagedError(
                    f"entry {self._seen} of the farm's journal differs between Redis and"
                    f" {self._path}: Redis has lost facts; stop `farm serve`, run `farm restore`"
                )
            new = entries[1:] if self._seen else entries
            if not new:
                return
            mirrored = [entry for entry in new if entry.seq <= self._mirror.last]
            self._mirror.verify_against(mirrored)
            self._mirror.extend(new[len(mirrored) :])
            self._seen, self._end = new[-1].seq, new[-1].line()
