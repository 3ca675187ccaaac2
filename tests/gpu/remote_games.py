"""Games of a remote probe against a local one, refereed for real, and what is done meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import bed
import hall
import handovers

from orchestrator import contract
from worker_cpu.wire import frames

PROBE = pathlib.Path(__file__).with_name("probe.py")


@dataclasses.dataclass
class Played:
    """A game, and when the remote engine began and ended each think by its own word (ns)."""

    game: Any
    seat: contract.SeatAddress
    own: list[handovers.Span]

    @property
    def remote(self) -> list[contract.PlyRecord]:
        """Return the remote engine's plies."""
        return [ply for ply in self.game.plies if ply.side == "white"]

    def excess_ms(self) -> list[float]:
        """Return what the remote engine was charged beyond its own figure, sorted."""
        return excess_ms(self.remote, self.own)


def excess_ms(plies: Iterable[contract.PlyRecord], own: Iterable[handovers.Span]) -> list[float]:
    """Return what an engine was charged beyond its own figures, sorted."""
    pairs = zip(plies, own, strict=True)
    return sorted((ply.think_ns - (wrote - read)) / 1e6 for ply, (read, wrote) in pairs)


def stamps(log: pathlib.Path) -> list[handovers.Span]:
    """Return what a probe has written down; nothing where it never thought."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(read), int(wrote)) for read, wrote in map(str.split, lines)]


@dataclasses.dataclass
class At:
    """Something to do once, when a remote engine (White's) thinks at a ply or later."""

    ply: int
    deed: Callable[[], object]
    side: contract.Side = "white"
    done: bool = False

    def __call__(self, frame: frames.Frame) -> None:
        """Take a frame of the referee's."""
        if frame.kind is frames.Kind.THINK and not self.done:
            told = contract.loads(frame.payload)
            if told["side"] == self.side and told["ply"] >= self.ply:
                self.done = True
                self.deed()


def later(seconds: float, deed: Callable[[], object]) -> None:
    """Do something after a while."""
    timer = threading.Timer(seconds, deed)
    timer.daemon = True
    timer.start()


def play(
    root: pathlib.Path,
    box: bed.Box,
    think_ms: str = "5",
    moves: int = 8,
    meanwhile: Callable[[contract.SeatAddress], Callable[[frames.Frame], None]] | None = None,
    patience: float = hall.PATIENCE,
    says: str = "",
    **fields: Any,
) -> Played:
    """Play one game, White on the box; nothing of it may be left on either side."""
    log = root / "probe.log"
    command = [sys.executable, str(PROBE), str(log), "--think-ms", think_ms, "--says", says]
    seat = box.seat(command)
    white = contract.EngineSpec(id="far", name="Far", command=tuple(command), box="box")
    near = (sys.executable, str(PROBE), str(root / "near.log"), "--name", "Near")
    black = contract.EngineSpec(id="near", name="Near", command=near)
    values = {"adjudication": contract.Adjudication(max_moves=moves), "seats": {"white": seat}}
    order = hall.order(white, black, **values | fields)
    place = root / f"hall-{order.game}"
    place.mkdir()
    on_frame = meanwhile(seat) if meanwhile else lambda _: None
    with hall.opened(place) as opened:
        game = opened.play(order, on_frame, patience)
    return Played(game, seat, stamps(log))


def bridges(seat: contract.SeatAddress) -> list[int]:
    """Return the processes that carry a seat's traffic in the hall."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if seat.seat.encode() in command and b"engines.ssh_bridge" in command:
                    found.append(int(entry.name))
    return found
