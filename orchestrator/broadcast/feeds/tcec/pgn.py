"""``live.pgn`` of a game in flight, in the dialect of TCEC's public archive.

A finished game is shown by the PGN that its hall wrote (``arbiter.record``); this is the
same text as far as the game has come. Viewers cut the options of an engine at the second
colon, so options with one (paths) stand last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import record
from orchestrator.broadcast.content import games

_BRACES: Final = str.maketrans("{}", "()")
_OVER: Final = frozenset({"GameEndTime", "GameDuration", "TerminationDetails", "RMobilityResult"})


def tags(line: games.GameLine, started_ms: int, hall: str) -> dict[str, str]:
    """Return the tags of a game in flight."""
    named = line.opening()
    whole = contract.GameRecord(
        order=line.order,
        attempt="",
        hall=hall,
        started_ms=started_ms,
        ended_ms=started_ms,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=tuple(shown.record for shown in line.shown if shown.record is not None),
        outcome=contract.Outcome(
            result="1/2-1/2", ending=contract.Ending.AGREEMENT, details="unterminated"
        ),
        final_fen=line.fen,
        eco=named.eco,
        opening=named.name,
    )
    kept = {name: text for name, text in record.tags(whole).items() if name not in _OVER}
    return kept | {"Result": "*", "Termination": "unterminated"}


def running(line: games.GameLine, shown_tags: dict[str, str], options: Sequence[str]) -> str:
    """Return the text of a game in flight; ``options`` are White's and Black's words."""
    head = [f'[{name} "{_tag(value)}"]' for name, value in shown_tags.items()]
    white, black = options
    first = f"{{WhiteEngineOptions: {white}, BlackEngineOptions: {black}}}"
    return "\n".join([*head, "", first, *moves(line.shown), "*", "", ""])


def moves(shown: Sequence[games.Shown]) -> list[str]:
    """Return plies with their comments, a line each."""
    return [
        f"{' '.join(filter(None, (ply.before, ply.san)))} {{{_comment(ply.comment)}}}"
        for ply in shown
    ]


def slice_of(shown: Sequence[games.Shown]) -> str:
    """Return new plies alone; their first has its number, whichever side moves."""
    if not shown:
        return ""
    first, rest = shown[0], moves(shown[1:])
    number = first.fen.split(" ")
    word = first.before or f"{int(number[5]) - 1}..."
    return "\n".join([f"{word} {first.san} {{{_comment(first.comment)}}}", *rest])


def options(protocol: str, settings: Sequence[tuple[str, str]]) -> str:
    """Return the options of one engine as viewers split them."""
    pairs = [("Protocol", protocol), *settings]
    ordered = sorted(pairs, key=lambda setting: ":" in f"{setting[0]}{setting[1]}")
    texts = (f"{name}={value}".replace(";", ",") for name, value in ordered)
    return _comment("; ".join(texts) + ";")


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).translate(_BRACES)


def _tag(text: str) -> str:
    return _comment(text).replace("\\", "\\\\").replace('"', '\\"')
