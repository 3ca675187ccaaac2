"""Results of a test match by game number, and what they say at this moment.

Games 2p-1 and 2p are a pair. Results may come in any order, be set aside and come again.
Memory is five bytes a game, and a result costs the same whatever has been played, so
that a match of a million games is told about as cheaply as one of ten.
"""

from __future__ import annotations

import array
from collections.abc import Collection, Iterable, Iterator

from orchestrator.rating import results

NOTHING, LOSS, DRAW, WIN = range(4)  # what a game has brought the tested engine


class Tally:
    """The results of one engine against ``opponents`` others."""

    def __init__(self, opponents: int = 1) -> None:
        """Start with nothing played."""
        self._results = bytearray()
        self._hosts = array.array("I")
        self._names: dict[tuple[str, str], int] = {}  # hosts and owners, as they came
        self._single = [[0, 0, 0] for _ in range(opponents)]
        self._pairs = [[0] * results.PAIR_SCORES for _ in range(opponents)]
        self.games = 0
        self.set_aside = 0

    def add(self, game: int, points: float, host: str, owner: str = "") -> bool:
        """Count a result (0, ½ or 1 for the tested engine); False where there is one.

        ``owner`` is whose host it is, '' of the farm's own.
        """
        self._grow(game)
        if self._results[game] != NOTHING:
            return False
        self._results[game] = LOSS + round(2 * points)
        self._hosts[game] = self._index((host, owner))
        self._count(game, 1)
        return True

    def aside(self, games: Iterable[int]) -> list[int]:
        """Take results back; the games have none until they are played again. Return those."""
        had = [game for game in dict.fromkeys(games) if self.has(game)]
        for game in had:
            self._count(game, -1)
            self._results[game] = NOTHING
        self.set_aside += len(had)
        return had

    def has(self, game: int) -> bool:
        """Say whether a game has a result that counts."""
        return game < len(self._results) and self._results[game] != NOTHING

    def points(self, game: int) -> float | None:
        """Return what a game has brought the tested engine, None without a result that counts."""
        return (self._results[game] - LOSS) / 2 if self.has(game) else None

    def of_host(self, host: str) -> list[int]:
        """Return the games whose counted results came from a host."""
        return self._of({at for (name, _), at in self._names.items() if name == host})

    def of_owner(self, owner: str) -> list[int]:
        """Return the games whose counted results came from an owner's hosts."""
        return self._of({at for (_, name), at in self._names.items() if name == owner})

    def _of(self, indices: set[int]) -> list[int]:
        return [game for game in self._played() if self._hosts[game] in indices] if indices else []

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
        seen: dict[str, list[int]] = {name: [0, 0, 0] for name, _ in self._names}
        names = [name for name, _ in self._names]
        for game in self._played():
            seen[names[self._hosts[game]]][self._results[game] - LOSS] += 1
        return {name: results.Counts(won, drawn, lost) for name, (lost, drawn, won) in seen.items()}

    def counts(self, opponent: int | None = None) -> results.Counts:
        """Return results against one opponent (from 0), or against all."""
        if opponent is None:
            return results.total(self.counts(engine) for engine in range(len(self._single)))
        lost, drawn, won = self._single[opponent]
        none, half, even, three_halves, two = self._pairs[opponent]
        return results.Counts(won, drawn, lost, (none, half, even, three_halves, two))

    def without(self, owners: Collection[str]) -> results.Counts:
        """Return what ``counts`` does, without the games of some owners' hosts, against all."""
        left = Tally(len(self._single))
        skipped = {at for (_, owner), at in self._names.items() if owner in owners}
        for game in self._played():
            if self._hosts[game] not in skipped:
                left.add(game, (self._results[game] - LOSS) / 2, "")
        return left.counts()

    def _played(self) -> Iterator[int]:
        return (game for game, result in enumerate(self._results) if result != NOTHING)

    def _grow(self, game: int) -> None:
        lacking = game + 2 - len(self._results)
        if lacking > 0:
            self._results.extend(bytes(lacking))
            self._hosts.extend([0] * lacking)

    def _index(self, host: tuple[str, str]) -> int:
        return self._names.setdefault(host, len(self._names))

    def _count(self, game: int, by: int) -> None:
        opponent = (game - 1) // 2 % len(self._single)
        self._single[opponent][self._results[game] - LOSS] += by
        self.games += by
        other = self._results[game + 1 if game % 2 else game - 1]
        if other != NOTHING:
            self._pairs[opponent][self._results[game] + other - 2 * LOSS] += by
