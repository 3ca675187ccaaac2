"""The referee: plays one game between two engine processes, and judges it.

``python -m worker_cpu.referee --link-fd N --deadman-fd N [--cpus 0] [--engine-cpus 1,2]``

It may be started ahead of its game: it waits for its order on the link's socket. No
Redis, no Celery, no log here. Invariants (DESIGN §3, §4):

* each ply of a journaled order is with the link before the next clock starts (it waits
  for GO_ON, with both clocks stopped); the last ply comes before the outcome;
* a move that came after the flag is not played, even if it mates (S16-15a, CUP-5b);
* an engine's end is a verdict only after the dead man was asked whose deed it was;
* it ends when the link is gone; the dead man then cleans up. When the dead man is gone,
  the referee kills the engines it knows itself, and the game is interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from orchestrator import contract, errors
from orchestrator.arbiter import board, clock, verdict
from orchestrator.arbiter import score as scores
from orchestrator.arbiter.adjudication import judge
from worker_cpu import desk, frames, resume, start, tablebases, thinking
from worker_cpu.protocols import base
from worker_cpu.seats import deadman, local, sandbox

LAST_WORDS_SECONDS = 10.0  # s: how long an interrupted referee waits for a slow link
_NS = 1_000_000  # ns per ms


class Game:
    """One game at a desk, from its order to its outcome."""

    def __init__(
        self,
        table: desk.Desk,
        order: contract.GameOrder,
        confinement: sandbox.Confinement | None = None,
    ) -> None:
        """Set up the opening; raise ``BookError`` when it cannot be played."""
        self.board = board.GameBoard(order.opening, order.variant)
        self._table, self._order = table, order
        self._start = start.Start(table, order, self.board, confinement)
        self._players: dict[contract.Side, base.Player] = {}
        self._clocks = clocks(order)
        self._tables = tablebases.open_for(order)
        self._judge = judge.Judge(order.adjudication, self._tables)
        self._ended = resume.resume(order, self.board, self._judge, self._clocks)
        self._offers: dict[contract.Side, bool] = {"white": False, "black": False}
        self._last_san = ""
        self._last_stop_ns = 0
        self._sent_ns = 0
        self._waited_ns = 0
        self.late: dict[str, int] | None = None  # of a flag: what it took, and beyond the flag

    def play(self, cpus: Sequence[int] | None) -> contract.Outcome:
        """Play to the end; raise ``InterruptedGameError`` where there is no verdict."""
        if self._ended is not None:
            return self._ended  # an interruption took the word of its end, not the end
        outcome = self._start.run(cpus)
        if outcome is None:
            self._table.send(frames.Kind.READY, _json(_reports(self._start.reports())))
            self._players = self._start.players()
            quiet_memory()
        while outcome is None:
            outcome = self._ply()
        return outcome

    def reports(self) -> dict[contract.Side, contract.EngineReport]:
        """Return what is known of both engines."""
        return self._start.reports()

    def remarks(self) -> list[str]:
        """Return what the record has to say beside: tables that were asked for in vain."""
        return [] if self._tables is None else list(self._tables.remarks)

    def _ply(self) -> contract.Outcome | None:
        """Let one engine move; return the outcome when the game has ended."""
        side = self.board.turn
        seat, player = self._table.seats[side], self._players[side]
        command = player.go(self._clocks, self._last_san)
        announcement = self._announcement(side)
        self._table.drain(seat)
        aside = player.aside(seat.take_aside())
        if aside.ends is not None:
            return self._ended_by(side, aside.ends)
        self._offers[side] = aside.offers_draw
        allowance_ns = self._clocks[side].allowance_ns()
        thought = thinking.think(
            self._table, seat, player, command, announcement, allowance_ns, self._order.timeouts
        )
        if isinstance(thought, thinking.Left):
            return self._table.disconnected(thought.seat)
        if isinstance(thought, thinking.Unanswered):
            return self._unanswered(side, thought)
        seat.set_aside(thought.rest)
        return self._answered(side, thought)

    def _announcement(self, side: contract.Side) -> bytes:
        white, black = self._clocks["white"], self._clocks["black"]
        return (
            f'{{"ply":{self.board.ply + 1},"side":"{side}",'
            f'"white_clock_ns":{white.remaining_ns},"black_clock_ns":{black.remaining_ns},'
            '"monotonic_ns":%d,"stall_ns":%d}'
        ).encode()

    def _unanswered(self, side: contract.Side, thought: thinking.Unanswered) -> contract.Outcome:
        self._table.asked(self._table.seats[side], wait_ms=0)
        think_ns = thought.stop_ns - thought.start_ns
        late_ns = think_ns - self._clocks[side].allowance_ns()
        self.late = {"think_ns": think_ns, "late_ns": late_ns}
        if thought.begun:  # it did answer, but never ended its line
            return verdict.time(side, "an answer without a line end")
        waited = (thought.stop_ns - thought.start_ns) // _NS
        return verdict.stall(side, f"no answer within {waited} ms")

    def _ended_by(self, side: contract.Side, reply: base.Reply) -> contract.Outcome:
        """Judge a resignation, or a claim: the board bears it out, or it was false."""
        if reply.kind == "resign" or reply.result == verdict.loss_of(side):
            return verdict.resign(side)
        right = None if reply.result is None else self.board.bears_out(reply.result)
        return right or verdict.false_claim(side, reply.text)

    def _answered(self, side: contract.Side, thought: thinking.Answered) -> contract.Outcome | None:
        own = self._clocks[side]
        allowed = own.allowance_ns()
        charge = own.charge(thought.stop_ns - thought.start_ns)
        if charge.flagged:
            self.late = {"think_ns": charge.think_ns, "late_ns": charge.think_ns - allowed}
            text = f"{charge.think_ns / _NS:.3f} ms of {allowed / _NS:.3f} ms"
            return verdict.time(side, text)
        player = self._players[side]
        reply = player.reply(thought.line)
        if reply.kind != "move":
            return self._ended_by(side, reply)
        move = player.read_move(reply.text)
        if move is None:
            return verdict.illegal(side, reply.text or "(no move)")
        self._last_san = self.board.push(move)
        search = self._search(side, thought)
        ruling = self._judge.take(self.board.position(), self.board.ply, search.score)
        outcome = self.board.ending() or ruling.outcome
        self._hear_offer(side, thought)
        if outcome is None and self._order.agreed_draws and all(self._offers.values()):
            outcome = verdict.agreement()
        self._send_ply(side, reply, search, charge, thought.start_ns, ruling.counters)
        self._last_stop_ns = thought.stop_ns
        if outcome is None:
            self._wait_for_link()
        return outcome

    def _search(self, side: contract.Side, thought: thinking.Answered) -> base.Search:
        """Read what the engine said of its search, its score from the mover's side."""
        search = self._players[side].search(thought.output)
        if search.score is None or side == "white" or not self._order.black.white_pov:
            return search
        return dataclasses.replace(search, score=scores.white_view(search.score, "black"))

    def _hear_offer(self, side: contract.Side, thought: thinking.Answered) -> None:
        output = thought.output + thought.rest
        if self._players[side].aside(output).offers_draw:
            self._offers[side] = True

    def _send_ply(
        self,
        side: contract.Side,
        reply: base.Reply,
        search: base.Search,
        charge: clock.Charge,
        start_ns: int,
        counters: contract.Counters,
    ) -> None:
        gap_ns = start_ns - self._last_stop_ns if self._last_stop_ns else 0
        ply = {
            "schema_version": contract.SCHEMA,
            "ply": self.board.ply,
            "side": side,
            "move": self.board.moves[-1],
            "san": self._last_san,
            "think_ns": charge.think_ns,
            "margin_ns": charge.margin_ns,
            "overhead_ns": max(0, gap_ns - self._waited_ns),
            "waited_ns": gap_ns,
            "white_clock_ns": self._clocks["white"].remaining_ns,
            "black_clock_ns": self._clocks["black"].remaining_ns,
            "score": None if search.score is None else _score(search.score),
            "depth": search.depth,
            "seldepth": search.seldepth,
            "nodes": search.nodes,
            "nps": search.nps,
            "tbhits": search.tbhits,
            "hashfull": search.hashfull,
            "pv": search.pv,
            "ponder": reply.ponder,
            "counters": counters.model_dump(),
            "said": "offers a draw" if self._offers[side] else "",
        }
        payload = _json(ply)
        self._sent_ns = time.monotonic_ns()
        self._table.send_ply(payload, journaled=self._order.journaled)

    def _wait_for_link(self) -> None:
        """Wait for GO_ON with both clocks stopped; the young garbage goes meanwhile."""
        gc.collect(0)
        if self._order.journaled:
            self._table.wait_for_go_on()
        self._waited_ns = time.monotonic_ns() - self._sent_ns


def clocks(order: contract.GameOrder) -> dict[contract.Side, clock.EngineClock]:
    """Make both clocks; the book's moves count for their periods."""
    plies, black_first = len(order.opening.moves), _black_begins(order.opening)
    played = {"white": (plies + (not black_first)) // 2, "black": (plies + black_first) // 2}
    return {
        side: clock.EngineClock(
            order.control(side),
            order.margin_ms(side),
            book_moves=played[side],
            bound_ms=order.timeouts.move_ms,
        )
        for side in start.SIDES
    }


def _black_begins(opening: contract.Opening) -> bool:
    return opening.fen is not None and opening.fen.split()[1:2] == ["b"]


def quiet_memory() -> None:
    """Keep the garbage collector out of the clock's way; the game collects itself."""
    gc.collect()
    gc.freeze()
    gc.disable()


def dismiss(
    table: desk.Desk, reports: dict[contract.Side, contract.EngineReport], quit_ms: int
) -> dict[contract.Side, contract.EngineReport]:
    """Let both engines quit, kill what is left after ``quit_ms``, and report their ends.

    The outcome stands already: a dead man that is gone by now only costs the exit status.
    """
    ends: dict[contract.Side, str] = {}
    try:
        _quit(table, quit_ms)
        for side in table.seats:
            end = table.dead_man.kill(side, f"did not quit within {quit_ms} ms")
            ends[side] = f"{end.status} ({end.reason})" if end.by_farm else end.status or end.reason
        _last_stderr(table)
    except desk.InterruptedGameError as error:
        _kill_if_orphaned(table, error)
    except (deadman.DeadManKillsError, deadman.DeadManLostError) as error:
        _kill_if_orphaned(table, desk.interruption(error))
    return {
        side: report.model_copy(
            update={"exit": ends.get(side, ""), "stderr_tail": _stderr(table.seats.get(side))}
        )
        for side, report in reports.items()
    }


def _quit(table: desk.Desk, quit_ms: int) -> None:
    for seat in table.seats.values():
        if seat not in table.ended:
            table.say(seat, b"quit\n")
    deadline = time.monotonic_ns() + quit_ms * _NS
    while table.running and time.monotonic_ns() < deadline:
        table.hear(deadline - time.monotonic_ns())


def _last_stderr(table: desk.Desk) -> None:
    for seat in table.seats.values():
        while seat.read_stderr():
            pass


def _stderr(seat: local.LocalSeat | None) -> str:
    return "" if seat is None else seat.stderr_tail.decode(errors="replace").replace("\0", "")


def _kill_if_orphaned(table: desk.Desk, error: desk.InterruptedGameError) -> None:
    if error.cause == desk.DEAD_MAN_LOST:
        for seat in table.seats.values():
            deadman.kill_orphaned(seat)


def _reports(reports: dict[contract.Side, contract.EngineReport]) -> dict[str, Any]:
    return {side: report.model_dump(mode="json") for side, report in reports.items()}


def _score(score: contract.Score) -> dict[str, int | None]:
    return {"cp": score.cp, "mate": score.mate}


def _json(value: Any) -> bytes:
    return contract.dumps(value).encode(errors="replace")


# -- the process -------------------------------------------------------------------------


def referee(
    table: desk.Desk, cpus: Sequence[int] | None, confinement: sandbox.Confinement | None = None
) -> None:
    """Wait for an order, play it, and say how it ended: FINISHED or INTERRUPTED."""
    frame = table.channel.receive()
    if frame is None or frame.kind is not frames.Kind.ORDER:
        raise frames.FrameError(f"an ORDER was expected, not {frame}")
    order = contract.GameOrder.decode(frame.payload)
    table.dead_man.hello()
    game = Game(table, order, confinement)
    outcome = game.play(cpus)
    reports = dismiss(table, game.reports(), order.timeouts.quit_ms)
    finished = _reports(reports) | {
        "outcome": outcome.model_dump(mode="json"),
        "final_fen": game.board.fen(),
        "remarks": game.remarks(),
        "late": game.late,
    }
    table.send(frames.Kind.FINISHED, _json(finished))


def run(
    table: desk.Desk, cpus: Sequence[int] | None, confinement: sandbox.Confinement | None = None
) -> int:
    """Referee one game; return the exit status of the process."""
    try:
        referee(table, cpus, confinement)
    except frames.ChannelClosedError:
        return 0  # nobody is left to tell; the dead man sees our end
    except desk.InterruptedGameError as error:
        return _interrupted(table, error)
    except (deadman.DeadManKillsError, deadman.DeadManLostError) as error:
        return _interrupted(table, desk.interruption(error))
    except errors.BookError as error:
        return _interrupted(table, desk.InterruptedGameError("order refused", str(error)))
    except Exception:  # the top of the process: the link must hear of a bug, too
        evidence = traceback.format_exc()
        return _interrupted(table, desk.InterruptedGameError("referee failed", evidence))
    return 0


def _interrupted(table: desk.Desk, error: desk.InterruptedGameError) -> int:
    _kill_if_orphaned(table, error)
    words = _json({"cause": error.cause, "evidence": error.evidence})
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
    channel = frames.Channel(socket.socket(fileno=options.link_fd))
    dead_man = deadman.DeadMan(socket.socket(fileno=options.deadman_fd))
    table = desk.Desk(channel, dead_man)
    try:
        return run(table, options.engine_cpus, options.confine)
    finally:
        table.close()


def _cpus(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
