"""PGN for Lichess' broadcaster: tags, moves, ``[%eval]`` and ``[%clk]``, nothing else.

It polls one address per running game and one per round, tells games apart by their
unchanging tags, and reads the clock of the mover after each move. Evals are pawns from
White's view, mates ``#n``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import score
from orchestrator.broadcast import games

_KEPT: Final = (
    *("Event", "Site", "Date", "Round", "White", "Black", "Result", "WhiteElo", "BlackElo"),
    *("TimeControl", "Variant", "SetUp", "FEN", "ECO", "Opening"),
)
VARIANT: Final = {"fischerandom": "Chess960"}


def pgn(line: games.GameLine, tags: Mapping[str, str], url: str) -> str:
    """Return a game, finished or in flight; ``url`` is its place on our page."""
    kept = {name: tags[name] for name in _KEPT if name in tags}
    if "Variant" in kept:
        kept["Variant"] = VARIANT.get(kept["Variant"], kept["Variant"])
    kept["GameURL"] = url
    head = [f'[{name} "{_tag(text)}"]' for name, text in kept.items()]
    body = [_move(one) for one in line.shown]
    return "\n".join([*head, "", *body, kept.get("Result", "*"), "", ""])


def _move(one: games.Shown) -> str:
    words = " ".join(filter(None, (one.before, one.san)))
    said = [] if one.record is None else list(_commands(one.record))
    return f"{words} {{ {' '.join(said)} }}" if said else words


def _commands(ply: contract.PlyRecord) -> list[str]:
    told = []
    if ply.score is not None and (text := _eval(ply.score, ply.side)):
        told.append(f"[%eval {text}]")
    left_ns = ply.white_clock_ns if ply.side == "white" else ply.black_clock_ns
    seconds = max(0, left_ns) // 1_000_000_000
    told.append(f"[%clk {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}]")
    return told


def _eval(said: contract.Score, mover: contract.Side) -> str:
    if said.mate is not None:
        return f"#{score.white_view(said, mover).mate}"
    return score.text(said, mover)


def _tag(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
