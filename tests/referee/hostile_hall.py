"""A hall with a hostile engine beside its opponent, as they lie on a real host.

``hostile.py`` does a deed in a game against ``mating.py``; ``told`` reads what it says of it.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import Any

import hall

from orchestrator import contract
from worker_cpu.engines import sandbox

ENGINES = hall.SCRIPTED.parent
MATED = "checkmate"
LIMITS = {"memory_mb": 200, "processes": 30, "scratch_mb": 8}


@dataclasses.dataclass
class Place:
    """A hall with two engines' directories beside it, as they lie on a real host."""

    root: pathlib.Path

    def __post_init__(self) -> None:
        for name in ("hall", "hostile", "mating"):
            (self.root / name).mkdir()
        for name in ("hostile", "mating"):
            shutil.copy(ENGINES / f"{name}.py", self.root / name)
            (self.root / name / "secret.nn").write_text("a network")
        (self.hall / "redis.password").write_text("a secret")

    @property
    def hall(self) -> pathlib.Path:
        """Return the hall's directory."""
        return self.root / "hall"

    def spec(self, name: str, *arguments: str, **fields: Any) -> contract.EngineSpec:
        """Describe one of the two engines."""
        program = self.root / name / f"{name}.py"
        command = (sys.executable, "-I", "-S", "-u", str(program), *arguments)
        return contract.EngineSpec(
            id=name, name=name, command=command, directory=str(program.parent), **fields
        )

    def order(self, *deed: str, **fields: Any) -> contract.GameOrder:
        """Order a game in which White does a deed."""
        made: contract.GameOrder = hall.order(
            self.spec("hostile", *deed), self.spec("mating", "bad"), **fields
        )
        return made

    def confinement(self, kind: sandbox.Kind) -> sandbox.Confinement:
        """Return small limits, so that a deed soon meets them."""
        return sandbox.Confinement(kind, hidden=(str(self.hall),), **LIMITS)  # type: ignore[arg-type]

    def play(
        self,
        kind: sandbox.Kind,
        *deed: str,
        base_ms: int = 30_000,
        on_open: Callable[[hall.Hall], tuple[str, ...]] = lambda _: (),
    ) -> hall.Played:
        """Play one game; nothing of it is left alive."""
        with hall.opened(self.hall, confinement=self.confinement(kind)) as opened:
            words = [f"@{word}" if word.startswith("/") else word for word in deed]
            order = self.order(
                *words, *on_open(opened), time_control=contract.TimeControl(base_ms=base_ms)
            )
            played = opened.play(order)
        assert hall.survivors(order.game) == []
        return played

    def kept(self) -> list[str]:
        """Return the files kept of White's scratch."""
        return sorted(path.name for path in self.hall.glob("white-*/*"))


def engine_output(played: hall.Played) -> dict[str, Any]:
    """Return what the hostile engine said of its deed."""
    output = b"".join(c.data for c in played.chunks if c.seat == "w" and c.direction == "<")
    line = next(line for line in output.splitlines() if line.startswith(b"info string {"))
    found: dict[str, Any] = json.loads(line.removeprefix(b"info string "))
    return found
