"""The start of both engines, off the clock: handshake, options, first ``readyok``.

Both start at the same time, each with its own deadlines. Invariants:

* an engine that exits or does not answer loses the game by a crash: never an exception,
  never the end of the event (RULEBOOK §3);
* when both fail, the one whose failure was seen first loses; white's start comes first,
  so at equal fault white's deadline does;
* the options are set after ``uciok`` and before ``ucinewgame``, Threads first; the
  ``isready`` behind them is the only one of the game.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Mapping, Sequence

from orchestrator import contract
from orchestrator.arbiter import verdict
from worker_cpu import desk
from worker_cpu.protocols import options, uci
from worker_cpu.seats import deadman, local

SIDES: tuple[contract.Side, ...] = ("white", "black")
OPTION_LIMIT = 1000  # options kept of one engine: more is a flood, not an offer
_NS = 1_000_000  # ns per ms
_HANDED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


class Phase(enum.Enum):
    """Where a handshake stands."""

    STARTING = "uciok"  # -> PREPARING with uciok
    PREPARING = "readyok"  # -> READY with readyok
    READY = ""


class Handshake:
    """One engine's way from its start to ``readyok``, fed line by line."""

    def __init__(self, spec: contract.EngineSpec, order: contract.GameOrder, now_ns: int) -> None:
        self.phase = Phase.STARTING
        self.deadline_ns = now_ns + order.timeouts.start_ms * _NS
        self._spec, self._order = spec, order
        self._names = {"name": "", "author": ""}
        self._offered: list[uci.Option] = []
        self._settings: tuple[contract.OptionSetting, ...] = ()

    def take(self, line: bytes, now_ns: int) -> bytes:
        """Take a line of output; return the commands that answer it, ``b''`` for none."""
        if self.phase is Phase.STARTING:
            return self._introduction(line, now_ns)
        if self.phase is Phase.PREPARING and uci.is_reply(line, b"readyok"):
            self.phase = Phase.READY
        return b""

    def report(self, pid: int) -> contract.EngineReport:
        """Return what the engine said of itself and what was set."""
        return contract.EngineReport(
            id_name=self._names["name"],
            id_author=self._names["author"],
            options=self._settings,
            pid=pid,
        )

    def late(self) -> str:
        """Say what was waited for in vain."""
        limits = self._order.timeouts
        waited = limits.start_ms if self.phase is Phase.STARTING else limits.ready_ms
        return f"no {self.phase.value} within {waited} ms"

    def _introduction(self, line: bytes, now_ns: int) -> bytes:
        identity = uci.identity(line)
        option = uci.option(line)
        if identity is not None:
            self._names[identity.field] = identity.text
        elif option is not None and len(self._offered) < OPTION_LIMIT:
            self._offered.append(option)
        if not uci.is_reply(line, b"uciok"):
            return b""
        self.phase = Phase.PREPARING
        self.deadline_ns = now_ns + self._order.timeouts.ready_ms * _NS
        plan = options.plan(self._offered, self._order, self._spec)
        self._settings = plan.settings
        return b"".join(plan.commands) + b"ucinewgame\nisready\n"


class Start:
    """Starts both engines of an order at a desk."""

    def __init__(self, table: desk.Desk, order: contract.GameOrder) -> None:
        self._table, self._order = table, order
        self._specs = {"white": order.white, "black": order.black}
        self._hands: dict[contract.Side, Handshake] = {}
        self._lines: dict[contract.Side, local.LineSplitter] = {}

    def run(self, cpus: Sequence[int] | None) -> contract.Outcome | None:
        """Start both engines; return who lost by not starting, or ``None`` when both run."""
        environment = engine_environment(os.environ, self._order.game)
        for side in SIDES:
            problem = self._spawn(side, environment, cpus)
            if problem:
                return verdict.disconnect(side, f"cannot be started: {problem}")
        while any(hand.phase is not Phase.READY for hand in self._hands.values()):
            self._take(self._table.hear(self._patience_ns()))
            if self._table.ended:
                return self._lost(self._table.ended[0])
            late = self._late()
            if late is not None:
                return late
        return None

    def reports(self) -> dict[contract.Side, contract.EngineReport]:
        """Return what is known of both engines."""
        seats = self._table.seats
        return {
            side: self._hands[side].report(seats[side].pid)
            if side in self._hands
            else contract.EngineReport()
            for side in SIDES
        }

    def _spawn(
        self, side: contract.Side, environment: Mapping[str, str], cpus: Sequence[int] | None
    ) -> str:
        seat = local.LocalSeat(side)
        try:
            problem = self._table.dead_man.spawn(seat, self._specs[side], environment, cpus)
        except (deadman.DeadManKillsError, deadman.DeadManLostError):
            seat.close()
            raise
        if problem:
            seat.close()
            return problem
        self._table.seat(seat)
        self._hands[side] = Handshake(self._specs[side], self._order, time.monotonic_ns())
        self._lines[side] = local.LineSplitter()
        self._table.say(seat, b"uci\n")
        return ""

    def _take(self, output: list[desk.Heard]) -> None:
        for seat, data, at_ns in output:
            for line in self._lines[seat.side].feed(data):
                words = self._hands[seat.side].take(line, at_ns)
                if words:
                    self._table.say(seat, words)

    def _patience_ns(self) -> int:
        pending = (hand for hand in self._hands.values() if hand.phase is not Phase.READY)
        return min(hand.deadline_ns for hand in pending) - time.monotonic_ns()

    def _late(self) -> contract.Outcome | None:
        now = time.monotonic_ns()
        late = [
            (hand.deadline_ns, SIDES.index(side), side)
            for side, hand in self._hands.items()
            if hand.phase is not Phase.READY and hand.deadline_ns <= now
        ]
        if not late:
            return None
        side = min(late)[2]
        self._table.asked(self._table.seats[side], wait_ms=0)
        return verdict.stall(side, self._hands[side].late())

    def _lost(self, seat: local.LocalSeat) -> contract.Outcome:
        phase = self._hands[seat.side].phase
        return self._table.disconnected(seat, f"before {phase.value}" if phase.value else "")


def engine_environment(environment: Mapping[str, str], game: str) -> dict[str, str]:
    """Return what engines get to see: no secret of the farm's is in it."""
    handed_on = {name: environment[name] for name in _HANDED_ON if name in environment}
    return handed_on | {"FARM_GAME": game}
