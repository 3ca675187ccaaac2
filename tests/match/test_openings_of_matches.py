"""Openings of a match: the orders that fastchess and cutechess-cli draw, long books, start."""

from __future__ import annotations

import itertools
import pathlib
import struct

import chess
import chess.polyglot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.match import arguments, books, command, orders, schedule

TWO = ["-engine", "cmd=true", "-engine", "cmd=false", "-each", "tc=10"]
COUNT = 20
# printed by their own code, of 20 openings with seed 42
FASTCHESS = [6, 0, 1, 2, 9, 13, 10, 17, 18, 8, 15, 11, 12, 16, 7, 14, 4, 19, 3, 5]
CUTECHESS = [2, 17, 15, 13, 12, 7, 18, 10, 4, 11, 6, 3, 8, 14, 19, 1, 16, 9, 0, 5]


@pytest.fixture
def book(tmp_path: pathlib.Path) -> pathlib.Path:
    """Write a book of 20 positions, told apart by their move numbers."""
    path = tmp_path / "book.epd"
    path.write_text("".join(position(number) + "\n" for number in range(COUNT)))
    return path


def position(number: int) -> str:
    """Return a FEN that carries a number."""
    return f"4k3/8/8/8/8/8/8/R3K3 w Q - 0 {number + 1}"


def dealt(count: int, book: pathlib.Path, *words: str) -> list[int]:
    """Return the numbers of the openings that a match deals."""
    openings = ["-openings", f"file={book}", "format=epd", *words]
    deal = books.deal(arguments.read([*TWO, *openings]))
    return [number(deal.opening(index)) for index in range(count)]


def number(opening: contract.Opening) -> int:
    """Return the number that a position carries."""
    return int((opening.fen or "").split()[-1]) - 1


def test_a_random_book_comes_in_fastchess_order(book: pathlib.Path) -> None:
    """The same seed deals the openings that fastchess would."""
    assert dealt(COUNT, book, "order=random", "-srand", "42") == FASTCHESS
    words = ("order=random", "-srand", "42", "-dialect", "fastchess")
    assert dealt(COUNT, book, *words) == FASTCHESS


BOOK = "-openings file=book.epd format=epd"
START = "without -openings every game begins at the start position"
THIRD = "-engine cmd=yes -tournament round-robin"


@pytest.mark.parametrize(
    ("words", "told", "note"),
    [
        ("-rounds 1", "from the start position", ""),
        ("-rounds 2", "from the start position", START),
        (f"-rounds 1 {THIRD}", "from the start position", ""),
        (f"-rounds 2 {THIRD}", "from the start position", START),
        (f"-rounds 20 {BOOK}", "20 openings", ""),
        (f"-rounds 21 {BOOK}", "20 openings in turn", "20 openings for 21: behind the last comes"),
        (f"-rounds 7 {BOOK} {THIRD}", "20 openings in turn", ""),
        ("-rounds 960 -variant fischerandom", "960 openings", ""),
        ("-rounds 2 -variant fischerandom -openings format=frc positions=518", "1 opening in turn",
         "1 opening for 2: behind the last comes"),
    ],
)  # fmt: skip
def test_a_match_says_how_many_openings_it_has(
    words: str, told: str, note: str, book: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And warns where two engines would play them again: pairs alone are no openings."""
    monkeypatch.chdir(book.parent)
    settings = arguments.read([*TWO, "-games", "2", "-repeat", *words.split()])
    slots = schedule.slots(settings.plan)
    wanted = len({slot.opening for slot in slots})
    different = orders.Orders(settings, "m").openings
    assert command._openings(settings, wanted, different) == told
    notes = command._repeated(settings, slots, wanted, different)
    assert [text.startswith(note) for text in notes] == [True] * bool(note)


def test_the_cutechess_dialect_deals_in_its_order(book: pathlib.Path) -> None:
    """cutechess-cli has a generator of its own."""
    words = ("order=random", "-srand", "42", "-dialect", "cutechess")
    assert dealt(COUNT, book, *words) == CUTECHESS


def test_workers_with_different_starts_play_different_openings(book: pathlib.Path) -> None:
    """start=N begins a shuffled book at its Nth opening; behind the last comes the first."""
    assert dealt(5, book, "order=random", "start=6", "-srand", "42") == FASTCHESS[5:10]
    assert dealt(3, book, "order=random", "start=19", "-srand", "42") == [3, 5, 6]
    assert dealt(2, book, "order=random", "start=47", "-srand", "42") == FASTCHESS[6:8]
    assert dealt(3, book, "start=19") == [18, 19, 0]


def test_the_generators_are_the_papers() -> None:
    """C++ names the 10,000th number of mt19937_64; cutechess' were printed by its own code."""
    drawn = books.numbers(books.MT19937_64, 5489)
    assert next(itertools.islice(drawn, 9_999, None)) == 9_981_545_732_273_789_042
    assert next(books.numbers(books.MT19937_64, 2**64 - 1)) == 478_026_398_904_862_820
    assert next(itertools.islice(books.numbers(books.CUTECHESS, 42), 1_999, None)) == 4_091_886_878


@given(st.integers(1, 300), st.integers(0, 2**64))
def test_every_opening_comes_once_before_any_comes_again(count: int, seed: int) -> None:
    """A shuffle is a permutation, and what it deals first does not hang on how far it is asked."""
    shuffle = books.Shuffle(count, books.numbers(books.MT19937_64, seed))
    order = [shuffle[place] for place in range(count)]
    assert sorted(order) == list(range(count))
    assert books.Shuffle(count, books.numbers(books.MT19937_64, seed))[count - 1] == order[-1]


def test_a_long_book_is_read_line_by_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same openings as of a short one; a broken line is named when it is dealt."""
    monkeypatch.setattr(books, "LONG", 10)
    path = tmp_path / "long.epd"
    path.write_bytes(f"\ufeff# book\r\n\r\n{position(0)}\r\n  {position(1)}\nnonsense".encode())
    book = books.read_book(path, "epd", None)
    assert [number(book[at]) for at in (1, 0)] == [1, 0]
    assert len(book) == 3
    with pytest.raises(errors.BookError, match=r"long\.epd, from line 5: line 1:"):
        book[2]
    path.write_text("# nothing but this\n")
    with pytest.raises(errors.BookError, match="holds no opening"):
        books.read_book(path, "epd", None)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_long_book_of_games_is_read_game_by_game(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """The same openings as read at once, also where games do not begin behind a blank line."""
    games = [
        f'[Event "?"]\n[ECO "A0{at}"]\n\n1. {first} {{a remark}} e5 2. Nf3 *\n'
        for at, first in enumerate(("e4", "d4", "c4", "f4"))
    ]
    path = tmp_path / "long.pgn"
    for blank in ("\n", "\n\n", ""):
        path.write_bytes(blank.join(games).replace("\n", ending).encode())
        whole = books.read_book(path, "pgn", 2)
        with monkeypatch.context() as patched:
            patched.setattr(books, "LONG", 10)
            book = books.read_book(path, "pgn", 2)
        assert isinstance(book, list) == (not blank)
        assert [book[at] for at in range(len(book))] == whole
        assert len(whole) == len(games)
    path.write_text(games[0] + "\n" + games[1].replace("Nf3", "Nf6"))
    monkeypatch.setattr(books, "LONG", 10)
    with pytest.raises(errors.BookError, match=r"long\.pgn, from line 6: game 1"):
        books.read_book(path, "pgn", None)[1]


# -- Polyglot books --------------------------------------------------------------------------


def polyglot(path: pathlib.Path, *lines: str) -> pathlib.Path:
    """Write a book with these lines of moves in UCI notation, each move of weight 1."""
    entries = set()
    for line in lines:
        board = chess.Board()
        for word in line.split():
            move = chess.Move.from_uci(word)
            raw = move.to_square | move.from_square << 6
            entries.add(struct.pack(">QHHI", chess.polyglot.zobrist_hash(board), raw, 1, 0))
            board.push(move)
    path.write_bytes(b"".join(sorted(entries)))
    return path


def extended(*words: str, index: int = 0) -> tuple[str, ...]:
    """Return the moves that both engines' books add to the start position."""
    settings = arguments.read([*TWO, *words])
    line = books.Polyglot(settings).extended(contract.Opening(), index, settings.engines)
    return line.moves


def test_both_engines_play_from_their_polyglot_books(tmp_path: pathlib.Path) -> None:
    """Until the side to move knows nothing, bookdepth= is reached or a position comes again."""
    book = polyglot(tmp_path / "b.bin", "e2e4 e7e5 g1f3 b8c6")
    assert extended("-each", f"book={book}") == ("e2e4", "e7e5", "g1f3", "b8c6")
    assert extended("-each", f"book={book}", "bookdepth=1") == ("e2e4", "e7e5")
    settings = arguments.read([*TWO, "-each", f"book={book}", "-rounds", "2"])
    assert command._openings(settings, 2, None) == "openings from the engines' books"
    assert not command._repeated(settings, schedule.slots(settings.plan), 2, None)
    circle = polyglot(tmp_path / "c.bin", "g1f3 g8f6 f3g1 f6g8")
    assert extended("-each", f"book={circle}") == ("g1f3", "g8f6", "f3g1")
    broad = polyglot(tmp_path / "d.bin", "e2e4 e7e5", "d2d4 d7d5", "c2c4 c7c5")
    lines = {extended("-each", f"book={broad}", "-srand", "1", index=at) for at in range(20)}
    assert lines == {("e2e4", "e7e5"), ("d2d4", "d7d5"), ("c2c4", "c7c5")}


def test_a_pgn_that_is_read_as_epd_is_called_one(tmp_path: pathlib.Path) -> None:
    """The error says what it looks like and what to write, not which field of a FEN is wrong."""
    (tmp_path / "b.epd").write_text('\n[Event "Book"]\n\n1. e4 e5 *\n')
    with pytest.raises(errors.BookError, match=r"line 2: this looks like PGN.*format=pgn"):
        books.read_book(tmp_path / "b.epd", "epd", None)


def test_a_book_that_is_none_is_refused(tmp_path: pathlib.Path) -> None:
    """Before the first game; a book for one engine alone as well."""
    (tmp_path / "x.bin").write_bytes(b"no book")
    for name, message in (("x.bin", "no Polyglot book: 7 bytes"), ("y.bin", "cannot be read")):
        with pytest.raises(errors.BookError, match=message):
            extended("-each", f"book={tmp_path / name}")
    with pytest.raises(errors.UsageError, match="-each book=FILE"):
        extended("-engine", "cmd=true", "book=x.bin")
