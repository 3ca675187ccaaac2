"""Simulated engines that play pairs of games: for the tests of adaptive matches and round robins.

``python tests/rating/simulated_field.py ENGINES RUNS WIDTH WITHIN [adaptive,round-robin [SEED]]``
prints how many games lists of such fields need until they are in order, by adaptive choice and by a
round robin, and how often error bars hold; seeds count from SEED (0). The table of
``docs/match.md`` is made by it.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import statistics
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from orchestrator.rating import adaptive, field, logistic

EVEN = 0.5  # draw rate of equal engines
LEANING = 0.3  # share of pairs in which the second game mirrors the first: the opening decides


class World:
    """Engines with true strengths."""

    def __init__(self, engines: int, width: float, seed: int) -> None:
        """Draw strengths of a normal distribution ``width`` Elo wide."""
        self._numbers = np.random.default_rng(seed)
        true = self._numbers.normal(0, width, engines)
        self.true = true - true.mean()
        lead = (self.true[:, None] - self.true[None, :]).ravel() / field.UNIT
        self._chances = logistic.outcomes(lead, EVEN).reshape(engines, engines, 3).cumsum(axis=2)

    def pair(self, one: int, other: int) -> tuple[int, int]:
        """Play a pair; return the first engine's half points in both games."""
        luck, second, leaning = self._numbers.random(3)
        luck_again = 1 - luck if leaning < LEANING else second
        win, draw, _ = self._chances[one, other]
        first, again = (int(chance < win) + int(chance < draw) for chance in (luck, luck_again))
        return first, again


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one match came to: pairs, and shares of engines, of neighbours."""

    pairs: int
    expected_pairs: int
    inside: float  # of the engines, whose error bar holds the true strength
    ordered: float  # of the neighbours, which stand as they are, or closer than wanted


def play(
    world: World, target: adaptive.Target, *, choose: bool, at_once: int, most: int = 1_000_000
) -> Outcome:
    """Play until the list is in order; so many pairs at once have no result yet."""
    results = adaptive.Results(len(world.true))
    belief = adaptive.Belief(results)
    rows = list(zip(results.first.tolist(), results.second.tolist(), strict=True))
    while results.total < most and (not results.total or belief.unsure(target)):
        couples: list[tuple[int, int]] = []
        for number in range(results.total, results.total + at_once):
            if choose:
                couples.append(belief.next_couple(couples, target, hash((number, 7))))
            else:
                couples.append(rows[number * 7919 % len(rows)])
        for one, other in couples:
            results.add(one, other, world.pair(one, other))
        belief = adaptive.Belief(results, belief)
    return _outcome(world, belief, target)


def _outcome(world: World, belief: adaptive.Belief, target: adaptive.Target) -> Outcome:
    engines = range(len(world.true))
    inside = [abs(belief.elo(e) - world.true[e]) < belief.error(e) for e in engines]
    order = belief.ranked()
    leads = [world.true[a] - world.true[b] for a, b in itertools.pairwise(order)]
    return Outcome(
        belief.results.total,
        belief.round_robin_pairs(target),
        statistics.fmean(inside),
        statistics.fmean(lead > -target.within for lead in leads),
    )


def main() -> None:
    """Compare both on fields of one size."""
    engines, runs = int(sys.argv[1]), int(sys.argv[2])
    width, within = float(sys.argv[3]), float(sys.argv[4])
    kinds = sys.argv[5].split(",") if len(sys.argv) > 5 else ["adaptive", "round-robin"]
    first = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    target = adaptive.Target(0.95, within)
    for kind in kinds:
        found = [
            play(
                World(engines, width, seed),
                target,
                choose=kind == "adaptive",
                at_once=max(2, engines // 2),
            )
            for seed in range(first, first + runs)
        ]
        games = [2 * one.pairs for one in found]
        foretold = statistics.fmean(2 * one.expected_pairs for one in found)
        inside = 100 * statistics.fmean(one.inside for one in found)
        ordered = 100 * statistics.fmean(one.ordered for one in found)
        print(
            f"{kind}: {statistics.fmean(games):.0f} games (median {statistics.median(games):.0f};"
            f" a round robin as foretold {foretold:.0f}), error bars hold {inside:.1f} %,"
            f" neighbours ordered {ordered:.1f} %; {runs} fields of {engines} from seed {first},"
            f" {width:g} Elo wide, within {within:g} Elo",
            flush=True,
        )


if __name__ == "__main__":
    main()
