"""The game that a kibitzer follows: the order's opening, then the plies of the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator import contract
from orchestrator.arbiter import board
from worker_cpu.kibitz import analyst


class Followed:
    """One attempt at a game, as far as its plies have been read."""

    def __init__(self, attempt: str, order: contract.GameOrder) -> None:
        """Set up the opening; raise ``BookError`` for one that cannot be played."""
        self.attempt = attempt
        self._board = board.GameBoard(order.opening, order.variant)

    @property
    def ply(self) -> int:
        """Return the number of plies, book plies included."""
        return self._board.ply

    @property
    def chess960(self) -> bool:
        """Say whether it is a game of Chess960."""
        return self._board.chess960

    def take(self, plies: Iterable[tuple[int, str]]) -> None:
        """Play what the ledger has; raise ``ValueError`` for a ply that does not follow."""
        for number, payload in plies:
            ply = contract.PlyRecord.decode(payload)
            move = self._board.legal(ply.move)
            if move is None or number != self.ply + 1:
                raise ValueError(f"ply {number}, {ply.move!r}, does not follow ply {self.ply}")
            self._board.push(move)

    def place(self) -> analyst.Place | None:
        """Return the position on the board, None where there is no move to think about."""
        if not any(self._board.position().generate_legal_moves()):
            return None
        command = self._board.position_command()
        return analyst.Place(self.attempt, self.ply, command, self.chess960)
