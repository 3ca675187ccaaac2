"""Moves without a search right out of the book, the sign of a hidden one (S16-16)."""

from __future__ import annotations

from collections.abc import Sequence

import made
import pytest

from orchestrator import contract
from orchestrator.arbiter import own_book

LINE = ("e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6")
AT_ONCE = 300_000  # ns: reading a book
SEARCHED = 900_000_000


def order(control: str = "30+5", book: int = 2) -> contract.GameOrder:
    """Return an order whose book has so many plies."""
    engine = contract.EngineSpec(id="e", name="E", command=("e",))
    return made.order(
        engine,
        engine.model_copy(update={"id": "f"}),
        time_control=contract.TimeControl.parse(control),
        opening=contract.Opening(moves=LINE[:book]),
    )


def plies(told: Sequence[tuple[int | None, int]], book: int = 2) -> list[contract.PlyRecord]:
    """Return the plies behind the book, each with its nodes and thinking time."""
    return [
        contract.PlyRecord(
            ply=number,
            side="white" if number % 2 else "black",
            move=LINE[number - 1],
            san="",
            think_ns=think_ns,
            margin_ns=0,
            overhead_ns=0,
            white_clock_ns=0,
            black_clock_ns=0,
            nodes=nodes,
        )
        for number, (nodes, think_ns) in enumerate(told, start=book + 1)
    ]


def test_moves_at_once_without_nodes_count_up_to_the_first_search() -> None:
    """Each side for itself, in a row from the end of the book; later quick moves do not count."""
    told = [(0, AT_ONCE), (5_000, SEARCHED), (None, AT_ONCE), (0, AT_ONCE), (9, SEARCHED)]
    played = plies([*told, (0, AT_ONCE)])
    assert own_book.counts(order(), played) == {"white": 2, "black": 0}


@pytest.mark.parametrize("ply", [(1, AT_ONCE), (None, SEARCHED)])
def test_nodes_or_time_are_a_search(ply: tuple[int | None, int]) -> None:
    """An engine that counts no nodes but thinks has searched, and so has a fast one that does."""
    assert own_book.counts(order(), plies([ply]))["white"] == 0


def test_fast_games_tell_nothing() -> None:
    """Below a minute a side an honest engine may answer as fast."""
    quick = plies([(0, AT_ONCE)] * 6)
    assert own_book.counts(order("2s+50ms"), quick) == {"white": 0, "black": 0}
    assert own_book.counts(order(), quick) == {"white": 3, "black": 3}


def test_forced_moves_tell_nothing() -> None:
    """A side with one legal move may answer at once."""
    only = contract.Opening(fen="7k/8/8/8/8/8/6r1/r6K w - - 0 1")
    forced = plies([(0, AT_ONCE)], book=0)[0].model_copy(update={"move": "h1g2"})
    played = order(book=0).model_copy(update={"opening": only})
    assert own_book.counts(played, [forced])["white"] == 0
