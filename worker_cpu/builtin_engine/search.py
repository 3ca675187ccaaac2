"""The search of the farm's own engine: iterative deepening alpha-beta on python-chess.

Principal variation search with a transposition table bounded by Hash, null move and
late move reductions, quiescence, killers and history; the evaluation is material and piece
placement, by game phase. With a node limit the same position and history give the same move,
whatever the machine; time is looked at only where a time limit was given.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import chess

MATE: Final = 30_000
MATED_WITHIN: Final = 500  # scores beyond MATE - 500 are mates
MAX_DEPTH: Final = 64
ENTRY_BYTES: Final = 400  # bytes: measured 319 with the dictionary's share, which grows in steps

_EXACT, _LOWER, _UPPER = 0, 1, 2

_Entry: TypeAlias = tuple[int, int, int, int, chess.Move | None]
_VALUES: Final = (0, 100, 320, 330, 500, 950, 0)
_PHASE: Final = (0, 0, 1, 1, 2, 4, 0)
_FULL_PHASE: Final = 24


@dataclasses.dataclass(frozen=True)
class Limits:
    """When to stop: plies, nodes, and times on ``time.perf_counter_ns``.

    No iteration is begun after ``soft_ns``; the running one is left at ``hard_ns``.
    """

    depth: int = MAX_DEPTH
    nodes: int | None = None
    soft_ns: int | None = None
    hard_ns: int | None = None


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a finished iteration found; the score is the mover's, in centipawns."""

    depth: int
    seldepth: int
    score: int
    nodes: int
    time_ns: int
    hashfull: int
    pv: tuple[chess.Move, ...]


class _StopSearch(Exception):  # noqa: N818 - unwinds, reports no error
    """A limit is reached; the search unwinds to its root."""


def position_key(board: chess.Board) -> int:
    """Return a 64-bit key of a position, castling and en passant square included."""
    return hash(
        (
            board.pawns,
            board.knights,
            board.bishops,
            board.rooks,
            board.queens,
            board.kings,
            board.occupied_co[chess.WHITE],
            board.turn,
            board.castling_rights,
            board.ep_square,
        )
    )


class Search:
    """The searching half of the engine; one search at a time."""

    def __init__(self, hash_mb: int = 16) -> None:
        """Make an empty transposition table of at most ``hash_mb`` megabytes."""
        self._entries: dict[int, _Entry] = {}
        self._capacity = 1
        self.resize(hash_mb)

    def resize(self, hash_mb: int) -> None:
        """Bound the transposition table again, and clear it."""
        self._capacity = hash_mb * 1024 * 1024 // ENTRY_BYTES
        self.clear()

    def clear(self) -> None:
        """Forget what earlier searches found."""
        self._entries.clear()
        self._history: dict[tuple[bool, int, int], int] = {}

    def run(
        self,
        position: chess.Board,
        limits: Limits,
        stopped: Callable[[], bool],
        report: Callable[[Progress], None],
    ) -> tuple[chess.Move, ...]:
        """Search a position; return the best line, empty when no move is legal.

        ``stopped`` is asked at every node, ``report`` is told of every finished iteration.
        """
        self._begin(position, limits, stopped)
        line = tuple(self._ordered(self._board, None, 0)[:1])
        if not line:
            return line
        for depth in range(1, limits.depth + 1):
            self._root_line: list[chess.Move] = []
            self._seldepth = 0
            try:
                score = self._search(depth, -MATE, MATE, 0, self._line(0))
            except _StopSearch:
                return tuple(self._root_line) or line
            line = tuple(self._root_line) or line
            report(self._progress(depth, score, line))
            if abs(score) > MATE - MATED_WITHIN and MATE - abs(score) <= depth:
                break
            if limits.soft_ns is not None and time.perf_counter_ns() > limits.soft_ns:
                break
        return line

    def _begin(self, position: chess.Board, limits: Limits, stopped: Callable[[], bool]) -> None:
        self._board = position.copy()
        self._limits, self._stopped = limits, stopped
        self._started_ns = time.perf_counter_ns()
        self._nodes = self._seldepth = 0
        self._killers: list[list[chess.Move]] = [[] for _ in range(2 * MAX_DEPTH + 2)]
        self._path = _earlier_positions(position)

    def _progress(self, depth: int, score: int, line: tuple[chess.Move, ...]) -> Progress:
        return Progress(
            depth=depth,
            seldepth=max(self._seldepth, depth),
            score=score,
            nodes=self._nodes,
            time_ns=time.perf_counter_ns() - self._started_ns,
            hashfull=1000 * len(self._entries) // self._capacity,
            pv=line,
        )

    def _visit(self, height: int) -> None:
        limits = self._limits
        if limits.nodes is not None and self._nodes >= limits.nodes:
            raise _StopSearch
        if limits.hard_ns is not None and time.perf_counter_ns() > limits.hard_ns:
            raise _StopSearch
        if self._stopped():
            raise _StopSearch
        self._nodes += 1
        self._seldepth = max(self._seldepth, height)

    def _line(self, height: int) -> list[chess.Move]:
        return self._root_line if height == 0 else []

    def _search(
        self, depth: int, alpha: int, beta: int, height: int, line: list[chess.Move]
    ) -> int:
        """Search to a depth and return the value; fill ``line`` with the best play."""
        board = self._board
        key = position_key(board)
        if height and self._drawn(key):
            return 0
        check = board.is_check()
        depth += check
        if depth <= 0 or height >= 2 * MAX_DEPTH:
            return self._quiesce(alpha, beta, height)
        self._visit(height)
        entry = self._entries.get(key % self._capacity)
        stored = entry if entry is not None and entry[0] == key else None
        if height and stored is not None and stored[1] >= depth:
            value = _cut(stored, alpha, beta, height)
            if value is not None:
                return value
        if height and not check and depth >= 3 and self._null_move_fails_high(depth, beta, height):
            return beta
        self._path.append(key)
        value = self._try_moves(key, depth, alpha, beta, height, line, stored)
        self._path.pop()
        return value

    def _try_moves(
        self,
        key: int,
        depth: int,
        alpha: int,
        beta: int,
        height: int,
        line: list[chess.Move],
        stored: _Entry | None,
    ) -> int:
        board, floor, best, choice = self._board, alpha, -MATE, None
        check = board.is_check()
        for number, move in enumerate(self._ordered(board, stored[4] if stored else None, height)):
            quiet = not (move.promotion or board.is_capture(move))
            late = quiet and not check and number >= 4 and depth >= 3
            below: list[chess.Move] = []
            board.push(move)
            value = self._value_after(depth - 1, alpha, beta, height + 1, below, number, late)
            board.pop()
            if value > best or choice is None:
                best, choice = value, move
            if value > alpha or (height == 0 and not line):
                alpha = max(alpha, value)
                line[:] = [move, *below]
            if alpha >= beta:
                if quiet:
                    self._remember_quiet(move, depth, height)
                break
        if choice is None:
            return height - MATE if check else 0
        kind = _LOWER if best >= beta else _EXACT if best > floor else _UPPER
        self._store(key, depth, _to_table(best, height), kind, choice)
        return best

    def _value_after(
        self,
        depth: int,
        alpha: int,
        beta: int,
        height: int,
        below: list[chess.Move],
        number: int,
        late: bool,  # noqa: FBT001 - positional on the hottest path
    ) -> int:
        """Return the value of the move just played, for the side that played it."""
        if number:
            reduced = depth - 1 - (number > 12) if late else depth
            value = -self._search(reduced, -alpha - 1, -alpha, height, [])
            if value <= alpha or (value >= beta and not late):
                return value
        return -self._search(depth, -beta, -alpha, height, below)

    def _quiesce(self, alpha: int, beta: int, height: int) -> int:
        """Play out captures (all moves when in check) until the position is quiet."""
        self._visit(height)
        board = self._board
        if height >= 2 * MAX_DEPTH:
            return _evaluate(board)
        check = board.is_check()
        stand = best = height - MATE if check else _evaluate(board)
        if best >= beta:
            return best
        alpha = max(alpha, best)
        moves = self._ordered(board, None, height) if check else _captures(board)
        for move in moves:
            if not check and stand + _gain(board, move) + 150 < alpha:
                continue
            board.push(move)
            value = -self._quiesce(-beta, -alpha, height + 1)
            board.pop()
            best = max(best, value)
            alpha = max(alpha, value)
            if alpha >= beta:
                break
        return best

    def _null_move_fails_high(self, depth: int, beta: int, height: int) -> bool:
        board = self._board
        own = board.occupied_co[board.turn] & ~board.pawns & ~board.kings
        if not own or beta > MATE - MATED_WITHIN or not board.move_stack or not board.peek():
            return False
        if _evaluate(board) < beta:
            return False
        board.push(chess.Move.null())
        value = -self._search(depth - 3, -beta, 1 - beta, height + 1, [])
        board.pop()
        return value >= beta

    def _drawn(self, key: int) -> bool:
        board = self._board
        if board.halfmove_clock >= 100 and not board.is_checkmate():
            return True
        if board.halfmove_clock >= 4 and key in self._path[-board.halfmove_clock :]:
            return True
        return board.is_insufficient_material()

    def _ordered(
        self, board: chess.Board, first: chess.Move | None, height: int
    ) -> list[chess.Move]:
        """Return the legal moves: table move, gains, killers, history."""
        killers, history, turn = self._killers[height], self._history, board.turn

        def promise(move: chess.Move) -> int:
            if move == first:
                return 1 << 30
            gain = _gain(board, move)
            if gain:
                return (1 << 20) + 16 * gain - (board.piece_type_at(move.from_square) or 0)
            if move in killers:
                return 1 << 19
            return history.get((turn, move.from_square, move.to_square), 0)

        return sorted(board.legal_moves, key=promise, reverse=True)

    def _remember_quiet(self, move: chess.Move, depth: int, height: int) -> None:
        killers = self._killers[height]
        if move not in killers:
            self._killers[height] = [move, *killers[:1]]
        slot = (self._board.turn, move.from_square, move.to_square)
        self._history[slot] = min(self._history.get(slot, 0) + depth * depth, 1 << 18)

    def _store(self, key: int, depth: int, value: int, kind: int, move: chess.Move) -> None:
        slot = key % self._capacity
        old = self._entries.get(slot)
        if old is None or old[0] == key or old[1] <= depth + 2:
            self._entries[slot] = (key, depth, value, kind, move)


def _earlier_positions(position: chess.Board) -> list[int]:
    """Return the keys of the game's positions since the last irreversible move."""
    past, keys = position.copy(), []
    for _ in range(min(position.halfmove_clock, len(position.move_stack))):
        past.pop()
        keys.append(position_key(past))
    return keys[::-1]


def _cut(entry: _Entry, alpha: int, beta: int, height: int) -> int | None:
    """Return the table's value where its bound decides, else ``None``."""
    value = entry[2]
    if abs(value) > MATE - MATED_WITHIN:
        value += -height if value > 0 else height
    if entry[3] == _EXACT or (entry[3] == _LOWER and value >= beta):
        return value
    return value if entry[3] == _UPPER and value <= alpha else None


def _to_table(value: int, height: int) -> int:
    """Count mates from the node, not from the root, before a value is stored."""
    if abs(value) > MATE - MATED_WITHIN:
        return value + (height if value > 0 else -height)
    return value


def _gain(board: chess.Board, move: chess.Move) -> int:
    """Return the material a move takes or makes."""
    victim = board.piece_type_at(move.to_square)
    if victim is not None and board.occupied_co[board.turn] & chess.BB_SQUARES[move.to_square]:
        return 0  # castling in Chess960 notation
    if victim is None and move.to_square == board.ep_square and board.is_en_passant(move):
        victim = chess.PAWN
    return _VALUES[victim or 0] + _VALUES[move.promotion or 0]


def _captures(board: chess.Board) -> list[chess.Move]:
    """Return captures and promotions, the most valuable victim by the least attacker first."""
    moves = [*board.generate_legal_captures(), *_quiet_promotions(board)]
    attacker = board.piece_type_at

    def promise(move: chess.Move) -> int:
        return 16 * _gain(board, move) - (attacker(move.from_square) or 0)

    return sorted(moves, key=promise, reverse=True)


def _quiet_promotions(board: chess.Board) -> list[chess.Move]:
    ready = board.pawns & (chess.BB_RANK_7 if board.turn else chess.BB_RANK_2)
    if not ready & board.occupied_co[board.turn]:
        return []
    moves = board.generate_legal_moves(ready, ~board.occupied)
    return [move for move in moves if move.promotion == chess.QUEEN]


def _placement(kind: int, square: int, *, endgame: bool) -> int:
    """Return the worth of a white piece on a square, in centipawns."""
    file, rank = chess.square_file(square), chess.square_rank(square)
    off_centre = max(3 - file, file - 4) + max(3 - rank, rank - 4)  # 0 to 6
    if kind == chess.PAWN:
        advance = (0, 0, 2, 8, 16, 34, 60, 0) if endgame else (0, 0, 3, 10, 16, 24, 40, 0)
        return advance[rank] + (0 if endgame else 4 * (file in (3, 4)) * (rank in (3, 4)))
    if kind == chess.ROOK:
        return (12 if rank == 6 else 0) + (3 if file in (3, 4) else 0)
    if kind == chess.KING:
        shelter = 8 * (rank == 0) * (file in (1, 2, 6)) - 14 * rank
        return -10 * off_centre if endgame else shelter
    weight = {chess.KNIGHT: 9, chess.BISHOP: 5, chess.QUEEN: 2}[kind]
    back = 6 if rank == 0 and kind != chess.QUEEN else 0
    return -weight * off_centre + 2 * weight - back


def _table(kind: int, *, endgame: bool) -> tuple[list[int], list[int]]:
    white = [_VALUES[kind] + _placement(kind, square, endgame=endgame) for square in range(64)]
    return white, [-white[square ^ 56] for square in range(64)]


_MIDDLE: Final = [_table(kind, endgame=False) for kind in range(1, 7)]
_ENDING: Final = [_table(kind, endgame=True) for kind in range(1, 7)]


def _evaluate(board: chess.Board) -> int:
    """Return the static value of a position for the side to move, in centipawns."""
    middle = ending = phase = 0
    white, black = board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK]
    masks = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    for kind, mask in enumerate(masks):
        for side, own in enumerate((mask & white, mask & black)):
            middle_table, ending_table = _MIDDLE[kind][side], _ENDING[kind][side]
            left = own
            while left:
                square = left.bit_length() - 1
                left ^= 1 << square
                middle += middle_table[square]
                ending += ending_table[square]
                phase += _PHASE[kind + 1]
    phase = min(phase, _FULL_PHASE)
    value = (middle * phase + ending * (_FULL_PHASE - phase)) // _FULL_PHASE
    pairs = (chess.popcount(board.bishops & white) > 1) - (
        chess.popcount(board.bishops & black) > 1
    )
    value += 30 * pairs
    return (value if board.turn else -value) + 8
