"""Read results out of PGN archives: three tags of each game, and nothing else.

Moves are not looked at, so that a hundred thousand games take less than a tenth of a
second. The usual order of tags (White, Black, …, Result) is read by one expression; an
archive that has another order, or a game without one of the tags, is read tag by tag.
Names become numbers as they are read: counting and solving know numbers alone.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from orchestrator.common import errors
from orchestrator.rating import logistic, pairings

# Without a branch for every letter: names are most of what is read.
_TEXT = rb'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
_USUAL = re.compile(
    rb"\[White " + _TEXT + rb"\][ \t]*\r?\n\[Black " + _TEXT + rb"\][ \t]*\r?\n"
    rb"(?:\[[^\n]*\n)*?\[Result " + _TEXT
)
_TAG = re.compile(
    rb"(?:^|(?<=\]))[ \t]*\[(White|Black|Result|(?:White|Black)?TimeControl)[ \t]+" + _TEXT,
    re.MULTILINE,
)
_ESCAPED = re.compile(rb"\\(.)")
_WHITE = (b"[White ", b"[White\t")

_NEEDED = (b"White", b"Black", b"Result")
_COMPLETE = frozenset(_NEEDED)

_COUNTED: Final = 300_000  # games that wait to be counted, at least
_BITS: Final = 21  # of a text's number
_TEXTS: Final = 1 << _BITS

Games = collections.Counter[tuple[str, str, str]]


class Reader:
    """Takes archives one after the other; their games make one table.

    Equal games are counted, so that memory grows with the pairs that met and not with the games.
    """

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._keys: logistic.Ints = np.empty(0, np.int64)  # a game each: three texts' numbers
        self._times: logistic.Ints = np.empty(0, np.int64)
        self._new: list[logistic.Ints] = []
        self._waiting = 0  # games that are read and not counted yet

    def take_blocks(self, blocks: Iterable[bytes]) -> None:
        """Read an archive that comes in blocks, wherever they end."""
        rest = b""
        for block in blocks:
            content = rest + block
            end = max(content.rfind(b"\n\n["), content.rfind(b"\n\r\n["))
            if end < 0:
                rest = content
                continue
            self.take(content[: end + 1])
            rest = content[end + 1 :]
        self.take(rest)

    def take(self, content: bytes) -> None:
        """Read an archive; a game without White, Black or Result is left out."""
        headers = _USUAL.findall(content)
        if len(headers) != sum(map(content.count, _WHITE)):
            headers = list(_by_tags(content))
        tags = itertools.chain.from_iterable(headers)
        numbers = np.fromiter(map(self._numbers.__getitem__, tags), np.int64, 3 * len(headers))
        if len(self._numbers.texts) > _TEXTS:
            raise errors.UsageError(f"more than {_TEXTS} names of players: no archive of one event")
        white, black, result = numbers.reshape(-1, 3).T
        self._new.append((white << 2 * _BITS) | (black << _BITS) | result)
        self._waiting += len(headers)
        if self._waiting > max(_COUNTED, len(self._keys)):
            self._count()

    def _count(self) -> None:
        """Add up equal games; the first of each stays where it is."""
        keys = np.concatenate([self._keys, *self._new])
        times = np.concatenate([self._times, np.ones(self._waiting, np.int64)])
        different, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        counts = np.bincount(inverse, times, len(different)).astype(np.int64)
        self._keys, self._times = different[order], counts[order]
        self._new, self._waiting = [], 0

    def table(self) -> pairings.Table:
        """Return all games that were read."""
        self._count()
        low = (1 << _BITS) - 1
        columns = (self._keys >> 2 * _BITS, self._keys >> _BITS & low, self._keys & low)
        return pairings.Table(tuple(self._numbers.texts), *columns, self._times.astype(np.float64))


class _Numbers(dict[bytes, int]):
    """The numbers of tags' texts, given when a text is met first."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, int] = {}

    def __missing__(self, raw: bytes) -> int:
        number = self[raw] = self.texts.setdefault(_text(raw), len(self.texts))
        return number


def read(content: bytes) -> Games:
    """Count the games of an archive as (White, Black, result)."""
    reader = Reader()
    reader.take(content)
    table = reader.table()
    columns = (
        [table.texts[at] for at in column] for column in (table.white, table.black, table.result)
    )
    return Games(dict(zip(zip(*columns, strict=True), map(int, table.times), strict=True)))


def read_controlled(content: bytes) -> collections.Counter[tuple[str, str, str, str, str]]:
    """Count games as (White, Black, result, White's time control, Black's); '' if untold."""
    texts: dict[bytes, str] = {}
    games: collections.Counter[tuple[str, str, str, str, str]] = collections.Counter()
    for tags in _by_game(content):
        both = tags.get(b"TimeControl", b"")
        raw = [tags[name] for name in _NEEDED]
        raw += [tags.get(name, both) for name in (b"WhiteTimeControl", b"BlackTimeControl")]
        white, black, result, first, second = (texts.setdefault(tag, _text(tag)) for tag in raw)
        games[white, black, result, first, second] += 1
    return games


def _by_tags(content: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    for tags in _by_game(content):
        yield tags[b"White"], tags[b"Black"], tags[b"Result"]


def _by_game(content: bytes) -> Iterator[dict[bytes, bytes]]:
    """Yield the tags of the games of an archive, in whatever order they come.

    A tag that a game has already begins the next one; a game that lacks one of the three
    is left out.
    """
    game: dict[bytes, bytes] = {}
    for tag in _TAG.finditer(content):
        name, value = tag.groups()
        if name in game:
            if game.keys() >= _COMPLETE:
                yield game
            game = {}
        game[name] = value
    if game.keys() >= _COMPLETE:
        yield game


def _text(raw: bytes) -> str:
    """Decode a tag: UTF-8, else Latin-1, as older archives have it."""
    plain = _ESCAPED.sub(rb"\1", raw) if b"\\" in raw else raw
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return plain.decode("latin-1")
