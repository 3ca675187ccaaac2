"""Commands about rules and what follows from them: check, schema, outcome, verify-draws."""

from __future__ import annotations

import dataclasses

import click

from orchestrator import contract
from orchestrator.commands import common, paths, programs, shell_offers, starts
from orchestrator.commands import launch as launching
from orchestrator.common import errors, output
from orchestrator.ledger import journal_mirror
from orchestrator.season import final_standings as season_outcome
from orchestrator.season import verify_seed
from orchestrator.season.file import describe, load
from orchestrator.season.file import schema as schemas


@click.command()
@click.argument("file", shell_complete=shell_offers.season_files)
@click.option(
    "--start", "starts_engines", is_flag=True, help="Start each engine once, as in a game."
)
@common.json_option
def check(file: str, *, starts_engines: bool, as_json: bool) -> None:
    """Check a season file and explain the season: events, games, days, who goes where.

    FILE is a path, or the name of a bundled season. Contradictions are reported with their place
    in the file; nothing is launched. With --start, on the hall's host, each engine plays two
    plies in its sandbox, by the first event's limits; a warning names those that fail.

    \b
    Examples:
    farm check season16
    farm season check autumn.toml --start
    """  # noqa: D301 - click reads the backspace as "do not wrap"
    loaded = load.load(launching.season_file(file))
    report = describe.explain(loaded)
    report["warnings"] += programs.of_season(loaded)
    started = starts.of_season(loaded, quiet=as_json) if starts_engines else {}
    report["warnings"] += starts.warnings(started)
    if as_json:
        common.print_json(report)
        return
    for line in describe.sentences(report):
        click.echo(line)
    if starts_engines:
        playing = sum(start.tried and not start.problem for start in started.values())
        of = output.some(len(loaded.engines), "engine")
        click.echo(f"Started as in a game: {playing} of {of} play")


@click.command()
@click.argument("kind", type=click.Choice(["season", "roster", "engines"]), default="season")
def schema(kind: str) -> None:
    """Print the JSON Schema of season files, or of roster files (engines.toml), for editors.

    An editor that knows TOML offers keys and marks mistakes by it; the file's first line
    says where it is: #:schema ./season.schema.json. `roster` and `engines` are the same.

    Example: farm schema season > season.schema.json
    """
    common.print_json(schemas.season() if kind == "season" else schemas.roster())


@click.command()
@common.season_argument
@click.option("--drop", default="", help="Engine ids out of development: their places move up.")
@click.option("--top", type=click.IntRange(1), help="Only so many places, such as a Cup's 32.")
@click.option(
    "--placed",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    help="With --top: how many a Cup places as seeds, so that each of these places matters.",
)
@click.option("--order", default="", help="The organizers' order of engines that are level.")
@common.json_option
def outcome(
    season: str | None, drop: str, top: int | None, placed: int, order: str, *, as_json: bool
) -> None:
    """Show what a finished season leaves: final standings, promotions, the next fields.

    A sign = marks engines that are level. With --top it is refused while such engines share a
    place that matters: name them in their order (--order igel,minic).

    Example: farm outcome season16 --top 32 --drop old-engine
    """
    dropped = common.listed(drop)
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
    ordered = common.listed(order)
    for option, engines in (("--drop", dropped), ("--order", ordered)):
        unknown = sorted(set(engines) - chosen.engines.keys())
        if unknown:
            raise errors.UsageError(f"{option}: no engine {', '.join(unknown)} in this season")
    if top is not None:
        placings = season_outcome.final_standings(chosen, dropped, ordered)
        season_outcome.require_parted(placings, top, min(top, placed))
    report = season_outcome.outcome(chosen, dropped, ordered)
    report["standings"] = report["standings"][:top]
    if as_json:
        common.print_json(report)
        return
    for placing in report["standings"]:
        name = chosen.engines[placing["engine"]].name
        mark = "=" if placing["level"] else " "
        click.echo(f"{placing['place']:>3}.{mark}{name} ({placing['event']}, {placing['rank']})")
    if any(placing["level"] for placing in report["standings"]):
        click.echo("= level: no rule puts one before the other")
    for row in report["relegations"]:
        click.echo(f"relegated: {row['engine']} from {row['from']} to {row['to'] or 'outside'}")
    for event, engines in report["next"].items():
        click.echo(f"next {event}: {', '.join(engines) or 'nobody'}")


@click.command("verify-draws")
@click.argument("journal")
@click.option("--file", "season_file", help="The season's file, to draw its books again too.")
@common.json_option
def verify_draws(journal: str, season_file: str | None, *, as_json: bool) -> None:
    """Verify all draws of a finished season from its published journal and seed.

    JOURNAL is a journal.jsonl, or the id of a season in this farm. Needs no Redis for a
    file. Exit code 3 when anything does not follow from the seed.

    Example: farm verify-draws archive/autumn/journal.jsonl --file autumn.toml
    """
    loaded = None if season_file is None else load.load(launching.season_file(season_file))
    verified = verify_seed.verify(_journal(journal), loaded)
    if as_json:
        common.print_json(dataclasses.asdict(verified))
    else:
        click.echo(
            f"{verified.season}: seed {verified.seed}, {verified.draws} drawn entries verified"
        )
        if not verified.books:
            click.echo("the books were not drawn again; give the season's file with --file")
    if verified.mismatches:
        raise errors.RefusedError("\n".join(verified.mismatches))


def _journal(name: str) -> list[contract.Entry]:
    if (path := paths.journal_file(name)) is not None:
        return journal_mirror.read(path)
    with common.open_ledger() as ledger:
        common.fold(ledger, name)  # refused where there is none
        return list(common.journal(ledger, name))
