"""The picture of a game in flight: what spectators see of it between two plies.

Made of what a referee tells as it goes (READY, THINK, PLY), and of what engines say of their
searches. It is shown and never the truth: the plies are (S16-15b i).
"""

from __future__ import annotations

from typing import Any

from orchestrator import contract

SIDES: tuple[contract.Side, ...] = ("white", "black")


class LivePicture:
    """The picture of one attempt; ``data`` is what is published."""

    def __init__(self, order: contract.GameOrder, attempt: str, started_ms: int) -> None:
        """Begin before a clock has been started."""
        self.data: dict[str, Any] = {
            "v": contract.SCHEMA,
            "season": order.season,
            "event": order.event,
            "game": order.game,
            "attempt": attempt,
            "started_ms": started_ms,
            "ply": len(order.opening.moves),
            "thinking": None,
            "since_ms": None,
            "counters": None,
            **{side: _player(order, side) for side in SIDES},
        }

    def ready(self, payload: bytes | str) -> None:
        """Both engines are ready: take READY's content."""
        for side, report in contract.loads(payload).items():
            self.data[side]["engine"] = report.get("id_name", "")
            self.data[side]["author"] = report.get("id_author", "")
            options = report.get("options", ())
            set_options = [
                [option["name"], option["set"]] for option in options if option["set"] is not None
            ]
            self.data[side]["options"] = set_options

    def think(self, payload: bytes | str, now_ms: int) -> None:
        """An engine's clock starts: take THINK's content."""
        content = contract.loads(payload)
        self.data["thinking"] = content["side"]
        self.data[content["side"]].pop("search", None)  # it was about the move before
        self.data["since_ms"] = now_ms
        self.data["white"]["clock_ms"] = content["white_clock_ns"] // 1_000_000
        self.data["black"]["clock_ms"] = content["black_clock_ns"] // 1_000_000

    def search(self, side: contract.Side, said: dict[str, Any]) -> None:
        """Take an engine's last word on its search; its score is the mover's."""
        self.data[side]["search"] = said

    def ply(self, ply: contract.PlyRecord) -> None:
        """A ply is complete."""
        self.data["ply"] = ply.ply
        self.data["thinking"] = None
        self.data["counters"] = ply.counters and ply.counters.model_dump()
        self.data["white"]["clock_ms"] = ply.white_clock_ns // 1_000_000
        self.data["black"]["clock_ms"] = ply.black_clock_ns // 1_000_000


def _player(order: contract.GameOrder, side: contract.Side) -> dict[str, Any]:
    engine = order.engine(side)
    return {"id": engine.id, "name": engine.name, "clock_ms": order.control(side).start_ms}
