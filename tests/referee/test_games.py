"""Whole games: real dead man, real referee, real or scripted engines, every fault."""

from __future__ import annotations

import itertools
import os
import pathlib
import signal
import time
from typing import Any

import chess
import hall
import harness
import pytest

from orchestrator import contract
from orchestrator.arbiter import clock, verdict
from orchestrator.contract import Ending
from worker_cpu.wire import frames

FAST = contract.TimeControl(base_ms=200, increment_ms=10)
SHORT = contract.TimeControl(base_ms=400, increment_ms=0)
MATED_NEXT = contract.Opening(moves=("f2f3", "e7e5", "g2g4"))  # black mates in one: Qh4

answers = hall.answers
# Starts in a fraction of the scripted engine's time and has moves for a few plies.
KNIGHTS = answers(
    'say("bestmove " + ["g1f3", "g8f6", "b1c3", "b8c6", "f3g1", "f6g8", "c3b1"][played])'
)


def replay(order: contract.GameOrder, played: hall.Played) -> chess.Board:
    """Play a game's plies on a fresh board; fails on an illegal move or a gap."""
    game = chess.Board()
    for uci in order.opening.moves:
        game.push_uci(uci)
    for ply in played.plies:
        assert ply.ply == game.ply() + 1
        assert ply.side == ("white" if game.turn else "black")
        assert game.san(chess.Move.from_uci(ply.move)) == ply.san
        game.push_uci(ply.move)
    return game


@pytest.mark.parametrize("name", ["ethereal-chess", "toga2"])
def test_a_real_game_is_played_by_the_rules(tmp_path: pathlib.Path, name: str) -> None:
    """Moves are legal, the end is the board's, both engines quit by themselves."""
    order = hall.order(
        hall.installed(name),
        hall.installed("stockfish"),
        time_control=FAST,
        time_margin_ms=20_000,  # a busy machine is no engine's loss
    )
    played = hall.play(tmp_path, order)
    game = replay(order, played)
    assert played.finished is not None
    assert game.fen() == played.finished["final_fen"]
    assert game.outcome(claim_draw=True) is not None
    assert played.report("white").exit == played.report("black").exit == "exit 0"
    assert played.report("black").id_name.startswith("Stockfish")


def test_the_opening_is_played_out_and_scores_are_kept(tmp_path: pathlib.Path) -> None:
    """Book plies count in the ply number; score, depth and line of play are recorded."""
    order = hall.order(
        hall.installed("stockfish"),
        hall.installed("ethereal-chess"),
        opening=contract.Opening(moves=("e2e4", "c7c5", "g1f3")),
        time_control=contract.TimeControl(base_ms=300, increment_ms=10),
        time_margin_ms=20_000,
    )
    played = hall.play(tmp_path, order)
    replay(order, played)
    assert (played.plies[0].ply, played.plies[0].side) == (4, "black")
    assert all(ply.score is not None and ply.depth for ply in played.plies)
    assert all(ply.pv and ply.nodes for ply in played.plies[:10])


def test_limits_reach_the_engine_before_its_new_game(tmp_path: pathlib.Path) -> None:
    """Threads, Hash, books off, new game and one isready are sent in this order."""
    options = """option name OwnBook type check default true
option name Hash type spin default 64 min 8 max 4096
option name Threads type spin default 1 min 1 max 4
uciok"""
    engine = answers("pass", options.replace("\n", "\\n"))
    limits = contract.Limits(threads=8, hash_mb=4)
    order = hall.order(engine, hall.scripted(), limits=limits, time_control=SHORT)
    played = hall.play(tmp_path, order.model_copy(update={"time_margin_ms": 0}))
    assert played.sent("w").splitlines()[:9] == [
        "uci",
        "setoption name Threads value 4",
        "setoption name Hash value 8",
        "setoption name OwnBook value false",
        "ucinewgame",
        "isready",
        "position startpos",
        "go wtime 400 btime 400 winc 0 binc 0",
        "stop",
    ]
    remarks = {setting.name: setting.remark for setting in played.report("white").options}
    assert remarks["Threads"] == "lowered to the engine's maximum 4"


# -- faults ------------------------------------------------------------------------------

FAULTS = [
    ("crash@5", Ending.DISCONNECT, "exit 1", "white"),
    ("segv@5", Ending.DISCONNECT, "signal SIGSEGV", "black"),
    ("hang@5", Ending.STALL, "signal SIGKILL", "white"),
    ("sleepy@5", Ending.TIME, "exit 0", "black"),
    ("late:2400@5", Ending.TIME, None, "white"),
    ("illegal@5", Ending.ILLEGAL, "exit 0", "black"),
    ("garbage@5", Ending.ILLEGAL, "exit 0", "white"),
    ("none@5", Ending.ILLEGAL, "exit 0", "black"),
    ("spam@5", Ending.STALL, "signal SIGKILL", "white"),
    ("close-stdout@5", Ending.DISCONNECT, None, "black"),
    ("exit-before-uciok", Ending.DISCONNECT, None, "white"),
    ("no-uciok", Ending.STALL, None, "black"),
    ("no-readyok", Ending.STALL, None, "white"),
]


@pytest.mark.parametrize(("fault", "ending", "exit_text", "side"), FAULTS)
def test_a_fault_loses_and_leaves_nothing_behind(
    tmp_path: pathlib.Path,
    fault: str,
    ending: Ending,
    exit_text: str | None,
    side: contract.Side,
) -> None:
    """Each fault has its verdict, its loser and its evidence; no process survives."""
    faulty = hall.scripted("--fault", fault, name="Faulty")
    players = {"white": KNIGHTS, "black": KNIGHTS} | {side: faulty}
    timeouts, control = hall.patience(fault, ending)
    order = hall.order(**players, time_control=control, timeouts=timeouts)
    order = order.model_copy(update={"time_margin_ms": 100})
    played = hall.play(tmp_path, order)
    assert (played.outcome.ending, played.outcome.loser) == (ending, side), played.outcome
    assert played.outcome.result == ("0-1" if side == "white" else "1-0")
    if "@" in fault:
        assert [ply.ply for ply in played.plies] == list(range(1, 5 if side == "white" else 6))
    if exit_text is not None:
        assert played.report(side).exit.startswith(exit_text)


@pytest.mark.parametrize("style", ["crlf", "split@3", "long-line@3", "flood@3", "no-eval@3"])
def test_strange_but_legal_output_is_played(tmp_path: pathlib.Path, style: str) -> None:
    """CR LF, split lines, a line of 1 MiB, 100000 info lines, no eval: the game goes on."""
    strange = hall.scripted("--fault", style)
    order = hall.order(strange, hall.scripted("--fault", "none@6"))
    played = hall.play(tmp_path, order)
    assert (played.outcome.ending, played.outcome.loser) == (Ending.ILLEGAL, "black")
    assert len(played.plies) == 5
    replay(order, played)


def test_nothing_of_a_flood_is_lost_to_the_link(tmp_path: pathlib.Path) -> None:
    """All the lines of a flood arrive at the link, in order of their stamps."""
    order = hall.order(hall.scripted("--fault", "flood@1"), hall.scripted("--fault", "none@2"))
    played = hall.play(tmp_path, order)
    output = [c for c in played.chunks if c.seat == "w" and c.direction == "<"]
    assert b"".join(c.data for c in output).count(b"\ninfo ") >= 100_000
    assert [c.monotonic_ns for c in output] == sorted(c.monotonic_ns for c in output)


@pytest.mark.parametrize("side", ["white", "black"])
def test_an_engine_that_cannot_be_started_loses(
    tmp_path: pathlib.Path, side: contract.Side
) -> None:
    """A missing program is a crash of that engine, never an error of the hall."""
    missing = contract.EngineSpec(id="x", name="X", command=("/nowhere/engine",))
    players = {"white": hall.scripted(), "black": hall.scripted()} | {side: missing}
    played = hall.play(tmp_path, hall.order(**players))
    assert (played.outcome.ending, played.outcome.loser) == (Ending.DISCONNECT, side)
    assert "No such file" in played.outcome.note


def test_when_both_fail_the_first_failure_loses(tmp_path: pathlib.Path) -> None:
    """At the same fault white's deadline comes first."""
    silent = hall.program("import time; time.sleep(300)")
    timeouts = contract.Timeouts(start_ms=300, quit_ms=100)
    played = hall.play(tmp_path, hall.order(silent, silent, timeouts=timeouts))
    assert (played.outcome.ending, played.outcome.loser) == (Ending.STALL, "white")
    assert played.outcome.note == "no uciok within 300 ms"


def test_a_late_bestmove_loses_even_if_it_mates(tmp_path: pathlib.Path) -> None:
    """A mating move stamped after the flag is not played (S16-15a)."""
    late = answers('time.sleep(0.25); say("bestmove d8h4")')
    order = hall.order(
        hall.scripted(),
        late,
        opening=MATED_NEXT,
        time_control=contract.TimeControl(base_ms=200, increment_ms=10_000),
        timeouts=contract.Timeouts(stop_ms=5_000),
    )
    played = hall.play(tmp_path, order)
    assert (played.outcome.ending, played.outcome.loser) == (Ending.TIME, "black")
    assert played.plies == []


def test_a_mate_in_time_wins_though_the_engine_exits(tmp_path: pathlib.Path) -> None:
    """What was answered before the end counts."""
    order = hall.order(
        hall.scripted(), answers('say("bestmove d8h4"); sys.exit(4)'), opening=MATED_NEXT
    )
    played = hall.play(tmp_path, order)
    assert (played.outcome.ending, played.outcome.loser) == (Ending.CHECKMATE, "white")
    assert [ply.san for ply in played.plies] == ["Qh4#"]
    assert played.report("black").exit == "exit 4"


def test_an_engine_that_dies_while_the_other_thinks_loses_at_once(
    tmp_path: pathlib.Path,
) -> None:
    """Nobody waits for the thinker; the engine that is gone disconnects."""
    dying = answers('say("bestmove e2e4"); time.sleep(0.1); sys.stderr.write("oops"); sys.exit(7)')
    order = hall.order(dying, hall.scripted("--fault", "sleepy@2"))
    order = order.model_copy(update={"time_control": contract.TimeControl.parse("10m+0")})
    played = hall.play(tmp_path, order)
    assert (played.outcome.ending, played.outcome.loser) == (Ending.DISCONNECT, "white")
    assert (played.outcome.note, played.report("white").stderr_tail) == ("exit 7", "oops")
    assert played.report("white").exit == "exit 7"


def test_a_second_bestmove_is_no_answer_to_the_next_go(tmp_path: pathlib.Path) -> None:
    """What an engine writes while its opponent thinks is never its next move."""
    doubling = answers(
        'n = globals().get("n", 0) + 1\n'
        'say("bestmove " + ["e2e4", "d2d4"][n - 1] + "\\nbestmove a1a1\\nbestmove a2a3")'
    )
    order = hall.order(doubling, hall.scripted("--delay-ms", "50", "--fault", "none@4"))
    played = hall.play(tmp_path, order)
    assert [ply.move for ply in played.plies][::2] == ["e2e4", "d2d4"]


def test_a_bestmove_without_line_end_loses_on_time(tmp_path: pathlib.Path) -> None:
    """Half a line is not an answer, but no stall either."""
    half = answers('sys.stdout.write("bestmove e2e4"); sys.stdout.flush()')
    played = hall.play(tmp_path, hall.order(half, hall.scripted(), time_control=SHORT))
    assert (played.outcome.ending, played.outcome.loser) == (Ending.TIME, "white")


def test_children_that_hold_the_pipes_are_killed(tmp_path: pathlib.Path) -> None:
    """A child left behind neither hangs the referee nor survives the game."""
    order = hall.order(hall.scripted("--fault", "child@1", "--fault", "crash@3"), hall.scripted())
    played = hall.play(tmp_path, order)
    assert played.outcome.loser == "white"


def test_an_engine_that_ignores_quit_is_killed(tmp_path: pathlib.Path) -> None:
    """After ``quit_ms`` the dead man kills; the record says that it was the farm."""
    players = hall.scripted("--fault", "ignore-quit"), hall.scripted("--fault", "none@2")
    order = hall.order(*players, timeouts=contract.Timeouts(quit_ms=500))
    with hall.opened(tmp_path) as made:
        played = made.play(order)
        assert made.log_lines()[-1]["why"] == "did not quit within 500 ms"
    assert played.outcome.loser == "black"
    assert played.report("white").exit == "signal SIGKILL (did not quit within 500 ms)"


def test_an_engine_that_does_not_read_cannot_hang_the_referee(tmp_path: pathlib.Path) -> None:
    """A deaf engine stalls; it is never waited for in a write."""
    deaf = hall.program(
        "import sys, time\n"
        "for word in ('uciok', 'readyok'):\n"
        "    sys.stdin.readline(); print(word, flush=True)\n"
        "time.sleep(300)"
    )
    fill = contract.EngineSpec(
        id="deaf", name="Deaf", command=deaf.command, options={"x" * 100: "y" * 200_000}
    )
    played = hall.play(tmp_path, hall.order(fill, hall.scripted(), time_control=SHORT))
    assert (played.outcome.ending, played.outcome.loser) == (Ending.STALL, "white")


# -- clocks ------------------------------------------------------------------------------

STAMPING = """now = time.monotonic_ns
got = now()
words = line.split()
n = globals().get("n", -1) + 1
time.sleep(0.003)
sys.stderr.write(f"{got} {now()} {words[2]} {words[4]}\\n"); sys.stderr.flush()
say("bestmove " + ["g1f3", "f3g1"][n % 2])"""
BLACK_STAMPING = STAMPING.replace("g1f3", "g8f6").replace("f3g1", "f6g8")


def test_clocks_charge_what_was_thought_and_tell_no_more_than_there_is(
    tmp_path: pathlib.Path,
) -> None:
    """Charged time covers the engine's own; told clocks are the kept ones, rounded down."""
    order = hall.order(answers(STAMPING), answers(BLACK_STAMPING))
    played = hall.play(tmp_path, order)
    assert played.outcome.ending is Ending.THREEFOLD
    stamps: dict[str, list[list[int]]] = {}
    for seat in ("w", "b"):
        text = b"".join(c.data for c in played.chunks if (c.seat, c.direction) == (seat, "!"))
        stamps[seat] = [[int(word) for word in line.split()] for line in text.splitlines()]
    clocks = {"white": 10_000 * 10**6, "black": 10_000 * 10**6}
    numbers = itertools.count()
    for ply, number in zip(played.plies, numbers, strict=False):
        got, done, white_ms, black_ms = stamps[ply.side[0]][number // 2]
        assert ply.think_ns >= done - got
        assert white_ms == clocks["white"] // 10**6
        assert black_ms == clocks["black"] // 10**6
        clocks[ply.side] += 100 * 10**6 - ply.think_ns
        assert (ply.white_clock_ns, ply.black_clock_ns) == (clocks["white"], clocks["black"])
        assert ply.margin_ns == clocks[ply.side] - 100 * 10**6


def test_the_ply_waits_for_the_link_and_no_clock_pays(tmp_path: pathlib.Path) -> None:
    """While the link journals, no engine is told to go and the wait is not overhead."""
    order = hall.order(hall.scripted("--fault", "none@3"), hall.scripted())
    played = hall.Played(order.game)
    with hall.opened(tmp_path) as made:
        made.channel.send(frames.Kind.ORDER, order.encode().encode())
        while (frame := made.channel.receive(hall.PATIENCE)) is not None:
            if frame.kind is frames.Kind.PLY:
                break
        came_ns = time.monotonic_ns()
        while (frame := made.channel.receive(0.3)) is not None:  # what the ply has overtaken
            if frame.kind is frames.Kind.CHUNK:
                assert frames.Chunk.decode(frame.payload).seat == "w"
        told_ns = time.monotonic_ns()
        made.channel.send(frames.Kind.GO_ON)
        while not (played.plies and "\ngo " in played.sent("b")):
            frame = made.channel.receive(hall.PATIENCE)
            assert frame is not None
            made._take(frame, played)
    (black,) = played.plies
    go = next(one for one in played.chunks if one.seat == "b" and b"\ngo " in one.data)
    assert go.monotonic_ns > told_ns
    assert black.waited_ns is not None
    assert black.overhead_ns <= black.waited_ns - (told_ns - came_ns)


def test_plies_are_written_as_the_contract_encodes_them(tmp_path: pathlib.Path) -> None:
    """The referee's own JSON of a ply is byte for byte the contract's."""
    order = hall.order(hall.installed("stockfish"), hall.scripted("--fault", "none@6"))
    payloads = list[bytes]()

    def keep(frame: frames.Frame) -> None:
        if frame.kind is frames.Kind.PLY:
            payloads.append(frame.payload)

    with hall.opened(tmp_path) as made:
        made.play(order, keep)
    assert len(payloads) == 5
    for payload in payloads:
        assert contract.PlyRecord.decode(payload).encode().encode() == payload


def test_scores_from_whites_side_are_turned_to_the_movers(tmp_path: pathlib.Path) -> None:
    """An engine described as such is recorded like any other."""
    told = answers('say("info depth 1 score cp 30\\nbestmove " + ["", "g8f6", "", "f6g8"][played])')
    order = hall.order(KNIGHTS, told.model_copy(update={"white_pov": True}))
    played = hall.play(tmp_path, order)
    black = next(ply for ply in played.plies if ply.side == "black")
    assert black.score == contract.Score(cp=-30)


def test_each_side_plays_by_its_own_time_control(tmp_path: pathlib.Path) -> None:
    """White has periods, black a limit by nodes under a bound; a hang ends by the bound."""
    white = hall.scripted(time_control=contract.TimeControl(base_ms=5_000, moves=2))
    black = hall.scripted("--fault", "hang@6", time_control=contract.TimeControl(nodes=10))
    timeouts = contract.Timeouts(move_ms=2_500, stop_ms=100, stall_ms=200, quit_ms=300)
    played = hall.play(tmp_path, hall.order(white, black, timeouts=timeouts))
    assert (played.outcome.ending, played.outcome.loser) == (Ending.STALL, "black")
    told = [line for line in played.sent("w").splitlines() if line.startswith("go")]
    assert [line.split()[-2:] for line in told] == [["movestogo", left] for left in "212"]
    assert played.plies[2].white_clock_ns > 5_000 * 10**6
    assert "go nodes 10" in played.sent("b").splitlines()


# -- interruptions -----------------------------------------------------------------------


def interrupted(
    tmp_path: pathlib.Path, deed: Any, order: contract.GameOrder | None = None
) -> hall.Played:
    """Do something to a running game at its first think; return what was told."""
    order = order or hall.order(hall.scripted("--fault", "sleepy@1"), hall.scripted())
    done = list[bool]()
    with hall.opened(tmp_path) as made:

        def act(frame: frames.Frame) -> None:
            if frame.kind is frames.Kind.THINK and not done:
                done.append(True)
                deed(made)

        played = made.play(order, act)
        made.dead_man.wait(hall.PATIENCE)
        made.referee.wait(hall.PATIENCE)
        assert hall.survivors(order.game) == []
    assert done
    assert played.finished is None
    return played


def test_the_links_kill_is_an_interruption(tmp_path: pathlib.Path) -> None:
    """An operator's abort names its reason; no engine is blamed."""
    played = interrupted(tmp_path, lambda made: made.say("kill operator: abort"))
    assert played.interrupted == {
        "cause": "operator: abort",
        "evidence": "said by the engines' supervisor",
    }


def test_a_shutdown_is_an_interruption(tmp_path: pathlib.Path) -> None:
    """SIGTERM to dead man, referee and engines at once, as a shutdown does, blames nobody."""

    def shut_down(made: hall.Hall) -> None:
        made.referee.terminate()
        for pid in harness.children(made.dead_man.pid):
            os.kill(pid, signal.SIGTERM)
        made.dead_man.terminate()

    played = interrupted(tmp_path, shut_down)
    assert played.interrupted is not None
    assert played.interrupted["cause"].startswith("shutdown")


def test_a_lost_dead_man_is_an_interruption(tmp_path: pathlib.Path) -> None:
    """The referee kills the engines' groups itself; children in them die too."""
    order = hall.order(
        answers("import subprocess; subprocess.Popen(['sleep', '300']); time.sleep(300)"),
        hall.scripted(),
    )
    played = interrupted(tmp_path, lambda made: made.dead_man.kill(), order)
    assert played.interrupted is not None
    assert played.interrupted["cause"] == "engines' supervisor lost"


def test_a_killed_referee_leaves_nothing(tmp_path: pathlib.Path) -> None:
    """The dead man sees the referee's end, writes it down and kills."""
    played = interrupted(tmp_path, lambda made: made.referee.kill())
    assert played.interrupted is None


def test_a_lost_link_ends_everything(tmp_path: pathlib.Path) -> None:
    """When the link's ends are closed, referee and dead man clean up by themselves."""
    order = hall.order(hall.scripted("--fault", "sleepy@1"), hall.scripted())
    with hall.opened(tmp_path) as made:
        made.channel.send(frames.Kind.ORDER, order.encode().encode())
        while True:
            frame = made.channel.receive(hall.PATIENCE)
            assert frame is not None
            if frame.kind is frames.Kind.THINK:
                break
    assert hall.survivors(order.game) == []  # whoever was first: the dead man, or engines by EOF
    assert None not in (made.referee.poll(), made.dead_man.poll())


def test_a_referee_that_waits_for_its_order_ends_with_the_link(tmp_path: pathlib.Path) -> None:
    """A referee in reserve costs nothing and leaves quietly."""
    with hall.opened(tmp_path) as made:
        pass
    assert made.referee.returncode == 0


def test_an_opening_that_cannot_be_played_is_refused(tmp_path: pathlib.Path) -> None:
    """A bad book move interrupts before any engine is started, and names the move."""
    order = hall.order(hall.scripted(), hall.scripted(), opening=contract.Opening(moves=("e2e5",)))
    with hall.opened(tmp_path) as made:
        played = made.play(order)
    assert played.interrupted is not None
    assert played.interrupted["cause"] == "order refused"
    assert "e2e5" in played.interrupted["evidence"]


def test_secrets_of_the_farm_do_not_reach_engines(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine's environment holds what it needs and nothing of the farm's."""
    monkeypatch.setenv("FARM_REDIS_URL", "redis://:secret@host/0")
    peek = answers("import os; sys.stderr.write(repr(dict(os.environ))); sys.exit(1)")
    played = hall.play(tmp_path, hall.order(peek, hall.scripted()))
    assert "PATH" in played.report("white").stderr_tail
    assert "secret" not in played.report("white").stderr_tail


def test_an_engine_without_chess960_is_refused_at_its_handshake(tmp_path: pathlib.Path) -> None:
    """FRC-1c: it is no crash; the record says what it lacks."""
    plain = answers('say("bestmove e2e4")', "uciok")
    order = hall.order(plain, hall.scripted(), variant="fischerandom")
    outcome = hall.play(tmp_path, order).outcome
    assert (outcome.loser, outcome.refused) == ("white", True)
    assert "UCI_Chess960" in outcome.note
    assert not verdict.is_crash(outcome)


def test_fischerandom_castling_is_king_takes_rook(tmp_path: pathlib.Path) -> None:
    """Chess960 is switched on and castling is written as its engines write it."""
    offer = "option name UCI_Chess960 type check default false\\nuciok"
    castling = answers('say("bestmove f1g1")', offer)
    order = hall.order(
        castling,
        hall.scripted("--fault", "none@2"),
        variant="fischerandom",
        opening=contract.Opening(fen="5k2/8/8/8/8/8/8/5KR1 w G - 0 1"),
    )
    played = hall.play(tmp_path, order)
    assert [ply.san for ply in played.plies] == ["O-O+"]


def test_an_engine_that_never_answers_was_late_by_what_it_took_beyond_its_clock(
    tmp_path: pathlib.Path,
) -> None:
    """What the host has to account for, if it was to blame, leaves the clock itself out."""
    order = hall.order(answers("pass"), KNIGHTS, time_control=SHORT, time_margin_ms=30)
    played = hall.play(tmp_path, order)
    assert played.outcome.ending is Ending.STALL
    assert played.finished is not None
    late = played.finished["late"]
    assert late["late_ns"] == late["think_ns"] - 430_000_000
    assert late["late_ns"] >= 400_000_000  # until `stop`, and until the stall


@pytest.mark.parametrize(
    ("fen", "plies", "left"),
    [
        (None, 3, {"white": 8, "black": 9}),
        (None, 4, {"white": 8, "black": 8}),
        ("4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 1", 3, {"white": 9, "black": 8}),
    ],
)
def test_the_books_moves_count_for_the_period_of_who_made_them(
    fen: str | None, plies: int, left: dict[contract.Side, int]
) -> None:
    """Ten moves in a period: the clocks begin where the book has left each side."""
    opening = contract.Opening(fen=fen, moves=("e7e6", "e2e3", "e8e7", "e1e2")[:plies])
    control = contract.TimeControl(base_ms=60_000, moves=10)
    order = hall.order(KNIGHTS, KNIGHTS, opening=opening, time_control=control)
    clocks = clock.of_order(order)
    assert {side: own.moves_to_go for side, own in clocks.items()} == left
