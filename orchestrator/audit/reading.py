"""PGN archives, read fast: tags, moves and the fields of their remarks.

Reads plain and gzip files as TCEC's programs have written them since 2013, the farm's own,
and what other programs write (``pgn``, ``remarks``). A move without a remark is one whose
engine gave no eval. Book plies are those marked ``book``, or (in 2013) those that took no
time and no nodes, from the start on.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.audit import pgn, remarks, unpacking
from orchestrator.common import errors

chunks = pgn.chunks
spans = pgn.spans
text_of = unpacking.text

_CHESS960: Final = frozenset(
    {"fischerandom", "fischerrandom", "chess960", "chess 960", "fischer random"}
)
_STANDARD: Final = frozenset({"", "?", "chess", "normal", "standard", "from position"})


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """One recorded ply: the move (UCI notation) and the remark behind it."""

    move: str
    mover: contract.Side
    remark: str
    book: bool

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the fields of the remark."""
        return remarks.fields(self.remark, self.mover)


@dataclasses.dataclass(frozen=True)
class Game:
    """One recorded game; ``number`` counts from 1 in the archive.

    ``last_word`` is the result behind the moves, None where there is none.
    """

    number: int
    tags: dict[str, str]
    plies: list[Told]
    variant: boards.Variant
    last_word: str | None = None

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
    def old(self) -> bool:
        """Say whether the game was played under the program of 2013: whole seconds."""
        return "TerminationDetails" not in self.tags

    @property
    def opening(self) -> contract.Opening:
        """Return the start position and the book moves."""
        book = tuple(ply.move for ply in self.plies if ply.book)
        return contract.Opening(fen=self.tags.get("FEN"), moves=book)

    @property
    def last_remark(self) -> str:
        """Return the text behind the last move."""
        return self.plies[-1].remark if self.plies else ""

    def start(self) -> chess.Board:
        """Return the start position."""
        return boards.start_board(self.opening, self.variant)


@dataclasses.dataclass(frozen=True)
class Broken:
    """A game that cannot be read: its number in the archive, its place in its file, and why."""

    game: int
    file: str
    place: int
    line: int
    why: str

    def __str__(self) -> str:
        """Name the game so that it can be found."""
        position = f"{self.file}: game {self.place} (from line {self.line})"
        return f"{position} cannot be read: {self.why}"


def archive(paths: Iterable[pathlib.Path]) -> list[Game]:
    """Read archives, one after the other, as one; raise ``UsageError`` with file and game."""
    readable = []
    for game in _all(paths, _game):
        if isinstance(game, Broken):
            raise errors.UsageError(str(game))
        readable.append(game)
    return readable


def survey(paths: Iterable[pathlib.Path]) -> tuple[list[Game], list[Broken]]:
    """Read archives as one, and tell apart what is no readable game of two engines.

    Raise ``UsageError`` for a file that cannot be read or has no game, or if no game can be.
    """
    readable: list[Game] = []
    broken: list[Broken] = []
    for game in _all(paths, _contest):
        if isinstance(game, Broken):
            broken.append(game)
        else:
            readable.append(game)
    if not readable:
        raise errors.UsageError(str(broken[0]))
    return readable, broken


def games(text: str, first: int = 1) -> Iterator[Game]:
    """Yield the games of a PGN text; raise ``ValueError`` for one that cannot be read."""
    for number, chunk in enumerate(chunks(text), start=first):
        yield _game(number, chunk)


def _all(
    paths: Iterable[pathlib.Path], read: Callable[[int, str], Game]
) -> Iterator[Game | Broken]:
    before = 0
    for path in paths:
        for game in _file(path, before, read):
            before += 1
            yield game


def _file(
    path: pathlib.Path, before: int, read: Callable[[int, str], Game]
) -> Iterator[Game | Broken]:
    text = text_of(path)
    spans = pgn.spans(text)
    if not spans:
        raise errors.UsageError(f'{path}: holds no game: no tag such as [White "…"] was found')
    line, counted = 1, 0
    for number, (first, last) in enumerate(spans, start=1):
        line += text.count("\n", counted, first)
        counted = first
        try:
            yield read(before + number, text[first:last])
        except (ValueError, errors.BookError) as error:
            yield Broken(before + number, str(path), number, line, str(error))


def _contest(number: int, chunk: str) -> Game:
    """Read a game of two engines; one without names and result was never played."""
    game = _game(number, chunk)
    if game.white == game.black and game.result is not None:
        raise ValueError(f"White and Black are both {game.white!r}; an engine cannot play itself")
    return game


def _game(number: int, chunk: str) -> Game:
    raw = pgn.read(chunk)
    result = raw.tags.get("Result", raw.result)
    if result is not None:
        raw.tags["Result"] = pgn.RESULTS.get(result, result)
    missing = [tag for tag in ("White", "Black", "Result") if tag not in raw.tags]
    if missing:
        raise ValueError(f"no tag {', '.join(missing)}")
    game = Game(number, raw.tags, [], _variant(raw.tags), raw.result)
    start = game.start()
    if not any(start.legal_moves):
        raise ValueError("no legal move is left in its start position")
    game.plies.extend(_plies(raw.moves, start))
    return game


def _variant(tags: dict[str, str]) -> boards.Variant:
    variant = tags.get("Variant", "").casefold()
    if variant in _CHESS960:
        return "fischerandom"
    if variant not in _STANDARD:
        raise ValueError(f"the variant {tags['Variant']!r} is none that the farm knows")
    return "fischerandom" if _castles_anywhere(tags.get("FEN")) else "standard"


def _castles_anywhere(fen: str | None) -> bool:
    """Say whether only Chess960 has such castling rights, whatever the tags say."""
    try:
        return fen is not None and chess.Board(fen, chess960=True).has_chess960_castling_rights()
    except ValueError:
        return False  # what is no position is refused where it is set up


def _plies(moves: list[tuple[str, str]], board: chess.Board) -> Iterator[Told]:
    in_book = True
    for ply, (san, remark) in enumerate(moves, start=1):
        move = _move(board, san, ply)
        mover: contract.Side = "white" if board.turn else "black"
        uci = sys.intern(board.uci(move))  # huge archives have few different moves
        board.push(move)
        # A book never ends a game, whatever the remark of the last move says.
        in_book = in_book and remarks.of_book(remark, mover) and any(board.legal_moves)
        yield Told(uci, mover, remark, in_book)


def _move(board: chess.Board, text: str, ply: int) -> chess.Move:
    try:
        move = board.parse_san(text)
    except ValueError as error:
        sans = boards.variation(board, [text])  # as UCI writes it
        if not sans:
            raise ValueError(f"ply {ply}: {error}") from error
        move = board.parse_san(sans[0])
    if not move:
        raise ValueError(f"ply {ply}: {text!r} is a null move")
    return move
