"""Engines started once, as the farm starts them: what is known of each before a season is launched.

Each plays two plies as White against the farm's own engine, in its sandbox and under the lock of
this machine's hall. A fault is told and never refused: the hall may be another host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import rich.progress

from orchestrator import contract
from orchestrator.commands import common, engine_trial, programs
from orchestrator.common import errors
from orchestrator.engines import known_programs
from orchestrator.ops import entry_points
from orchestrator.ops.doctor import season
from orchestrator.season.file import load
from orchestrator.season.fold import orders
from orchestrator.season.spec import model

T = TypeVar("T")

CONTROL: Final = contract.TimeControl(base_ms=10_000, increment_ms=100)
PATIENT_MS: Final = 15_000  # for an introduction, where the protocol has to be found out
PROTOCOLS: Final[tuple[contract.ProtocolName, ...]] = ("uci", "xboard")


class Start(NamedTuple):
    """What came of an engine's start; ``problem`` is empty where it played.

    ``tried`` is false where nothing can be said of it, such as while a game runs in the hall.
    """

    protocol: contract.ProtocolName
    tried: bool
    problem: str


class Programs:
    """Starts programs by name or path, each once, and finds out which protocol they speak."""

    def __init__(self, *, quiet: bool) -> None:
        """Show which one is being started, unless ``quiet``."""
        self._quiet = quiet
        self._starts: dict[str, Start] = {}

    def start(self, commands: Sequence[str]) -> dict[str, Start]:
        """Return what came of each program's start; those that are not here are left out."""
        named = dict.fromkeys(commands)
        fresh = [_spec(name) for name in named if name not in self._starts]
        here = [spec for spec in fresh if not programs.missing([spec])]
        for spec in shown([(spec.name, spec) for spec in here], quiet=self._quiet):
            self._starts[spec.name] = _either(spec)
        return {name: self._starts[name] for name in named if name in self._starts}


def is_away(command: str) -> bool:
    """Say whether a program is not on this machine, which may be its hall."""
    return bool(programs.missing([_spec(command)]))


def of_season(loaded: load.Loaded, *, quiet: bool) -> dict[str, Start]:
    """Start each engine of a season once, by the rules of its first event; return what came of it.

    Engines of GPU boxes are not started, nor those whose program is not on this machine.
    """
    here = [spec for spec in loaded.engines if not spec.box and not programs.missing([spec])]
    rules = loaded.season.events[0]
    ready = [(spec.name, orders.engine_in(spec, rules.id)) for spec in here]
    return {spec.id: _as_written(spec, rules) for spec in shown(ready, quiet=quiet)}


def _as_written(spec: contract.EngineSpec, rules: model.Event) -> Start:
    """Start an engine as its entry says; where it fails, say whether the other protocol plays."""
    start = _start(spec, rules)
    if not start.tried or not start.problem:
        return start
    other = _start(_by_the_other(spec), None)
    if not other.tried or other.problem:
        return start
    entry = f'it plays with protocol = "{other.protocol}" in its entry'
    return start._replace(problem=f"{start.problem}; {entry}")


def warnings(starts: Mapping[str, Start]) -> list[str]:
    """Return what to say of engines that do not play, by their names."""
    failed = [
        f"{name} fails when it is started as in a game, as White: {start.problem}; in the season"
        f" it loses each game like that: repair it, or leave it out (`farm engine test {name}"
        " --file FILE` tries it again)"
        for name, start in starts.items()
        if start.tried and start.problem
    ]
    untried = [name for name, start in starts.items() if not start.tried]
    if untried:
        why = next(start.problem for start in starts.values() if not start.tried)
        failed.append(f"not started to see whether they play: {', '.join(untried)}: {why}")
    return failed


def _spec(command: str) -> contract.EngineSpec:
    name = os.path.basename(command)  # noqa: PTH119 - a word, and not always a path
    protocol = known_programs.protocol(name)
    return contract.EngineSpec(id="engine", name=command, command=(command,), protocol=protocol)


def shown(named: Sequence[tuple[str, T]], *, quiet: bool) -> Iterator[T]:
    """Yield what is started, beside a bar that says which one; ``named``: each with its name."""
    console = common.console(stderr=True)
    quiet = quiet or not console.is_terminal  # elsewhere all that is left of it is an empty line
    with rich.progress.Progress(console=console, disable=quiet, transient=True) as bar:
        task = bar.add_task("", total=len(named))
        for name, started in named:
            bar.update(task, description=f"starting {name} once")
            yield started
            bar.advance(task)


def _either(spec: contract.EngineSpec) -> Start:
    """Start a program by the protocol that its name suggests, else by the other one."""
    first = _start(spec, None)
    if not first.tried or not first.problem:
        return first
    second = _start(_by_the_other(spec), None)
    return first if second.problem else second


def _by_the_other(spec: contract.EngineSpec) -> contract.EngineSpec:
    other = next(protocol for protocol in PROTOCOLS if protocol != spec.protocol)
    return spec.model_copy(update={"protocol": other})


def _start(spec: contract.EngineSpec, rules: model.Event | None) -> Start:
    order = season.trial(spec, engine_trial.OWN, rules, control=CONTROL)
    if rules is None:
        patient = order.timeouts.model_copy(update={"start_ms": PATIENT_MS})
        order = order.model_copy(update={"timeouts": patient})
    try:
        play, url = entry_points.player(), _url()
    except errors.HostError as error:
        return Start(spec.protocol, tried=False, problem=str(error))
    finding = next(season.engines([order], play, engine_trial.HALL, url))
    problem = "" if finding.status == "ok" else finding.found
    return Start(spec.protocol, tried=finding.status != "unknown", problem=problem)


def _url() -> str | None:
    """Return the Redis of a farm that is there, whose games are not to be disturbed."""
    try:
        with common.open_ledger() as ledger:
            ledger.seasons()
    except errors.LedgerAwayError:
        return None
    return common.redis_url()
