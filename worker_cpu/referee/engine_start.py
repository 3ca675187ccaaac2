"""The start of both engines, off the clock: handshake, options, ready for the first move.

Both start at the same time, each with its own deadlines; an engine that was kept from the
game before is asked to begin a new one. Invariants:

* an engine elsewhere has so much longer as its link may be away;
* an engine that exits or does not answer, or that cannot play this game (its variant,
  its start position), loses it by a crash: never an exception or the end of the event;
* when both fail, the one whose failure was seen first loses; white's start comes first,
  so at equal fault white's deadline does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from orchestrator import contract
from orchestrator.arbiter import board, verdict
from worker_cpu.engines import local, remote, sandbox, supervisor_client
from worker_cpu.protocols import base, registry
from worker_cpu.referee import engine_reuse, io_loop
from worker_cpu.wire import errors

SIDES = io_loop.SIDES
_HANDED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ"),
    *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"),  # the GPUs of a lane
)
_OWN = ("FARM_", "CREDENTIALS_DIRECTORY")  # what the farm's own programs are told


class EngineStart:
    """Starts both engines of an order at a desk."""

    def __init__(
        self,
        loop: io_loop.IoLoop,
        order: contract.GameOrder,
        game: board.GameBoard,
        confinement: sandbox.Confinement | None = None,
        seated: Mapping[contract.Side, base.Handshake] = MappingProxyType({}),
    ) -> None:
        """Take an order; ``seated`` are the handshakes of engines that were kept."""
        self._loop, self._order, self._game = loop, order, game
        self._confinement = confinement or sandbox.Confinement()
        self._seated = dict(seated)
        self._hands: dict[contract.Side, base.Handshake] = {}
        self._lines: dict[contract.Side, local.LineSplitter] = {}
        self._output: dict[contract.Side, bytes] = {}  # what each wrote last

    def run(self, cpus: Sequence[Sequence[int]]) -> contract.Outcome | None:
        """Start both engines; return who lost by not starting, or ``None`` when both run."""
        if self._order.sandbox and self._confinement.kind != self._order.sandbox:
            needed = f"the season needs {self._order.sandbox}, this host gives none"
            raise errors.InterruptedGameError(io_loop.SANDBOX_FAILED, needed)
        environment = engine_environment(os.environ, self._order.game, whole=self._order.hand_on)
        for side in SIDES:
            problem = self._begin(side, environment, cpus)
            if problem:
                return verdict.disconnect(side, f"cannot be started: {problem}")
        while self._pending():
            self._take(self._loop.hear(self._patience_ns()))
            ended = self._loop.ended[0] if self._loop.ended else None
            if ended is not None and ended.side not in self._seated:
                return self._lost(ended)
            if ended is not None and (problem := self._replace(ended, environment, cpus)):
                return verdict.disconnect(ended.side, f"cannot be started: {problem}")
            failed = self._expire() or self._refused()
            if failed is not None:
                return failed
        return None

    def hands(self) -> Mapping[contract.Side, base.Handshake]:
        """Return the handshakes of the engines that run."""
        return {**self._seated, **self._hands}

    def players(self) -> dict[contract.Side, base.Player]:
        """Return both players, once both engines are ready."""
        return {side: hand.player() for side, hand in self._hands.items()}

    def reports(self) -> dict[contract.Side, contract.EngineReport]:
        """Return what is known of both engines."""
        seats = self._loop.seats
        return {
            side: (
                self._hands[side].report(seats[side].pid)
                if side in self._hands
                else contract.EngineReport()
            ).model_copy(update=self._placement(side))
            for side in SIDES
        }

    def _placement(self, side: contract.Side) -> dict[str, Any]:
        """Return where an engine runs, whose clock it is charged by, and what confines it."""
        address = self._order.seats.get(side)
        if address is None:
            return {"sandbox": self._confinement.kind}
        return {"sandbox": "plain", "box": address.box, "gpus": address.gpus}

    def _begin(
        self, side: contract.Side, environment: Mapping[str, str], cpus: Sequence[Sequence[int]]
    ) -> str:
        self._lines[side] = local.LineSplitter()
        if side not in self._seated:
            return self._spawn(side, environment, cpus)
        hand = self._hands[side] = self._seated[side]
        seat = self._loop.seats[side]
        seat.take_aside()
        self._loop.say(seat, hand.again(self._order, side, time.monotonic_ns(), self._game))
        return ""

    def _replace(
        self,
        seat: local.LocalSeat,
        environment: Mapping[str, str],
        cpus: Sequence[Sequence[int]],
    ) -> str:
        """Start an engine again that was kept, and ended before this game had begun for it."""
        self._loop.asked(seat)
        self._loop.dead_man.kill(seat.name, "ended between two games")
        self._loop.unseat(seat)
        del self._seated[seat.side]
        return self._begin(seat.side, environment, cpus)

    def _spawn(
        self, side: contract.Side, environment: Mapping[str, str], cpus: Sequence[Sequence[int]]
    ) -> str:
        address = self._order.seats.get(side)
        if address is not None:
            return self._bridge(side, address, environment)
        box = self._order.engine(side).box
        if box:
            evidence = f"no seat was taken on GPU box {box}"
            raise errors.InterruptedGameError(remote.HOST, evidence)
        seat = local.LocalSeat(side, engine_reuse.free_name(self._loop.seats.values(), side))
        try:
            spec = self._order.engine(side)
            confined = sandbox.confined(self._confinement, self._order, side, environment)
            own = self._own_cores(cpus)
            start_ms = self._order.timeouts.start_ms
            problem = self._loop.dead_man.spawn(
                seat, spec, environment, own or None, confined, start_ms
            )
            seat.cpus = own
        except (supervisor_client.SandboxFailedError, sandbox.UnreadableError) as error:
            seat.close()
            raise errors.InterruptedGameError(io_loop.SANDBOX_FAILED, str(error)) from error
        except (supervisor_client.DeadManKillsError, supervisor_client.DeadManLostError):
            seat.close()
            raise
        return self._take_seat(seat, problem)

    def _own_cores(self, cpus: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the cores of a new engine: those that no other has, where each has its own."""
        taken = {seat.cpus for seat in self._loop.seats.values()} if len(cpus) > 1 else set()
        return next((own for own in map(tuple, cpus) if own not in taken), ())

    def _bridge(
        self,
        side: contract.Side,
        address: contract.SeatAddress,
        environment: Mapping[str, str],
    ) -> str:
        """Start the bridge to an engine on a GPU box; a fault of it is never the engine's."""
        if self._order.sandbox:
            needed = f"the season needs {self._order.sandbox}, GPU box {address.box} gives none"
            raise errors.InterruptedGameError(io_loop.SANDBOX_FAILED, needed)
        name = engine_reuse.free_name(self._loop.seats.values(), side)
        seat = remote.RemoteSeat(side, address, self._order, name)
        spec = self._order.engine(side)
        given = remote.environment(environment, address)
        request = {"argv": seat.command, "cwd": None, "env": given, "limits": {}}
        start_ms = self._order.timeouts.start_ms
        problem = self._loop.dead_man.spawn(seat, spec, given, None, request, start_ms)
        if problem:
            seat.close()
            evidence = f"no bridge to {address.box}: {problem}"
            raise errors.InterruptedGameError(remote.LINK, evidence)
        return self._take_seat(seat, problem)

    def _take_seat(self, seat: local.LocalSeat, problem: str) -> str:
        side = seat.side
        if problem:
            seat.close()
            return problem
        self._loop.seat(seat)
        hand = registry.handshake(self._order, side, time.monotonic_ns(), self._game)
        self._hands[side] = hand
        self._loop.say(seat, hand.begin())
        return ""

    def _take(self, output: list[io_loop.Heard]) -> None:
        for seat, data, at_ns in output:
            kept = self._output.get(seat.side, b"") + data
            self._output[seat.side] = kept[-local.STDERR_BYTES :]
            for line in self._lines[seat.side].feed(data):
                answer = self._hands[seat.side].take(line, at_ns)
                if answer:
                    self._loop.say(seat, answer)

    def _pending(self) -> list[contract.Side]:
        ready = base.Phase.READY
        return [side for side, hand in self._hands.items() if hand.phase is not ready]

    def _patience_ns(self) -> int:
        now = time.monotonic_ns()
        return min(self._due_ns(side, now) for side in self._pending()) - now

    def _due_ns(self, side: contract.Side, now: int) -> int:
        """Return an engine's next deadline; behind its own comes that of its link."""
        deadline = self._hands[side].deadline_ns
        return deadline if now < deadline else deadline + self._loop.seats[side].slack_ns

    def _expire(self) -> contract.Outcome | None:
        """Let pass what may pass; return who has stalled, the first deadline first."""
        now = time.monotonic_ns()
        due = [side for side in self._pending() if self._hands[side].deadline_ns <= now]
        for side in sorted(due, key=lambda side: self._hands[side].deadline_ns):
            seat, hand = self._loop.seats[side], self._hands[side]
            commands = hand.expire(now)
            if commands is None and now < hand.deadline_ns + seat.slack_ns:
                continue  # its link may be away: whether it is lost shows by then
            if commands is None:
                self._loop.asked(seat, wait_ms=0)
                return verdict.stall(side, hand.late())
            if commands:
                self._loop.say(seat, commands)
        return None

    def _refused(self) -> contract.Outcome | None:
        for side, hand in self._hands.items():
            if hand.refusal and hand.unable:
                return verdict.unable(side, hand.refusal)
            if hand.refusal:
                return verdict.disconnect(side, f"cannot play this game: {hand.refusal}")
        return None

    def _lost(self, seat: local.LocalSeat) -> contract.Outcome:
        phase = self._hands[seat.side].phase
        note = f"before the end of its {phase.value}" if phase.value else ""
        output = None if self._order.journaled else self._output.get(seat.side, b"")
        return self._loop.disconnected(seat, note, output)


def engine_environment(
    environment: Mapping[str, str], game: str, *, whole: bool = False
) -> dict[str, str]:
    """Return what engines get to see: no secret of the farm's is in it.

    ``whole`` hands on all of the caller's own, as other match runners do.
    """
    names = environment if whole else _HANDED_ON
    handed_on = {
        name: environment[name]
        for name in names
        if name in environment and not name.startswith(_OWN)
    }
    return handed_on | {"FARM_GAME": game}
