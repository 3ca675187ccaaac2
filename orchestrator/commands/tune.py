"""``farm match tune``: an engine's numbers tuned by games of the engine against itself (SPSA)."""

from __future__ import annotations

import pathlib
from typing import Any

import click
import pydantic

from orchestrator.commands import source_builds, submitting
from orchestrator.commands import test as test_command
from orchestrator.common import bounds, errors, numbers
from orchestrator.testmatch import sprt_match, spsa

ITERATIONS = 10_000  # by default: 20,000 games; a tuning of a strong engine takes more
# What a test asks of opponents, and a tuning has not.
NONE = {
    "theirs": None,
    "bench_against": None,
    "tc_against": None,
    "self_check": False,
    "games": None,
}


@click.command()
@click.argument("engine")
@click.option(
    "--parameters",
    "files",
    multiple=True,
    type=click.Path(path_type=pathlib.Path),
    help=f"A file of them, one a line: {spsa.LINE}.",
)
@click.option("--parameter", "lines", multiple=True, metavar="LINE", help="One of them.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=ITERATIONS,
    show_default=True,
    help="Steps of the tuning.",
)
@click.option(
    "--pairs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Of games in an iteration, with the same values.",
)
@click.option(
    "--a-ratio",
    type=numbers.NumberRange(0),
    default=spsa.A_RATIO,
    show_default=True,
    help="SPSA's A, as a part of the iterations: more makes the first steps smaller.",
)
@click.option(
    "--alpha",
    type=numbers.NumberRange(0),
    default=spsa.ALPHA,
    show_default=True,
    help="SPSA's alpha: how fast the steps become smaller.",
)
@click.option(
    "--gamma",
    type=numbers.NumberRange(0),
    default=spsa.GAMMA,
    show_default=True,
    help="SPSA's gamma: how fast the values of the two sides come closer.",
)
@source_builds.options
@click.option("--id", "name", help="The tuning's name; `farm match test --id NAME` goes on.")
@test_command.match_options
def tune(
    engine: str, files: tuple[pathlib.Path, ...], lines: tuple[str, ...], **options: Any
) -> None:
    """Tune numbers of ENGINE by SPSA: it plays against itself, a little more here, less there.

    A parameter is an option of the engine: where it begins, its bounds, how far it is moved at the
    end (C_END) and how large the last steps are (R_END), as in OpenBench; fishtest's lines, without
    a type, are read as well.

    Example: farm tune dev --file engines.toml --parameter "Razor,int,300,100,600,20,0.002"
    """
    name = test_command.match_name(options["name"], "tune")
    try:
        tuning = spsa.Tuning(
            parameters=tuple(_parameters(files, lines)),
            **{key: options[key] for key in ("iterations", "pairs", "a_ratio", "alpha", "gamma")},
        )
    except pydantic.ValidationError as error:
        raise errors.UsageError(f"--parameters: {spsa.why(error)}") from None
    if tuning.games > sprt_match.MOST:
        raise errors.UsageError(
            f"--iterations, --pairs: {tuning.games} games; at most {sprt_match.MOST}"
        )
    other = {"games": tuning.games, "tuning": tuning}
    spec = test_command.spec_of(name, [engine, engine], {**options, **NONE}, **other)
    names = [f"{spec.engines[0].name} {sign}" for sign in "+-"]
    sides = [
        side.model_copy(update={"name": side_name})
        for side, side_name in zip(spec.engines, names, strict=True)
    ]
    spec = spec.model_copy(update={"engines": tuple(sides)})
    submitting.keep(spec, test_command.terms_of(options, None), options)


def _parameters(files: tuple[pathlib.Path, ...], lines: tuple[str, ...]) -> list[spsa.Parameter]:
    listed: list[spsa.Parameter] = []
    for path in files:
        try:
            text = bounds.text(path)
        except bounds.DAMAGED as error:
            why = errors.reason(error)
            raise errors.UsageError(f"--parameters {path}: cannot be read: {why}") from error
        listed += spsa.parameters(text, f"--parameters {path}")
    for line in lines:
        listed += spsa.parameters(line, f"--parameter {line!r}")
    if not listed:
        raise errors.UsageError(
            f"name what is tuned: --parameters FILE, or --parameter '{spsa.LINE}'"
        )
    return listed
