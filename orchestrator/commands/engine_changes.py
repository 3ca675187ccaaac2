"""Commands by which engines of a running season change: add, update, deadline.

Each is held to the update windows of the season's rule text, refused with the clause, and
journaled with who, when and why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import click

from orchestrator import contract
from orchestrator.commands import common, programs, rosters, season_change, shell_offers, times
from orchestrator.season.amend import engine_update
from orchestrator.season.file import roster
from orchestrator.season.fold import state
from orchestrator.season.spec import model


def _entry_options(function: common.Function) -> common.Function:
    file = click.option("--file", required=True, help="The roster file with the engine's entry.")
    pin = click.option("--pin", is_flag=True, help="Add checksums of files this machine has.")
    return file(pin(function))


def _entry(file: str, name: str, *, pin: bool) -> model.EngineEntry:
    entry = rosters.entry(file, name)
    programs.warn(programs.warnings([roster.spec(entry)]))
    return rosters.pinned(entry) if pin else entry


@click.command()
@click.argument("name", shell_complete=shell_offers.engines)
@click.option(
    "--event",
    shell_complete=shell_offers.events,
    help="The event to come; needed while the engine plays another.",
)
@_entry_options
@season_change.act
def update(name: str, event: str | None, file: str, act: season_change.Act, *, pin: bool) -> None:
    """Update engine NAME (its id) to its entry in a roster file, for its next events.

    A running event is never changed. Refused with the clause that forbids it.

    Example: farm engine update igel --file engines.toml --event l1 --reason "2.3, by mail"
    """
    entry = _entry(file, name, pin=pin)
    done = act.change_at(
        lambda now, now_ms: engine_update.update(now, entry, event, now_ms, act.by, act.reason)
    )
    called = entry.name or name
    as_name = called if entry.version in called else f"{called} {entry.version}"
    sentence = f"{name} {act.tense('will play', 'plays')} its next event as {as_name}"
    act.report(done, {"engine": name, "version": entry.version}, sentence)


@click.command()
@click.argument("name", shell_complete=shell_offers.engines)
@click.option(
    "--event",
    shell_complete=shell_offers.events,
    default="",
    help="The event it enters; default: it is a reserve.",
)
@_entry_options
@season_change.act
def add(name: str, event: str, file: str, act: season_change.Act, *, pin: bool) -> None:
    """Add engine NAME of a roster file to a running season.

    A reserve can be tested, and take another engine's place.

    Example: farm engine add minic --file engines.toml --event l2 --reason "invited"
    """
    entry = _entry(file, name, pin=pin)
    done = act.change_at(
        lambda now, now_ms: engine_update.add(now, entry, event, now_ms, act.by, act.reason)
    )
    enters = f"{act.tense('will enter', 'enters')} {event}"
    sentence = f"{name} {enters if event else act.tense('will be a reserve', 'is a reserve')}"
    act.report(done, {"engine": name, "event": event}, sentence)


@click.command()
@click.argument("event", shell_complete=shell_offers.events)
@click.option("--at", "moment", required=True, help=f"When it passes: {times.HELP}")
@click.option("--engine", default="", help="For one engine; default: for all of the event.")
@season_change.act
def deadline(event: str, moment: str, engine: str, act: season_change.Act) -> None:
    """Set the submission deadline of EVENT (S16-13c); the event begins no earlier.

    A gate that would open before it is moved to it; an event without a break waits for it.

    Example: farm engine deadline divp --at 36h --engine igel --reason "compiler bug"
    """

    def change(now: state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        at_ms = times.read(moment, now_ms)
        return engine_update.set_deadline(now, event, engine, at_ms, act.by, act.reason)

    done = act.change_at(change)
    at_ms = int(done.fact["at_ms"])
    until = dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).isoformat(timespec="minutes")
    moved = "; its gate opens then, no earlier" if len(done.drafts) > 1 else ""
    will = act.tense("will be accepted", "are accepted")
    of = f" of {engine}" if engine else ""
    sentence = f"submissions for {event}{of} {will} until {until}{moved}"
    act.report(done, {"event": event, "engine": engine, "at_ms": at_ms}, sentence)
