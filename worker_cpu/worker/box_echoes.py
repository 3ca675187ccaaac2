"""The way to a GPU box, measured: echoes of a seat that runs nothing.

Apart from the fairness gate because of its SSH library: who has no box loads none.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterator

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import agent_wire, ssh

ECHOES = 40
ECHO_SECONDS = 10.0  # s: for one echo; a link that is slower plays nothing


def measure(seat: contract.SeatAddress) -> list[tuple[int, int]]:
    """Return round trips and clock offsets (ns), one after the other; raise ``HostError``."""
    try:
        with contextlib.closing(ssh.Connection(seat, ECHO_SECONDS)) as connection:
            echoes = list(_measured(connection, seat.secret))
            _say(connection, agent_wire.Message("end", 1, 0, b'{"quit":"","quit_ms":0}'))
            _await_end(connection)
            return echoes
    except (OSError, agent_wire.StreamError) as error:
        raise errors.HostError(f"{seat.box}: {error or type(error).__name__}") from error


def _await_end(connection: ssh.Connection) -> None:
    """Wait until the agent hangs up: its seat is free then."""
    parser = agent_wire.Parser()
    with contextlib.suppress(errors.HostError, OSError):
        while True:
            for message in _heard(connection, parser):
                if message.kind == "over":
                    _say(connection, agent_wire.Message("grant", message.number, 0))


def _measured(connection: ssh.Connection, secret: str) -> Iterator[tuple[int, int]]:
    parser = agent_wire.Parser()
    _say(connection, agent_wire.Message("join", 0, 0, secret.encode()))
    for number in range(1, ECHOES + 1):
        asked_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        _say(connection, agent_wire.Message("echo", number, 0))
        theirs = _echo(connection, parser, number)
        rtt_ns = time.monotonic_ns() - asked_ns
        yield rtt_ns, theirs - wall_ns - rtt_ns // 2


def _echo(connection: ssh.Connection, parser: agent_wire.Parser, number: int) -> int:
    while True:
        for message in _heard(connection, parser):
            if message.kind == "gone":
                raise errors.HostError(message.payload.decode(errors="replace"))
            if message.kind == "ask":
                _say(connection, agent_wire.Message("grant", 0, message.number))
            if message.kind == "echo" and message.number == number:
                return int(message.payload)


def _heard(connection: ssh.Connection, parser: agent_wire.Parser) -> list[agent_wire.Message]:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(ECHO_SECONDS * 1000):
        raise errors.HostError(f"no answer within {ECHO_SECONDS:g} s")
    data = connection.receive()
    if data == b"":
        raise errors.HostError("the channel was closed")
    return parser.feed(data or b"")


def _say(connection: ssh.Connection, message: agent_wire.Message) -> None:
    data = message.encode()
    while data:
        data = data[connection.send(data) :]
