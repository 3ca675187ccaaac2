"""The referee's Syzygy tables: opened once per game, off the clock, and never a reason to fail.

What is missing or cannot be read is not probed, the game goes on by the other rules, and
``remarks`` says so once, for the game's record. Positions are probed on a copy.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable

import chess
import chess.syzygy

from orchestrator import contract

_NO_PATH = frozenset({"", "<empty>"})  # how UCI options write that there is none
_DAMAGED = (OSError, ValueError, IndexError, struct.error)  # a table that is cut short, or no table


class Tables:
    """Tables in one or more directories (``adjudication.tablebase.Prober``)."""

    def __init__(self, directories: Iterable[str]) -> None:
        """Look for tables; the files themselves are opened when they are probed."""
        self.remarks: list[str] = []
        self._tables = chess.syzygy.Tablebase()
        self._missed = False
        tables_added = sum(self._add(directory) for directory in directories)
        if not tables_added:
            self.remarks.append("tablebases: no table was found, none is probed")
            self._missed = True

    def wdl(self, board: chess.Board) -> int | None:
        """Return 2, 1, 0, -1 or -2 for the side to move, ``None`` if a table is missing."""
        return self._probe(self._tables.probe_wdl, board)

    def dtz(self, board: chess.Board) -> int | None:
        """Return the plies to the next zeroing move, ``None`` if a table is missing."""
        return self._probe(self._tables.probe_dtz, board)

    def close(self) -> None:
        """Close all files."""
        self._tables.close()

    def _add(self, directory: str) -> int:
        try:
            return self._tables.add_directory(directory)
        except OSError as error:
            self.remarks.append(f"tablebases: {directory}: {error.strerror}")
            return 0

    def _probe(self, probe: Callable[[chess.Board], int], board: chess.Board) -> int | None:
        try:
            return probe(board.copy(stack=False))
        except KeyError as error:  # MissingTableError is one
            self._miss(str(error.args[0]))
        except _DAMAGED as error:
            self._miss(f"cannot be read: {error}")
        return None

    def _miss(self, what: str) -> None:
        if not self._missed:
            self._missed = True
            self.remarks.append(f"tablebases: {what}; such positions are played on")


def open_for(order: contract.GameOrder) -> Tables | None:
    """Open the tables that an order's rules ask for, ``None`` when they ask for none.

    They are the rule's own, else those that the engines are given.
    """
    rule = order.adjudication.syzygy
    if rule is None:
        return None
    path = rule.path if rule.path is not None else order.limits.syzygy_path or ""
    return Tables(part for part in path.split(os.pathsep) if part not in _NO_PATH)
