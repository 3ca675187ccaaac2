"""Mutations of what strangers write: bytes, lines of words, and trees of JSON.

All of it follows from the random generator that is given, so that an input is known by its
target, seed and number.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = (
    *("0", "-1", "1", "255", "65536", "2147483648", "-9223372036854775808", "18446744073709551616"),
    *("1e308", "1e999", "-0.0", "NaN", "Infinity", "0x10", "1_000", "٣", "9" * 400),
)
STRINGS = (
    *("", " ", "\0", "\n", "\r\n", "\u202e", "\ufeff", "\ud800", "é" * 300, "../../x", "a\0b"),
    *("%s%n", "{0}", "$(id)", "[[", "]]", "<b>", "A" * 5_000, "-", "--", '"', "'", "\\"),
)
BYTES = (b"\0", b"\n", b"\r", b"\r\n", b"\xff", b"\xc3", b"\xef\xbb\xbf", b" ", b"\t", b"\x1b[2J")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, float("nan")),
    *(float("inf"), "", "x", "../x", "\0", [], {}, [[]], {"": None}),
)


def of_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change bytes a few times: flip, cut, repeat, insert, swap."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(changed) + 1)
        to = min(len(changed), at + rng.choice((1, 2, 4, 16, 200)))
        match rng.randrange(7):
            case 0 if changed:
                changed[at % len(changed)] ^= 1 << rng.randrange(8)
            case 1:
                del changed[at:to]
            case 2:
                changed[at:at] = changed[at:to] * rng.choice((1, 2, 50))
            case 3:
                changed[at:at] = rng.choice(BYTES)
            case 4:
                changed[at:at] = rng.randbytes(rng.choice((1, 3, 9)))
            case 5:
                changed[at:to] = rng.choice(NUMBERS).encode()
            case _:
                del changed[at:]
    return bytes(changed)


def of_words(rng: random.Random, text: str, words: Sequence[str]) -> str:
    """Change a text word by word; ``words`` are those of its language."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        number = rng.randrange(len(lines))
        parts = lines[number].split(" ")
        at = rng.randrange(len(parts))
        match rng.randrange(9):
            case 0:
                parts[at] = rng.choice(words)
            case 1:
                parts[at] = rng.choice(NUMBERS)
            case 2:
                parts[at] = rng.choice(STRINGS)
            case 3:
                parts.insert(at, rng.choice(words))
            case 4:
                del parts[at]
            case 5:
                parts[at:at] = parts[at:] * rng.choice((1, 3, 30))
            case 6:
                lines.insert(number, lines[rng.randrange(len(lines))])
            case 7:
                parts[at] = of_bytes(rng, parts[at].encode(errors="replace")).decode(
                    errors="replace"
                )
            case _:
                lines[number] = ""
                continue
        lines[number] = " ".join(parts)
    return "\n".join(lines)


def of_tree(rng: random.Random, tree: Any, words: Sequence[str] = ()) -> Any:
    """Change a value of JSON in some places: other values, keys left out, doubled, exchanged."""
    changed = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(changed))
        if not places:
            return rng.choice(VALUES)
        holder, key = rng.choice(places)
        match rng.randrange(7):
            case 0:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
            case 1:
                del holder[key]
            case 2 if isinstance(holder[key], list) and holder[key]:
                holder[key] *= rng.choice((2, 40))
            case 3:
                other, place = rng.choice(places)
                if place in other if isinstance(other, dict) else place < len(other):
                    holder[key] = copy.deepcopy(other[place])
            case 4 if isinstance(holder[key], str):
                holder[key] = of_words(rng, holder[key], words or STRINGS)
            case 5 if isinstance(holder[key], int | float):
                holder[key] = holder[key] * rng.choice((-1, 2, 10**6, 10**18)) + rng.choice((0, 1))
            case _:
                holder[key] = rng.choice(STRINGS)
    return changed


def _places(tree: Any) -> Any:
    """Yield each place of a tree: what holds it, and by which key."""
    items: Any = ()
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    for key, value in items:
        yield tree, key
        yield from _places(value)


def as_json(value: Any) -> str:
    """Write a value as JSON, also one that strict JSON has no word for."""
    return json.dumps(value)


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    """Split a stream as the network might."""
    if rng.random() < 0.5 or len(data) < 2:
        return [data]
    cuts = sorted(rng.randrange(len(data)) for _ in range(rng.choice((1, 2, 9))))
    return [data[first:last] for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def smaller(data: bytes, still_fails: Callable[[bytes], bool], seconds: float = 20.0) -> bytes:
    """Return an input that still fails and that no removal of a piece makes shorter.

    Pieces of halving length are removed (Zeller's delta debugging), as long as there is time.
    """
    end = time.monotonic() + seconds
    size = max(1, len(data) // 2)
    while size and time.monotonic() < end:
        at, shorter = 0, False
        while at < len(data) and time.monotonic() < end:
            candidate = data[:at] + data[at + size :]
            if still_fails(candidate):
                data, shorter = candidate, True
            else:
                at += size
        if not shorter:
            size //= 2
    return data
