"""A game as viewers see it: positions, variations and castling without chess in the browser."""

from __future__ import annotations

import chess
import made
import pytest

from orchestrator import contract
from orchestrator.broadcast.content import games, inflight, variations
from orchestrator.broadcast.feeds import lichess


def order(
    moves: tuple[str, ...] = ("e2e4", "e7e5"),
    fen: str | None = None,
    variant: str = "standard",
) -> contract.GameOrder:
    """Return an order of a game between two engines."""
    white, black = (
        contract.EngineSpec(id=side, name=side.title(), command=("x",))
        for side in ("white", "black")
    )
    return made.order(
        white,
        black,
        round="1.1",
        time_control=contract.TimeControl(base_ms=60_000, increment_ms=1_000),
        opening=contract.Opening(moves=moves, fen=fen),
        variant=variant,
    )


def ply(number: int, move: str, **said: object) -> contract.PlyRecord:
    """Return an engine's ply that took a second."""
    clock_ns = 60 * 10**9
    known = {"think_ns": 10**9, "margin_ns": clock_ns - 10**9, "overhead_ns": 0}
    known |= {"white_clock_ns": clock_ns, "black_clock_ns": clock_ns}
    return made.ply(number, move, "?", **(known | said))


def test_every_step_of_a_variation_has_its_position() -> None:
    """A line in UCI or SAN becomes moves with positions, and ends where it is nonsense."""
    board = chess.Board()
    found = variations.steps(board, ["e2e4", "c5", "Nf3", "e1e8", "d4"])
    assert [step.san for step in found] == ["e4", "c5", "Nf3"]
    for step in found:
        board.push_uci(step.uci)
        assert step.fen == board.fen()


@pytest.mark.parametrize(
    ("fen", "move", "shown"),
    [
        ("4k3/8/8/8/8/8/8/1R2K2R w KQ - 0 1", "e1h1", ("e1", "g1")),
        ("4k3/8/8/8/8/8/8/1R2K2R w KQ - 0 1", "e1b1", ("e1", "c1")),
        ("r1k4r/8/8/8/8/8/8/4K3 b kq - 0 1", "c8h8", ("c8", "g8")),
    ],
)
def test_castling_is_shown_as_the_kings_way(fen: str, move: str, shown: tuple[str, str]) -> None:
    """Where an engine writes king takes rook, viewers see where the king goes."""
    line = games.GameLine(order((), fen, "fischerandom"))
    white = fen.split(" ")[1] == "w"
    played = line.push(ply(1, move, side="white" if white else "black"))
    assert played.squares == shown
    assert played.san in {"O-O", "O-O-O"}


def test_a_ply_that_does_not_follow_is_refused() -> None:
    """Nothing is shown between two plies of which one is missing."""
    line = games.GameLine(order())
    with pytest.raises(ValueError, match="ply 5 follows ply 2"):
        line.push(ply(5, "g1f3"))


def test_evals_are_whites_view_and_mates_are_told() -> None:
    """Black's own plus is a minus; mates keep their sign in every form."""
    line = games.GameLine(order())
    line.push(ply(3, "g1f3", score={"cp": 31}, pv=["g1f3", "b8c6"]))
    shown = line.push(ply(4, "b8c6", score={"cp": 20}))
    assert shown.data()["cp"] == -20
    assert shown.data()["eval"] == "-0.20"
    mated = line.push(ply(5, "f1c4", score={"mate": -3}))
    assert mated.data()["mate"] == -3
    text = lichess.text(line, {"White": 'A "quoted" name', "Result": "*"}).at("http://x/")
    assert "[%eval -0.20] [%clk 0:01:00]" in text
    assert "[%eval #-3]" in text
    assert r'[White "A \"quoted\" name"]' in text


def test_a_picture_of_another_position_shows_no_search() -> None:
    """What the hall shows counts only for the attempt and the ply that are on the board."""
    game = inflight.InFlight(order(), "a1", 1_000, "hall")
    game.push(ply(3, "g1f3"), 2_000)
    said = {"cp": 15, "mate": None, "depth": 9, "pv": ["b8c6", "f1b5"]}
    picture = {
        "attempt": "a1",
        "ply": 3,
        "thinking": "black",
        "since_ms": 1_990,
        "white": {"clock_ms": 59_000},
        "black": {"clock_ms": 58_000, "search": said},
    }
    game.see(picture)
    search = game.search()
    assert search is not None
    assert (search["eval"], search["line"][0]["san"]) == ("-0.15", "Nc6")
    assert game.clock()["since_ms"] == 1_990
    game.push(ply(4, "b8c6"), 3_000)
    assert game.search() is None
    assert game.clock()["thinking"] == "white"
    game.see({**picture, "attempt": "a2", "ply": 4, "thinking": "white"})
    assert game.clock()["since_ms"] == 3_000
