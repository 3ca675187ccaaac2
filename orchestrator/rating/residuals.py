"""Results of single workers against everybody else's of the same match, looked at again and again.

Pairs are taken in blocks. Within a block nobody's pairs should stand out: if all are played alike,
each order of them is equally likely. So a pair's weight ``g`` divided by the mean weight of those
that it could have been is 1 on average, whatever the strength of the engines is, and the product
of such ratios over a worker's pairs (drawn without putting back) is 1 on average as well. It is
evidence that may be looked at after every block: that it ever passes ``1 / a`` has at most the
probability ``a`` (Ville; Vovk and Wang, "E-values: calibration, combination and applications").
Weights are ``exp(t x)`` of what a pair shows (score, decisiveness, lost by a fault) for some ``t``;
the mean of their products is evidence, too, for whoever plays like one of them.

Honest machines are not equal. Each ratio is therefore made smaller by what a machine may differ in
mean (``apart``) and in variance (``spread``), so that only more than this is evidence.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

LEAST_BLOCK: Final = 8  # pairs: fewer are no crowd to stand out from
SHARE: Final = 4  # one owner of so many in a block is a crowd, too, and sooner there
MOST_OF_ONE: Final = 4  # pairs of one owner in a block's crowd: who plays most is not the norm
NEW: Final = 0.02  # of the stake: who was honest for long, and is no more, is found by it
TRUSTED: Final = ""  # the owner of the farm's own lanes: never judged, always in the crowd
_TINY, _HUGE = 1e-100, 1e100  # products between them are far from a double's ends
_FAULTS: Final = 3  # a pair has 0, 1 or 2 games that were lost by a fault
_SEEN: Final = 5 * _FAULTS  # what may be seen of a pair


@dataclasses.dataclass(frozen=True)
class Pair:
    """What is seen of a pair: half points of the tested engine (0 to 4), and faults (0 to 2)."""

    half_points: int
    faults: int = 0

    @property
    def index(self) -> int:
        """Return the pair's place in tables."""
        return self.half_points * _FAULTS + self.faults


@dataclasses.dataclass(frozen=True)
class _Weight:
    """One way to stand out: the weight of each pair, and what is allowed to machines (nats)."""

    kind: str
    table: tuple[float, ...]
    allowed: float


def _weights() -> Iterator[_Weight]:
    """Yield all weights.

    Scores are from 0 to 1; 0.01 is 7 Elo, and as the least ``t`` is 1, less than 15 Elo is no
    evidence. Twice as many decisive pairs as elsewhere are more than 0.08. A machine may have a
    fault in a hundred pairs more than the others.
    """
    yield from _tilted("score", lambda pair: pair.half_points / 4, (1, 3, 7), 0.01, 0.002)
    yield from _tilted("draws", lambda pair: abs(pair.half_points - 2) / 2, (1, 3), 0.08, 0.01)
    for t in (2.0, 4.0):
        table = tuple(math.exp(t * (index % _FAULTS) / 2) for index in range(_SEEN))
        yield _Weight("faults", table, 0.01 * (math.exp(t / 2) - 1))


def _tilted(
    kind: str, seen: Callable[[Pair], float], turns: tuple[int, ...], apart: float, spread: float
) -> Iterator[_Weight]:
    for turn in turns:
        for t in (turn, -turn):
            pairs = (Pair(*divmod(index, _FAULTS)) for index in range(_SEEN))
            table = tuple(math.exp(t * seen(pair)) for pair in pairs)
            yield _Weight(kind, table, turn * apart + turn * turn * spread / 2)


_WEIGHTS: Final = tuple(_weights())


@dataclasses.dataclass(frozen=True)
class Evidence:
    """How far somebody stands out: nats of evidence, 0 or less for none, and by what most."""

    nats: float
    kind: str


class Residuals:
    """The evidence on all owners of workers, and on each machine where an owner has several.

    What a pair costs grows with nothing; memory does with owners and machines.
    """

    def __init__(self) -> None:
        """Start without a pair."""
        self._block: dict[str, list[tuple[str, Pair]]] = {}  # by owner, in the order of arrival
        self._pairs = 0
        self._machines: dict[str, set[str]] = {}
        self._wealth: dict[str, dict[str, list[float]]] = {}  # by owner; machine '': all of them

    def carry(self, nats: Mapping[str, Sequence[float]]) -> None:
        """Begin with the evidence of earlier matches, as ``carried`` gave it.

        All of the stake goes on with it but for ``NEW``. Evidence of other weights than these, of
        another version, is none.
        """
        for owner, values in nats.items():
            if len(values) == len(_WEIGHTS):
                self._wealth[owner] = {
                    "": [math.log(NEW + (1 - NEW) * math.exp(n)) for n in values]
                }

    def forget(self, owner: str) -> None:
        """Drop all evidence on an owner, and his pairs that no block has used."""
        self._pairs -= len(self._block.pop(owner, []))
        self._machines.pop(owner, None)
        self._wealth.pop(owner, None)

    def add(self, owner: str, machine: str, pair: Pair) -> bool:
        """Take a pair; return whether a block has ended, so that evidence has changed."""
        self._block.setdefault(owner, []).append((machine, pair))
        self._machines.setdefault(owner, set()).add(machine)
        self._pairs += 1
        if self._pairs < max(LEAST_BLOCK, len(self._machines) // SHARE) or len(self._block) < 2:
            return False
        self._end_block()
        return True

    def of(self, owner: str) -> Evidence:
        """Return the evidence on an owner: that of all his games, or of his worst machine."""
        by_machine = [_evidence(wealth) for wealth in self._wealth.get(owner, {}).values()]
        return max(by_machine, key=lambda evidence: evidence.nats, default=Evidence(0.0, ""))

    def evidence(self) -> dict[str, Evidence]:
        """Return the evidence on all owners, as ``of`` does for one."""
        return {owner: self.of(owner) for owner in self._wealth}

    def carried(self) -> dict[str, list[float]]:
        """End the block, and return what later matches begin with: each owner's evidence (nats).

        A match may end when its results say so: they are the same whoever has played which of them.
        """
        if self._pairs >= LEAST_BLOCK and len(self._block) > 1:
            self._end_block()
        return {
            owner: [round(value, 2) for value in wealth[""]]
            for owner, wealth in self._wealth.items()
            if owner in self._machines
        }

    def _end_block(self) -> None:
        crowd = {owner: _counted(owner, pairs) for owner, pairs in self._block.items()}
        counts = [sum(each) for each in zip(*crowd.values(), strict=True)]
        for owner, pairs in self._block.items():
            if owner == TRUSTED:
                continue
            others = [of_all - own for of_all, own in zip(counts, crowd[owner], strict=True)]
            self._weigh(owner, "", others, [pair.index for _, pair in pairs])
            if len(self._machines[owner]) > 1:
                for machine in {machine for machine, _ in pairs}:
                    own = [pair.index for at, pair in pairs if at == machine]
                    self._weigh(owner, machine, others, own)
        self._block, self._pairs = {}, 0

    def _weigh(self, owner: str, machine: str, others: list[int], own: list[int]) -> None:
        """Multiply somebody's evidence by what a block says of his pairs."""
        of_owner = self._wealth.setdefault(owner, {})
        wealth = of_owner.setdefault(machine, [0.0] * len(_WEIGHTS))
        number, present = sum(others), [at for at in range(_SEEN) if others[at]]
        for at, weight in enumerate(_WEIGHTS):
            table = weight.table
            left = sum(others[score] * table[score] for score in present) + sum(
                table[score] for score in own
            )
            size, product = number + len(own), 1.0
            for score in own:
                product *= table[score] * size / left
                left, size = left - table[score], size - 1
                if not _TINY < product < _HUGE:  # of a block that is nearly all one owner's
                    wealth[at], product = wealth[at] + math.log(product), 1.0
            wealth[at] += math.log(product) - weight.allowed * len(own)


def _evidence(wealth: list[float]) -> Evidence:
    most = max(wealth)
    mean = math.log(sum(math.exp(value - most) for value in wealth) / len(wealth)) + most
    return Evidence(mean, _WEIGHTS[wealth.index(most)].kind)


def _counted(owner: str, pairs: list[tuple[str, Pair]]) -> list[int]:
    """Return how often each kind of pair is in the crowd from one owner."""
    counts = [0] * _SEEN
    for _, pair in pairs if owner == TRUSTED else pairs[:MOST_OF_ONE]:
        counts[pair.index] += 1
    return counts
