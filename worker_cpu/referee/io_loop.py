"""The referee's I/O loop: all that it listens to, in one poll.

Engines' output, the link, the dead man. Invariants:

* nothing here waits for anybody but in ``hear``, whose time-out the caller gives;
* every chunk is stamped right after the read that brought it, the seat on move first;
* chunks go to the link whole and in order, in batches: the socket is only tried every
  ``FORWARD_NS`` while a clock runs, so the link costs the clock nothing;
* between the write that starts a search and the next wait nothing is done: the link is
  told of that write when there is something else to tell, in the right order;
* the link gets so much of an engine's output a move and no more: an engine that floods pays
  for it by its own clock, and makes nobody else late;
* an engine that ended is noted once, in ``ended``, in the order in which it was seen.
"""

from __future__ import annotations

import dataclasses
import select
import time
from collections.abc import Mapping
from typing import Literal, NamedTuple

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import text
from worker_cpu.engines import local, remote, supervisor_client
from worker_cpu.wire import errors, frames

FORWARD_NS = 50_000_000  # ns: how old a chunk may get before the link has it, for display
BUSY_FORWARD_NS = 250_000_000  # ns: likewise while output comes; what is heard goes first
END_WAIT_MS = 1_000  # ms: from the end of an engine's output to the end of its process
DEAD_MAN_LOST = "engines' supervisor lost"  # a cause of interruptions
NO_MORE_EXCUSES = "no more losses of this engine are excused in this event"
SIDES: tuple[contract.Side, ...] = ("white", "black")
SANDBOX_FAILED = "no sandbox"  # likewise: the host's fault, never an engine's
MOVE_BYTES = 16 << 20  # bytes of an engine's output that the link gets, from one `go` to the next
CHUNK_BYTES = 64  # bytes: what a chunk costs of that beside its content
STALE_READS = 64  # reads of old output before `go`, 4 MiB: then a spammer gets no more


def interruption(
    error: supervisor_client.DeadManKillsError | supervisor_client.DeadManLostError,
) -> errors.InterruptedGameError:
    """Turn the dead man's last words, or their absence, into an interruption."""
    if isinstance(error, supervisor_client.DeadManKillsError):
        return errors.InterruptedGameError(str(error), "said by the engines' supervisor")
    return errors.InterruptedGameError(DEAD_MAN_LOST, str(error))


class Heard(NamedTuple):
    """Output of an engine (``b''`` at its end), stamped after the read (monotonic ns)."""

    seat: local.LocalSeat
    data: bytes
    at_ns: int


class IoLoop:
    """Both seats, the link's channel and the dead man, around one poll object."""

    def __init__(self, channel: frames.Channel, dead_man: supervisor_client.DeadMan) -> None:
        self.channel = channel
        self.dead_man = dead_man
        self.seats: dict[contract.Side, local.LocalSeat] = {}
        self.ended: list[local.LocalSeat] = []
        self.frames: list[frames.Frame] = []
        self.traffic = True  # chunks go to the link
        self.excuses: Mapping[contract.Side, int] = {}  # as the order's
        self._out: dict[int, local.LocalSeat] = {}
        self._err: dict[int, local.LocalSeat] = {}
        self._in: dict[int, local.LocalSeat] = {}
        self._exits: dict[int, local.LocalSeat] = {}
        self._dropped: dict[local.LocalSeat, int] = {}
        self._forwarded: dict[local.LocalSeat, int] = {}
        self._torn: dict[tuple[local.LocalSeat, Literal["<", "!"]], bytes] = {}  # begun lines
        self._started: tuple[local.LocalSeat, int, bytes] | None = None
        self._pushed_ns = 0
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        self._poll.register(dead_man.fileno(), select.POLLIN)

    def seat(self, seat: local.LocalSeat) -> None:
        """Listen to an engine that has been started."""
        self.seats[seat.side] = seat
        self._out[seat.stdout] = seat
        self._err[seat.stderr] = seat
        self._poll.register(seat.stdout, select.POLLIN)
        self._poll.register(seat.stderr, select.POLLIN)
        if seat.pidfd >= 0:  # a child may hold the pipes of an engine that is gone
            self._exits[seat.pidfd] = seat
            self._poll.register(seat.pidfd, select.POLLIN)

    def unseat(self, seat: local.LocalSeat) -> None:
        """Forget an engine that is gone, and close its pipes."""
        del self.seats[seat.side]
        self._note_end(seat)
        self.ended.remove(seat)
        for fd, table in ((seat.stderr, self._err), (seat.pidfd, self._exits)):
            if table.pop(fd, None) is not None:
                self._poll.unregister(fd)
        self.forward_torn()
        self._dropped.pop(seat, None)
        self._forwarded.pop(seat, None)
        seat.close()

    def hear(self, timeout_ns: int, first: local.LocalSeat | None = None) -> list[Heard]:
        """Wait for output up to ``timeout_ns`` and return it, ``first``'s before all else.

        Raises ``InterruptedGameError`` when the dead man kills or is lost, and
        ``ChannelClosedError`` when the link is gone.
        """
        heard: list[Heard] = []
        wait_ns = timeout_ns if not self.channel.queued else min(timeout_ns, FORWARD_NS)
        ready = self._poll.poll(max(0, wait_ns) / 1e6)
        if first is not None and len(ready) > 1:
            ready.sort(key=lambda event: event[0] != first.stdout)
        for fd, _ in ready:
            if fd in self._out:
                self._read(self._out[fd], heard)
            elif fd in self._err:
                self._read_stderr(self._err[fd])
            elif fd in self._exits:
                self._exited(fd, heard)
            else:
                self._attend(fd)
        if self.channel.queued:
            age_ns = time.monotonic_ns() - self._pushed_ns
            if age_ns >= (BUSY_FORWARD_NS if ready else FORWARD_NS):
                self._push()
        return heard

    def say(self, seat: local.LocalSeat, commands: bytes) -> int:
        """Write to an engine; return the stamp taken immediately before the write."""
        at_ns = time.monotonic_ns()
        alive = seat.write(commands)
        self._forward(seat, ">", at_ns, commands)
        self._look_after_write(seat, alive=alive)
        return at_ns

    def start(self, seat: local.LocalSeat, commands: bytes) -> int:
        """Write to an engine as ``say``, and do nothing more that could delay it."""
        at_ns = time.monotonic_ns()
        alive = seat.write(commands)
        self._started = (seat, at_ns, commands)
        self._forwarded[seat] = 0
        if not alive or seat.unsent:
            self._look_after_write(seat, alive=alive)
        return at_ns

    def _look_after_write(self, seat: local.LocalSeat, *, alive: bool) -> None:
        if not alive:
            self._note_end(seat)
        elif seat.unsent and seat.stdin not in self._in:
            self._in[seat.stdin] = seat
            self._poll.register(seat.stdin, select.POLLOUT)

    def drain(self, seat: local.LocalSeat) -> None:
        """Set aside what an engine wrote before its clock starts: it is no answer."""
        for _ in range(STALE_READS):
            chunk = seat.read()
            if chunk is None:
                return
            if not chunk:
                self._note_end(seat)
                return
            seat.set_aside(chunk)
            self._forward(seat, "<", time.monotonic_ns(), chunk)

    def log_answer(self, seat: local.LocalSeat, line: bytes, at_ns: int) -> None:
        """Let the link have an answer that came behind more output than it gets."""
        if self._dropped.get(seat) and self.traffic:
            self._note_dropped()
            chunk = frames.chunk(_letter(seat), "<", at_ns, line + b"\n")
            self.channel.offer(frames.Kind.CHUNK, chunk)

    def _note_dropped(self) -> None:
        for seat, count in self._dropped.items():
            note = f"[referee: {count} bytes were not kept]\n".encode()
            chunk = frames.chunk(_letter(seat), "!", time.monotonic_ns(), note)
            self.channel.offer(frames.Kind.CHUNK, chunk)
        self._dropped.clear()

    def send(self, kind: frames.Kind, payload: bytes) -> None:
        """Send to the link, with all chunks before it; waits, so no clock may run."""
        if kind is frames.Kind.FINISHED:
            self.forward_torn()
        self._tell_start()
        self._note_dropped()
        self.frames.clear()
        self.channel.send(kind, payload)

    def send_ply(self, payload: bytes) -> None:
        """Send a completed ply at once: the link is waited for."""
        self.frames.clear()
        self.channel.overtake(frames.Kind.PLY, payload)

    def show_ply(self, payload: bytes) -> None:
        """Queue a completed ply for who looks on: it is sent with what is said of the next."""
        self.channel.offer(frames.Kind.PLY, payload)

    def wait_for_go_on(self) -> None:
        """Wait until the link has journaled the ply; output meanwhile is old output."""
        while not any(frame.kind is frames.Kind.GO_ON for frame in self.frames):
            for heard in self.hear(10**12):
                heard.seat.set_aside(heard.data)
        self.frames.clear()

    def runs(self, seat: local.LocalSeat) -> bool:
        """Say whether an engine's process still runs."""
        return seat.pidfd in self._exits

    def close(self) -> None:
        """Close everything; the dead man then kills what is left."""
        for seat in self.seats.values():
            seat.close()
        self.channel.close()
        self.dead_man.close()

    def disconnected(
        self, seat: local.LocalSeat, note: str = "", output: bytes | None = None
    ) -> contract.Outcome:
        """Judge an engine that went away; first ask the dead man who ended it.

        With ``output``, what it wrote to stdout last, the verdict has its last line: of stderr,
        else of this. Without it what an engine said stays with the evidence: a season's verdicts
        are public.
        Raises ``InterruptedGameError`` when it was the farm's own, or the kernel's.
        """
        end = self.asked(seat)
        how = end.status or ("closed its pipes but runs on" if end.running else end.reason)
        said = [how, note, end.reason if end.status else ""]
        if output is not None:
            said.append(self._last_line(seat, output))
        return verdict.disconnect(seat.side, "; ".join(filter(None, said)))

    def _last_line(self, seat: local.LocalSeat, output: bytes) -> str:
        """Return the last line that an engine wrote, printable and bounded, '' if there is none."""
        for _ in range(STALE_READS):
            chunk = seat.read_stderr() if seat.stderr in self._err else None
            if not chunk:
                break
            self._forward(seat, "!", time.monotonic_ns(), chunk)
        for data in (seat.stderr_tail, output[-local.STDERR_BYTES :]):
            lines = map(text.one_line, data.decode(errors="replace").split("\n"))
            if line := next(filter(None, reversed(list(lines))), ""):
                return local.last_line(line)
        return ""

    def asked(
        self, seat: local.LocalSeat, wait_ms: int = END_WAIT_MS
    ) -> supervisor_client.EngineEnd:
        """Ask the dead man how an engine is; an end that is not its own interrupts the game."""
        try:
            end = self.dead_man.ask(seat.name, wait_ms)
        except (supervisor_client.DeadManKillsError, supervisor_client.DeadManLostError) as error:
            raise interruption(error) from error
        if isinstance(seat, remote.RemoteSeat):
            end = seat.end(end)
        if not end.by_farm:
            return end
        evidence = f"{seat.side}'s engine: {end.status}"
        if end.reason != supervisor_client.OUT_OF_MEMORY:
            raise errors.InterruptedGameError(end.reason, evidence)
        if self.excuses.get(seat.side, 1) > 0:
            raise errors.InterruptedGameError(end.reason, evidence, excused=seat.side)
        return dataclasses.replace(end, by_farm=False, reason=f"{end.reason}; {NO_MORE_EXCUSES}")

    def _read(self, seat: local.LocalSeat, heard: list[Heard]) -> None:
        chunk = seat.read()
        at_ns = time.monotonic_ns()
        if chunk is None:
            return
        heard.append(Heard(seat, chunk, at_ns))
        if chunk:
            self._forward(seat, "<", at_ns, chunk)
        else:
            self._note_end(seat)

    def _exited(self, fd: int, heard: list[Heard]) -> None:
        """Take an engine's last words, then note its end."""
        seat = self._exits.pop(fd)
        self._poll.unregister(fd)
        for _ in range(STALE_READS):
            before = len(heard)
            if seat.stdout in self._out:
                self._read(seat, heard)
            if len(heard) == before:
                break
        self._note_end(seat)

    def _read_stderr(self, seat: local.LocalSeat) -> None:
        chunk = seat.read_stderr()
        if chunk:
            self._forward(seat, "!", time.monotonic_ns(), chunk)
        elif chunk is not None:
            self._poll.unregister(seat.stderr)
            del self._err[seat.stderr]

    def _attend(self, fd: int) -> None:
        if fd in self._in:
            self._resume(self._in[fd])
        elif fd == self.dead_man.fileno():
            self._listen_to_dead_man()
        elif fd == self.channel.fileno():
            self.frames += self.channel.ready()

    def _resume(self, seat: local.LocalSeat) -> None:
        if not seat.resume():
            self._note_end(seat)
        elif not seat.unsent:
            self._poll.unregister(seat.stdin)
            del self._in[seat.stdin]

    def _listen_to_dead_man(self) -> None:
        try:
            self.dead_man.listen()
        except (supervisor_client.DeadManKillsError, supervisor_client.DeadManLostError) as error:
            raise interruption(error) from error

    def _note_end(self, seat: local.LocalSeat) -> None:
        if seat not in self.ended:
            self.ended.append(seat)
        seat.forget_unsent()
        for fd, table in ((seat.stdout, self._out), (seat.stdin, self._in)):
            if fd in table:
                self._poll.unregister(fd)
                del table[fd]

    def _forward(
        self, seat: local.LocalSeat, direction: Literal["<", ">", "!"], at_ns: int, data: bytes
    ) -> None:
        if not self.traffic:
            return
        if direction != ">":
            data = self._whole_lines(seat, direction, data)
        if data:
            self._offer(seat, direction, at_ns, data)

    def _offer(
        self, seat: local.LocalSeat, direction: Literal["<", ">", "!"], at_ns: int, data: bytes
    ) -> None:
        if direction != ">":
            forwarded = self._forwarded.get(seat, 0) + len(data) + CHUNK_BYTES
            if forwarded > MOVE_BYTES:
                self._dropped[seat] = self._dropped.get(seat, 0) + len(data)
                return
            self._forwarded[seat] = forwarded
        self._tell_start()
        chunk = frames.chunk(_letter(seat), direction, at_ns, data)
        if not self.channel.offer(frames.Kind.CHUNK, chunk):
            self._dropped[seat] = self._dropped.get(seat, 0) + len(data)

    def _whole_lines(
        self, seat: local.LocalSeat, direction: Literal["<", "!"], data: bytes
    ) -> bytes:
        """Return what is whole with these bytes; a line has the stamp of the read that ends it.

        An engine that does not buffer writes a line in a dozen pieces. What is longer than one
        read is not waited for.
        """
        torn = (seat, direction)
        data = self._torn.pop(torn, b"") + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > local.READ_BYTES:
            return data
        if rest := data[end:]:
            self._torn[torn] = rest
        return data[:end]

    def forward_torn(self) -> None:
        """Let the link have the lines that engines did not end."""
        for (seat, direction), rest in self._torn.items():
            self._offer(seat, direction, time.monotonic_ns(), rest)
        self._torn.clear()

    def _tell_start(self) -> None:
        if self._started is not None:
            (seat, at_ns, commands), self._started = self._started, None
            self._forward(seat, ">", at_ns, commands)

    def _push(self) -> None:
        self._tell_start()
        self.channel.push()
        self._pushed_ns = time.monotonic_ns()


def _letter(seat: local.LocalSeat) -> Literal["w", "b"]:
    return "w" if seat.side == "white" else "b"
