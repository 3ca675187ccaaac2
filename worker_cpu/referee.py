"""The referee: plays a game between two engine processes, and judges it.

``python -m worker_cpu.referee --link-fd N --deadman-fd N [--cpus 0] [--engine-cpus 1,2]``

It may be started ahead of its game: it waits for its order on the link's socket. It ends
with its game, unless the order lets engines stay (``keep``): then it waits for the next
one. No Redis, no Celery, no log here. Invariants (DESIGN §3, §4):

* each ply of a journaled order is with the link before the next clock starts (it waits
  for GO_ON, with both clocks stopped); the last ply comes before the outcome;
* a move that came after the flag is not played, even if it mates (S16-15a, CUP-5b);
* an engine's end is a verdict only after the dead man was asked whose deed it was;
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
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import chess

from orchestrator import contract, errors
from orchestrator.arbiter import board, clock, verdict
from orchestrator.arbiter.adjudication import judge
from worker_cpu import desk, frames, kept, plies, promptness, resume, start, tablebases, thinking
from worker_cpu.protocols import base
from worker_cpu.seats import deadman, local, sandbox

LAST_WORDS_SECONDS = 10.0  # s: how long an interrupted referee waits for a slow link
TOLD_AHEAD_NS = 5_000_000_000  # ns: so often at most a match's link hears of a later stall
_NS = 1_000_000  # ns per ms


class Game:
    """One game at a desk, from its order to its outcome."""

    def __init__(
        self,
        table: desk.Desk,
        order: contract.GameOrder,
        seated: Mapping[contract.Side, base.Handshake],
        confinement: sandbox.Confinement | None = None,
    ) -> None:
        """Set up the opening; raise ``BookError`` when it cannot be played.

        ``seated`` are the handshakes of engines that were kept.
        """
        self.board = board.GameBoard(order.opening, order.variant)
        self._table, self._order = table, order
        self._start = start.Start(table, order, self.board, confinement, seated)
        self._players: dict[contract.Side, base.Player] = {}
        self._clocks = clocks(order)
        self._tables = tablebases.open_for(order)
        self._judge = judge.Judge(order.adjudication, self._tables)
        self._ended = resume.resume(order, self.board, self._judge, self._clocks)
        self._offers: dict[contract.Side, bool] = {"white": False, "black": False}
        self._reads_scores = order.journaled or self._judge.wants_scores
        self._spells = True
        self._kept: list[plies.Played] = []
        self._thinking: contract.Side | None = None
        self._last_san = ""
        self._last_stop_ns = 0
        self._announced_ns = 0
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
            wanted = any(player.wants_san for player in self._players.values())
            self._spells = self._order.journaled or wanted
            quiet_memory()
        while outcome is None:
            outcome = self._ply()
        return outcome

    def reports(self) -> dict[contract.Side, contract.EngineReport]:
        """Return what is known of both engines."""
        return self._start.reports()

    def hands(self) -> Mapping[contract.Side, base.Handshake]:
        """Return the handshakes of the engines that run."""
        return self._start.hands()

    def staying(self, outcome: contract.Outcome) -> list[contract.Side]:
        """Return the sides whose engine may play the next order, too: idle, without a fault."""
        ready = [side for side, hand in self.hands().items() if _goes_on(hand)]
        faulty = outcome.loser if outcome.ending in kept.FAULTS else None
        ended = [seat.side for seat in self._table.ended]
        busy = [self._thinking, faulty, *ended]
        return [side for side in self._order.keep if side in ready and side not in busy]

    def close(self) -> None:
        """Close what the game had open."""
        if self._tables is not None:
            self._tables.close()

    def remarks(self) -> list[str]:
        """Return what the record has to say beside: tables that were asked for in vain."""
        return [] if self._tables is None else list(self._tables.remarks)

    def _ply(self) -> contract.Outcome | None:
        """Let one engine move; return the outcome when the game has ended."""
        side = self.board.turn
        seat, player = self._table.seats[side], self._players[side]
        command = player.go(self._clocks, self._last_san)
        self._table.drain(seat)
        aside = player.aside(seat.take_aside())
        if aside.ends is not None:
            return self._ended_by(side, aside.ends)
        self._offers[side] = aside.offers_draw
        allowance_ns, timeouts = self._clocks[side].allowance_ns(), self._order.timeouts
        now = time.monotonic_ns()
        stall_ns = now + allowance_ns + (timeouts.stop_ms + timeouts.stall_ms) * _NS
        stall_ns += seat.slack_ns
        announcement = self._announcement(side, now, stall_ns)
        self._thinking = side
        thought = thinking.think(
            self._table, seat, player, command, announcement, allowance_ns, timeouts
        )
        if isinstance(thought, thinking.Left):
            return self._table.disconnected(thought.seat)
        if isinstance(thought, thinking.Unanswered):
            return self._unanswered(side, thought)
        self._thinking = None
        seat.set_aside(thought.rest)
        return self._answered(side, thought)

    def _announcement(self, side: contract.Side, now: int, stall_ns: int) -> bytes:
        """Return THINK's JSON; where nobody looks on only a later stall is told, in advance."""
        if not self._order.traffic:
            if stall_ns <= self._announced_ns:
                return b""
            self._announced_ns = stall_ns = stall_ns + TOLD_AHEAD_NS
        white, black = self._clocks["white"], self._clocks["black"]
        return (
            f'{{"ply":{self.board.ply + 1},"side":"{side}",'
            f'"white_clock_ns":{white.remaining_ns},"black_clock_ns":{black.remaining_ns},'
            f'"monotonic_ns":{now},"stall_ns":{stall_ns}}}'
        ).encode()

    def _unanswered(self, side: contract.Side, thought: thinking.Unanswered) -> contract.Outcome:
        self._table.asked(self._table.seats[side], wait_ms=0)
        think_ns = self._charged(side, thought)
        self._note_late(side, think_ns, think_ns - self._clocks[side].allowance_ns())
        if thought.begun:  # it did answer, but never ended its line
            return verdict.time(side, "an answer without a line end")
        waited = think_ns // _NS
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
        charge = own.charge(self._charged(side, thought))
        if charge.flagged:
            self._note_late(side, charge.think_ns, charge.think_ns - allowed)
            text = f"{charge.think_ns / _NS:.3f} ms of {allowed / _NS:.3f} ms"
            return verdict.time(side, text)
        player = self._players[side]
        reply = player.reply(thought.line)
        if reply.kind != "move":
            return self._ended_by(side, reply)
        move = player.read_move(reply.text)
        if move is None:
            return verdict.illegal(side, reply.text or "(no move)")
        self._push(move)
        search = self._search(side, thought.output) if self._reads_scores else None
        score = None if search is None else search.score
        ruled = self._judge.rule(self.board.position(), self.board.ply, score)
        outcome = self.board.ending() or ruled
        self._hear_offer(side, thought)
        if outcome is None and self._order.agreed_draws and all(self._offers.values()):
            outcome = verdict.agreement()
        if self._order.recorded:
            self._tell(self._played(side, reply, thought, charge), search)
        self._last_stop_ns = thought.stop_ns
        if outcome is None and self._order.journaled:
            self._wait_for_link()
        return outcome

    def _charged(
        self, side: contract.Side, thought: thinking.Answered | thinking.Unanswered
    ) -> int:
        """Return what the engine took, by the clock that stands beside it."""
        return self._table.seats[side].charged_ns(thought.start_ns, thought.stop_ns)

    def _note_late(self, side: contract.Side, think_ns: int, late_ns: int) -> None:
        """Note a flag that this host may be to blame for: of an engine that runs here."""
        if not self._order.engine(side).box:
            self.late = {"think_ns": think_ns, "late_ns": late_ns}

    def _played(
        self,
        side: contract.Side,
        reply: base.Reply,
        thought: thinking.Answered,
        charge: clock.Charge,
    ) -> plies.Played:
        gap_ns = thought.start_ns - self._last_stop_ns if self._last_stop_ns else 0
        return plies.Played(
            ply=self.board.ply,
            side=side,
            move=self.board.moves[-1],
            reply=reply,
            output=thought.output,
            charge=charge,
            start_ns=thought.start_ns,
            gap_ns=gap_ns,
            waited_ns=self._waited_ns,
            white_clock_ns=self._clocks["white"].remaining_ns,
            black_clock_ns=self._clocks["black"].remaining_ns,
            counters=self._judge.counters(self.board.position(), self.board.ply),
            offers_draw=self._offers[side],
            network_ns=self._table.seats[side].network_ns,
        )

    def _hear_offer(self, side: contract.Side, thought: thinking.Answered) -> None:
        player = self._players[side]
        if player.aside(thought.output).offers_draw or player.aside(thought.rest).offers_draw:
            self._offers[side] = True

    def _push(self, move: chess.Move) -> None:
        """Play a move; its SAN is worked out only where somebody asks for it now."""
        if self._spells:
            self._last_san = self.board.push(move)
        else:
            self.board.play(move)
            self._last_san = self.board.moves[-1]

    def _search(self, side: contract.Side, output: bytes) -> base.Search:
        return plies.search(self._players[side], output, side, self._order.engine(side))

    def _tell(self, ply: plies.Played, search: base.Search | None) -> None:
        """Send a journaled ply at once; keep any other."""
        if self._order.journaled:
            assert search is not None
            payload = plies.payload(ply, self._last_san, search)
            self._sent_ns = time.monotonic_ns()
            self._table.send_ply(payload)
        else:
            self._kept.append(ply.kept())

    def tell_kept(self) -> None:
        """Write down the plies that were kept, and send them."""
        sans = self.board.sans() if self._kept else ()
        for ply in self._kept:
            search = self._search(ply.side, ply.output)
            payload = plies.payload(ply, sans[ply.ply - 1], search)
            self._table.send(frames.Kind.PLY, payload)

    def _wait_for_link(self) -> None:
        """Wait for GO_ON with both clocks stopped; the young garbage goes meanwhile."""
        gc.collect(0)
        self._table.wait_for_go_on()
        self._waited_ns = time.monotonic_ns() - self._sent_ns


def _goes_on(hand: base.Handshake) -> bool:
    return hand.reusable and hand.phase is base.Phase.READY


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
    if gc.isenabled():
        gc.collect()
        gc.freeze()
        gc.disable()


def _reports(reports: dict[contract.Side, contract.EngineReport]) -> dict[str, Any]:
    return {side: report.model_dump(mode="json") for side, report in reports.items()}


def _json(value: Any) -> bytes:
    return contract.dumps(value).encode(errors="replace")


# -- the process -------------------------------------------------------------------------


def referee(
    table: desk.Desk, cpus: Sequence[int] | None, confinement: sandbox.Confinement | None = None
) -> None:
    """Wait for an order, play it, say how it ended; go on while engines may stay."""
    order = _next_order(table)
    table.dead_man.hello()
    engines = kept.Kept(table)
    while order is not None:
        table.traffic = order.traffic
        game = Game(table, order, engines.seat(order), confinement)
        outcome = game.play(cpus)
        game.tell_kept()
        staying = game.staying(outcome) if order.keep else []
        reports = dismiss(table, game.reports(), order.timeouts.quit_ms, staying)
        engines.keep(order, staying, game.hands())
        finished = _reports(reports) | {
            "outcome": outcome.model_dump(mode="json"),
            "final_fen": game.board.fen(),
            "plies": game.board.ply,
            "remarks": game.remarks(),
            "late": game.late,
        }
        table.send(frames.Kind.FINISHED, _json(finished))
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
    kept.kill_if_orphaned(table, error)
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
    promptness.run_at_once()
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
