"""A hall's worker, in Celery's child: settle what earlier attempts left, then play what is ready.

All of it happens under the hall's lock, so that nothing of an earlier attempt is alive:
spools first, then this host's dead attempt, then at most one new game.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable

import structlog

from orchestrator.common import errors
from orchestrator.ledger import api, keys, lane_store, seat_store, store
from worker_cpu import settings
from worker_cpu.engines import handles
from worker_cpu.hall import checksums, directory, gpu_hosts, gpu_seats
from worker_cpu.host import cgroups, stall
from worker_cpu.link import attempt, blame, hold, host_probe, redis_retry, spools
from worker_cpu.worker import fairness, lane_worker, recovery

log = structlog.get_logger()

LOCK_SECONDS = 3.0  # s: a dead man that saw its link die needs milliseconds to clean up
LOOKS = 3  # times one ring leads to a look, each cut off by an outage of Redis


class HallWorker:
    """Plays the games of one hall, one at a time."""

    def __init__(self, configured: settings.HallSettings) -> None:
        self._settings = configured
        self._directory = directory.HallDirectory(configured.directory)
        self._ledger = store.connect(configured.redis_url)
        self._lanes = lane_store.RedisLanes(self._ledger.server)
        self._cores = handles.Cores(configured.referee_cpus, configured.engine_cpus)
        groups = cgroups.parent()
        if groups is None:
            log.warning("engines.uncounted", reason="no control group can be made for engines here")
        confinement = dataclasses.replace(configured.confinement(), groups=str(groups or ""))
        self._fork_server = handles.ForkServer(confinement)
        self._checksums = checksums.FileChecksums()
        self._gpu_seats = gpu_seats.GpuSeats(
            seat_store.RedisSeats(self._ledger.server),
            gpu_hosts.load(configured.boxes, configured.dead_man_seconds),
        )
        self._gate = fairness.FairnessGate(configured, self._gpu_seats)
        self._stalls = stall.StallDetector(configured.engine_cpus, configured.referee_cpus)
        self._stalls.watch(0, (), {})  # its pulse beats before the first game begins
        self._waiting: tuple[spools.Waiting, ...] = ()  # since the last settling
        self._last_fault = host_probe.LastFault(configured.directory / "last-fault.json")

    def open(self) -> None:
        """Enter the hall and settle what is left of its past; never raises for Redis.

        Raise ``RefusedError`` for a hall that is another host's.
        """
        self._past_outages(self._open)

    def look(self) -> None:
        """Settle, then play the hall's ready game if there is one; never raises for Redis."""
        self._past_outages(self._look)

    def _past_outages(self, work: Callable[[], None]) -> None:
        """Work, and again as soon as Redis is back: what an outage cut off stands until then.

        No ring tells of it before half a lease has passed.
        """
        structlog.contextvars.clear_contextvars()
        for _ in range(LOOKS):
            try:
                work()
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
            else:
                return
            finally:
                structlog.contextvars.clear_contextvars()
            if not self._redis_is_back():
                return

    def _redis_is_back(self) -> bool:
        """Wait until Redis takes this hall's word again; False when that takes too long."""
        time.sleep(redis_retry.RETRY_SECONDS)  # a look that failed is not repeated in a hurry
        try:
            redis_retry.retry(self._enter)
        except errors.LedgerAwayError:
            return False
        return True

    def _open(self) -> None:
        self._enter()
        with self._directory.locked(LOCK_SECONDS) as lock:
            if lock is not None:
                self._settle()

    def _look(self) -> None:
        with self._directory.locked(LOCK_SECONDS) as lock:
            if lock is None:
                log.warning("hall.locked", hall=self._settings.hall)
                return
            self._enter()
            self._settle()
            self._play(lock)

    def _settle(self) -> None:
        if (groups := cgroups.parent()) is not None:
            cgroups.forget(groups)
        self._waiting = recovery.settle(self._settings, self._directory, self._ledger)
        lane_worker.settle(self._lanes, self._settings.hall, self._settings.host)
        directory.prune_attempts(self._directory, self._settings.keep_attempts_days, time.time())

    def _enter(self) -> None:
        own = self._settings
        reply = self._ledger.open_hall(own.hall, own.host, own.worker)
        if isinstance(reply, api.Foreign):
            raise errors.RefusedError(
                f"hall {own.hall} belongs to host {reply.host}, which opened it first: give"
                f" {own.host} a hall of its own (FARM_HALL; hall_name of ansible), or, where it"
                f" takes that host's place, its name (FARM_HOST={reply.host})"
            )

    def _play(self, lock: int) -> None:
        for season, game in self._ledger.offered(self._settings.hall).items():
            claim = self._claim(season, game)
            structlog.contextvars.bind_contextvars(
                season=season, game=game, attempt=claim.attempt, hall=claim.hall
            )
            if self._shut(claim):
                return
            referee = self._fork_server.referee(self._cores)
            try:
                probe = host_probe.HostProbe(
                    self._fork_server, self._cores, self._directory.root, lock
                )
                attribution = blame.FaultAttribution(self._stalls, self._last_fault, probe)
                hall = attempt.Hall(
                    self._settings,
                    self._directory,
                    self._ledger,
                    self._checksums,
                    attribution,
                    self._gpu_seats,
                    self._waiting,
                )
                attempt.play(hall, claim, lock, referee)
            finally:
                referee.end()
            return

    def _shut(self, claim: api.Claim) -> bool:
        """Say whether the hall is held, now or since its hosts were measured for the event."""
        if self._ledger.holds(keys.hall_scope(claim.hall)):
            return True
        why = self._gate.why_shut(claim.season, claim.game)
        if why:
            hold.hold_hall(self._ledger, claim, why)
        return bool(why)

    def _claim(self, season: str, game: str) -> api.Claim:
        return api.Claim(
            hall=self._settings.hall,
            season=season,
            game=game,
            attempt=f"{self._settings.hall}-{secrets.token_hex(8)}",
            worker=self._settings.worker,
            host=self._settings.host,
            lane=self._settings.lane,
            ttl_ms=round(self._settings.lease_seconds * 1000),
        )
