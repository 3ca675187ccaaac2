"""The game in flight: its plies so far, its clocks, and the search that is shown of it.

Plies come from the journaled stream and are the truth; the picture that the hall
publishes a few times a second is shown and never relied on (S16-15b i). A picture of
another attempt, or of another position than the last ply's, shows no search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from orchestrator import contract
from orchestrator.arbiter import redact, score
from orchestrator.broadcast.content import games, variations

SIDES: Final[tuple[contract.Side, ...]] = ("white", "black")
WITH_LINES: Final = 2  # the last plies whose variations come with their positions


class InFlight:
    """One attempt at a game."""

    def __init__(self, order: contract.GameOrder, attempt: str, started_ms: int, hall: str) -> None:
        """Begin; raise ``BookError`` for an opening that cannot be played."""
        self.line = games.GameLine(order)
        self.attempt, self.started_ms, self.hall = attempt, started_ms, hall
        self.last_move_ms = started_ms
        self.kibitzers: list[dict[str, Any]] = []  # their cards, see ``kibitzing``
        self.kibitzed: Callable[[games.GameLine], list[dict[str, Any]]] = lambda _: []
        self._picture: dict[str, Any] = {}
        self._seen = 0  # pictures
        # Of a picture and a ply: their positions are rendered once, and looks are many.
        self._searched: tuple[int, int, dict[str, Any] | None] | None = None

    @property
    def order(self) -> contract.GameOrder:
        """Return the order that is played."""
        return self.line.order

    def push(self, ply: contract.PlyRecord, at_ms: int) -> games.Shown:
        """Add a ply that was first seen at that moment; raise ``ValueError``."""
        self.last_move_ms = at_ms
        return self.line.push(ply)

    def see(self, picture: dict[str, Any] | None) -> None:
        """Take what the hall shows now; what is no picture of this attempt is not taken."""
        if picture is None or picture.get("attempt") != self.attempt:
            return
        if picture != self._picture:
            self._picture, self._seen = picture, self._seen + 1
        since_ms = picture.get("since_ms")
        if self._current and isinstance(since_ms, int):
            self.last_move_ms = since_ms

    @property
    def _current(self) -> bool:
        return self._picture.get("ply") == self.line.last

    def clock(self) -> dict[str, Any]:
        """Return both clocks, whose runs, and since when.

        Between two pictures of the hall the last move tells: its opponent thinks since then.
        """
        thinking, since_ms = None, None
        if self._current:
            thinking = self._picture.get("thinking")
            since_ms = self._picture.get("since_ms") if thinking else None
        elif self.line.shown and not self.line.shown[-1].book:
            thinking = "white" if self.line.position.turn else "black"
            since_ms = self.last_move_ms
        clocks = self._clocks()
        return {
            "thinking": thinking,
            "since_ms": since_ms,
            "white_ms": clocks["white"],
            "black_ms": clocks["black"],
        }

    def _clocks(self) -> dict[str, int | None]:
        last = self.line.shown[-1].record if self.line.shown else None
        if self._current:
            return {side: self._picture_of(side).get("clock_ms") for side in SIDES}
        if last is not None:
            return {
                "white": last.white_clock_ns // 1_000_000,
                "black": last.black_clock_ns // 1_000_000,
            }
        return {side: self.order.control(side).start_ms for side in SIDES}

    def _picture_of(self, side: contract.Side) -> dict[str, Any]:
        picture: dict[str, Any] = self._picture.get(side) or {}
        return picture

    def search(self) -> dict[str, Any] | None:
        """Return what the engine that thinks said last, its variation with positions."""
        if self._searched is None or self._searched[:2] != (self._seen, self.line.last):
            self._searched = (self._seen, self.line.last, self._search())
        return self._searched[2]

    def _search(self) -> dict[str, Any] | None:
        side = self._picture.get("thinking")
        if side not in SIDES or not self._current:
            return None
        said = self._picture_of(side).get("search")
        if not said:
            return None
        claimed = contract.Score(cp=said.get("cp"), mate=said.get("mate"))
        seen = score.white_view(claimed, side)
        steps = variations.steps(self.line.position, said.get("pv") or ())
        return {
            "side": side,
            "ply": self.line.last + 1,
            "eval": score.text(claimed, side) or None,
            "cp": seen.cp,
            "mate": seen.mate,
            **{key: said.get(key) for key in ("depth", "seldepth", "nodes", "nps", "tbhits")},
            "hashfull": said.get("hashfull"),
            "wdl": _white_wdl(said.get("wdl"), side),
            "line": [step.data() for step in steps],
        }

    def options(self, side: contract.Side) -> list[tuple[str, str]]:
        """Return what the engine was given, as far as it is known and the public may read it."""
        set_options = self._picture_of(side).get("options")
        if set_options is None:
            return games.asked(self.order, side)
        return [(str(name), redact.option(str(value))) for name, value in set_options]

    def card(self, side: contract.Side) -> dict[str, Any]:
        """Return an engine's card."""
        author = str(self._picture_of(side).get("author") or "")
        return games.card(self.order.engine(side), self.order.limits, self.options(side), author)

    def interrupted(self) -> dict[str, Any]:
        """Return the whole game as it was left: nobody thinks, its end is not known yet."""
        return self.document() | {
            "status": "interrupted",
            "clock": self.clock() | {"thinking": None, "since_ms": None},
            "search": None,
            "kibitzers": [],
            "details": "interrupted",
        }

    def document(self) -> dict[str, Any]:
        """Return the whole game as it stands."""
        plies = [shown.data() for shown in self.line.shown]
        for number in range(max(0, len(plies) - WITH_LINES), len(plies)):
            plies[number] = self.line.shown[number].full()
        return games.head(self.line) | {
            "status": "running",
            "white": self.card("white"),
            "black": self.card("black"),
            "plies": plies,
            "clock": self.clock(),
            "search": self.search(),
            "kibitzers": [card for card in self.kibitzers if card["ply"] == self.line.last + 1],
            "kibitzed": self.kibitzed(self.line),
            "result": None,
            "details": "",
            "adjudicated": False,
            "started_ms": self.started_ms,
            "ended_ms": None,
        }


def _white_wdl(reported: Any, side: contract.Side) -> contract.Wdl | None:
    """Return wins, draws and losses (per mille) in White's view, as the hall's picture has them."""
    if not isinstance(reported, list) or len(reported) != 3:
        return None
    return score.white_wdl((reported[0], reported[1], reported[2]), side)
