"""PGN archives, read fast: tags, moves and the fields of their comments.

Reads plain and gzip files as TCEC's programs have written them since 2013, and the farm's
own. Comments are read by their fields; a move without a comment is one whose engine gave
no eval. Book plies are those marked ``book``, or (in 2013) those that took no time and no
nodes, from the start on.
"""

from __future__ import annotations

import dataclasses
import gzip
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator

import chess

from orchestrator import contract, errors
from orchestrator.arbiter import board as boards

_GZIP = b"\x1f\x8b"
_TOKEN = re.compile(r";\s*\{[^}]*\}|\{([^}]*)\}|([^\s{}]+)")
_TAG = re.compile(r'\[(\w+) "(.*)"\]')
_FIELD = re.compile(r"(\w+)=([^,]*),")
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_RESULTS = frozenset({"1-0", "0-1", "1/2-1/2", "*"})
_REQUIRED = ("White", "Black", "Result")


@dataclasses.dataclass(frozen=True)
class Told:
    """One recorded ply: the move (UCI notation) and the fields of its comment."""

    move: str
    fields: dict[str, str]
    book: bool


@dataclasses.dataclass(frozen=True)
class Game:
    """One recorded game; ``number`` counts from 1 in the archive."""

    number: int
    tags: dict[str, str]
    plies: list[Told]

    @property
    def white(self) -> str:
        """Return White's name as it is written."""
        return self.tags["White"]

    @property
    def black(self) -> str:
        """Return Black's name as it is written."""
        return self.tags["Black"]

    @property
    def result(self) -> contract.Result | None:
        """Return the result, ``None`` for a game that was not finished."""
        match self.tags["Result"]:
            case "1-0" | "0-1" | "1/2-1/2" as result:
                return result
            case _:
                return None

    @property
    def variant(self) -> boards.Variant:
        """Return the variant by its tag."""
        return "fischerandom" if self.tags.get("Variant") == "fischerandom" else "standard"

    @property
    def old(self) -> bool:
        """Say whether the game was played under the program of 2013: whole seconds."""
        return "TerminationDetails" not in self.tags

    @property
    def opening(self) -> contract.Opening:
        """Return the start position and the book moves."""
        book = tuple(told.move for told in self.plies if told.book)
        return contract.Opening(fen=self.tags.get("FEN"), moves=book)

    def start(self) -> chess.Board:
        """Return the start position."""
        return boards.start_board(self.opening, self.variant)


def archive(paths: Iterable[pathlib.Path]) -> list[Game]:
    """Read archives, one after the other, as one; raise ``UsageError`` with file and game."""
    found: list[Game] = []
    for path in paths:
        try:
            text = text_of(path)
        except (OSError, EOFError, zlib.error) as error:
            raise errors.UsageError(f"{path}: cannot be read: {error}") from error
        found += _file(path, text, len(found) + 1)
    return found


def games(text: str, first: int = 1) -> Iterator[Game]:
    """Yield the games of a PGN text; raise ``ValueError`` for a move that cannot be played."""
    for number, chunk in enumerate(chunks(text), start=first):
        yield _game(number, chunk)


def chunks(text: str) -> list[str]:
    """Return the texts of the single games of a PGN text."""
    return [chunk for chunk in re.split(r"\n(?=\[Event )", text.strip()) if chunk]


def _file(path: pathlib.Path, text: str, first: int) -> list[Game]:
    found: list[Game] = []
    try:
        for game in games(text, first):
            _require_tags(game)
            found.append(game)
    except (ValueError, errors.BookError) as error:
        place = f"game {len(found) + 1}"
        raise errors.UsageError(f"{path}: {place} cannot be read: {error}") from error
    if not found:
        raise errors.UsageError(f"{path}: holds no game")
    return found


def _require_tags(game: Game) -> None:
    missing = [tag for tag in _REQUIRED if tag not in game.tags]
    if missing:
        raise ValueError(f"no tag {', '.join(missing)}")


def text_of(path: pathlib.Path) -> str:
    """Return the text of a plain or gzip file with plain line ends."""
    raw = path.read_bytes()
    plain = gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    return plain.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _game(number: int, chunk: str) -> Game:
    head, _, body = chunk.strip().partition("\n\n")
    plies: list[tuple[str, str]] = []
    for comment, word in (match.groups() for match in _TOKEN.finditer(body)):
        if comment is not None:
            if plies:  # the first comment is the engines' options
                plies[-1] = (plies[-1][0], plies[-1][1] + comment)
        elif word is not None and not word.startswith("$"):  # a NAG is a remark
            san = re.sub(r"^\d+\.+", "", word)
            if san and san not in _RESULTS:
                plies.append((san, ""))
    game = Game(number, dict(_TAG.findall(head)), [])
    game.plies.extend(_told(plies, game.start()))
    return game


def _told(plies: list[tuple[str, str]], board: chess.Board) -> Iterator[Told]:
    in_book = True
    for san, comment in plies:
        move = board.parse_san(san)
        uci = board.uci(move)
        board.push(move)
        text = " ".join(comment.split())
        fields = dict(_FIELD.findall(text))
        untouched = {"d": "1", "mt": "00:00:00", "n": "0"}.items() <= fields.items()
        in_book = in_book and (text.startswith("book") or untouched)
        yield Told(uci, fields, in_book)


def score_of(text: str | None, mover: contract.Side) -> contract.Score | None:
    """Read an eval in White's view back into the mover's score; a mate has ``M`` or ``#``.

    Words that are no eval are none.
    """
    if text is None:
        return None
    sign = 1 if (not text.startswith("-")) == (mover == "white") else -1
    number = text.lstrip("-+")
    if number[:1] in ("M", "#"):
        plies = int(re.sub(r"\D", "", number) or "1")
        return contract.Score(mate=sign * ((plies + 1) // 2))
    if not _NUMBER.fullmatch(number):
        return None
    return contract.Score(cp=sign * round(100 * float(number)))
