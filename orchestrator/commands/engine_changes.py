"""Commands by which engines of a running season change: add, update, deadline.

Each is held to the update windows of the season's rule text, refused with the clause, and
journaled with who, when and why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import click

from orchestrator import contract, errors
from orchestrator.commands import common, rosters
from orchestrator.season import model, state, updating

Change = Callable[[state.SeasonState, int], Sequence[contract.Draft]]


def _season_option(function: common.Function) -> common.Function:
    return click.option("--season", help="The season; default: the one that runs.")(function)


def _entry_options(function: common.Function) -> common.Function:
    file = click.option("--file", required=True, help="The roster file with the engine's entry.")
    pin = click.option("--pin", is_flag=True, help="Add checksums of files this machine has.")
    return file(pin(function))


def _change(season: str | None, change: Change, by: str, *, dry_run: bool) -> state.SeasonState:
    with common.open_ledger() as ledger:
        now_ms = ledger.now_ms()
        return common.change_season(
            ledger, season, lambda now: change(now, now_ms), by, dry_run=dry_run
        )


def _entry(file: str, name: str, *, pin: bool) -> model.EngineEntry:
    entry = rosters.entry(file, name)
    return rosters.pinned(entry) if pin else entry


@click.command()
@click.argument("name")
@click.option("--event", help="The event to come; needed while the engine plays another.")
@_season_option
@_entry_options
@common.audited
@common.json_option
def update(
    name: str,
    event: str | None,
    season: str | None,
    file: str,
    by: str,
    reason: str,
    *,
    pin: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Update engine NAME (its id) to its entry in a roster file, for its next events.

    A running event is never changed. Refused with the clause that forbids it.

    Example: farm engine update igel --file engines.toml --event l1 --reason "2.3, by mail"
    """
    entry = _entry(file, name, pin=pin)
    before = _change(
        season,
        lambda now, now_ms: updating.update(now, entry, event, now_ms, by, reason),
        by,
        dry_run=dry_run,
    )
    facts = {"season": before.launched.id, "engine": name, "version": entry.version}
    ending = " (nothing was changed)" if dry_run else ""
    sentence = f"{name} plays its next event as {entry.version or 'its new entry'}{ending}"
    common.report(as_json, facts | {"dry_run": dry_run}, sentence)


@click.command()
@click.argument("name")
@click.option("--event", default="", help="The event it enters; default: it is a reserve.")
@_season_option
@_entry_options
@common.audited
@common.json_option
def add(
    name: str,
    event: str,
    season: str | None,
    file: str,
    by: str,
    reason: str,
    *,
    pin: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add engine NAME of a roster file to a running season.

    A reserve can be tested, and take another engine's place.

    Example: farm engine add minic --file engines.toml --event l2 --reason "invited"
    """
    entry = _entry(file, name, pin=pin)
    before = _change(
        season,
        lambda now, now_ms: updating.add(now, entry, event, now_ms, by, reason),
        by,
        dry_run=dry_run,
    )
    facts = {"season": before.launched.id, "engine": name, "event": event, "dry_run": dry_run}
    ending = " (nothing was changed)" if dry_run else ""
    common.report(
        as_json, facts, f"{name} {f'enters {event}' if event else 'is a reserve'}{ending}"
    )


@click.command()
@click.argument("event")
@click.option("--at", "moment", required=True, help="2026-05-01T18:00+00:00, or 36h from now.")
@click.option("--engine", default="", help="For one engine; default: for all of the event.")
@_season_option
@common.audited
@common.json_option
def deadline(
    event: str,
    moment: str,
    engine: str,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the submission deadline of EVENT (S16-13c); its start closes it in any case.

    Example: farm engine deadline divp --at 36h --engine igel --reason "compiler bug"
    """
    at: list[int] = []

    def change(now: state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        at[:] = [_moment_ms(moment, now_ms)]
        return updating.set_deadline(now, event, engine, at[0], by, reason)

    before = _change(season, change, by, dry_run=dry_run)
    told = dt.datetime.fromtimestamp(at[0] / 1000, dt.UTC).isoformat(timespec="minutes")
    facts = {"season": before.launched.id, "event": event, "engine": engine, "at_ms": at[0]}
    ending = " (nothing was changed)" if dry_run else ""
    sentence = f"submissions for {event} {f'of {engine} ' if engine else ''}until {told}{ending}"
    common.report(as_json, facts | {"dry_run": dry_run}, sentence)


def _moment_ms(text: str, now_ms: int) -> int:
    """Read a time of day with its offset, or a duration from now; raise ``UsageError``."""
    try:
        return now_ms + model.duration_ms(text)
    except ValueError:
        pass
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        allowed = "a duration from now such as 36h, or 2026-05-01T18:00+00:00"
        raise errors.UsageError(f"--at: found {text!r}; allowed: {allowed}")
    return round(moment.timestamp() * 1000)
