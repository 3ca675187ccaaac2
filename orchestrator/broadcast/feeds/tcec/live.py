"""``live.json``: the game in flight as TCEC's push server sends it, numbers as strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from orchestrator.broadcast.content import games, variations
from orchestrator.common import text

_PIECES: Final = "pnbrq"
_STRINGS: Final = ("d", "sd", "mt", "tl", "s", "n", "tb", "h", "ph", "wv", "pd")
SENT: Final = 2  # plies of a push while the game goes on


def document(
    shown: Sequence[games.Shown],
    headers: dict[str, str],
    options: Sequence[Sequence[tuple[str, str]]],
    *,
    changed: bool,
) -> dict[str, Any]:
    """Return the game: whole in the file, its last plies in a push."""
    white, black = options
    return {
        "Headers": headers,
        "WhiteEngineOptions": [{"Name": name, "Value": value} for name, value in white],
        "BlackEngineOptions": [{"Name": name, "Value": value} for name, value in black],
        "Moves": [move(ply) for ply in shown],
        "gameChanged": int(changed),
        "numMovesToSend": len(shown),
        "totalSent": len(shown),
        "lastMoveLoaded": shown[-1].number if shown else 0,
        "Users": 0,
        "Round": _round(headers.get("Round", "")),
    }


def _round(name: str) -> int:
    """Return the number that tells a round from another: 8.1 is 810."""
    first, _, second = name.partition(".")
    return (text.whole(first) or 0) * 100 + (text.whole(second) or 0) * 10


def move(shown: games.Shown) -> dict[str, Any]:
    """Return one ply; what TCEC's comments tell is told in the same words."""
    said = _fields(shown.comment)
    origin, target = shown.squares
    fields: dict[str, Any] = {
        "m": shown.san,
        "from": origin,
        "to": target,
        "book": shown.book,
        "fen": shown.fen,
        "material": _material(said.get("mb", "")),
        "adjudication": {
            "FiftyMoves": int(said.get("R50", _fifty(shown.fen))),
            "Draw": int(said.get("Rd", -1000)),
            "ResignOrWin": int(said.get("Rr", -1000)),
        },
        "pv": {
            "San": said.get("pv", ""),
            "Moves": [_step(step) for step in shown.line],
        },
    }
    # Readers of the push want these as strings, also where nothing was said.
    defaults = {"d": "0", "sd": "0", "mt": "0", "n": "0", "s": "0", "tb": "null", "ph": "0.0"}
    defaults |= {"wv": "0.00"}
    return fields | defaults | {key: said[key] for key in _STRINGS if key in said}


def _step(step: variations.Step) -> dict[str, str]:
    return {"m": step.san, "from": step.uci[:2], "to": step.uci[2:4], "fen": step.fen}


def _fields(comment: str) -> dict[str, str]:
    """Read a comment back: fields are parted by commas, a flag has no value."""
    parts = (part.strip().partition("=") for part in comment.split(",") if part.strip())
    return {name: value for name, _, value in parts}


def _fifty(fen: str) -> int:
    return max(0, 100 - int(fen.split(" ")[4])) // 2


def _material(text: str) -> dict[str, int]:
    """Read ``+0-1+0+0+0``."""
    signs = [text[number : number + 2] for number in range(0, len(text), 2)]
    counts = [int(sign) for sign in signs] or [0] * len(_PIECES)
    return dict(zip(_PIECES, counts, strict=False))
