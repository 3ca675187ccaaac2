"""The collector: one scrape reads what is new in the journals and writes a sheet.

Invariants: a scrape never raises for Redis (``farm_redis_up 0`` and the error counter
say it), it writes nothing anywhere, and one journal, hall or host that cannot be read hides
no other.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Final

import structlog
from prometheus_client import core, registry

from orchestrator import contract
from orchestrator.common import errors, version
from orchestrator.ledger import (
    api,
    kibitz_store,
    lane_store,
    services,
    store,
    vitals,
    worker_tokens,
)
from orchestrator.ledger import lanes as ledger_lanes
from orchestrator.metrics import families, halls, health, seasons
from orchestrator.season.fold import entries

log = structlog.get_logger()

SHOWN: Final = 5  # seasons, the latest, beside those that go on: bounds the labels


class FarmCollector(registry.Collector):
    """Computes every metric of the farm when it is asked."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        archive: pathlib.Path,
        feeds: pathlib.Path,
        notices: pathlib.Path | None = None,
    ) -> None:
        """Read from ``ledger`` and look at two directories and the notices' outbox; not yet."""
        self._ledger = ledger
        self._desks = kibitz_store.RedisKibitzing(ledger.server)
        self._lanes = lane_store.RedisLanes(ledger.server)
        self._tokens = worker_tokens.RedisTokens(ledger.server)
        self._certificate = health.Certificate(ledger.server)
        self._archive, self._feeds, self._notices = archive, feeds, notices
        self._seasons: dict[str, seasons.Watched] = {}
        self._damaged: dict[str, tuple[int, int]] = {}  # season to the epoch and entries of then
        self._halls: dict[str, halls.Hall] = {}
        self._resting: Mapping[str, int] = {}  # seasons that are over and archived
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
            labels = {"version": version.build(), "schema": str(contract.SCHEMA)}
            sheet.set("farm_build_info", 1, **labels)
            sheet.set("farm_redis_up", self._read(sheet))
            health.files(sheet, self._archive, self._feeds)
            if self._notices is not None:
                health.notices(sheet, self._notices)
            sheet.set("farm_scrape_errors_total", self._errors)
            sheet.set("farm_scrape_duration_seconds", time.perf_counter() - began)
            yield from sheet.families()

    def _read(self, sheet: families.Sheet) -> bool:
        try:
            self._write(sheet)
        except errors.LedgerAwayError as error:
            log.warning("redis.away", error=str(error))  # farm_redis_up says it
            return False
        return True

    def _write(self, sheet: families.Sheet) -> None:
        names = self._ledger.halls()
        queue_names = [
            *names,
            *(f"{hall}.{lane.name}" for hall in names for lane in self._of(hall)),
        ]
        now_ms, serve = health.redis(sheet, self._ledger)
        self._queues(sheet, queue_names)
        epoch = self._ledger.present_epoch()
        sheet.set("farm_ledger_epoch", epoch)
        launched = self._ledger.seasons()
        self._resting = self._ledger.resting()
        entries_there = sum(map(self._length, (*launched, api.FARM)))
        sheet.set("farm_ledger_entries", entries_there, epoch=str(epoch))
        with self._apart("certificate"):
            self._certificate.write(sheet)
        earlier = (name for name in launched[:-SHOWN] if name not in self._resting)
        going = [name for name in earlier if self._goes_on(name)]
        for name in (*going, *launched[-SHOWN:]):
            self._season(sheet, name, now_ms, epoch)
        self._out_of_service(sheet, serve)
        launched_here = [self._seasons[name] for name in launched if name in self._seasons]
        watched = [season for season in launched_here if season.state.seq]
        self._in_halls(sheet, names, watched, now_ms)
        with self._apart("worker tokens"):
            halls.write_tokens(sheet, self._tokens.all(), now_ms)
        with self._apart("hosts"):
            for name, seen in vitals.read(self._ledger).items():
                with self._apart(f"host {name}"):
                    drained = bool(vitals.host_drained(self._ledger, seen))
                    health.host(sheet, name, seen, now_ms, drained=drained)

    def _queues(self, sheet: families.Sheet, queues: list[str]) -> None:
        for queue in queues:
            with self._apart(f"queue of {queue}"):
                health.queue(sheet, self._ledger, queue)
        with self._apart("dropped messages"):
            health.dropped(sheet, self._ledger, queues)

    def _in_halls(
        self,
        sheet: families.Sheet,
        names: tuple[str, ...],
        watched: list[seasons.Watched],
        now_ms: int,
    ) -> None:
        slots: dict[str, api.Slot | None] = {}
        for name in names:
            with self._apart(f"hall {name}"):
                slots[name] = slot = self._ledger.slot(name)
                hall = self._halls.setdefault(name, halls.Hall(name))
                playing = self._seasons.get(slot.season) if slot else None
                hall.write(sheet, self._ledger, playing.state if playing else None, slot, now_ms)
                halls.write_lanes(sheet, self._lanes, name, now_ms)
        with self._apart("seasons that wait"):
            seasons.waiting(sheet, watched, {name for name in names if slots.get(name, True)})
        with self._apart("the season that is shown"):
            seasons.followed(sheet, watched)
        attempts = {name: slot.attempt for name, slot in slots.items() if slot is not None}
        with self._apart("kibitzers"):
            halls.write_kibitzers(sheet, self._desks, attempts)

    def _of(self, hall: str) -> list[ledger_lanes.Lane]:
        """Return the lanes of a hall, none where they cannot be read."""
        with self._apart(f"lanes of {hall}"):
            return self._lanes.lanes_of(hall)
        return []

    @contextlib.contextmanager
    def _apart(self, what: str) -> Iterator[None]:
        """Count what cannot be understood, and let the rest of the scrape go on."""
        try:
            yield
        except Exception as error:
            if errors.is_outage(error):
                raise
            self._errors += 1
            log.error("scrape.unreadable", what=what, error=repr(error))  # noqa: TRY400 - no bug

    def _length(self, journal: str) -> int:
        """Return how many entries a journal has, 0 for one that is none."""
        with self._apart(f"journal {journal}"):
            return self._resting.get(journal) or self._ledger.last(journal)
        return 0

    def _out_of_service(self, sheet: families.Sheet, serve: services.Serve | None) -> None:
        damaged = {*self._damaged, *(serve.damaged if serve else ())}
        stopped = set(serve.stopped if serve else ())
        lost = self._ledger.alarms().keys() - damaged - stopped  # what Redis had, and has no more
        by_reason = {"damaged": damaged, "disk": stopped, "lost": lost}
        for reason, names in by_reason.items():
            for name in sorted(names):
                sheet.set("farm_season_out_of_service", 1, season=name, reason=reason)

    def _goes_on(self, name: str) -> bool:
        """Say whether a season is not over; one that never was of interest is not folded for it."""
        if name in self._seasons:
            return not self._seasons[name].state.over
        try:
            last = self._ledger.read(name, self._ledger.last(name) - 1, 1)
        except (errors.LedgerDamagedError, errors.LedgerForeignError):
            return True  # it is told of as damaged
        return not last or last[0].kind not in entries.ENDS

    def _season(self, sheet: families.Sheet, name: str, now_ms: int, epoch: int) -> None:
        position = (epoch, self._length(name))
        if self._damaged.get(name) == position:
            return  # until a restore, or until it is longer: then it is read again
        own = families.Sheet()  # of a season that cannot be told whole nothing is
        try:
            watched = self._seasons.get(name)
            if watched is not None and self._resting.get(name) == watched.state.seq:
                seasons.write(own, watched, now_ms, watched.state.seq)
            elif (watched := self._caught_up(name)).state.seq:
                seasons.write(own, watched, now_ms, self._ledger.mirrored(name))
        except Exception as error:
            if errors.is_outage(error):
                raise
            self._damaged[name] = position
            self._seasons.pop(name, None)
            self._errors += 1
            log.error("season.damaged", season=name, error=repr(error))  # noqa: TRY400 - no bug
            return
        self._damaged.pop(name, None)
        sheet.take(own)

    def _caught_up(self, name: str) -> seasons.Watched:
        watched = self._seasons.get(name)
        if watched is None or self._ledger.last(name) < watched.state.seq:
            watched = self._seasons[name] = seasons.Watched(name)  # after a restore, from zero
        watched.follow(functools.partial(self._ledger.read, name))
        return watched
