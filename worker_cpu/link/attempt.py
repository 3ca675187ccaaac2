"""The link: the only process of a game that talks to Redis.

It claims the hall, hands the order to the referee, and from then on answers to three:
the referee (each completed ply goes to the ledger and to the hall's disk before the
opponent's clock starts), the ledger and the dead man (both by its ``lease``). It judges
nothing and keeps no clock. Invariants:

* a ply the referee is told to go on from is in Redis and on this host's disk;
* a finished game is in the spool before the ledger hears of it;
* no engine is started whose files are not the pinned ones, or whose program is not there;
* this process leaves the hall's lock only when no engine is alive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gzip
import os
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from orchestrator import contract
from orchestrator.arbiter import game_zip, record, verdict
from orchestrator.common import errors
from orchestrator.ledger import api, store
from worker_cpu import settings
from worker_cpu.engines import handles
from worker_cpu.hall import checksums, gpu_seats
from worker_cpu.hall import directory as hall_directory
from worker_cpu.link import blame, hold, lease, live_status, redis_retry, spools, turns
from worker_cpu.referee import result, session
from worker_cpu.wire import frames

log = structlog.get_logger()

OPERATOR = "operator"  # the cause of an abort: it says nothing about engines or host
LOG_BYTES = 64 << 20  # bytes, compressed: a long game of talkative engines has 10 MiB
FULL = b"from here on the engines' output is left out: the log has reached its bound"
HOST = "host"  # the cause of an attempt that this host must not play


@dataclasses.dataclass(frozen=True)
class Hall:
    """What all attempts of a hall have in common."""

    settings: settings.HallSettings
    directory: hall_directory.HallDirectory
    ledger: store.RedisLedger
    checksums: checksums.FileChecksums
    attribution: blame.FaultAttribution
    seats: gpu_seats.GpuSeats
    waiting: tuple[spools.Waiting, ...] = ()  # of games before this one


def play(hall: Hall, claim: api.Claim, lock: int, referee: handles.RefereeProcess) -> None:
    """Claim a game and see one attempt at it through; the hall's lock is held.

    Returns when the attempt is recorded (finished or given up), refused or fenced. Raises
    ``LedgerAwayError`` when Redis stays away: the next settling has what is left.
    """
    reply = redis_retry.retry(lambda: hall.ledger.claim(claim))
    if not isinstance(reply, api.Claimed):
        log.info("claim.refused", reply=str(reply))
        return
    order = contract.GameOrder.decode(reply.order)
    log.info("game.started", token=str(reply.token), white=order.white.id, black=order.black.id)
    dead_man = handles.DeadMan(
        log=hall.directory.dead_man_log(claim.attempt),
        scratch=hall.directory.scratch_of(claim.attempt),
        lock=lock,
        limit_seconds=hall.settings.dead_man_seconds,
        referee=referee,
    )
    try:
        Attempt(hall, claim, reply.token, order, dead_man, referee).run()
    finally:
        dead_man.wait()


class Attempt:
    """The state of an attempt between claim and its end."""

    def __init__(
        self,
        hall: Hall,
        claim: api.Claim,
        token: contract.Token,
        order: contract.GameOrder,
        dead_man: handles.DeadMan,
        referee: handles.RefereeProcess,
    ) -> None:
        self._settings = hall.settings
        self._directory = hall.directory
        self._ledger = hall.ledger
        self._claim = claim
        self._elsewhere = hall.seats.of(claim.hall, claim.attempt, token)
        self._token = token
        self._order = order
        self._dead_man = dead_man
        self._referee_pid = referee.pid
        self._checksums = hall.checksums
        self._files: Mapping[contract.Side, Mapping[str, str]] = {}
        self._attribution = hall.attribution
        self._plies = list(order.progress.plies) if order.progress else []
        self._journaled: contract.PlyRecord | None = None
        self._carried = (0, 0)  # the last journaled ply and when it was made (ms), for renewals
        self._started_ms = redis_retry.retry(self._ledger.now_ms)  # may raise: no file is open yet
        self._ply_log = hall_directory.AppendLog(self._directory.ply_log(claim.attempt))
        self._protocol = ProtocolLog(self._directory.protocol_log(claim.attempt))
        self._live = live_status.LiveStatus(self._ledger, order, claim, self._started_ms)
        self._lease = lease.Lease(self._renew, dead_man, self._settings.beat_seconds)
        self._turns = turns.Turns()
        self._session = session.RefereeSession(
            referee, dead_man, order.timeouts, self._settings.dead_man_seconds
        )
        self._waiting = hall.waiting
        self._ended = False

    def run(self) -> None:
        """Play the order and record how it ended."""
        try:
            self._attribution.begin()
            self._lease.renew()
            self._write_history()
            seated = self._seated_order() if self._engines_are_there() else None
            if seated is not None:
                self._session.send(seated.encode().encode())
            while not self._ended:
                self._serve_referee()
                self._turns.look()
                self._beat()
        finally:
            self._elsewhere.free()
            self._ply_log.close()
            self._protocol.close()

    def _seated_order(self) -> contract.GameOrder | None:
        """Return the order with the seats of engines on GPU boxes, or give up."""
        try:
            seated = self._elsewhere.seat(self._order, self._beat)
        except errors.HostError as error:
            log.warning("seat.refused", reason=str(error))
            self._give_up(HOST, str(error))
            return None
        self._files = {**self._files, **seated.files}
        return seated.order

    def _ready(self, payload: bytes) -> None:
        """Note that both engines run, and which control groups they are in."""
        reports = contract.loads(payload)
        groups = turns.groups(reports)
        by_side = {side: None if group is None else str(group) for side, group in groups.items()}
        self._attribution.engines_ready(
            self._referee_pid, (os.getpid(), self._dead_man.pid), by_side
        )
        self._turns.watch(groups)
        self._live.ready(payload)
        self._forget_archived()

    def _write_history(self) -> None:
        """Let the stream of a resumed game hold all its plies: whoever reads it sees the game."""
        for ply in tuple(self._plies):
            if not self._persist(functools.partial(self._write_ply, ply.ply, ply.encode())):
                return

    def _engines_are_there(self) -> bool:
        """Choose builds and hold the engines' files against their pins, or give up."""
        try:
            verified = self._checksums.verify(self._order)
            checksums.require_programs(verified.order)
        except errors.HostError as error:
            log.exception("engine.not_pinned")
            self._give_up(HOST, str(error))
            return False
        self._order, self._files = verified.order, verified.found
        return True

    # -- frames of the referee ------------------------------------------------------

    def _serve_referee(self) -> None:
        """Take a frame, or wait until the next beat or the next look at the engine that waits."""
        frame = self._session.receive(min(self._lease.rest_seconds, self._turns.rest_seconds))
        if frame is None:
            self._session.check()
        else:
            self._serve(frame)
        match self._session.end:
            case session.Finished(content):
                self._finish(content)
            case session.Interrupted(cause, evidence, excused):
                self._give_up(cause, evidence, excused)

    def _serve(self, frame: frames.Frame) -> None:
        payload = frame.payload
        match frame.kind:
            case frames.Kind.CHUNK:
                chunk = frames.Chunk.decode(payload)
                self._protocol.write(chunk)
                self._live.chunk(chunk)
            case frames.Kind.THINK:
                self._think(payload)
            case frames.Kind.READY:
                self._ready(payload)
            case frames.Kind.PLY:
                self._keep_ply(payload)
            case frames.Kind.FINISHED | frames.Kind.INTERRUPTED:
                return  # the session has the end
            case _:
                log.error("frame.unexpected", kind=frame.kind.name)

    def _think(self, payload: bytes) -> None:
        """Note that a clock runs, unless its ply has overtaken this word."""
        thinking = self._session.thinking
        if thinking is not None:
            self._attribution.clock_starts(thinking["monotonic_ns"])
            self._turns.begin(thinking["side"])
            self._live.think(payload)

    def _keep_ply(self, payload: bytes) -> None:
        """Make a ply durable, then let the game go on."""
        ply = contract.PlyRecord.decode(payload)
        self._turns.end(ply.side)
        self._ply_log.append(payload)
        self._plies.append(ply)  # a game that has ended is recorded whole, Redis or not
        if self._persist(lambda: self._write_ply(ply.ply, payload.decode())):
            self._journaled = ply
            self._carried = (ply.ply, self._live.now_ms())
            self._session.go_on(ply.ply)
            self._live.ply(ply)

    def _write_ply(self, ply: int, payload: str) -> bool:
        """Write a ply, and before it those that a Redis which came back has lost."""
        reply = self._send_ply(ply, payload)
        if isinstance(reply, api.Gap):
            log.error("ply.gap", ply=ply, last=reply.last)
            for lost in self._plies:
                if reply.last < lost.ply < ply:
                    self._send_ply(lost.ply, lost.encode())
            reply = self._send_ply(ply, payload)
        return isinstance(reply, api.Written)

    def _send_ply(self, ply: int, payload: str) -> api.Written | api.Gap | api.Fenced:
        first = self._plies[0].ply if self._plies else ply
        hall, attempt = self._settings.hall, self._claim.attempt
        return self._ledger.write_ply(hall, self._token, attempt, ply, payload, first)

    def _persist(self, write: Callable[[], bool]) -> bool:
        """Write, and try again while Redis is away; both clocks stand meanwhile.

        The dead man ends the wait at his limit; then the channel tells of the
        interruption. False means that the attempt has lost its right to write.
        """
        while not self._ended:
            try:
                written = write()
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
            else:
                if not written:
                    self._lease.lose()
                return written
            if self._dead_man.ended:
                return False
            time.sleep(redis_retry.RETRY_SECONDS)
            self._lease.beat()
        return False

    def _renew(self) -> api.Renewed | api.Fenced:
        hall, attempt = self._claim.hall, self._claim.attempt
        reply = self._ledger.renew(hall, self._token, attempt, *self._carried)
        self._forget_archived()
        return reply

    def _forget_archived(self) -> None:
        """Let go of games before this one that the archive has by now."""
        if self._waiting:
            with contextlib.suppress(errors.LedgerAwayError):  # the next beat looks again
                self._waiting = spools.forget(self._waiting, self._directory, self._ledger)

    def _beat(self) -> None:
        """Renew the lease if it is time; does nothing for an attempt that has ended."""
        if not self._ended:
            self._lease.beat()

    # -- the end --------------------------------------------------------------------

    def _finish(self, finished: dict[str, Any]) -> None:
        """Spool the finished game, then record it under the token.

        A fault that was the host's is no end of the game, but an interruption.
        """
        self._turns.release()
        finished["remarks"] = [*finished.get("remarks", ()), *self._turns.remarks]
        self._dead_man.end()
        if finished["outcome"]["ending"] in verdict.CRASHES:
            self._dead_man.wait()  # a probe needs the place to itself
        fault = self._lost_gpu(finished) or self._attribution.judge(
            self._order, finished, self._beat
        )
        if fault is not None:
            self._blame_host(fault)
            return
        self._ended = True
        self._protocol.close()
        spooled = self._spooled(finished)
        path = self._directory.write_spool(spooled)
        # Where this raises, the spool is left: the next settling submits it.
        reply = redis_retry.retry(lambda: self._complete(spooled))
        if isinstance(reply, api.Refused):
            self._directory.set_aside(path, reply.reason)
            log.error("game.refused", reason=reply.reason)
        else:
            log.info(
                "game.finished", result=spooled.finished.result, details=spooled.finished.details
            )
        if spooled.finished.ending not in verdict.CRASHES:
            self._dead_man.wait()  # engines write until their end
            self._directory.forget_scratch(self._claim.attempt)

    def _lost_gpu(self, finished: dict[str, Any]) -> blame.HostFault | None:
        """Return the host's fault where a faulty engine's GPU is gone, ``None`` where none is."""
        outcome = contract.Outcome.model_validate(finished["outcome"])
        if outcome.loser is None or not verdict.is_crash(outcome):
            return None
        report = finished[outcome.loser]
        lost = self._elsewhere.lost_gpu(report, self._beat)
        if not lost:
            return None
        evidence = f"{outcome.details}; {outcome.note}; {report['box']}: {lost}"
        return blame.HostFault(HOST, evidence)

    def _complete(self, spooled: hall_directory.Spooled) -> api.Recorded | api.Refused:
        return self._ledger.complete(
            self._settings.hall,
            self._token,
            self._order.season,
            spooled.finished,
            spooled.record,
        )

    def _blame_host(self, fault: blame.HostFault) -> None:
        """Hold a sick hall first, so that nothing begins there, then give the attempt up."""
        if fault.hold:
            hold.hold_hall(self._ledger, self._claim, fault.evidence)
        self._give_up(fault.cause, fault.evidence, fault.excused)

    def _spooled(self, finished: dict[str, Any]) -> hall_directory.Spooled:
        for remark in finished.get("remarks", ()):
            log.warning("game.remark", remark=remark)
        for side, use in self._elsewhere.use_by_side(finished).items():
            finished[side]["gpu_use"] = use
        game = result.game_record(
            finished,
            self._order,
            self._plies,
            attempt=self._claim.attempt,
            token=str(self._token),
            hall=self._claim.hall,
            lane=self._claim.lane,
            host=self._claim.host,
            started_ms=self._started_ms,
            ended_ms=self._live.now_ms(),
        )
        files = {f"{side}_files": dict(digests) for side, digests in self._files.items()}
        return hall_directory.Spooled(
            hall=self._claim.hall,
            token=self._token,
            season=self._order.season,
            finished=result.fact(game).model_copy(update=files),
            record=game_zip.pack(game, record.pgn(game), self._protocol.content()),
        )

    def _give_up(self, cause: str, evidence: str, excused: contract.Side | None = None) -> None:
        """End the attempt as an interruption, once no engine is alive."""
        self._ended = True
        if self._lease.aborted:
            cause, evidence, excused = OPERATOR, self._lease.aborted, None
        self._dead_man.kill(cause)
        self._dead_man.wait()
        log.warning("game.interrupted", cause=cause, evidence=evidence)
        if self._lease.lost:
            return
        last = self._journaled
        end = contract.AttemptEnded(
            game=self._claim.game,
            attempt=self._claim.attempt,
            hall=self._claim.hall,
            lane=self._claim.lane,
            host=self._claim.host,
            cause=cause,
            evidence=evidence,
            ply=last.ply if last else 0,
            white_clock_ns=last.white_clock_ns if last else None,
            black_clock_ns=last.black_clock_ns if last else None,
            excused=excused,
        )
        hall, season = self._settings.hall, self._order.season
        redis_retry.retry(lambda: self._ledger.give_up(hall, self._token, season, end))


class ProtocolLog:
    """One game's protocol, compressed: lines of ``<monotonic ns> <seat><direction> <text>``.

    Bounded: an engine that writes without end fills neither the disk nor the record. Beyond the
    bound only what engines were sent is still kept, behind a line that says so.
    """

    def __init__(self, path: pathlib.Path, limit: int = LOG_BYTES) -> None:
        self._path, self._limit = path, limit
        self._raw = path.open("wb")
        self._file: gzip.GzipFile | None = gzip.GzipFile(
            mode="wb", fileobj=self._raw, compresslevel=1
        )
        self._full = False

    def write(self, chunk: frames.Chunk) -> None:
        """Add the lines of one chunk."""
        if self._file is None or (self._full and chunk.direction != ">"):
            return
        data = chunk.data
        if chunk.direction != ">" and self._raw.tell() > self._limit:
            self._full, data = True, FULL
        head = f"{chunk.monotonic_ns} {chunk.seat}{chunk.direction} ".encode()
        text = data.rstrip(b"\n").replace(b"\n", b"\n" + head)
        self._file.write(head + text + b"\n")

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._file is not None:
            self._file.close()
            self._raw.close()
            self._file = None

    def content(self) -> bytes:
        """Return the compressed log; it must be closed."""
        return self._path.read_bytes()
