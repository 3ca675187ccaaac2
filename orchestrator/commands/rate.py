"""``farm rate``: a rating list of PGN archives, by the model of Ordo 1.2.6."""

from __future__ import annotations

import functools
import itertools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from orchestrator.audit import unpacking
from orchestrator.common import bounds, errors, numbers, output
from orchestrator.rating import error_bars, headers, lists, logistic, ordo, pairings

Function = TypeVar("Function", bound=Callable[..., Any])


def model_options(function: Function) -> Function:
    """Add the options of the model, and those of the output."""
    options = (
        click.option("--white-advantage", is_flag=True, help="Estimate it (Ordo's -W)."),
        click.option("--draw-rate", is_flag=True, help="Estimate it (Ordo's -D)."),
        click.option(
            "--white-value", type=numbers.Number(), metavar="R", help="Take R points as given."
        ),
        click.option(
            "--draw-value",
            type=numbers.NumberRange(0, 1),
            metavar="P",
            help="Draw rate of equal engines, taken as given.  [default: 0.5]",
        ),
        click.option("--anchor", metavar="NAME", help="This engine's rating is --at."),
        click.option("--at", type=numbers.Number(), metavar="R", help="The anchor's rating."),
        click.option(
            "--average",
            type=numbers.Number(),
            default=ordo.AVERAGE,
            show_default=True,
            help="Mean of the rated engines.",
        ),
        click.option(
            "--families",
            type=click.Path(path_type=pathlib.Path),
            metavar="FILE",
            help="TOML: a family's name, and the names of its versions.",
        ),
        click.option(
            "--errors",
            "runs",
            type=click.IntRange(0),
            metavar="N",
            help="Simulate N times (Ordo's -s); 0: analytic.  [default: where games are few]",
        ),
        click.option("--exact", is_flag=True, help="The maximum itself, not where Ordo stops."),
        click.option(
            "--los",
            is_flag=True,
            help="Show who is the stronger one, and how surely; also with --json.",
        ),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
        click.option("--ordo", "as_ordo", is_flag=True, help="Print text as Ordo does."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@click.argument(
    "archives", nargs=-1, required=True, metavar="PGN...", type=click.Path(path_type=pathlib.Path)
)
@model_options
@output.json_option
def rate(archives: Sequence[pathlib.Path], *, as_json: bool, **model: Any) -> None:
    """Rate the engines of PGN archives (plain or .gz); folders are searched for both.

    The model is Ordo's: likelihood with draws as half a point, white advantage and draw
    rate by choice, 1 point = 1/202 of the way to 76 %. Engines that no chain of wins and
    draws connects with the rest are provisional and have no number.

    Example: farm rate archive/*.pgn.gz --white-advantage --draw-rate --anchor Houdini --at 3158
    """
    check_output(model, as_json=as_json)
    reader = headers.Reader()
    for path in files(archives):
        reader.take_blocks(unpacking.blocks(path))
    games, families = reader.table(), families_of(model["families"])
    counted = pairings.count(games, families)
    if not len(counted.white):
        named = ", ".join(map(str, archives))
        raise errors.UsageError(
            f"{named}: no game with a result was read: nothing can be rated; wanted: PGN"
        )
    rated = ordo.rate(counted, settings(model, families))
    spread = error_bars.of(rated, model["runs"])
    print_list(spread, lists.rows(spread), model, as_json=as_json, unfinished=games.unfinished())


def print_list(
    spread: error_bars.Spread,
    rows: tuple[lists.Row, ...],
    model: Mapping[str, Any],
    *,
    as_json: bool,
    unfinished: int | None = None,
) -> None:
    """Print a list the way the options ask for; ``unfinished`` games were left out of it."""
    if as_json:
        listed = lists.as_json(spread, rows)
        if model["los"]:  # 0 to 1, in the list's order
            listed["superiority"] = lists.superiority(spread, rows)
        if unfinished is not None:
            listed["unfinished"] = unfinished
        output.print_json(listed)
    elif model["as_csv"]:
        click.echo(output.plain(lists.as_csv(rows)), nl=False)
    elif model["as_ordo"]:
        click.echo(output.plain(lists.as_ordo(spread, rows)), nl=False)
    else:
        from orchestrator.commands import ratingtables  # noqa: PLC0415 - rich is slow to load

        ratingtables.show(spread, unfinished or 0, rows)
        if model["los"]:
            ratingtables.show_superiority(spread)


def check_output(model: Mapping[str, Any], *, as_json: bool) -> None:
    """Refuse two forms of one list, and ``--los`` of a form without it; raise ``UsageError``."""
    wished = {"--json": as_json, "--csv": model["as_csv"], "--ordo": model["as_ordo"]}
    forms = [option for option, given in wished.items() if given]
    if len(forms) > 1:
        raise errors.UsageError(f"{' and '.join(forms)}: a list has one form; allowed: one of them")
    if model["los"] and forms and not as_json:
        raise errors.UsageError(f"--los and {forms[0]}: allowed: --los alone, or with --json")


def settings(model: Mapping[str, Any], families: Mapping[str, str]) -> ordo.Settings:
    """Return what the options ask of the model; raise ``UsageError`` for contradictions."""
    for estimate, value in (("white_advantage", "white_value"), ("draw_rate", "draw_value")):
        if model[estimate] and model[value] is not None:
            both = f"--{estimate.replace('_', '-')} and --{value.replace('_', '-')}"
            raise errors.UsageError(f"{both}: estimate it or give it, not both")
    if (model["anchor"] is None) != (model["at"] is None):
        raise errors.UsageError("--anchor NAME and --at R go together; one of them is missing")
    name = model["anchor"]
    return ordo.Settings(
        white=None if model["white_advantage"] else model["white_value"] or 0.0,
        draws=_draws(model),
        average=model["average"] if name is None else model["at"],
        anchor=None if name is None else families.get(name, name),
        exact=model["exact"],
    )


def _draws(model: Mapping[str, Any]) -> float | None:
    if model["draw_rate"]:
        return None
    given: float | None = model["draw_value"]
    return logistic.EVEN_DRAWS if given is None else given


def families_of(path: pathlib.Path | None) -> dict[str, str]:
    """Read which names are versions of which family; raise ``UsageError``."""
    if path is None:
        return {}
    allowed = 'lines such as Houdini = ["Houdini 3", "Houdini 4"]'
    try:
        listed = bounds.toml(path)
    except (OSError, ValueError) as error:
        why = errors.reason(error)
        raise errors.UsageError(f"--families {path}: {why}; allowed: {allowed}") from None
    named: dict[str, str] = {}
    for family, versions in listed.items():
        if not isinstance(versions, list) or not all(
            isinstance(member, str) for member in versions
        ):
            raise errors.UsageError(
                f"--families {path}: found {family} = {versions!r}; allowed: {allowed}"
            )
        for version in versions:
            if named.setdefault(version, family) != family:
                raise errors.UsageError(
                    f"--families {path}: {version!r} is in {named[version]} and in {family};"
                    " allowed: one family"
                )
    return named


def files(archives: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """Return the archives, those of folders among them, each once; raise ``UsageError``.

    Copies inside a folder are left out, and that is said: a farm keeps an event's games in one file
    and each beside it, also those that count no longer.
    """
    archive_files: list[pathlib.Path] = []
    copies = 0
    for path in archives:
        if path.is_dir():
            inside = sorted([*path.rglob("*.pgn"), *path.rglob("*.pgn.gz")])
            if not inside:
                raise errors.UsageError(f"{path}: no .pgn or .pgn.gz file in this folder")
            once = [file for file in inside if not _is_copy(file, path)]
            copies += len(inside) - len(once)
            archive_files += once
        else:
            archive_files.append(path)
    if copies:
        click.echo(
            f"farm: left out, for their games stand in another file, too: {copies} of the files"
            " (X.pgn.gz beside X.pgn, folder X beside X.pgn, games/ beside an event's PGN)",
            err=True,
        )
    return list({file.resolve(): file for file in archive_files}.values())


def _is_copy(file: pathlib.Path, folder: pathlib.Path) -> bool:
    """Say whether another file below ``folder`` holds a file's games, by where they stand."""
    if file.suffix == ".gz" and file.with_suffix("").is_file():
        return True
    above = itertools.takewhile(lambda parent: parent != folder, file.parents)
    return any(_is_of_copies(parent) for parent in above)


@functools.cache
def _is_of_copies(folder: pathlib.Path) -> bool:
    """Say whether a folder repeats a file, as in a season's archive and on an exported site."""
    whole = [folder.with_name(f"{folder.name}{suffix}") for suffix in (".pgn", ".pgn.gz")]
    beside = folder.parent.glob("*.pgn*") if folder.name == "games" else ()
    return any(path.is_file() for path in (*whole, *beside))
