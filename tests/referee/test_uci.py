"""UCI's text: what engines really write is read."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import board
from worker_cpu.protocols import uci, uci_engine


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (
            b"option name Hash type spin default 16 min 1 max 33554432",
            uci.Option("Hash", "spin", "16", 1, 33_554_432),
        ),
        (
            b"option name Clear Hash type button\r",
            uci.Option("Clear Hash", "button"),
        ),
        (
            b"option name NalimovPath type string default /some path with spaces",
            uci.Option("NalimovPath", "string", "/some path with spaces"),
        ),
        (
            b"option name Style type combo default Very Solid var Very Solid var Risky",
            uci.Option("Style", "combo", "Very Solid", choices=("Very Solid", "Risky")),
        ),
        (b"option name Log File type string default", uci.Option("Log File", "string", "")),
        (
            b"option name min max of var type check default true",
            uci.Option("min max of var", "check", "true"),
        ),
        (b"option name Hash type spoon default 1", None),
        (b"option name type spin", None),
        (b"option", None),
    ],
)
def test_option_lines(line: bytes, option: uci.Option | None) -> None:
    """Names, defaults and choices keep their spaces; what is no option is none."""
    assert uci.option(line) == option


def test_identity_lines() -> None:
    """Name and author are read, other lines are not."""
    assert uci.identity(b"id name Stockfish 15.1\r") == uci.Identity("name", "Stockfish 15.1")
    assert uci.identity(b"id author T. Romstad, M.  Costalba") == uci.Identity(
        "author", "T. Romstad, M. Costalba"
    )
    assert uci.identity(b"id elo 3000") is None
    assert uci.identity(b"idea name x") is None


def test_the_last_exact_score_of_the_first_line_counts() -> None:
    """Bounds and other lines of play are passed over; counters are the newest ones."""
    output = (
        b"info depth 20 seldepth 30 multipv 1 score cp -31 nodes 100 nps 50 tbhits 2 pv e7e5 g1f3\n"
        b"info depth 20 multipv 2 score cp -99 nodes 120 pv a7a6\n"
        b"info depth 21 seldepth 31 score cp 12 lowerbound nodes 140 hashfull 7 pv d7d5\n"
        b"info depth 21 currmove d7d5 currmovenumber 1\n"
        b"info string score cp 500 is what I hope for\n"
    )
    assert uci.last_search(output) == uci.Search(
        score=contract.Score(cp=-31),
        depth=20,
        seldepth=30,
        nodes=140,
        nps=50,
        tbhits=2,
        hashfull=7,
        pv=("e7e5", "g1f3"),
    )


@pytest.mark.parametrize(
    ("line", "score"),
    [
        (b"info depth 5 score mate -3 pv e2e4", contract.Score(mate=-3)),
        (b"info depth 5 score cp 13 wdl 40 950 10 nodes 1\r", contract.Score(cp=13)),
        (b"info score cp 1e3 depth 3", None),
        (b"info depth 3 score cp 20 upperbound", None),
        (b"info string hello", None),
        (b"", None),
    ],
)
def test_scores(line: bytes, score: contract.Score | None) -> None:
    """Centipawns and mates are read, everything else is no score."""
    assert uci.last_search(line).score == score


@pytest.mark.parametrize(
    ("words", "wdl"),
    [
        (b"wdl 40 950 10", (40, 950, 10)),
        (b"wdl 333 333 333", (333, 333, 333)),  # rounded one by one
        *((b"wdl " + bad, None) for bad in (b"40 950", b"-40 950 90", b"9 9 9", b"x 1 999", b"")),
        (b"wdl 1000 1000 -1000", None),
    ],
)
def test_wins_draws_and_losses(words: bytes, wdl: tuple[int, int, int] | None) -> None:
    """They are those of the score's own line; what cannot be shares of one game is none."""
    score, later = b"info depth 5 score cp 13 ", b"info depth 6 score cp 900 lowerbound wdl 999 1 0"
    heard = uci.last_search(score + words + b" nodes 7 pv e2e4\n" + later)
    assert (heard.wdl, heard.nodes, heard.pv) == (wdl, 7, ("e2e4",))


def test_the_line_of_play_ends_at_its_first_word_that_is_no_move() -> None:
    """A principal variation with something else behind it is cut there."""
    search = uci.last_search(b"info score cp 1 pv e2e4 e7e8q bmc 0.5 depth 9")
    assert (search.pv, search.depth) == (("e2e4", "e7e8q"), 9)


@given(
    before=st.lists(st.sampled_from([b"info depth 1\n", b"info string bestmove a1a1\n", b"\r\n"])),
    end=st.sampled_from([b"\n", b"\r\n"]),
    cuts=st.lists(st.integers(1, 9), min_size=1),
)
def test_bestmove_is_found_however_it_is_split(
    before: list[bytes], end: bytes, cuts: list[int]
) -> None:
    """The line is found once it is whole, not before, and only at the start of a line."""
    stream = b"".join(before) + b"bestmove e2e4 ponder e7e5" + end
    finder, at, found = uci.MoveFinder(), 0, None
    while at < len(stream):
        assert found is None
        found = finder.feed(stream[at : at + cuts[at % len(cuts)]])
        at += cuts[at % len(cuts)]
    assert found is not None
    assert uci.best_move(found) == uci.BestMove("e2e4", "e7e5")


def test_the_rest_of_an_old_line_is_no_answer() -> None:
    """A line begun before ``go`` is skipped, the next one counts."""
    finder = uci.MoveFinder(fresh=False)
    assert finder.feed(b"bestmove a1a1\n") is None
    assert finder.feed(b" bestmove b1b1\n") == b"bestmove b1b1"


def test_a_begun_bestmove_is_known() -> None:
    """Half an answer is told apart from none, also behind a very long line."""
    finder = uci.MoveFinder()
    assert finder.feed(b"x" * 300_000) is None
    assert not finder.begun()
    assert finder.feed(b"\nbestmove e2") is None
    assert finder.begun()


def test_a_flood_on_one_line_is_searched_once() -> None:
    """What a ponderer writes is searched whole, before its clock: 2 MiB took 7 s of CPU."""
    finder, before = uci.MoveFinder(), time.process_time()
    assert finder.feed(b"\0bestmove\0" * (2 << 20 >> 3)) is None
    assert finder.feed(b"\nbestmove e2e4\n") == b"bestmove e2e4"
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("line", "move"),
    [
        (b"bestmove e2e4\r", uci.BestMove("e2e4")),
        (b"bestmove (none)", uci.BestMove("(none)")),
        (b"bestmove", uci.BestMove("")),
        (b"bestmove a7a8q ponder", uci.BestMove("a7a8q")),
        (b"bestmove \xff\xfe ponder x", uci.BestMove("\ufffd\ufffd", "x")),
    ],
)
def test_best_move_lines(line: bytes, move: uci.BestMove) -> None:
    """The move's text is kept as it was written."""
    assert uci.best_move(line) == move


@pytest.mark.parametrize("text", ["a7a8q", "a7a8Q", "a7a8N"])
def test_a_promotions_letter_may_be_a_capital(text: str) -> None:
    """UCI's text forbids it nowhere; the squares are small letters all the same."""
    opening = contract.Opening(fen="8/P6k/8/8/8/8/8/K7 w - - 0 1")
    player = uci_engine.UciPlayer(board.GameBoard(opening), "white")
    assert str(player.read_move(text)) == text.lower()
    assert player.read_move(text.upper()) is None


def test_commands() -> None:
    """One piece starts a clock; no option value can smuggle in a second command."""
    limits = " wtime 1000 btime 900 winc 10 binc 20"
    assert uci.position_and_go("position startpos", limits) == (
        b"position startpos\ngo wtime 1000 btime 900 winc 10 binc 20\n"
    )
    assert uci.set_option("Style", "a\nquit") == b"setoption name Style value a quit\n"
    assert uci.set_option("Clear Hash") == b"setoption name Clear Hash\n"
