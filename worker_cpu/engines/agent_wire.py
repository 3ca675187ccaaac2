"""The messages between a remote seat, its bridge and the agent beside its engine.

``KIND NUMBER STAMP LENGTH`` in a line, then the payload; which kinds there are, and what
their numbers mean, stands in ``worker_gpu/agent.py``, whose codec is the same one (the
agent is one file and imports nothing). The bridge adds ``lost``: the game is interrupted, and
``trip``: the longest round trip of late, in ns.
"""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.common import errors

# The bridge's environment has a seat's secret by this name: a command line is everybody's to read.
SECRET = "FARM_SEAT_SECRET"  # noqa: S105 - the name
HEAD_BYTES = 1 << 10  # bytes: no head of a message is longer
PAYLOAD_BYTES = 16 << 20  # bytes: a longer message is a broken stream


class StreamError(errors.HostError):
    """What came is no message: the other end is of another version, or no agent."""


class Message(NamedTuple):
    """One message; ``stamp`` is in ns on the clock of whoever wrote it."""

    kind: str
    number: int
    stamp: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """Write the message."""
        head = f"{self.kind} {self.number} {self.stamp} {len(self.payload)}\n"
        return head.encode("ascii") + self.payload


class Parser:
    """Cuts a byte stream into messages, however it was split on its way."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, data: bytes) -> list[Message]:
        """Take bytes and return the messages that are complete now; raise ``StreamError``."""
        self._bytes += data
        complete: list[Message] = []
        while True:
            head, newline, rest = self._bytes.partition(b"\n")
            if not newline:
                if len(head) > HEAD_BYTES:
                    raise StreamError(f"no message: {head[:80]!r}")
                return complete
            message, length = _head(head)
            if len(rest) < length:
                return complete
            complete.append(message._replace(payload=rest[:length]))
            self._bytes = rest[length:]


def _head(head: bytes) -> tuple[Message, int]:
    try:
        kind, number, stamp, size = head.decode("ascii").split(" ")
        message, length = Message(kind, int(number), int(stamp)), int(size)
    except ValueError as error:
        raise StreamError(f"no message: {head[:80]!r}") from error
    if not 0 <= length <= PAYLOAD_BYTES:
        raise StreamError(f"a message of {length} bytes")
    return message, length
