"""A match of two engines: colours turn with every game, openings run 1, 1, 2, 2 and so on.

S16-8a: the reverse game with the same opening follows at once; S16-8b: the match is
played to its last game even when it is decided. A round is one pair of games.
"""

from __future__ import annotations

import dataclasses

from orchestrator.season import tally
from orchestrator.season.formats import base


@dataclasses.dataclass(frozen=True)
class Match:
    """The schedule of a match; ``first_white`` is the number of game 1's White."""

    games: int
    first_white: int = 0

    @property
    def openings(self) -> int:
        """Return one opening for each pair of games."""
        return self.games // 2

    @property
    def rounds(self) -> int:
        """Return the number of pairs of games."""
        return self.games // 2

    def boards_in(self, index: int) -> int:
        """Return the two games of a pair."""
        del index
        return 2

    def pair(self, index: int, played: tally.Tally) -> base.Pairing:
        """Draw the pair of games ``index`` (from 0); results do not matter."""
        del played
        first, second = self.first_white, 1 - self.first_white
        boards = (
            base.Board(white=first, black=second, slot=index, tag=f"{2 * index + 1}.1"),
            base.Board(white=second, black=first, slot=index, tag=f"{2 * index + 2}.1"),
        )
        return base.Pairing(cycle=1, round=index + 1, boards=boards)

    def complete(self, paired: int, played: tally.Tally) -> bool:
        """Say whether the last pair of games is paired."""
        del played
        return paired >= self.rounds
