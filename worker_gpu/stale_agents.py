"""End agents whose attempt is over: their engines must be gone before the GPU is given on.

An agent that lost its hall ends by itself at the end of its grace; the next attempt need not
wait for that. Invariants: only an agent is signalled, and only while its process is known to
be one of this box; what a killed agent's engine left is found by the seat that its
environment names, and killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

import structlog

from orchestrator.common import errors
from worker_gpu import agent

log = structlog.get_logger()

END_SECONDS = 3.0  # s: an agent kills and reaps within milliseconds
ENGINE_END_SECONDS = 20.0  # s: the kernel takes back a large hash and a GPU's memory
KEPT_RUNS = 400  # seats whose logs are kept: a GPU league's last days


class Runs:
    """The seats of a box on its disk: ``seats/<seat>.json`` and ``run/<seat>/``."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        for name in ("seats", "run", "gpus", "incoming", "scratch"):
            (root / name).mkdir(parents=True, exist_ok=True)
            # Engines that run as other users find their own scratch, and nothing else.
            (root / name).chmod(0o711 if name == "scratch" else 0o700)

    def write(self, seat: str, order: dict[str, object]) -> None:
        """Prepare a seat: from now on its agent can be started."""
        path = self._root / "seats" / f"{seat}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(order), encoding="utf-8")
        part.replace(path)

    def scratch(self, seat: str, *, others: bool = False) -> pathlib.Path:
        """Make the directory that an engine may write to; ``others``: as another user.

        Its name ends with what nobody guesses, so it is no other engine's to find.
        """
        path = self._root / "scratch" / seat
        path.mkdir(exist_ok=True)
        if others:
            path.chmod(0o777)
        return path

    def engines(self) -> set[int]:
        """Return the process ids of all engines and agents of this box, with their children.

        Those that outlived a killed agent are among them: they are ended, not waited for.
        """
        seats = [seat for seat, _ in self._orders()]
        pids = set(_named(seats))
        for seat in seats:
            identity = self._identity(seat)
            for pid in (identity.get("agent", 0), identity.get("engine", 0)):
                if pid:
                    pids |= {pid, *agent.members(pid)}
        return pids

    def end_stale(self, hall: str, attempt: str, gpus: frozenset[str]) -> None:
        """End every agent that has one of the GPUs, or is of the same hall, for another attempt.

        Raises:
            HostError: an engine of theirs does not end.
        """
        for seat, order in list(self._orders()):
            ours = order.get("hall") == hall or gpus.intersection(order.get("gpus", ()))
            if ours and order.get("attempt") != attempt:
                self.end(seat)

    def end(self, seat: str) -> None:
        """End a seat for good: its order goes first, so that nobody starts it again.

        Raises:
            HostError: its engine does not end; once the order is gone, it counts as a foreign
                process, with which a GPU is not given on.
        """
        (self._root / "seats" / f"{seat}.json").unlink(missing_ok=True)
        with contextlib.ExitStack() as open_handles:
            engine = _handles(_named([seat]), open_handles)  # that of a killed agent dies unnamed
            running = self._agent(seat)
            agents = _handles([] if running is None else [running], open_handles)
            for pid, handle in agents.items():
                log.warning("agent.ended", seat=seat, agent=pid)
                with contextlib.suppress(OSError, ValueError):
                    self._tell(seat)
                if not _ends(handle, END_SECONDS):
                    _kill(handle)
                    _ends(handle, END_SECONDS)
            _end_engine(seat, engine, open_handles)

    def prune(self) -> None:
        """Forget the oldest seats; those whose agent runs are none of them."""
        runs = sorted((self._root / "run").iterdir(), key=lambda path: path.stat().st_mtime)
        for path in runs[:-KEPT_RUNS]:
            if self._agent(path.name) is None:
                (self._root / "seats" / f"{path.name}.json").unlink(missing_ok=True)
                shutil.rmtree(path, ignore_errors=True)
                shutil.rmtree(self._root / "scratch" / path.name, ignore_errors=True)

    def _orders(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in (self._root / "seats").glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                yield path.stem, json.loads(path.read_bytes())

    def _identity(self, seat: str) -> dict[str, int]:
        try:
            identity: dict[str, int] = json.loads(
                (self._root / "run" / seat / "identity").read_bytes()
            )
        except (OSError, ValueError):
            return {}
        return identity if self._is_agent(identity.get("agent", 0)) else {}

    def _agent(self, seat: str) -> int | None:
        return self._identity(seat).get("agent")

    def _is_agent(self, pid: int) -> bool:
        """Say whether a process is an agent of this box, not one that has got its number."""
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        named = any(word.endswith(b"agent.py") for word in command)
        return named and str(self._root).encode() in command

    def _tell(self, seat: str) -> None:
        """Tell an agent to end its engine at once."""
        here = os.open(self._root / "run" / seat, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(END_SECONDS)
                channel.connect(f"/proc/self/fd/{here}/socket")  # a socket's path must be short
                channel.sendall(agent.encode("stop", 0, 0, b"the box has given its GPU on"))
                while channel.recv(1 << 16):
                    pass
        finally:
            os.close(here)


def _end_engine(seat: str, engine: dict[int, int], open_handles: contextlib.ExitStack) -> None:
    """Kill what an agent left of its engine and wait until it is gone; raise ``HostError``."""
    deadline = time.monotonic() + ENGINE_END_SECONDS
    left = engine | _handles(_named([seat]), open_handles)
    while left:
        for handle in left.values():
            _kill(handle)
        for pid, handle in left.items():
            if not _ends(handle, deadline - time.monotonic()):
                raise errors.HostError(
                    f"process {pid} of the engine in seat {seat} was killed and is still there"
                    f" after {ENGINE_END_SECONDS:g} s: see what holds it (`ps -o stat,wchan {pid}`)"
                )
        left = _handles(_named([seat]), open_handles)  # one may have forked before it was killed


def _handles(pids: Iterable[int], open_handles: contextlib.ExitStack) -> dict[int, int]:
    """Return handles of the processes that are there: a number may soon be another's."""
    handles = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            handles[pid] = os.pidfd_open(pid)
            open_handles.callback(os.close, handles[pid])
    return handles


def _kill(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _ends(handle: int, seconds: float) -> bool:
    """Wait for a process to end, at most that long; one that nobody has reaped yet has ended."""
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    return bool(ended.poll(max(0.0, seconds) * 1000))


def _named(seats: Iterable[str]) -> list[int]:
    """Return the processes whose environment names one of these seats."""
    marks = {f"FARM_SEAT={seat}".encode() for seat in seats}
    pids = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if marks.intersection((entry / "environ").read_bytes().split(b"\0")):
                    pids.append(int(entry.name))
    return pids
