"""The live page of ``farm match -live``: a process that reads the match's files and serves them.

``python -m orchestrator.broadcast.web.match_page FEED JOURNAL FD`` serves on the listening
socket FD. FEED is the match's folder (``worker_cpu.match.live`` writes it): ``match.json``,
a file a running game, and ``end.json`` when the match is over. It runs at low priority, the match
never waits for it, and it ends when its standard input does: with the match.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import os
import pathlib
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import structlog
from starlette import applications, concurrency, routing, staticfiles, types

from orchestrator import contract
from orchestrator.arbiter import live_picture
from orchestrator.broadcast.content import (
    documents,
    inflight,
    match_games,
    match_view,
    messages,
)
from orchestrator.broadcast.feeds import lichess
from orchestrator.broadcast.feeds.tcec import pgn as tcec_pgn
from orchestrator.broadcast.web import api, downloads, guard, hub, page_files, server
from orchestrator.common import errors, logs, text
from orchestrator.testmatch import match_journal

log = structlog.get_logger()

PAGE: Final = pathlib.Path(__file__).parent.parent / "page"
LOOK_SECONDS: Final = 0.1  # s: between two looks at the files while somebody listens
IDLE_SECONDS: Final = 0.5  # s: while nobody does
TABLES_SECONDS: Final = 1.0  # s: between two tellings of the tables: games may end faster
NICE: Final = 19  # not the idle class: where games have every core it would never be heard
LAST_SECONDS: Final = 1.0  # s: how long listeners have for the last state


class Running:
    """A game that is played, read from its file."""

    def __init__(self, path: pathlib.Path, now_ms: int) -> None:
        """Read what is there; raise ``ValueError`` where not even the order is."""
        self.path, self._file, self._rest = path, path.open("rb"), b""
        lines = self._lines()
        if not lines:
            self._file.close()
            raise ValueError(f"{path.name} holds no order yet")
        head = lines[0]
        self.board, self.number = int(head["board"]), int(head["number"])
        written = contract.GameOrder.model_validate(head["order"])
        season = match_view.board_id(self.board)
        order = written.model_copy(
            update={"season": season, "event": match_view.EVENT, "game": str(self.number)}
        )
        self.started_ms = int(head["started_ms"])
        self.game = inflight.InFlight(order, path.stem, self.started_ms, order.site)
        self.plies: list[contract.PlyRecord] = []
        self.reports: dict[contract.Side, contract.EngineReport] = {}
        self.over = False  # its file says so
        self._picture = live_picture.LivePicture(order, path.stem, self.started_ms)
        self._take_all(lines[1:], now_ms)

    def grow(self, now_ms: int) -> list[dict[str, Any]]:
        """Read on; return the plies that are new, as events of the stream."""
        return self._take_all(self._lines(), now_ms)

    def _take_all(self, lines: Sequence[dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
        new_plies: list[dict[str, Any]] = []
        for line in lines:
            self._take(line, new_plies, now_ms)
        self.game.see(copy.deepcopy(self._picture.data))
        return new_plies

    def _take(self, line: dict[str, Any], new_plies: list[dict[str, Any]], now_ms: int) -> None:
        if "ply" in line:
            ply = contract.PlyRecord.model_validate(line["ply"])
            shown = self.game.push(ply, now_ms)
            self.plies.append(ply)
            self._picture.ply(ply)
            new_plies.append(shown.full())
        elif "think" in line:
            self._picture.think(json.dumps(line["think"]), int(line["at_ms"]))
        elif "search" in line:
            self._picture.search(line["side"], line["search"])
        elif "ready" in line:
            self._picture.ready(json.dumps(line["ready"]))
            self.reports = {
                side: contract.EngineReport.model_validate(line["ready"][side])
                for side in inflight.SIDES
            }
        elif "end" in line:
            self.over = True

    def _lines(self) -> list[dict[str, Any]]:
        data = self._rest + self._file.read()
        *whole, self._rest = data.split(b"\n")
        return [json.loads(line) for line in whole]

    def close(self) -> None:
        """Close the file, and remove it: nobody else reads it."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class Watcher:
    """Reads the match's files again and again; documents and streams are made of it."""

    def __init__(self, feed: pathlib.Path, journal: pathlib.Path) -> None:
        head = json.loads((feed / "match.json").read_bytes())
        about = match_journal.About.model_validate(head["about"])
        pgn = head["pgn"]
        self.pgn = None if pgn is None else pathlib.Path(pgn)
        self.boards = int(head["boards"])
        self.view = match_view.MatchView(about, int(head["started_ms"]), self.boards)
        self._texts = None if self.pgn is None else match_games.PgnFile(self.pgn)
        self.games = match_games.Games(about, self._texts)
        self.library = documents.Library()
        self.library.shown = match_view.SEASON
        self.hubs = {board: hub.Hub(self.library) for board in range(1, self.boards + 1)}
        self.running: dict[int, Running] = {}  # by board
        self.lock = threading.Lock()
        self._feed, self._follower = feed, match_journal.Follower(journal)
        self._tables_due, self._changed = 0.0, True
        self._waiting: dict[int, Running] = {}  # ended, their results not in the journal yet
        self._told: dict[int, tuple[Any, Any]] = {}
        self._tell: list[tuple[int, Sequence[messages.Message]]] = []

    @property
    def listeners(self) -> int:
        """Return how many listen."""
        return sum(board_hub.count for board_hub in self.hubs.values())

    def look(self, *, last: bool = False) -> list[tuple[int, Sequence[messages.Message]]]:
        """Read what is new; return what each board's listeners are told of it."""
        with self.lock:
            self._tell = []
            end = self._feed / "end.json"
            over = last or end.exists()  # asked first: then the journal holds all games
            self._read_games()
            for number in [waiting for waiting in self._waiting if waiting in self.view.results]:
                self._finish(self.view.results[number])  # its file was found after its result
            results = [
                result for result in self._follower.read() if result.number not in self.view.results
            ]
            for result in results:
                self.view.add(result)
                if self._texts is not None:
                    self._texts.take(result)
                self._finish(result)
            self._changed |= bool(results)
            if over:
                reason = json.loads(end.read_bytes())["reason"] if end.exists() else "ended"
                self._changed |= self.view.reason is None
                self.view.reason = reason
                for board in list(self.running):
                    self._forget(board)
            if self._changed and (last or time.monotonic() >= self._tables_due):
                self._render()
            return self._tell

    def _read_games(self) -> None:
        now_ms = self.library.now_ms()
        paths = {game.path for game in (*self.running.values(), *self._waiting.values())}
        for board, running in list(self.running.items()):
            new_plies = running.grow(now_ms)
            self._told_of(board, running, new_plies)
            if running.over:
                self._wait(running)
                self._forget(board)
        for path in sorted((self._feed / "games").glob("*.jsonl")):
            if path in paths:
                continue
            try:
                begun = Running(path, now_ms)
            except ValueError:
                continue
            if begun.over:  # it was quicker than a look
                self._wait(begun)
            else:
                self._begin(begun)

    def _wait(self, ended: Running) -> None:
        """Let a game wait for its result; of its attempts the last one has it."""
        before = self._waiting.get(ended.number, ended)
        earlier, later = sorted((before, ended), key=lambda attempt: attempt.started_ms)
        if earlier is not later:
            earlier.close()
        self._waiting[ended.number] = later

    def _begin(self, begun: Running) -> None:
        before = self.running.pop(begun.board, None)
        if before is not None:
            self._wait(before)
        interrupted = self._waiting.pop(begun.number, None)
        if interrupted is not None:
            interrupted.close()
        self.running[begun.board] = begun
        order = begun.game.order
        self.view.running[begun.board] = match_view.Running(
            begun.number,
            order.round,
            begun.board,
            order.white.name,
            order.black.name,
            begun.started_ms,
        )
        self._changed = True
        self._show(begun.board, begun.game.document())

    def _forget(self, board: int) -> None:
        running = self.running.pop(board)
        self.view.running.pop(board, None)
        self._changed = True
        self._show(board, running.game.interrupted() | {"details": ""})

    def _told_of(self, board: int, running: Running, plies: list[dict[str, Any]]) -> None:
        """Tell a board's listeners of plies, clock and search."""
        game = running.game
        head = {"season": match_view.board_id(board), "game": game.order.game}
        named, clock, search = game.line.opening(), game.clock(), game.search()
        opening = {"eco": named.eco, "name": named.name}
        deltas = [
            messages.Delta("ply", head | {"ply": ply, "opening": opening, "clock": clock})
            for ply in plies
        ]
        before = self._told.get(board)
        if before is None or clock != before[0]:
            deltas.append(messages.Delta("clock", head | clock))
        if search is not None and (before is None or search != before[1]):
            deltas.append(messages.Delta("search", head | search))
        if deltas:
            self._told[board] = clock, search
            self._publish(board, game.document())
            self._tell.append((board, deltas))

    def _finish(self, result: match_journal.Result) -> None:
        """Keep a finished game's moves, and show its end on its board until the next begins."""
        ended = self._waiting.pop(result.number, None)
        if ended is None:
            for board, running in list(self.running.items()):
                if running.number == result.number:
                    running.grow(self.library.now_ms())
                    ended = running
                    self._forget(board)
        if ended is None:
            return
        order = ended.game.order.model_copy(update={"season": match_view.SEASON, "seats": {}})
        self.games.keep(order, ended.plies, result, ended.reports)
        ended.close()
        if ended.board not in self.running:
            replay = self.games.replay(result)
            self._show(
                ended.board, replay.document() | {"season": match_view.board_id(ended.board)}
            )

    def _show(self, board: int, document: dict[str, Any]) -> None:
        self._told.pop(board, None)
        self._publish(board, document)
        self._tell.append((board, [messages.Delta("game", document)]))

    def _publish(self, board: int, document: dict[str, Any]) -> None:
        path = f"seasons/{match_view.board_id(board)}/live"
        self.library.put_made(path, documents.Document(lambda: documents.of_json(document).body))

    def _render(self) -> None:
        self._changed = False
        self._tables_due = time.monotonic() + TABLES_SECONDS
        now_ms = self.library.now_ms()
        self.library.put({"seasons": [self.view.overview(now_ms)]})
        for path, document in self.view.made(now_ms).items():
            self.library.put_made(path, document)
        for board in self.hubs:
            season = match_view.board_id(board)
            tables = {"season": season, "events": [match_view.EVENT]}
            deltas = [
                messages.Delta("season", self.view.season(board, now_ms)),
                messages.Delta("tables", tables),
            ]
            self._tell.append((board, deltas))


class Match:
    """The match as a source of answers: documents, games, PGN, one stream a board."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    async def document(self, path: str) -> documents.Document | None:
        """Return a document by its place; the tables of all boards are the match's."""
        document = self._watcher.library.get(path)
        if document is None:
            head, _, rest = path.partition("/")
            season, _, rest = rest.partition("/")
            if head == "seasons" and rest != "live" and self._board(season) is not None:
                document = self._watcher.library.get(f"{head}/{match_view.SEASON}/{rest}")
        return document

    async def stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return a board's hub; the first one's is shown to who names none."""
        board = self._board(season) if season else 1
        return None if board is None else (self._watcher.hubs[board], match_view.board_id(board))

    def _board(self, season: str) -> int | None:
        boards = {match_view.board_id(board): board for board in self._watcher.hubs}
        return boards.get(season)

    # -- games ---------------------------------------------------------------------------

    async def game(self, season: str, game: str) -> api.Answer | None:
        """Return a game with all its plies: finished, or as it stands."""
        if self._board(season) is None:
            return None
        shown = await concurrency.run_in_threadpool(self._game, game)
        return None if shown is None else api.Answer(documents.of_json(shown | {"season": season}))

    async def ply(self, season: str, game: str, number: int) -> api.Answer | None:
        """Return one ply with the positions of its variation."""
        if self._board(season) is None:
            return None
        shown_ply = await concurrency.run_in_threadpool(self._ply, game, number)
        return None if shown_ply is None else api.Answer(documents.of_json(shown_ply))

    def pgn(self, season: str, game: str) -> str | None:
        """Return the PGN of a game, finished or in flight."""
        if self._board(season) is None:
            return None
        with self._watcher.lock:
            running = self._running(game)
            if running is not None:
                line = running.game.line
                tags = tcec_pgn.tags(line, running.started_ms, running.game.hall)
                pgn = lichess.text(line, tags)
                return pgn.head + pgn.body
            result = self._result(game)
        return None if result is None else self._watcher.games.pgn(result)

    def all_games(self, season: str) -> pathlib.Path | str | None:
        """Return all finished games: the match's own file where it writes one."""
        if self._board(season) is None:
            return None
        path = self._watcher.pgn
        if path is not None and path.exists():
            return path
        with self._watcher.lock:
            results = list(self._watcher.view.results.values())
        pgns = map(self._watcher.games.pgn, results)
        return "\n".join(pgn.rstrip() + "\n" for pgn in pgns if pgn is not None)

    def _running(self, game: str) -> Running | None:
        running = self._watcher.running.values()
        return next((candidate for candidate in running if str(candidate.number) == game), None)

    def _result(self, game: str) -> match_journal.Result | None:
        """Return a finished game's result; a name that is no game's number has none."""
        return self._watcher.view.results.get(text.whole(game) or 0)

    # What is read of files is read without the lock: the next look does not wait for it.

    def _game(self, game: str) -> dict[str, Any] | None:
        with self._watcher.lock:
            running, result = self._running(game), self._result(game)
            if running is not None:
                return running.game.document()
        return None if result is None else self._watcher.games.replay(result).document()

    def _ply(self, game: str, number: int) -> dict[str, Any] | None:
        with self._watcher.lock:
            running, result = self._running(game), self._result(game)
            if running is not None:
                line = running.game.line
                return line.shown[number - 1].full() if 1 <= number <= line.last else None
        replay = None if result is None else self._watcher.games.replay(result)
        return replay.ply(number) if replay and 1 <= number <= replay.line.last else None


def create(watcher: Watcher, ended: threading.Event, close: threading.Event) -> types.ASGIApp:
    """Return the application; it looks until ``ended``, looks once more, and sets ``close``."""

    @contextlib.asynccontextmanager
    async def lifespan(_: applications.Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def tell(batches: Sequence[tuple[int, Sequence[messages.Message]]]) -> None:
            for board, what in batches:
                watcher.hubs[board].take(what)

        def look(*, last: bool = False) -> None:
            try:
                batches = watcher.look(last=last)
            except Exception:  # the top of a thread: the next look tries again
                log.exception("match_page.failed")
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell, batches)

        def run() -> None:
            while not ended.wait(LOOK_SECONDS if watcher.listeners else IDLE_SECONDS):
                look()
            look(last=True)
            time.sleep(LAST_SECONDS if watcher.listeners else 0)
            close.set()

        await asyncio.to_thread(look)  # who comes first finds what is there
        threading.Thread(target=run, daemon=True).start()
        beats = [asyncio.create_task(board_hub.beat()) for board_hub in watcher.hubs.values()]
        try:
            yield
        finally:
            for beat in beats:
                beat.cancel()

    match = Match(watcher)
    routes = [
        *api.Api([match]).routes(),
        *downloads.MatchDownloads(match).routes(),
        *page_files.PageFiles(PAGE).routes(),
        routing.Mount("/", staticfiles.StaticFiles(directory=PAGE, html=True)),
    ]
    app = applications.Starlette(routes=routes, lifespan=lifespan)
    return guard.Guard(app)


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the match's
    logs.configure()
    feed, journal, fd = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    ended, close = threading.Event(), threading.Event()

    def listen() -> None:
        while os.read(0, 64):
            pass
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    with socket.socket(fileno=fd) as listening:
        made = server.make(create(Watcher(feed, journal), ended, close), "", 0)
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # the terminal is the match's
        with contextlib.suppress(OSError):  # the match has not waited that long
            os.write(1, b"ready\n")
        with contextlib.suppress(OSError):
            os.nice(NICE)

        def stop() -> None:
            close.wait()
            made.should_exit = True

        threading.Thread(target=stop, daemon=True).start()
        made.run(sockets=[listening])


if __name__ == "__main__":
    try:
        main()
    except errors.FarmError as error:
        sys.exit(f"farm: live page: {error}")
