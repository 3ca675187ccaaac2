"""PGN for Lichess' broadcaster: tags, moves, ``[%eval]`` and ``[%clk]``, nothing else.

It polls one address per running game and one per round, tells games apart by their
unchanging tags, and reads the clock of the mover after each move. Evals are pawns from
White's view, mates ``#n``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import score
from orchestrator.broadcast.content import games

_KEPT: Final = (
    *("Event", "Site", "Date", "Round", "White", "Black", "Result", "WhiteElo", "BlackElo"),
    *("TimeControl", "Variant", "SetUp", "FEN", "ECO", "Opening"),
)
VARIANT: Final = {"fischerandom": "Chess960"}


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """A game as PGN, but for its address on our page, which the request decides."""

    head: str
    body: str

    def at(self, url: str) -> str:
        """Return the PGN of a game that our page shows at an address."""
        return f'{self.head}[GameURL "{_tag(url)}"]\n{self.body}'


def text(line: games.GameLine, tags: Mapping[str, str]) -> Text:
    """Return a game, finished or in flight."""
    kept = {name: tags[name] for name in _KEPT if name in tags}
    if "Variant" in kept:
        kept["Variant"] = VARIANT.get(kept["Variant"], kept["Variant"])
    head = "".join(f'[{name} "{_tag(value)}"]\n' for name, value in kept.items())
    body = [_move(shown) for shown in line.shown]
    return Text(head, "\n".join(["", *body, kept.get("Result", "*"), "", ""]))


def _move(shown: games.Shown) -> str:
    san = " ".join(filter(None, (shown.before, shown.san)))
    said = [] if shown.record is None else list(_commands(shown.record))
    return f"{san} {{ {' '.join(said)} }}" if said else san


def _commands(ply: contract.PlyRecord) -> list[str]:
    commands = []
    if ply.score is not None and (evaluation := _eval(ply.score, ply.side)):
        commands.append(f"[%eval {evaluation}]")
    left_ns = ply.white_clock_ns if ply.side == "white" else ply.black_clock_ns
    seconds = max(0, left_ns) // 1_000_000_000
    commands.append(f"[%clk {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}]")
    return commands


def _eval(said: contract.Score, mover: contract.Side) -> str:
    if said.mate is not None:
        return f"#{score.white_view(said, mover).mate}"
    return score.text(said, mover)


def _tag(value: str) -> str:
    return " ".join(value.split()).replace("\\", "\\\\").replace('"', '\\"')
