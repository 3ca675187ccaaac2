"""Probe the host with the farm's own engine when an engine's fault may be the host's.

Suspicious are a crash before both engines were ready, and crashes of two different engines
in consecutive games of this hall, and any crash beside which the hall's control groups refused
a process or thread. Then the farm's own engine plays two moves in the same place: same referee,
dead man, sandbox, cores, with as many threads and processes as the suspected one had or was to
have. If that fails too it was the host: no crash is counted, the hall is held and the operator
told. Otherwise the crash stands.

The last game's fault is kept in the hall's directory, so a restart forgets nothing.
"""

from __future__ import annotations

import json
import pathlib
import secrets
import sys
import time
from collections.abc import Callable

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import files
from worker_cpu.engines import handles
from worker_cpu.referee import session

SPARE_TASKS = 16  # threads and processes that an engine has beside those that search
MOST_TASKS = 256  # beyond its search threads an engine's own swarm is no measure of a host
PROBE_SECONDS = 60.0  # s: far beyond what a healthy host needs to start an engine
POLL_SECONDS = 0.1  # s: how often the lease is looked after meanwhile
_TIMEOUTS = contract.Timeouts(start_ms=20_000, ready_ms=20_000, move_ms=10_000)


class LastFault:
    """The fault of the last game that this hall has finished."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def doubt(
        self,
        order: contract.GameOrder,
        outcome: contract.Outcome,
        *,
        ready: bool,
        refused: int = 0,
    ) -> str:
        """Return why a fault may be the host's, '' where nothing speaks for it.

        ``refused`` is how many processes and threads the hall's groups refused meanwhile.
        """
        engine = _crashed(order, outcome)
        if engine is None:
            return ""
        if refused:
            return f"the host refused {refused} processes or threads while {engine} ran"
        if not ready:
            return f"{engine} failed before it was ready"
        last = self._last()
        if last and last != engine:
            return f"{last} failed in the game before, {engine} in this one"
        return ""

    def note(self, order: contract.GameOrder, outcome: contract.Outcome) -> None:
        """Remember how a finished game ended."""
        engine = _crashed(order, outcome)
        if engine is None:
            self._path.unlink(missing_ok=True)
        else:
            fault = {"engine": engine, "game": order.game}
            files.write(self._path, json.dumps(fault).encode())

    def forget(self) -> None:
        """Forget the fault: the host was looked at."""
        self._path.unlink(missing_ok=True)

    def _last(self) -> str:
        try:
            return str(json.loads(self._path.read_bytes())["engine"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""


def _crashed(order: contract.GameOrder, outcome: contract.Outcome) -> str | None:
    if outcome.loser is None or not verdict.is_crash(outcome):
        return None
    return order.engine(outcome.loser).id


def tasks_of(order: contract.GameOrder, seen: int) -> int:
    """Return how many threads and processes a probe holds: those seen, and those to be expected."""
    return min(max(seen, order.limits.threads) + SPARE_TASKS, order.limits.threads + MOST_TASKS)


class HostProbe:
    """Lets the farm's own engine play two moves where the suspected one failed."""

    def __init__(
        self,
        fork_server: handles.ForkServer,
        cores: handles.Cores,
        directory: pathlib.Path,
        lock: int | None,
        command: tuple[str, ...] = (),
    ) -> None:
        """Prepare; ``directory`` is the hall's, its ``lock`` is held."""
        self._fork_server, self._cores = fork_server, cores
        self._directory, self._lock = directory, lock
        self._command = command or (sys.executable, "-m", "worker_cpu.builtin_engine.uci")

    def run(self, meanwhile: Callable[[], None], tasks: int = 0) -> str:
        """Play; return '' when the host can, else what went wrong.

        ``meanwhile`` is called again and again: the lease goes on. ``tasks`` is how many threads
        and processes the engine holds.
        """
        referee = self._fork_server.referee(self._cores)
        dead_man = handles.DeadMan(
            log=self._directory / "attempts" / "probe.deadman.jsonl",
            scratch=self._directory / "scratch",
            lock=self._lock,
            limit_seconds=PROBE_SECONDS,
            referee=referee,
        )
        order = self._order(tasks)
        playing = session.RefereeSession(referee, dead_man, order.timeouts, PROBE_SECONDS)
        try:
            playing.send(order.encode().encode())
            return self._listen(playing, meanwhile)
        finally:
            dead_man.end()
            referee.end()
            dead_man.wait()

    def _listen(self, playing: session.RefereeSession, meanwhile: Callable[[], None]) -> str:
        deadline = time.monotonic() + PROBE_SECONDS
        while playing.end is None and time.monotonic() < deadline:
            meanwhile()
            playing.receive(POLL_SECONDS)
        match playing.end:
            case session.Finished(finished):
                outcome = contract.Outcome.model_validate(finished["outcome"])
                played = outcome.ending is contract.Ending.MAX_MOVES
                return "" if played else f"{outcome.details}; {outcome.note}"
            case session.Interrupted(cause, evidence):
                return f"{cause}: {evidence}"
            case _:
                return f"no end of two moves within {PROBE_SECONDS:g} s"

    def _order(self, tasks: int) -> contract.GameOrder:
        command = (*self._command, "--tasks", str(tasks))
        own = contract.EngineSpec(id="farm-engine", name="Farmhand", command=command)
        return contract.GameOrder(
            season="probe",
            season_name="Probe",
            event="probe",
            event_name="Probe",
            game=f"probe-{secrets.token_hex(4)}",
            number=1,
            round="1",
            white=own,
            black=own.model_copy(update={"id": "farm-engine-2"}),
            time_control=contract.TimeControl(nodes=1),
            timeouts=_TIMEOUTS,
            adjudication=contract.Adjudication(max_moves=1),
            journaled=False,
        )
