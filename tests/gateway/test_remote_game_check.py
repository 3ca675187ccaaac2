"""What the gateway believes of a game that a remote worker tells: what it can compute itself."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import told

from orchestrator import contract
from orchestrator.arbiter import record as records
from orchestrator.testmatch import remote_game_check

ORDER = told.spec().order(1)
SINCE_MS = 60_000
QUIET = ("e2e4", "e7e5")


def _verified(game: Any, since_ms: int = SINCE_MS) -> contract.GameRecord:
    checked = remote_game_check.verified(ORDER, game, since_ms)
    return remote_game_check.record(
        ORDER, game, checked, attempt="a", host="anna/box", ended_ms=10**12
    )


def test_a_true_game_is_kept_in_the_farms_own_words() -> None:
    """Result, SAN and verdict are made here: what the worker wrote there is not kept."""
    game = told.game(ORDER)
    vague = game.outcome.model_copy(update={"details": "who knows", "note": "a note"})
    plies = [ply.model_copy(update={"san": "??"}) for ply in game.plies]
    record = _verified(game.model_copy(update={"plies": tuple(plies), "outcome": vague}))
    assert (record.outcome.result, record.outcome.details) == ("0-1", "Black mates")
    assert record.outcome.note == ""
    assert [ply.san for ply in record.plies] == ["f3", "e5", "g4", "Qh4#"]


def test_its_pgn_is_that_of_the_record_without_playing_it_again_and_without_lines() -> None:
    """Positions are those that the check has reached; a line would be played move by move."""
    opening = contract.Opening(moves=("f2f3",))
    order = told.spec(openings=(opening,)).order(1)
    game = told.game(order, told.MATE[1:])
    score = contract.Score(cp=25)
    lines = [ply.model_copy(update={"pv": (ply.move,), "score": score}) for ply in game.plies]
    game = game.model_copy(update={"plies": tuple(lines)})
    checked = remote_game_check.verified(order, game, SINCE_MS)
    kept = remote_game_check.record(order, game, checked, attempt="a", host="b", ended_ms=10**12)
    assert records.pgn(kept, played=checked.played) == records.pgn(kept)
    assert "pv=" not in records.pgn(kept)
    assert "wv=0.25" in records.pgn(kept)


def _loss(ending: str, loser: contract.Side | None = "white", **other: Any) -> contract.Outcome:
    result = {"white": "0-1", "black": "1-0", None: "1/2-1/2"}[loser]
    words = {"result": result, "ending": ending, "loser": loser, "details": "", **other}
    return contract.Outcome.model_validate(words)


@pytest.mark.parametrize("ending", ["time", "disconnect", "stall", "illegal"])
def test_what_only_the_worker_saw_is_taken_where_it_fits(ending: str) -> None:
    """A flag, a crash, a stall, and a move that is none, of the side to move."""
    game = told.game(ORDER, QUIET, _loss(ending, note="e9e9"), wall_ms=5_000)
    assert _verified(game).outcome.loser == "white"


@dataclasses.dataclass(frozen=True)
class Forged:
    """A game that was not played so, and what its refusal must name."""

    names: str
    moves: tuple[str, ...] = told.MATE
    outcome: contract.Outcome = told.OUTCOME
    ply: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields of the second ply
    other: dict[str, Any] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
    "forged",
    [
        Forged("final position is 0-1", outcome=_loss("checkmate", "black")),
        Forged("final position is 0-1", outcome=_loss("threefold", None)),
        Forged("the game is not over", QUIET),
        Forged("the game is not over", QUIET, _loss("syzygy")),
        Forged("the game is not over", QUIET, _loss("organizers")),
        Forged("lost by nobody", QUIET, _loss("time", None)),
        Forged("white was to move", QUIET, _loss("time", "black")),
        Forged("white was to move", QUIET, _loss("illegal", "black")),
        Forged("'d2d4' is told to be illegal", QUIET, _loss("illegal", note="d2d4")),
        Forged("no word for it", QUIET, _loss("resign")),
        Forged("unable to play after", QUIET, _loss("disconnect", refused=True)),
        Forged("its clocks alone say", QUIET, _loss("time"), other={"wall_ms": 500}),
        Forged("its clocks alone say", other={"think_ns": 100_000_000}),
        Forged("it was dealt", other={"wall_ms": 2 * SINCE_MS + 100}),
        Forged("final position", other={"final_fen": "8/8/8/8/8/8/8/8 w - - 0 1"}),
        Forged("not legal", ply={"move": "e7e4"}),
        Forged("told as ply 7", ply={"ply": 7}),
        Forged("black moves", ply={"side": "white"}),
        Forged("thought for -1 ns", ply={"think_ns": -1}),
        Forged("thought for 2000000000 ns of", ply={"think_ns": 2_000_000_000}),
        Forged("'xxxxxxxxxx' is not legal", ply={"move": "x" * 100_000}),
        Forged("ply 2: hashfull is", ply={"hashfull": 10**400}),
        Forged("ply 2: nodes is", ply={"nodes": -(10**4_299)}),
        Forged("ply 2: mate is", ply={"score": contract.Score(mate=1 << 63)}),
        Forged("ply 2: clocks", ply={"think_ns": 5}),
        Forged("ply 2: clocks", ply={"black_clock_ns": 10**12}),
    ],
    ids=lambda forged: forged.names,
)
def test_a_game_that_cannot_have_been_is_refused(forged: Forged) -> None:
    """The reason names what is wrong."""
    game = told.game(ORDER, forged.moves, forged.outcome, **forged.other)
    plies = list(game.plies)
    plies[1] = plies[1].model_copy(update=forged.ply)
    with pytest.raises(remote_game_check.WrongGameError, match=re.escape(forged.names)):
        _verified(game.model_copy(update={"plies": tuple(plies)}))


def test_moves_behind_the_end_are_refused() -> None:
    """A game ends where the rules end it, whatever is told behind."""
    game = told.game(ORDER)
    more = game.plies[-1].model_copy(update={"ply": 5, "side": "white", "move": "e2e4"})
    with pytest.raises(remote_game_check.WrongGameError, match="ply 5: the game was over"):
        _verified(game.model_copy(update={"plies": (*game.plies, more)}))


def test_a_game_of_the_opening_book_has_its_clocks_by_whole_moves() -> None:
    """Book plies take no time, and count in the numbers of plies."""
    opening = contract.Opening(moves=("f2f3",))
    order = told.spec(openings=(opening,)).order(1)
    game = told.game(order, told.MATE[1:])
    assert remote_game_check.verified(order, game, SINCE_MS)[0].result == "0-1"


def test_a_workers_clock_may_run_a_little_faster_than_ours() -> None:
    """A game of an hour, by a clock that is two seconds ahead at its end, is believed."""
    hour_ms = 3_600_000
    game = told.game(ORDER, wall_ms=hour_ms + 2_000)
    assert remote_game_check.verified(ORDER, game, hour_ms)[0].result == "0-1"
