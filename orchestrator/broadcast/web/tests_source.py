"""Test matches as a source of the API's answers, and of PGN."""

from __future__ import annotations

import pathlib

from starlette import concurrency

from orchestrator.broadcast import test_matches
from orchestrator.broadcast.content import documents, replays
from orchestrator.broadcast.web import api, hub


class Tests:
    """The farm's test matches; a match that is over is read when it is asked for."""

    def __init__(
        self, shelf: documents.Library, shown: test_matches.TestMatches, center: hub.Hub
    ) -> None:
        """Answer from library, matches, and the hub of those who watch test matches."""
        self._shelf, self._told, self._hub = shelf, shown, center

    async def document(self, path: str) -> documents.Document | None:
        """Return a document of a match."""
        head, _, rest = path.partition("/")
        name = rest.partition("/")[0]
        if head != "seasons" or not name.startswith(test_matches.PREFIX):
            return None
        if self._shelf.get(path) is None:
            await concurrency.run_in_threadpool(self._told.find, name)
        return self._shelf.get(path)

    async def stream(self, season: str) -> tuple[hub.Hub, str] | None:
        """Return the hub; where the farm has no season, the newest match is shown."""
        name = season or ("" if self._shelf.shown else self._told.newest)
        if not name.startswith(test_matches.PREFIX):
            return None
        match = await concurrency.run_in_threadpool(self._told.find, name)
        return None if match is None else (self._hub, name)

    async def game(self, season: str, game: str) -> api.Answer | None:
        """Return a finished game with all its plies."""
        replay = await self._finished_game(season, game)
        return None if replay is None else api.Answer(documents.of_json(replay.document()))

    async def ply(self, season: str, game: str, number: int) -> api.Answer | None:
        """Return one ply of a finished game."""
        replay = await self._finished_game(season, game)
        if replay is None or not 1 <= number <= replay.line.last:
            return None
        return api.Answer(documents.of_json(replay.ply(number)))

    async def _finished_game(self, season: str, game: str) -> replays.Replay | None:
        if not season.startswith(test_matches.PREFIX):
            return None
        return await concurrency.run_in_threadpool(self._replay, season, game)

    def _replay(self, season: str, game: str) -> replays.Replay | None:
        finished = self._told.result(season, game)
        return None if finished is None else finished[0].games.replay(finished[1])

    def pgn(self, season: str, game: str) -> str | None:
        """Return the PGN of a finished game."""
        finished = self._told.result(season, game)
        return None if finished is None else finished[0].games.pgn(finished[1])

    def all_games(self, season: str) -> pathlib.Path | str | None:
        """Return the file of the games that count; no text before the first one."""
        match = self._told.find(season)
        if match is None:
            return None
        path = match.folder / "games.pgn"
        return path if path.exists() else ""
