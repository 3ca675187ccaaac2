"""Every fault in every phase and both protocols has the right outcome, and leaves nothing.

The rows are those of the fault matrix that match runners are measured by (a crash, a
stall, a late or an illegal move, floods, half lines, strange but legal output) and those
that only XBoard knows (resignations, claims, refusals). FARM_LONG=1 plays each row at the
engine's first move and in the middle of the game, in both colours and protocols.
"""

from __future__ import annotations

import os
import pathlib

import hall
import pytest

from orchestrator import contract
from orchestrator.contract import Ending

LONG = os.environ.get("FARM_LONG") == "1"
BOTH, UCI, XBOARD = ("uci", "xboard"), ("uci",), ("xboard",)
FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3"


# during the game: fault, protocols, how the faulty engine loses (None: it plays on)
PLAYED: list[tuple[str, tuple[str, ...], Ending | None]] = [
    ("crash", BOTH, Ending.DISCONNECT),
    ("segv", BOTH, Ending.DISCONNECT),
    ("exit-after", BOTH, Ending.DISCONNECT),
    ("close-stdout", BOTH, Ending.DISCONNECT),
    ("child", BOTH, Ending.DISCONNECT),
    ("hang", BOTH, Ending.STALL),
    ("spam", BOTH, Ending.STALL),
    ("sleepy", BOTH, Ending.TIME),
    ("late:2400", BOTH, Ending.TIME),
    ("half", BOTH, Ending.TIME),
    ("illegal", BOTH, Ending.ILLEGAL),
    ("garbage", BOTH, Ending.ILLEGAL),
    ("none", BOTH, Ending.ILLEGAL),
    ("no-eval", BOTH, None),
    ("split", BOTH, None),
    ("doubled", BOTH, None),
    ("long-line", BOTH, None),
    ("flood", BOTH, None),
    ("loud", BOTH, None),
    ("resign", XBOARD, Ending.RESIGN),
    ("claim:1/2-1/2", XBOARD, Ending.FALSE_CLAIM),
    ("claim-after:1/2-1/2", XBOARD, Ending.FALSE_CLAIM),
    ("refuse", XBOARD, Ending.FALSE_CLAIM),
    ("offer", XBOARD, None),
    ("resign", UCI, Ending.STALL),
    ("claim", UCI, Ending.STALL),
]
AT_START: list[tuple[str, tuple[str, ...], Ending | None]] = [
    ("exit-before-uciok", BOTH, Ending.DISCONNECT),
    ("no-uciok", BOTH, Ending.STALL),
    ("no-readyok", BOTH, Ending.STALL),
    ("no-board", XBOARD, Ending.DISCONNECT),
    ("no-features", XBOARD, Ending.DISCONNECT),  # no setboard: it cannot play from a FEN
    ("crlf", BOTH, None),
    ("ignore-quit", BOTH, None),
]
SIDES: tuple[contract.Side, ...] = ("white", "black")


def cells() -> list[tuple[str, str, contract.Side, Ending | None]]:
    """Return the cells to be played; the short form has each row once a protocol."""
    found: list[tuple[str, str, contract.Side, Ending | None]] = []
    for number, (fault, protocols, ending) in enumerate(PLAYED):
        for protocol in protocols:
            plies = (1, 5) if LONG else (5 if number % 3 else 1,)
            sides = SIDES if LONG else (SIDES[number % 2],)
            found += [(f"{fault}@{ply}", protocol, side, ending) for ply in plies for side in sides]
    for number, (fault, protocols, ending) in enumerate(AT_START):
        sides = SIDES if LONG else (SIDES[number % 2],)
        found += [(fault, protocol, side, ending) for protocol in protocols for side in sides]
    known = {row for row in found if not LONG and row[1] == "uci" and row[0] in KNOWN}
    return [row for row in found if row not in known]


# rows that test_games plays in the short form already
KNOWN = {"crash@1", "segv@5", "hang@5", "sleepy@5", "illegal@5", "no-uciok", "no-readyok", "crlf"}


@pytest.mark.parametrize(("fault", "protocol", "side", "ending"), cells())
def test_a_cell_of_the_fault_matrix(
    tmp_path: pathlib.Path,
    fault: str,
    protocol: contract.ProtocolName,
    side: contract.Side,
    ending: Ending | None,
) -> None:
    """The right side loses, in the right way; no process survives."""
    end = hall.scripted("--fault", "illegal@8", name="End")  # somebody has to lose
    faulty = hall.scripted("--fault", fault, protocol=protocol, name="Faulty")
    players = {"white": end, "black": end} | {side: faulty}
    opening = contract.Opening(fen=FEN if fault in {"no-board", "no-features"} else None)
    timeouts, control = hall.patience(fault, ending)
    order = hall.order(**players, time_control=control, timeouts=timeouts, opening=opening)
    order = order.model_copy(update={"time_margin_ms": 50})
    played = hall.play(tmp_path, order)
    outcome = played.outcome
    expected = (
        (ending, side) if ending else (Ending.ILLEGAL, "black" if side == "white" else "white")
    )
    assert (outcome.ending, outcome.loser) == expected, outcome


def test_an_engine_without_features_plays_by_version_1(tmp_path: pathlib.Path) -> None:
    """Nothing but plain moves is sent to it, and `go` comes after the settling time."""
    old = hall.scripted("--fault", "no-features", protocol="xboard")
    end = hall.scripted("--fault", "illegal@1", name="End")
    times, _ = hall.patience("no-features", None)
    played = hall.play(tmp_path, hall.order(end, old, timeouts=times))
    assert played.outcome.loser == "white"
    assert "usermove" not in played.sent("b")
    assert "ping" not in played.sent("b")


def test_a_refusal_says_what_is_missing(tmp_path: pathlib.Path) -> None:
    """An engine that cannot be brought to the start loses, and the note says why."""
    old = hall.scripted("--fault", "no-features", protocol="xboard")
    times, _ = hall.patience("no-features", None)
    order = hall.order(old, hall.scripted(), timeouts=times, opening=contract.Opening(fen=FEN))
    assert "setboard" in hall.play(tmp_path, order).outcome.note


def test_draw_offers_end_a_game_only_where_the_event_says_so(tmp_path: pathlib.Path) -> None:
    """Offers are recorded with their ply; both in a row agree in an event that allows it."""
    offering = hall.scripted("--fault", "offer@2", protocol="xboard")
    order = hall.order(offering, hall.scripted("--fault", "offer@2", protocol="xboard"))
    played = hall.play(tmp_path, order.model_copy(update={"agreed_draws": True}))
    assert played.outcome.ending is Ending.AGREEMENT
    assert [ply.said for ply in played.plies] == ["", "offers a draw", "offers a draw"]


def test_a_claim_of_an_own_loss_is_a_resignation(tmp_path: pathlib.Path) -> None:
    """White that writes 0-1 has given the game up."""
    losing = hall.scripted("--fault", "claim:0-1@1", protocol="xboard")
    assert hall.play(tmp_path, hall.order(losing, hall.scripted())).outcome.ending is Ending.RESIGN
