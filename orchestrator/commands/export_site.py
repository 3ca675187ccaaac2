"""``farm export-site``: a season as files for any web host."""

from __future__ import annotations

import pathlib

import click

from orchestrator.commands import common, paths
from orchestrator.common import errors
from orchestrator.ledger import mirror
from orchestrator.serve import archive as archives

_EVERY = 50  # games: so often is told how far it is


@click.command("export-site")
@click.argument("season", metavar="SEASON|JOURNAL")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="An empty folder, or one of an earlier export.",
)
@paths.archive
@common.json_option
def export_site(season: str, folder: pathlib.Path, archive: pathlib.Path, *, as_json: bool) -> None:
    """Write a season as files that any web host can serve, without the farm.

    The live page with all tables and replays, PGN, and TCEC's files. SEASON is a season of the
    archive; a journal is named by its path, such as one that `farm simulate --journal` wrote.
    Needs no Redis. A season that still goes on is written as it stands.

    Example: farm export-site season16 --to /srv/www/season16
    """
    from orchestrator.broadcast.web import site  # noqa: PLC0415 - the web's libraries

    try:
        journal = mirror.read(_journal(season, archive))
    except OSError as error:
        raise errors.HostError(f"the journal cannot be read: {error}") from error
    if not journal:
        raise errors.UsageError(f"{season}: holds no entry of a journal")
    made = site.Site(journal, archive, folder)
    try:
        replayed = made.write(_tell)
    except OSError as error:
        raise errors.HostError(f"{folder} cannot be written: {error}") from error
    state = made.season.state
    games = sum(event.tally.games for event in state.events.values())
    if as_json:
        common.print_json(
            {
                "season": state.launched.id,
                "games": games,
                "replays": replayed,
                "folder": str(folder),
            }
        )
    else:
        click.echo(
            f"{state.launched.season.name}: {games} games, {replayed} of them with moves, are in"
            f" {folder}; serve it as it is, index.html is the page"
        )


def _journal(season: str, archive: pathlib.Path) -> pathlib.Path:
    """Return the journal that is meant; raise ``UsageError`` where there is none."""
    named = pathlib.Path(season)
    if named.is_file():
        return named
    known = [name for name in archives.journals(archive) if name != "farm"]
    if season not in known:
        there = ", ".join(known) or "none"
        raise errors.UsageError(
            f"there is no season {season!r} in {archive}; there: {there}"
            " (--archive names another archive)"
        )
    return archive / season / "journal.jsonl"


def _tell(number: int, games: int) -> None:
    if number % _EVERY == 0:
        click.echo(f"farm: {number} of {games} games are written", err=True)
