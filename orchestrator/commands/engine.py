"""``farm engine``: the engines of a season or of a roster file: list, show, import.

What changes them in a running season stands in ``engine_changes``, test games in
``engine_trial``.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, engine_changes, engine_trial, rosters, shell_offers
from orchestrator.common import bounds, errors
from orchestrator.engines import cutechess
from orchestrator.season.amend import engine_update, windows
from orchestrator.season.file import load, roster
from orchestrator.season.fold import orders, state
from orchestrator.season.spec import model


@click.group()
def engine() -> None:
    """Show, import, add, update and test engines.

    Example: farm engine list
    """


engine.add_command(engine_changes.add)
engine.add_command(engine_changes.update)
engine.add_command(engine_changes.deadline)
engine.add_command(engine_trial.test)


@engine.command("list")
@common.season_argument
@rosters.any_file_option
@common.json_option
def list_(season: str | None, file: str | None, *, as_json: bool) -> None:
    """List the engines of SEASON as they are now, or those of a roster or season file.

    Example: farm engine list --file engines.toml
    """
    rows = _rows(season, file)
    if as_json:
        common.print_json(rows)
        return
    table = rich.table.Table("id", "name", "version", "author", "rating", "runs on", "NN", "state")
    for row in rows:
        neural = "yes" if row["neural"] else ""
        rating = "" if row["rating"] is None else str(row["rating"])
        rating += "?" if row["provisional"] else ""
        named = (row["engine"], row["name"], row["version"], row["author"])
        table.add_row(*named, rating, row["competition"], neural, row["state"])
    common.console().print(table)


def _rows(season: str | None, file: str | None) -> list[dict[str, Any]]:
    """Return the engines of a file where one is named, else of a season."""
    if season and file:
        raise errors.UsageError(f"season {season} and --file {file}: name one of them")
    return _of_file(file) if file else _of_season(season)


def _of_file(file: str) -> list[dict[str, Any]]:
    """Return the engines of a roster file, or of a season file with those that are found here."""
    loaded = rosters.season_of(file)
    if loaded is None:
        entries = load.load_engines(pathlib.Path(file))
    else:
        listed = loaded.season.roster
        installed = map(_entry_of, roster.found(listed, loaded.engines))
        entries = (*listed.engines, *listed.fill, *installed)
    return [_row(entry) | {"state": _dropped(entry)} for entry in entries]


def _of_season(season: str | None) -> list[dict[str, Any]]:
    with common.open_ledger() as ledger:
        chosen, now_ms = common.choose(ledger, season), ledger.now_ms()
    return [_standing(chosen, name, now_ms) for name in chosen.engines]


def _row(entry: model.EngineEntry) -> dict[str, Any]:
    """Return an entry as plain data, its name and id filled in."""
    spec = roster.spec(entry)
    fields = entry.model_dump(mode="json") | {"name": spec.name}
    return {"engine": spec.id} | {key: value for key, value in fields.items() if key != "id"}


def _dropped(entry: model.EngineEntry) -> str:
    return f"dropped: {entry.dropped}" if entry.dropped else ""


def _standing(now: state.SeasonState, engine_id: str, now_ms: int) -> dict[str, Any]:
    """Return an engine of a season: what it is, where it plays, what may be changed."""
    entry = engine_update.entries_of(now).get(engine_id)
    if entry is None:  # found on the host by its name, or a substitute
        entry = _entry_of(now.engines[engine_id])
    playing = windows.playing(now, engine_id)
    coming = windows.upcoming(now, engine_id)
    pin = now.engines[engine_id] if playing is None else orders.pinned(now, playing, engine_id)
    return _row(entry) | {
        "playing": "" if playing is None else playing.id,
        "plays_as": "" if playing is None else _version(pin),
        "pinned": dict(pin.checksums) if playing is not None else {},
        "upcoming": [event.id for event in coming],
        "updates": {event.id: _window(now, event.id, engine_id, now_ms) for event in coming},
        "state": _state(now, engine_id),
    }


def _entry_of(spec: contract.EngineSpec) -> model.EngineEntry:
    """Return an entry that says of an engine what its season knows."""
    fields = spec.model_dump(mode="json", exclude_defaults=True)
    listed = {key: value for key, value in fields.items() if key in model.EngineEntry.model_fields}
    return model.EngineEntry.model_validate(listed)


def _window(now: state.SeasonState, event: str, engine_id: str, now_ms: int) -> str:
    """Say whether an engine may be updated for an event, and why not."""
    try:
        windows.require_window(now, now.events[event], engine_id, now_ms)
    except errors.RefusedError as refused:
        return str(refused)
    return "open"


def _version(pin: contract.EngineSpec) -> str:
    """Return what an event has pinned, by its version where that is no part of its name."""
    named_already = pin.version in ("", *pin.name.split())
    return pin.name if named_already else f"{pin.name} {pin.version}"


def _state(now: state.SeasonState, engine_id: str) -> str:
    playing = windows.playing(now, engine_id)
    if playing is not None:
        pin, entered = orders.pinned(now, playing, engine_id), now.engines[engine_id]
        other = _version(pin) != _version(entered)
        return f"plays {playing.id}" + (f" as {_version(pin)}" if other else "")
    coming = ", ".join(event.id for event in windows.upcoming(now, engine_id))
    return f"next {coming}" if coming else ""


@engine.command()
@click.argument("name", shell_complete=shell_offers.engines)
@common.season_option
@rosters.any_file_option
@common.json_option
def show(name: str, season: str | None, file: str | None, *, as_json: bool) -> None:
    """Show all that is known of engine NAME (its id): entry, pins, update windows.

    The entry is what the next events play; plays_as and pinned describe the running one.

    Example: farm engine show stockfish
    """
    rows = _rows(season, file)
    shown_row = next((row for row in rows if row["engine"] == name), None)
    if shown_row is None:
        engine_ids = ", ".join(row["engine"] for row in rows) or "none"
        raise errors.RefusedError(f"there is no engine {name!r}; engines: {engine_ids}")
    if as_json:
        common.print_json(shown_row)
        return
    for key, value in shown_row.items():
        if value not in (None, "", {}, [], False):
            click.echo(f"{key:>12}: {_as_text(value)}")


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} = {_as_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return shlex.join(map(str, value))
    return str(value)


@engine.command("import")
@click.argument("source")
@click.option("-o", "--output", help="Write the roster here; default: to the terminal.")
@click.option("--pin", is_flag=True, help="Add the checksums of files that this machine has.")
def import_(source: str, output: str | None, *, pin: bool) -> None:
    """Make a roster file of SOURCE, cutechess' engines.json.

    Relative working directories and programs are taken from SOURCE's folder, and written whole:
    a hall knows no other folder.

    Example: farm engine import engines.json -o engines.toml
    """
    if output and pathlib.Path(output).exists():
        raise errors.UsageError(f"{output} exists; give another name, or move it away")
    entries = _imported(source)
    for entry in entries:
        if entry.directory and not pathlib.Path(entry.directory).is_dir():
            warning = f"farm: {entry.name}: its directory {entry.directory} is not on this machine"
            click.echo(warning, err=True)
    text = roster.as_toml([rosters.pinned(entry) for entry in entries] if pin else entries)
    if output is None:
        click.echo(text, nl=False)
        return
    pathlib.Path(output).write_text(text, encoding="utf-8")
    click.echo(f'{output}: {len(entries)} engines; a season names it: [roster] file = "{output}"')


def _imported(source: str) -> list[model.EngineEntry]:
    try:
        listed = cutechess.parse(bounds.content(pathlib.Path(source), bounds.SETTINGS_BYTES))
    except (OSError, ValueError) as error:
        allowed = "a JSON list of engines, each with name and command"
        why = errors.reason(error)
        raise errors.UsageError(f"{source}: found {why}; allowed: {allowed}") from error
    taken: set[str] = set()
    return [_entry(configured, source, taken) for configured in listed.values()]


def _folder(directory: str, source: str) -> pathlib.Path:
    """Return an engine's folder; cutechess' own was its user's, of which its file tells nothing."""
    beside = pathlib.Path(source).absolute().parent
    return pathlib.Path(os.path.normpath(beside / pathlib.Path(directory).expanduser()))


def _entry(configured: cutechess.Configured, source: str, taken: set[str]) -> model.EngineEntry:
    """Return an entry whose id no other has; its own where the name gives none."""
    where = f"{source}: {configured.name}"
    if configured.ponder:
        text = "found ponder: true; no engine ponders in a season (the rule texts); farm match does"
        raise errors.UsageError(f"{where}: {text}")
    if not configured.command:
        raise errors.UsageError(f"{where}: found no command; allowed: a program")
    folder = _folder(configured.directory, source)
    program = folder / configured.command
    command_words = [configured.command] if program.is_file() else shlex.split(configured.command)
    sought = "/" in command_words[0] and not command_words[0].startswith(
        "/"
    )  # from a folder, not in the PATH
    placed = dataclasses.replace(
        configured, directory=str(folder) if configured.directory or sought else ""
    )
    try:
        entry = roster.of_cutechess(placed, [*command_words, *configured.arguments])
    except ValueError as error:
        raise errors.UsageError(f"{where}: {error}") from error
    base = roster.id_of(entry) or "engine"
    numbered = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    chosen = next(name for name in numbered if name not in taken)
    taken.add(chosen)
    return entry if chosen == roster.id_of(entry) else entry.model_copy(update={"id": chosen})
