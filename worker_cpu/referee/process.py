"""The referee: the process that plays games between two engine processes, and judges them.

``python -m worker_cpu.referee.process --link-fd N --deadman-fd N [--cpus 0] [--engine-cpus 1,2]``
(``1,2/3,4`` where each engine has its own)

Where many games share few cores one process plays several of them (both descriptors once for
each), every game in a thread of its own: they share its memory, and its start.

It may be started ahead of its game: it waits for its order on the link's socket. It ends
with its game (``game``), unless the order lets engines stay (``keep``): then it waits for
the next one. No Redis, no Celery, no log here. Invariants:

* the last ply comes before the outcome, and a game has one outcome or one interruption;
* it ends when the link is gone; the dead man then cleans up. When the dead man is gone,
  the referee kills the engines it knows itself, and the game is interrupted;
* games of one process have nothing in common but its memory and its interpreter, which each hands
  on after ``SWITCH_SECONDS``, whatever its engines write.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import local, sandbox, supervisor_client
from worker_cpu.referee import engine_reuse, io_loop
from worker_cpu.referee import game as referee_game
from worker_cpu.wire import errors as wire_errors
from worker_cpu.wire import frames

LAST_WORDS_SECONDS = 10.0  # s: how long an interrupted referee waits for a slow link
# s: so long a game computes while another one of its process waits to; Python's default is 5 ms
SWITCH_SECONDS = 0.0002
PRIORITY = 1  # of 1 to 99: before every ordinary process, behind every other real-time one


class Garbage:
    """Collects what the finished games of a process leave behind.

    All of it behind each game; where several are played only what is young, and all of it behind as
    many games: a whole collection takes milliseconds, in which no other game goes on.
    """

    def __init__(self, games: int) -> None:
        self._games, self._count = games, itertools.count(1)

    def collect(self) -> None:
        """Collect behind a game."""
        gc.collect(0 if next(self._count) % self._games else 2)


def referee(
    loop: io_loop.IoLoop,
    garbage: Garbage,
    cpus: Sequence[Sequence[int]] = (),
    confinement: sandbox.Confinement | None = None,
) -> None:
    """Wait for an order, play it, say how it ended; go on while engines may stay."""
    order = _next_order(loop)
    loop.dead_man.hello()
    engines = engine_reuse.EnginePool(loop)
    while order is not None:
        loop.traffic, loop.excuses = order.traffic, order.excuses
        game = referee_game.Game(loop, order, engines.seat(order), confinement)
        outcome = game.play(cpus)
        game.tell_kept(outcome)
        staying = game.staying(outcome) if order.keep else []
        reports = dismiss(loop, game.reports(), order.timeouts.quit_ms, staying)
        engines.keep(order, staying, game.hands())
        finished = referee_game.as_json(reports) | {
            "outcome": outcome.model_dump(mode="json"),
            "final_fen": game.board.fen(),
            "plies": game.board.ply,
            "remarks": game.remarks(),
            "kept": staying,
            "late": game.late,
        }
        loop.send(frames.Kind.FINISHED, referee_game.encoded(finished))
        game.close()
        garbage.collect()
        order = _next_order(loop) if order.keep else None
    engines.dismiss()


def _next_order(loop: io_loop.IoLoop) -> contract.GameOrder | None:
    """Wait for the link's next order, ``None`` when there is none any more."""
    frame = loop.channel.receive()
    if frame is not None and frame.kind is frames.Kind.DISMISS:
        return None
    if frame is None or frame.kind is not frames.Kind.ORDER:
        raise frames.FrameError(f"an ORDER was expected, not {frame}")
    return contract.GameOrder.decode(frame.payload)


def dismiss(
    loop: io_loop.IoLoop,
    reports: Mapping[contract.Side, contract.EngineReport],
    quit_ms: int,
    staying: Sequence[contract.Side] = (),
) -> dict[contract.Side, contract.EngineReport]:
    """Let go of the engines that do not stay, and report how they ended."""
    seats = dict(loop.seats)
    leaving = [seat for side, seat in seats.items() if side not in staying]
    ends = engine_reuse.let_go(loop, leaving, quit_ms)
    finished = {
        side: report.model_copy(update=_end(seats[side], ends)) if side in seats else report
        for side, report in reports.items()
    }
    for seat in leaving:
        loop.unseat(seat)
    return finished


def _end(seat: local.LocalSeat, ends: Mapping[local.LocalSeat, str]) -> dict[str, str]:
    tail = seat.stderr_tail.decode(errors="replace").replace("\0", "")
    return {"exit": ends.get(seat, ""), "stderr_tail": tail}


def run(
    loop: io_loop.IoLoop,
    garbage: Garbage,
    cpus: Sequence[Sequence[int]] = (),
    confinement: sandbox.Confinement | None = None,
) -> int:
    """Referee one game, or one after the other; return the exit status of the process."""
    try:
        referee(loop, garbage, cpus, confinement)
    except frames.ChannelClosedError:
        return 0  # nobody is left to tell; the dead man sees our end
    except wire_errors.InterruptedGameError as error:
        return _interrupted(loop, error)
    except (supervisor_client.DeadManKillsError, supervisor_client.DeadManLostError) as error:
        return _interrupted(loop, io_loop.interruption(error))
    except errors.BookError as error:
        return _interrupted(loop, wire_errors.InterruptedGameError("order refused", str(error)))
    except Exception:  # the top of the process: the link must hear of a bug, too
        evidence = traceback.format_exc()
        return _interrupted(loop, wire_errors.InterruptedGameError("referee failed", evidence))
    return 0


def _interrupted(loop: io_loop.IoLoop, error: wire_errors.InterruptedGameError) -> int:
    engine_reuse.kill_if_orphaned(loop, error)
    fields = {"cause": error.cause, "evidence": error.evidence}
    payload = referee_game.encoded(fields | ({"excused": error.excused} if error.excused else {}))
    try:
        loop.forward_torn()
        loop.channel.offer(frames.Kind.INTERRUPTED, payload)
        loop.channel.flush(LAST_WORDS_SECONDS)
    except frames.ChannelClosedError:
        return 0
    return errors.HostError.exit_code


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments of a referee."""
    parser = argparse.ArgumentParser(prog="worker_cpu.referee.process", allow_abbrev=False)
    parser.add_argument("--link-fd", type=int, required=True, action="append")
    parser.add_argument("--deadman-fd", type=int, required=True, action="append")
    parser.add_argument("--cpus", type=_cpus, help="the referee's own cores")
    parser.add_argument(
        "--engine-cpus", type=_cpu_sets, default=(), help="the engines' cores: both's, or A/B"
    )
    parser.add_argument("--confine", type=sandbox.Confinement.decode, help="the engines' sandbox")
    return parser.parse_args(arguments)


def run_at_once() -> None:
    """Ask to run, when an engine has answered, before anybody else on this core.

    A process of the ordinary kind that is woken waits for the time slice of whoever runs on its
    core, 3 ms and more. A referee that may (root, CAP_SYS_NICE, or RLIMIT_RTPRIO) asks for the
    lowest real-time priority: it sleeps while engines think, so it takes nothing from them but
    the moments in which it reads. Its children would not have the priority. Without the right
    to it nothing changes.
    """
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))


def main(parsed: argparse.Namespace) -> int:
    """Run the referee's process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # link and dead man decide when it ends
    if parsed.cpus:
        os.sched_setaffinity(0, parsed.cpus)
    first, *others = zip(parsed.link_fd, parsed.deadman_fd, strict=True)
    if others:
        sys.setswitchinterval(SWITCH_SECONDS)
    garbage = Garbage(1 + len(others))
    threads = [threading.Thread(target=_serve, args=(parsed, garbage, *pair)) for pair in others]
    for thread in threads:
        thread.start()
    status = _serve(parsed, garbage, *first)
    for thread in threads:
        thread.join()
    return status


def _serve(parsed: argparse.Namespace, garbage: Garbage, link_fd: int, deadman_fd: int) -> int:
    """Be one game's referee, or that of one game after the other."""
    run_at_once()  # of this thread
    channel = frames.Channel(socket.socket(fileno=link_fd))
    dead_man = supervisor_client.DeadMan(socket.socket(fileno=deadman_fd))
    loop = io_loop.IoLoop(channel, dead_man)
    try:
        return run(loop, garbage, parsed.engine_cpus, parsed.confine)
    finally:
        loop.close()


def _cpu_sets(text: str) -> list[list[int]]:
    return [_cpus(part) for part in text.split("/")]


def _cpus(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    sys.exit(main(options()))
