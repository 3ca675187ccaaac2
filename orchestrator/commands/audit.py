"""The command audit: compare a PGN archive with the rule texts, or with season files."""

from __future__ import annotations

import pathlib
from typing import Any, get_args

import click

from orchestrator.audit import reading, record, report, rules, season
from orchestrator.commands import common, launch
from orchestrator.common import errors, output
from orchestrator.season.file import load, roster

_FORMATS = {"round-robin": "league", "berger": "league", "circle": "league"}
_COUNT = click.IntRange(min=1)
_BOUND = click.IntRange(min=0)
_OF_RULES = {  # the numbers that have no meaning where the rule was not played
    "no_draw_rule": ("draw_ply", "draw_cp", "draw_plies", "draw_pieces", "draw_pawns"),
    "no_win_rule": ("win_cp", "win_plies"),
    "no_tablebase": ("tb_men",),
}


@click.command()
@click.argument("pgn", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--rules", "name", type=click.Choice(rules.NAMES), help="Rule text.")
@click.option("--season", "seasons", multiple=True, help="Season file; the PGN are its events.")
@click.option(
    "--format",
    "kind",
    type=click.Choice([*get_args(rules.Kind), *_FORMATS]),
    help="What was played; found from the games. berger and circle name a league's table.",
)
@click.option("--cycles", type=_COUNT, help="Cycles of a league; found from the games.")
@click.option("--pairs", type=_COUNT, help="Pairs of games of a match; the Cup's by its round.")
@click.option("--seeds", default="", help="Engines by seed, comma between; found from round 1.")
@click.option("--exclude", default="", help="Engines that withdrew: their results are annulled.")
@click.option("--disqualify-after", type=_BOUND, help="Crashes that annul; 0: never.")
@click.option("--draw-ply", type=_BOUND, help="First ply that the draw rule may end: 70.")
@click.option("--draw-cp", type=_BOUND, help="Its bound in centipawns.")
@click.option("--draw-plies", type=_COUNT, help="Its plies in a row.")
@click.option("--draw-pieces", type=click.IntRange(min=2), help="Few-pieces rule: most pieces.")
@click.option("--draw-pawns", type=_BOUND, help="Few-pieces rule: most pawns.")
@click.option("--no-draw-rule", is_flag=True, help="No draw rule was played.")
@click.option("--win-cp", type=_COUNT, help="Bound of the win rule in centipawns.")
@click.option("--win-plies", type=_COUNT, help="Its plies in a row.")
@click.option("--no-win-rule", is_flag=True, help="No win rule was played.")
@click.option("--tb-men", type=click.IntRange(3, 7), help="Men at which tablebases end a game.")
@click.option("--no-tablebase", is_flag=True, help="No tablebase ended games.")
@common.json_option
def audit(
    pgn: tuple[pathlib.Path, ...], *, seasons: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Recompute from PGN archives all that the rule texts say; report what disagrees.

    PGN is plain or gzip; several are read as one archive. Needs no Redis. Disagreements are
    the report, not an error. A broken game is named and counts nowhere, the others are
    judged: exit code 2 says that something could not be read.

    With --season, each file is an event of that season file (give the option again for another
    one), or a record of such events: its field, pairings, openings, clocks and playoffs are
    predicted from the file and compared. The other options go with --rules alone.

    Example: farm audit TCEC_Season_19_-_League_3.pgn.gz --rules s17 --draw-cp 15
    """
    if seasons:
        _refuse_options(options)
        _seasons(pgn, seasons, as_json=as_json)
        return
    if options["name"] is None:
        raise errors.UsageError("--rules or --season is needed: what to compare with")
    games, broken = reading.survey(pgn)
    audited = report.report(games, _rules(options), broken)
    if as_json:
        common.print_json(audited)
    else:
        click.echo(output.plain("\n".join(report.sentences(audited))))
    if broken:
        text = f"{len(broken)} of {len(games) + len(broken)} games cannot be read (named above)"
        raise errors.UsageError(f"{text}. Fix the PGN and run the audit again")


def _refuse_options(options: dict[str, Any]) -> None:
    """Refuse beside --season what only --rules reads: a season's file says it all itself."""
    words = {"name": "rules", "kind": "format"}
    set_ones = [name for name, value in options.items() if value not in (None, "", False)]
    if given := [f"--{words.get(name, name).replace('_', '-')}" for name in set_ones]:
        raise errors.UsageError(
            f"{', '.join(given)}: not beside --season, which compares with the file and knows no"
            " withdrawal. Without --season: `farm season audit PGN --rules NAME --exclude ENGINES`"
        )


def _seasons(pgn: tuple[pathlib.Path, ...], names: tuple[str, ...], *, as_json: bool) -> None:
    """Compare events with season files, each by itself."""
    games: dict[str, list[reading.Game]] = {}
    played: list[record.Event] = []
    for path in pgn:
        if ".jsonl" in path.name:
            played += record.read(path)
        else:
            games[path.name] = reading.archive([path])
            played.append(record.of_games(games[path.name], path.name))
    find = roster.find_recorded({engine for event in played for engine in event.engines})
    loaded = [load.load(launch.season_file(name), find=find) for name in names]
    compared = [
        season.with_ends(event, games.get(event.event.source, ()))
        for event in season.compare(loaded, played)
    ]
    if as_json:
        common.print_json(season.plain(compared))
    else:
        click.echo(output.plain("\n".join(season.sentences(compared))))


def _rules(options: dict[str, Any]) -> rules.Rules:
    kind = options.pop("kind")
    held: dict[str, Any] = {
        "name": options.pop("name"),
        "kind": _FORMATS.get(kind, kind),
        "table": kind if kind in get_args(rules.Table) else None,
        "cycles": options.pop("cycles"),
        "pairs": options.pop("pairs"),
        "disqualify_after": options.pop("disqualify_after"),
        "seeds": common.listed(options.pop("seeds")),
        "exclude": common.listed(options.pop("exclude")),
    }
    for without, numbers in _OF_RULES.items():
        given = [number for number in numbers if options[number] is not None]
        if options[without] and given:
            both = " and ".join(f"--{option.replace('_', '-')}" for option in (without, *given))
            raise errors.UsageError(f"{both} contradict each other")
    return rules.Rules(**held, numbers=rules.Numbers(**options))
