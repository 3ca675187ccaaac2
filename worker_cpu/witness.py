"""The link's witness of its host: is an engine's fault the engine's, or the host's?

Asked once, when a game has ended by a fault. A flag or a stalled connection during a proven
stall of the engine's host, this one or a GPU box, is an interruption (``stalls``); a crash that
the farm's own engine suffers too holds the hall (``suspicion``). Otherwise the verdict stands,
and the record shows what was seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from orchestrator import contract
from worker_cpu import stalls, suspicion

log = structlog.get_logger()

STALLED = "host stall"  # the causes of interruptions that are found here
SICK = "host sick"
LATE_NS = 200_000_000  # ns: a link that is woken later than that was frozen with its host
_LATE = frozenset({contract.Ending.TIME, contract.Ending.STALL})


@dataclasses.dataclass(frozen=True)
class HostFault:
    """Why a game has no verdict; ``hold`` when no other game may begin in the hall."""

    cause: str
    evidence: str
    hold: bool = False


class Witness:
    """What one hall knows about its host, over all its games."""

    def __init__(self, host: stalls.Host, memory: suspicion.Memory, probe: suspicion.Probe) -> None:
        self._host, self._memory, self._probe = host, memory, probe
        self.begin()

    def begin(self) -> None:
        """Forget the last game's clocks and engines."""
        self._pids: list[int] = []
        self._ready = False
        self._before: stalls.Sample | None = None
        self._frozen_ns = 0

    def engines_ready(self, payload: bytes) -> None:
        """Take READY: both engines run."""
        told = contract.loads(payload)
        self._pids = [report["pid"] for report in told.values() if report.get("pid")]
        self._ready = True

    def clock_starts(self) -> None:
        """Take a sample: an engine thinks now."""
        self._before, self._frozen_ns = self._host.sample(self._pids), 0

    def woken(self, late_ns: int) -> None:
        """Note how much later than it wished the link was woken."""
        if late_ns > LATE_NS:
            self._frozen_ns += late_ns

    @property
    def watching(self) -> bool:
        """Say whether a clock runs: then the link looks at its own time, too."""
        return self._before is not None

    def clock_stopped(self) -> None:
        """Drop the sample: the move came in time."""
        self._before = None

    def judge(
        self, order: contract.GameOrder, told: dict[str, Any], meanwhile: Callable[[], None]
    ) -> HostFault | None:
        """Return why FINISHED's verdict is not to stand, ``None`` where it does.

        What was seen is added to ``told``'s remarks; ``meanwhile`` keeps the lease.
        """
        outcome = contract.Outcome.model_validate(told["outcome"])
        fault = self._stall(order, outcome, told) or self._sickness(order, outcome, told, meanwhile)
        if fault is None:
            self._memory.note(order, outcome)
        return fault

    def _stall(
        self, order: contract.GameOrder, outcome: contract.Outcome, told: dict[str, Any]
    ) -> HostFault | None:
        late = told.get("late")
        if outcome.ending not in _LATE or self._before is None or late is None:
            return None
        box = order.engine(outcome.loser).box if outcome.loser else ""
        loss = stalls.told(late["host"]) if box else self._loss(self._before, late)
        seen = f"GPU box {box}, {loss}" if box else str(loss)
        if loss.proves(late["think_ns"] / 1e6, late["late_ns"] / 1e6):
            return HostFault(STALLED, f"{outcome.details}; {outcome.note}; {seen}")
        told["remarks"] = [*told.get("remarks", ()), seen]
        return None

    def _loss(self, before: stalls.Sample, late: Mapping[str, Any]) -> stalls.Loss:
        """Return what this host took; what its engines used by the flag the referee has seen."""
        after = dataclasses.replace(self._host.sample(()), engines_ns=late.get("engines_ns", 0))
        return self._host.loss(before, after, self._frozen_ns)

    def _sickness(
        self,
        order: contract.GameOrder,
        outcome: contract.Outcome,
        told: dict[str, Any],
        meanwhile: Callable[[], None],
    ) -> HostFault | None:
        doubt = self._memory.doubt(order, outcome, ready=self._ready)
        if not doubt:
            return None
        log.warning("host.doubted", reason=doubt)
        box = order.engine(outcome.loser).box if outcome.loser else ""
        if box:
            remark = f"{doubt}; it ran on GPU box {box}, where no probe is made"
            told["remarks"] = [*told.get("remarks", ()), remark]
            return None
        failed = self._probe.run(meanwhile)
        if failed:
            evidence = f"{doubt}; the farm's own engine fails here, too: {failed}"
            self._memory.forget()
            return HostFault(SICK, evidence, hold=True)
        remark = f"{doubt}; the farm's own engine plays here: the fault is the engine's"
        told["remarks"] = [*told.get("remarks", ()), remark]
        return None
