"""The referee: the process that plays games between two engine processes, and judges them.

``python -m worker_cpu.referee --link-fd N --deadman-fd N [--cpus 0] [--engine-cpus 1,2]``

It may be started ahead of its game: it waits for its order on the link's socket. It ends
with its game (``playing``), unless the order lets engines stay (``keep``): then it waits for
the next one. No Redis, no Celery, no log here. Invariants:

* the last ply comes before the outcome, and a game has one outcome or one interruption;
* it ends when the link is gone; the dead man then cleans up. When the dead man is gone,
  the referee kills the engines it knows itself, and the game is interrupted.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence

from orchestrator import contract, errors
from worker_cpu import desk, frames, interrupted, kept, playing, promptness
from worker_cpu.seats import deadman_client, local, sandbox

LAST_WORDS_SECONDS = 10.0  # s: how long an interrupted referee waits for a slow link


def referee(
    table: desk.Desk, cpus: Sequence[int] | None, confinement: sandbox.Confinement | None = None
) -> None:
    """Wait for an order, play it, say how it ended; go on while engines may stay."""
    order = _next_order(table)
    table.dead_man.hello()
    engines = kept.Kept(table)
    while order is not None:
        table.traffic, table.excuses = order.traffic, order.excuses
        game = playing.Game(table, order, engines.seat(order), confinement)
        outcome = game.play(cpus)
        game.tell_kept()
        staying = game.staying(outcome) if order.keep else []
        reports = dismiss(table, game.reports(), order.timeouts.quit_ms, staying)
        engines.keep(order, staying, game.hands())
        finished = playing.as_json(reports) | {
            "outcome": outcome.model_dump(mode="json"),
            "final_fen": game.board.fen(),
            "plies": game.board.ply,
            "remarks": game.remarks(),
            "late": game.late,
        }
        table.send(frames.Kind.FINISHED, playing.encoded(finished))
        game.close()
        gc.collect()
        order = _next_order(table) if order.keep else None
    engines.dismiss()


def _next_order(table: desk.Desk) -> contract.GameOrder | None:
    """Wait for the link's next order, ``None`` when there is none any more."""
    frame = table.channel.receive()
    if frame is not None and frame.kind is frames.Kind.DISMISS:
        return None
    if frame is None or frame.kind is not frames.Kind.ORDER:
        raise frames.FrameError(f"an ORDER was expected, not {frame}")
    return contract.GameOrder.decode(frame.payload)


def dismiss(
    table: desk.Desk,
    reports: Mapping[contract.Side, contract.EngineReport],
    quit_ms: int,
    staying: Sequence[contract.Side] = (),
) -> dict[contract.Side, contract.EngineReport]:
    """Let go of the engines that do not stay, and report how they ended."""
    seats = dict(table.seats)
    leaving = [seat for side, seat in seats.items() if side not in staying]
    ends = kept.let_go(table, leaving, quit_ms)
    finished = {
        side: report.model_copy(update=_end(seats[side], ends)) if side in seats else report
        for side, report in reports.items()
    }
    for seat in leaving:
        table.unseat(seat)
    return finished


def _end(seat: local.LocalSeat, ends: Mapping[local.LocalSeat, str]) -> dict[str, str]:
    tail = seat.stderr_tail.decode(errors="replace").replace("\0", "")
    return {"exit": ends.get(seat, ""), "stderr_tail": tail}


def run(
    table: desk.Desk, cpus: Sequence[int] | None, confinement: sandbox.Confinement | None = None
) -> int:
    """Referee one game, or one after the other; return the exit status of the process."""
    try:
        referee(table, cpus, confinement)
    except frames.ChannelClosedError:
        return 0  # nobody is left to tell; the dead man sees our end
    except interrupted.InterruptedGameError as error:
        return _interrupted(table, error)
    except (deadman_client.DeadManKillsError, deadman_client.DeadManLostError) as error:
        return _interrupted(table, desk.interruption(error))
    except errors.BookError as error:
        return _interrupted(table, interrupted.InterruptedGameError("order refused", str(error)))
    except Exception:  # the top of the process: the link must hear of a bug, too
        evidence = traceback.format_exc()
        return _interrupted(table, interrupted.InterruptedGameError("referee failed", evidence))
    return 0


def _interrupted(table: desk.Desk, error: interrupted.InterruptedGameError) -> int:
    kept.kill_if_orphaned(table, error)
    told = {"cause": error.cause, "evidence": error.evidence}
    words = playing.encoded(told | ({"excused": error.excused} if error.excused else {}))
    try:
        table.channel.offer(frames.Kind.INTERRUPTED, words)
        table.channel.flush(LAST_WORDS_SECONDS)
    except frames.ChannelClosedError:
        return 0
    return errors.HostError.exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the referee's process."""
    parser = argparse.ArgumentParser(prog="worker_cpu.referee", allow_abbrev=False)
    parser.add_argument("--link-fd", type=int, required=True)
    parser.add_argument("--deadman-fd", type=int, required=True)
    parser.add_argument("--cpus", type=_cpus, help="the referee's own cores")
    parser.add_argument("--engine-cpus", type=_cpus, help="the engines' cores")
    parser.add_argument("--confine", type=sandbox.Confinement.decode, help="the engines' sandbox")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # link and dead man decide when it ends
    if options.cpus:
        os.sched_setaffinity(0, options.cpus)
    promptness.run_at_once()
    channel = frames.Channel(socket.socket(fileno=options.link_fd))
    dead_man = deadman_client.DeadMan(socket.socket(fileno=options.deadman_fd))
    table = desk.Desk(channel, dead_man)
    try:
        return run(table, options.engine_cpus, options.confine)
    finally:
        table.close()


def _cpus(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
