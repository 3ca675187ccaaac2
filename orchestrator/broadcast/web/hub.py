"""The listeners of the stream and their queues: every event is rendered once and shared.

All of it runs on the web's event loop. A browser's bytes go straight to its connection
(``streams``); a viewer that speaks one of TCEC's protocols has a queue of bounded length.
One that does not read loses first what is worthless soon (searches, clocks), then its
place; browsers come back by themselves and get a snapshot. Event ids are ``<boot>-<n>``,
so that a listener who comes back with ``Last-Event-ID`` is told what it missed.

What lasts is told at once. What does not waits as long as telling all took, four times
over, and meanwhile gives way to what is newer: however many listen, most of the time is
left to moves and to those who come.
"""

from __future__ import annotations

import asyncio
import collections
import secrets
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from orchestrator import contract
from orchestrator.broadcast.content import documents, messages
from orchestrator.broadcast.web import streams, tcecwire
from orchestrator.common import errors, text

QUEUE: Final = 256  # frames a listener may be behind
SPARING: Final = 32  # behind by more, it is told nothing volatile
KEPT: Final = 512  # past events for those who come back
LISTENERS: Final = 5_000  # at once: a place more is refused with 503
BEAT_SECONDS: Final = 15.0  # s: silence is broken this often, so that dead links are found
REST: Final = 4  # times as long as telling all took, nothing volatile is told
_RETRY: Final = b"retry: 2000\n\n"  # ms: how long a browser waits before it comes back


class FullError(errors.HostError):
    """No more listeners are taken."""


class Snapshot(NamedTuple):
    """Where things stand, as a document and as the first event of a stream."""

    document: documents.Document
    piece: streams.Piece


class Listener:
    """One of TCEC's viewers; ``get_one`` returns None when it is to go."""

    def __init__(self) -> None:
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE)
        self.gone = False

    def offer(self, frame: bytes, *, volatile: bool) -> None:
        """Queue a frame; a listener that is too far behind is sent away."""
        if self.gone or (volatile and self._frames.qsize() > SPARING):
            return
        try:
            self._frames.put_nowait(frame)
        except asyncio.QueueFull:
            self.dismiss()

    def dismiss(self) -> None:
        """Let the listener end, without what it has not read."""
        self.gone = True
        while not self._frames.empty():
            self._frames.get_nowait()
        self._frames.put_nowait(None)

    async def get_one(self) -> bytes | None:
        """Return the next frame; None when it is to go."""
        return await self._frames.get()


class Hub:
    """The listeners of all kinds: browsers of our page, TCEC's viewers by two protocols."""

    def __init__(self, shelf: documents.Library) -> None:
        """Speak of what is in the library."""
        self._shelf = shelf
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: collections.deque[tuple[int, bytes]] = collections.deque(maxlen=KEPT)
        self._snapshots: dict[str, Snapshot] = {}
        self._held: list[messages.Delta] = []  # volatile, and not told yet
        self._rest_until = 0.0  # s, monotonic
        self._waking: asyncio.TimerHandle | None = None
        self.pages: set[streams.Stream] = set()
        self.sockets: dict[tcecwire.Wire, set[Listener]] = {wire: set() for wire in tcecwire.Wire}
        self._last_moves: tcecwire.Frames | None = None

    @property
    def count(self) -> int:
        """Return how many listen now."""
        return len(self.pages) + sum(map(len, self.sockets.values()))

    def check_room(self) -> None:
        """Raise ``FullError`` when nobody more can be taken."""
        if self.count >= LISTENERS:
            raise FullError("too many spectators at this moment; try again in a minute")

    # -- our page ----------------------------------------------------------------------

    def open_page(self, stream: streams.Stream, last_event_id: str, season: str) -> None:
        """Take a listener in and tell it what it missed, else a snapshot."""
        missed = self._missed(last_event_id)
        stream.begin(self.snapshot(season).piece if missed is None else missed)
        self.pages.add(stream)

    def close_page(self, stream: streams.Stream) -> None:
        """Forget a listener of our page."""
        self.pages.discard(stream)

    def _missed(self, last_event_id: str) -> streams.Piece | None:
        boot, _, named = last_event_id.partition("-")
        number = text.whole(named)
        if boot != self._boot or number is None:
            return None
        first = self._kept[0][0] if self._kept else self._number + 1
        if not first - 1 <= number <= self._number:
            return None
        missed = b"".join(frame for n, frame in self._kept if n > number)
        return streams.Piece(_RETRY + (missed or b": nothing\n\n"))

    def snapshot(self, season: str) -> Snapshot:
        """Return where things stand; who has it goes on from its id."""
        if season not in self._snapshots:
            if len(self._snapshots) > KEPT:
                self._snapshots.clear()
            self._snapshots[season] = self._picture(season)
        return self._snapshots[season]

    def _picture(self, season: str) -> Snapshot:
        path = f"seasons/{season or self._shelf.shown}"
        parts = {"season": path, "game": f"{path}/live", "seasons": "seasons"}
        parts_made = {name: self._shelf.get(where) for name, where in parts.items()}
        bodies = [
            f'"{name}":'.encode() + (b"null" if document is None else document.body)
            for name, document in parts_made.items()
        ]
        now_ms, tests = self._shelf.now_ms(), self._shelf.tests
        event_id = f"{self._boot}-{self._number}"
        head = f'"id":"{event_id}","now_ms":{now_ms},"viewers":{self.count},"tests":{tests},'
        data = b"{" + head.encode() + b",".join(bodies) + b"}"
        return Snapshot(
            documents.Document(data), streams.Piece(_RETRY + _frame("snapshot", data, event_id))
        )

    # -- TCEC's viewers ----------------------------------------------------------------

    def open_socket(self, wire: tcecwire.Wire) -> Listener:
        """Return a listener of a viewer that speaks one of TCEC's protocols."""
        self.check_room()
        listener = Listener()
        self.sockets[wire].add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener that speaks one of TCEC's protocols."""
        for listeners in self.sockets.values():
            listeners.discard(listener)

    def last_moves(self, wire: tcecwire.Wire) -> bytes | None:
        """Return the last push of moves, for a viewer that asks for it."""
        return None if self._last_moves is None else self._last_moves.of(wire)

    # -- what happens ------------------------------------------------------------------

    def take(self, batch: Sequence[messages.Message]) -> None:
        """Send messages on to whom they concern."""
        self._snapshots.clear()
        deltas = [message for message in batch if isinstance(message, messages.Delta)]
        if deltas:
            self._take_deltas(deltas)
        for message in batch:
            if isinstance(message, messages.Delta):
                continue
            frames = tcecwire.Frames(message)
            if isinstance(message, messages.TcecMoves):
                self._last_moves = frames
            volatile = isinstance(message, messages.TcecFile) and message.volatile
            self._tell_sockets(frames, volatile=volatile)

    def _take_deltas(self, deltas: Sequence[messages.Delta]) -> None:
        """Tell pages what is new; hold it while they rest, if it does not last."""
        self._held = _newest([*self._held, *deltas])
        rest = self._rest_until - time.monotonic()
        if rest <= 0 or not all(delta.volatile for delta in deltas):
            self._tell_held()
        elif self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(rest, self._tell_held)

    def _tell_held(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
        held, self._held, self._waking = self._held, [], None
        frames = [(self._render(delta), delta.volatile) for delta in held]
        whole = b"".join(frame for frame, _ in frames)
        lasting = b"".join(frame for frame, volatile in frames if not volatile)
        self._tell_pages(streams.Batch(streams.Piece(whole), streams.Piece(lasting)))

    def _render(self, message: messages.Delta) -> bytes:
        payload = contract.dumps(message.data | {"now_ms": self._shelf.now_ms()})
        data = text.visible(payload).encode()
        if message.volatile:
            return _frame(message.kind, data, "")
        self._number += 1
        frame = _frame(message.kind, data, f"{self._boot}-{self._number}")
        self._kept.append((self._number, frame))
        return frame

    def _tell_pages(self, batch: streams.Batch) -> None:
        begin = time.monotonic()
        for stream in self.pages:
            stream.tell(batch)
        end = time.monotonic()
        self._rest_until = end + REST * (end - begin)

    def _tell_sockets(self, frames: tcecwire.Frames, *, volatile: bool) -> None:
        for wire, listeners in self.sockets.items():
            for listener in tuple(listeners):
                listener.offer(frames.of(wire), volatile=volatile)

    async def beat(self) -> None:
        """Break the silence again and again, with the number of those who listen."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            data = contract.dumps({"count": self.count}).encode()
            count_frame = streams.Piece(_frame("viewers", data, ""))
            self._tell_pages(streams.Batch(count_frame, streams.Piece(b"")))
            for wire, listeners in self.sockets.items():
                for listener in tuple(listeners):
                    listener.offer(tcecwire.viewers(wire, self.count), volatile=True)


def _newest(deltas: Sequence[messages.Delta]) -> list[messages.Delta]:
    """Leave out what is worthless by now: volatile deltas before a ply, game or one like them."""
    kept: list[messages.Delta] = []
    overtaken: set[tuple[str, object]] = set()
    for delta in reversed(deltas):
        season = delta.data.get("season")
        if not (delta.volatile and (delta.kind, season) in overtaken):
            kept.append(delta)
        overtaken.add((delta.kind, season))
        if delta.kind in {"ply", "game"}:
            overtaken |= {("clock", season), ("search", season), ("kibitz", season)}
    return kept[::-1]


def _frame(kind: str, data: bytes, event_id: str) -> bytes:
    """Return one server-sent event; JSON has no line ends, so its data is one line."""
    head = f"id: {event_id}\nevent: {kind}\n" if event_id else f"event: {kind}\n"
    return head.encode() + b"data: " + data + b"\n\n"
