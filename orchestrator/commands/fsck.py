"""``farm fsck``: compare journal, mirror, archive and feeds, and repair what can be rebuilt."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Sequence

import click
import rich.table

from orchestrator.commands import common, paths
from orchestrator.common import errors
from orchestrator.ledger import api, store
from orchestrator.ops import fsck as checks
from orchestrator.ops.fsck import findings
from orchestrator.serve import archive as archives


@click.command()
@common.season_argument
@paths.archive
@paths.halls
@paths.feeds
@click.option("--only", multiple=True, help="A checker's name; may be given again.")
@click.option(
    "--repair", is_flag=True, help="Repair what can be rebuilt; stop `farm serve` before."
)
@common.json_option
@click.pass_context
def fsck(
    ctx: click.Context,
    season: str | None,
    archive: pathlib.Path,
    halls: pathlib.Path,
    feeds: pathlib.Path,
    only: tuple[str, ...],
    *,
    repair: bool,
    as_json: bool,
) -> None:
    """Check that journal, mirror, archive and feeds agree; report what does not.

    All seasons, or SEASON, on the machine that has the archive. Without --repair nothing is
    changed, and the farm may run.
    Exit code 0: all is well, or all was repaired; 3: something is left to be done.

    Example: farm fsck --repair
    """
    wanted = checks.checkers(only)
    paths.require_here(archive, "the archive is")
    with common.open_ledger() as ledger, contextlib.ExitStack() as stack:
        if repair:
            stack.enter_context(archives.sole_writer(archive))
        names = [season] if season else _names(ledger, archive)
        seasons = [findings.Season(name, ledger, archive, halls, feeds) for name in names]
        all_checked = [
            checked for each in seasons for checked in checks.check(each, wanted, repair=repair)
        ]
    _report(names, all_checked, as_json=as_json)
    ctx.exit(
        errors.LedgerDamagedError.exit_code
        if any(not checked.repaired for checked in all_checked)
        else 0
    )


def _names(ledger: store.RedisLedger, root: pathlib.Path) -> list[str]:
    launched = list(ledger.seasons())
    on_disk = (path.parent.name for path in root.glob("*/journal.jsonl"))
    return [*launched, *sorted(set(on_disk) - set(launched) - {api.FARM})]


def _report(names: Sequence[str], all_checked: Sequence[findings.Told], *, as_json: bool) -> None:
    if as_json:
        common.print_json(
            {"seasons": list(names), "findings": [checked.as_json() for checked in all_checked]}
        )
        return
    if not all_checked:
        seasons = "1 season" if len(names) == 1 else f"{len(names)} seasons"
        click.echo(f"{seasons}: journal, archive and feeds agree")
        return
    table = rich.table.Table("season", "checker", "place", "problem", "")
    for checked in all_checked:
        where = checked.finding.place
        table.add_row(
            checked.season, checked.checker, where, checked.finding.problem, _word(checked)
        )
    common.console().print(table)


def _word(checked: findings.Told) -> str:
    if checked.repaired:
        return "repaired"
    return "--repair can repair it" if checked.finding.repair else checked.finding.advice
