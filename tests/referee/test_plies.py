"""Plies that are kept to the game's end, orders that want none, and how they are told."""

from __future__ import annotations

import os
import pathlib
import re

import hall
import pytest

from orchestrator import contract
from orchestrator.arbiter import record
from worker_cpu.referee import process, result

TIMES = {"think_ns", "margin_ns", "overhead_ns", "waited_ns", "white_clock_ns", "black_clock_ns"}
RULES = contract.Adjudication(
    max_moves=4, draw=contract.MovesDraw(move_number=1, move_count=9, score_cp=5)
)


def told(directory: pathlib.Path, protocol: contract.ProtocolName, **fields: object) -> hall.Played:
    """Play one short game of deterministic engines."""
    directory.mkdir()
    asked = ("--wdl",) if protocol == "uci" else ()
    white = hall.scripted("--seed", "1", *asked, protocol=protocol)
    order = hall.order(white, hall.scripted("--seed", "2"), adjudication=RULES, **fields)
    return hall.play(directory, order)


@pytest.mark.parametrize("protocol", ["uci", "xboard"])
def test_a_ply_tells_the_same_whenever_it_is_written(
    tmp_path: pathlib.Path, protocol: contract.ProtocolName
) -> None:
    """Plies kept to the end have moves, SAN, scores, variations and clocks of the rules."""
    at_once = told(tmp_path / "a", protocol).plies
    kept = told(tmp_path / "b", protocol, journaled=False).plies
    assert [ply.model_dump(exclude=TIMES) for ply in kept] == [
        ply.model_dump(exclude=TIMES) for ply in at_once
    ]
    assert len(kept) == 8
    assert all(ply.score is not None and ply.counters is not None for ply in kept)
    own = {ply.side for ply in kept if ply.wdl is not None and sum(ply.wdl) == 1000}
    assert own == ({"white"} if protocol == "uci" else set())


def test_an_order_without_record_and_traffic_gets_neither(tmp_path: pathlib.Path) -> None:
    """No PLY and no CHUNK comes, few THINKs; the end tells result and number of plies."""
    played = told(tmp_path / "a", "uci", journaled=False, recorded=False, traffic=False)
    assert not played.plies
    assert not played.chunks
    assert len(played.thinks) == 1
    assert played.finished is not None
    assert played.finished["plies"] == 8


@pytest.mark.parametrize("minimal", [False, True])
def test_a_referee_that_is_asked_for_a_pgn_sends_nothing_else(
    tmp_path: pathlib.Path, *, minimal: bool
) -> None:
    """The PGN is the one that the plies of the same game make, but for the time they took."""
    plain = {"journaled": False, "traffic": False}
    recorded = told(tmp_path / "a", "uci", **plain)
    assert recorded.finished is not None
    order = hall.order(hall.scripted("--seed", "1"), hall.scripted("--seed", "2"))
    order = order.model_copy(update={"game": recorded.game, "adjudication": RULES})
    times = {"started_ms": 0, "ended_ms": 0}
    facts = result.game_record(
        recorded.finished, order, recorded.plies, attempt="a", hall="", **times
    )
    style = contract.PgnStyle(minimal=minimal)
    played = told(tmp_path / "b", "uci", **plain, recorded=False, pgn=style)
    assert not played.plies
    assert len(played.thinks) == 1
    wanted = timeless(record.pgn(facts, minimal=minimal))
    assert timeless(played.pgn) == wanted
    assert ("wv=" in wanted) == (not minimal)


def timeless(pgn: str) -> str:
    """Return a PGN on one line, without what differs between two equal games."""
    text = re.sub(r"\[(GameStartTime|GameEndTime|Date|GameDuration) .*\]\n", "", pgn)
    return re.sub(r"\b(mt|tl|s)=\d+", r"\1=", " ".join(text.split()))


def test_the_traffic_is_told_in_its_order(tmp_path: pathlib.Path) -> None:
    """The write that starts a search stands before all that answers it, with its stamp."""
    chunks = told(tmp_path / "a", "uci").chunks
    stamps = {"w": 0, "b": 0}
    searching = dict.fromkeys(stamps, False)
    for chunk in chunks:
        assert stamps[chunk.seat] <= chunk.monotonic_ns
        stamps[chunk.seat] = chunk.monotonic_ns
        if b"bestmove" in chunk.data:
            assert searching[chunk.seat]
            searching[chunk.seat] = False
        elif b"\ngo " in chunk.data:
            searching[chunk.seat] = True


def test_a_referee_that_may_runs_before_others() -> None:
    """It takes the lowest real-time priority, which no child inherits; else all stays."""
    pid = os.fork()
    if pid == 0:
        process.run_at_once()
        policy = os.sched_getscheduler(0)
        os._exit(0 if policy in (os.SCHED_OTHER, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK) else 1)
    assert os.waitpid(pid, 0)[1] == 0
