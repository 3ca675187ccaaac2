"""Gauntlets and listed meetings: games of two engines that follow each other at once.

A meeting has one opening, and the colours turn after each of its games. In a gauntlet each
hub meets every other engine that is no hub; no result changes the order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

from orchestrator.season.formats import base


@dataclasses.dataclass(frozen=True)
class Encounters:
    """The schedule of meetings in their order, each of ``each`` games; a round is a meeting.

    ``meetings`` are numbers of engines, White of the first game first.
    """

    meetings: tuple[tuple[int, int], ...]
    each: int = 2

    @property
    def games(self) -> int:
        """Return the games of all meetings."""
        return len(self.meetings) * self.each

    @property
    def openings(self) -> int:
        """Return one opening for each meeting."""
        return len(self.meetings)

    @property
    def rounds(self) -> int:
        """Return the number of meetings."""
        return len(self.meetings)

    @property
    def open_ended(self) -> bool:
        """Say that no game is ever added."""
        return False

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield the meetings that are not paired yet."""
        for index in range(played.paired, self.rounds):
            yield index + 1, self.each

    def pair(self, index: int, played: base.History) -> base.Pairing:
        """Draw the games of a meeting; results do not matter."""
        del played
        sides = self.meetings[index]
        boards = tuple(
            base.Board(
                white=sides[game % 2],
                black=sides[1 - game % 2],
                slot=index,
                tag=f"1.{index * self.each + game + 1}",
            )
            for game in range(self.each)
        )
        return base.Pairing(cycle=1, round=index + 1, boards=boards)

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether the last meeting is paired."""
        del played
        return paired >= self.rounds

    def built_from(self, number: int) -> None:
        """Return None: the meetings are listed whatever the results are."""
        del number

    def order(self, played: base.History) -> None:
        """Leave the places to points and tiebreaks."""
        del played


def listed(meetings: Sequence[tuple[int, int]], games: int) -> Encounters:
    """Return the schedule of listed meetings; their seeds count from 1."""
    return Encounters(tuple((first - 1, second - 1) for first, second in meetings), games)


def gauntlet(
    entrants: int, hubs: int, double_rounds: int, first_white: Literal["hub", "opponent"]
) -> Encounters:
    """Return the schedule of a gauntlet: the opponents by seed, each against every hub."""
    once = [(hub, opponent) for opponent in range(hubs, entrants) for hub in range(hubs)]
    if first_white == "opponent":
        once = [(opponent, hub) for hub, opponent in once]
    return Encounters(tuple(once * double_rounds), 2)
