"""A lane's worker, in Celery's child: test games, one after the other.

A lane's worker plays as long as a test match has games for it, and leaves the lane when
an official game waits. Invariants:

* the hall's lock is held shared and the lane's own alone, from before a claim until the
  last engine is gone: an official game, which takes all of them, is never beside one;
* engines run on the lane's cores only, and within its memory, or on boxes that are the lane's
  alone; referee and engines of a match stay for its next game (decision 021), and are gone
  before the lane's lock is let go;
* while Redis is away the dead man of a game is not fed: engines are dead before the lease is
  over; between two games, when none of them thinks, he is.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.ledger import api, lane_store, lanes, seat_store
from orchestrator.testmatch import orders, spsa, worker_review
from worker_cpu import settings
from worker_cpu.engines import handles, sandbox
from worker_cpu.hall import checksums, directory, gpu_hosts, gpu_seats
from worker_cpu.host import speed
from worker_cpu.link import lease as leases
from worker_cpu.link import redis_retry
from worker_cpu.match import cores, game
from worker_cpu.referee import engine_reuse, result, session

log = structlog.get_logger()

SPECS = 2  # matches that are kept read: two of equal share alternate, and books may be large
BATCH_GAMES = 16  # at most so many are claimed at once
BATCH_SECONDS = 10.0  # s: so long a lane may have games that another one could begin
LOCK_SECONDS = 3.0  # s: an official game that has just ended needs so long to clean up
SEATED_SECONDS = 900.0  # s: engines elsewhere get new seats well before their GPUs may be taken
NODES = pathlib.Path("/sys/devices/system/node")


class LaneWorker:
    """One worker child's way to its lane."""

    def __init__(
        self,
        configured: settings.HallSettings,
        begin: Callable[[socket.socket], handles.Child] = handles.start_fork_server,
    ) -> None:
        """Measure the lane, start its fork server by ``begin``.

        Raise ``UsageError`` for a lane without cores.
        """
        self._settings = configured
        self._directory = directory.HallDirectory(configured.directory)
        self._lanes = lane_store.connect(configured.redis_url)
        self._gpu_seats = _gpu_seats(configured, seat_store.RedisSeats(self._lanes.server))
        self.lane = measured(configured)
        self._confinement = _confinement(configured)
        os.environ.update(visible(configured.lane_gpu_ids))  # engines get it of their referee
        self._fork_server = handles.ForkServer(self._confinement, begin)
        self._kept: _Seats | None = None
        self._checksums = checksums.FileChecksums()
        self._specs: dict[tuple[str, str], orders.Spec] = {}  # by match and opening
        # The values of the tuning and iteration that was played last.
        self._tuned: tuple[tuple[str, str, int], Sequence[float] | None] = (("", "", 0), None)
        self._game_seconds = BATCH_SECONDS  # of the last game
        self._asked_ns = 0  # when the lease's last renewal was sent (CLOCK_BOOTTIME)
        self._waits = ""  # why it plays nothing, as it was logged last

    def open(self) -> None:
        """Settle the lane's past and make it known, unless an official game has the hall.

        Never raises for Redis; the worker rings itself until this was done. Raise
        ``RefusedError`` for a lane that is another host's, or on cores of another lane.
        """
        self._enter(lambda _: None)

    def look(self) -> None:
        """Play games until none is left for this lane, or the whole hall is wanted."""
        structlog.contextvars.clear_contextvars()
        self._enter(self._play_all)

    def _enter(self, work: Callable[[int], None]) -> None:
        """Work in the lane while its lock is held: nothing of an earlier game is alive."""
        try:
            with self._directory.lane_locked(self.lane.name, LOCK_SECONDS) as lock:
                if lock is None:
                    self._log_once("lane.closed")
                    return
                settle(self._lanes, self.lane.hall, self.lane.host, self.lane.name)
                self._free_left()
                reply = self._lanes.open_lane(self.lane)
                if isinstance(reply, api.Opened):
                    work(lock)
                else:
                    self._refused(reply)
        except errors.LedgerAwayError as error:
            log.warning("redis.away", error=str(error))

    def _refused(self, reply: api.Foreign | lanes.Overlap) -> None:
        """Raise ``RefusedError`` for what only the operator can change; else wait."""
        lane = f"{self.lane.hall}.{self.lane.name}"
        if isinstance(reply, api.Foreign):
            raise errors.RefusedError(
                f"lane {lane} is on {self.lane.host}, and hall {self.lane.hall} is {reply.host}'s:"
                " a hall belongs to the host that opened it first"
            )
        if reply.lane != self.lane.name:
            raise errors.RefusedError(
                f"lane {lane} has cores or a box of lane {reply.lane}: give it others"
                " (FARM_ENGINE_CPUS, FARM_LANE_BOXES),"
                f" or `farm host lanes --close {self.lane.hall}.{reply.lane}` if that lane is gone"
            )
        self._log_once("lane.closed")  # its game of before is still leased

    def _log_once(self, event: str, **facts: str) -> None:
        """Log why this lane plays nothing, once: a match that waits rings it every few seconds."""
        if self._waits != (why := " ".join((event, *facts.values()))):
            self._waits = why
            log.info(event, lane=self.lane.name, **facts)

    def _play_all(self, lock: int) -> None:
        try:
            while self._played_batch(lock):
                pass
        finally:
            self._leave()

    def _played_batch(self, lock: int) -> bool:
        """Claim games and play them, as long as the lane goes on; False where there are none."""
        claim = self._claim()
        self._asked_ns = handles.boottime_ns()
        dealt = self._lanes.claim_lane(claim)
        if not isinstance(dealt, lanes.Dealt):
            self._log_once("lane.idle", reply=str(dealt))
            return False
        self._waits = ""
        lease = _lease(claim, dealt)
        enough = time.monotonic() + BATCH_SECONDS
        while lease.games:
            ids = {"match": lease.match, "game": lease.game, "attempt": lease.attempt}
            with structlog.contextvars.bound_contextvars(**ids, hall=lease.hall, lane=lease.lane):
                log.info("test.started")
                began = time.monotonic()
                end = self._play(lease, lock)
                now = time.monotonic()
                self._game_seconds = now - began
                left = self._record(lease, end, goes_on=now < enough)
            lease = dataclasses.replace(lease, games=left)
        return True

    def _claim(self) -> lanes.LaneClaim:
        return lanes.LaneClaim(
            hall=self.lane.hall,
            lane=self.lane.name,
            attempt=f"{self.lane.hall}.{self.lane.name}-{secrets.token_hex(8)}",
            worker=self._settings.worker,
            host=self.lane.host,
            ttl_ms=round(self._settings.lease_seconds * 1000),
            most=batch_size(self._game_seconds),
        )

    # -- one game ----------------------------------------------------------------------

    def _play(self, lease: lanes.Lease, lock: int) -> game.End:
        spec = self._spec(lease)
        if spec is None:
            return session.Interrupted("closed", lanes.STOPPED)
        end: game.End | None = None
        stays = False
        try:
            order = self._checksums.verify(self._order(spec, lease)).order
            own = self._seats(spec, lease, lock)
            renewed = self._renewed(lease, own.seated)
            order = own.seats_elsewhere(order, renewed.beat)
            stays = bool(order.keep)
            sealed, site = game.Sealed(order), f"{lease.hall}/{lease.lane}"
            end = game.play(own.seated, sealed, site, lambda: renewed.rest_seconds, renewed.beat)
        except errors.HostError as error:
            return session.Interrupted("host", str(error))
        else:
            return end
        finally:
            if stays and isinstance(end, result.Ended) and own.plays_on(end):
                own.seated.keeps = True
            else:
                self._leave()

    def _renewed(self, lease: lanes.Lease, seated: session.Seated) -> leases.Lease:
        """Return what renews the lease: it was claimed, or renewed with a result, a moment ago."""
        renewal = functools.partial(
            self._lanes.renew_lane, lease.hall, lease.lane, lease.token, lease.attempt
        )
        renewed = leases.Lease(renewal, seated.dead_man, self._settings.beat_seconds)
        renewed.asked_at(self._asked_ns)
        return renewed

    def _order(self, spec: orders.Spec, lease: lanes.Lease) -> contract.GameOrder:
        """Return the order of a game whose PGN is written in the lane; nobody wants its plies."""
        # a sandbox hides an engine from the other one: a third one's is not made for both
        stays = self._confinement.kind == "plain" or len(spec.engines) == 2
        if spec.boxes:  # a seat elsewhere is good for one start of an engine
            away = [engine for engine in spec.engines if engine.box]
            stays = len(spec.engines) == 2 and all(engine.protocol == "uci" for engine in away)
            stays = stays and spec.tuning is None  # whose engines get other options each time
        return spec.order(lease.game, values=self._values(spec, lease)).model_copy(
            update={
                "site": f"{lease.hall}/{lease.lane}",
                "recorded": False,
                "traffic": False,
                "pgn": contract.PgnStyle(),
                "keep": ("white", "black") if stays else (),
            }
        )

    def _values(self, spec: orders.Spec, lease: lanes.Lease) -> Sequence[float] | None:
        """Return the values that a tuning's game is dealt with; one question an iteration."""
        if spec.tuning is None or spec.is_check(lease.game):
            return None
        asked = (lease.match, lease.run, spec.tuning.iteration(lease.game))
        if self._tuned[0] != asked:
            self._tuned = asked, spsa.values(self._lanes.values(lease.match, asked[2]))
        return self._tuned[1]

    def _seats(self, spec: orders.Spec, lease: lanes.Lease, lock: int) -> _Seats:
        """Return referee and dead man of the game before where they can play on, else new ones."""
        kept = self._kept
        if kept is not None and kept.waits_for(lease):
            kept.seated.keeps = False
            return kept
        self._leave()
        own = cores.allot(1, spec.threads, sorted(self.lane.cpus))[0]
        scratch = self._directory.scratch_of(lease.attempt)
        limit = self._settings.dead_man_seconds
        seated = session.seat(self._fork_server, own, scratch, lock, limit)
        self._kept = _Seats((lease.match, lease.run), lease.attempt, seated)
        if spec.boxes:
            files.write(self._left, " ".join((lease.attempt, *spec.boxes)).encode())
            self._kept.elsewhere = self._gpu_seats.of(self.lane.hall, lease.attempt, None)
        return self._kept

    def _leave(self) -> None:
        """Let referee, dead man and engines end; returns when they are gone."""
        if self._kept is not None:
            self._kept.seated.leave()
            if self._kept.elsewhere is not None:
                self._kept.elsewhere.free()
            self._directory.forget_scratch(self._kept.attempt)
            self._kept = None

    @property
    def _left(self) -> pathlib.Path:
        """Return the file that names the last attempt that wished for seats, and their boxes."""
        return self._directory.lane(self.lane.name) / "seats"

    def _free_left(self) -> None:
        """Free the seats elsewhere of a worker that was killed: nobody else knows of them."""
        if self._left.exists():
            attempt, *boxes = self._left.read_text().split()
            for box in boxes:
                self._gpu_seats.wishes.free_seats(box, attempt)
            self._left.unlink()

    def _spec(self, lease: lanes.Lease) -> orders.Spec | None:
        match = (lease.match, lease.run)
        if match not in self._specs:
            text = self._lanes.spec(lease.match)
            if text is None:
                return None
            if len(self._specs) == SPECS:
                del self._specs[next(iter(self._specs))]
            self._specs[match] = orders.Spec.decode(text)
        return self._specs[match]

    def _record(self, lease: lanes.Lease, end: game.End, *, goes_on: bool) -> tuple[int, ...]:
        """Journal how the lease's first game ended; return those that the lane goes on with."""
        kind = lanes.LOST if isinstance(end, session.Interrupted) else lanes.GAME
        outcome = _result(end)
        if isinstance(end, result.Ended):
            spec = self._specs.get((lease.match, lease.run))
            tuning = None if spec is None else spec.tuning
            unmet = ((each.option, each.remark) for each in end.unmet)
            outcome |= {} if tuning is None else {"unmet": tuning.unmet(unmet)}
        context = {"game": lease.game, "lane": lease.lane, "host": lease.host, "hall": lease.hall}
        text = contract.dumps(context | outcome | {"attempt": lease.attempt, "nps": self.lane.nps})

        def record() -> lanes.Counted | api.Fenced:
            if self._kept is not None:  # idle engines wait with this process, under its lock
                self._kept.seated.feed()
            self._asked_ns = handles.boottime_ns()
            return self._lanes.complete_lane(lease, text, kind, goes_on=goes_on)

        # While Redis stays away this raises, and the game is played again.
        reply = redis_retry.retry(record)
        log.info("test.ended", reply=str(reply))
        return () if isinstance(reply, api.Fenced) else reply.left


@dataclasses.dataclass
class _Seats:
    """A referee and a dead man, and the match and the first attempt that they were started for."""

    match: tuple[str, str]  # and its opening
    attempt: str
    seated: session.Seated
    elsewhere: gpu_seats.Seating | None = None  # None: both engines play in the lane
    since: float = dataclasses.field(default_factory=time.monotonic)
    _addresses: Mapping[str, contract.SeatAddress] = dataclasses.field(default_factory=dict)

    def waits_for(self, lease: lanes.Lease) -> bool:
        """Say whether they may play a game of this lease."""
        late = self.elsewhere is not None and time.monotonic() > self.since + SEATED_SECONDS
        return self.match == (lease.match, lease.run) and not late and self.seated.waits

    def seats_elsewhere(
        self, order: contract.GameOrder, meanwhile: Callable[[], None]
    ) -> contract.GameOrder:
        """Return the order with seats of engines on boxes; raise ``HostError``.

        Those that stayed have theirs: the next game is of the same two engines.
        """
        if self.elsewhere is None:
            return order
        if not self._addresses:
            seated = self.elsewhere.seat(order, meanwhile).order
            self._addresses = {seated.engine(side).id: at for side, at in seated.seats.items()}
            return seated
        sides: tuple[contract.Side, ...] = ("white", "black")
        away = [side for side in sides if order.engine(side).box]
        seats = {side: self._addresses[order.engine(side).id] for side in away}
        return order.model_copy(update={"seats": seats})

    def plays_on(self, end: result.Ended) -> bool:
        """Say whether the engines may play the next game: a new start needs a new seat."""
        return self.elsewhere is None or end.outcome.ending not in engine_reuse.FAULTS


def settle(
    ledger_lanes: lane_store.RedisLanes, hall_name: str, host: str, lane: str | None = None
) -> None:
    """Give up what died with this host's workers: one lane's game, or those of all lanes.

    The caller holds the lock of the lane, or of the whole hall, so no engine is alive.
    """
    for lease in ledger_lanes.leases(hall_name):
        if lease.host == host and lane in {None, lease.lane}:
            loss = {"game": lease.game, "lane": lease.lane, "host": host, "cause": "worker lost"}
            ledger_lanes.complete_lane(lease, contract.dumps(loss), lanes.LOST)
            ids = {"match": lease.match, "game": lease.game, "attempt": lease.attempt}
            log.warning("test.given_up", **ids, lane=lease.lane)


def batch_size(game_seconds: float) -> int:
    """Return how many games to claim: pairs that take about ``BATCH_SECONDS``, at least a game."""
    pairs = int(BATCH_SECONDS / 2 / max(game_seconds, BATCH_SECONDS / BATCH_GAMES))
    return max(1, 2 * pairs)


def is_known(ledger_lanes: lane_store.RedisLanes, configured: settings.HallSettings) -> bool:
    """Say whether the ledger knows this worker's lane, with its cores."""
    name, cpus = configured.lane, configured.engine_cpus
    return any(
        lane.name == name and lane.cpus == cpus for lane in ledger_lanes.lanes_of(configured.hall)
    )


def measured(configured: settings.HallSettings) -> lanes.Lane:
    """Return this host's lane, its speed measured on its own cores."""
    cpus = configured.engine_cpus & os.sched_getaffinity(0)
    if not cpus or cpus != configured.engine_cpus:
        raise errors.UsageError(
            f"lane {configured.lane}: found FARM_ENGINE_CPUS={_list(configured.engine_cpus)!r};"
            f" allowed: some of this host's cores, {_list(os.sched_getaffinity(0))}"
        )
    return lanes.Lane(
        hall=configured.hall,
        name=configured.lane,
        host=configured.host,
        cpus=cpus,
        memory_mb=configured.lane_memory_mb or _share_of_memory_mb(len(cpus)),
        gpus=configured.lane_gpus,
        node=numa_node(cpus),
        nps=speed.nps(cpus),
        boxes=frozenset(configured.lane_boxes),
    )


def _gpu_seats(
    configured: settings.HallSettings, wishes: seat_store.RedisSeats
) -> gpu_seats.GpuSeats:
    """Return where engines may play beside the lane; raise ``UsageError`` for an unknown box."""
    file = configured.boxes if configured.lane_boxes else None
    boxes = gpu_hosts.load(file, configured.dead_man_seconds)
    unknown = [box for box in configured.lane_boxes if box not in boxes]
    if unknown:
        raise errors.UsageError(
            f"lane {configured.lane}: FARM_LANE_BOXES: found {unknown[0]!r}; allowed: boxes that"
            f" FARM_BOXES names ({', '.join(boxes) or 'none'})"
        )
    return gpu_seats.GpuSeats(wishes, boxes)


def visible(gpus: Sequence[str]) -> dict[str, str]:
    """Return the environment that shows engines these GPUs alone; nothing where none is named."""
    if not gpus:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}


def numa_node(cpus: frozenset[int], nodes: pathlib.Path = NODES) -> int:
    """Return the NUMA node that has all these cores, -1 where there is none."""
    for path in sorted(nodes.glob("node[0-9]*")):
        if all((path / f"cpu{cpu}").exists() for cpu in cpus):
            return int(path.name.removeprefix("node"))
    return -1


def _share_of_memory_mb(cpus: int) -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return total * cpus // (os.cpu_count() or cpus)


def _list(cpus: frozenset[int] | set[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def _confinement(configured: settings.HallSettings) -> sandbox.Confinement:
    """Return the host's confinement; a lane's memory is its two engines' together."""
    confined = configured.confinement()
    if configured.lane_memory_mb is None:
        return confined
    return dataclasses.replace(confined, memory_mb=max(1, configured.lane_memory_mb // 2))


def _lease(claim: lanes.LaneClaim, dealt: lanes.Dealt) -> lanes.Lease:
    return lanes.Lease(
        hall=claim.hall,
        lane=claim.lane,
        attempt=claim.attempt,
        token=dealt.token,
        match=dealt.match,
        games=dealt.games,
        worker=claim.worker,
        host=claim.host,
        deadline_ms=0,
        run=dealt.run,
    )


def _result(played: game.End) -> dict[str, str | int | None]:
    if isinstance(played, session.Interrupted):
        return {"cause": played.cause, "evidence": played.evidence}
    outcome = played.outcome
    return {
        "result": outcome.result,
        "ending": outcome.ending,
        "loser": outcome.loser,
        "details": outcome.details,
        "plies": played.plies,
        "pgn": played.pgn,
        **worker_review.said(outcome, played.final_fen, played.loser_stderr),
    }
