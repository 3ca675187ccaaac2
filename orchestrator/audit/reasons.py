"""How a recorded game ended, by its tags Termination and TerminationDetails.

Read are the words of TCEC's programs since 2013 and those of ``arbiter.verdict``. The
program of 2013 wrote one word for draw rule and win rule: the result tells them apart.
cutechess and fastchess have no such details; they close the last remark with them.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.audit import reading

RULES: Final = ("draw_rule", "win_rule", "tablebase")
_DETAILS: Final = (
    ("tcec draw rule", "draw_rule"),
    ("tcec win rule", "win_rule"),
    ("syzygytb", "tablebase"),
    ("tb position", "tablebase"),
    ("tb adjudication", "tablebase"),
)
_BY_RULE: Final = frozenset(
    {"draw by adjudication", *(f"{side} wins by adjudication" for side in ("white", "black"))}
)
# Words that leave open which rule it was, or whether people decided.
_VAGUE: Final = _BY_RULE | {
    *("", "?", "-", "normal", "unknown", "unterminated", "no result", "adjudication")
}
_BOARD: Final = (
    ("mates", contract.Ending.CHECKMATE),
    ("checkmate", contract.Ending.CHECKMATE),
    ("stalemate", contract.Ending.STALEMATE),
    ("insufficient", contract.Ending.INSUFFICIENT),
    ("fifty moves", contract.Ending.FIFTY_MOVES),
    ("50-move", contract.Ending.FIFTY_MOVES),
    ("3-fold rep", contract.Ending.THREEFOLD),
    ("max moves", contract.Ending.MAX_MOVES),  # judged by the moves alone, like the others
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
_BY_PEOPLE: Final = verdict.organizers("1/2-1/2").details
_CLOSING = re.compile(r"(?:^|[,;.] *)((?:White|Black|Draw)\b[^,;{}]*)$")


def rule(game: reading.Game) -> str | None:
    """Return the rule that ended a game by the record, None where none did."""
    details, termination = _tags(game)
    for text, name in _DETAILS:
        if details.lower() == text:
            return name
    if termination.startswith("GUI TB"):
        return "tablebase"
    if termination == "GUI adjudication":
        return "draw_rule" if game.result == "1/2-1/2" else "win_rule"
    return None


def board(game: reading.Game) -> contract.Ending | None:
    """Return the ending that the record tells and the moves alone decide, None for none."""
    text = " ".join(_tags(game)).lower()
    return next((ending for word, ending in _BOARD if word in text), None)


def annulled(game: reading.Game) -> bool:
    """Say whether a game counts for nobody by the farm's record."""
    return game.result is None and game.tags.get("Termination", "").lower() == "annulled"


def set_by_people(details: str) -> bool:
    """Say whether a tag TerminationDetails is the farm's word for a result that people set."""
    return details == _BY_PEOPLE


def by_people(game: reading.Game) -> bool:
    """Say whether people set a game's result by the farm's record."""
    return set_by_people(game.tags.get("TerminationDetails", ""))


def adjudicated(game: reading.Game) -> bool:
    """Say whether the record has the words of the rules that count moves: they name neither."""
    return _tags(game)[0].lower() in _BY_RULE


def unknown(game: reading.Game) -> bool:
    """Say whether the record tells no reason, or only that somebody adjudicated."""
    return all(text.lower() in _VAGUE for text in _tags(game))


def ending(game: reading.Game) -> contract.Ending:
    """Return the ending as standings need it: a crash, another fault, or any other end."""
    text = " ".join(_tags(game)).lower()
    for word, fault in _FAULTS:
        if word in text:
            return fault
    return contract.Ending.TIME if text.strip() == "time" else contract.Ending.ORGANIZERS


def _tags(game: reading.Game) -> tuple[str, str]:
    details = game.tags.get("TerminationDetails")
    return details or _closing(game.last_remark), game.tags.get("Termination", "")


def _closing(remark: str) -> str:
    """Return the words that close a game's last remark, the rule alone where one is named."""
    match = _CLOSING.search(" ".join(remark.split()))
    return match[1].rpartition(" by adjudication: ")[2] if match else ""
