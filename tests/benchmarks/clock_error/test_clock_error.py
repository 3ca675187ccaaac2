"""The clock-error benchmark: figures are produced; their meaning is tested without a clock."""

from __future__ import annotations

import os
import pathlib
import shlex

import chess
import clock_figures
import clock_report
import clock_runners
import clock_script
import clock_skips
import measure
import pytest

LONG = os.environ.get("FARM_BENCH") == "long"
# `make clock` is the whole measurement; this is what `make bench` tells of it in some minutes.
CLOCK = os.environ.get("FARM_BENCH_CLOCK", "--runs 3 --moves 500 --think 2000 --games 100")


@pytest.mark.benchmark
def test_every_runner_gives_figures(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each runner plays the probes to mate, and every table has its rows; no time is judged."""
    if LONG:
        with capsys.disabled():
            assert measure.main(shlex.split(CLOCK)) == 0
    else:
        clock_skips.compiler_or_skip()
        setting = clock_runners.Setting(think_us=500, lines=3, concurrency=1, games=1)
        results = measure.run([setting], runs=1, games=2, folder=tmp_path)
        print(clock_report.markdown(results))
        (run,) = results.clock[setting]["farm match"]
        assert (run.figures.games, run.figures.moves) == (1, measure.JUDGED)
        assert len(results.own[setting][0]) == clock_script.PLIES
        text = capsys.readouterr().out
        for words in ("farm match", "Our own nanosecond record", "games a minute", "Goals"):
            assert words in text


def test_the_written_game_ends_by_mate_and_never_before() -> None:
    """No runner may end it by a draw: no repetition, no fifty moves; variations are legal."""
    board = chess.Board()
    for line in clock_script.lines():
        assert not board.is_game_over(claim_draw=True)
        variation = board.copy()
        for word in line.split():
            variation.push_uci(word)  # raises for an illegal move
        board.push_uci(line.split()[0])
    assert board.is_checkmate()
    assert board.ply() == clock_script.PLIES


def side(first_ply: int, charges_ms: list[float], thinks_ms: list[float]) -> clock_figures.Side:
    """Make a side's moves from what each was charged and what it used."""
    told, at, moves = 10_000.0, first_ply * 1_000_000_000, []
    for number, (charge, think) in enumerate(zip(charges_ms, thinks_ms, strict=True)):
        move = clock_figures.Move(
            first_ply + 2 * number, int(told), at, at + int(think * clock_figures.NS)
        )
        moves.append(move)
        told += clock_figures.INCREMENT_MS - charge
        at += 2_000_000_000
    return tuple(moves)


def test_errors_are_charges_minus_thinks() -> None:
    """Bias, drift, outliers and undercharges follow from told clocks and stamps alone."""
    white = side(1, [2, 5, 0, 2], [2.0, 2.0, 2.0, 2.0])
    found = clock_figures.figures([white])
    assert (found.moves, found.games) == (3, 0)
    assert found.bias == pytest.approx(1 / 3)
    assert found.drift == pytest.approx(60 / 3)
    assert (found.worst, found.lowest) == (pytest.approx(3), pytest.approx(-2))
    assert found.beyond == pytest.approx(2 / 3)
    assert found.undercharged == 1
    assert found.overhead is None


def test_the_two_sides_of_a_game_are_found_by_their_stamps() -> None:
    """A game is two sides that alternate; what lies between their moves is the overhead."""
    thinks = [400.0] * 3
    white, black = side(1, thinks, thinks), side(2, thinks, thinks)
    elsewhere = side(2, thinks, [1_500.0] * 3)
    found = clock_figures.figures([elsewhere, white, black])
    assert found.games == 1
    assert found.overhead == pytest.approx(600.0)
    assert found.gap_p99 == pytest.approx(600.0)


def test_goals_are_judged_against_the_peers_too() -> None:
    """A figure that a peer betters is named as missed, whatever its own bound."""
    figures = clock_figures.figures([side(1, [2, 2, 2], [2.0] * 3), side(2, [2] * 3, [2.0] * 3)])
    setting = clock_runners.Setting(2000, 0, 1, 9)
    goals = dict(clock_report.judge(setting, figures, figures))
    assert goals["bias within 0.1 ms"]
    assert goals["bias better than all peers"]  # both are exact
    assert not goals["overhead at most 0.15 ms"]
    assert not goals["overhead better than all peers"]
