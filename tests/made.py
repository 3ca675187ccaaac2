"""Messages that tests make up: the least that each needs, and what a test wants of it."""

from __future__ import annotations

from typing import Any

from orchestrator import contract


def order(
    white: contract.EngineSpec | None = None,
    black: contract.EngineSpec | None = None,
    **more: Any,
) -> contract.GameOrder:
    """Return the order of a game; engines that are not given cannot be started."""
    known: dict[str, Any] = {
        "season": "s",
        "season_name": "S",
        "event": "e",
        "event_name": "E",
        "game": "e.1",
        "number": 1,
        "round": "1",
        "white": white or contract.EngineSpec(id="a", name="A", command=("no-such-engine",)),
        "black": black or contract.EngineSpec(id="b", name="B", command=("no-such-engine",)),
        "time_control": contract.TimeControl(base_ms=1000),
    }
    return contract.GameOrder(**(known | more))


def ply(number: int, move: str, san: str, **more: Any) -> contract.PlyRecord:
    """Return a ply of whoever is to move then; it took a nanosecond."""
    known: dict[str, Any] = {
        "ply": number,
        "side": "white" if number % 2 else "black",
        "move": move,
        "san": san,
        "think_ns": 1,
        "margin_ns": 1,
        "overhead_ns": 1,
        "white_clock_ns": 1,
        "black_clock_ns": 1,
    }
    return contract.PlyRecord(**(known | more))
