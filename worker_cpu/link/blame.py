"""Whose fault was it: the engine's or the host's?

Asked once, when a game has ended by a fault. A flag or a stalled connection during a proven
stall of the engine's host, this one or a GPU box, is an interruption (``host/stall.py``), as often
as the event excuses one engine (``excused_flags``); one that the opponent's work in its turn
explains always is. A crash that the farm's own engine suffers too holds the hall
(``host_probe``). Otherwise the verdict stays, and the record shows what was measured.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from orchestrator import contract
from worker_cpu.host import cgroups, stall
from worker_cpu.link import host_probe
from worker_cpu.referee import io_loop

log = structlog.get_logger()

STALLED = "host stall"  # the causes of interruptions that are found here
SICK = "host sick"
DISTURBED = "opponent's load"
_LATE = frozenset({contract.Ending.TIME, contract.Ending.STALL})


@dataclasses.dataclass(frozen=True)
class HostFault:
    """Why a game has no verdict; ``hold`` when no other game may begin in the hall.

    ``excused`` is the side whose engine would have lost, and is spared at the host's expense.
    """

    cause: str
    evidence: str
    hold: bool = False
    excused: contract.Side | None = None


class FaultAttribution:
    """Decides for one hall, over all its games, whether a fault was the host's."""

    def __init__(
        self, host: stall.StallDetector, memory: host_probe.LastFault, probe: host_probe.HostProbe
    ) -> None:
        self._host, self._memory, self._probe = host, memory, probe
        self.begin()

    def begin(self) -> None:
        """Forget the last game's clocks and engines."""
        self._ready = False
        self._refusals = cgroups.refusals()
        self._groups: Mapping[contract.Side, str | None] = {}

    def engines_ready(
        self, referee: int, farm: Sequence[int], groups: Mapping[contract.Side, str | None]
    ) -> None:
        """Note that both engines run, and in which control groups (``StallDetector.watch``)."""
        self._ready, self._groups = True, groups
        self._host.watch(referee, farm, groups)

    def clock_starts(self, start_ns: int) -> None:
        """Remember this host as it was then: an engine thinks now."""
        self._host.mark(start_ns)

    def judge(
        self, order: contract.GameOrder, finished: dict[str, Any], meanwhile: Callable[[], None]
    ) -> HostFault | None:
        """Return why FINISHED's verdict is not to stand, ``None`` where it does.

        What was seen is added to ``finished``'s remarks; ``meanwhile`` keeps the lease.
        """
        outcome = contract.Outcome.model_validate(finished["outcome"])
        fault = self._stall(order, outcome, finished) or self._sickness(
            order, outcome, finished, meanwhile
        )
        if fault is None:
            self._memory.note(order, outcome)
        return fault

    def _stall(
        self, order: contract.GameOrder, outcome: contract.Outcome, finished: dict[str, Any]
    ) -> HostFault | None:
        late = finished.get("late")
        side = outcome.loser
        if outcome.ending not in _LATE or side is None or late is None:
            return None
        box = order.engine(side).box
        loss = stall.reported_loss(late["host"]) if box else self._loss(order, side, late)
        if loss is None:
            self._remark(finished, "nothing is known of what the host took")
            return None
        seen = f"GPU box {box}, {loss}" if box else str(loss)
        times = late["think_ns"] / 1e6, late["late_ns"] / 1e6
        evidence = f"{outcome.details}; {outcome.note}; {seen}"
        if not loss.proves(*times):
            if loss.convicts(*times):
                return HostFault(DISTURBED, evidence)
        elif order.excuses.get(side, 1) > 0:
            return HostFault(STALLED, evidence, excused=side)
        else:
            seen = f"{seen}; {io_loop.NO_MORE_EXCUSES}"
        self._remark(finished, seen)
        return None

    def _loss(
        self, order: contract.GameOrder, side: contract.Side, late: Mapping[str, Any]
    ) -> stall.Loss | None:
        """Return what this host took from an engine while its clock ran."""
        start_ns, stop_ns = int(late["start_ns"]), int(late["stop_ns"])
        return self._host.loss(start_ns, stop_ns, side, order.limits.threads)

    def _remark(self, finished: dict[str, Any], remark: str) -> None:
        finished["remarks"] = [*finished.get("remarks", ()), remark]

    def _sickness(
        self,
        order: contract.GameOrder,
        outcome: contract.Outcome,
        finished: dict[str, Any],
        meanwhile: Callable[[], None],
    ) -> HostFault | None:
        refused = cgroups.refusals() - self._refusals
        doubt = self._memory.doubt(order, outcome, ready=self._ready, refused=refused)
        if not doubt:
            return None
        log.warning("host.doubted", reason=doubt)
        box = order.engine(outcome.loser).box if outcome.loser else ""
        if box:
            remark = f"{doubt}; it ran on GPU box {box}, where no probe is made"
            finished["remarks"] = [*finished.get("remarks", ()), remark]
            return None
        group = self._groups.get(outcome.loser) if outcome.loser else None
        seen = 0 if group is None else cgroups.tasks(pathlib.Path(group))
        failed = self._probe.run(meanwhile, host_probe.tasks_of(order, seen))
        if failed:
            evidence = f"{doubt}; the farm's own engine fails here, too: {failed}"
            self._memory.forget()
            return HostFault(SICK, evidence, hold=True)
        remark = f"{doubt}; the farm's own engine plays here: the fault is the engine's"
        finished["remarks"] = [*finished.get("remarks", ()), remark]
        return None
