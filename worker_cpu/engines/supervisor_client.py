"""The referee's end of the dead man's socket: start engines, ask how they ended.

One request at a time; its reply is matched by number, notes may come in between.
Invariants: what the dead man said before it went is read before its silence is judged;
a dead man that is gone while engines may live is told apart from an engine that ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import local

OUT_OF_MEMORY = "out of memory: the kernel killed it"  # as supervisor.py and agent.py tell it
# s beyond the asked wait: the dead man answers within milliseconds, on a host whose cores others
# use up within many times that. One that has ended is seen at once, by its socket.
REPLY_SECONDS = 60.0
READ_BYTES = 1 << 16  # bytes: one read of the socket
GONE_SECONDS = 1.0  # s: killed processes end within milliseconds; who reaps them may not
GONE_LOOK_SECONDS = 0.002  # s: between two looks at them
PIDFD_SIGNAL_PROCESS_GROUP = 4  # linux/pidfd.h, since Linux 6.9


class DeadManKillsError(errors.HostError):
    """The dead man is killing everything, for the reason in the message."""


class DeadManLostError(errors.HostError):
    """The dead man is gone without a word; engines may be left."""


class SandboxFailedError(errors.HostError):
    """No sandbox could be made around an engine: the host's fault, no engine's."""


@dataclasses.dataclass(frozen=True)
class EngineEnd:
    """How an engine is, or how it ended: ``status`` is ``exit N`` or ``signal NAME``.

    ``by_farm`` when the farm or the kernel killed it, for ``reason``.
    """

    running: bool
    status: str | None
    by_farm: bool
    reason: str


class DeadMan:
    """A client of the dead man."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(0)
        self._socket = sock
        self._bytes = b""
        self._number = 0

    def fileno(self) -> int:
        """Return the socket's descriptor, for a poll loop."""
        return self._socket.fileno()

    def hello(self) -> None:
        """Let the dead man learn who its referee is, from the kernel."""
        self._request({"op": "hello"})

    def spawn(
        self,
        seat: local.LocalSeat,
        spec: contract.EngineSpec,
        environment: Mapping[str, str],
        cpus: Sequence[int] | None,
        confined: Mapping[str, Any] | None = None,
        start_ms: int = 0,
    ) -> str:
        """Start an engine at a seat; return '' or why it cannot be started.

        ``confined`` is what ``sandbox.confined`` made of it; without it the engine has
        no sandbox and no limits. Raises ``SandboxFailedError`` when the host's sandbox fails.
        The dead man answers when the sandbox is made and the program runs: that may take as
        long as an engine's start, ``start_ms``.
        """
        ends = seat.open()
        order = {
            "op": "spawn",
            "seat": seat.name,
            "argv": list(spec.command),
            "cwd": spec.directory,
            "env": dict(environment),
            "cpus": None if cpus is None else list(cpus),
            **(confined or {}),
        }
        try:
            fds = (ends.stdin, ends.stdout, ends.stderr)
            reply = self._request(order, fds, wait_seconds=start_ms / 1000)
        finally:
            ends.close()
        if "pid" in reply:
            seat.born(int(reply["pid"]))
        elif reply.get("host"):
            raise SandboxFailedError(str(reply["error"]))
        if "error" not in reply:
            return ""
        program = os.path.join(spec.directory or "", spec.command[0])  # noqa: PTH118 - keeps ./
        if "/" not in spec.command[0]:
            program = spec.command[0]  # looked for in PATH
        sandboxed = "sandbox" in (confined or {})
        return local.not_started(program, str(reply["error"]), sandboxed=sandboxed)

    def ask(self, seat: str, wait_ms: int) -> EngineEnd:
        """Ask how the engine of a seat ended; wait up to ``wait_ms`` for its end."""
        request = {"op": "ask", "seat": seat, "wait_ms": wait_ms}
        return _end(self._request(request, wait_seconds=wait_ms / 1000))

    def kill(self, seat: str, why: str) -> EngineEnd:
        """Kill the engine of a seat and all its processes; return how it ended."""
        return _end(self._request({"op": "kill", "seat": seat, "why": why}))

    def listen(self) -> None:
        """Read what came unasked; raise when the dead man kills or is gone."""
        self._read()

    def close(self) -> None:
        """Close the socket; the dead man then kills what is left and ends."""
        self._socket.close()

    def _request(
        self, order: dict[str, Any], fds: Sequence[int] = (), wait_seconds: float = 0.0
    ) -> dict[str, Any]:
        self._number += 1
        data = contract.dumps(order | {"id": self._number}).encode() + b"\n"
        deadline = time.monotonic() + wait_seconds + REPLY_SECONDS
        try:
            self._send(data, fds, deadline)
        except OSError:
            self._read()  # what it said last tells why; else it is lost
            raise DeadManLostError("the engines' supervisor takes no requests") from None
        while True:
            for message in self._read(deadline):
                if message.get("id") == self._number:
                    return message

    def _send(self, data: bytes, fds: Sequence[int], deadline: float) -> None:
        if fds:
            sent = socket.send_fds(self._socket, [data], list(fds), socket.MSG_NOSIGNAL)
            data = data[sent:]
        while data:
            self._wait(select.POLLOUT, deadline)
            data = data[self._socket.send(data, socket.MSG_NOSIGNAL) :]

    def _read(self, deadline: float | None = None) -> list[dict[str, Any]]:
        """Return the messages that are there; with a deadline, wait for the first."""
        if deadline is not None:
            self._wait(select.POLLIN, deadline)
        try:
            chunk = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            raise DeadManLostError("the engines' supervisor has ended without a reason")
        *lines, self._bytes = (self._bytes + chunk).split(b"\n")
        messages: list[dict[str, Any]] = [contract.loads(line) for line in lines]
        for message in messages:
            if message.get("note") == "kill":
                raise DeadManKillsError(str(message["why"]))
        return messages

    def _wait(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        began = time.monotonic()
        if not poll.poll(max(0.0, deadline - began) * 1000):
            raise DeadManLostError(
                f"the engines' supervisor has not answered for {time.monotonic() - began:.0f} s:"
                " other programs may use this machine's cores"
            )


def _end(reply: Mapping[str, Any]) -> EngineEnd:
    if "error" in reply:
        return EngineEnd(running=False, status=None, by_farm=False, reason=str(reply["error"]))
    return EngineEnd(
        running=bool(reply["running"]),
        status=reply["status"],
        by_farm=reply["by"] == "farm",
        reason=str(reply["reason"]),
    )


def kill_orphaned(seat: local.LocalSeat) -> None:
    """Kill an engine whose dead man is gone, with its group; never anybody else's.

    Its process descriptor names the process that was started, whatever has its number
    now. Where the kernel cannot signal a group by descriptor, the group is killed only
    while its leader is known to be the same process.
    """
    if seat.pidfd < 0:
        return
    try:
        signal.pidfd_send_signal(seat.pidfd, signal.SIGKILL, None, PIDFD_SIGNAL_PROCESS_GROUP)
    except ProcessLookupError:
        return
    except OSError:
        _kill_group_of_living(seat)


def _kill_group_of_living(seat: local.LocalSeat) -> None:
    ended = select.poll()
    ended.register(seat.pidfd, select.POLLIN)
    if not ended.poll(0):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(seat.pid, signal.SIGKILL)


def await_end(seat: local.LocalSeat) -> None:
    """Wait until a killed engine and its group are gone, which takes the kernel a moment."""
    deadline = time.monotonic() + GONE_SECONDS
    while seat.pidfd >= 0 and time.monotonic() < deadline:
        try:
            signal.pidfd_send_signal(seat.pidfd, 0, None, PIDFD_SIGNAL_PROCESS_GROUP)
        except OSError:
            return
        time.sleep(GONE_LOOK_SECONDS)
