"""The bridge: the one process of a hall that speaks SSH to the agent of a remote seat.

``python -m worker_cpu.engines.ssh_bridge <SeatAddress as JSON>``, started by the dead man in the
engine's place: the referee polls pipes, as with every engine, and no thread of an SSH
library stands beside its clock. Invariants:

* commands go to the agent once and in order, records to the referee likewise, over however
  many connections;
* it grants the agent's asks as long as it lives itself: referee, dead man and lease stand
  behind it;
* it measures the round trip to the agent all the time, and tells the referee the longest of late
  before each answer: more the network cannot have taken of that search;
* a connection that is silent is given up and made again until the grace is over; then the
  referee is told why (``lost``), and the game is an interruption, never a verdict.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import select
import sys
import time
from typing import NoReturn

from orchestrator import contract
from worker_cpu.engines import agent_wire, ssh

READ_BYTES = 1 << 16  # bytes: one read
CONNECT_SECONDS = 8.0  # s: a handshake over a slow and lossy line
RETRY_SECONDS = 0.25  # s: between two tries
SILENT_BEATS = 3  # beats without a word: the connection is dead
JOIN_SECONDS = 10.0  # s: the same before the first word: an agent starts, and reads its network
POLL_MS = 50  # ms: between two tries to send what the channel did not take
ECHO_NS = 250_000_000  # ns: between two measurements of the round trip
TRIPS = 100  # measurements that a search's round trip is judged by
LAST_SECONDS = 1.0  # s: for the last words to the agent
LINK, HOST = "link", "host"  # causes of interruptions
_NS = 1_000_000_000


class Bridge:
    """The state between one referee and one agent."""

    def __init__(self, seat: contract.SeatAddress) -> None:
        self._seat = seat
        self._grace_ns = seat.grace_ms * 1_000_000
        self._silent_ns = seat.beat_ms * 1_000_000 * SILENT_BEATS
        self._commands: collections.deque[tuple[int, bytes]] = collections.deque()
        self._next = 1  # the number of the referee's next command
        self._from_referee = agent_wire.Parser()
        self._from_agent = agent_wire.Parser()
        self._last = 0  # the last record that went to the referee
        self._heard_ns = time.monotonic_ns()
        self._unsent = b""
        self._joined = False
        self._over = False
        self._orphaned = False
        self._problem = ""
        self._trips: collections.deque[int] = collections.deque(maxlen=TRIPS)
        self._echo = 0  # the last that was asked for
        self._echo_ns = 0  # since when it is waited for, 0 where it has come
        self._echo_due_ns = 0
        self._away_ns = 0  # how long the link was away in this search

    def run(self) -> None:
        """Serve until the engine's end was told or the referee is gone."""
        while not (self._over or self._orphaned):
            connection = self._connect()
            try:
                self._serve(connection)
            except (OSError, agent_wire.StreamError) as error:
                self._problem = str(error) or type(error).__name__
            finally:
                connection.close()
            if not (self._over or self._orphaned):
                self._note(f"the link broke: {self._problem}")
                time.sleep(RETRY_SECONDS)

    # -- the connection ----------------------------------------------------------------

    def _connect(self) -> ssh.Connection:
        """Connect within the grace; tell the referee when it is over."""
        while True:
            left_ns = self._heard_ns + self._grace_ns - time.monotonic_ns()
            if left_ns <= 0:
                self._lose(LINK, f"nothing heard for {self._grace_ns / _NS:g} s: {self._problem}")
            try:
                connection = ssh.Connection(self._seat, min(CONNECT_SECONDS, left_ns / _NS))
            except ssh.RefusedHostError as error:
                self._lose(HOST, str(error))
            except OSError as error:
                self._problem = str(error) or type(error).__name__
            else:
                self._joined, self._from_agent = False, agent_wire.Parser()
                joining = agent_wire.Message("join", self._last, 0, self._seat.secret.encode())
                self._unsent = joining.encode()
                return connection
            self._look_for_orphanage(RETRY_SECONDS)

    def _look_for_orphanage(self, seconds: float) -> None:
        """Wait a moment; end when the referee is gone."""
        poll = select.poll()
        poll.register(0, 0)  # its hang-up only
        if poll.poll(seconds * 1000):
            sys.exit(0)

    def _serve(self, connection: ssh.Connection) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(connection.fileno(), select.POLLIN)
        begun_ns = time.monotonic_ns()
        while not (self._over or self._orphaned):
            self._measure()
            self._push(connection)
            ready = dict(poll.poll(POLL_MS if self._unsent else 250))
            if connection.fileno() in ready:
                self._receive(connection)
            if 0 in ready:
                self._read_referee()
            silence_ns = time.monotonic_ns() - max(self._heard_ns, begun_ns)
            if silence_ns > self._patience_ns():
                raise ConnectionError(f"nothing heard for {silence_ns / _NS:.1f} s")
        self._say_last(connection)

    def _measure(self) -> None:
        """Ask for an echo when one is due; being late with that counts, too."""
        now = time.monotonic_ns()
        if self._joined and not self._echo_ns and now >= self._echo_due_ns:
            self._ask_echo(self._echo_due_ns or now)

    def _ask_echo(self, since_ns: int) -> None:
        self._echo += 1
        self._echo_ns = since_ns
        self._say(agent_wire.Message("echo", self._echo, 0))

    def _measured(self, number: int) -> None:
        if number == self._echo and self._echo_ns:
            now = time.monotonic_ns()
            self._trips.append(now - self._echo_ns)
            self._echo_ns, self._echo_due_ns = 0, now + ECHO_NS

    def _longest_ns(self) -> int:
        """Return the longest round trip of late, one that is not over yet included."""
        waited_ns = time.monotonic_ns() - self._echo_ns if self._echo_ns else 0
        return max([waited_ns, self._away_ns, *self._trips])

    def _patience_ns(self) -> int:
        """Return how long a connection may be silent; longer, within the grace, until it joined."""
        if self._joined:
            return self._silent_ns
        return max(self._silent_ns, min(round(JOIN_SECONDS * _NS), self._grace_ns))

    def _push(self, connection: ssh.Connection) -> None:
        while self._unsent:
            sent = connection.send(self._unsent)
            if not sent:
                return
            self._unsent = self._unsent[sent:]

    def _say_last(self, connection: ssh.Connection) -> None:
        deadline = time.monotonic() + LAST_SECONDS
        with contextlib.suppress(OSError):
            while self._unsent and time.monotonic() < deadline:
                self._push(connection)
                time.sleep(0.001)
        # A channel that is closed at once may lose what it has not sent yet: let it be read.
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        with contextlib.suppress(OSError):
            while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                if connection.receive() == b"":
                    return

    # -- the agent's words -------------------------------------------------------------

    def _receive(self, connection: ssh.Connection) -> None:
        data = connection.receive()
        if data is None:
            return
        if not data:
            raise ConnectionError("the channel was closed")
        if not self._joined:  # it was away, or has not been there yet
            self._away_ns = max(self._away_ns, time.monotonic_ns() - self._heard_ns)
        self._heard_ns = time.monotonic_ns()
        for message in self._from_agent.feed(data):
            self._take(message)

    def _take(self, message: agent_wire.Message) -> None:
        match message.kind:
            case "gone":
                cause = HOST if message.number else LINK
                self._lose(cause, message.payload.decode(errors="replace"))
            case "joined":
                self._rejoin(message.number)
            case "echo":
                self._measured(message.number)
            case "ask":
                self._say(agent_wire.Message("grant", self._last, message.number))
            case "cut":
                self._last = max(self._last, message.number)
                self._note(f"{message.payload.decode(errors='replace')} records were dropped")
            case _ if message.number > self._last:
                self._last = message.number
                self._pass_on(message)

    def _rejoin(self, done: int) -> None:
        """Send again what the last connection took with it."""
        self._forget_commands(done)
        self._joined = True
        self._echo_ns = self._echo_due_ns = 0
        for _, command in self._commands:
            self._unsent += command
        if self._problem:
            self._note("the link is back")
            self._problem = ""

    def _pass_on(self, message: agent_wire.Message) -> None:
        """Hand a record to the referee; what it says on stderr goes where stderr goes."""
        if message.kind == "err":
            _write(2, message.payload)
            return
        if message.kind == "went":
            self._forget_commands(int(message.payload))
        before = b""
        if message.kind in ("ans", "late"):
            before = agent_wire.Message("trip", 0, self._longest_ns()).encode()
        _write(1, before + message.encode())
        if message.kind == "over":
            self._say(agent_wire.Message("grant", self._last, 0))
            self._over = True

    def _forget_commands(self, done: int) -> None:
        while self._commands and self._commands[0][0] <= done:
            self._commands.popleft()

    def _say(self, message: agent_wire.Message) -> None:
        self._unsent += message.encode()

    # -- the referee -------------------------------------------------------------------

    def _read_referee(self) -> None:
        data = os.read(0, READ_BYTES)
        if not data:
            self._orphaned = True
            ending = json.dumps({"quit": "", "quit_ms": 0}).encode()
            number = self._commands[-1][0] + 1 if self._commands else self._next
            self._command(agent_wire.Message("end", number, 0, ending))
        for message in self._from_referee.feed(data):
            self._command(message)

    def _command(self, message: agent_wire.Message) -> None:
        self._next = message.number + 1
        command = message.encode()
        self._commands.append((message.number, command))
        if message.kind == "go":
            self._away_ns = 0 if self._joined else self._away_ns
        if self._joined:
            self._unsent += command
            if message.kind == "go" and not self._echo_ns:  # it goes the same way
                self._ask_echo(time.monotonic_ns())

    def _note(self, text: str) -> None:
        _write(2, f"[link: {text}]\n".encode())

    def _lose(self, cause: str, evidence: str) -> NoReturn:
        """Tell the referee why there is no engine any more, and end."""
        loss = json.dumps({"cause": cause, "evidence": f"{self._seat.box}: {evidence}"}).encode()
        _write(1, agent_wire.Message("lost", 0, time.monotonic_ns(), loss).encode())
        sys.exit(0)


def _write(fd: int, data: bytes) -> None:
    """Write to the referee; one that is gone has the dead man end us."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:
        sys.exit(0)


def main(arguments: list[str]) -> int:
    """Run the bridge of the seat in the one argument."""
    seat = contract.SeatAddress.decode(arguments[0])
    Bridge(seat.model_copy(update={"secret": os.environ.pop(agent_wire.SECRET, "")})).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
