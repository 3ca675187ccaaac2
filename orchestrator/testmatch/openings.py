"""Which opening of a book is played where: order, start and sharing.

The order of a book is a function of book length, seed and start alone, so a schedule
that is replayed gives every game the opening it had. Invariants: with ``random`` every
opening comes once before any comes again; games that share an opening have one index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["sequential", "random"]


def order(count: int, kind: Order, seed: int | str, start: int = 1) -> list[int]:
    """Return the indices of ``count`` openings in the order in which they are dealt.

    ``start`` is the first opening's number in the book, from 1; the openings before it
    come last. A random order is drawn from the seed (Fisher and Yates on SHA-256).
    """
    if kind == "random":
        return _shuffled(count, seed)
    first = (start - 1) % count
    return [*range(first, count), *range(first)]


def deal(shares: Iterable[Hashable]) -> list[int]:
    """Number openings by what shares them: equal shares, equal numbers, from 0."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(share, len(numbers)) for share in shares]


def _shuffled(count: int, seed: int | str) -> list[int]:
    indices = list(range(count))
    for last in range(count - 1, 0, -1):
        other = draw(f"{seed}/{last}") % (last + 1)
        indices[last], indices[other] = indices[other], indices[last]
    return indices


def draw(text: str) -> int:
    """Return the number that SHA-256 draws from a text, below 2**64."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
