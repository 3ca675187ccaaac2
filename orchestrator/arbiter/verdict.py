"""The words of every verdict: outcome, PGN Termination tag and the closing sentence.

The words are those that statistics and viewers match on (RULEBOOK §2 "Termination
words"; PGN conventions of the public archive), so they are made nowhere else.
Invariants: a lost game names its loser and the result agrees with it; a drawn game
names none. Time loss and illegal move are plain losses, disconnect and stall count as
crashes (RULEBOOK §3, S16-15c).
"""

from __future__ import annotations

from typing import Final

from orchestrator import contract

CRASHES: Final = frozenset({contract.Ending.DISCONNECT, contract.Ending.STALL})

_TERMINATION: Final = {
    contract.Ending.TIME: "time forfeit",
    contract.Ending.DISCONNECT: "abandoned",
    contract.Ending.STALL: "stalled connection",
    contract.Ending.ILLEGAL: "illegal move",
}
_DRAWS: Final = {
    contract.Ending.STALEMATE: ("Stalemate", "Draw by stalemate"),
    contract.Ending.INSUFFICIENT: (
        "Insufficient material",
        "Draw by insufficient mating material",
    ),
    contract.Ending.FIFTY_MOVES: ("Fifty moves rule", "Draw by fifty moves rule"),
    contract.Ending.THREEFOLD: ("3-Fold repetition", "Draw by 3-fold repetition"),
}
_MOVE_TEXT = 60  # characters kept of what an engine wrote instead of a move


def opponent(side: contract.Side) -> contract.Side:
    """Return the other side."""
    return "black" if side == "white" else "white"


def side_name(side: contract.Side) -> str:
    """Write the side as the verdicts do."""
    return "White" if side == "white" else "Black"


def checkmate(loser: contract.Side) -> contract.Outcome:
    """End the game by mate; mate wins whatever else holds on the same ply."""
    return _loss(contract.Ending.CHECKMATE, loser, f"{side_name(opponent(loser))} mates")


def stalemate() -> contract.Outcome:
    """End the game drawn: the side to move has no legal move and is not in check."""
    return _draw(contract.Ending.STALEMATE)


def insufficient() -> contract.Outcome:
    """End the game drawn: no sequence of legal moves can mate."""
    return _draw(contract.Ending.INSUFFICIENT)


def fifty_moves() -> contract.Outcome:
    """End the game drawn: 100 plies without a capture or a pawn move."""
    return _draw(contract.Ending.FIFTY_MOVES)


def threefold() -> contract.Outcome:
    """End the game drawn: the position stands on the board for the third time."""
    return _draw(contract.Ending.THREEFOLD)


def time(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by a flag (S16-15a); ``note`` carries the stamps it rests on."""
    return _loss(contract.Ending.TIME, loser, f"{side_name(loser)} loses on time", note)


def disconnect(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by an engine that went away; ``note`` says how its process ended."""
    return _loss(contract.Ending.DISCONNECT, loser, f"{side_name(loser)} disconnects", note)


def stall(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by an engine that no longer answers; ``note`` says to what."""
    details = f"{side_name(loser)}'s connection stalls"
    return _loss(contract.Ending.STALL, loser, details, note)


def illegal(loser: contract.Side, move: str) -> contract.Outcome:
    """End the game by an illegal move; ``move`` is what the engine wrote (CUP-6d)."""
    text = "".join(c if c.isprintable() else "?" for c in move)[:_MOVE_TEXT]
    details = f"{side_name(loser)} makes an illegal move"
    return _loss(contract.Ending.ILLEGAL, loser, details, text)


def is_crash(outcome: contract.Outcome) -> bool:
    """Say whether the loser crashed, which counts towards disqualification."""
    return outcome.ending in CRASHES


def termination(outcome: contract.Outcome) -> str | None:
    """Return the PGN Termination tag, ``None`` where the game ended on the board."""
    return _TERMINATION.get(outcome.ending)


def sentence(outcome: contract.Outcome) -> str:
    """Return the full sentence that closes the last move's comment."""
    if outcome.ending in _DRAWS:
        return _DRAWS[outcome.ending][1]
    if outcome.ending is contract.Ending.ILLEGAL:
        return f"{outcome.details}: {outcome.note}"
    return outcome.details


def _loss(
    ending: contract.Ending, loser: contract.Side, details: str, note: str = ""
) -> contract.Outcome:
    result: contract.Result = "0-1" if loser == "white" else "1-0"
    return contract.Outcome(result=result, ending=ending, loser=loser, details=details, note=note)


def _draw(ending: contract.Ending) -> contract.Outcome:
    return contract.Outcome(result="1/2-1/2", ending=ending, details=_DRAWS[ending][0])
