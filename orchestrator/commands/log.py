"""``farm log``: what operators and organizers did to a season, its launch first."""

from __future__ import annotations

from typing import Any

import click
import rich.table

from orchestrator.commands import common, tables
from orchestrator.season import audit_log
from orchestrator.season.fold import amendment_entries, entries


@click.command()
@common.season_argument
@common.json_option
def log(season: str | None, *, as_json: bool) -> None:
    """Show what people did to a season: launch, pauses, decisions, corrections, amendments.

    Example: farm log --json
    """
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
        listed = list(audit_log.acts(common.journal(ledger, chosen.launched.id)))
    if as_json:
        common.print_json(listed)
        return
    table = rich.table.Table(title=f"Acts in {chosen.launched.id}", title_justify="left")
    for head in ("When", "Who", "What", "About", "Why"):
        table.add_column(head)
    for act in listed:
        when = tables.moment(act["at_ms"])
        table.add_row(when, act["name"], _what(act), _about(act), act["reason"])
    common.console().print(table)
    if len(listed) == 1:
        click.echo(f"{chosen.launched.id}: no operator has changed it since the launch")


def line(act: dict[str, Any]) -> str:
    """Tell an act in one line, with its time."""
    return f"{tables.moment(act['at_ms'])}  {what_was_done(act)}"


def what_was_done(act: dict[str, Any]) -> str:
    """Tell in one line who did what, and why."""
    why = f": {act['reason']}" if act["reason"] else ""
    about = f" ({_about(act)})" if act["about"] else ""
    return f"{act['name']}  {_what(act)}{about}{why}"


def _what(act: dict[str, Any]) -> str:
    if act["kind"] == amendment_entries.ENGINE_REPLACED and "cause" in act["about"]:
        return "engine disqualified, replaced"
    if act["kind"] == entries.GAME_VOIDED and act["about"].get("replay"):
        return "game to be replayed"  # `farm game replay`; without it was `farm game void`
    return str(act["kind"]).replace("_", " ")


def _about(act: dict[str, Any]) -> str:
    fields = []
    for key, value in act["about"].items():
        if key.endswith("_ms"):
            fields.append(tables.moment(value))
        else:
            text = ", ".join(value) if isinstance(value, list) else _name(value)
            fields.append(f"{key.replace('_', ' ')} {text}")
    return "; ".join(fields)


def _name(value: Any) -> str:
    """Return a value's word; of an engine's whole entry the id."""
    return str(value["id"] if isinstance(value, dict) and "id" in value else value)
