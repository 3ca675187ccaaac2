"""Pondering by the protocol's letter: what engines are told, what their clocks are charged."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import hall
import pytest

from orchestrator import contract
from orchestrator.contract import Ending
from worker_cpu.wire import frames

ENGINE = pathlib.Path(__file__).parents[1] / "engines" / "dancer.py"


def dancer(name: str, mode: str, *guesses: str) -> contract.EngineSpec:
    """Return an engine; ``guesses`` are replies that it expects to a ply, ``-`` for none."""
    command = (sys.executable, "-I", "-S", str(ENGINE), mode, *guesses)
    ponders = mode != "none"
    return contract.EngineSpec(id=name.lower(), name=name, command=command, ponder=ponders)


def order(white: contract.EngineSpec, black: contract.EngineSpec, **fields: Any) -> Any:
    """Return a match's order: nothing is set on engines but what was asked for."""
    return hall.order(white, black, limits=contract.Limits(free=True), **fields)


def stamps(played: hall.Played, seat: frames.Seat) -> list[tuple[str, int]]:
    """Return the lines from the first search on, with when they were sent or read."""
    return [
        (line.split(" wtime")[0], chunk.monotonic_ns)
        for chunk in played.chunks
        if chunk.seat == seat and chunk.direction != "!"
        for line in chunk.data.decode().splitlines()
        if line.split()[0] in ("go", "ponderhit", "stop", "bestmove", "quit")
    ]


def test_hits_and_misses_are_told_and_charged_to_the_nanosecond(tmp_path: pathlib.Path) -> None:
    """White expects the reply to plies 1 and 5, another to 3; the game ends while it ponders."""
    white, black = dancer("White", "able", "3:a7a6"), dancer("Black", "none")
    played = hall.play(tmp_path, order(white, black))
    assert played.outcome.ending is Ending.THREEFOLD
    assert "setoption name Ponder value true\nucinewgame" in played.sent("w")
    assert "Ponder" not in played.sent("b")
    told = stamps(played, "w")
    assert [line for line, _ in told] == [
        *("go", "bestmove g1f3 ponder g8f6", "go ponder"),
        *("ponderhit", "bestmove f3g1 ponder a7a6", "go ponder"),
        *("stop", "bestmove a2a3 ponder a7a6", "go", "bestmove g1f3 ponder g8f6", "go ponder"),
        *("ponderhit", "bestmove f3g1 ponder f6g8", "go ponder"),
        *("stop", *(line for line, _ in told[15:])),
    ]
    assert "quit" in [line for line, _ in told[15:]]  # perhaps before it has stopped
    at = [ns for _, ns in told]
    plies = [ply for ply in played.plies if ply.side == "white"]
    assert [ply.think_ns for ply in plies] == [
        at[1] - at[0],
        at[4] - at[3],
        (at[7] - at[6]) + (at[9] - at[8]),
        at[12] - at[11],
    ]
    assert [(ply.pondered, ply.pondered_ns) for ply in plies] == [
        ("", None),
        ("hit", at[3] - at[2]),
        ("miss", at[6] - at[5]),
        ("hit", at[11] - at[10]),
    ]
    # the score of a search that was begun in the opponent's turn, and none of one in vain
    assert [ply.score and ply.score.cp for ply in plies] == [None, 2, None, 6]
    assert all(ply.pondered == "" for ply in played.plies if ply.side == "black")
    sent = played.sent("w").splitlines()
    first = sent[sent.index("go ponder " + clocks(plies[0].white_clock_ns, 10_000)) - 1]
    assert first == "position startpos moves g1f3 g8f6"
    left_ns = plies[1].white_clock_ns - (at[7] - at[6])
    assert "go " + clocks(left_ns, played.plies[3].black_clock_ns // 10**6) in sent
    # a search begins before the clock of the turn in which it is made
    starts = [ns for line, ns in stamps(played, "b") if line == "go"]
    searches = [ns for line, ns in told if line == "go ponder"]
    assert all(search < go for search, go in zip(searches, starts, strict=True))


def clocks(white_ns: int, black_ms: int) -> str:
    """Write the clocks as they are told."""
    return f"wtime {white_ns // 10**6} btime {black_ms} winc 100 binc 100"


def test_a_search_that_ends_by_itself_is_no_answer(tmp_path: pathlib.Path) -> None:
    """Bestmove before ponderhit: the turn begins anew, and the record says whose fault it was."""
    played = hall.play(tmp_path, order(dancer("Hasty", "early"), dancer("Calm", "able")))
    assert played.outcome.ending is Ending.THREEFOLD
    assert "ponderhit" not in played.sent("w")
    assert [ply.pondered for ply in played.plies] == [
        *("", "", "early", "hit", "early", "hit", "early", "hit")
    ]
    assert played.finished is not None
    (remark,) = played.finished["remarks"]
    assert remark.startswith("Hasty: bestmove while it pondered, before ponderhit or stop")


@pytest.mark.parametrize(
    ("mode", "guesses", "ending", "note", "plies"),
    [
        ("deaf", ["1:a7a6"], Ending.STALL, "it pondered; no bestmove within", 2),
        ("crash", [], Ending.DISCONNECT, "exit 3", 2),  # on a busy host it ends behind the reply
        ("able", ["1:-", "3:e7e5", "5:h9h8"], Ending.THREEFOLD, "", 8),
        ("plain", [], Ending.THREEFOLD, "", 8),
    ],
)
def test_faults_while_pondering(
    tmp_path: pathlib.Path,
    mode: str,
    guesses: list[str],
    ending: Ending,
    note: str,
    plies: int,
) -> None:
    """Who does not stop, or dies in the opponent's turn, loses; who expects nothing rests."""
    control = contract.TimeControl(base_ms=1_500 if mode == "deaf" else 60_000)
    black = dancer("Black", "none")
    played = hall.play(tmp_path, order(dancer("W", mode, *guesses), black, time_control=control))
    assert played.outcome.ending is ending
    assert len(played.plies) <= plies
    assert note in f"{played.outcome.details} {played.outcome.note}"
    if ending is not Ending.THREEFOLD:
        assert played.outcome.loser == "white"
    elif mode == "plain":
        settings = played.report("white").options
        assert [(one.name, one.set, one.remark) for one in settings] == [
            ("Ponder", None, "engine has no such option")
        ]
        assert "ponder" not in played.sent("w")
    else:
        assert played.sent("w").count("go ponder") == 2, "e7e5 is legal, h9h8 is not"


def test_xboard_engines_ponder_by_themselves(tmp_path: pathlib.Path) -> None:
    """``hard`` in ``easy``'s place is all that they are told."""
    white = hall.scripted(protocol="xboard").model_copy(update={"ponder": True})
    black = hall.scripted("--fault", "crash@4", name="Other", protocol="xboard")
    played = hall.play(tmp_path, order(white, black))
    assert "post\nhard\nforce" in played.sent("w")
    assert "post\neasy\nforce" in played.sent("b")
    assert [ply.pondered for ply in played.plies] == [""] * 3
