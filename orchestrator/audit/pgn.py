"""PGN as other programs write it: single games, their tags, and the main line with its remarks.

Reads the import format of the PGN standard: tags in any order, several to a line, variations,
glyphs, both kinds of remarks, escaped lines. A game begins at a tag that follows moves, or
that the game before it has already. Text in, text out: nothing is known here of boards,
evals or rules.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Final

RESULTS: Final = {text: text for text in ("1-0", "0-1", "1/2-1/2", "*")} | {"1/2": "1/2-1/2"}

# A tag begins a line, or follows another one on it.
_TAG = re.compile(r'(?:^|(?<=\]))[ \t]*\[[ \t]*(\w+)[ \t]+"(.*?)"[ \t]*\]', re.MULTILINE)
_REMARK = re.compile(r"\{[^}]*\}|;[^\n]*|^%[^\n]*", re.MULTILINE)
_TOKEN = re.compile(
    r"\{(?P<remark>[^}]*)\}"
    r"|;[^\n]*|^%[^\n]*|\$\d+"
    r"|(?P<mark>[{}()])"
    r"|(?P<word>[^\s{}();$]+)",
    re.MULTILINE,
)
_NUMBER = re.compile(r"(?:\d+(?=\.|$))?\.*")
_ESCAPED = re.compile(r"\\(.)")


@dataclasses.dataclass
class Raw:
    """One game as it is written: tags, moves with the remarks behind each, the last word."""

    tags: dict[str, str]
    moves: list[tuple[str, str]]
    result: str | None = None


def spans(text: str) -> list[tuple[int, int]]:
    """Return where each game begins and ends; text before the first tag is a game, too."""
    starts = list(_starts(text))
    return list(zip(starts, [*starts, len(text)][1:], strict=True))


def chunks(text: str) -> list[str]:
    """Return the texts of the single games of a PGN text."""
    return [text[first:last].strip() for first, last in spans(text)]


def _starts(text: str) -> Iterator[int]:
    seen: set[str] = set()
    end = 0
    for tag in _TAG.finditer(text):
        between, name = text[end : tag.start()], tag[1]
        if name != "Event" and _unclosed(between):
            continue  # a line of a remark that looks like a tag
        apart = bool(_REMARK.sub("", between).strip())
        if apart and not end:
            yield 0
        if apart or not end or name in seen:
            yield tag.start()
            seen = set()
        seen.add(name)
        end = tag.end()
    if not end and _REMARK.sub("", text).strip():
        yield 0


def _unclosed(text: str) -> bool:
    return text.rfind("{") > text.rfind("}")


def read(chunk: str) -> Raw:
    """Read one game; raise ``ValueError`` for a remark or variation that does not end."""
    tags, body = _head(chunk)
    game = Raw(tags, [])
    depth = 0
    for token in _TOKEN.finditer(chunk, body):
        kind, text = token.lastgroup, token[0]
        if kind == "mark":
            depth += _step(text)
        elif depth or kind is None:
            continue
        elif kind == "remark":
            _remark(game, token["remark"])
        else:
            _word(game, text)
        if depth < 0:
            raise ValueError("a ')' without a '('")
    if depth:
        raise ValueError("a variation is not closed")
    return game


def _head(chunk: str) -> tuple[dict[str, str], int]:
    """Return the tags, and where the moves begin."""
    tags: dict[str, str] = {}
    end = 0
    for tag in _TAG.finditer(chunk):
        if _REMARK.sub("", chunk[end : tag.start()]).strip():
            break
        tags[tag[1]] = _ESCAPED.sub(r"\1", tag[2])
        end = tag.end()
    return tags, end


def _step(mark: str) -> int:
    if mark == "{":
        raise ValueError("a remark is not closed: a '}' is missing")
    return {"(": 1, ")": -1}.get(mark, 0)  # a '}' too many is left out


def _remark(game: Raw, remark: str) -> None:
    if game.moves:  # a remark before the first move is about the game
        move, before = game.moves[-1]
        game.moves[-1] = (move, before + remark)


def _word(game: Raw, text: str) -> None:
    if text in RESULTS:
        game.result = RESULTS[text]
        return
    move = text[_NUMBER.match(text).end() :].rstrip("!?")  # type: ignore[union-attr] # matches ''
    glyph = move != "--" and not any(letter.isalnum() for letter in move)
    if glyph or move in ("e.p.", "ep"):
        return
    if game.result is not None:
        raise ValueError(f"{move!r} stands behind the result {game.result}")
    game.moves.append((move, ""))
