"""How a recorded game ended, by its tags Termination and TerminationDetails.

Read are the words of TCEC's programs since 2013 and those of ``arbiter.verdict``. The
program of 2013 wrote one word for draw rule and win rule: the result tells them apart.
"""

from __future__ import annotations

from typing import Final

from orchestrator import contract
from orchestrator.audit import reading

RULES: Final = ("draw_rule", "win_rule", "tablebase")
_DETAILS: Final = (
    ("TCEC draw rule", "draw_rule"),
    ("TCEC win rule", "win_rule"),
    ("SyzygyTB", "tablebase"),
    ("TB position", "tablebase"),
)
# The first word that is found in the tags names the fault; a crash is one of the first two.
_FAULTS: Final = (
    ("disconnect", contract.Ending.DISCONNECT),
    ("connection stalls", contract.Ending.STALL),
    ("stalled connection", contract.Ending.STALL),
    ("abandoned", contract.Ending.DISCONNECT),
    ("loses on time", contract.Ending.TIME),
    ("time forfeit", contract.Ending.TIME),
    ("illegal move", contract.Ending.ILLEGAL),
    ("resign", contract.Ending.RESIGN),
)


def rule(game: reading.Game) -> str | None:
    """Return the rule that ended a game by the record, None where none did."""
    details, termination = _tags(game)
    for words, name in _DETAILS:
        if details == words:
            return name
    if termination.startswith("GUI TB"):
        return "tablebase"
    if termination == "GUI adjudication":
        return "draw_rule" if game.result == "1/2-1/2" else "win_rule"
    return None


def unknown(game: reading.Game) -> bool:
    """Say whether the record tells no reason at all."""
    return not any(_tags(game))


def ending(game: reading.Game) -> contract.Ending:
    """Return the ending as standings need it: a crash, another fault, or any other end."""
    text = " ".join(_tags(game)).lower()
    for word, found in _FAULTS:
        if word in text:
            return found
    return contract.Ending.TIME if text.strip() == "time" else contract.Ending.ORGANIZERS


def _tags(game: reading.Game) -> tuple[str, str]:
    return game.tags.get("TerminationDetails", ""), game.tags.get("Termination", "")
