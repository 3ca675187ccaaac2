"""A book by enumeration: every position after n plies, kept if an engine finds it balanced.

Lines that transpose are one; positions without a legal move are none. Where there are
more positions than wanted, a sample is drawn by the seed, before the engine looks.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import chess
import chess.engine

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.common import errors
from orchestrator.testmatch import openings
from worker_cpu.book import lines

START_SECONDS = 60.0  # s: an engine that loads a big network


def positions(start: contract.Opening, plies: int, variant: boards.Variant) -> list[lines.Line]:
    """Return a line to every position that so many plies can lead to."""
    board = boards.start_board(start, variant)
    for move in boards.book_moves(board, start):
        board.push(move)
    moves_by_epd: dict[str, tuple[str, ...]] = {board.epd(): start.moves}
    for _ in range(plies):
        moves_by_epd = _grown(moves_by_epd, variant)
    return [
        lines.Line(start.model_copy(update={"moves": moves}))
        for epd, moves in moves_by_epd.items()
        if any(_board(epd, variant).generate_legal_moves())
    ]


def _grown(
    moves_by_epd: Mapping[str, tuple[str, ...]], variant: boards.Variant
) -> dict[str, tuple[str, ...]]:
    grown: dict[str, tuple[str, ...]] = {}
    for epd, moves in moves_by_epd.items():
        board = _board(epd, variant)
        for move in board.generate_legal_moves():
            uci = board.uci(move)
            board.push(move)
            grown.setdefault(board.epd(), (*moves, uci))
            board.pop()
    return grown


def _board(epd: str, variant: boards.Variant) -> chess.Board:
    board = chess.Board(None, chess960=variant == "fischerandom")
    board.set_epd(epd)
    return board


def sample(candidates: Sequence[lines.Line], count: int, seed: int) -> list[lines.Line]:
    """Draw so many lines by the seed, kept in their order; all when there are fewer."""
    chosen = sorted(openings.order(len(candidates), "random", seed)[:count])
    return [candidates[at] for at in chosen]


def balanced(
    candidates: Iterable[lines.Line],
    command: Sequence[str],
    options: Mapping[str, str],
    nodes: int,
    lowest_cp: int,
    highest_cp: int,
    variant: boards.Variant,
) -> Iterator[lines.Line]:
    """Yield the lines whose eval, from White's side, lies within the bounds.

    Each position is searched with a fresh hash, so the choice does not depend on order.
    Raise ``HostError`` when the engine does not start or goes away.
    """
    try:
        with chess.engine.SimpleEngine.popen_uci(
            list(command), timeout=START_SECONDS, cwd=str(pathlib.Path.cwd())
        ) as engine:
            engine.configure(dict(options))
            for line in candidates:
                cp = _look(engine, line.board(variant), nodes)
                if cp is not None and lowest_cp <= cp <= highest_cp:
                    yield dataclasses.replace(line, cp=cp)
    except (chess.engine.EngineError, OSError, TimeoutError) as error:
        what = str(error) or f"no answer within {START_SECONDS} s"  # of a TimeoutError
        raise errors.HostError(f"the engine {command[0]!r}: {what}") from error


def _look(engine: chess.engine.SimpleEngine, board: chess.Board, nodes: int) -> int | None:
    info = engine.analyse(board, chess.engine.Limit(nodes=nodes), game=object())
    score = info.get("score")
    return None if score is None else score.white().score()
