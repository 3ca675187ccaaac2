"""``farm doctor`` and ``farm preflight``: what must hold before a season, and before an event."""

from __future__ import annotations

import importlib.metadata
import pathlib
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, completing, engine_trial, paths
from orchestrator.common import errors, version
from orchestrator.ledger import store, vitals
from orchestrator.ops import entry_points
from orchestrator.ops.doctor import farm, report, season
from orchestrator.season.fold import state as season_state

CHECKS = "farm.checks"
Check: TypeAlias = Callable[[Mapping[str, str]], Iterator[contract.Finding]]


def _only(function: common.Function) -> common.Function:
    return click.option("--only", multiple=True, help="Only this area, such as redis or host.")(
        function
    )


@click.command()
@_only
@common.json_option
def doctor(only: tuple[str, ...], *, as_json: bool) -> None:
    """Look at everything that must hold before a season, each with its reason.

    Redis, journals, halls and hosts as they tell of themselves; this machine's sandbox,
    cores, memory, disk and speed where it is a hall's: the last is measured on the engines'
    cores, and left out while a game is in play. Exit code 3 where something failed.

    Example: farm doctor --only redis --json
    """
    with common.open_ledger() as ledger:
        checked = [*_farm(ledger), *_here(ledger)]
        summary = _report(ledger.now_ms(), report.only(checked, only))
    _print(summary, as_json=as_json)


@click.command()
@click.argument("event", shell_complete=completing.events)
@click.option("--season", "name", help="The season; default: the only one that is not over.")
@paths.archive
@common.json_option
def preflight(event: str, name: str | None, archive: pathlib.Path, *, as_json: bool) -> None:
    """Look at everything before EVENT, start its engines, and keep the report with it.

    Run it on the hall's host while the season is at a gate or paused: each engine plays
    two plies as in a game. The report is kept in the archive and its SHA-256 in the farm's
    journal. Exit code 3 where something failed.

    Example: farm preflight superfinal
    """
    with common.open_ledger() as ledger:
        state = common.choose_open(ledger, name)
        state.event(event)  # refused where there is none
        checked = [
            *_farm(ledger),
            *farm.hall(ledger, state.hall),
            *_here(ledger),
            *_event(state, event),
        ]
        summary = _report(ledger.now_ms(), tuple(checked), state.launched.id, event)
        path, digest = report.keep(archive, summary)
        fact = {"season": summary.season, "event": event, "sha256": digest}
        fact["failed"] = ", ".join(f"{finding.area} {finding.name}" for finding in summary.failed)
        draft = contract.Draft(report.PREFLIGHT, fact)
        common.append_farm(ledger, draft, common.author(ledger, "preflight"))
    _print(summary, as_json=as_json, path=path)


def _farm(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    yield from farm.redis(ledger)
    yield from farm.journals(ledger)
    yield from farm.hosts(vitals.read(ledger), ledger.now_ms())


def _here(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    """Yield what the packages on this machine find of it: a hall's cores, sandbox, speed."""
    slots = filter(None, map(ledger.slot, ledger.halls()))
    in_play = {slot.host: slot.game for slot in slots}
    for entry in importlib.metadata.entry_points(group=CHECKS):
        check: Check = entry.load()
        yield from check(in_play)


def _event(state: season_state.SeasonState, event: str) -> Iterator[contract.Finding]:
    yield from season.tables(state, event)
    trial = season.trials(state, event, engine_trial.OWN)
    yield from season.engines(trial, entry_points.found(), state.hall, common.redis_url())


def _report(
    now_ms: int, found: tuple[contract.Finding, ...], season_id: str = "", event: str = ""
) -> report.Report:
    host = socket.gethostname()
    return report.Report(
        at_ms=now_ms,
        host=host,
        version=version.VERSION,
        season=season_id,
        event=event,
        findings=found,
    )


def _print(summary: report.Report, *, as_json: bool, path: pathlib.Path | None = None) -> None:
    if as_json:
        common.print_json(summary.model_dump(mode="json") | {"file": str(path) if path else None})
    else:
        table = rich.table.Table("area", "what", "", "found", "why; what to do")
        for finding in summary.findings:
            advice = finding.why if finding.status == "ok" else f"{finding.why}\n→ {finding.do}"
            table.add_row(finding.area, finding.name, finding.status, finding.found, advice)
        common.console().print(table)
    if summary.failed:
        names = ", ".join(f"{finding.area} {finding.name}" for finding in summary.failed)
        raise errors.RefusedError(f"not ready: {names}")
