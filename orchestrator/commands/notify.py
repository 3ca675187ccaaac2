"""``farm notify``: notices by mail and webhook, and their acknowledgement."""

from __future__ import annotations

import pathlib
import socket
import time

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, paths, services
from orchestrator.common import errors, logs


def _settings_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--settings",
        "path",
        type=click.Path(path_type=pathlib.Path, dir_okay=False),
        help="The settings; default: notify.toml in the data directory.",
    )(function)


@click.group()
def notify() -> None:
    """Notify people of crashes, decisions, deadlines and hosts that are away.

    Example: farm notify run --settings /etc/farm/notify.toml
    """


@notify.command()
def example() -> None:
    """Print example settings.

    Example: farm notify example > .farm/notify.toml
    """
    from orchestrator.notify import settings  # noqa: PLC0415 - keeps other commands light

    click.echo(settings.EXAMPLE, nl=False)


@notify.command()
@_settings_option
@click.option("--once", is_flag=True, help="Make one pass and end.")
def run(path: pathlib.Path | None, *, once: bool) -> None:
    """Send notices until stopped; what happened before its first start is not sent.

    Example: farm notify run
    """
    from orchestrator.notify import outbox, runner, settings  # noqa: PLC0415 - likewise

    logs.configure()
    usual, kept = runner.paths(common.data_directory())
    notify_settings = settings.load(path or usual)
    ended = services.until_ended()
    with common.open_ledger() as ledger:
        made = runner.Runner(ledger, notify_settings, outbox.Outbox(kept))
        if once:
            made.once()
        else:
            made.run(ended)


@notify.command("list")
@common.json_option
def list_(*, as_json: bool) -> None:
    """Show the notices that are still to be sent, or to be acknowledged.

    Example: farm notify list --json
    """
    from orchestrator.notify import outbox, runner  # noqa: PLC0415 - likewise

    _, kept = runner.paths(common.data_directory())
    paths.require_here(kept.parent, "the notices are")
    waiting = list(outbox.Outbox(kept).waiting.values())
    if as_json:
        common.print_json([notice.model_dump(mode="json") for notice in waiting])
        return
    table = rich.table.Table("notice", "what", "told by", "failed", title="Notices that wait")
    for notice in waiting:
        sent, failed = ", ".join(notice.sent_ms), "; ".join(notice.failed.values())
        table.add_row(notice.id, notice.kind.value, sent, failed)
    common.console().print(table)


@notify.command()
@click.argument("notice")
@common.audited
@common.json_option
def ack(notice: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Acknowledge a notice, so that it is not repeated.

    Example: farm notify ack s17:42:decision-needed --by anna
    """
    from orchestrator.notify import outbox, runner  # noqa: PLC0415 - likewise

    _, kept = runner.paths(common.data_directory())
    paths.require_here(kept.parent, "the notices are")
    if notice not in (waiting := outbox.Outbox(kept).waiting):
        names = ", ".join(waiting) or "none"
        raise errors.RefusedError(f"no notice {notice!r} is waiting; waiting: {names}")
    fact = contract.Draft(runner.ACKNOWLEDGED, {"notice": notice, "name": by, "reason": reason})
    if not dry_run:
        with common.open_ledger() as ledger:
            common.append_farm(ledger, fact, common.author(ledger, by))
    will = "would take" if dry_run else "takes"
    common.report(as_json, dict(fact.data) | {"dry_run": dry_run}, f"{by} {will} {notice}")


@notify.command()
@_settings_option
@common.json_option
def test(path: pathlib.Path | None, *, as_json: bool) -> None:
    """Send a test notice through every channel; exit code 5 if one fails.

    Example: farm notify test
    """
    from orchestrator.notify import channels, notices, runner, settings  # noqa: PLC0415 - likewise

    notify_settings = settings.load(path or runner.paths(common.data_directory())[0])
    fields = {"season_name": "Trial", "event": "no event", "best": "this is a trial notice"}
    trial = notices.Notice("trial", notices.Kind.EVENT_OVER, 0, "trial", fields)
    text = ("Tournament Farm: trial notice", "It works.\n")
    _report(channels.send_to_all(notify_settings.channel, trial, *text), as_json=as_json)


@notify.command()
@_settings_option
@click.argument("service")
@common.json_option
def failed(service: str, path: pathlib.Path | None, *, as_json: bool) -> None:
    """Report at once that a service of this host has failed; needs no Redis.

    The service manager calls it (`OnFailure=` of the units). Without settings nothing is sent.

    Example: farm notify failed farm-backup.service
    """
    from orchestrator.notify import (  # noqa: PLC0415 - likewise
        channels,
        notices,
        runner,
        settings,
        templates,
    )

    path = path or runner.paths(common.data_directory())[0]
    if not path.exists():
        common.report(as_json, {}, f"{service} has failed; {path} is not there: nobody is told")
        return
    notify_settings = settings.load(path)
    fields = {"service": service, "host": socket.gethostname()}
    name = f"{service}:{time.time_ns()}"
    notice = notices.Notice(name, notices.Kind.SERVICE_FAILED, 0, f"service:{service}", fields)
    wanted = [channel for channel in notify_settings.channel if channel.wants(notice)]
    text = templates.render(notice, notify_settings.templates)
    _report(channels.send_to_all(wanted, notice, *text), as_json=as_json)


def _report(outcomes: dict[str, str], *, as_json: bool) -> None:
    """Report what became of a notice by channel; raise ``HostError`` where one did not take it."""
    if as_json:
        common.print_json(outcomes)
    else:
        for name, word in outcomes.items():
            click.echo(f"{name}: {word}")
    lost = [name for name, word in outcomes.items() if word != "sent"]
    if lost:
        raise errors.HostError(f"sending failed by {', '.join(lost)}")
