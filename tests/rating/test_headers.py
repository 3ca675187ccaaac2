"""Reading results out of PGN archives, quickly and in whatever order tags come."""

from __future__ import annotations

import collections
import gzip
import io

import chess.pgn
import pytest
import tcec_events
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.forecast import rating_list
from orchestrator.rating import headers

NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), min_size=1, max_size=12)
RESULTS = st.sampled_from(["1-0", "0-1", "1/2-1/2", "*"])


@given(st.lists(st.tuples(NAMES, NAMES, RESULTS), max_size=8), st.permutations(range(4)))
def test_what_was_written_is_read(games: list[tuple[str, str, str]], order: list[int]) -> None:
    """Names with quotes, backslashes and any letters survive, in any order of tags."""
    out = io.StringIO()
    for white, black, result in games:
        tags = [("Event", "x"), ("White", white), ("Black", black), ("Result", result)]
        for name, value in (tags[at] for at in order):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'[{name} "{escaped}"]\n')
        out.write(f"\n1. e4 {{a comment}} {result}\n\n")
    assert headers.read(out.getvalue().encode()) == collections.Counter(games)


def test_real_archives_are_read_as_python_chess_reads_them() -> None:
    """TCEC's archive gives the same games by both ways (one file: python-chess is slow)."""
    content = gzip.decompress(tcec_events.games("Cup_3_Bronze").read_bytes())
    theirs: headers.Games = collections.Counter()
    text = io.StringIO(content.decode())
    while (found := chess.pgn.read_headers(text)) is not None:
        theirs[found["White"], found["Black"], found["Result"]] += 1
    assert headers.read(content) == theirs


def test_a_game_without_a_tag_is_left_out() -> None:
    """What lacks White, Black or Result spoils none of its neighbours."""
    text = b"""[White "A"]\n[Black "B"]\n\n1. e4 *\n
[White "C"]\n[Black "D"]\n[Result "1-0"]\n\n1-0\n
[Black "E"]\n[Result "0-1"]\n\n0-1\n"""
    assert headers.read(text) == {("C", "D", "1-0"): 1}


@pytest.mark.parametrize(
    ("tag", "counts"),
    [("1800+5", True), ("1799+5", False), ("40/1500", True), ("40/1000", False), ("?", False)],
)
def test_test_games_count_at_a_time_control_or_slower(tag: str, counts: bool) -> None:
    """S16-14: tests count from a configured time control on; 60 moves compare them."""
    text = f'[White "A"]\n[Black "B"]\n[Result "1-0"]\n[TimeControl "{tag}"]\n\n1-0\n'
    least = contract.TimeControl.parse("30+5")
    assert bool(rating_list.long_enough(text.encode(), least)) is counts


@pytest.mark.parametrize(("black", "counts"), [("3600+5", True), ("600+5", False)])
def test_test_games_with_two_time_controls_count_by_the_quicker(black: str, counts: bool) -> None:
    """A GPU engine may have had another clock than its opponent, each with a tag of its own."""
    controls = f'[WhiteTimeControl "1800+5"]\n[BlackTimeControl "{black}"]\n'
    text = f'[White "A"]\n[Black "B"]\n[Result "1-0"]\n{controls}\n1-0\n'
    least = contract.TimeControl.parse("30+5")
    assert bool(rating_list.long_enough(text.encode(), least)) is counts


def test_several_tags_may_stand_on_a_line() -> None:
    """The PGN standard's import format has no line ends between tags."""
    text = b'[White "A"] [Black "B"][Result "1-0"]\n\n1-0\n\n[White "B"] [Black "A"]\n1-0\n'
    assert headers.read(text) == {("A", "B", "1-0"): 1}


def test_tags_may_be_set_off_by_tabs_and_blanks() -> None:
    """Other programs' spacing hides no game, also between games of the usual form."""
    usual = '[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1-0\n\n'
    spaced = '[White\t"C"]\n[Black  "D"]\n[Result \t"0-1"]\n\n0-1\n\n'
    games = {("A", "B", "1-0"): 1, ("C", "D", "0-1"): 1}
    assert headers.read((usual + spaced).encode()) == games
    assert headers.read(spaced.encode()) == {("C", "D", "0-1"): 1}
