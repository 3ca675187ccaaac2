"""The games of ``-tournament adaptive``: which couple plays the next pair, from the results so far.

Each pair of games has an opening of its own and both colours. Several pairs are in flight at
once, and games end in any order; still, which couple plays pair ``k`` is a function of the seed
and of the results of the pairs before it alone: it counts the pairs before ``k - window`` and no
other, and waits for them; those between count as being played. A slow game holds nobody up
before so many pairs have overtaken it. So the journal needs to hold nothing but results: a match
that is resumed deals what it would have dealt.

A match ends when its budget is dealt, or when the list is in order. Where the counted pairs say
so, the rest is waited for, and has to say so too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orchestrator.testmatch import match_journal, openings, standings
from worker_cpu.match import schedule

DEPTH = 3  # pairs a lane that may be played beyond a game before they wait for it


class Dealer:
    """Deals the pairs of one match."""

    def __init__(
        self, plan: schedule.Plan, seed: int, lanes: int, table: standings.Standings
    ) -> None:
        """Begin a match; ``table`` has the results, once they are counted."""
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small tables need no threads
        from orchestrator.rating import adaptive  # noqa: PLC0415 - numpy takes 0.25 s, few need it

        self._plan, self._seed, self._lanes, self._table = plan, seed, lanes, table
        self._window = DEPTH * lanes - 1
        self._target = _target(plan)
        self._couples: list[tuple[int, int]] = []
        self._results = adaptive.Results(plan.engines)
        self._of = adaptive.Belief
        self._belief = adaptive.Belief(self._results)
        self._waiting: list[int] = []  # pairs that are not counted
        self._ended = False

    def resumed(self, done: Mapping[int, match_journal.Result]) -> list[schedule.Slot]:
        """Deal again what was dealt; return all slots of it.

        Engines are those of the journal where a game of a pair was finished; results of all of
        them have to be in the table.
        """
        names = {name: engine for engine, name in enumerate(self._table.names)}
        while len(self._couples) <= (max(done, default=0) - 1) // 2:
            pair = len(self._couples)
            first, second = done.get(2 * pair + 1), done.get(2 * pair + 2)
            couple = None
            if first is not None and {first.white, first.black} <= names.keys():
                couple = names[first.white], names[first.black]
            elif second is not None and {second.white, second.black} <= names.keys():
                couple = names[second.black], names[second.white]
            self._add(couple or self._chosen() or (0, 1))
        return [slot for pair in range(len(self._couples)) for slot in self._slots(pair)]

    def more(self) -> list[schedule.Slot]:
        """Return the games of the next pairs, enough for all lanes; none while results lack."""
        slots: list[schedule.Slot] = []
        while len(slots) < self._lanes and (couple := self._next()) is not None:
            self._add(couple)
            slots += self._slots(len(self._couples) - 1)
        return slots

    @property
    def complete(self) -> bool:
        """Say whether all games are played."""
        return self._next() is None and self._whole(range(len(self._couples)))

    def _next(self) -> tuple[int, int] | None:
        """Return the couple of the next pair, ``None`` if there is none or it has to wait."""
        pair = len(self._couples)
        if self._ended or 2 * pair >= self._plan.budget:
            return None
        if not self._whole(range(max(0, pair - self._window))):
            return None
        return self._chosen()

    def _chosen(self) -> tuple[int, int] | None:
        pair = len(self._couples)
        self._count(pair - self._window)
        if self._in_order():
            if not self._whole(self._waiting):
                return None
            self._count(pair)
            if self._in_order():
                self._ended = True
                return None
        playing = [self._couples[waiting] for waiting in self._waiting]
        number = openings.draw(f"{self._seed}/adaptive/{pair}")
        return self._belief.next_couple(playing, self._target, number)

    def _in_order(self) -> bool:
        return self._target is not None and not self._belief.unsure(self._target)

    def _add(self, couple: tuple[int, int]) -> None:
        self._waiting.append(len(self._couples))
        self._couples.append(couple)

    def _whole(self, pairs: Collection[int]) -> bool:
        points = self._table.white_points
        return all(
            2 * pair + 1 in points and 2 * pair + 2 in points
            for pair in self._waiting
            if pair in pairs
        )

    def _count(self, before: int) -> None:
        """Count the whole pairs before this one."""
        points = self._table.white_points
        counted = self._results.total
        for pair in [
            waiting for waiting in self._waiting if waiting < before and self._whole((waiting,))
        ]:
            first, second = self._couples[pair]
            self._results.add(first, second, (points[2 * pair + 1], 2 - points[2 * pair + 2]))
            self._waiting.remove(pair)
        if self._results.total > counted:
            self._belief = self._of(self._results, self._belief)

    def _slots(self, pair: int) -> Sequence[schedule.Slot]:
        """Return both games of a pair."""
        first, second = self._couples[pair]
        colours = [(first, second), (second, first)]
        return [
            schedule.Slot(2 * pair + game, pair + 1, pair + 1, white, black, pair, pair)
            for game, (white, black) in enumerate(colours, start=1)
        ]


def _target(plan: schedule.Plan) -> Any:
    """Return when the list of a match is in order, ``None`` where it ends with its budget alone."""
    from orchestrator.rating import adaptive  # noqa: PLC0415 - numpy takes 0.25 s, few need it

    return adaptive.Target(plan.confidence, plan.within) if plan.confidence else None


def order_line(plan: schedule.Plan, order: Mapping[str, Any], neighbours: int) -> str:
    """Say how sure the order of a match's list is, and what a round robin would have needed."""
    played, needed = order["played"], order["round_robin_games"]
    if plan.confidence:
        within = f" or within {plan.within:g} Elo" if plan.within else ""
        sure = f"{neighbours - order['unsure']} of {neighbours} neighbours"
        line = f"Order: {sure} are {100 * plan.confidence:g} % sure{within} after {played} games"
    else:
        wrong = f"{100 * order['wrong']:.1f} % of all couples stand in the wrong order"
        line = f"Order: {wrong}, by expectation, after {played} games"
    if not played or not needed or order["unsure"]:
        return line
    saved = f" ({100 * (1 - played / needed):.0f} % saved)" if needed > played else ""
    return f"{line}; a round robin would take about {needed}{saved}"


def order_facts(plan: schedule.Plan, table: standings.Standings) -> dict[str, Any]:
    """Return how sure the order is as plain data; ``wrong`` is a share of all couples."""
    belief = standings.believed(table)
    wanted = _target(plan)
    return {
        "confidence": plan.confidence,
        "within": plan.within,
        "played": table.played,
        "unsure": 0 if wanted is None else belief.unsure(wanted),
        "wrong": belief.wrong(),
        "round_robin_games": 2 * belief.round_robin_pairs(wanted),
    }
