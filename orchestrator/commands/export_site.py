"""``farm export-site``: a season as files for any web host."""

from __future__ import annotations

import pathlib

import click
from click.core import ParameterSource

from orchestrator.commands import common, paths
from orchestrator.common import errors
from orchestrator.ledger import journal_mirror
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
@click.option(
    "--pgn",
    type=click.Path(path_type=pathlib.Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Of a match: its games; default: the journal's name without .jsonl, where that is there.",
)
@paths.archive
@common.json_option
def export_site(
    season: str,
    folder: pathlib.Path,
    pgn: pathlib.Path | None,
    archive: pathlib.Path,
    *,
    as_json: bool,
) -> None:
    """Write a season as files that any web host can serve, without the farm.

    The live page with all tables and replays, PGN, and TCEC's files. SEASON is a season of the
    archive; a journal is named by its path, such as one that `farm simulate --journal` wrote,
    and has no moves but those that its own archive holds.
    Needs no Redis. A season that still goes on is written as it stands. The journal of a
    `farm match` is written likewise: table, Elo, sequential test, and the games of its PGN.

    Example: farm export-site season16 --to /srv/www/season16
    """
    from orchestrator.broadcast.web import site  # noqa: PLC0415 - the web's libraries

    try:
        path = _journal(season, archive)
        if path == pathlib.Path(season) and _unsaid("archive"):
            archive = path.parent.parent  # its own: a simulated season has the id of a real one
        if site.is_match(path):
            _export_match(path, folder, pgn, as_json=as_json)
            return
        journal = journal_mirror.read(path)
    except OSError as error:
        file = error.filename or season
        raise errors.HostError(f"{file}: cannot be read: {errors.reason(error)}") from error
    if not journal:
        raise errors.UsageError(f"{season}: holds no entry of a journal")
    made = site.Site(journal, archive, folder)
    try:
        replayed = made.write(_tell)
    except OSError as error:
        raise errors.HostError(f"{folder} cannot be written: {errors.reason(error)}") from error
    state = made.season.state
    summary = {"season": state.launched.id, "games": made.games, "replays": replayed}
    summary |= {"annulled": made.annulled}
    _say(state.launched.season.name, summary, folder, as_json=as_json)


def _export_match(
    journal: pathlib.Path, folder: pathlib.Path, pgn: pathlib.Path | None, *, as_json: bool
) -> None:
    """Write a match; its games stand in the PGN file that its journal lies beside."""
    from orchestrator.broadcast.web import site  # noqa: PLC0415 - the web's libraries

    beside = journal.with_suffix("")
    made = site.MatchSite(journal, pgn or (beside if beside.is_file() else None), folder)
    summary = {"season": "match", "games": made.games, "replays": made.write(_tell)}
    _say(made.name, summary, folder, as_json=as_json)


def _say(name: str, summary: dict[str, object], folder: pathlib.Path, *, as_json: bool) -> None:
    if as_json:
        common.print_json(summary | {"folder": str(folder)})
    else:
        out = summary.get("annulled")
        with_out = f" ({out} of them annulled)" if out else ""
        click.echo(
            f"{name}: {summary['games']} games{with_out}, {summary['replays']} with moves, are in"
            f" {folder}; serve it as it is (here: `python3 -m http.server --directory {folder}`);"
            " opened as a file its index.html stays empty"
        )


def _unsaid(parameter: str) -> bool:
    """Say whether nobody has given a parameter."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.DEFAULT


def _journal(season: str, archive: pathlib.Path) -> pathlib.Path:
    """Return the journal that is meant; raise ``UsageError`` where there is none."""
    if (named := paths.journal_file(season)) is not None:
        return named
    seasons = [name for name in archives.journals(archive) if name != "farm"]
    if season not in seasons:
        there = ", ".join(seasons) or "none"
        raise errors.UsageError(
            f"there is no season {season!r} in {archive}; there: {there}"
            " (--archive names another archive)"
        )
    return archive / season / "journal.jsonl"


def _tell(number: int, games: int) -> None:
    if number % _EVERY == 0:
        click.echo(f"farm: {number} of {games} games are written", err=True)
