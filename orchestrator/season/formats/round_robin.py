"""Round robin: FIDE Berger tables, or nTCEC's circle.

A k times double round robin is 2k cycles. Even cycles repeat the one before with all
colours turned, so the reverse game, with the same opening, comes exactly one cycle
later; where it follows at once there are k cycles of pairs of games. ``cutechess`` is the
order of cutechess: the first number never moves, the others turn. FRC-2b's text gives White
of a pair's first game to the lower seed; the tables otherwise decide the colours. An odd
field plays the table of the next even size: who meets the highest number has a bye. Rounds
are computed one by one, in time linear in the field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from orchestrator.season.formats import base


@dataclasses.dataclass(frozen=True)
class RoundRobin:
    """The schedule of ``entrants`` engines who meet ``2 * double_rounds`` times each."""

    entrants: int
    double_rounds: int
    table: Literal["berger", "circle", "cutechess"] = "berger"
    first_white: Literal["berger", "lower-seed"] = "berger"
    ranks: tuple[int, ...] = ()
    reverse: Literal["next-cycle", "at-once"] = "next-cycle"

    @property
    def _even(self) -> int:
        return self.entrants + self.entrants % 2

    @property
    def _cycle_games(self) -> int:
        return self.entrants * (self.entrants - 1) // 2

    @property
    def games(self) -> int:
        """Return k·n·(n-1)."""
        return 2 * self.double_rounds * self._cycle_games

    @property
    def openings(self) -> int:
        """Return one opening for each pair of games."""
        return self.double_rounds * self._cycle_games

    @property
    def rounds(self) -> int:
        """Return the rounds of all cycles."""
        return 2 * self.double_rounds * (self._even - 1) // self._at_once

    @property
    def _at_once(self) -> int:
        """Return how many games of one pair follow each other."""
        return 2 if self.reverse == "at-once" else 1

    @property
    def open_ended(self) -> bool:
        """Say that no game is ever added."""
        return False

    @property
    def _boards(self) -> int:
        return self.entrants // 2

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield the rounds that are not paired yet; all have the same number of games."""
        for index in range(played.paired, self.rounds):
            yield index + 1, self._boards * self._at_once

    def pair(self, index: int, played: base.History) -> base.Pairing:
        """Draw round ``index`` of the table; results do not matter."""
        del played
        cycle, row = divmod(index, self._even - 1)
        at_once = self._at_once
        first_slot = cycle * at_once // 2 * self._cycle_games + row * self._boards
        pairs = [self._coloured(pair) for pair in self._row(row) if max(pair) < self.entrants]
        turned = 0 if at_once == 2 else cycle % 2
        boards = tuple(
            base.Board(
                white=pair[(turned + game) % 2],
                black=pair[(turned + game + 1) % 2],
                slot=first_slot + board,
                tag=f"{index + 1}.{board * at_once + game + 1}",
            )
            for board, pair in enumerate(pairs)
            for game in range(at_once)
        )
        return base.Pairing(cycle=cycle + 1, round=index + 1, boards=boards)

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether the last cycle is paired."""
        del played
        return paired >= self.rounds

    def built_from(self, number: int) -> None:
        """Return None: the table is drawn whatever the results are."""
        del number

    def order(self, played: base.History) -> None:
        """Leave the places to points and tiebreaks."""
        del played

    def _coloured(self, pair: tuple[int, int]) -> tuple[int, int]:
        if self.first_white == "berger":
            return pair
        lower, higher = sorted(pair, key=self._rank, reverse=True)
        return lower, higher

    def _rank(self, engine: int) -> int:
        return self.ranks[engine] if self.ranks else engine

    def _row(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield a round of the first cycle, White first; the last number never moves."""
        last = self._even - 1
        if self.table == "cutechess":
            ring = [1 + (seat - row) % last for seat in range(last)]
            yield from zip((0, *ring), ring[::-1][: self._even // 2], strict=False)
            return
        turn = row * self._even // 2 % last if self.table == "berger" else row
        white_is_last = self.table == "berger" and row % 2 == 1
        yield (last, turn) if white_is_last else (turn, last)
        for step in range(1, self._even // 2):
            yield (turn + step) % last, (turn - step) % last
