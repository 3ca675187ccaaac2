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
from collections.abc import Iterator

import numpy as np

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
_WHITE = re.compile(rb"\[White[ \t]")

_NEEDED = (b"White", b"Black", b"Result")
_COMPLETE = frozenset(_NEEDED)

Games = collections.Counter[tuple[str, str, str]]


class Reader:
    """Takes archives one after the other; their games make one table."""

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._rows: list[logistic.Ints] = [np.empty((0, 3), np.int64)]

    def take(self, content: bytes) -> None:
        """Read an archive; a game without White, Black or Result is left out."""
        found = _USUAL.findall(content)
        if len(found) != len(_WHITE.findall(content)):
            found = list(_by_tags(content))
        tags = itertools.chain.from_iterable(found)
        numbers = np.fromiter(map(self._numbers.__getitem__, tags), np.int64, 3 * len(found))
        self._rows.append(numbers.reshape(-1, 3))

    def table(self) -> pairings.Table:
        """Return all games that were read."""
        rows = np.concatenate(self._rows)
        white, black, result = np.ascontiguousarray(rows.T)
        return pairings.Table(tuple(self._numbers.texts), white, black, result, np.ones(len(rows)))


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
    columns = (table.white, table.black, table.result)
    return Games(zip(*([table.texts[at] for at in column] for column in columns), strict=True))


def read_controlled(content: bytes) -> collections.Counter[tuple[str, str, str, str, str]]:
    """Count games as (White, Black, result, White's time control, Black's); '' if untold."""
    known: dict[bytes, str] = {}
    games: collections.Counter[tuple[str, str, str, str, str]] = collections.Counter()
    for tags in _by_game(content):
        both = tags.get(b"TimeControl", b"")
        raw = [tags[name] for name in _NEEDED]
        raw += [tags.get(name, both) for name in (b"WhiteTimeControl", b"BlackTimeControl")]
        white, black, result, first, second = (known.setdefault(tag, _text(tag)) for tag in raw)
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
