"""Who listens, and what each is sent: every event is rendered once and shared.

All of it runs on the web's event loop. Each listener has a queue of bounded length: one
that does not read loses first what is worthless soon (searches, clocks), then its place;
browsers come back by themselves and get a snapshot. Event ids are ``<boot>-<n>``, so that
a listener who comes back with ``Last-Event-ID`` is told what it missed.
"""

from __future__ import annotations

import asyncio
import collections
import secrets
from collections.abc import Sequence
from typing import Final

from orchestrator import contract, errors
from orchestrator.broadcast import library, messages
from orchestrator.broadcast.web import tcecwire

QUEUE: Final = 256  # frames a listener may be behind
SPARING: Final = 32  # behind by more, it is told nothing volatile
KEPT: Final = 512  # past events for those who come back
LISTENERS: Final = 5_000  # at once: a place more is refused with 503
BEAT_SECONDS: Final = 15.0  # s: silence is broken this often, so that dead links are found


class FullError(errors.HostError):
    """No more listeners are taken."""


class Listener:
    """One who listens; ``get`` returns None when it is to go."""

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

    async def get(self) -> bytes | None:
        """Return all that is queued, in one piece; None when it is to go."""
        frames = [await self._frames.get()]
        while not self._frames.empty():
            frames.append(self._frames.get_nowait())
        return None if None in frames else b"".join(filter(None, frames))


class Hub:
    """The listeners of all kinds: browsers of our page, TCEC's viewers by two protocols."""

    def __init__(self, shelf: library.Library) -> None:
        """Speak of what is in the library."""
        self._shelf = shelf
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._kept: collections.deque[tuple[int, bytes]] = collections.deque(maxlen=KEPT)
        self._snapshots: dict[str, bytes] = {}
        self.pages: set[Listener] = set()
        self.sockets: dict[tcecwire.Wire, set[Listener]] = {wire: set() for wire in tcecwire.Wire}
        self._last_moves: messages.TcecMoves | None = None

    @property
    def count(self) -> int:
        """Return how many listen now."""
        return len(self.pages) + sum(map(len, self.sockets.values()))

    def check_room(self) -> None:
        """Raise ``FullError`` when nobody more can be taken."""
        if self.count >= LISTENERS:
            raise FullError("too many spectators at this moment; try again in a minute")

    # -- our page ----------------------------------------------------------------------

    def open_page(self, last_event_id: str, season: str) -> tuple[Listener, bytes]:
        """Return a listener and what it is told first: what it missed, else a snapshot."""
        self.check_room()
        listener = Listener()
        self.pages.add(listener)
        missed = self._missed(last_event_id)
        return listener, self._snapshot(season) if missed is None else missed

    def _missed(self, last_event_id: str) -> bytes | None:
        boot, _, number = last_event_id.partition("-")
        if boot != self._boot or not number.isdigit():
            return None
        first = self._kept[0][0] if self._kept else self._number + 1
        if not first - 1 <= int(number) <= self._number:
            return None
        return b"".join(frame for n, frame in self._kept if n > int(number)) or b": nothing\n\n"

    def _snapshot(self, season: str) -> bytes:
        if season not in self._snapshots:
            if len(self._snapshots) > KEPT:
                self._snapshots.clear()
            self._snapshots[season] = self._picture(season)
        return self._snapshots[season]

    def _picture(self, season: str) -> bytes:
        place = f"seasons/{season or self._shelf.shown}"
        parts = {"season": place, "game": f"{place}/live", "seasons": "seasons"}
        found = {name: self._shelf.get(where) for name, where in parts.items()}
        bodies = [
            f'"{name}":'.encode() + (b"null" if document is None else document.body)
            for name, document in found.items()
        ]
        head = f'"now_ms":{self._shelf.now_ms()},"viewers":{self.count},'.encode()
        data = b"{" + head + b",".join(bodies) + b"}"
        return _frame("snapshot", data, f"{self._boot}-{self._number}")

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        self.pages.discard(listener)
        for listeners in self.sockets.values():
            listeners.discard(listener)

    # -- TCEC's viewers ----------------------------------------------------------------

    def open_socket(self, wire: tcecwire.Wire) -> Listener:
        """Return a listener of a viewer that speaks one of TCEC's protocols."""
        self.check_room()
        listener = Listener()
        self.sockets[wire].add(listener)
        return listener

    def last_moves(self, wire: tcecwire.Wire) -> bytes | None:
        """Return the last push of moves, for a viewer that asks for it."""
        return None if self._last_moves is None else tcecwire.encode(wire, self._last_moves)

    # -- what happens ------------------------------------------------------------------

    def take(self, told: Sequence[messages.Message]) -> None:
        """Send messages on to whom they concern."""
        self._snapshots.clear()
        for message in told:
            if isinstance(message, messages.Delta):
                self._tell_pages(message)
            else:
                if isinstance(message, messages.TcecMoves):
                    self._last_moves = message
                self._tell_sockets(message)

    def _tell_pages(self, message: messages.Delta) -> None:
        data = contract.dumps(message.data | {"now_ms": self._shelf.now_ms()}).encode()
        if message.volatile:
            frame = _frame(message.kind, data, "")
        else:
            self._number += 1
            frame = _frame(message.kind, data, f"{self._boot}-{self._number}")
            self._kept.append((self._number, frame))
        for listener in tuple(self.pages):
            listener.offer(frame, volatile=message.volatile)

    def _tell_sockets(self, message: messages.TcecFile | messages.TcecMoves) -> None:
        for wire, listeners in self.sockets.items():
            if listeners:
                frame = tcecwire.encode(wire, message)
                for listener in tuple(listeners):
                    listener.offer(frame, volatile=False)

    async def beat(self) -> None:
        """Break the silence again and again, with the number of those who listen."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            data = contract.dumps({"count": self.count}).encode()
            for listener in tuple(self.pages):
                listener.offer(_frame("viewers", data, ""), volatile=True)
            for wire, listeners in self.sockets.items():
                for listener in tuple(listeners):
                    listener.offer(tcecwire.viewers(wire, self.count), volatile=True)


def _frame(kind: str, data: bytes, event_id: str) -> bytes:
    """Return one server-sent event; JSON has no line ends, so its data is one line."""
    head = f"id: {event_id}\nevent: {kind}\n" if event_id else f"event: {kind}\n"
    return head.encode() + b"data: " + data + b"\n\n"
