"""Debian's engines, UCI and XBoard, play each other; nothing goes wrong by the referee.

Each game is read back from its PGN without an error and equal to its plies, and ends by
the rules, on the board or by a fault of an engine's own. The short form plays one game an
engine; FARM_LONG=1 (`make games`) 20 games an engine, against ten opponents of both
protocols, with both colours, and prints a table.
"""

from __future__ import annotations

import collections
import concurrent.futures
import io
import itertools
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import chess
import chess.pgn
import hall
import pytest

from orchestrator import contract
from orchestrator.arbiter import record, verdict
from orchestrator.contract import Ending

LONG = os.environ.get("FARM_LONG") == "1"
# A short game proves the same of the referee as a long one, at a third of the engines' time.
FAST = contract.TimeControl(base_ms=1_000 if LONG else 300, increment_ms=20 if LONG else 8)
MARGIN_MS = 10_000  # a busy test machine and sloppy engines: no game should end by it
ENOUGH = contract.Adjudication(max_moves=80)  # castling and endgames come before
AT_ONCE = 3  # games at a time
PATIENCE = 120.0  # s: a game takes some seconds on a quiet machine

NO_BOOKS = {"OwnBook": False, "Book": False}
UCI = ("stockfish", "ethereal-chess", "fairy-stockfish", "toga2", "glaurung", "sjaakii",
       "gnuchess --uci")  # fmt: skip
XBOARD = ("hoichess", "phalanx", "fairymax", "sjeng", "sjaakii", "gnuchess --xboard")
OPENINGS = (
    ("e2e4", "e7e5", "g1f3", "b8c6"),
    ("d2d4", "d7d5", "c2c4", "e7e6"),
    ("c2c4", "e7e5", "b1c3", "g8f6"),
    ("e2e4", "c7c5", "g1f3", "d7d6"),
)
# Debian's gnuchess loses input in XBoard mode (threads of its own race), and has aborted.
FAULTY_BY_ITSELF = {"gnuchess (xboard)", "gnuchess (uci)"}

# castling at once, to both sides, from files other than e
CASTLING = (
    ("1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w KQkq - 0 1", ("e1g1", "e8b8")),
    ("rk4r1/pppppppp/8/8/8/8/PPPPPPPP/RK4R1 w KQkq - 0 1", ("b1g1", "b8a8")),
    ("2rk3r/pppppppp/8/8/8/8/PPPPPPPP/2RK3R w KQkq - 0 1", ()),
    ("bb1rkr1n/pppppppp/8/8/8/8/PPPPPPPP/BB1RKR1N w KQkq - 0 1", ()),
)
PLAY_960 = (
    ("stockfish", "uci"),
    ("fairy-stockfish", "xboard"),
    ("ethereal-chess", "uci"),
    ("sjaakii", "xboard"),
    ("fairy-stockfish", "uci"),
)  # glaurung offers it, and dies by SIGSEGV after a castling of the opening

SIDES: tuple[contract.Side, ...] = ("white", "black")
Engine = tuple[str, contract.ProtocolName]
ALL: tuple[Engine, ...] = tuple(
    engine
    for pair in itertools.zip_longest(
        [(name, "uci") for name in UCI], [(name, "xboard") for name in XBOARD]
    )
    for engine in pair
    if engine is not None
)


def spec(engine: Engine) -> contract.EngineSpec:
    """Describe an engine; skip by name where it is missing."""
    command, protocol = engine
    program, *arguments = command.split()
    found = hall.installed(program)
    options = NO_BOOKS if protocol == "uci" else {}
    return found.model_copy(
        update={
            "id": f"{program}-{protocol}",
            "name": f"{program} ({protocol})",
            "command": (*found.command, *arguments),
            "protocol": protocol,
            "options": options,
            "init": ("book off",) if program == "hoichess" else (),
        }
    )


def game_order(
    white: Engine, black: Engine, opening: contract.Opening, **fields: Any
) -> contract.GameOrder:
    """Order one fast game."""
    limits = contract.Limits(threads=1, hash_mb=16)
    order: contract.GameOrder = hall.order(
        spec(white), spec(black), time_control=FAST, time_margin_ms=MARGIN_MS, opening=opening,
        limits=limits, timeouts=contract.Timeouts(features_ms=1_500, settle_ms=300),
        adjudication=ENOUGH, **fields,
    )  # fmt: skip
    return order


def play(directory: pathlib.Path, order: contract.GameOrder) -> hall.Played:
    """Play a game and check what must hold for each."""
    directory.mkdir()
    played = hall.play(directory, order, patience=PATIENCE)
    assert played.finished is not None, played.interrupted
    check_pgn(order, played)
    return played


def check_pgn(order: contract.GameOrder, played: hall.Played) -> None:
    """Read the game back from its PGN: no error, the same moves, the same position."""
    assert played.finished is not None
    text = record.pgn(
        contract.GameRecord(
            order=order, attempt="a", started_ms=0, ended_ms=0, plies=tuple(played.plies),
            white=played.report("white"), black=played.report("black"), outcome=played.outcome,
            final_fen=played.finished["final_fen"],
        )
    )  # fmt: skip
    game = chess.pgn.read_game(io.StringIO(text))
    assert game is not None
    assert game.errors == []
    moves = [move.uci() for move in game.mainline_moves()]
    book = len(order.opening.moves)
    chess960 = order.variant == "fischerandom"
    board = chess.Board(order.opening.fen or chess.STARTING_FEN, chess960=chess960)
    for uci in [*order.opening.moves, *(ply.move for ply in played.plies)]:
        board.push(board.parse_uci(uci))
    assert len(moves) == book + len(played.plies)
    assert game.end().board().fen() == board.fen() == played.finished["final_fen"]


def faulty(order: contract.GameOrder, played: hall.Played) -> str:
    """Return the engine that lost by a fault of its own, '' when none did."""
    if played.outcome.loser is None:
        return ""
    faults = {Ending.TIME, Ending.DISCONNECT, Ending.STALL, Ending.ILLEGAL, Ending.FALSE_CLAIM}
    outcome = played.outcome
    return order.engine(outcome.loser).name if outcome.ending in faults else ""


def pairings(distances: Iterable[int]) -> list[tuple[Engine, Engine]]:
    """Pair each engine with those so far behind it in the ring of all, both colours."""
    found = []
    for distance in distances:
        for at, engine in enumerate(ALL):
            other = ALL[(at + distance) % len(ALL)]
            found += [(engine, other), (other, engine)]
    return found


def pairs() -> list[tuple[Engine, Engine]]:
    """Return who plays whom in this form of the test."""
    if LONG:
        return pairings(range(1, 6))
    return [(ALL[at], ALL[(at + 1) % len(ALL)]) for at in range(0, len(ALL), 2)]


@pytest.mark.parametrize("at", range(len(CASTLING) if LONG else 2))
def test_chess960_is_castled_in_both_protocols(tmp_path: pathlib.Path, at: int) -> None:
    """Positions where both sides castle at once: told to engines, and played by them."""
    fen, moves = CASTLING[at]
    engines = PLAY_960 if LONG else PLAY_960[2 * at : 2 * at + 3]
    for number, (one, other) in enumerate(itertools.pairwise(engines)):
        opening = contract.Opening(fen=fen, moves=moves)
        order = game_order(one, other, opening, variant="fischerandom")
        played = play(tmp_path / str(number), order)
        assert faulty(order, played) == "", played.outcome


def test_every_engine_plays_and_its_games_are_clean(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No game is interrupted, every PGN is clean; faults are the engines' own, and printed."""
    jobs = []
    for number, (white, black) in enumerate(pairs()):
        opening = contract.Opening(moves=OPENINGS[number // 2 % len(OPENINGS)])
        jobs.append((tmp_path / str(number), game_order(white, black, opening)))
    table = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    faults = collections.defaultdict[str, list[str]](list)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for order, played in pool.map(lambda job: (job[1], play(*job)), jobs):
            for side in SIDES:
                count(table[order.engine(side).name], side, order, played)
            if faulty(order, played):
                said = f"{verdict.sentence(played.outcome)} ({played.outcome.note})"
                faults[faulty(order, played)].append(said)
    if LONG:
        with capsys.disabled():
            for name, counts in sorted(table.items()):
                print(f"\n{name:24} {dict(counts)}", end="")
            print("\n" + "\n".join(f"{name}: {lines}" for name, lines in sorted(faults.items())))
        assert all(counts["games"] >= 20 for counts in table.values())
    assert set(faults) <= FAULTY_BY_ITSELF, dict(faults)


def count(
    row: collections.Counter[str], side: contract.Side, order: contract.GameOrder,
    played: hall.Played,
) -> None:  # fmt: skip
    """Add a game to an engine's row of the table."""
    own = [ply for ply in played.plies if ply.side == side]
    row["games"] += 1
    row[f"as {side}"] += 1
    row[f"v {order.engine(verdict.opponent(side)).protocol}"] += 1
    row[played.outcome.ending.value] += 1
    row["moves"] += len(own)
    row["moves with a score"] += sum(ply.score is not None for ply in own)
