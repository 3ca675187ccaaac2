"""``farm import``: take games that were played elsewhere into a running season."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.audit import reading, reasons
from orchestrator.commands import change_words, common, launch, season_change, shell_offers
from orchestrator.common import errors, output
from orchestrator.ledger import api
from orchestrator.ops import import_games
from orchestrator.season import consequences
from orchestrator.season.file import load
from orchestrator.season.fold import disqualification, state


@click.command("import")
@click.argument("pgn", type=click.Path(path_type=pathlib.Path, dir_okay=False))
@click.option(
    "--engine",
    "names",
    multiple=True,
    metavar="NAME=ID",
    help="An engine that the file calls otherwise.",
)
@click.option("--insist", is_flag=True, help="Import in spite of the doubts; they are journaled.")
@click.option(
    "--file",
    "season_file",
    metavar="FILE",
    shell_complete=shell_offers.season_files,
    help="With --dry-run: preview the import into a season of this file, not launched yet.",
)
@season_change.act
def import_(
    pgn: pathlib.Path,
    names: Sequence[str],
    season_file: str | None,
    act: season_change.Act,
    *,
    insist: bool,
) -> None:
    """Import the games in PGN (plain or gzip) as the next scheduled results.

    The season must be paused (best from `farm launch --paused` on) or held. --dry-run is the
    preview, with --file even before the launch: a season that was launched keeps its format. Of
    what would be refused it exits 3, too.
    Refused as a whole if any game contradicts the schedule or the rules; doubts (time control,
    adjudication, opening of a reverse game, a game that the season has already) are refused unless
    you --insist.

    Example: farm import before-the-move.pgn --dry-run; then with --by anna --reason "new hall"
    """
    if not act.reason and not act.dry_run:
        raise errors.UsageError("an import needs --reason")
    recorded, sha256 = _read(pgn)
    called = dict(_name(text) for text in names)
    source = import_games.Source(pgn.name, sha256, act.reason, act.by, called)
    if season_file is not None:
        _of_file(season_file, recorded, source, act, insist=insist)
        return
    plans: list[import_games.Plan] = []

    def change(now: state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        disqualification.require_still(now)
        plans.append(import_games.plan(now, recorded, source, now_ms))
        if not act.dry_run:
            _refuse(plans[-1], act, insist=insist)
        return plans[-1].drafts

    def settled(now: state.SeasonState) -> Sequence[api.Effect]:
        """Return that no hall may tell these results any more: one may still have such a game."""
        return [api.Settle(now.launched.id, game) for game in plans[-1].games]

    done = act.change_at(change, settled, unoffered=True)
    _show(done.before, plans[-1], source, done.change, len(recorded), act, insist=insist)
    done.require_allowed()


def _of_file(
    file: str,
    recorded: Sequence[tuple[reading.Game, str]],
    source: import_games.Source,
    act: season_change.Act,
    *,
    insist: bool,
) -> None:
    """Show the preview of an import into a season that a file would begin."""
    # What simulates seasons is loaded for a preview alone.
    from orchestrator.forecast import season_simulation  # noqa: PLC0415

    if not act.dry_run or act.season is not None:
        raise errors.UsageError(
            "--file shows what an import into a season of that file would be: give it with"
            " --dry-run, and without --season"
        )
    season = season_simulation.Simulation.launched(load.load(launch.season_file(file)), 0).state
    now_ms = time.time_ns() // 1_000_000
    plan = import_games.plan(season, recorded, source, now_ms)
    change = consequences.of(season, plan.drafts, now_ms)
    _show(season, plan, source, change, len(recorded), act, insist=insist)


def _read(path: pathlib.Path) -> tuple[list[tuple[reading.Game, str]], str]:
    """Return the games with their texts, and the file's SHA-256; raise ``UsageError``.

    Annulled games of another season count for nobody: they are passed over.
    """
    games = reading.archive([path])
    texts = reading.chunks(reading.text_of(path))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    pairs = zip(games, texts, strict=True)
    return [(game, text) for game, text in pairs if not reasons.annulled(game)], sha256


def _name(text: str) -> tuple[str, str]:
    name, equals, engine = text.rpartition("=")
    if not equals:
        raise errors.UsageError(f"--engine {text!r}: allowed is NAME=ID, such as 'SF 10=sf'")
    return name, engine


def _refuse(plan: import_games.Plan, act: season_change.Act, *, insist: bool) -> None:
    """Raise ``RefusedError`` for what cannot be imported; a preview has shown the hints before."""
    hints = "" if act.dry_run else "".join(f"\nHint: {hint}" for hint in plan.hints)
    nothing = act.tense("nothing would be imported", "nothing is imported")
    if plan.problems:
        raise errors.RefusedError(f"{nothing}: " + "; ".join(plan.problems) + hints)
    if plan.doubts and not insist:
        doubts = "\n  ".join(plan.doubts)
        raise errors.RefusedError(f"{nothing} unless you --insist:\n  {doubts}{hints}")


def _show(
    before: state.SeasonState,
    plan: import_games.Plan,
    source: import_games.Source,
    change: consequences.Consequences,
    games: int,
    act: season_change.Act,
    *,
    insist: bool,
) -> None:
    """Show what becomes of each game; raise ``RefusedError`` for a preview of a refusal."""
    kinds = [draft.kind for draft in plan.drafts]
    report: dict[str, Any] = {
        "season": before.launched.id,
        "file": source.file,
        "sha256": source.sha256,
        "dry_run": act.dry_run,
        "games": [vars(line) | {"doubts": list(line.doubts)} for line in plan.lines],
        "hints": list(plan.hints),
        "not_read_on": games - len(plan.lines),
        "follows": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds[1:])},
        "changes": change.as_json(),
    }
    if act.as_json:
        common.print_json(report)
    else:
        common.console().print(_table(plan))
        for hint in plan.hints:
            click.echo(output.plain(f"Hint: {hint}"))
    _refuse(plan, act, insist=insist)
    if not act.as_json:
        verb = act.tense("would be imported", "are imported")
        click.echo(f"{games} games {verb}; SHA-256 of {source.file} {source.sha256}")
        others = dataclasses.replace(change, games=())  # the table has the games
        for line in change_words.lines(others, dry_run=act.dry_run):
            click.echo(output.plain(line))


def _table(plan: import_games.Plan) -> rich.table.Table:
    table = rich.table.Table(title="Import", title_justify="left")
    for head in ("#", "White", "Black", "Result", "Game", "Remarks"):
        table.add_column(head)
    for line in plan.lines:
        remarks = f"REFUSED: {line.problem}" if line.problem else "; ".join(line.doubts)
        table.add_row(str(line.number), line.white, line.black, line.result, line.game, remarks)
    return table
