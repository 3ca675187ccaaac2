"""A referee that goes on from an interrupted game: moves, clocks, rules, in both protocols."""

from __future__ import annotations

import pathlib

import hall
import pytest

from orchestrator import contract

RULES = contract.Adjudication(max_moves=5)


def progress(plies: list[contract.PlyRecord], white_ns: int, black_ns: int) -> contract.Progress:
    """Return what a game of these plies goes on from."""
    return contract.Progress(
        plies=tuple(plies), white_clock_ns=white_ns, black_clock_ns=black_ns, started_ms=1
    )


@pytest.mark.parametrize("protocol", ["uci", "xboard"])
def test_a_resumed_game_is_the_same_game(
    tmp_path: pathlib.Path, protocol: contract.ProtocolName
) -> None:
    """The engines get the whole history and go on as in the undisturbed game."""
    white, black = (hall.scripted("--seed", seed, protocol=protocol) for seed in "12")
    opening = contract.Opening(moves=("e2e4", "e7e5"))
    order = hall.order(white, black, opening=opening, adjudication=RULES)
    whole = hall.play(tmp_path, order).plies
    half = progress(whole[:3], 5_000_000_000, 7_000_000_000)
    fields = {"game": f"{order.game}-again", "progress": half}
    played = hall.play(tmp_path, order.model_copy(update=fields))
    assert [ply.move for ply in played.plies] == [ply.move for ply in whole[3:]]
    assert [ply.ply for ply in played.plies] == [6, 7, 8, 9, 10]
    first = played.thinks[0]
    assert (first["ply"], first["side"]) == (6, "black")
    assert (first["white_clock_ns"], first["black_clock_ns"]) == (5_000_000_000, 7_000_000_000)
    history = [*opening.moves, *(ply.move for ply in whole[:3])]
    if protocol == "uci":
        assert f"position startpos moves {' '.join(history)}\n" in played.sent("b")
    else:
        told = [
            line.split()[1] for line in played.sent("b").splitlines() if line.startswith("usermove")
        ]
        assert told[:5] == history
        assert f"usermove {whole[2].move}\nping" in played.sent("w")


def test_plies_that_had_ended_the_game_start_no_engine(tmp_path: pathlib.Path) -> None:
    """Rules that need the hall's tables are asked again here, before anything is started."""
    order = hall.order(hall.scripted("--seed", "1"), hall.scripted(), adjudication=RULES)
    whole = hall.play(tmp_path, order).plies
    fields = {"game": f"{order.game}-again", "progress": progress(whole, 1, 1)}
    played = hall.play(tmp_path, order.model_copy(update=fields))
    assert played.outcome.ending is contract.Ending.MAX_MOVES
    assert (played.ready, played.plies, played.chunks) == (None, [], [])


def test_rules_count_the_plies_of_before(tmp_path: pathlib.Path) -> None:
    """A row of evals goes on over the interruption."""
    rules = contract.Adjudication(eval_win=contract.EvalWin(bound_cp=1000, plies=4))
    engine = hall.scripted("--claim-cp", "1200")
    order = hall.order(engine, engine, adjudication=rules)
    whole = hall.play(tmp_path, order).plies
    assert len(whole) == 4
    fields = {"game": f"{order.game}-again", "progress": progress(whole[:3], 10**10, 10**10)}
    played = hall.play(tmp_path, order.model_copy(update=fields))
    assert played.outcome.ending is contract.Ending.EVAL_WIN
    assert len(played.plies) == 1


def test_moves_of_a_period_go_on_counting(tmp_path: pathlib.Path) -> None:
    """Four moves in a second and two played before: two more until the next second."""
    control = contract.TimeControl.parse("4/10s")
    rules = contract.Adjudication(max_moves=6)
    engine = hall.scripted("--strength", "0")
    order = hall.order(engine, engine, time_control=control, adjudication=rules)
    whole = hall.play(tmp_path, order).plies
    half = progress(whole[:4], 10**9, 10**9)
    fields = {"game": f"{order.game}-again", "progress": half}
    played = hall.play(tmp_path, order.model_copy(update=fields))
    first, second = (ply for ply in played.plies if ply.side == "white"), 10**10
    clocks = [ply.white_clock_ns for ply in first]
    assert clocks[0] < 10**9
    assert second < clocks[1] < second + 10**9
