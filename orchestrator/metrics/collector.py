"""The collector: one scrape reads what is new in the journals and writes a sheet.

Invariants: a scrape never raises for Redis (``farm_redis_up 0`` and the error counter
say it), it writes nothing anywhere, and one journal that cannot be read hides no other.
"""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Final

import structlog
from prometheus_client import core, registry

from orchestrator import contract, errors, version
from orchestrator.ledger import kibitz_store, store, vitals
from orchestrator.metrics import families, halls, health, hosts, kibitzers, seasons
from orchestrator.season import entries

log = structlog.get_logger()

SHOWN: Final = 5  # seasons, the latest, beside those that go on: bounds the labels
BATCH: Final = 1_000  # entries read at once


class FarmCollector(registry.Collector):
    """Computes every metric of the farm when it is asked."""

    def __init__(
        self, ledger: store.RedisLedger, archive: pathlib.Path, feeds: pathlib.Path
    ) -> None:
        """Read from ``ledger`` and look at two directories; nothing is read yet."""
        self._ledger = ledger
        self._desks = kibitz_store.RedisKibitzing(ledger.server)
        self._archive, self._feeds = archive, feeds
        self._seasons: dict[str, seasons.Watched] = {}
        self._damaged: set[str] = set()
        self._halls: dict[str, halls.Hall] = {}
        self._errors = 0
        self._lock = threading.Lock()  # two scrapes at once would count plies twice

    def describe(self) -> Iterator[core.Metric]:
        """Say nothing ahead: registering must not ask Redis."""
        return iter(())

    def collect(self) -> Iterator[core.Metric]:
        """Yield all families of this moment."""
        with self._lock:
            began = time.perf_counter()
            sheet = families.Sheet()
            told = {"version": version.VERSION, "schema": str(contract.SCHEMA)}
            sheet.set("farm_build_info", 1, **told)
            sheet.set("farm_redis_up", self._read(sheet))
            health.files(sheet, self._archive, self._feeds)
            sheet.set("farm_scrape_errors_total", self._errors)
            sheet.set("farm_scrape_duration_seconds", time.perf_counter() - began)
            yield from sheet.families()

    def _read(self, sheet: families.Sheet) -> bool:
        try:
            self._write(sheet)
        except errors.LedgerAwayError as error:
            self._errors += 1
            log.warning("redis.away", error=str(error))
            return False
        return True

    def _write(self, sheet: families.Sheet) -> None:
        names = self._ledger.halls()
        now_ms = health.redis(sheet, self._ledger, names)
        sheet.set("farm_ledger_epoch", self._ledger.present_epoch())
        launched = self._ledger.seasons()
        going = [name for name in launched[:-SHOWN] if self._goes_on(name)]
        for name in (*going, *launched[-SHOWN:]):
            self._season(sheet, name, now_ms)
        slots = {name: self._ledger.slot(name) for name in names}
        for name, slot in slots.items():
            hall = self._halls.setdefault(name, halls.Hall(name))
            watched = self._seasons.get(slot.season) if slot else None
            state = watched.state if watched else None
            hall.write(sheet, self._ledger, state, slot, now_ms)
        hosts.write(sheet, vitals.read(self._ledger), now_ms)
        attempts = {name: slot.attempt for name, slot in slots.items() if slot is not None}
        kibitzers.write(sheet, self._desks, attempts)

    def _goes_on(self, name: str) -> bool:
        """Say whether a season is not over; one that never was of interest is not folded for it."""
        if name in self._seasons:
            return not self._seasons[name].state.over
        try:
            last = self._ledger.read(name, self._ledger.last(name) - 1, 1)
        except errors.LedgerDamagedError:
            return True  # it is told of as damaged
        return not last or last[0].kind not in entries.ENDS

    def _season(self, sheet: families.Sheet, name: str, now_ms: int) -> None:
        if name in self._damaged:
            return
        try:
            watched = self._caught_up(name)
        except errors.LedgerDamagedError as error:
            self._damaged.add(name)
            self._seasons.pop(name, None)
            self._errors += 1
            log.error("season.damaged", season=name, error=str(error))  # noqa: TRY400 - no bug
            return
        if watched.state.seq:
            seasons.write(sheet, watched, now_ms, self._ledger.mirrored(name))

    def _caught_up(self, name: str) -> seasons.Watched:
        watched = self._seasons.get(name)
        if watched is None or self._ledger.last(name) < watched.state.seq:
            watched = self._seasons[name] = seasons.Watched(name)  # after a restore, from zero
        while found := self._ledger.read(name, watched.state.seq, BATCH):
            for entry in found:
                watched.apply(entry)
        return watched
