"""Read results out of PGN archives: three tags of each game, and nothing else.

Moves are not looked at, so that a hundred thousand games take a tenth of a second. The
usual order of tags (White, Black, …, Result) is read by one expression; an archive that
has another order, or a game without one of the tags, is read tag by tag.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator

_TEXT = rb'"((?:[^"\\\n]|\\.)*)"'
_USUAL = re.compile(
    rb"\[White " + _TEXT + rb"\][ \t]*\r?\n\[Black " + _TEXT + rb"\][ \t]*\r?\n"
    rb"(?:\[[^\n]*\n)*?\[Result " + _TEXT
)
_TAG = re.compile(rb"^[ \t]*\[(White|Black|Result|TimeControl)[ \t]+" + _TEXT, re.MULTILINE)
_ESCAPED = re.compile(rb"\\(.)")

_NEEDED = (b"White", b"Black", b"Result")
_COMPLETE = frozenset(_NEEDED)

Games = collections.Counter[tuple[str, str, str]]


def read(content: bytes) -> Games:
    """Count the games of an archive as (White, Black, result)."""
    found = collections.Counter(_USUAL.findall(content))
    if sum(found.values()) != content.count(b"[White "):
        found = collections.Counter(_by_tags(content))
    names: dict[bytes, str] = {}
    games: Games = collections.Counter()
    for (white, black, result), times in found.items():
        games[_text(white, names), _text(black, names), _text(result, names)] += times
    return games


def read_controlled(content: bytes) -> collections.Counter[tuple[str, str, str, str]]:
    """Count games as (White, Black, result, time control); '' where no time control is told."""
    names: dict[bytes, str] = {}
    games: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
    for tags in _by_game(content):
        white, black, result = (_text(tags[name], names) for name in _NEEDED)
        games[white, black, result, _text(tags.get(b"TimeControl", b""), names)] += 1
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


def _text(raw: bytes, known: dict[bytes, str]) -> str:
    """Decode a tag: UTF-8, else Latin-1, as older archives have it."""
    if raw not in known:
        plain = _ESCAPED.sub(rb"\1", raw) if b"\\" in raw else raw
        try:
            known[raw] = plain.decode()
        except UnicodeDecodeError:
            known[raw] = plain.decode("latin-1")
    return known[raw]
