"""A test match of two engines, and games of it as a remote worker tells them."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import contract
from orchestrator.arbiter import board, clock
from orchestrator.contract import remote
from orchestrator.testmatch import orders

DEV, BASE = "d" * 64, "b" * 64  # SHA-256 of the engines' programs
MATE = ("f2f3", "e7e5", "g2g4", "d8h4")  # White is mated
OUTCOME = contract.Outcome(
    result="0-1", ending=contract.Ending.CHECKMATE, loser="white", details="Black mates"
)
THINK_NS = 1_000_000


def spec(name: str = "m", games: int = 10, **other: object) -> orders.Spec:
    """Describe a test match that remote workers may play."""
    told = {
        "id": name,
        "engines": [_engine("dev", DEV), _engine("base", BASE)],
        "time_control": contract.TimeControl(base_ms=1_000, increment_ms=10),
        "games": games,
        "remote": True,
        **other,
    }
    return orders.Spec.model_validate(told)


def _engine(name: str, digest: str) -> contract.EngineSpec:
    return contract.EngineSpec(id=name, name=name, command=(name,), checksums={name: digest})


def game(
    order: contract.GameOrder,
    moves: Sequence[str] = MATE,
    outcome: contract.Outcome = OUTCOME,
    think_ns: int = THINK_NS,
    **other: object,
) -> remote.PlayedGame:
    """Tell a game of these moves as a true worker does; ``other`` are its fields to forge."""
    played = board.GameBoard(order.opening)
    clocks = {side: clock.EngineClock(order.time_control) for side in ("white", "black")}
    plies = []
    for move in moves:
        side = played.turn
        charge = clocks[side].charge(think_ns)
        legal = played.legal(move)
        assert legal is not None, move
        san = played.push(legal)
        plies.append(
            contract.PlyRecord(
                ply=played.ply,
                side=side,
                move=move,
                san=san,
                think_ns=think_ns,
                margin_ns=charge.margin_ns,
                overhead_ns=0,
                white_clock_ns=clocks["white"].remaining_ns,
                black_clock_ns=clocks["black"].remaining_ns,
            )
        )
    told = {
        "number": order.number,
        "plies": plies,
        "outcome": outcome,
        "final_fen": played.fen(),
        "wall_ms": 5,
        **other,
    }
    return remote.PlayedGame.model_validate(told)
