"""A few games of remote workers as they are played: position and clocks, for people who look.

The gateway writes them down as workers tell, checked move by move; they count for nothing. So
many are shown at most, of a match and in all, and what was not heard of for a while is over.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from orchestrator import contract
from orchestrator.ledger import connection, keys, replies

OF_A_MATCH: Final = 4  # games of a match that are shown
IN_ALL: Final = 16
STALE_MS: Final = 30_000  # ms: six times as long as a worker waits between two words


@dataclasses.dataclass(frozen=True)
class LiveGame:
    """Where a game stands; clocks in nanoseconds, ``last`` the last move in UCI notation."""

    match: str
    number: int
    batch: str
    worker: str
    white: str
    black: str
    fen: str
    last: str
    plies: int
    white_clock_ns: int
    black_clock_ns: int
    at_ms: int


class RedisLiveGames:
    """The live games of one Redis server. Any verb may raise ``LedgerAwayError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self._server = server
        self._key = keys.Keys(prefix).batches("live")

    def all(self, now_ms: int) -> list[LiveGame]:
        """Return the games that are played now."""
        table = self._server.table(self._key)
        games = replies.each(table, lambda _, raw: LiveGame(**raw))
        return sorted(
            (game for game in games if now_ms - game.at_ms < STALE_MS),
            key=lambda game: (game.match, game.number),
        )

    def has_room(self, match: str, batch: str, number: int, now_ms: int) -> bool:
        """Say whether a game is shown, or would be."""
        games = self.all(now_ms)
        if any((game.batch, game.number) == (batch, number) for game in games):
            return True
        of_match = sum(game.match == match for game in games)
        return of_match < OF_A_MATCH and len(games) < IN_ALL

    def put(self, game: LiveGame) -> None:
        """Show where a game stands; what is over gives way."""
        over = [
            name
            for name, raw in self._server.table(self._key).items()
            if game.at_ms - int(contract.loads(raw)["at_ms"]) >= STALE_MS
        ]
        with self._server.asked():
            if over:
                self._server.client.hdel(self._key, *over)
            name = f"{game.batch} {game.number}"
            self._server.client.hset(self._key, name, contract.dumps(dataclasses.asdict(game)))

    def end(self, batch: str, numbers: list[int]) -> None:
        """Show games no longer: they have ended."""
        if numbers:
            with self._server.asked():
                self._server.client.hdel(self._key, *(f"{batch} {number}" for number in numbers))
