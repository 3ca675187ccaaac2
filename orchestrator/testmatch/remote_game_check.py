"""Check a game that a remote worker has reported, move by move, by its order.

All moves are played again; every rule of the game sees every ply; both clocks are computed
again from the thinking times; the result must be what the final position, the clocks or the
side to move allow. What only the worker can have seen (an engine that went away, a move that
was no move) must at least fit the position. The record that is kept is made here: of the
worker's words there remain thinking times, evaluations, and what engines said, but no lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from orchestrator import contract
from orchestrator.arbiter import board, clock, eco, rmobility, verdict
from orchestrator.arbiter.adjudication import judge
from orchestrator.common import text
from orchestrator.contract import remote

_Words: TypeAlias = Callable[[contract.Side, str], contract.Outcome]

_SIDES: Final[tuple[contract.Side, ...]] = ("white", "black")
_NS_PER_MS: Final = 1_000_000
_NOTE: Final = 300  # characters of what a verdict rests on
_MOVE: Final = 10  # characters of a wrong move that is shown
_LARGEST: Final = 1 << 63  # of any number: a larger one is no time, and no engine's count
_CLOCK_SLACK_MS: Final = 50  # ms: between a game's wall time and its stamps, of other clocks
_CLOCK_DRIFT: Final = 1_000  # a worker's clock may run by a part of so many faster than Redis'
_BY_MOVER: Final = (contract.Ending.ILLEGAL, contract.Ending.FALSE_CLAIM, contract.Ending.RESIGN)
_SEEN_ALONE: Final[
    Mapping[contract.Ending, _Words]
] = {  # endings that the moves do not show, by how their words are made
    contract.Ending.TIME: verdict.time,
    contract.Ending.DISCONNECT: verdict.disconnect,
    contract.Ending.STALL: verdict.stall,
    contract.Ending.ILLEGAL: verdict.illegal,
    contract.Ending.FALSE_CLAIM: verdict.false_claim,
    contract.Ending.RESIGN: lambda loser, _: verdict.resign(loser),
}


class WrongGameError(ValueError):
    """The game cannot have been played so; the message says what is wrong and at which ply."""


class Checked(NamedTuple):
    """A game that was played again: as it is kept, and for its PGN the positions reached."""

    outcome: contract.Outcome
    final_fen: str
    plies: tuple[contract.PlyRecord, ...]
    played: list[tuple[str, board.Reached]]


def verified(
    order: contract.GameOrder, reported: remote.PlayedGame, since_claim_ms: int
) -> Checked:
    """Return outcome, final position and plies as they are kept; raise ``WrongGameError``.

    ``since_claim_ms`` is the time since the batch was dealt, by the farm's own clock.
    """
    game = _Replay(order)
    begun = len(game.board.sans)
    plies = tuple(game.play(ply) for ply in reported.plies)
    if reported.final_fen != game.board.fen():
        raise WrongGameError(f"final position {reported.final_fen!r}: it is {game.board.fen()!r}")
    outcome = game.outcome(reported.outcome)
    least_ms = game.thought_ns // _NS_PER_MS
    if outcome.ending is contract.Ending.TIME:
        least_ms += game.clocks[game.board.turn].allowance_ns() // _NS_PER_MS
    if reported.wall_ms + _CLOCK_SLACK_MS < least_ms:
        raise WrongGameError(f"played in {reported.wall_ms} ms: its clocks alone say {least_ms} ms")
    if reported.wall_ms > since_claim_ms + since_claim_ms // _CLOCK_DRIFT + _CLOCK_SLACK_MS:
        raise WrongGameError(
            f"played for {reported.wall_ms} ms: it was dealt {since_claim_ms} ms ago"
        )
    played = list(zip(game.board.sans[begun:], game.board.reached[begun:], strict=True))
    return Checked(outcome, reported.final_fen, plies, played)


def record(
    order: contract.GameOrder,
    reported: remote.PlayedGame,
    checked: Checked,
    *,
    attempt: str,
    host: str,
    ended_ms: int,
) -> contract.GameRecord:
    """Make the record of a game that was ``verified``."""
    outcome, fen, plies, _ = checked
    made = contract.GameRecord(
        order=order,
        attempt=attempt,
        host=host,
        started_ms=ended_ms - reported.wall_ms,
        ended_ms=ended_ms,
        white=reported.white,
        black=reported.black,
        plies=plies,
        outcome=outcome,
        final_fen=fen,
        r_mobility=rmobility.of_record(order, plies, outcome),
    )
    return eco.classified(made)


class _Replay:
    """A game that is played again, ply by ply."""

    def __init__(self, order: contract.GameOrder) -> None:
        self.board = board.GameBoard(order.opening, order.variant)
        self.clocks = clock.of_order(order)
        self.thought_ns = 0
        self._order = order
        self._judge = judge.Judge(order.adjudication)
        self._over: contract.Outcome | None = None

    def play(self, ply: contract.PlyRecord) -> contract.PlyRecord:
        """Play a ply; return it with what was computed here in place of what was told."""
        number, side = self.board.ply + 1, self.board.turn
        where = f"ply {number}"
        if self._over is not None:
            raise WrongGameError(f"{where}: the game was over: {self._over.details}")
        if name := _too_large(ply) or (ply.score and _too_large(ply.score)):
            raise WrongGameError(f"{where}: {name} is beyond 63 bits")
        if (ply.ply, ply.side) != (number, side):
            raise WrongGameError(f"{where}: told as ply {ply.ply} of {ply.side}; {side} moves")
        move = self.board.legal(ply.move)
        if move is None:
            raise WrongGameError(
                f"{where}: {ply.move[:_MOVE]!r} is not legal in {self.board.fen()}"
            )
        own = self.clocks[side]
        if ply.think_ns < 0 or ply.think_ns > own.allowance_ns():
            raise WrongGameError(
                f"{where}: {side} thought for {ply.think_ns} ns of {own.allowance_ns()} ns"
            )
        charge = own.charge(ply.think_ns)
        self.thought_ns += ply.think_ns
        left = {clock_side: self.clocks[clock_side].remaining_ns for clock_side in _SIDES}
        reported = (ply.margin_ns, ply.white_clock_ns, ply.black_clock_ns)
        if reported != (charge.margin_ns, left["white"], left["black"]):
            raise WrongGameError(
                f"{where}: clocks {reported}: computed are"
                f" {(charge.margin_ns, left['white'], left['black'])} (left, White, Black; ns)"
            )
        san = self.board.push(move)
        ruled = self._judge.rule(self.board.position(), self.board.ply, ply.score)
        self._over = self.board.ending() or ruled
        return ply.model_copy(
            update={
                "san": san,
                "said": text.one_line(ply.said)[:_NOTE],
                "pv": (),  # to write a line of 12 moves costs more than all else of its ply
                "counters": self._judge.counters(self.board.position(), self.board.ply),
                "network_ns": None,
            }
        )

    def outcome(self, reported: contract.Outcome) -> contract.Outcome:
        """Return the outcome in the farm's own words; raise ``WrongGameError`` for another."""
        if self._over is not None:
            if (reported.ending, reported.result) != (self._over.ending, self._over.result):
                raise WrongGameError(
                    f"told as {reported.result} by {reported.ending}: the final position is"
                    f" {self._over.result} by {self._over.ending}"
                )
            return self._over
        outcome_of = _SEEN_ALONE.get(reported.ending)
        if outcome_of is None:
            raise WrongGameError(
                f"told as {reported.result} by {reported.ending}: the game is not over in"
                f" {self.board.fen()}"
            )
        if reported.loser is None or reported.result != verdict.loss_of(reported.loser):
            raise WrongGameError(f"told as {reported.result}, lost by {reported.loser or 'nobody'}")
        self._fits(reported, reported.loser)
        note = text.one_line(reported.note)[:_NOTE]
        return outcome_of(reported.loser, note).model_copy(update={"refused": reported.refused})

    def _fits(self, reported: contract.Outcome, loser: contract.Side) -> None:
        """Check an ending that nobody else has seen against the position that it ended in."""
        ending, turn = reported.ending, self.board.turn
        engine = self._order.engine(loser)
        if ending in (*_BY_MOVER, contract.Ending.TIME) and loser != turn:
            raise WrongGameError(f"{loser} is told to lose by {ending}: {turn} was to move")
        claims = (contract.Ending.RESIGN, contract.Ending.FALSE_CLAIM)
        if ending in claims and engine.protocol == "uci":
            raise WrongGameError(f"{loser} is told to lose by {ending}: UCI has no word for it")
        if reported.refused and (ending is not contract.Ending.DISCONNECT or self.thought_ns):
            raise WrongGameError(f"{loser} is told to be unable to play after it has played")
        if ending is contract.Ending.ILLEGAL and engine.protocol == "uci":
            move = reported.note.strip()
            if self.board.legal(move) is not None:
                raise WrongGameError(f"{move!r} is told to be illegal in {self.board.fen()}")


def _too_large(reported: contract.PlyRecord | contract.Score) -> str:
    """Return the name of a number that is too large to be one of a game, '' where none is."""
    for name, value in vars(reported).items():
        if isinstance(value, int) and abs(value) >= _LARGEST:
            return name
    return ""
