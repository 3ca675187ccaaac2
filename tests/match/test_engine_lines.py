"""What is looked for in engines' lines: wrong mates, and lines that are copied into the PGN."""

from __future__ import annotations

import pathlib
import sys

import pytest
import table

from worker_cpu.match import arguments, engine_lines
from worker_cpu.wire import frames

MATE = "position startpos moves e2e4 e7e5 f1c4 b8c6\ngo wtime 1 btime 1\n"
WORDS = ("-engine", f"cmd={sys.executable}", "name=A", "tc=1", "-engine", f"cmd={sys.executable}")


def heard(*words: str, sent: str, said: str) -> engine_lines.GameLines:
    """Return what is found in White's lines, which come in pieces of three bytes."""
    read = arguments.read([*WORDS, "name=B", "tc=1", *words])
    found = engine_lines.GameLines(read, engine_lines.seats([one.spec for one in read.engines]))
    for direction, text in ((">", sent), ("<", said)):
        for at in range(0, len(text), 3):
            found.hear(frames.Chunk("w", direction, 0, text[at : at + 3].encode()))  # type: ignore[arg-type] # of a loop
    return found


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("score mate 2 pv d1h5 g8f6 h5f7", ""),
        ("score mate 2 pv d1h5 g8f6", "Incomplete mating PV - from A"),
        ("score mate 1 pv d1h5 g8f6 h5f7", "Too long mating PV - from A"),
        ("score mate 2 pv d1h5 g7g6 h5g6", "Mating PV does not end with checkmate - from A"),
        ("score mate 2 pv d1h5 g8f6 h5h8", "Illegal PV move - move h5h8 from A"),
        ("score mate 3 pv d1h5 g8f6 h5f7 e8e7", "PV continues after checkmate - move e8e7 from A"),
        ("score mate -1 pv d1h5 g8f6 h5f7", "Too long mating PV - from A"),
        ("score mate 2 lowerbound pv d1h5", ""),
        ("score cp 900 pv d1h5 d1h5", ""),
        ("string score mate 2 pv d1h5", ""),
    ],
)
def test_a_line_that_claims_a_mate_shows_it(line: str, problem: str) -> None:
    """Legal, as long as it says, and checkmate at its end; one warning a search."""
    said = f"info depth 9 {line}\n" * 2 + "bestmove d1h5\n"
    found = heard("-check-mate-pvs", "-testEnv", sent=MATE, said=said)
    warning = (
        f"Warning; {problem} :: Info; info depth 9 {line} :: Position; startpos"
        " :: Moves; e2e4 e7e5 f1c4 b8c6"
    )
    assert [str(one) for one in found.warnings] == [warning] * bool(problem)
    plain = heard("-check-mate-pvs", sent=MATE, said=said)
    assert [str(one) for one in plain.warnings] == [warning.replace(" :: ", "\n")] * bool(problem)
    assert not heard(sent=MATE, said=said).warnings


def test_the_last_line_that_fits_is_that_of_the_search() -> None:
    """One line a pattern, in the order of the patterns; each search for itself."""
    said = "info string cpu 1\ninfo string cpu 2\ninfo depth 1\nbestmove d1h5\ninfo string cpu 3\n"
    found = heard("-pgnout", "g.pgn", "match_line=^info d", "match_line=cpu", sent=MATE, said=said)
    assert found.copied == {5: ["info depth 1", "info string cpu 2"]}
    with pytest.raises(Exception, match=r"match_line: found .*allowed: a regular expression"):
        heard("-pgnout", "g.pgn", "match_line=(", sent="", said="")


def test_lines_stand_in_the_pgn(tmp_path: pathlib.Path) -> None:
    """A played match has them behind every move, its journal and result are as always."""
    words = ("-pgnout", "file=g.pgn", "match_line=score", "comments=fastchess", "-check-mate-pvs")
    table.play(tmp_path, *table.good_and_bad("-games", "1", *words))
    text = (tmp_path / "g.pgn").read_text()
    (game,) = table.games(tmp_path / "g.pgn.jsonl")
    assert text.count('line="info depth 1 score cp 10 nodes 1"') == game["plies"] == 7
    assert "White mates" in text
