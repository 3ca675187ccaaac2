"""Copies of the farm and their restore: ``farm export``, ``backup``, ``restore``."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
import time
from typing import Any

import click
import rich.table

from orchestrator.commands import common, paths, services
from orchestrator.common import errors, output
from orchestrator.ledger import services as reports
from orchestrator.ledger import store
from orchestrator.ops.recovery import backup as backups
from orchestrator.ops.recovery import journal_copies
from orchestrator.ops.recovery import restore as restoring
from orchestrator.season.spec import parsers
from orchestrator.serve import archive as archives


@click.command()
@click.option(
    "--to", "target", type=paths.FOLDER, required=True, help="An empty folder, or a copy."
)
@common.json_option
def export(target: pathlib.Path, *, as_json: bool) -> None:
    """Write all that Redis knows into a folder, for `farm restore`: journals, open games.

    Use it when the archive's disk is lost; `farm backup` copies the archive as well. The copy
    holds seeds and coming openings: protect it as you protect Redis.

    Example: farm export --to /mnt/other/farm
    """
    with common.open_ledger() as ledger:
        made = backups.export(ledger, target)
    _report(made, target, as_json=as_json)


@click.command()
@click.option(
    "--to",
    "target",
    type=paths.FOLDER,
    required=True,
    envvar="FARM_BACKUP_TO",
    help="A folder on another disk; else FARM_BACKUP_TO.",
)
@click.option("--every", help="Repeat at this interval: 30m, 1h, 1d. Runs until stopped.")
@click.option(
    "--offsite",
    type=click.Path(path_type=pathlib.Path, dir_okay=False, exists=True),
    envvar="FARM_BACKUP_OFFSITE",
    help="A program that takes the complete copy off this host and is given the folder;"
    " else FARM_BACKUP_OFFSITE.",
)
@paths.archive
@common.json_option
def backup(
    target: pathlib.Path,
    every: str | None,
    offsite: pathlib.Path | None,
    archive: pathlib.Path,
    *,
    as_json: bool,
) -> None:
    """Update a copy of journals and archive while the farm runs.

    Only what is new is copied. A journal that differs from the copy's is refused, and so is a
    Redis that has lost entries, so a damaged farm never spoils its backup. Run it where the archive
    is: elsewhere it copies the journals, says how many games it lacks, and ends with exit code 3.
    The outcome is published for `farm exporter` and the alerts, but not that of a copy elsewhere.

    Example: farm backup --to /mnt/other/farm --every 1h
    """
    pause = None if every is None else seconds(every)
    ended = threading.Event() if pause is None else services.until_ended()
    while not ended.is_set():
        try:
            with common.open_ledger() as ledger:
                made = _reported(ledger, archive, target, offsite)
        except errors.FarmError as error:
            if pause is None or isinstance(error, errors.UsageError):
                raise
            click.secho(f"farm: {error}; the next backup tries again", err=True, fg="red")
        else:
            _report(made, target, as_json=as_json)
        if pause is None:
            return
        ended.wait(pause)


def _reported(
    ledger: store.RedisLedger,
    archive: pathlib.Path,
    target: pathlib.Path,
    offsite: pathlib.Path | None,
) -> backups.Made:
    """Make a backup, take it off this host where that is wanted, and publish what came of it.

    What is copied at a desk, which has no archive, is not the farm's backup: it is not published.
    """
    began = time.monotonic()
    before = reports.read(ledger, reports.BACKUP, reports.Backup) or reports.Backup(at_ms=0)
    report = before.model_copy(update={"target": str(target), "host": socket.gethostname()})
    changes: dict[str, object] = {"error": ""}
    try:
        made = backups.backup(ledger, archive, target)
        _require_games(ledger, made, archive, target)
        changes |= {"complete_ms": ledger.now_ms(), "entries": sum(made.journals.values())}
        if offsite is not None:
            backups.take_away(offsite, target)
            changes["away_ms"] = ledger.now_ms()
    except (errors.FarmError, OSError) as error:
        changes["error"] = str(error)
        raise
    finally:
        changes["seconds"] = time.monotonic() - began
        if not paths.is_elsewhere(archive):
            with contextlib.suppress(errors.LedgerAwayError):  # then its age tells of it
                report = report.model_copy(update={"at_ms": ledger.now_ms(), **changes})
                ledger.set_service(reports.BACKUP, report.encode())
    return made


def _require_games(
    ledger: store.RedisLedger, made: backups.Made, archive: pathlib.Path, target: pathlib.Path
) -> None:
    """Refuse to call a copy a backup that lacks the moves of finished games."""
    if not made.lacking:
        return
    games = output.some(made.lacking, "finished game")
    serve = reports.read(ledger, reports.SERVE, reports.Serve)
    where = f"on {serve.host}" if serve is not None and serve.host else "where `farm serve` runs"
    raise errors.RefusedError(
        f"{target} has the journals, and lacks the moves of {games}: {archive} is not the farm's"
        f" archive. Run it {where}, where that is (on hosts made by ansible `sudo systemctl start"
        " farm-backup`), or name the archive by --archive or FARM_DATA"
    )


def seconds(text: str) -> float:
    """Read ``30m``, ``1h`` or ``1d``; raise ``UsageError``."""
    try:
        every_ms = parsers.duration_ms(text)
    except ValueError:
        every_ms = 0
    if not every_ms:
        raise errors.UsageError(f"--every: found {text!r}; allowed: such as 30m, 1h, 1d")
    return every_ms / 1000


def _report(made: backups.Made, target: pathlib.Path, *, as_json: bool) -> None:
    entries = sum(made.journals.values())
    report = {"to": str(target), "journals": made.journals, "games": made.games}
    sentence = f"{target}: {len(made.journals)} journals, {entries} entries"
    common.report(as_json, report, f"{sentence}, {made.games} games new")


@click.command()
@click.option("--from", "source", type=paths.FOLDER, help="An export, a backup or another archive.")
@paths.archive
@paths.halls
@click.option("--without-games", is_flag=True, help="Restore although moves of games are lost.")
@common.audited
@common.json_option
def restore(
    source: pathlib.Path | None,
    archive: pathlib.Path,
    halls: pathlib.Path,
    by: str,
    reason: str,
    *,
    without_games: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Restore Redis and the archive from the copies that are left.

    Stop `farm serve` first. Each journal is taken from its longest copy: Redis, the archive's
    mirror, --from. The copies must be prefixes of each other, else that season is left as it is;
    others are restored, and the exit code is 3. The epoch is raised, so workers from before the
    restore can no longer write; the game that was running is judged as interrupted.

    Example: farm restore --from /mnt/other/farm --reason "disk replaced"
    """
    if source is not None and not any(source.glob("*/journal.jsonl")):
        raise errors.UsageError(f"--from {source}: no journal.jsonl is in its folders")
    sources = restoring.Sources(archive, source, halls)
    refused: dict[str, str] = {}
    with common.open_ledger() as ledger, archives.sole_writer(archive):
        journals, plans = restoring.plan(ledger, sources, refused)
        _refuse_lost(plans, without_games=without_games)
        epoch = ledger.present_epoch()
        if not dry_run:
            author = common.author(ledger, by)
            epoch, journals, plans = restoring.apply(
                ledger, sources, journals, author, reason, refused, without_games=without_games
            )
    report = _as_json(journals, plans, epoch) | {"dry_run": dry_run, "reason": reason}
    report["refused"] = refused
    if as_json:
        common.print_json(report)
    else:
        _show(report)
    if refused:
        click.get_current_context().exit(errors.LedgerDamagedError.exit_code)


def _refuse_lost(plans: list[restoring.Plan], *, without_games: bool) -> None:
    lost = [f"{plan.journal.name}/{game}" for plan in plans for game in plan.lost]
    if lost and not without_games:
        raise errors.RefusedError(
            f"the moves of {len(lost)} finished games are in no copy: {', '.join(lost[:8])}"
            f"{' …' if len(lost) > 8 else ''}. Look for them with --from (a backup) and --halls"
            " (spools of the hall), or restore their results alone with --without-games"
        )


def _as_json(
    journals: list[journal_copies.Journal], plans: list[restoring.Plan], epoch: int
) -> dict[str, Any]:
    rows = [
        {
            "journal": journal.name,
            "entries": len(journal.entries),
            "taken_from": journal.whole.place,
            "in_redis": journal.in_redis,
            "in_archive": journal.on_disk,
        }
        for journal in journals
    ]
    ended = {plan.journal.name: plan.running.game for plan in plans if plan.running is not None}
    lost = {plan.journal.name: list(plan.lost) for plan in plans if plan.lost}
    spooled = {plan.journal.name: list(plan.spooled) for plan in plans if plan.spooled}
    return {
        "epoch": epoch,
        "journals": rows,
        "interrupted": ended,
        "lost_games": lost,
        "spooled_games": spooled,
    }


def _show(report: dict[str, Any]) -> None:
    table = rich.table.Table("journal", "entries", "in Redis", "in the archive", "taken from")
    for row in report["journals"]:
        numbers = (row["entries"], row["in_redis"], row["in_archive"])
        table.add_row(row["journal"], *map(str, numbers), row["taken_from"])
    console = common.console()
    console.print(table)
    for season, game in report["interrupted"].items():
        console.print(f"{season}: {game} was in flight; it is judged as interrupted")
    for season, games in report["spooled_games"].items():
        console.print(
            f"{season}: the records of {', '.join(games[:8])} are on the disk of their hall; they"
            " come when its worker starts (--without-games waits for none)"
        )
    for season, games in report["lost_games"].items():
        console.print(f"{season}: the moves of {len(games)} games are lost, their results stand")
    for season, reason in report["refused"].items():
        console.print(f"NOT RESTORED, {season}: {reason}", style="bold red")
    if report["dry_run"]:
        console.print("(nothing was changed)")
    else:
        next_steps = "start `farm serve` and the workers, then `farm fsck`"
        console.print(f"restored; epoch {report['epoch']}; {next_steps}")
