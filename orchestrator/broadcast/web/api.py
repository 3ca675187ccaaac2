"""The read API: documents of the library, games ply by ply, the stream of what happens."""

from __future__ import annotations

import collections
import functools
import pathlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from starlette import concurrency, requests, responses, routing, types

from orchestrator import contract
from orchestrator.broadcast import projector, test_matches
from orchestrator.broadcast.content import documents, games, replays
from orchestrator.broadcast.web import guard, hub, openapi, streams
from orchestrator.broadcast.web import responses as web_responses
from orchestrator.common import text
from orchestrator.season import published

_REPLAYS: Final = 24  # finished games that are kept, as documents and ply by ply
_ROOT: Final = "/api/v1"
_PAGED: Final = frozenset({"offset", "limit"})
_MOST: Final = 1_000_000_000  # more than any list has
_KEPT: Final = 8  # lists that are kept read, for who turns their pages
_NUMBERS: Final = {"offset": (0, 0), "limit": (1, _MOST)}  # the least, and what is asked by default
_STREAM_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EVENT_STREAM: Final = "text/event-stream"


class Answer(NamedTuple):
    """A document, and how long it may be kept without asking."""

    document: documents.Document
    cache: str = web_responses.FRESH


class Source(Protocol):
    """Seasons or matches of one kind, for which the API answers."""

    async def document(self, path: str) -> documents.Document | None:
        """Return a document by its place, None where it is none of this source's."""

    async def stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return who tells of a season ("": of the one that is shown), and its id there."""

    async def game(self, season: str, game: str) -> Answer | None:
        """Return a game with all its plies: finished, or as it stands."""

    async def ply(self, season: str, game: str, number: int) -> Answer | None:
        """Return one ply with the positions of its variation."""


class Api:
    """The answers of the API, of whatever sources a page has."""

    def __init__(self, sources: Sequence[Source], public: str = "") -> None:
        """Ask the sources one after the other; ``public`` is the page's base address."""
        self._sources = sources
        self._openapi = documents.of_json(openapi.document(public))

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes below ``/api/v1``."""
        season_root = f"{_ROOT}/seasons/{{season}}"
        return [
            routing.Route(f"{_ROOT}/openapi.json", self.openapi),
            routing.Route(f"{_ROOT}/live", self.live),
            routing.Route(f"{_ROOT}/snapshot", self.snapshot),
            routing.Route(f"{season_root}/games/{{game}}", self.game),
            routing.Route(f"{season_root}/games/{{game}}/plies/{{ply}}", self.ply),
            routing.Route(f"{_ROOT}/{{place:path}}", self.document),
        ]

    async def openapi(self, request: requests.Request) -> responses.Response:
        """Return the description of this API."""
        return web_responses.of_document(request, self._openapi)

    async def document(self, request: requests.Request) -> responses.Response:
        """Return a document by its place, or a page of one that is a list."""
        path = request.path_params["place"]
        for source in self._sources:
            document = await source.document(path)
            if document is not None:
                break
        else:
            return web_responses.missing(path)
        if _PAGED.isdisjoint(request.query_params):
            return web_responses.of_document(request, document)
        return _page(request, document)

    async def _stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return who tells of a season, and its id there."""
        for source in self._sources:
            stream = await source.stream(season)
            if stream is not None:
                return stream
        return None

    async def snapshot(self, request: requests.Request) -> responses.Response:
        """Return what the stream would begin with: a page asks for it beside its scripts."""
        season = request.query_params.get("season", "")
        stream = await self._stream(season)
        if stream is None:
            return web_responses.missing(f"season {season!r}")
        center, name = stream
        return web_responses.of_document(request, center.snapshot(name).document)

    async def live(self, request: requests.Request) -> responses.Response:
        """Return the stream: a snapshot, then typed deltas, for as long as the client reads."""
        season = request.query_params.get("season", "")
        stream = await self._stream(season)
        if stream is None:
            return web_responses.missing(f"season {season!r}")
        center, name = stream
        try:
            center.check_room()
        except hub.FullError as error:
            return web_responses.full(str(error))
        return LiveStream(center, request, name)

    async def game(self, request: requests.Request) -> responses.Response:
        """Return a game with all its plies: finished, or in flight as it stands."""
        season, game = request.path_params["season"], request.path_params["game"]
        for source in self._sources:
            answer = await source.game(season, game)
            if answer is not None:
                return web_responses.of_document(request, answer.document, answer.cache)
        return web_responses.missing(f"finished game {game!r} in season {season!r}")

    async def ply(self, request: requests.Request) -> responses.Response:
        """Return one ply with the positions of its variation."""
        season, game = request.path_params["season"], request.path_params["game"]
        named = request.path_params["ply"]
        number = text.whole(named) or 0  # there is no ply 0
        for source in self._sources:
            answer = await source.ply(season, game, number)
            if answer is not None:
                return web_responses.of_document(request, answer.document, answer.cache)
        return web_responses.missing(f"ply {named!r} of game {game!r} in season {season!r}")


# -- the farm's seasons -----------------------------------------------------------------


class Kept(NamedTuple):
    """A finished game that has been asked for, and all of it as a document."""

    replay: replays.Replay
    document: documents.Document


class Seasons:
    """The farm's seasons; of the projector, which knows them, only states are read."""

    def __init__(
        self, shelf: documents.Library, shown: projector.Projector, center: hub.Hub
    ) -> None:
        """Answer from library, projector and hub."""
        self._shelf, self._told, self._hub = shelf, shown, center
        self._replays: collections.OrderedDict[str, Kept] = collections.OrderedDict()
        self._lock = threading.Lock()  # two threads need not read the same game at once

    async def document(self, path: str) -> documents.Document | None:
        """Return a document of the library."""
        return self._shelf.get(path)

    async def stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return the hub for a season that is there, and for whichever is shown."""
        present = not season or self._shelf.get(f"seasons/{season}") is not None
        return (self._hub, season) if present else None

    async def game(self, season: str, game: str) -> Answer | None:
        """Return a game: finished, or in flight."""
        if self._running(season, game) is not None:
            document = self._shelf.get(f"seasons/{season}/live")
            return None if document is None else Answer(document)
        finished = await concurrency.run_in_threadpool(self._replay, season, game)
        if finished is None:
            return None
        cache = "public, max-age=60" if finished.replay.recorded else web_responses.FRESH
        return Answer(finished.document, cache)

    def _replay(self, season: str, game: str) -> Kept | None:
        """Return a finished game, read once and kept while it is asked for."""
        watched = self._told.seasons.get(season)
        played = watched.state.games.get(game) if watched else None
        if watched is None or played is None or played.finished is None:
            return None
        version = published.version(watched.state, played)
        with self._lock:
            if version in self._replays:
                self._replays.move_to_end(version)
                return self._replays[version]
            replay = replays.of_game(watched.state, played, self._told.album)
            if replay is None:
                return None
            kept = Kept(replay, documents.of_json(replay.document()))
            if replay.recorded:  # else its moves may come
                self._replays[version] = kept
            while len(self._replays) > _REPLAYS:
                self._replays.popitem(last=False)
            return kept

    def _running(self, season: str, game: str) -> games.GameLine | None:
        watched = self._told.seasons.get(season)
        flying = watched.game if watched else None
        return flying.line if flying and flying.order.game == game else None

    async def ply(self, season: str, game: str, number: int) -> Answer | None:
        """Return one ply of a game, finished or in flight."""
        running = self._running(season, game)
        kept = None
        if running is None:
            kept = await concurrency.run_in_threadpool(self._replay, season, game)
        line = kept.replay.line if kept else running
        if line is None or not 1 <= number <= line.last:
            return None
        shown_ply = kept.replay.ply(number) if kept else line.shown[number - 1].full()
        return Answer(documents.of_json(shown_ply), "public, max-age=3600")


class Matches:
    """The farm's test matches; a match that is over is read when it is asked for."""

    def __init__(
        self, shelf: documents.Library, shown: test_matches.TestMatches, center: hub.Hub
    ) -> None:
        """Answer from library, matches, and the hub of those who watch test matches."""
        self._shelf, self._shown, self._hub = shelf, shown, center

    async def document(self, path: str) -> documents.Document | None:
        """Return a document of a match."""
        head, _, rest = path.partition("/")
        name = rest.partition("/")[0]
        if head != "seasons" or not name.startswith(test_matches.PREFIX):
            return None
        if self._shelf.get(path) is None:
            await concurrency.run_in_threadpool(self._shown.find, name)
        return self._shelf.get(path)

    async def stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return the hub; where the farm has no season, the newest match is shown."""
        name = season or ("" if self._shelf.shown else self._shown.newest)
        if not name.startswith(test_matches.PREFIX):
            return None
        match = await concurrency.run_in_threadpool(self._shown.find, name)
        return None if match is None else (self._hub, name)

    async def game(self, season: str, game: str) -> Answer | None:
        """Return a finished game with all its plies."""
        replay = await self._finished_game(season, game)
        return None if replay is None else Answer(documents.of_json(replay.document()))

    async def ply(self, season: str, game: str, number: int) -> Answer | None:
        """Return one ply of a finished game."""
        replay = await self._finished_game(season, game)
        if replay is None or not 1 <= number <= replay.line.last:
            return None
        return Answer(documents.of_json(replay.ply(number)))

    async def _finished_game(self, season: str, game: str) -> replays.Replay | None:
        if not season.startswith(test_matches.PREFIX):
            return None
        return await concurrency.run_in_threadpool(self._replay, season, game)

    def _replay(self, season: str, game: str) -> replays.Replay | None:
        finished = self._shown.result(season, game)
        return None if finished is None else finished[0].games.replay(finished[1])

    def pgn(self, season: str, game: str) -> str | None:
        """Return the PGN of a finished game."""
        finished = self._shown.result(season, game)
        return None if finished is None else finished[0].games.pgn(finished[1])

    def all_games(self, season: str) -> pathlib.Path | str | None:
        """Return the file of the games that count; no text before the first one."""
        match = self._shown.find(season)
        if match is None:
            return None
        path = match.folder / "games.pgn"
        return path if path.exists() else ""


# -- pages: ?offset=200&limit=100 -------------------------------------------------------


@functools.lru_cache(maxsize=_KEPT)
def _read(document: documents.Document) -> Any:
    return contract.loads(document.body)


def _page(request: requests.Request, document: documents.Document) -> responses.Response:
    """Return a page of a document that is a list, and say how to get the next one."""
    listed = _read(document)
    if not isinstance(listed, list):
        return web_responses.wrong("offset and limit are for lists; this answer is none")
    try:
        numbers = {name: _number(request.query_params, name) for name in _NUMBERS}
    except ValueError as error:
        return web_responses.wrong(str(error))
    offset, end = numbers["offset"], numbers["offset"] + numbers["limit"]
    made = web_responses.of_document(request, documents.of_json(listed[offset:end]))
    made.headers["X-Total-Count"] = str(len(listed))
    if end < len(listed):
        following = request.url.include_query_params(offset=end, limit=numbers["limit"])
        made.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return made


def _number(asked: Mapping[str, str], name: str) -> int:
    """Read a number of the query; raise ``ValueError`` for what is none."""
    least, default = _NUMBERS[name]
    word = asked.get(name)
    if word is None:
        return default
    number = text.whole(word)
    if number is None or not least <= number <= _MOST:
        raise ValueError(f"{name}: found {word[:40]!r}; allowed: a whole number from {least} on")
    return number


class LiveStream(responses.Response):
    """The stream as an answer: a snapshot, then typed deltas, for as long as the client reads.

    Its task sleeps until the client leaves; the hub writes to the connection.
    """

    media_type = _EVENT_STREAM

    def __init__(self, center: hub.Hub, request: requests.Request, season: str) -> None:
        """Tell of a season, or of the one that is shown."""
        super().__init__(headers=_STREAM_HEADERS)
        del self.headers["content-length"]  # it has no end
        self._packs = web_responses.takes_gzip(request)
        if self._packs:
            self.headers["content-encoding"] = "gzip"
        self._hub, self._season = center, season
        after = request.query_params.get("after", "")  # a browser adds no header by itself
        self._last_event_id = request.headers.get("last-event-id", after)

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Send the head, listen until the client has gone."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        chunked = scope["http_version"] != "1.0"
        stream = streams.Stream(guard.transport(scope), chunked=chunked, packs=self._packs)
        self._hub.open_page(stream, self._last_event_id, self._season)
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._hub.close_page(stream)
