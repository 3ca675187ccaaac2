"""The reconciling loop: bring the journal up to what the rules say, keep the halls at work.

One pass: catch up with every season's journal (mirror first, then fold), append what
``decide`` finds, offer each hall its ready game, ring, look at the leases, archive.
Every pass derives everything from the state; the journal's growth is only a wake-up.
Killed at any point and started again, it goes on where the journal ends. A second
``serve`` on the same ledger is harmless (all its writes are compare-and-append); a
second one on the same archive is refused. What is done for one season, and its invariants,
stand in ``season_runner``.
"""

from __future__ import annotations

import dataclasses
import pathlib
import socket
import threading
import time
from collections.abc import Callable, Iterable

import structlog

from orchestrator import (
    archive,
    errors,
    farm_journal,
    leases,
    ringing,
    season_runner,
    version,
)
from orchestrator.ledger import api, services
from orchestrator.season import orders

log = structlog.get_logger()

WAIT_MS = 1_000  # ms: a pass at least this often, for leases, deadlines and lost bells
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)  # s: waits while Redis is away


@dataclasses.dataclass
class HallMemory:
    """What ``serve`` remembers of a hall between two passes."""

    lookout: leases.Lookout  # who decides that a lease is over
    bell: ringing.Bell = dataclasses.field(default_factory=ringing.Bell)  # when it is rung
    offer: tuple[str, str] | None = None  # season and game
    busy: bool = False  # whether the slot was taken at the last look


class Server:
    """The loop over all seasons and halls."""

    def __init__(
        self,
        ledger: api.Ledger,
        root: pathlib.Path,
        ring: Callable[[str], None],
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; ``alive`` is called once a pass, so that a loop that hangs is noticed."""
        self._ledger = ledger
        self._root = root
        self._ring = ring
        self._alive = alive
        self._runners: dict[str, season_runner.SeasonRunner] = {}
        self._damaged: set[str] = set()
        self._standing: dict[str, str] = {}  # season to what its disk said last
        self._memories: dict[str, HallMemory] = {}
        self._farm = farm_journal.FarmMirror(ledger, root)
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
                for known in self._memories.values():
                    known.lookout.reset()
                    known.bell.news()  # a ring may have been lost with Redis
                stop.wait(BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)])
                failures += 1

    def once(self) -> None:
        """Make one pass over everything."""
        self._farm_seen = self._farm.catch_up()
        self._open_seasons()
        now_ms = self._ledger.now_ms()
        for runner in self._living():
            self._guarded(runner, lambda one: one.advance(now_ms))
        for hall in self._halls():
            self._tend(hall, now_ms)
        for runner in self._living():
            self._guarded(runner, self._archive)
        for season in self._standing.keys() & self._runners.keys():
            del self._standing[season]
            log.info("season.goes_on", season=season)

    def _report(self) -> None:
        """Publish that a pass was completed, and what is wrong, for whoever watches."""
        now = time.monotonic()
        if now - self._reported < services.BEAT_SECONDS:
            return
        report = services.Serve(
            at_ms=self._ledger.now_ms(),
            version=version.build(),
            host=socket.gethostname(),
            unsafe=tuple(self._ledger.check_durability()),
            damaged=tuple(sorted(self._damaged)),
            stopped=tuple(sorted(self._standing)),
        )
        self._ledger.set_service(services.SERVE, report.encode())
        self._reported = now

    def _archive(self, runner: season_runner.SeasonRunner) -> None:
        if runner.keep_archive() and runner.state.ready_game() is None:
            self._ring(runner.state.hall)  # its spools may go now, and no game will ring

    def _open_seasons(self) -> None:
        for season in self._ledger.seasons():
            if season not in self._runners and season not in self._damaged:
                try:
                    self._runners[season] = season_runner.SeasonRunner(
                        self._ledger, self._root, season
                    )
                except errors.LedgerDamagedError as error:
                    self._give_up(season, error)
                except (errors.DiskError, OSError) as error:
                    self._stand(season, error)

    def _guarded(
        self, runner: season_runner.SeasonRunner, step: Callable[[season_runner.SeasonRunner], None]
    ) -> None:
        """Take a season whose journal or archive is damaged out of service, no other.

        One whose disk refuses a file stands until it takes it: each pass begins it anew.
        """
        try:
            step(runner)
        except (errors.DiskError, OSError) as error:
            self._stand(runner.season, error)
        except (errors.LedgerDamagedError, errors.HostError) as error:
            self._give_up(runner.season, error)

    def _give_up(self, season: str, error: errors.FarmError) -> None:
        self._damaged.add(season)
        for hall in self._ledger.halls():
            self._ledger.withdraw(hall, season)
        self._drop(season)
        log.error("season.damaged", season=season, error=str(error))

    def _stand(self, season: str, error: Exception) -> None:
        self._drop(season)
        if self._standing.get(season) != str(error):  # once, not with every pass
            log.error("season.stands", season=season, error=str(error))
        self._standing[season] = str(error)

    def _drop(self, season: str) -> None:
        runner = self._runners.pop(season, None)
        if runner is not None:
            runner.close()

    def _living(self) -> list[season_runner.SeasonRunner]:
        return list(self._runners.values())

    def _halls(self) -> Iterable[str]:
        planned = (runner.state.hall for runner in self._living())
        return dict.fromkeys([*self._ledger.halls(), *planned])

    def _tend(self, hall: str, now_ms: int) -> None:
        known = self._memories.setdefault(hall, HallMemory(leases.Lookout(hall)))
        slot = self._ledger.slot(hall)
        now = time.monotonic()
        if known.lookout.look(self._ledger, slot, now):
            return  # the journal has grown: the next pass decides
        if known.busy and slot is None:
            known.bell.news()  # the hall has just become free
        known.busy = slot is not None
        ready = self._offer(hall, known)
        late = slot is not None and slot.deadline_ms - now_ms < slot.ttl_ms / 2
        wanted = (ready and slot is None) or late
        if wanted and known.bell.rings_at(now):
            self._ring(hall)

    def _offer(self, hall: str, known: HallMemory) -> bool:
        """Offer the hall the first ready game in the order of launches; say if there is one."""
        offered: season_runner.SeasonRunner | None = None
        for runner in self._living():
            if runner.state.hall != hall:
                continue
            game = runner.state.ready_game()
            if game is None or offered is not None:
                self._ledger.withdraw(hall, runner.season)
            else:
                offered = runner
                self._offer_game(hall, known, runner, game)
        return offered is not None

    def _offer_game(
        self, hall: str, known: HallMemory, runner: season_runner.SeasonRunner, game: str
    ) -> None:
        wanted = (runner.season, game)
        if known.offer != wanted or self._ledger.offered(hall).get(runner.season) != game:
            order = orders.game_order(runner.state, game).encode()
            reply = self._ledger.offer(hall, runner.season, game, order, runner.state.seq)
            if isinstance(reply, api.Offered):
                known.offer = wanted
                known.bell.news()
                log.info("game.offered", season=runner.season, game=game, hall=hall)

    def _positions(self) -> dict[str, int]:
        positions = {runner.season: runner.state.seq for runner in self._living()}
        positions[api.FARM] = self._farm_seen
        return positions

    def _wait_ms(self) -> int:
        deadlines = (runner.state.next_deadline_ms() for runner in self._living())
        known = [deadline for deadline in deadlines if deadline is not None]
        if not known:
            return WAIT_MS
        return max(1, min(WAIT_MS, min(known) - self._ledger.now_ms()))
