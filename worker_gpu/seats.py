"""The box: answers what halls want of it, and watches its GPUs while their games run.

Invariants: GPUs are taken in the ledger, under the hall's token, before anything is ended or
prepared on them; a seat is prepared only when its files are the pinned ones and its GPUs are
there, free of foreign processes, cool and not throttled; an answer says why it is a refusal.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import secrets
import statistics
import threading
import time
from collections.abc import Mapping
from typing import Final

import chess
import structlog

from orchestrator import contract
from orchestrator.common import errors, version
from orchestrator.ledger import api, seat_store, seats, store, vitals
from worker_gpu import files, gpus, settings, stale_agents

log = structlog.get_logger()

SECRET_BYTES = 16  # bytes of a seat's secret
USERS = 100  # numbers that engines are given one after the other: far more than run at once
POSITION = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
DEPTH = 2
OLD_GROUP_SECONDS: Final = 3600.0  # s: a seat is taken within minutes; an empty group is over then
# The file of a group's bound on memory, and that of swap: version 2 bounds swap alone, version 1
# memory and swap together.
_UNIFIED: Final = ("memory.max", "memory.swap.max")
_LEGACY: Final = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
RUNS = 5  # the median is told: one run may meet somebody else's time slice


class Box:
    """One GPU box."""

    def __init__(self, configured: settings.BoxSettings) -> None:
        self._settings = configured
        self._ledger = store.connect(configured.redis_url)
        self._seats: seat_store.RedisSeats = seat_store.RedisSeats(self._ledger.server)
        self._runs = stale_agents.Runs(configured.directory)
        self._files = files.Files(configured.engines, configured.directory / "incoming")
        self._busy = threading.Lock()
        self._running: dict[str, tuple[seats.Seating, contract.SeatAnswer]] = {}
        self._resumed = False
        self._users = 0

    def look(self) -> None:
        """Answer all that is wanted and not answered yet; never raises for Redis."""
        with self._busy:
            try:
                self._resume()
                for attempt, text in self._seats.wanted_seats(self._settings.box).items():
                    self._serve(attempt, text)
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))

    def _resume(self) -> None:
        """Find the game that a worker before this one has seated, to look at its GPUs."""
        if self._resumed:
            return
        for holder in self._seats.gpu_holders().values():
            text = self._seats.seat_answer(self._settings.box, holder.attempt)
            if text is not None:
                self._take_up(holder, text)
        self._resumed = True

    def _take_up(self, holder: seats.Holder, text: str) -> None:
        """Go on to look at a seated game's GPUs, if what was answered can be read."""
        try:
            answer = contract.SeatAnswer.decode(text)
            seating = self._seating(holder.hall, holder.attempt, holder.token)
        except ValueError as error:
            about = self._about(holder.hall, holder.attempt)
            log.error("answer.unreadable", error=str(error), **about)  # noqa: TRY400 - its text says all
            return
        if answer.state == "ready":
            self._running[holder.attempt] = (seating, answer)

    def _seating(self, hall: str, attempt: str, word: str) -> seats.Seating:
        return seats.Seating.of(self._settings.box, hall, attempt, word)

    def _serve(self, attempt: str, text: str) -> None:
        try:
            request = contract.SeatRequest.decode(text)
            seating = self._seating(request.hall, attempt, request.token)
        except ValueError as error:
            log.error("request.unreadable", attempt=attempt, error=str(error))  # noqa: TRY400 - its text says all
            self._seats.free_seats(self._settings.box, attempt)
            return
        with structlog.contextvars.bound_contextvars(**self._about(request.hall, attempt)):
            self._answer(seating, request)
        self._runs.prune()

    def _answer(self, seating: seats.Seating, request: contract.SeatRequest) -> None:
        answer = self._prepared(seating, request)
        plays = answer.state == "ready" and answer.bench is None
        taken = self._wanted() if plays else ()
        reply = self._seats.take_seats(seating, taken, answer.encode())
        log.info("seats.answered", state=answer.state, reason=answer.reason)
        if isinstance(reply, api.Fenced):  # nobody waits for it any more
            self._seats.free_seats(self._settings.box, seating.attempt)
        elif plays and isinstance(reply, api.Written):
            self._running = {seating.attempt: (seating, answer)}

    def _about(self, hall: str, attempt: str) -> dict[str, str]:
        """Return what log lines about an attempt carry; a trial is of no game."""
        ids = {"attempt": attempt, "hall": hall}
        with contextlib.suppress(errors.LedgerForeignError):
            slot = self._ledger.slot(hall)
            if slot is not None and slot.attempt == attempt:
                ids |= {"season": slot.season, "game": slot.game}
        return ids

    def _prepared(
        self, seating: seats.Seating, request: contract.SeatRequest
    ) -> contract.SeatAnswer:
        """Return seats, or what is missing for them, or why there are none."""
        try:
            if not request.engines:
                return self._bench(request)
            files_by_side = {side: self._files.find(spec) for side, spec in request.engines.items()}
            missing = {
                key: path
                for engine_files in files_by_side.values()
                for key, path in engine_files.missing.items()
            }
            if missing:
                return contract.SeatAnswer(state="missing", missing=missing)
            shown = self._inventory()
            self._own_gpus(seating, shown)
            return self._write_seats(request, files_by_side, shown)
        except errors.HostError as error:
            return contract.SeatAnswer(state="refused", reason=str(error))
        except OSError as error:  # such as a full disk
            return contract.SeatAnswer(state="refused", reason=f"no seat can be prepared: {error}")

    def _bench(self, request: contract.SeatRequest) -> contract.SeatAnswer:
        """Measure this host, and give a seat that runs nothing, for the way to it."""
        name, secret = f"{request.attempt}-bench", secrets.token_hex(SECRET_BYTES)
        idle = contract.EngineSpec(id="idle", name="Idle", command=("cat",))
        no_files = files.Found("cat", {}, {}, {})
        self._runs.write(name, self._order(name, request, idle, no_files, (), secret))
        nps, signature = _measure_speed()
        shown = self._inventory()
        bench = contract.HostBench(
            host=self._settings.host,
            nps=nps,
            signature=signature,
            gpus=tuple(
                f"{shown[uuid].label}, driver {shown[uuid].driver}"
                for uuid in self._wanted()
                if uuid in shown
            ),
        )
        return contract.SeatAnswer(
            state="ready", seats={"white": name}, secrets={"white": secret}, bench=bench
        )

    def _own_gpus(self, seating: seats.Seating, shown: Mapping[str, gpus.Gpu]) -> None:
        """Look at the GPUs, take them, then end what earlier attempts left on them.

        The wish stands until the seats are ready: a worker that is started again answers it.
        """
        wanted = self._wanted()
        problem = gpus.refusal(
            list(shown.values()), wanted, self._runs.engines(), self._settings.max_celsius
        )
        if problem:
            raise errors.HostError(problem)
        reply = self._seats.take_seats(seating, wanted, "")
        if isinstance(reply, seats.Taken):
            raise errors.HostError(f"GPU {reply.gpu} is {reply.hall}'s, for {reply.attempt}")
        if isinstance(reply, api.Fenced):
            raise errors.HostError("the attempt has lost its hall")
        self._runs.end_stale(seating.hall, seating.attempt, frozenset(wanted))

    def _write_seats(
        self,
        request: contract.SeatRequest,
        files_by_side: Mapping[contract.Side, files.Found],
        shown: Mapping[str, gpus.Gpu],
    ) -> contract.SeatAnswer:
        names: dict[contract.Side, str] = {}
        seat_secrets: dict[contract.Side, str] = {}
        labels: dict[contract.Side, tuple[str, ...]] = {}
        for number, (side, spec) in enumerate(sorted(request.engines.items(), reverse=True)):
            own = self._share(request, number)
            name = f"{request.attempt}-{side}-{secrets.token_hex(3)}"
            secret = secrets.token_hex(SECRET_BYTES)
            self._runs.write(
                name, self._order(name, request, spec, files_by_side[side], own, secret)
            )
            names[side], seat_secrets[side] = name, secret
            labels[side] = tuple(shown[uuid].label for uuid in own)
        fresh = {side: engine_files.fresh for side, engine_files in files_by_side.items()}
        return contract.SeatAnswer(
            state="ready", seats=names, secrets=seat_secrets, gpus=labels, files=fresh
        )

    def _share(self, request: contract.SeatRequest, number: int) -> tuple[str, ...]:
        """Return the GPUs of a game's first or second engine here."""
        wanted = self._wanted()
        if request.gpus == "shared" or not wanted:
            return wanted
        if len(wanted) < 2:
            raise errors.HostError(f"each engine is to have a GPU; this box has {len(wanted)}")
        return (wanted[number],)

    def _order(
        self,
        name: str,
        request: contract.SeatRequest,
        spec: contract.EngineSpec,
        files_found: files.Found,
        own: tuple[str, ...],
        secret: str,
    ) -> dict[str, object]:
        """Return what the agent needs to start an engine; of its secret only the hash."""
        user = self._user()
        scratch = str(self._runs.scratch(name, others=user is not None))
        handed = {key: os.environ[key] for key in ("PATH", "LANG", "TZ") if key in os.environ}
        cuda = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(own)}
        mine = {"HOME": scratch, "TMPDIR": scratch, "FARM_SEAT": name, "FARM_GAME": request.game}
        return {
            "hall": request.hall,
            "attempt": request.attempt,
            "argv": [files_found.program, *spec.command[1:]],
            "cwd": spec.directory or scratch,
            "env": {**handed, **cuda, **mine},
            "gpus": list(own),
            "cpus": list(self._settings.cpus),
            "cgroup": self._cgroup(name),
            "limits": {"CORE": 0, "RTPRIO": 0},  # real-time priority is the agent's alone
            "checksums": files_found.checksums,
            "secret_sha256": hashlib.sha256(secret.encode()).hexdigest(),
            "user": user,
            "grace_ms": request.grace_ms,
            "beat_ms": request.beat_ms,
        }

    def _user(self) -> int | None:
        """Return another user for each engine that runs at once, None where it is the agent's."""
        first = self._settings.engine_users
        if first is None:
            return None
        self._users = (self._users + 1) % USERS
        return first + self._users

    def _cgroup(self, name: str) -> str:
        """Return the control group that bounds an engine's memory; '' where none is wished."""
        parent, limit = self._settings.cgroup, self._settings.memory_mb
        if parent is None or limit is None:
            return ""
        return str(memory_group(parent, name, limit))

    # -- the GPUs --------------------------------------------------------------------------

    @functools.cached_property
    def _all(self) -> tuple[str, ...]:
        return tuple(gpu.uuid for gpu in gpus.inventory())

    def _wanted(self) -> tuple[str, ...]:
        """Return the GPUs that games get: what the host was told, or all there are."""
        configured = self._settings.gpu_uuids
        return self._all if configured is None else configured

    def _inventory(self) -> dict[str, gpus.Gpu]:
        if not self._wanted():
            return {}
        return {gpu.uuid: gpu for gpu in gpus.inventory()}

    def sample(self) -> None:
        """Look at the GPUs: into the running game's answer, and into this host's vitals."""
        shown, silent = self._shown()
        try:
            self._add_use(shown, silent)
            self._tell_vitals(shown)
        except errors.LedgerAwayError as error:
            log.debug("vitals.failed", error=str(error))

    def _shown(self) -> tuple[dict[str, gpus.Gpu], str]:
        """Return the GPUs that are there, and why others are not."""
        try:
            return self._inventory(), "the driver shows it no more"
        except gpus.NvmlError as error:
            log.warning("nvml.silent", error=str(error))
            return {}, str(error)

    def _add_use(self, shown: Mapping[str, gpus.Gpu], silent: str) -> None:
        """Tell the running game's hall of a look at the GPUs."""
        with self._busy:
            for attempt, (seating, answer) in list(self._running.items()):
                before = {use.uuid: use for use in answer.use}
                use = tuple(
                    gpus.used(before.get(uuid), uuid, shown.get(uuid, silent))
                    for uuid in self._wanted()
                )
                updated = answer.model_copy(update={"use": use, "looks": answer.looks + 1})
                if isinstance(self._seats.tell_seats(seating, updated.encode()), api.Written):
                    self._running[attempt] = (seating, updated)
                else:
                    del self._running[attempt]  # the game is over

    def _tell_vitals(self, shown: Mapping[str, gpus.Gpu]) -> None:
        now_ms, skew = vitals.now_and_skew(self._ledger)
        heartbeat = vitals.Vitals(
            host=self._settings.host,
            at_ms=now_ms,
            clock_skew_seconds=skew,
            version=version.build(),
            role="gpu",
            cpus=os.cpu_count() or 0,
            disk_free_bytes=_free(self._settings.directory),
            gpus=tuple(gpu.vitals() for gpu in shown.values()),
        )
        self._ledger.set_vitals(heartbeat.host, heartbeat.encode())


def _free(path: pathlib.Path) -> int | None:
    try:
        filesystem = os.statvfs(path)
    except OSError:
        return None
    return filesystem.f_bavail * filesystem.f_frsize


def _measure_speed() -> tuple[int, str]:
    """Return how fast this box counts positions, in positions a second, and their known number."""
    runs = [_speed_run() for _ in range(RUNS)]
    return round(statistics.median(speed for speed, _ in runs)), str(runs[0][1])


def _speed_run() -> tuple[float, int]:
    began = time.perf_counter()
    count = _perft(chess.Board(POSITION), DEPTH)
    return count / (time.perf_counter() - began), count


def _perft(board: chess.Board, depth: int) -> int:
    if depth == 0:
        return 1
    count = 0
    for move in list(board.legal_moves):
        board.push(move)
        count += _perft(board, depth - 1)
        board.pop()
    return count


def memory_group(parent: pathlib.Path, seat: str, limit_mb: int) -> pathlib.Path:
    """Make the control group that bounds a seat's memory below ``parent``.

    Never RLIMIT_AS: CUDA reserves far more address space than it uses. The group is bounded before
    anything runs in it, swap included; only groups of seats that nobody will take any more are
    removed. Raise ``HostError`` where none can be made.
    """
    _forget_old_groups(parent)
    group = parent / f"seat-{seat}"
    limit = str(limit_mb << 20)
    try:
        group.mkdir()
        legacy = (group / _LEGACY[0]).exists()
        memory, swap = _LEGACY if legacy else _UNIFIED
        (group / memory).write_text(limit)
        with contextlib.suppress(OSError):  # version 2: who is killed for memory, is killed whole
            (group / "memory.oom.group").write_text("1")
        with contextlib.suppress(OSError):  # a host without swap has no such file
            (group / swap).write_text(limit if legacy else "0")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise errors.HostError(
            f"no control group for memory can be made in {parent}: {error}; delegate one to this"
            " user (FARM_BOX_CGROUP), or unset FARM_BOX_MEMORY_MB"
        ) from error
    return group


def _forget_old_groups(parent: pathlib.Path) -> None:
    for old in parent.glob("seat-*"):
        with contextlib.suppress(OSError):  # somebody still runs in it, or it is gone
            if time.time() - old.stat().st_mtime > OLD_GROUP_SECONDS:
                old.rmdir()
