"""One game of a referee, from its order to its outcome.

Invariants: each ply of a journaled order is with the link before the next
clock starts; a move that came after the flag is not played, even if it mates (S16-15a,
CUP-5b); an engine's end is a verdict only after the dead man was asked who ended it.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import time
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.arbiter import board, clock, verdict
from orchestrator.arbiter.adjudication import judge
from worker_cpu.engines import local, sandbox
from worker_cpu.protocols import base
from worker_cpu.referee import (
    engine_reuse,
    engine_start,
    io_loop,
    plies,
    pondering,
    result,
    resume,
    search_clock,
    tablebases,
)
from worker_cpu.wire import errors, frames

TOLD_AHEAD_NS = 5_000_000_000  # ns: so often at most a match's link hears of a later stall
_NS = 1_000_000  # ns per ms


class Game:
    """One game at a desk, from its order to its outcome."""

    def __init__(
        self,
        loop: io_loop.IoLoop,
        order: contract.GameOrder,
        seated: Mapping[contract.Side, base.Handshake],
        confinement: sandbox.Confinement | None = None,
    ) -> None:
        """Set up the opening; raise ``BookError`` when it cannot be played.

        ``seated`` are the handshakes of engines that were kept.
        """
        self.board = board.GameBoard(order.opening, order.variant)
        self._loop, self._order = loop, order
        self._start = engine_start.EngineStart(loop, order, self.board, confinement, seated)
        self._players: dict[contract.Side, base.Player] = {}
        self._clocks = clock.of_order(order)
        self._tables = tablebases.open_for(order)
        self._judge = judge.Judge(order.adjudication, self._tables)
        self._ended = resume.resume(order, self.board, self._judge, self._clocks)
        self._offers: dict[contract.Side, bool] = {"white": False, "black": False}
        self._looked_on = order.journaled or order.shown
        self._reads_scores = self._looked_on or self._judge.wants_scores
        self._reporter = plies.PlyReporter(loop, order)
        self._thinking: contract.Side | None = None
        self._expected: dict[contract.Side, base.Expected] = {}
        self._searches: dict[contract.Side, pondering.Search] = {}
        self._broke_off: set[contract.Side] = set()
        self._restless: set[contract.Side] = set()
        self._core_times: dict[contract.Side, local.CoreTime] = {}
        self._last_san = ""
        self._times = result.Times()
        self._last_stop_ns = 0
        self._announced_ns = 0
        self.late: dict[str, Any] | None = None  # of a flag: when, what it took, and beyond it

    def play(self, cpus: Sequence[Sequence[int]]) -> contract.Outcome:
        """Play to the end; raise ``InterruptedGameError`` where there is no verdict.

        ``cpus`` are the cores of both engines, or of one and of the other; none: anywhere.
        """
        if self._ended is not None:
            return self._ended  # an interruption took the word of its end, not the end
        outcome = self._start.run(cpus)
        if outcome is None:
            if self._looked_on or self._order.traffic:  # else nobody looks on
                self._loop.send(frames.Kind.READY, encoded(as_json(self._start.reports())))
            self._players = self._start.players()
            self._core_times = self._watched()
            quiet_memory()
        while outcome is None:
            outcome = self._ply()
        self._rest()
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
        faulty = outcome.loser if outcome.ending in engine_reuse.FAULTS else None
        ended = [seat.side for seat in self._loop.ended]
        busy = [self._thinking, faulty, *ended, *self._restless]
        return [side for side in self._order.keep if side in ready and side not in busy]

    def close(self) -> None:
        """Close what the game had open."""
        if self._tables is not None:
            self._tables.close()

    def remarks(self) -> list[str]:
        """Return what the record has to say beside: tables in vain, searches broken off."""
        remarks = [] if self._tables is None else list(self._tables.remarks)
        return remarks + [
            f"{self._order.engine(side).name}: bestmove while it pondered, before ponderhit or stop"
            " (the protocol forbids it); it was told to search again in its turn"
            for side in io_loop.SIDES
            if side in self._broke_off
        ]

    def _ply(self) -> contract.Outcome | None:
        """Let one engine move; return the outcome when the game has ended."""
        side = self.board.turn
        seat, player = self._loop.seats[side], self._players[side]
        command = player.go(self._clocks, self._last_san)
        self._loop.drain(seat)
        pondered = self._end_search(side)
        aside = player.aside(seat.take_aside())
        if aside.ends is not None:
            return self._ended_by(side, aside.ends)
        self._offers[side] = aside.offers_draw
        self._ponder(verdict.opponent(side))
        if pondered.kind == "hit":
            command = player.ponderhit
        elif pondered.kind == "miss":
            recalled = self._recall(side, pondered)
            if isinstance(recalled, contract.Outcome):
                return recalled
            pondered = recalled
            command = player.go(self._after(side, pondered), self._last_san)
        thought = self._think(side, command, pondered)
        if isinstance(thought, contract.Outcome):
            return thought
        return self._answered(side, thought, pondered)

    def _think(
        self, side: contract.Side, command: bytes, pondered: pondering.Pondered
    ) -> search_clock.Answered | contract.Outcome:
        """Run a side's clock until it answers; return the outcome when it does not."""
        seat, timeouts = self._loop.seats[side], self._order.timeouts
        allowance_ns = self._clocks[side].allowance_ns() - pondered.spent_ns
        now = time.monotonic_ns()
        stall_ns = now + allowance_ns + (timeouts.stop_ms + timeouts.stall_ms) * _NS
        stall_ns += seat.slack_ns
        announcement = self._announcement(side, now, stall_ns, pondered)
        self._thinking = side
        if not pondered.spent_ns and side in self._core_times:
            self._core_times[side].mark()
        seat.goes_on = pondered.finder is not None
        thought = search_clock.timed_search(
            self._loop,
            seat,
            self._players[side],
            command,
            announcement,
            allowance_ns,
            timeouts,
            pondered.finder,
        )
        if isinstance(thought, search_clock.Left):
            output = None if self._order.journaled else thought.output
            return self._loop.disconnected(thought.seat, output=output)
        if isinstance(thought, search_clock.Unanswered):
            return self._unanswered(side, thought, pondered)
        self._thinking = None
        seat.set_aside(thought.rest)
        return thought

    # -- pondering -----------------------------------------------------------------------

    def _ponder(self, side: contract.Side) -> None:
        """Let the engine that has moved think on the reply it expects; no clock runs yet."""
        expected = self._expected.pop(side, None)
        if expected is None:
            return
        seat = self._loop.seats[side]
        search = pondering.Search(seat, self._players[side], expected.move)
        search.started_ns = self._loop.say(seat, expected.words)
        self._searches[side] = search

    def _end_search(self, side: contract.Side) -> pondering.Pondered:
        """Return what has become of the search that a side began in its opponent's turn."""
        search = self._searches.pop(side, None)
        pondered = pondering.NOT if search is None else search.end(self.board.last_move)
        if pondered.kind == "early":
            self._broke_off.add(side)
        return pondered

    def _recall(
        self, side: contract.Side, pondered: pondering.Pondered
    ) -> pondering.Pondered | contract.Outcome:
        """End a search in vain on the engine's clock, which starts with ``stop``."""
        stopped = self._think(side, self._players[side].stop, pondered)
        if isinstance(stopped, contract.Outcome):
            return stopped
        own, spent_ns = self._clocks[side], self._charged(side, stopped)
        if spent_ns > own.allowance_ns():
            allowed = own.allowance_ns()
            return self._flagged(side, stopped, own.charge(spent_ns), allowed)
        return pondered._replace(
            finder=None,
            spent_ns=spent_ns,
            network_ns=self._loop.seats[side].network_ns or 0,
            start_ns=stopped.start_ns,
        )

    def _after(self, side: contract.Side, pondered: pondering.Pondered) -> base.Clocks:
        """Return both clocks as they stand behind a search in vain."""
        own = copy.copy(self._clocks[side])
        own.remaining_ns -= pondered.spent_ns
        return {**self._clocks, side: own}

    def _rest(self) -> None:
        """Bring engines that still ponder to rest; who does not stop does not stay.

        The outcome stands already: a dead man that is lost by now is found by who lets go.
        """
        finders: dict[local.LocalSeat, base.Finder] = {}
        for side, search in self._searches.items():
            seat = self._loop.seats[side]
            finder = search.end("").finder
            if finder is not None and seat not in self._loop.ended:
                self._loop.say(seat, self._players[side].stop)
                finders[seat] = finder
        self._searches.clear()
        self._restless = {seat.side for seat in finders}
        deadline = time.monotonic_ns() + self._order.timeouts.quit_ms * _NS
        with contextlib.suppress(errors.InterruptedGameError):
            while self._restless.intersection(self._order.keep):
                patience_ns = deadline - time.monotonic_ns()
                if patience_ns <= 0:
                    return
                for heard in self._loop.hear(patience_ns):
                    finder = finders.get(heard.seat)
                    if finder is not None and finder.feed(heard.data) is not None:
                        self._restless.discard(heard.seat.side)
                self._restless -= {seat.side for seat in self._loop.ended}

    # -- the clock -----------------------------------------------------------------------

    def _announcement(
        self, side: contract.Side, now: int, stall_ns: int, pondered: pondering.Pondered
    ) -> bytes:
        """Return THINK's JSON; where nobody looks on only a later stall is told, in advance."""
        if not self._order.traffic and not self._order.shown:
            if stall_ns <= self._announced_ns:
                return b""
            self._announced_ns = stall_ns = stall_ns + TOLD_AHEAD_NS
        clocks = self._after(side, pondered) if pondered.spent_ns else self._clocks
        white, black = clocks["white"], clocks["black"]
        return (
            f'{{"ply":{self.board.ply + 1},"side":"{side}",'
            f'"white_clock_ns":{white.remaining_ns},"black_clock_ns":{black.remaining_ns},'
            f'"monotonic_ns":{now},"stall_ns":{stall_ns}}}'
        ).encode()

    def _unanswered(
        self,
        side: contract.Side,
        thought: search_clock.Unanswered,
        pondered: pondering.Pondered,
    ) -> contract.Outcome:
        self._loop.asked(self._loop.seats[side], wait_ms=0)
        self._loop.seats[side].confirm_silence()
        think_ns = self._charged(side, thought) + pondered.spent_ns
        self._note_late(side, thought, think_ns, think_ns - self._clocks[side].allowance_ns())
        if thought.begun:  # it did answer, but never ended its line
            return verdict.time(side, "an answer without a line end")
        waited = think_ns // _NS
        if pondered.kind == "miss" and pondered.finder is not None:
            text = f"it pondered; no bestmove within {waited} ms of stop"
        else:
            text = f"no answer within {waited} ms"
        return verdict.stall(side, self._with_core_time(side, text))

    def _watched(self) -> dict[contract.Side, local.CoreTime]:
        """Return what is to tell whose a loss on time was, of engines here that no pulse watches.

        A hall's games, which are journaled, have the pulse (``host/stall.py``).
        """
        if self._order.journaled:
            return {}
        seats = self._loop.seats.items()
        here = [(side, seat) for side, seat in seats if not self._order.engine(side).box]
        return {side: local.CoreTime(seat.pid) for side, seat in here}

    def _with_core_time(self, side: contract.Side, text: str) -> str:
        core_time = self._core_times.get(side)
        return "; ".join(filter(None, [text, core_time.spoken() if core_time else ""]))

    def _ended_by(self, side: contract.Side, reply: base.Reply) -> contract.Outcome:
        """Judge a resignation, or a claim: the board bears it out, or it was false."""
        if reply.kind == "resign" or reply.result == verdict.loss_of(side):
            return verdict.resign(side)
        right = None if reply.result is None else self.board.bears_out(reply.result)
        return right or verdict.false_claim(side, reply.text)

    def _flagged(
        self,
        side: contract.Side,
        thought: search_clock.Answered,
        charge: clock.Charge,
        allowed_ns: int,
    ) -> contract.Outcome:
        self._note_late(side, thought, charge.think_ns, charge.think_ns - allowed_ns)
        text = f"{charge.think_ns / _NS:.3f} ms of {allowed_ns / _NS:.3f} ms"
        return verdict.time(side, self._with_core_time(side, text))

    def _answered(
        self,
        side: contract.Side,
        thought: search_clock.Answered,
        pondered: pondering.Pondered,
    ) -> contract.Outcome | None:
        own = self._clocks[side]
        allowed_ns = own.allowance_ns()
        charge = own.charge(self._charged(side, thought) + pondered.spent_ns)
        if charge.flagged:
            return self._flagged(side, thought, charge, allowed_ns)
        player = self._players[side]
        reply = player.reply(thought.line)
        if reply.kind != "move":
            return self._ended_by(side, reply)
        move = player.read_move(reply.text)
        if move is None:
            return verdict.illegal(side, reply.text or "(no move)")
        self._last_san = self.board.push(move)
        output = pondered.output + thought.output
        search = self._search(side, output) if self._reads_scores else None
        score = None if search is None else search.score
        ruled = self._judge.rule(self.board.position(), self.board.ply, score)
        outcome = self.board.ending() or ruled
        self._hear_offer(side, thought)
        if outcome is None and self._order.agreed_draws and all(self._offers.values()):
            outcome = verdict.agreement()
        if self._order.recorded or self._order.pgn or self._order.shown:
            ply = self._played(side, reply, thought, charge, pondered)
            self._reporter.take(ply, self._last_san, search)
        self._last_stop_ns = thought.stop_ns
        if outcome is None and reply.ponder is not None and self._order.engine(side).ponder:
            self._expect(side, reply.ponder)
        if outcome is None and self._order.journaled:
            self._reporter.wait_for_link()
        return outcome

    def _expect(self, side: contract.Side, text: str) -> None:
        """Note the reply that an engine expects, for its search in the opponent's turn."""
        expected = self._players[side].ponder(self._clocks, text)
        if expected is not None:
            self._expected[side] = expected

    def _charged(
        self, side: contract.Side, thought: search_clock.Answered | search_clock.Unanswered
    ) -> int:
        """Return what the engine took, by the clock that stands beside it."""
        return self._loop.seats[side].charged_ns(thought.start_ns, thought.stop_ns)

    def _note_late(
        self,
        side: contract.Side,
        thought: search_clock.Answered | search_clock.Unanswered,
        think_ns: int,
        late_ns: int,
    ) -> None:
        """Note a flag that the engine's host may be to blame for: this one, or a GPU box."""
        late: dict[str, Any] = {"think_ns": think_ns, "late_ns": late_ns}
        if not self._order.engine(side).box:
            self.late = late | {"start_ns": thought.start_ns, "stop_ns": thought.stop_ns}
        elif (host_report := self._loop.seats[side].host) is not None:
            self.late = late | {"host": host_report}

    def _played(
        self,
        side: contract.Side,
        reply: base.Reply,
        thought: search_clock.Answered,
        charge: clock.Charge,
        pondered: pondering.Pondered,
    ) -> plies.StampedPly:
        start_ns = thought.start_ns if pondered.start_ns is None else pondered.start_ns
        gap_ns = start_ns - self._last_stop_ns if self._last_stop_ns else 0
        network_ns = self._loop.seats[side].network_ns
        return plies.StampedPly(
            ply=self.board.ply,
            side=side,
            move=self.board.last_move,
            reply=reply,
            output=pondered.output + thought.output,
            charge=charge,
            start_ns=start_ns,
            gap_ns=gap_ns,
            waited_ns=self._reporter.waited_ns,
            white_clock_ns=self._clocks["white"].remaining_ns,
            black_clock_ns=self._clocks["black"].remaining_ns,
            counters=self._judge.counters(self.board.position(), self.board.ply),
            offers_draw=self._offers[side],
            network_ns=None if network_ns is None else network_ns + pondered.network_ns,
            pondered=pondered.kind,
            pondered_ns=pondered.lasted_ns(start_ns),
        )

    def _hear_offer(self, side: contract.Side, thought: search_clock.Answered) -> None:
        for output in (thought.output, thought.rest):
            if output and self._players[side].aside(output).offers_draw:
                self._offers[side] = True

    def _search(self, side: contract.Side, output: bytes) -> base.Search:
        return plies.search(self._players[side], output, side, self._order.engine(side))

    def tell_kept(self, outcome: contract.Outcome) -> None:
        """Write down the plies that were kept, or the PGN that is made of them, and send them."""
        self._reporter.tell_kept(self.board, self._search)
        if self._order.pgn:
            reports = self.reports()
            self._reporter.tell_pgn(outcome, reports, self.board, self._search, self._times)


def _goes_on(hand: base.Handshake) -> bool:
    return hand.reusable and hand.phase is base.Phase.READY


def quiet_memory() -> None:
    """Keep the garbage collector out of the clock's way; the game collects itself."""
    if gc.isenabled():
        gc.collect()
        gc.freeze()
        gc.disable()


def as_json(reports: dict[contract.Side, contract.EngineReport]) -> dict[str, Any]:
    """Return both reports as plain data."""
    return {side: report.model_dump(mode="json") for side, report in reports.items()}


def encoded(value: Any) -> bytes:
    """Encode plain data for the link; what an engine wrote may be no UTF-8."""
    return contract.dumps(value).encode(errors="replace")
