"""PGN for download and for Lichess: per game, event and season, filtered, and in flight."""

from __future__ import annotations

import asyncio
import collections
import hashlib
import pathlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from starlette import concurrency, requests, responses, routing

from orchestrator.arbiter import record as pgn_record
from orchestrator.broadcast import projector
from orchestrator.broadcast.content import documents, games, season_view
from orchestrator.broadcast.feeds import lichess
from orchestrator.broadcast.feeds.tcec import pgn as tcec_pgn
from orchestrator.broadcast.web import filters, links
from orchestrator.broadcast.web import responses as web_responses
from orchestrator.season import published
from orchestrator.season.fold import events
from orchestrator.season.spec import model

PGN: Final = "application/x-chess-pgn"
AT_ONCE: Final = 8  # downloads of many games at once; more are asked to come again
CACHED: Final = 1_024  # finished games for Lichess, 20 kB each
_ROUND_GAMES: Final = 64  # the last of a round: Lichess takes no more


class Downloads:
    """The answers that are PGN."""

    def __init__(
        self, shown: projector.Projector, shelf: documents.Library, addresses: links.Links
    ) -> None:
        """Answer from the projector's states and the album; ``addresses`` are our page's."""
        self._told, self._shelf, self._links = shown, shelf, addresses
        self._busy = asyncio.Semaphore(AT_ONCE)
        self._rendering = asyncio.Lock()
        self._texts_of_lichess: collections.OrderedDict[str, lichess.Text] = (
            collections.OrderedDict()
        )

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes below ``/pgn`` and ``/lichess``."""
        return [
            routing.Route("/pgn/{season}.pgn", self.season),
            routing.Route("/pgn/{season}/games/{game}.pgn", self.game),
            routing.Route("/pgn/{season}/{event}.pgn", self.season),
            routing.Route("/lichess/live.pgn", self.lichess_live),
            routing.Route("/lichess/{season}/games/{game}.pgn", self.lichess_game),
            routing.Route("/lichess/{season}/{event}/{round}.pgn", self.lichess_round),
        ]

    # -- downloads ---------------------------------------------------------------------

    async def game(self, request: requests.Request) -> responses.Response:
        """Return the PGN of one finished game, with the result that counts."""
        season = self._season(request)
        game = season and season.state.games.get(request.path_params["game"])
        if not season or not game or game.finished is None:
            return web_responses.missing(f"finished game {request.path_params['game']!r}")
        text = await concurrency.run_in_threadpool(season.pgn, game)
        if text is None:
            return web_responses.missing(f"record of game {game.id!r}")
        return web_responses.of_document(
            request, web_responses.of_text(text, PGN), "public, max-age=60"
        )

    async def season(self, request: requests.Request) -> responses.Response:
        """Return the finished games of a season or event that pass the filters."""
        season, asked = self._season(request), dict(request.query_params)
        if "event" in request.path_params:
            asked["event"] = request.path_params["event"]
        if season is None:
            return web_responses.missing(f"season at {request.url.path}")
        if wrong := filters.wrong(asked):
            return web_responses.wrong(wrong)
        if missing := filters.missing(season, asked):
            return web_responses.missing(missing)
        if self._busy.locked():
            return web_responses.full("too many downloads at this moment; try again in a minute")
        chosen = filters.chosen(season, asked)
        headers = {
            "ETag": _version(season, chosen),
            "Cache-Control": web_responses.FRESH,
            "Content-Disposition": f'attachment; filename="{_file_name(season.id, asked)}"',
        }
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return responses.Response(status_code=304, headers=headers)
        return responses.StreamingResponse(
            self._texts(season, chosen), media_type=PGN, headers=headers
        )

    async def _texts(
        self, season: season_view.Season, chosen: list[events.Game]
    ) -> AsyncIterator[bytes]:
        async with self._busy:
            for game in chosen:
                text = await concurrency.run_in_threadpool(season.pgn, game)
                if text is not None:
                    yield text.rstrip(b"\n") + b"\n\n"

    def _season(self, request: requests.Request) -> season_view.Season | None:
        season = self._told.seasons.get(request.path_params["season"])
        return None if season is None or season.state.launch is None else season

    # -- Lichess -----------------------------------------------------------------------

    async def lichess_live(self, request: requests.Request) -> responses.Response:
        """Return the game in flight, else the one that was finished last."""
        season = self._told.seasons.get(self._shelf.shown)
        if season is None:
            return web_responses.missing("season")
        if season.game is not None:
            return self._answer(request, [self._flying(season, season.game.order.game, request)])
        last = season.last_finished()
        texts = await self._finished(season, [last] if last else [], request)
        return self._answer(request, texts)

    async def lichess_game(self, request: requests.Request) -> responses.Response:
        """Return one game, in flight or finished."""
        season, name = self._season(request), request.path_params["game"]
        game = season.state.games.get(name) if season else None
        if season is None or game is None:
            return web_responses.missing(f"game {name!r}")
        if season.game is not None and season.game.order.game == name:
            return self._answer(request, [self._flying(season, name, request)])
        return self._answer(request, await self._finished(season, [game], request))

    async def lichess_round(self, request: requests.Request) -> responses.Response:
        """Return the games of a round that have begun."""
        season, event = self._season(request), request.path_params["event"]
        if season is None or event not in season.state.events:
            return web_responses.missing(f"event {event!r}")
        number = request.path_params["round"]
        flying = season.game.order.game if season.game is not None else ""
        chosen = [
            game
            for game in map(season.state.games.__getitem__, season.state.events[event].order)
            if _round_number(season, game) == number
            and (game.finished is not None or game.id == flying)
        ][-_ROUND_GAMES:]
        texts = await self._finished(season, [g for g in chosen if g.id != flying], request)
        if any(game.id == flying for game in chosen):
            texts.append(self._flying(season, flying, request))
        return self._answer(request, texts)

    def _answer(self, request: requests.Request, texts: list[str]) -> responses.Response:
        if not texts:
            return web_responses.missing("game that has begun")
        text, cache = web_responses.of_text("".join(texts), PGN), web_responses.FRESH
        return web_responses.of_document(request, text, self._links.cache(cache))

    def _flying(self, season: season_view.Season, name: str, request: requests.Request) -> str:
        game = season.game
        assert game is not None
        tags = tcec_pgn.tags(game.line, game.started_ms, game.hall)
        tags["Round"] = _round(season, season.state.game(name))
        return lichess.text(game.line, tags).at(self._links.game(request, season.id, name))

    async def _finished(
        self, season: season_view.Season, chosen: list[events.Game], request: requests.Request
    ) -> list[str]:
        """Return finished games; each is rendered once, and by one request at a time."""
        async with self._rendering:
            texts = await concurrency.run_in_threadpool(
                lambda: [(game.id, self._lichess_text(season, game)) for game in chosen]
            )
        return [text.at(self._links.game(request, season.id, name)) for name, text in texts if text]

    def _lichess_text(self, season: season_view.Season, game: events.Game) -> lichess.Text | None:
        """Return a finished game, from the cache where it is there, as it is published now."""
        attempt = game.finished.attempt if game.finished else ""
        version = published.version(season.state, game)
        if version in self._texts_of_lichess:
            self._texts_of_lichess.move_to_end(version)
            return self._texts_of_lichess[version]
        record = attempt and self._told.album.game(season.id, game.id, attempt)
        if not record:
            return None
        tags = published.tags(season.state, game, pgn_record.tags(record))
        text = lichess.text(games.of_record(record), tags | {"Round": _round(season, game)})
        self._texts_of_lichess[version] = text
        while len(self._texts_of_lichess) > CACHED:
            self._texts_of_lichess.popitem(last=False)
        return text


class Matches(Protocol):
    """Matches whose games can be downloaded."""

    def pgn(self, season: str, game: str) -> str | None:
        """Return the PGN of a game, finished or in flight."""

    def all_games(self, season: str) -> pathlib.Path | str | None:
        """Return all finished games: their file, else their text; None where there is no match."""


class MatchDownloads:
    """The PGN of matches: the same addresses as those of seasons."""

    def __init__(self, matches: Matches, prefix: str = "") -> None:
        """Answer for matches, whose ids all begin with ``prefix``."""
        self._matches, self._prefix = matches, prefix

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes below ``/pgn`` and ``/lichess``."""
        match = f"{self._prefix}{{match}}"
        return [
            routing.Route(f"/pgn/{match}.pgn", self.match),
            routing.Route(f"/pgn/{match}/games/{{game}}.pgn", self.game),
            routing.Route(f"/lichess/{match}/games/{{game}}.pgn", self.game),
        ]

    def _season(self, request: requests.Request) -> str:
        return f"{self._prefix}{request.path_params['match']}"

    async def game(self, request: requests.Request) -> responses.Response:
        """Return the PGN of a game."""
        game = request.path_params["game"]
        text = await concurrency.run_in_threadpool(self._matches.pgn, self._season(request), game)
        if text is None:
            return web_responses.missing(f"PGN of game {game!r}")
        return web_responses.of_document(request, web_responses.of_text(text, PGN))

    async def match(self, request: requests.Request) -> responses.Response:
        """Return all finished games: the match's own file where it writes one."""
        season = self._season(request)
        games_ = await concurrency.run_in_threadpool(self._matches.all_games, season)
        if games_ is None:
            return web_responses.missing(f"match {season!r}")
        if isinstance(games_, pathlib.Path):
            return responses.FileResponse(games_, media_type=PGN)
        return responses.Response(games_, media_type=PGN)


def _round_number(season: season_view.Season, game: events.Game) -> str:
    """Return a game's round: in a knockout its match, since a stage is one round by its tags."""
    knockout = isinstance(season.state.events[game.event].spec.format, model.Knockout)
    return str(game.round_number) if knockout else game.round.partition(".")[0]


def _round(season: season_view.Season, game: events.Game) -> str:
    """Return round and game, as ``3.2``."""
    event = season.state.events[game.event]
    if not isinstance(event.spec.format, model.Knockout) or game.id not in event.order:
        return game.round
    before = event.order[: event.order.index(game.id)]
    match = game.round_number
    earlier = sum(season.state.games[other].round_number == match for other in before)
    return f"{match}.{earlier + 1}"


def _version(season: season_view.Season, chosen: list[events.Game]) -> str:
    """Return the validator of a download: which results it is made of."""
    results = ",".join(published.version(season.state, game) for game in chosen)
    return f'"{hashlib.sha256(f"{season.id}:{results}".encode()).hexdigest()[:24]}"'


def _file_name(season: str, asked: Mapping[str, str]) -> str:
    event = asked.get("event")
    return f"{season}-{event}.pgn" if event else f"{season}.pgn"
