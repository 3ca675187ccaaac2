"""The reconciling loop: bring the journal up to what the rules say, keep the halls at work.

One pass: catch up with every season's journal (mirror first, then fold), append what
``decide`` finds, offer each hall its ready game, ring, look at the leases, archive.
Every pass derives everything from the state; the journal's growth is only a wake-up.
Killed at any point and started again, it goes on where the journal ends. A second
``serve`` on the same ledger is harmless (all its writes are compare-and-append); a
second one on the same archive is refused.

Invariants: no entry is acted on before it is in the mirror; a game is archived before
its hall may forget it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable, Iterable

import structlog

from orchestrator import archive, contract, errors, farm_journal, judging, leases
from orchestrator.ledger import api, mirror
from orchestrator.season import amendments, decide, orders, state

log = structlog.get_logger()

SERVE = "serve"  # who journals what the rules decide
WAIT_MS = 1_000  # ms: a pass at least this often, for leases, deadlines and lost bells
RING_SECONDS = 5.0  # s: a ready game that nobody claimed is rung again
BATCH = 1_000  # entries read at once: bounds memory, not work
REARRANGING = frozenset(  # the event's PGN is written anew
    {"game_voided", "events_undone", "engine_replaced", "games_imported"}
)
NEVER = float("-inf")
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)  # s: waits while Redis is away


class SeasonRunner:
    """One season: its state, its mirror, its archive."""

    def __init__(self, ledger: api.Ledger, root: pathlib.Path, season: str) -> None:
        self.season = season
        self.state = state.SeasonState()
        self._ledger = ledger
        self._archive = archive.SeasonArchive(root, season)
        self._mirror = mirror.Mirror(self._archive.journal)
        self._refuse_shorter_journal()
        self._archived = ledger.mirrored(season)
        self._to_archive: list[contract.Entry] = []
        self._rebuilt = False

    def close(self) -> None:
        """Close the mirror's file."""
        self._mirror.close()

    def _refuse_shorter_journal(self) -> None:
        """Raise ``LedgerDamagedError`` when Redis has lost entries that are in the mirror."""
        last = self._ledger.last(self.season)
        if last < self._mirror.last:
            self._mirror.close()
            raise errors.LedgerDamagedError(
                f"Redis holds {last} entries of {self.season}, its mirror {self._mirror.last}:"
                " Redis has lost facts; nothing is written until `farm restore`"
            )

    def advance(self, now_ms: int) -> None:
        """Catch up with the journal and append all that can be decided now."""
        self._catch_up()
        while True:
            drafts, effects = judging.verdict(self._ledger, self._archive, self.state)
            drafts = drafts or decide.decide(self.state, now_ms)
            if not drafts:
                return
            effects = [*effects, *_holds(self.season, drafts)]
            reply = self._ledger.append(self.season, self.state.seq, drafts, SERVE, effects)
            if isinstance(reply, api.Appended):
                for draft in drafts:
                    log.info("fact.decided", season=self.season, kind=draft.kind)
            self._catch_up()

    def _catch_up(self) -> None:
        while entries := self._ledger.read(self.season, self.state.seq, BATCH):
            self._mirror_all(entries)
            for entry in entries:
                self.state.apply(entry)
                if entry.seq > self._archived:
                    self._to_archive.append(entry)

    def _mirror_all(self, entries: list[contract.Entry]) -> None:
        known = [entry for entry in entries if entry.seq <= self._mirror.last]
        self._mirror.verify_against(known)
        self._mirror.extend(entries[len(known) :])

    def keep_archive(self) -> bool:
        """Archive what the journal has told since the last call; say whether a game was."""
        if not self._rebuilt:
            self._rebuild_events()
        for entry in self._to_archive:
            if entry.kind == "game_finished":
                self._keep_game(entry)
            elif entry.kind == "attempt_ended":
                self._keep_given_up(entry)
            elif entry.kind == "games_imported":
                self._keep_imported(entry)
        if any(entry.kind in REARRANGING for entry in self._to_archive):
            self._rebuild_events()
        games = any(entry.kind == "game_finished" for entry in self._to_archive)
        self._to_archive.clear()
        if self.state.seq > self._archived:
            self._archived = self.state.seq
            self._ledger.set_mirrored(self.season, self._archived)
        return games

    def _rebuild_events(self) -> None:
        for event in self.state.events.values():
            played = (game for game in event.order if self.state.game(game).finished)
            self._archive.rebuild_event(event.id, played)
        self._rebuilt = True

    def _keep_game(self, entry: contract.Entry) -> None:
        finished = contract.GameFinished.model_validate(entry.data)
        packed = self._ledger.record(finished.attempt)
        if packed is None and finished.by_verdict:
            packed = judging.packed(self.state, finished)
        if packed is None:
            if self._archive.pgn(finished.game) is None:
                log.error("record.missing", season=self.season, game=finished.game)
            return
        known = self._archive.pgn(finished.game) is not None
        self._archive.keep_game(finished.game, packed)
        if not known:
            event = self.state.game(finished.game).event
            self._archive.extend_event(event, finished.game)
        self._ledger.archived(finished.attempt)

    def _keep_imported(self, entry: contract.Entry) -> None:
        for game in amendments.GamesImported.model_validate(entry.data).games:
            self._archive.keep_pgn(game.game, game.pgn)

    def _keep_given_up(self, entry: contract.Entry) -> None:
        ended = contract.AttemptEnded.model_validate(entry.data)
        plies = self._ledger.plies(ended.attempt)
        self._archive.keep_given_up(ended.game, ended.attempt, plies)
        self._ledger.archived(ended.attempt)


def _holds(season: str, drafts: Iterable[contract.Draft]) -> Iterable[api.Effect]:
    """Yield what must change with the facts at once: a planned pause forbids claims."""
    for draft in drafts:
        if draft.kind == "paused":
            yield api.Hold(season, "pause", draft.data["reason"])


@dataclasses.dataclass
class HallDesk:
    """What ``serve`` remembers of a hall between two passes."""

    lookout: leases.Lookout
    offer: tuple[str, str] | None = None  # season and game
    busy: bool = False  # whether the slot was taken at the last look
    rung: float = NEVER  # monotonic second of the last ring


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
        self._runners: dict[str, SeasonRunner] = {}
        self._damaged: set[str] = set()
        self._desks: dict[str, HallDesk] = {}
        self._farm = farm_journal.FarmMirror(ledger, root)
        self._farm_seen = 0  # the farm journal tells of launches, a wake-up only

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
                self._ledger.wait(self._positions(), self._wait_ms())
                failures = 0
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error), failures=failures)
                for desk in self._desks.values():
                    desk.lookout.reset()
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

    def _archive(self, runner: SeasonRunner) -> None:
        if runner.keep_archive() and runner.state.ready_game() is None:
            self._ring(runner.state.hall)  # its spools may go now, and no game will ring

    def _open_seasons(self) -> None:
        for season in self._ledger.seasons():
            if season not in self._runners and season not in self._damaged:
                try:
                    self._runners[season] = SeasonRunner(self._ledger, self._root, season)
                except errors.LedgerDamagedError as error:
                    self._give_up(season, error)

    def _guarded(self, runner: SeasonRunner, step: Callable[[SeasonRunner], None]) -> None:
        """Take a season whose journal or archive is damaged out of service, no other."""
        try:
            step(runner)
        except (errors.LedgerDamagedError, errors.HostError) as error:
            self._give_up(runner.season, error)

    def _give_up(self, season: str, error: errors.FarmError) -> None:
        self._damaged.add(season)
        for hall in self._ledger.halls():
            self._ledger.withdraw(hall, season)
        runner = self._runners.pop(season, None)
        if runner is not None:
            runner.close()
        log.error("season.damaged", season=season, error=str(error))

    def _living(self) -> list[SeasonRunner]:
        return list(self._runners.values())

    def _halls(self) -> Iterable[str]:
        planned = (runner.state.hall for runner in self._living())
        return dict.fromkeys([*self._ledger.halls(), *planned])

    def _tend(self, hall: str, now_ms: int) -> None:
        desk = self._desks.setdefault(hall, HallDesk(leases.Lookout(hall)))
        slot = self._ledger.slot(hall)
        now = time.monotonic()
        if desk.lookout.look(self._ledger, slot, now):
            return  # the journal has grown: the next pass decides
        if desk.busy and slot is None:
            desk.rung = NEVER  # the hall has just become free: ring at once
        desk.busy = slot is not None
        ready = self._offer(hall, desk)
        late = slot is not None and slot.deadline_ms - now_ms < slot.ttl_ms / 2
        if (ready and slot is None) or late:
            self._ring_again(hall, desk, now)

    def _offer(self, hall: str, desk: HallDesk) -> bool:
        """Offer the hall the first ready game in the order of launches; say if there is one."""
        offered: SeasonRunner | None = None
        for runner in self._living():
            if runner.state.hall != hall:
                continue
            game = runner.state.ready_game()
            if game is None or offered is not None:
                self._ledger.withdraw(hall, runner.season)
            else:
                offered = runner
                self._offer_game(hall, desk, runner, game)
        return offered is not None

    def _offer_game(self, hall: str, desk: HallDesk, runner: SeasonRunner, game: str) -> None:
        wanted = (runner.season, game)
        if desk.offer != wanted or self._ledger.offered(hall).get(runner.season) != game:
            order = orders.game_order(runner.state, game).encode()
            reply = self._ledger.offer(hall, runner.season, game, order, runner.state.seq)
            if isinstance(reply, api.Offered):
                desk.offer, desk.rung = wanted, NEVER
                log.info("game.offered", season=runner.season, game=game, hall=hall)

    def _ring_again(self, hall: str, desk: HallDesk, now: float) -> None:
        if now - desk.rung >= RING_SECONDS:
            desk.rung = now
            self._ring(hall)

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
