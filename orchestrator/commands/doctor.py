"""``farm doctor`` and ``farm preflight``: what must hold before a season, and before an event."""

from __future__ import annotations

import hashlib
import importlib.metadata
import pathlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, engine_trial, paths, programs, shell_offers, starts
from orchestrator.common import errors, files, version
from orchestrator.engines import known_programs
from orchestrator.ledger import store, vitals
from orchestrator.ops import entry_points
from orchestrator.ops.doctor import farm, season
from orchestrator.season.fold import state as season_state

CHECKS = "farm.checks"
Check: TypeAlias = Callable[[Mapping[str, str]], Iterator[contract.Finding]]
FOLDER = "preflight"
WIDTH = 120  # columns of a report that goes to no terminal, as through ssh
PREFLIGHT = "preflight_done"  # a fact of the farm's own journal


class Report(contract.Message):
    """All findings of one look."""

    schema_version: int = contract.SCHEMA
    at_ms: int
    host: str
    version: str
    season: str = ""
    event: str = ""
    findings: tuple[contract.Finding, ...]

    @property
    def failed(self) -> list[contract.Finding]:
        """Return what must be repaired first."""
        return [finding for finding in self.findings if finding.status == "failed"]

    @property
    def unstarted(self) -> list[contract.Finding]:
        """Return the engines that could not be started, of which nothing is known so."""
        engines = [finding for finding in self.findings if finding.area == "engine"]
        return [finding for finding in engines if finding.status == "unknown"]


def _of_areas(
    findings: Iterable[contract.Finding], areas: Sequence[str]
) -> tuple[contract.Finding, ...]:
    """Return the findings of some areas, of all where none is named."""
    return tuple(finding for finding in findings if not areas or finding.area in areas)


def _keep(archive: pathlib.Path, report: Report) -> tuple[pathlib.Path, str]:
    """Write a report into the event's folder of the archive; return path and SHA-256."""
    folder = archive / report.season / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.event}-{report.at_ms}.json"
    content = report.encode().encode()
    files.write(path, content)
    return path, hashlib.sha256(content).hexdigest()


def _only(function: common.Function) -> common.Function:
    return click.option("--only", multiple=True, help="Only this area, such as redis or host.")(
        function
    )


@click.command()
@_only
@common.json_option
def doctor(only: tuple[str, ...], *, as_json: bool) -> None:
    """Check everything that a season needs, and say why each point matters.

    Redis, journals, and halls and hosts by their last heartbeat. On a hall's host also this
    machine's sandbox, cores, memory, disk and speed; the speed is measured on the engines' cores,
    and skipped while a game is running. Before there is a farm, this machine is all that is
    checked, the engines on it among that. Exit code 3: a check failed.

    Example: farm doctor --only redis --json
    """
    try:
        common.redis_url()
    except errors.LedgerUnreachableError as error:
        checked, now_ms = [_no_farm(str(error)), _engines(), *_here({})], time.time_ns() // 10**6
    else:
        with common.open_ledger() as ledger:
            checked, now_ms = [*_farm(ledger), *_machine(ledger)], ledger.now_ms()
    summary = _report(now_ms, _of_areas(checked, only))
    _print(summary, as_json=as_json)


def _no_farm(complaint: str) -> contract.Finding:
    """Say that only this machine is looked at: no farm is known."""
    return contract.Finding(
        area="farm",
        name="running",
        status="unknown",
        found=f"Redis, journals and hosts are not checked: {complaint}",
        why="a farm that does not run yet has none",
        do="start one with `farm up`, then `farm doctor` again",
    )


def _engines() -> contract.Finding:
    """Say which engines are on this machine: what a first season can be made of."""
    here = known_programs.installed([programs.search_path()])
    return contract.Finding(
        area="here",
        name="engines",
        status="ok" if here else "warning",
        found=", ".join(here) or "none by a known name",
        why="without another one the farm's own engine plays alone",
        do="apt install stockfish ethereal-chess, or name programs by their paths",
    )


@click.command()
@click.argument("event", shell_complete=shell_offers.events)
@click.option("--season", "name", help="The season; default: the only one that is not over.")
@paths.archive
@common.json_option
def preflight(event: str, name: str | None, archive: pathlib.Path, *, as_json: bool) -> None:
    """Check everything before EVENT, start its engines, and archive the report.

    Run it on the hall's host while the season is at a gate or paused: each engine plays
    two plies as in a game. The report is kept in the archive and its SHA-256 in the farm's
    journal; at a desk, which has no archive, in neither. Exit code 3 where something failed,
    or an engine could not be started.

    Example: farm preflight superfinal
    """
    with common.open_ledger() as ledger:
        state = common.choose_open(ledger, name)
        state.event(event)  # refused where there is none
        checked = [
            *_farm(ledger),
            *farm.hall(ledger, state.hall),
            *_machine(ledger),
            *_event(state, event, quiet=as_json),
        ]
        summary = _report(ledger.now_ms(), tuple(checked), state.launched.id, event)
        path = None
        if paths.is_elsewhere(archive):
            programs.warn([f"no report is kept: {paths.elsewhere(archive, 'the archive is')}"])
        else:
            path, digest = _keep(archive, summary)
            fact = {"season": summary.season, "event": event, "sha256": digest}
            failed = [f"{finding.area} {finding.name}" for finding in summary.failed]
            draft = contract.Draft(PREFLIGHT, fact | {"failed": ", ".join(failed)})
            common.append_farm(ledger, draft, common.author(ledger, "preflight"))
    _print(summary, as_json=as_json, path=path)


def _machine(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    """Yield what is found of this machine, which at a desk is no hall's and is not judged."""
    if not paths.at_desk():
        yield from _here(_in_play(ledger))
        return
    yield contract.Finding(
        area="here",
        name="desk",
        status="unknown",
        found="not looked at: games are played on other machines",
        why="cores, sandbox and speed matter on halls' hosts",
        do="`ansible-playbook playbooks/preflight.yml`, or this command on each of them",
    )


def _farm(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    yield from farm.redis(ledger)
    yield from farm.journals(ledger)
    heartbeats = vitals.read(ledger)
    drained = {host: vitals.host_drained(ledger, seen) for host, seen in heartbeats.items()}
    yield from farm.hosts(heartbeats, ledger.now_ms(), drained)


def _in_play(ledger: store.RedisLedger) -> dict[str, str]:
    """Return the games in flight, by their hosts."""
    slots = filter(None, map(ledger.slot, ledger.halls()))
    return {slot.host: slot.game for slot in slots}


def _here(in_play: Mapping[str, str]) -> Iterator[contract.Finding]:
    """Yield what the packages on this machine find of it: a hall's cores, sandbox, speed."""
    for entry in importlib.metadata.entry_points(group=CHECKS):
        try:
            check: Check = entry.load()
        except ModuleNotFoundError as error:
            yield contract.Finding(
                area="here",
                name="system",
                status="unknown",
                found=f"games are played on Linux alone ({error})",
                why="a hall needs Linux; seasons on paper, ratings and audits do not",
                do="on Windows: in WSL",
            )
        else:
            yield from check(in_play)


def _event(
    state: season_state.SeasonState, event: str, *, quiet: bool
) -> Iterator[contract.Finding]:
    yield from season.tables(state, event)
    written = season.trials(state, event, engine_trial.OWN)
    play, url = entry_points.player(), common.redis_url()
    for order in starts.shown([(order.white.name, order) for order in written], quiet=quiet):
        yield from season.engines([order], play, state.hall, url)


def _report(
    now_ms: int, findings: tuple[contract.Finding, ...], season_id: str = "", event: str = ""
) -> Report:
    host = socket.gethostname()
    return Report(
        at_ms=now_ms,
        host=host,
        version=version.VERSION,
        season=season_id,
        event=event,
        findings=findings,
    )


def _print(summary: Report, *, as_json: bool, path: pathlib.Path | None = None) -> None:
    if as_json:
        common.print_json(summary.model_dump(mode="json") | {"file": str(path) if path else None})
    else:
        table = rich.table.Table("area", "what", "", "found", "why; what to do")
        for finding in summary.findings:
            advice = finding.why if finding.status == "ok" else f"{finding.why}\n→ {finding.do}"
            table.add_row(finding.area, finding.name, finding.status, finding.found, advice)
        console = common.console()
        if not console.is_terminal:  # there it would be as wide as its longest words
            console.width = WIDTH
        console.print(table)
    lacks = [f"{finding.area} {finding.name}" for finding in summary.failed]
    lacks += [f"{engine.name} (not started)" for engine in summary.unstarted]
    if lacks:
        raise errors.RefusedError(f"not ready: {', '.join(lacks)}")
