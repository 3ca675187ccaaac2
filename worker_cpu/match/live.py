"""``-live``: what the match tells its live page, and the process that serves it.

The page is a process of its own (``orchestrator.broadcast.web.match_page``) at low priority, on
the CPUs that no game is bound to. It reads the match's journal and the files that ``Feed``
writes below the match's scratch folder. Invariants:

* neither match nor referee waits for the page: files are written, nobody is listened to, and
  what a disk refuses is shown to nobody;
* the port is taken before any game begins, or the match does not begin;
* the page ends with the match, whatever ends it: its standard input closes.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.testmatch import match_journal
from worker_cpu.match import arguments, programs, schedule, stopping, switches
from worker_cpu.match import game as games
from worker_cpu.protocols import registry
from worker_cpu.wire import frames

SEARCH_SECONDS = 0.25  # s: an engine's search is told so often at most
START_SECONDS = 30.0  # s: the first game waits so long at most for the page to be there
END_SECONDS = 15.0  # s: the page has so long to tell the last state
BACKLOG = 128
PROGRAM = "orchestrator.broadcast.web.match_page"
SEATS: dict[str, contract.Side] = {"w": "white", "b": "black"}


def about(
    settings: arguments.Settings, total: int, checksums: files.Checksums
) -> match_journal.About:
    """Return what a match is, as its journal keeps it and its page shows it.

    Books and the engines' files are read once for their checksums: here, before the first game.
    """
    openings = settings.openings
    books = dict.fromkeys(
        filter(
            None,
            [
                None if openings is None else openings.file,
                *(engine.book for engine in settings.engines),
            ],
        )
    )
    clocks = dict.fromkeys(engine.control.spoken for engine in settings.engines)
    return match_journal.About(
        event=settings.event,
        site=settings.site,
        engines=tuple(
            programs.with_checksums(engine.spec, checksums) for engine in settings.engines
        ),
        time_control=settings.engines[0].control,
        clocks=" against ".join(clocks),
        variant=settings.variant,
        games=total,
        test=settings.test,
        adaptive=settings.plan.kind == "adaptive",
        books={str(book): digest for book in books if (digest := checksums.of(book))},
    )


class Feed:
    """The files that a live page reads of the games that are played."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Write into an empty folder."""
        self._games = folder / "games"
        self._games.mkdir()
        self._files: dict[str, int] = {}  # descriptors by game

    def begin(
        self, board: int, slot: schedule.Slot, order: contract.GameOrder
    ) -> games.Watch | None:
        """Begin a game's file; return who takes its frames, ``None`` where that fails."""
        head = {
            "board": board,
            "number": slot.number,
            "started_ms": _now_ms(),
            "order": order.model_dump(mode="json"),
        }
        with contextlib.suppress(OSError):
            flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._files[order.game] = os.open(self._games / f"{order.game}.jsonl", flags, 0o600)
        self._write(order.game, contract.dumps(head).encode())
        return self._watch(order)

    def end(self, order: contract.GameOrder) -> None:
        """End a game's file, however the game ended: the journal says that."""
        self._write(order.game, b'{"end":true}')
        file = self._files.pop(order.game, None)
        if file is not None:
            os.close(file)

    def _watch(self, order: contract.GameOrder) -> games.Watch:
        next_search, thinks = 0.0, ""

        def watch(frame: frames.Frame) -> None:
            nonlocal next_search, thinks
            match frame.kind:
                case frames.Kind.PLY:
                    self._write(order.game, b'{"ply":' + frame.payload + b"}")
                case frames.Kind.THINK:
                    thinks = contract.loads(frame.payload)["side"]
                    at = f',"at_ms":{_now_ms()}}}'.encode()
                    self._write(order.game, b'{"think":' + frame.payload + at)
                case frames.Kind.READY:
                    self._write(order.game, b'{"ready":' + frame.payload + b"}")
                case frames.Kind.CHUNK if time.monotonic() >= next_search:
                    line = _search(order, frames.Chunk.decode(frame.payload), thinks)
                    if line is not None:
                        next_search = time.monotonic() + SEARCH_SECONDS
                        self._write(order.game, line)
                case _:
                    return

        return watch

    def _write(self, game: str, line: bytes) -> None:
        file = self._files.get(game)
        if file is None:
            return
        try:
            os.write(file, line + b"\n")
        except OSError:  # the disk is full: this game is not shown any further
            del self._files[game]
            os.close(file)


def _search(order: contract.GameOrder, chunk: frames.Chunk, thinks: str) -> bytes | None:
    """Return what an engine said last of its search, as a line of a game's file.

    What one that ponders says is of a position that is not on the board: not shown.
    """
    side = SEATS[chunk.seat]
    if chunk.direction != "<" or side != thinks:
        return None
    search = registry.last_search(order.engine(side).protocol, chunk.data)
    if search.score is None:
        return None
    line = contract.dumps({"side": side, "search": registry.public(search)})
    return line.encode(errors="replace")


class Page:
    """The page's process, and where it is."""

    def __init__(self, listening: socket.socket, wanted: switches.Live) -> None:
        self._listening, self._wanted = listening, wanted
        self._process: subprocess.Popen[bytes] | None = None
        host, port = listening.getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"
        self._folder = pathlib.Path()

    def open(
        self,
        settings: arguments.Settings,
        described: match_journal.About,
        scratch: pathlib.Path,
    ) -> Feed:
        """Start the process with the CPUs that this one has; return what feeds it."""
        self._folder = scratch / "live"
        self._folder.mkdir()
        head = {
            "about": described.model_dump(mode="json"),
            "boards": settings.concurrency,
            "started_ms": _now_ms(),
            "pgn": None if settings.pgn is None else str(settings.pgn.absolute()),
        }
        (self._folder / "match.json").write_text(contract.dumps(head), encoding="utf-8")
        feed = Feed(self._folder)
        paths = [str(self._folder), str(settings.journal.absolute())]
        descriptor = self._listening.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *paths, str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            start_new_session=True,  # the match's Ctrl-C is not its own
        )
        self._listening.close()
        assert self._process.stdout is not None
        with self._process.stdout as output:  # it costs a second, and no game is played yet
            select.select([output], [], [], START_SECONDS)
        return feed

    def end(self, reason: str) -> None:
        """Let the page show how the match ended, and end unless it stays."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            made = self._folder / "end.part"
            made.write_text(contract.dumps({"reason": reason}), encoding="utf-8")
            made.rename(self._folder / "end.json")
        if not self._wanted.stays:
            self.close()

    def stay(self) -> bool:
        """Wait until Ctrl-C where the page is to stay; say whether it did."""
        if self._process is None or not self._wanted.stays:
            return False
        with stopping.as_ctrl_c():  # else the match's folder stays
            with contextlib.suppress(KeyboardInterrupt):
                self._process.wait()
            self.close()
        return True

    @property
    def stays(self) -> bool:
        """Say whether the page is still served when the match is over."""
        return self._wanted.stays

    def close(self) -> None:
        """End the process; it may tell the last state first."""
        self._listening.close()
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


@contextlib.contextmanager
def page(wanted: switches.Live | None) -> Iterator[Page | None]:
    """Take the port of a live page; raise ``UsageError`` where somebody else has it."""
    if wanted is None:
        yield None
        return
    made = Page(_listen(wanted), wanted)
    try:
        yield made
    finally:
        made.close()


def _listen(wanted: switches.Live) -> socket.socket:
    family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((wanted.host, wanted.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise errors.UsageError(
            f"-live: the live page cannot have port {wanted.port} of {wanted.host}:"
            f" {error.strerror or error}; end what listens there, name another port (-live"
            f" {wanted.port + 1 if wanted.port < switches.LAST_PORT else 8080}), or -live 0 for a"
            " free one"
        ) from error
    return listening


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
