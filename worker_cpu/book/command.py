"""``farm book``: make opening books. Progress goes to stderr, the book to its file."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import chess960
from orchestrator.common import errors, files, numbers
from orchestrator.testmatch import openings
from worker_cpu.book import archive, enumeration, lines
from worker_cpu.match import books, cli_values, programs

Function = TypeVar("Function", bound=Callable[..., Any])
JUDGED_BY = frozenset({"options", "nodes", "lowest", "highest"})  # of `enumerate`: with --engine
PROGRESS = 100  # kept lines between two words on how far it is


@click.group()
def book() -> None:
    """Make opening books: from archives, by enumeration, or of Chess960 positions.

    Example: farm book games archive/*.pgn.gz --plies 12 --limit 500 -o book.pgn
    """


def _output(function: Function) -> Function:
    made = click.option(
        "--output",
        "-o",
        type=click.Path(dir_okay=False, path_type=pathlib.Path),
        required=True,
        help="The book's file; its ending says the format (.pgn, .epd).",
    )(function)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(made)


@book.command()
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=pathlib.Path),
)
@click.option("--plies", type=click.IntRange(1), required=True, help="Half moves of a line.")
@click.option("--least", type=click.IntRange(1), default=1, help="Games a line needs.")
@click.option("--limit", type=click.IntRange(1), help="Keep only so many, the most played.")
@click.option("--chess960", "fischerandom", is_flag=True, help="Take the games of Chess960.")
@_output
def games(
    sources: Sequence[pathlib.Path],
    plies: int,
    least: int,
    limit: int | None,
    fischerandom: bool,  # noqa: FBT001 - a flag
    output: pathlib.Path,
    as_json: bool,  # noqa: FBT001 - the flag of --json
) -> None:
    """Take the lines of PGN archives (plain or .gz), the most played first.

    Example: farm book games archive/*.pgn.gz --plies 12 --least 3 -o book.pgn
    """
    form = _form(output)
    variant: boards.Variant = "fischerandom" if fischerandom else "standard"
    gathered = archive.gather((books.read_text(path) for path in sources), plies, variant)
    chosen = [lines.named(line, variant) for line in gathered.chosen(least)[:limit]]
    counts = {"games": gathered.games, "short": gathered.short, "broken": gathered.broken}
    counts["of another variant"] = gathered.foreign
    if not chosen:
        raise errors.BookError(
            f"{output}: no line is left of {_counts(counts)}; nothing was written"
        )
    _write(output, form, chosen, variant)
    _say(counts | {"exits": len(gathered.found), "lines": len(chosen)}, output, as_json=as_json)


@book.command(name="enumerate")
@click.option("--plies", type=click.IntRange(1, 5), required=True, help="Half moves of a line.")
@click.option("--fen", help="Begin here, not at the start position.")
@click.option("--moves", default="", help="Begin behind these moves (UCI, blanks between).")
@click.option("--engine", help="A UCI engine (with arguments) that judges each position.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Its options.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    default=50_000,
    show_default=True,
    help="That --engine searches for each position.",
)
@click.option(
    "--lowest", type=numbers.Number(), default=-0.5, show_default=True, help="Pawns, White's view."
)
@click.option("--highest", type=numbers.Number(), default=0.5, show_default=True, help="Likewise.")
@click.option("--sample", type=click.IntRange(1), help="Look only at so many, drawn by --seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same one draws the same.")
@click.option("--chess960", "fischerandom", is_flag=True, help="Castle as in Chess960.")
@_output
def enumerated(
    plies: int,
    fen: str | None,
    moves: str,
    engine: str | None,
    options: Sequence[str],
    nodes: int,
    lowest: float,
    highest: float,
    sample: int | None,
    seed: int,
    fischerandom: bool,  # noqa: FBT001 - a flag
    output: pathlib.Path,
    as_json: bool,  # noqa: FBT001 - the flag of --json
) -> None:
    """Collect the positions after so many plies that an engine finds balanced.

    Example: farm book enumerate --plies 3 --engine stockfish --nodes 20000 -o book.epd
    """
    form, bounds = _form(output), _bounds(lowest, highest)
    settings = dict(cli_values.setting("--option", text) for text in options)
    if engine is None:
        _require_no_judge()
    variant: boards.Variant = "fischerandom" if fischerandom else "standard"
    start = contract.Opening(fen=fen, moves=tuple(moves.split()))
    positions = enumeration.positions(start, plies, variant)
    looked = positions if sample is None else enumeration.sample(positions, sample, seed)
    chosen = looked
    if engine is not None:
        command = programs.command(engine, pathlib.Path.cwd(), "--engine")
        kept = enumeration.balanced(looked, command, settings, nodes, *bounds, variant)
        chosen = [_counted(at, line) for at, line in enumerate(kept, start=1)]
        if not chosen:
            raise errors.BookError(
                f"{output}: of {len(looked)} positions the engine finds none between {lowest} and"
                f" {highest} pawns; nothing was written"
            )
    chosen = [lines.named(line, variant) for line in chosen]
    _write(output, form, chosen, variant)
    counts = {"positions": len(positions), "looked_at": len(looked), "lines": len(chosen)}
    _say(counts, output, as_json=as_json)


@book.command(name="chess960")
@click.option("--double", is_flag=True, help="Each side has its own position (DFRC).")
@click.option("--count", type=click.IntRange(1), help="So many, drawn by --seed; else all 960.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same one draws the same.")
@_output
def numbered(
    double: bool,  # noqa: FBT001 - a flag
    count: int | None,
    seed: int,
    output: pathlib.Path,
    as_json: bool,  # noqa: FBT001 - the flag of --json
) -> None:
    """Write Chess960 start positions; 518 is that of standard chess.

    Example: farm book chess960 --count 50 --seed 7 -o frc.epd
    """
    form = _form(output)
    if double and count is None:
        raise errors.UsageError("--double: there are 921600 positions; --count N says how many")
    chosen = [lines.Line(opening) for opening in _numbered(count, seed, double=double)]
    _write(output, form, chosen, "fischerandom")
    _say({"lines": len(chosen)}, output, as_json=as_json)


def _numbered(count: int | None, seed: int, *, double: bool) -> list[contract.Opening]:
    if double:
        drawn = (openings.draw(f"{seed}/dfrc/{at}") for at in range(count or 0))
        return [chess960.double(number % chess960.DOUBLE) for number in drawn]
    if count is None:
        return [chess960.opening(number) for number in range(chess960.POSITIONS)]
    order = openings.order(chess960.POSITIONS, "random", seed)
    return [chess960.opening(number) for number in order[:count]]


def _form(output: pathlib.Path) -> lines.Format:
    match output.suffix.lower():
        case ".pgn":
            return "pgn"
        case ".epd" | ".fen":
            return "epd"
        case other:
            raise errors.UsageError(f"--output: found {other!r}; allowed: a name in .pgn or .epd")


def _bounds(lowest: float, highest: float) -> tuple[int, int]:
    """Return the bounds in centipawns; refuse what no eval can lie within, before any search."""
    if lowest > highest:
        raise errors.UsageError(
            f"--lowest: found {lowest}; allowed: up to --highest, which is {highest}"
        )
    return round(lowest * 100), round(highest * 100)


def _require_no_judge() -> None:
    """Refuse what is said of an engine where none is named: the book would not be balanced."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        said = context.get_parameter_source(name) is not ParameterSource.DEFAULT
        if said and name in JUDGED_BY:
            option = parameter.opts[0]
            raise errors.UsageError(f"{option}: nobody judges the positions; name an --engine")


def _counted(at: int, line: lines.Line) -> lines.Line:
    if at % PROGRESS == 0:
        click.echo(f"{at} lines kept", err=True)
    return line


def _write(
    output: pathlib.Path, form: lines.Format, chosen: Sequence[lines.Line], variant: boards.Variant
) -> None:
    if not chosen:
        raise errors.BookError(f"{output}: no line is left; nothing was written")
    files.write(output, lines.written(chosen, form, variant).encode())


def _say(counts: dict[str, int], output: pathlib.Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(contract.dumps({**counts, "output": str(output)}))
    else:
        click.echo(f"{output}: {_counts(counts)}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
