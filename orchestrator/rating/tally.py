"""Results of a test match by game number, and what they say at this moment.

Games 2p-1 and 2p are a pair. Results may come in any order, be set aside and come again.
Memory is five bytes a game, and a result costs the same whatever has been played, so
that a match of a million games is told about as cheaply as one of ten.
"""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator

from orchestrator.rating import results

NOTHING, LOSS, DRAW, WIN = range(4)  # what a game has brought the tested engine


class Tally:
    """The results of one engine against ``opponents`` others."""

    def __init__(self, opponents: int = 1) -> None:
        """Start with nothing played."""
        self._results = bytearray()
        self._hosts = array.array("I")
        self._names: dict[str, int] = {}  # hosts, in the order of their first results
        self._single = [[0, 0, 0] for _ in range(opponents)]
        self._pairs = [[0] * results.PAIR_SCORES for _ in range(opponents)]
        self.games = 0
        self.set_aside = 0

    def add(self, game: int, points: float, host: str) -> bool:
        """Count a result (0, ½ or 1 for the tested engine); False where there is one."""
        self._grow(game)
        if self._results[game] != NOTHING:
            return False
        self._results[game] = LOSS + round(2 * points)
        self._hosts[game] = self._index(host)
        self._count(game, 1)
        return True

    def aside(self, games: Iterable[int]) -> None:
        """Take results back; the games have none until they are played again."""
        for game in games:
            if game < len(self._results) and self._results[game] != NOTHING:
                self._count(game, -1)
                self._results[game] = NOTHING
                self.set_aside += 1

    def of_host(self, host: str) -> list[int]:
        """Return the games whose counted results came from a host."""
        if host not in self._names:
            return []
        index = self._names[host]
        return [game for game in self._played() if self._hosts[game] == index]

    def missing(self) -> list[int]:
        """Return the games below the last played one that have no result."""
        last = max(self._played(), default=0)
        return [game for game in range(1, last) if self._results[game] == NOTHING]

    @property
    def next(self) -> int:
        """Return the number behind the last played game."""
        return max(self._played(), default=0) + 1

    def hosts(self) -> dict[str, results.Counts]:
        """Return what each host's games have brought, as single games."""
        seen = [[0, 0, 0] for _ in self._names]
        for game in self._played():
            seen[self._hosts[game]][self._results[game] - LOSS] += 1
        by_host = zip(self._names, seen, strict=True)
        return {name: results.Counts(won, drawn, lost) for name, (lost, drawn, won) in by_host}

    def counts(self, opponent: int | None = None) -> results.Counts:
        """Return results against one opponent (from 0), or against all."""
        if opponent is None:
            return results.total(self.counts(engine) for engine in range(len(self._single)))
        lost, drawn, won = self._single[opponent]
        none, half, even, three_halves, two = self._pairs[opponent]
        return results.Counts(won, drawn, lost, (none, half, even, three_halves, two))

    def _played(self) -> Iterator[int]:
        return (game for game, result in enumerate(self._results) if result != NOTHING)

    def _grow(self, game: int) -> None:
        lacking = game + 2 - len(self._results)
        if lacking > 0:
            self._results.extend(bytes(lacking))
            self._hosts.extend([0] * lacking)

    def _index(self, host: str) -> int:
        return self._names.setdefault(host, len(self._names))

    def _count(self, game: int, by: int) -> None:
        opponent = (game - 1) // 2 % len(self._single)
        self._single[opponent][self._results[game] - LOSS] += by
        self.games += by
        other = self._results[game + 1 if game % 2 else game - 1]
        if other != NOTHING:
            self._pairs[opponent][self._results[game] + other - 2 * LOSS] += by
