"""``farm notify``: notices by mail and webhook, and their acknowledgement."""

from __future__ import annotations

import pathlib

import click
import rich.table

from orchestrator import contract, errors, logs
from orchestrator.commands import common, services


def _settings_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--settings",
        "path",
        type=click.Path(path_type=pathlib.Path, dir_okay=False),
        help="The settings; default: notify.toml in the data directory.",
    )(function)


@click.group()
def notify() -> None:
    """Tell people what they must know: crashes, questions, deadlines, hosts that are away.

    Example: farm notify run --settings /etc/farm/notify.toml
    """


@notify.command()
def example() -> None:
    """Print settings to begin with.

    Example: farm notify example > .farm/notify.toml
    """
    from orchestrator.notify import settings  # noqa: PLC0415 - keeps other commands light

    click.echo(settings.EXAMPLE, nl=False)


@notify.command()
@_settings_option
@click.option("--once", is_flag=True, help="Make one pass and end.")
def run(path: pathlib.Path | None, *, once: bool) -> None:
    """Send notices until ended; what happened before its first start is not told.

    Example: farm notify run
    """
    from orchestrator.notify import outbox, runner, settings  # noqa: PLC0415 - likewise

    logs.configure()
    usual, kept = runner.paths(common.data_directory())
    told = settings.load(path or usual)
    ended = services.until_ended()
    with common.open_ledger() as ledger:
        made = runner.Runner(ledger, told, outbox.Outbox(kept))
        if once:
            made.once()
        else:
            made.run(ended)


@notify.command("list")
@common.json_option
def list_(*, as_json: bool) -> None:
    """Show the notices that wait: for a channel, or for somebody to acknowledge them.

    Example: farm notify list --json
    """
    from orchestrator.notify import outbox, runner  # noqa: PLC0415 - likewise

    _, kept = runner.paths(common.data_directory())
    waiting = list(outbox.Outbox(kept).waiting.values())
    if as_json:
        common.print_json([one.model_dump(mode="json") for one in waiting])
        return
    table = rich.table.Table("notice", "what", "told by", "failed", title="Notices that wait")
    for one in waiting:
        told, failed = ", ".join(one.sent_ms), "; ".join(one.failed.values())
        table.add_row(one.id, one.kind.value, told, failed)
    common.console().print(table)


@notify.command()
@click.argument("notice")
@common.audited
@common.json_option
def ack(notice: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Take a notice upon yourself: nobody is reminded of it any more.

    Example: farm notify ack s17:42:decision-needed --by anna
    """
    from orchestrator.notify import outbox, runner  # noqa: PLC0415 - likewise

    _, kept = runner.paths(common.data_directory())
    if kept.exists() and notice not in (known := outbox.Outbox(kept).waiting):
        names = ", ".join(known) or "none"
        raise errors.RefusedError(f"no notice {notice!r} waits; there are: {names}")
    fact = contract.Draft(runner.ACKNOWLEDGED, {"notice": notice, "name": by, "reason": reason})
    if not dry_run:
        with common.open_ledger() as ledger:
            common.append_farm(ledger, fact, common.author(ledger, by))
    common.report(as_json, dict(fact.data), f"{by} takes {notice}")


@notify.command()
@_settings_option
@common.json_option
def test(path: pathlib.Path | None, *, as_json: bool) -> None:
    """Send a trial notice by every channel, whatever it is for; exit 5 where one fails.

    Example: farm notify test
    """
    from orchestrator.notify import channels, notices, runner, settings  # noqa: PLC0415 - likewise

    told = settings.load(path or runner.paths(common.data_directory())[0])
    facts = {"season_name": "Trial", "event": "no event", "best": "this is a trial notice"}
    trial = notices.Notice("trial", notices.Kind.EVENT_OVER, 0, "trial", facts)
    found = {}
    for channel in told.channel:
        try:
            channels.send(channel, trial, "Tournament Farm: trial notice", "It works.\n")
            found[channel.name] = "sent"
        except errors.FarmError as error:
            found[channel.name] = str(error)
    if as_json:
        common.print_json(found)
    else:
        for name, word in found.items():
            click.echo(f"{name}: {word}")
    failed = [name for name, word in found.items() if word != "sent"]
    if failed:
        raise errors.HostError(f"no notice goes by {', '.join(failed)}")
