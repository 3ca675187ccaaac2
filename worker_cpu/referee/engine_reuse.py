"""Engines at the end of a game: let go, or kept for the next order of the same referee.

An engine is kept where the order allows it (``farm match``, decision 021): it saves the
start of a process and the loading of a network. Invariants:

* only an engine that is idle and without a fault is kept; whoever lost by a crash, a
  stall, on time, or by an illegal or false word is replaced;
* it is asked to forget the game before (``ucinewgame``, ``new``) and has to say that it is
  ready again; what it wrote between two games is read by nobody;
* it plays on only by the same settings: another engine, variant or set of limits makes a
  new process, and an engine that ended between two games is started again, not blamed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from orchestrator import contract
from worker_cpu.engines import local, remote, supervisor_client
from worker_cpu.protocols import base
from worker_cpu.referee import io_loop
from worker_cpu.wire import errors

FAULTS = frozenset(
    {
        contract.Ending.TIME,
        contract.Ending.DISCONNECT,
        contract.Ending.STALL,
        contract.Ending.ILLEGAL,
        contract.Ending.FALSE_CLAIM,
    }
)
NAMES = ("white", "black")  # the dead man's names for two engines that run at a time
_NS = 1_000_000  # ns per ms

Terms: TypeAlias = tuple[contract.EngineSpec, str, str, contract.Limits]


class Engine(NamedTuple):
    """A running engine between two games: its pipes, its handshake, what it was told."""

    seat: local.LocalSeat
    hand: base.Handshake
    terms: Terms


class EnginePool:
    """The engines that stay at a desk."""

    def __init__(self, loop: io_loop.IoLoop) -> None:
        self._loop = loop
        self._engines: list[Engine] = []
        self._quit_ms = 0

    def keep(
        self,
        order: contract.GameOrder,
        sides: Iterable[contract.Side],
        hands: Mapping[contract.Side, base.Handshake],
    ) -> None:
        """Keep the engines of these sides of a finished game, all of them reusable."""
        self._quit_ms = order.timeouts.quit_ms
        self._engines = [
            Engine(self._loop.seats[side], hands[side], terms(order, side)) for side in sides
        ]

    def seat(self, order: contract.GameOrder) -> dict[contract.Side, base.Handshake]:
        """Seat the engines that play this order, too; let go of the others."""
        engines, self._engines = self._living(), []
        chosen: dict[contract.Side, Engine] = {}
        for side in io_loop.SIDES:
            reusable = next((spare for spare in engines if spare.terms == terms(order, side)), None)
            if reusable is not None:
                engines.remove(reusable)
                chosen[side] = reusable
        self._let_go(engines)
        for side, engine in chosen.items():
            engine.seat.side = side
        self._loop.seats = {side: engine.seat for side, engine in chosen.items()}
        return {side: engine.hand for side, engine in chosen.items()}

    def dismiss(self) -> None:
        """Let go of all engines: there is no other order."""
        engines, self._engines = self._engines, []
        self._let_go(engines)

    def _living(self) -> list[Engine]:
        """Return the engines that still run; let go of those that ended meanwhile."""
        if not self._engines:
            return []
        self._loop.hear(0)
        ended = [engine for engine in self._engines if engine.seat in self._loop.ended]
        self._let_go(ended)
        return [engine for engine in self._engines if engine not in ended]

    def _let_go(self, engines: Iterable[Engine]) -> None:
        seats = [engine.seat for engine in engines]
        let_go(self._loop, seats, self._quit_ms)
        for seat in seats:
            self._loop.unseat(seat)


def terms(order: contract.GameOrder, side: contract.Side) -> Terms:
    """Return all that an engine was told at its start and is not told again."""
    spec = order.engine(side).model_copy(update={"time_control": None, "time_margin_ms": None})
    return spec, order.event, order.variant, order.limits


def free_name(seats: Iterable[local.LocalSeat], side: contract.Side) -> str:
    """Return a name for a new engine that none of those running has."""
    taken = {seat.name for seat in seats}
    return next(name for name in (side, *NAMES) if name not in taken)


def let_go(
    loop: io_loop.IoLoop, seats: Iterable[local.LocalSeat], quit_ms: int
) -> dict[local.LocalSeat, str]:
    """Let engines quit, kill what is left after ``quit_ms``, and return how they ended.

    The outcome stands already: a dead man that is gone by now only costs the exit status.
    """
    ends: dict[local.LocalSeat, str] = {}
    leaving = list(seats)
    try:
        _quit(loop, leaving, quit_ms)
        for seat in leaving:
            end = loop.dead_man.kill(seat.name, f"did not quit within {quit_ms} ms")
            if isinstance(seat, remote.RemoteSeat):
                end = seat.over or end  # what was killed was its bridge
            ends[seat] = f"{end.status} ({end.reason})" if end.by_farm else end.status or end.reason
        _last_stderr(leaving)
    except errors.InterruptedGameError as error:
        kill_if_orphaned(loop, error)
    except (supervisor_client.DeadManKillsError, supervisor_client.DeadManLostError) as error:
        kill_if_orphaned(loop, io_loop.interruption(error))
    return ends


def _quit(loop: io_loop.IoLoop, seats: Sequence[local.LocalSeat], quit_ms: int) -> None:
    for seat in seats:
        if seat not in loop.ended:
            loop.say(seat, b"quit\n")
    slack_ns = max((seat.quit_slack_ns for seat in seats), default=0)
    deadline = time.monotonic_ns() + quit_ms * _NS + slack_ns
    while any(map(loop.runs, seats)) and time.monotonic_ns() < deadline:
        loop.hear(deadline - time.monotonic_ns())


def _last_stderr(seats: Iterable[local.LocalSeat]) -> None:
    for seat in seats:
        while seat.read_stderr():
            pass


def kill_if_orphaned(loop: io_loop.IoLoop, error: errors.InterruptedGameError) -> None:
    """Kill the engines whose dead man is gone; they are gone, too, when this returns."""
    if error.cause == io_loop.DEAD_MAN_LOST:
        for seat in loop.seats.values():
            supervisor_client.kill_orphaned(seat)
        for seat in loop.seats.values():
            supervisor_client.await_end(seat)
