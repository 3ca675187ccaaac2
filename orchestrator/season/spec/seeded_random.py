"""Draw lots that anyone can check once the season's seed is published.

Every number is SHA-256 over (season seed, node id, k) with k counting the draws of one
node, so a draw depends on nothing that was drawn elsewhere, and a replayed season draws
the same. ``commitment`` is what is published at launch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from orchestrator import contract

_SPACE = 1 << 256  # how many values a SHA-256 digest can take


def commitment(seed: str) -> str:
    """Return the hash of the seed that is published while the seed is sealed."""
    return hashlib.sha256(seed.encode()).hexdigest()


def number(seed: str, node: str, k: int) -> int:
    """Return draw ``k`` (from 0) of a node: a whole number below 2**256."""
    text = contract.dumps([seed, node, k])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def below(numbers: Iterator[int], bound: int) -> int:
    """Take a number below ``bound`` from a node's draws, each value equally likely."""
    fair = _SPACE - _SPACE % bound
    return next(value for value in numbers if value < fair) % bound


def numbers(seed: str, node: str) -> Iterator[int]:
    """Yield the numbers of a node without end."""
    k = 0
    while True:
        yield number(seed, node, k)
        k += 1


def shuffle(seed: str, node: str, count: int) -> list[int]:
    """Return 0 … ``count`` - 1 in a drawn order (Fisher and Yates)."""
    taken = numbers(seed, node)
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = below(taken, last + 1)
        order[last], order[other] = order[other], order[last]
    return order
