"""The words of every verdict: outcome, PGN Termination tag and the closing sentence.

The words are those that statistics and viewers match on (the PGN of the
public archive has them), so they are made nowhere else. Those of fastchess and
cutechess-cli are theirs, for whoever asked for their lines or their PGN comments.
Invariants: a lost game names its loser and the result agrees with it; a drawn game
names none. Time loss and illegal move are plain losses, disconnect and stall count as
crashes (S16-15c).
"""

from __future__ import annotations

import math
from typing import Final

from orchestrator import contract

CRASHES: Final = frozenset({contract.Ending.DISCONNECT, contract.Ending.STALL})

_ADJUDICATED: Final = (
    contract.Ending.SYZYGY,
    contract.Ending.EVAL_DRAW,
    contract.Ending.FEW_PIECES_DRAW,
    contract.Ending.EVAL_WIN,
    contract.Ending.SCORE_DRAW,
    contract.Ending.SCORE_RESIGN,
    contract.Ending.MAX_MOVES,
    contract.Ending.INTERRUPTED,
)
_TERMINATION: Final = {
    contract.Ending.TIME: "time forfeit",
    contract.Ending.DISCONNECT: "abandoned",
    contract.Ending.STALL: "stalled connection",
    contract.Ending.ILLEGAL: "illegal move",
    **dict.fromkeys((*_ADJUDICATED, contract.Ending.ORGANIZERS), "adjudication"),
    contract.Ending.FALSE_CLAIM: "rules infraction",
}
_DRAWS: Final = {
    contract.Ending.STALEMATE: ("Stalemate", "Draw by stalemate"),
    contract.Ending.INSUFFICIENT: (
        "Insufficient material",
        "Draw by insufficient mating material",
    ),
    contract.Ending.FIFTY_MOVES: ("Fifty moves rule", "Draw by fifty moves rule"),
    contract.Ending.THREEFOLD: ("3-Fold repetition", "Draw by 3-fold repetition"),
    contract.Ending.AGREEMENT: ("Draw by agreement", "Draw by agreement"),
}
_PEERS_MAX_MOVES: Final = {
    "fastchess": "Draw by adjudication",
    "cutechess": "Draw by adjudication: maximal game length",
}
_MOVE_TEXT = 60  # characters kept of what an engine wrote instead of a move


def opponent(side: contract.Side) -> contract.Side:
    """Return the other side."""
    return "black" if side == "white" else "white"


def loss_of(side: contract.Side) -> contract.Result:
    """Return the result with which a side has lost."""
    return "0-1" if side == "white" else "1-0"


def loser_of(result: contract.Result) -> contract.Side | None:
    """Return the side that has lost by a result, ``None`` for a draw."""
    return None if result == "1/2-1/2" else "black" if result == "1-0" else "white"


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
    """End the game drawn: 100 plies without a capture or a pawn move (S16-11a)."""
    return _draw(contract.Ending.FIFTY_MOVES)


def threefold() -> contract.Outcome:
    """End the game drawn: the position stands on the board for the third time (S16-11a)."""
    return _draw(contract.Ending.THREEFOLD)


def time(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by a flag; ``note`` carries the stamps it rests on.

    S16-15a, S17-15a, CUP-5b, CUP-6e, FRC-5b, FRC-6d: the result stands.
    """
    return _loss(contract.Ending.TIME, loser, f"{side_name(loser)} loses on time", note)


def disconnect(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by an engine that went away; ``note`` says how its process ended."""
    return _loss(contract.Ending.DISCONNECT, loser, f"{side_name(loser)} disconnects", note)


def unable(loser: contract.Side, why: str) -> contract.Outcome:
    """End the game of an engine whose handshake says that it cannot play it (FRC-1c).

    It is no crash: the season takes the engine out of the event.
    """
    outcome = disconnect(loser, f"cannot play this game: {why}")
    return outcome.model_copy(update={"refused": True})


def stall(loser: contract.Side, note: str = "") -> contract.Outcome:
    """End the game by an engine that no longer answers; ``note`` says to what."""
    details = f"{side_name(loser)}'s connection stalls"
    return _loss(contract.Ending.STALL, loser, details, note)


def illegal(loser: contract.Side, move: str) -> contract.Outcome:
    """End the game by an illegal move; ``move`` is what the engine wrote (CUP-6d)."""
    details = f"{side_name(loser)} makes an illegal move"
    return _loss(contract.Ending.ILLEGAL, loser, details, _printable(move))


def resign(loser: contract.Side) -> contract.Outcome:
    """End the game by an engine that gives it up (CUP-6d)."""
    return _loss(contract.Ending.RESIGN, loser, f"{side_name(loser)} resigns")


def false_claim(loser: contract.Side, claim: str) -> contract.Outcome:
    """End the game by a claim that the board does not bear out; ``claim`` is its text."""
    details = f"{side_name(loser)} makes a false claim"
    return _loss(contract.Ending.FALSE_CLAIM, loser, details, _printable(claim))


def agreement() -> contract.Outcome:
    """End the game drawn: both engines offered it, in an event that allows it."""
    return _draw(contract.Ending.AGREEMENT)


def tablebase(loser: contract.Side | None) -> contract.Outcome:
    """End the game as the tablebases have it (S16-11d, CUP-6c); no loser is a draw."""
    return _adjudicated(contract.Ending.SYZYGY, loser, "SyzygyTB")


def eval_draw() -> contract.Outcome:
    """End the game drawn by the TCEC draw rule (S16-11b)."""
    return _adjudicated(contract.Ending.EVAL_DRAW, None, "TCEC draw rule")


def few_pieces_draw() -> contract.Outcome:
    """End the game drawn by the new draw rule (CUP-6b), in the old rule's words."""
    return _adjudicated(contract.Ending.FEW_PIECES_DRAW, None, "TCEC draw rule")


def eval_win(loser: contract.Side) -> contract.Outcome:
    """End the game by the TCEC win rule (S16-11c)."""
    return _adjudicated(contract.Ending.EVAL_WIN, loser, "TCEC win rule")


def max_moves() -> contract.Outcome:
    """End the game drawn: it has as many moves as the event allows."""
    return _adjudicated(contract.Ending.MAX_MOVES, None, "TCEC max moves rule")


def interrupted(loser: contract.Side | None, note: str) -> contract.Outcome:
    """End the game by the evals at its interruption (S16-15b ii, iii; CUP-7b, FRC-7b)."""
    outcome = _adjudicated(contract.Ending.INTERRUPTED, loser, "Interruption rule")
    return outcome.model_copy(update={"note": note})


def score_draw() -> contract.Outcome:
    """End the game drawn by cutechess' ``-draw``, in its words."""
    return _adjudicated(contract.Ending.SCORE_DRAW, None, "Draw by adjudication")


def score_resign(loser: contract.Side) -> contract.Outcome:
    """End the game by cutechess' ``-resign``, in its words."""
    winner = side_name(opponent(loser))
    return _adjudicated(contract.Ending.SCORE_RESIGN, loser, f"{winner} wins by adjudication")


def organizers(result: contract.Result) -> contract.Outcome:
    """End the game by the organizers' word."""
    return contract.Outcome(
        result=result,
        ending=contract.Ending.ORGANIZERS,
        loser=loser_of(result),
        details="Manual adjudication",
    )


def untold(outcome: contract.Outcome, game: str) -> contract.GameFinished:
    """Return a result that no hall has told: without an attempt, plies and clocks."""
    return contract.GameFinished(
        game=game,
        attempt="",
        hall="",
        lane="",
        host="",
        result=outcome.result,
        ending=outcome.ending,
        loser=outcome.loser,
        details=outcome.details,
        plies=0,
        white_clock_ns=0,
        black_clock_ns=0,
        started_ms=0,
        ended_ms=0,
        record_sha256="",
    )


def is_crash(outcome: contract.Outcome) -> bool:
    """Say whether the loser crashed, which counts towards disqualification."""
    return outcome.ending in CRASHES and not outcome.refused


def is_adjudicated(ending: contract.Ending) -> bool:
    """Say whether a game was ended by the word of a rule or of people, not by its players."""
    return ending in _ADJUDICATED or ending is contract.Ending.ORGANIZERS


def termination(outcome: contract.Outcome) -> str | None:
    """Return the PGN Termination tag, ``None`` where the game ended on the board."""
    return _TERMINATION.get(outcome.ending)


def sentence(outcome: contract.Outcome) -> str:
    """Return the full sentence that closes the last move's comment."""
    if outcome.ending in _DRAWS:
        return _DRAWS[outcome.ending][1]
    if outcome.ending in (contract.Ending.ILLEGAL, contract.Ending.FALSE_CLAIM):
        return f"{outcome.details}: {outcome.note}"
    if outcome.ending in _ADJUDICATED and "by adjudication" not in outcome.details:
        return f"{_how_adjudicated(outcome.loser)}: {outcome.details}"
    return outcome.details


def peer_sentence(outcome: contract.Outcome, program: contract.PgnComments) -> str:
    """Return the sentence as a match program words it, in its lines and in its PGN's comment."""
    if outcome.ending is contract.Ending.MAX_MOVES and program in _PEERS_MAX_MOVES:
        return _PEERS_MAX_MOVES[program]
    if outcome.ending is contract.Ending.TIME and program == "fastchess":
        return f"{outcome.details} ({_overrun_ms(outcome.note)}ms overrun)"
    return sentence(outcome)


def with_note(details: str, note: str) -> str:
    """Return a verdict with what it rests on, for those who look for the cause of a fault."""
    return f"{details}: {note}" if note else details


def _overrun_ms(note: str) -> int:
    """Read by how much a move was late: ``1000.272 ms of 500.000 ms``."""
    fields = note.split()
    try:
        return max(0, math.floor(float(fields[0]) - float(fields[3])))
    except (IndexError, ValueError):
        return 0


def _how_adjudicated(loser: contract.Side | None) -> str:
    how = "Draw" if loser is None else f"{side_name(opponent(loser))} wins"
    return f"{how} by adjudication"


def _adjudicated(
    ending: contract.Ending, loser: contract.Side | None, details: str
) -> contract.Outcome:
    if loser is not None:
        return _loss(ending, loser, details)
    return contract.Outcome(result="1/2-1/2", ending=ending, details=details)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_MOVE_TEXT]


def _loss(
    ending: contract.Ending, loser: contract.Side, details: str, note: str = ""
) -> contract.Outcome:
    return contract.Outcome(
        result=loss_of(loser), ending=ending, loser=loser, details=details, note=note
    )


def _draw(ending: contract.Ending) -> contract.Outcome:
    return contract.Outcome(result="1/2-1/2", ending=ending, details=_DRAWS[ending][0])
