"""The reconciling loop: decide what the rules say, and keep the halls busy.

One pass: catch up with every season's journal (mirror first, then fold), append what
``decide`` finds, offer each hall its ready game, ring, look at the leases, archive.
Every pass derives everything from the state; the journal's growth is only a wake-up.
Killed at any point and started again, it goes on where the journal ends. A second
``serve`` on the same ledger is harmless (all its writes are compare-and-append); a
second one on the same archive is refused. What is done for one season, and its invariants,
are in ``season``. One that is over, archived and mirrored rests: no pass looks at it, and every
other process knows it by ``RedisLedger.resting``, until its journal grows.

A Redis that was restarted may come back without its last writes, or be another one. So each
pass compares the end of every journal with the mirror; after a restart (another run id) no
hall and no operator can add to a journal before it was compared (``RedisLedger.set_checked``).
A journal that has lost entries is not filled from the mirror by ``serve`` itself: what was
lost beside it (tokens, leases, plies) cannot be known here, and a stale copy of Redis may have
been started while the right one still plays. The season is suspended, with an alarm, until
`farm restore` has raised the epoch, which ends the rights of every attempt of before.

Whatever fails for one season, or for one hall, concerns no other: the season is suspended
with its reason, and looked at again when Redis is restarted or ``serve`` is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from orchestrator import contract
from orchestrator.common import errors, version
from orchestrator.ledger import api, services, store, vitals
from orchestrator.serve import archive, backoff, farm_mirror, lease_monitor
from orchestrator.serve import season as serve_season

log = structlog.get_logger()

WAIT_MS = 1_000  # ms: a pass at least this often, for leases, deadlines and lost bells
PAIRING_MS = 20  # ms: until the next look, while a round is paired
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)  # s: waits while Redis is away


@dataclasses.dataclass
class HallMemory:
    """What ``serve`` remembers of a hall between two passes."""

    monitor: lease_monitor.LeaseMonitor  # who decides that a lease is over
    bell: backoff.Bell = dataclasses.field(default_factory=backoff.Bell)  # when it is rung
    offer: tuple[str, str] | None = None  # season and game
    busy: bool = False  # whether the slot was taken at the last look
    rings: bool = False  # whether it is rung until it takes what it was offered


class Server:
    """The loop over all seasons and halls."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        root: pathlib.Path,
        ring: Callable[[str], None],
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; ``alive`` is called once a pass, so that a loop that hangs is noticed."""
        self._ledger = ledger
        self._root = root
        self._ring = ring
        self._alive = alive
        self._runners: dict[str, serve_season.SeasonRunner] = {}
        self._resting: dict[str, int] = {}  # seasons that are over, with their last entry
        self._run_id = ""  # the server that answered the last pass
        self._compared: set[str] = set()  # halls whose journals were compared in this pass
        self._damaged: dict[str, str] = {}  # suspended seasons, with the reason
        self._standing: dict[str, str] = {}  # season to what its disk said last
        self._skipped: dict[str, str] = {}  # hall to why it could not be tended
        self._memories: dict[str, HallMemory] = {}
        self._farm = farm_mirror.FarmMirror(ledger, root)
        self._farm_seen = 0  # the farm journal tells of launches, a wake-up only
        self._reported = float("-inf")  # s: when a report was published last

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; outlive every outage of Redis."""
        with archive.sole_writer(self._root):
            try:
                self._loop(stop)
            finally:
                self.close()

    def close(self) -> None:
        """Close the mirrors."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()
        self._farm.close()

    def _loop(self, stop: threading.Event) -> None:
        failures = 0
        while not stop.is_set():
            self._alive()
            try:
                self.once()
                self._report()
                self._ledger.wait(self._positions(), self._wait_ms())
                failures = 0
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error), failures=failures)
                for memory in self._memories.values():
                    memory.monitor.reset()
                    memory.bell.news()  # a ring may have been lost with Redis
                stop.wait(BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)])
                failures += 1

    def once(self) -> None:
        """Make one pass over everything."""
        run_id = self._ledger.run_id()
        if run_id != self._run_id:
            self._damaged.clear()  # it may be the right server again
            self._resting.clear()  # and the ends of their journals are compared again
            self._miss_seasons()
            self._run_id = run_id
        self._farm_seen = self._farm.catch_up(run_id)
        self._open_seasons()
        now_ms = self._ledger.now_ms()
        for runner in self._living():
            self._guarded(runner.season, functools.partial(self._advance, runner, now_ms))
        while self._compared:  # what they spooled may have waited for it
            self._ring(self._compared.pop())
        for memory in self._memories.values():
            memory.rings = False
        for hall in self._halls():
            self._tended(hall, now_ms)
        for runner in self._living():
            self._guarded(runner.season, functools.partial(self._archive, runner))
        for season in self._standing.keys() & self._runners.keys():
            del self._standing[season]
            log.info("season.resumed", season=season)
        self._rest()
        self._publish()

    def _advance(self, runner: serve_season.SeasonRunner, now_ms: int) -> None:
        if runner.advance(now_ms, self._run_id):
            self._compared.add(runner.hall)

    def _report(self) -> None:
        """Publish that a pass was completed, and what is wrong, for whoever watches."""
        now = time.monotonic()
        if now - self._reported < services.BEAT_SECONDS:
            return
        now_ms, skew = vitals.now_and_skew(self._ledger)
        report = services.Serve(
            at_ms=now_ms,
            clock_skew_seconds=skew,
            version=version.build(),
            host=socket.gethostname(),
            unsafe=tuple(self._ledger.check_durability()),
            damaged=tuple(sorted(self._damaged.keys() | self._without_hall().keys())),
            stopped=tuple(sorted(self._standing)),
        )
        self._ledger.set_service(services.SERVE, report.encode())
        self._reported = now

    def _archive(self, runner: serve_season.SeasonRunner) -> None:
        if runner.keep_archive() and runner.ready is None:
            self._ring(runner.hall)  # its spools may go now, and no game will ring
        if runner.missing and runner.bell.rings_at(time.monotonic()):
            self._ring(runner.hall)  # its spool has the record that Redis has lost

    def _miss_seasons(self) -> None:
        """Suspend seasons that the archive has and Redis has not: it was emptied, or is new."""
        for season in set(archive.journals(self._root)).difference(self._ledger.seasons()):
            if season != api.FARM:
                self._drop(season)
                self._guarded(season, functools.partial(self._miss, season))

    def _miss(self, season: str) -> None:
        raise serve_season.lost_entries(season, 0, archive.length(self._root, season))

    def _publish(self) -> None:
        """Let everybody see what is wrong, also in a Redis that has been emptied."""
        reasons = {runner.season: runner.alarm() for runner in self._living() if runner.missing}
        reasons |= self._without_hall() | self._damaged | self._standing | self._farm.reasons()
        if self._ledger.alarms() != reasons:
            self._ledger.set_alarms(reasons)

    def _without_hall(self) -> dict[str, str]:
        """Return the seasons that stand still because their hall cannot be tended, with why."""
        return {
            runner.season: f"hall {runner.hall} cannot be tended: {self._skipped[runner.hall]}"
            for runner in self._living()
            if runner.hall in self._skipped
        }

    def _open_seasons(self) -> None:
        launched = self._ledger.seasons()
        self._look_at_resting(launched)
        for season in launched:
            open_already = season in self._runners or season in self._resting
            if not open_already and season not in self._damaged:
                self._guarded(season, functools.partial(self._open, season))

    def _open(self, season: str) -> None:
        """Take a season into service; of one that is over nothing is read but its end."""
        last = serve_season.at_rest(self._ledger, self._root, season, self._run_id)
        if last:
            self._resting[season] = last
            self._withdraw(season)
            self._compared.update(self._ledger.halls())  # its own is told by its launch alone
        else:
            self._runners[season] = serve_season.SeasonRunner(self._ledger, self._root, season)

    def _rest(self) -> None:
        """Let go of seasons that are over and archived: nothing happens in them any more."""
        for runner in self._living():
            if runner.over:
                self._guarded(runner.season, functools.partial(self._close, runner))

    def _close(self, runner: serve_season.SeasonRunner) -> None:
        self._withdraw(runner.season)
        with contextlib.suppress(OSError):  # a full disk: to open it again would cost more
            self._resting[runner.season] = runner.rest()
            del self._runners[runner.season]
            log.info("season.rests", season=runner.season)

    def _withdraw(self, season: str) -> None:
        for hall in self._ledger.halls():
            try:
                self._ledger.withdraw(hall, season)
            except errors.LedgerForeignError as error:  # this hall's keys; it is offered nothing
                self._skip(hall, error)

    def _look_at_resting(self, launched: Sequence[str]) -> None:
        """Take those that have grown, or are lost, into service again.

        A hall that was away may tell the result of a season that was abandoned meanwhile.
        """
        for season in self._resting.keys() - set(launched):
            last = self._resting.pop(season)
            self._give_up(season, serve_season.lost_entries(season, 0, last))
        still = self._ledger.resting() if self._resting else {}
        for season in self._resting.keys() - still.keys():
            del self._resting[season]

    def _guarded(self, season: str, step: Callable[[], None]) -> None:
        """Take a season out of service whatever goes wrong with it, and no other.

        One whose disk refuses a file waits until the disk takes it: each pass opens it again.
        """
        try:
            step()
        except (errors.DiskError, OSError) as error:
            self._stand(season, error)
        except errors.FarmError as error:
            if errors.is_outage(error):
                raise
            self._give_up(season, error)
        except Exception as error:
            log.exception("season.failed", season=season)
            self._give_up(season, serve_season.unforeseen(season, error))

    def _give_up(self, season: str, error: errors.FarmError) -> None:
        logged_already = self._damaged.get(season) == str(error)
        self._damaged[season] = str(error)
        self._drop(season)
        if not logged_already:
            log.error("season.damaged", season=season, error=str(error))
        self._withdraw(season)

    def _stand(self, season: str, error: Exception) -> None:
        self._drop(season)
        if self._standing.get(season) != str(error):  # once, not with every pass
            log.error("season.suspended", season=season, error=str(error))
        self._standing[season] = str(error)

    def _drop(self, season: str) -> None:
        runner = self._runners.pop(season, None)
        if runner is not None:
            runner.close()

    def _living(self) -> list[serve_season.SeasonRunner]:
        return list(self._runners.values())

    def _halls(self) -> Iterable[str]:
        planned = (runner.hall for runner in self._living())
        return filter(contract.is_name, dict.fromkeys([*self._ledger.halls(), *planned]))

    def _tended(self, hall: str, now_ms: int) -> None:
        """Tend one hall; what is wrong with it concerns no other."""
        try:
            self._tend(hall, now_ms)
        except Exception as error:
            if errors.is_outage(error):
                raise
            self._skip(hall, error)
        else:
            self._skipped.pop(hall, None)

    def _skip(self, hall: str, error: Exception) -> None:
        if self._skipped.get(hall) != str(error):  # once, not with every pass
            log.error("hall.failed", hall=hall, error=str(error), exc_info=error)
        self._skipped[hall] = str(error)

    def _tend(self, hall: str, now_ms: int) -> None:
        memory = self._memories.setdefault(hall, HallMemory(lease_monitor.LeaseMonitor(hall)))
        slot = self._ledger.slot(hall)
        now = time.monotonic()
        suspended = slot is not None and slot.season not in self._runners
        if memory.monitor.look(self._ledger, slot, now, suspended=suspended):
            return  # the journal has grown: the next pass decides
        for runner in self._living():
            self._guarded(runner.season, functools.partial(runner.miss_lease, hall, slot))
        if memory.busy and slot is None:
            memory.bell.news()  # the hall has just become free
        memory.busy = slot is not None
        ready = self._offer(hall, memory)
        late = slot is not None and slot.deadline_ms - now_ms < slot.ttl_ms / 2
        memory.rings = ready and slot is None
        if (memory.rings or late) and memory.bell.rings_at(now):
            self._ring(hall)

    def _offer(self, hall: str, memory: HallMemory) -> bool:
        """Offer the hall the first ready game in the order of launches; say if there is one."""
        offered: serve_season.SeasonRunner | None = None
        for runner in self._living():
            if runner.hall != hall:
                continue
            if runner.ready is None or offered is not None:
                self._ledger.withdraw(hall, runner.season)
            else:
                step = functools.partial(self._offer_game, hall, memory, runner, runner.ready)
                self._guarded(runner.season, step)
                offered = self._runners.get(runner.season)  # None: it has just been suspended
        return offered is not None

    def _offer_game(
        self, hall: str, memory: HallMemory, runner: serve_season.SeasonRunner, game: str
    ) -> None:
        wanted = (runner.season, game)
        if memory.offer != wanted or self._ledger.offered(hall).get(runner.season) != game:
            order = runner.order(game)
            reply = self._ledger.offer(hall, runner.season, game, order, runner.state.seq)
            if isinstance(reply, api.Offered):
                memory.offer = wanted
                memory.bell.news()
                log.info("game.offered", season=runner.season, game=game, hall=hall)

    def _positions(self) -> dict[str, int]:
        positions = {runner.season: runner.state.seq for runner in self._living()}
        if not self._farm.reasons():  # what cannot be read wakes nobody; each pass looks at it
            positions[api.FARM] = self._farm_seen
        return positions

    def _wait_ms(self) -> int:
        if any(runner.busy for runner in self._living()):
            return 1
        now = time.monotonic()
        waits = [PAIRING_MS if any(runner.pairing for runner in self._living()) else WAIT_MS]
        waits += [
            round(memory.bell.wait(now) * 1000)
            for memory in self._memories.values()
            if memory.rings
        ]
        deadlines = (runner.deadline_ms for runner in self._living())
        if pending := [deadline for deadline in deadlines if deadline is not None]:
            waits.append(min(pending) - self._ledger.now_ms())
        return max(1, min(waits))
