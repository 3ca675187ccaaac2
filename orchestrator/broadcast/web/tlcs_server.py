"""TLCS over UDP: viewers, their limits, and lines that are sent again until acknowledged.

A lasting line is numbered and sent again until it is acknowledged, one at a time: a viewer takes a
lower number than its last for an old one, so that nothing may overtake. Viewers that are behind
keep their place in the season, whatever has happened since; they are told nothing passing.

UDP lets anybody ask in another's name. A stranger is sent nothing but a greeting: line 1, which
lets viewers forget the numbers of an earlier server, and a line whose number nobody can guess. Who
acknowledges that number receives what is sent to its address, and only then is told more; lines
are numbered on from there. Who does not is forgotten after a few datagrams, and an address that
leaves several greetings unanswered gets none for a while.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, cast

from orchestrator import contract
from orchestrator.broadcast.content import documents, messages
from orchestrator.broadcast.feeds import tlcs
from orchestrator.common import allowance

VIEWERS: Final = 200  # at once, and of one address
EACH: Final = 8
AGAIN_SECONDS: Final = 1.0  # s: without an acknowledgement a line is sent again
TRIES: Final = 5  # then its viewer is forgotten
GREETINGS: Final = 3  # so often a stranger is sent a line of its greeting
STRANGERS: Final = 4  # log-ons of one address that may stand unanswered
SHUNNED_SECONDS: Final = 600.0  # s: then such an address is greeted again
_WRONG: Final = 16  # acknowledgements of other numbers: a stranger that guesses is forgotten
_REMEMBERED: Final = 4_096  # addresses that have not answered
_NUMBERS: Final = 1 << 30  # the secret number is below; viewers read numbers of 32 bits
SILENT_SECONDS: Final = 60.0  # s: viewers say PING every 10
BEHIND: Final = 20_000  # lasting lines: a day of games; who is behind by more is forgotten
TABLE_SECONDS: Final = 5.0  # s: a viewer gets the table so often at most
LOOK_SECONDS: Final = 0.25
_MESSAGES_A_SECOND: Final = 5
_LONGEST: Final = 512  # bytes of what a viewer says
GREETING: Final = "FEATURE: tournament-farm"
Address = tuple[str, int]


class Viewer:
    """One viewer: what it is still to be told, and the line that it has not acknowledged."""

    def __init__(self) -> None:
        """Begin with nothing told."""
        self.queue: collections.deque[str] = collections.deque()
        self.number = 0  # of the last line that was sent
        self.waiting = ""  # the line, until it is acknowledged
        self.tries = 0
        self.sent = self.heard = time.monotonic()
        self.table = float("-inf")  # s, monotonic: when it was sent the table
        self.owed = False  # it is to be sent the table, once it is not behind
        self.secret = 2 + secrets.randbelow(_NUMBERS)  # of the greeting's second line
        self.known = False  # it has acknowledged that number: it is where it says
        self.wrong = 0  # numbers that it acknowledged as a stranger and that it was not sent
        self.allowance = allowance.Allowance(_MESSAGES_A_SECOND, 2 * _MESSAGES_A_SECOND)

    @property
    def most(self) -> int:
        """Return how often a line is sent to it."""
        return TRIES if self.known else GREETINGS

    @property
    def behind(self) -> bool:
        """Say whether it has not got all that lasts."""
        return bool(self.waiting or self.queue)


class TlcsServer(asyncio.DatagramProtocol):
    """The viewers of one UDP port; all of it runs on the web's event loop."""

    def __init__(self, shelf: documents.Library) -> None:
        """Speak of the season that the library shows."""
        self._shelf = shelf
        self._told = tlcs.Told(lambda: shelf.shown, self._game)
        self.viewers: dict[Address, Viewer] = {}
        self._unanswered: dict[str, tuple[int, float]] = {}  # log-ons of an address, first when
        self._transport: asyncio.DatagramTransport | None = None
        self._said: dict[str, Callable[[Address, Viewer], None]] = {
            "PING": self._ping,
            "RESULTTABLE": self._table,
            "LOGOFF": lambda address, _: self._forget(address),
        }

    @contextlib.asynccontextmanager
    async def serving(self, opened: socket.socket | None) -> AsyncIterator[None]:
        """Serve a UDP socket, from what is shown now on; nobody without one."""
        if opened is None:
            yield
            return
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=opened)
        game = self._game(self._shelf.shown)
        if game is not None:
            self.take([messages.Delta("game", dict(game))])
        looking = asyncio.create_task(self.look())
        try:
            yield
        finally:
            looking.cancel()
            transport.close()

    def _game(self, season: str) -> tlcs.Plain | None:
        document = self._shelf.get(f"seasons/{season}/live")
        game: tlcs.Plain | None = None if document is None else contract.loads(document.body)
        return game

    # -- what happens ------------------------------------------------------------------

    def take(self, batch: Sequence[messages.Message]) -> None:
        """Tell viewers what has happened, where any can come."""
        if self._transport is None:
            return
        for message in batch:
            if not isinstance(message, messages.Delta):
                continue
            lines = self._told.take(message)
            ended = any(line.startswith("result:") for line in lines.lasting)
            for address, viewer in list(self.viewers.items()):
                if viewer.known:  # others are told the whole game once they are
                    viewer.owed = viewer.owed or ended
                    self._tell(address, viewer, lines)

    def _tell(self, address: Address, viewer: Viewer, lines: tlcs.Lines) -> None:
        viewer.queue.extend(lines.lasting)
        if len(viewer.queue) > BEHIND:
            self._forget(address)
            return
        self._send_next(address, viewer)
        self._send_passing(address, viewer, lines.passing)

    def _send_passing(self, address: Address, viewer: Viewer, lines: Sequence[str]) -> None:
        """Send what does not last, and the table that is owed, behind all that lasts."""
        if not viewer.known or viewer.behind:
            return
        now = time.monotonic()
        if viewer.owed and now - viewer.table >= TABLE_SECONDS:
            viewer.owed, viewer.table = False, now
            lines = [*lines, *self._table_lines()]
        for line in lines:
            self._send(address, line)

    # -- the protocol ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Take what somebody says; what is not understood is left out."""
        address = addr[:2]
        if len(data) > _LONGEST:
            return
        text = data.decode(errors="replace").strip()
        viewer = self.viewers.get(address)
        if text.startswith("LOGONv15:"):
            self._log_on(address)
        elif viewer is None:
            return
        elif text.startswith("ACK:"):  # as many as it was sent lines; others cost nothing
            self._acknowledged(address, viewer, text.removeprefix("ACK:").strip())
        elif text in self._said and viewer.allowance.take():
            viewer.heard = time.monotonic()
            self._said[text](address, viewer)

    def _log_on(self, address: Address) -> None:
        """Greet a viewer; one that comes again begins again."""
        present = self.viewers.get(address)
        if present is not None and not present.known:
            return  # it has not acknowledged its greeting yet
        host = allowance.site_of(address[0])
        same = sum(allowance.site_of(site) == host for site, _ in self.viewers)
        if present is None and (len(self.viewers) >= VIEWERS or same >= EACH):
            return
        count, since = self._unanswered.pop(host, (0, time.monotonic()))
        if time.monotonic() - since > SHUNNED_SECONDS:
            count, since = 0, time.monotonic()
        self._unanswered[host] = (min(count + 1, STRANGERS + 1), since)
        if len(self._unanswered) > _REMEMBERED:
            del self._unanswered[next(iter(self._unanswered))]
        if count >= STRANGERS:
            return
        viewer = self.viewers[address] = Viewer()
        self._send(address, "LOGON SUCCESSFUL")
        viewer.queue.extend([GREETING, GREETING])
        self._send_next(address, viewer)

    def _acknowledged(self, address: Address, viewer: Viewer, number: str) -> None:
        if not viewer.waiting or number != str(viewer.number):
            viewer.wrong += not viewer.known
            if viewer.wrong > _WRONG:
                self._forget(address)
            return
        viewer.waiting, viewer.heard = "", time.monotonic()
        if not viewer.known and viewer.number == viewer.secret:
            viewer.known = True
            self._unanswered.pop(allowance.site_of(address[0]), None)
            viewer.queue.extend(self._told.whole().lasting)
        self._send_next(address, viewer)
        self._send_passing(address, viewer, self._told.whole().passing)

    def _send_next(self, address: Address, viewer: Viewer) -> None:
        if viewer.waiting or not viewer.queue:
            return
        viewer.number += 1
        if not viewer.known and viewer.number > 1:
            viewer.number = viewer.secret
        viewer.waiting, viewer.tries = viewer.queue.popleft(), 0
        self._send_waiting(address, viewer)

    def _send_waiting(self, address: Address, viewer: Viewer) -> None:
        viewer.sent, viewer.tries = time.monotonic(), viewer.tries + 1
        self._send(address, f"< {viewer.number}>{viewer.waiting}")

    def _ping(self, address: Address, viewer: Viewer) -> None:
        if viewer.known and not viewer.behind:
            viewer.queue.append("PONG")
            self._send_next(address, viewer)

    def _table(self, address: Address, viewer: Viewer) -> None:
        viewer.owed = True
        self._send_passing(address, viewer, ())

    def _table_lines(self) -> list[str]:
        """Return the table of the event whose game is on the board."""
        game = self._game(self._shelf.shown)
        if game is None:
            return []
        base = f"seasons/{game['season']}/events/{game['event']}"
        event, schedule = self._shelf.get(base), self._shelf.get(f"{base}/schedule")
        if event is None or schedule is None:
            return []
        return tlcs.table(contract.loads(event.body), contract.loads(schedule.body))

    def _send(self, address: Address, line: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(line.encode(), address)

    def _forget(self, address: Address) -> None:
        self.viewers.pop(address, None)

    async def look(self) -> None:
        """Send again what was not acknowledged, and forget who is gone, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look_once(time.monotonic())

    def look_once(self, now: float) -> None:
        """Look after all viewers at a moment (s, monotonic)."""
        for address, viewer in list(self.viewers.items()):
            late = bool(viewer.waiting) and now - viewer.sent >= AGAIN_SECONDS
            if now - viewer.heard > SILENT_SECONDS or (late and viewer.tries >= viewer.most):
                self._forget(address)
            elif late:
                self._send_waiting(address, viewer)
            else:
                self._send_passing(address, viewer, ())
