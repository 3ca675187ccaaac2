"""The openings of a match: which book, in which order, dealt by index.

A random order is the one that the peer draws from the same seed, so that workers of a
distributed test, told ``start=N -srand S``, share a book without playing an opening twice.
fastchess' generator is the 64-bit Mersenne Twister (Nishimura, "Tables of 64-bit Mersenne
Twisters", 2000; C++'s ``mt19937_64``), cutechess-cli's is the 32-bit one, except that it joins
the lowest bit of a word where the paper joins the highest. Both shuffle from the front (Fisher
and Yates), then begin at ``start``.

Invariants: no opening comes twice before all came; the order depends on book length, seed
and start alone; a long book costs what is dealt of it.
"""

from __future__ import annotations

import array
import bisect
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import chess
import chess.polyglot

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import chess960, openings
from orchestrator.common import bounds, errors
from orchestrator.testmatch import openings as testmatch_openings
from worker_cpu.match import arguments, engines, switches

LONG: Final = 1 << 20  # bytes of a book: beyond, each opening is read when it is dealt
_POSITION: Final = re.compile(rb"(?m)^[ \t]*[^\s#;%][^\r\n]*")
_GAME: Final = re.compile(rb"\n[ \t\r]*\n(?=\[[A-Za-z])")  # tags behind a blank line begin a game
_EVENT: Final = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?\[Event ")
_MARK: Final = b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True)
class Deal:
    """How openings are dealt by their index, and how many different ones there are."""

    opening: Callable[[int], contract.Opening]
    different: int | None  # None: all games begin at the start position


def deal(settings: arguments.Settings) -> Deal:
    """Return how openings are dealt; raise ``BookError``."""
    wanted = switches.dealt(settings.openings, settings.variant)
    if wanted is None:
        return Deal(lambda _: contract.Opening(), None)
    book = _book(wanted)
    first = wanted.start - 1
    if wanted.order == "sequential":
        return Deal(lambda index: book[(first + index) % len(book)], len(book))
    shuffle = Shuffle(len(book), numbers(_GENERATORS[settings.dialect], settings.seed))
    return Deal(lambda index: book[shuffle[(first + index) % len(book)]], len(book))


# -- books ---------------------------------------------------------------------------------


def _book(wanted: switches.Openings) -> Sequence[contract.Opening]:
    if wanted.file is not None:
        return read_book(wanted.file, wanted.kind, wanted.plies)
    make = chess960.double if wanted.kind == "dfrc" else chess960.opening
    listed: Sequence[int] = wanted.positions
    if not listed:
        listed = range(chess960.DOUBLE if wanted.kind == "dfrc" else chess960.POSITIONS)
    return _Made(listed, make)


class _Made(Sequence[contract.Opening]):
    """Openings that are made of their numbers when they are dealt."""

    def __init__(self, listed: Sequence[int], make: Callable[[int], contract.Opening]) -> None:
        self._listed, self._make = listed, make

    def __len__(self) -> int:
        return len(self._listed)

    def __getitem__(self, index: int) -> contract.Opening:  # type: ignore[override] # no slices
        return self._make(self._listed[index])


def read_book(
    path: pathlib.Path, kind: switches.Kind, plies: int | None
) -> Sequence[contract.Opening]:
    """Read a book, compressed with gzip or not; raise ``BookError``."""
    content = _content(path)
    read: openings.Kind = "epd" if kind == "epd" else "pgn"
    if len(content) > LONG and (starts := _starts(content, read)):
        return _Long(
            content, starts, lambda text, where: openings.parse(text, read, plies, where), str(path)
        )
    return openings.parse(_text(content), read, plies, str(path))


def _starts(content: bytes, kind: openings.Kind) -> array.array[int]:
    """Return where the openings of a long book begin; none where that cannot be told."""
    begin = len(_MARK) if content.startswith(_MARK) else 0
    if kind == "epd":
        return array.array("Q", (line.start() for line in _POSITION.finditer(content, begin)))
    starts = array.array("Q", (game.end() for game in _GAME.finditer(content, begin)))
    whole = content.startswith(b"[", begin) and len(starts) + 1 == len(_EVENT.findall(content))
    return array.array("Q", [begin, *starts]) if whole else array.array("Q")


class _Long(Sequence[contract.Opening]):
    """The openings of a long book, each read when it is dealt."""

    def __init__(
        self,
        content: bytes,
        starts: array.array[int],
        read: Callable[[str, str], list[contract.Opening]],
        source: str,
    ) -> None:
        self._content, self._starts = content, starts
        self._read, self._source = read, source

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> contract.Opening:  # type: ignore[override] # no slices
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._content)
        line = self._content.count(b"\n", 0, start) + 1
        opening_list = self._read(
            _text(self._content[start:end]), f"{self._source}, from line {line}"
        )
        return opening_list[0]


def read_text(path: pathlib.Path) -> str:
    """Read a text file, by gzip when it is compressed; raise ``BookError``."""
    return _text(_content(path))


def _content(path: pathlib.Path) -> bytes:
    try:
        return bounds.content(path, bounds.BOOK_BYTES)
    except bounds.DAMAGED as error:
        raise errors.BookError(f"{path}: cannot be read: {errors.reason(error)}") from error


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # older PGN collections


# -- Polyglot books ------------------------------------------------------------------------


class Polyglot:
    """The engines' own books of a match: what both know is played from them before the game.

    As cutechess-cli plays them: each side's moves come from its engine's book, by chance with
    the weights of the entries, until the side to move finds nothing or a position would come
    again. The line hangs on the seed and the opening alone, so both games of a pair have it.
    """

    def __init__(self, settings: arguments.Settings) -> None:
        """Open the books; raise ``BookError`` for one that is none."""
        self._variant, self._seed = settings.variant, settings.seed
        paths = {engine.book for engine in settings.engines if engine.book is not None}
        self._readers = {path: _open(path) for path in paths}

    def extended(
        self, opening: contract.Opening, index: int, players: Sequence[engines.Engine]
    ) -> contract.Opening:
        """Return an opening with the moves of the books behind it; the first player has White."""
        if not self._readers:
            return opening
        board = boards.start_board(opening, self._variant)
        for given in boards.book_moves(board, opening):
            board.push(given)
        added = []
        while move := self._move(board, players[not board.turn], index):
            added.append(board.uci(move))
            board.push(move)
        return opening.model_copy(update={"moves": (*opening.moves, *added)})

    def _move(self, board: chess.Board, player: engines.Engine, index: int) -> chess.Move | None:
        played = len(board.move_stack)
        if player.book is None or played >= 2 * player.book_moves:
            return None
        entries = list(self._readers[player.book].find_all(board))
        weights = list(itertools.accumulate(entry.weight for entry in entries))
        if not weights:
            return None
        drawn = testmatch_openings.draw(f"{self._seed}/book/{index}/{played}") % weights[-1]
        move = entries[bisect.bisect_right(weights, drawn)].move
        board.push(move)
        ends = board.is_repetition(2) or not any(board.generate_legal_moves())
        board.pop()
        return None if ends else move


def _open(path: pathlib.Path) -> chess.polyglot.MemoryMappedReader:
    try:
        size = path.stat().st_size
        if not size or size % chess.polyglot.ENTRY_STRUCT.size:
            raise errors.BookError(f"book={path}: no Polyglot book: {size} bytes; allowed: 16 each")
        return chess.polyglot.open_reader(path)
    except OSError as error:
        raise errors.BookError(f"book={path}: cannot be read: {errors.reason(error)}") from error


# -- random orders -------------------------------------------------------------------------


class Shuffle:
    """A random order of ``count`` things, drawn as far as it is asked for."""

    def __init__(self, count: int, drawn: Iterator[int]) -> None:
        """Take the random numbers that the order is drawn from."""
        self._count, self._drawn = count, drawn
        self._order = array.array("Q")
        self._moved: dict[int, int] = {}  # what lies where something else was taken

    def __getitem__(self, index: int) -> int:
        """Return which thing comes at a place, both from 0."""
        while len(self._order) <= index:
            here = len(self._order)
            left = self._count - here
            other = here + (next(self._drawn) % left if left > 1 else 0)
            lying = self._moved.pop(here, here)
            if other != here:
                self._moved[other], lying = lying, self._moved.get(other, other)
            self._order.append(lying)
        return self._order[index]


@dataclasses.dataclass(frozen=True)
class Twister:
    """The constants of a Mersenne Twister, by the names of the papers."""

    w: int
    n: int
    m: int
    upper: int  # the bits of a word that are joined with the ``lower`` ones of the next
    lower: int
    a: int
    f: int
    temper: tuple[tuple[int, int], ...]  # shifts (left above 0) and masks, in turn


MT19937_64: Final = Twister(
    w=64,
    n=312,
    m=156,
    upper=0xFFFFFFFF80000000,
    lower=0x7FFFFFFF,
    a=0xB5026F5AA96619E9,
    f=6364136223846793005,
    temper=(
        (-29, 0x5555555555555555),
        (17, 0x71D67FFFEDA60000),
        (37, 0xFFF7EEE000000000),
        (-43, 0xFFFFFFFFFFFFFFFF),
    ),
)
CUTECHESS: Final = Twister(
    w=32,
    n=624,
    m=397,
    upper=0x1,
    lower=0x7FFFFFFF,
    a=0x9908B0DF,
    f=1812433253,
    temper=((-11, 0xFFFFFFFF), (7, 0x9D2C5680), (15, 0xEFC60000), (-18, 0xFFFFFFFF)),
)
_GENERATORS: Final = {"farm": MT19937_64, "fastchess": MT19937_64, "cutechess": CUTECHESS}


def numbers(shape: Twister, seed: int) -> Iterator[int]:
    """Yield the random numbers that a seed leads to; of a longer seed the last bits count."""
    full = (1 << shape.w) - 1
    state = [seed & full]
    for at in range(1, shape.n):
        before = state[-1]
        state.append((shape.f * (before ^ (before >> (shape.w - 2))) + at) & full)
    for at in itertools.cycle(range(shape.n)):
        joined = (state[at] & shape.upper) + (state[(at + 1) % shape.n] & shape.lower)
        word = state[(at + shape.m) % shape.n] ^ (joined >> 1) ^ (shape.a if joined & 1 else 0)
        state[at] = word
        for shift, mask in shape.temper:
            moved = word << shift if shift > 0 else word >> -shift
            word ^= moved & mask
        yield word
