"""Our own record against the probe: the referee's nanoseconds minus the probe's.

Plays games as ``farm match`` does, but keeps what the referee says of each move.
"""

from __future__ import annotations

import contextlib
import pathlib
import select
import time
from collections.abc import Iterator

import clock_figures
import clock_runners

from orchestrator import contract
from worker_cpu.engines import handles
from worker_cpu.match import cores, game
from worker_cpu.referee import result, session

PATIENCE_MS = 60_000  # ms: a referee that says nothing for so long is broken


def errors_ms(
    probe: clock_runners.Probe, setting: clock_runners.Setting, directory: pathlib.Path
) -> list[float]:
    """Play the setting's games one at a time; return each move's error in ms."""
    found: list[float] = []
    with contextlib.closing(_ForkServer()) as fork_server:
        for number in range(1, setting.games + 1):
            logs = directory / str(number)
            logs.mkdir(parents=True)
            record = _play(fork_server.fork_server, _order(probe, setting, logs, number), logs)
            found += _errors(record, clock_figures.read(logs))
    return found


class _ForkServer:
    def __init__(self) -> None:
        self.fork_server = handles.ForkServer()

    def close(self) -> None:
        self.fork_server.end()


def _errors(record: contract.GameRecord, sides: list[clock_figures.Side]) -> Iterator[float]:
    think_ns = {move.ply: move.think_ns for side in sides for move in side}
    for ply in record.plies:
        yield (ply.think_ns - think_ns[ply.ply]) / clock_figures.NS


def _order(
    probe: clock_runners.Probe, setting: clock_runners.Setting, logs: pathlib.Path, number: int
) -> contract.GameOrder:
    command = (str(probe.program), *probe.arguments(logs, setting))
    white, black = (contract.EngineSpec(id=name, name=name, command=command) for name in "ab")
    return contract.GameOrder(
        season="benchmark",
        season_name="Benchmark",
        event="clock",
        event_name="Clock",
        game=f"clock-{number}-{time.monotonic_ns()}",
        number=number,
        round=str(number),
        white=white,
        black=black,
        time_control=contract.TimeControl(base_ms=10_000, increment_ms=100),
        limits=contract.Limits(free=True),
        journaled=False,
    )


def _play(
    fork_server: handles.ForkServer, order: contract.GameOrder, scratch: pathlib.Path
) -> contract.GameRecord:
    lane = cores.allot(1, 1, cores.available(frozenset()))[0]
    seated = session.seat(fork_server, lane, scratch)
    seated.feed()
    playing = game.Game(seated, game.Sealed(order), "")
    poll = select.poll()
    poll.register(playing.fileno(), select.POLLIN)
    end = None
    while end is None:
        if not poll.poll(PATIENCE_MS):
            raise RuntimeError("the referee hangs")
        end = playing.serve()
    seated.leave()
    assert isinstance(end, result.Ended), end
    assert end.record is not None
    return end.record()
