"""Adjudicated games in the PGN: clocks behind every move, Termination, r-mobility."""

from __future__ import annotations

import test_pgn_record as pgn

from orchestrator import contract
from orchestrator.arbiter import record, rmobility, verdict


def test_clocks_are_written_behind_every_move() -> None:
    """Rd and Rr stand where the order's rules are played, -1000 where they are not."""
    counters = contract.Counters(plies_to_draw=68, plies_to_win=9, moves_to_fifty=50, rd=-11, rr=9)
    told = pgn.comments_of(pgn.read_back(record.pgn(pgn.fools_mate(counters=counters))))
    assert all("Rd=-11, Rr=9, mb=" in comment for comment in told[1:])
    half = contract.Counters(plies_to_draw=68, moves_to_fifty=50, rd=-11)
    told = pgn.comments_of(pgn.read_back(record.pgn(pgn.fools_mate(counters=half))))
    assert all("Rd=-11, Rr=-1000," in comment for comment in told[1:])


def test_an_adjudicated_game_says_so_in_tags_and_last_comment() -> None:
    """Termination, its details and the closing sentence are those that statistics match on."""
    base = pgn.fools_mate()
    game = base.model_copy(update={"outcome": verdict.eval_win("white")})
    found = rmobility.of_record(game.order, game.plies, game.outcome)
    again = pgn.read_back(record.pgn(game.model_copy(update={"r_mobility": found})))
    assert again.headers["Termination"] == "adjudication"
    assert again.headers["TerminationDetails"] == "TCEC win rule"
    assert again.headers["Result"] == "0-1"
    assert again.headers["RMobilityResult"] == "-G0.0"
    closing = "Black wins by adjudication: TCEC win rule"
    assert pgn.comments_of(again)[-1].endswith(f"mb=+0+0+0+0+0, {closing}")


def test_records_from_before_adjudication_are_still_read() -> None:
    """Fields that were added have defaults; such a game has no clocks and no r-mobility."""
    plain = pgn.fools_mate().model_dump(mode="json", exclude={"r_mobility", "remarks"})
    for ply in plain["plies"]:
        del ply["counters"]
    del plain["order"]["adjudication"]
    game = contract.GameRecord.model_validate(plain)
    assert game.order.adjudication == contract.Adjudication()
    assert "Rd=-1000" in record.pgn(game)
    assert "RMobilityResult" not in record.tags(game)
