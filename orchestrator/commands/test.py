"""``farm test``: a test match in a hall's lanes, with the sequential test as it goes.

What is asked is read here; ``keeping`` keeps the match.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import secrets
import time
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from orchestrator import contract
from orchestrator.arbiter import chess960, openings
from orchestrator.commands import (
    common,
    rosters,
    source_builds,
    submitting,
    test_games,
)
from orchestrator.common import bounds, errors, output
from orchestrator.rating import sprt
from orchestrator.season.file import roster
from orchestrator.season.fold import orders
from orchestrator.testmatch import orders as testmatch_orders
from orchestrator.testmatch import sprt_match

CHECK_GAMES = 4  # of a self-check: both colours twice
CHECK_NODES = 5_000  # a move: 80,000 in a check, less than a second of most engines
SPRT_WORDS = frozenset({"elo0", "elo1", "alpha", "beta", "model"})
# What an old match may be given with --id alone: where it is played, and how it is reported.
TERMS = frozenset({"priority", "share", "halls", "min_nps", "gpus", "one_node"})
GOES_ON = TERMS | {"name", "games", "self_check", "submit", "approval", "as_json"}
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}")  # a folder's; its games' are longer


def match_options(function: output.Function) -> output.Function:
    """Add how games are played, and where: what a test and a tuning have in common."""
    for decorate in reversed(
        (
            click.option(
                "--tc",
                "control",
                default="10+0.1",
                show_default=True,
                help="In seconds, or with units.",
            ),
            click.option(
                "--book", type=click.Path(path_type=pathlib.Path), help="Openings, PGN or EPD."
            ),
            click.option("--plies", type=int, help="Cut the lines of a PGN book."),
            click.option(
                "--variant",
                type=click.Choice(["standard", "fischerandom"]),
                default="standard",
                show_default=True,
                help="Chess, or Chess960 (fischerandom).",
            ),
            click.option(
                "--draw", help="movenumber=34,movecount=8,score=20: as -draw of farm match."
            ),
            click.option(
                "--resign", help="movecount=3,score=600[,twosided]: as -resign of farm match."
            ),
            click.option("--maxmoves", type=click.IntRange(1), help="A draw after so many moves."),
            click.option(
                "--tb", metavar="DIRS", help="End games by the halls' tablebases in DIRS (a:b)."
            ),
            click.option(
                "--tb-pieces",
                default=6,
                show_default=True,
                type=click.IntRange(3, 7),
                help="With --tb: from so many pieces on the board.",
            ),
            click.option("--hall", "halls", multiple=True, help="In these halls; default: in any."),
            click.option(
                "--priority", default=0, show_default=True, help="Higher ones are dealt first."
            ),
            click.option(
                "--share",
                default=1,
                show_default=True,
                type=click.IntRange(1),
                help="Of the lanes.",
            ),
            click.option(
                "--min-nps", default=0, type=click.IntRange(0), help="Only lanes at least so fast."
            ),
            click.option(
                "--gpus", default=0, type=click.IntRange(0), help="GPUs that a lane must have."
            ),
            click.option("--one-node", is_flag=True, help="Only lanes on one NUMA node."),
            click.option(
                "--scale-nps",
                default=0,
                type=click.IntRange(0),
                help="Scale remote workers' clocks: --tc is for machines where the first opponent"
                " has so many nodes a second.",
            ),
            click.option(
                "--remote", is_flag=True, help="Remote workers may play it, too (docs/workers.md)."
            ),
            click.option(
                "--check-nodes",
                default=CHECK_NODES,
                show_default=True,
                type=click.IntRange(0),
                help="Nodes a move in short games that show remote workers' builds; 0: no such"
                " checks.",
            ),
            click.option("--seed", default="", help="Deal openings in another order."),
            submitting.options,
            common.season_option,
            rosters.file_option,
            common.json_option,
        )
    ):
        function = decorate(function)
    return function


@click.command()
@click.argument("engine", required=False)
@click.argument("words", nargs=-1)
@click.option("--against", multiple=True, help="An opponent's id; several make a gauntlet.")
@source_builds.options
@source_builds.options_against
@click.option("--self-check", is_flag=True, help="Against itself; any fault is an error.")
@click.option("--sprt", "tested", is_flag=True, help="Stop by elo0= elo1= [alpha= beta= model=].")
@click.option(
    "--games",
    type=click.IntRange(1, sprt_match.MOST),
    help="At most so many; default: 1000, of a self-check 4.",
)
@click.option("--tc-against", metavar="TC", help="Time odds: the opponents' clock, as --tc.")
@click.option("--id", "name", help="The match's name; an old one goes on.")
@match_options
def test(engine: str | None, words: tuple[str, ...], **options: Any) -> None:
    """Test ENGINE against others in the lanes of the farm's halls.

    Two games make a pair: one opening, colours swapped. --sprt stops when the pentanomial
    test has decided; bounds are in normalized Elo unless model=logistic.

    With --build a recipe's revisions are tested: ENGINE and --against are git's names of them.

    Example: farm test dev --against base --file engines.toml --tc 8+0.08 --sprt elo0=0 elo1=5
    """
    engine, words = _engine_and_bounds([*filter(None, [engine]), *words])
    spec, terms = _match(engine, words, options)
    standing = submitting.keep(spec, terms, options)
    if options["self_check"] and standing is not None and standing.faults:
        last, _ = sprt_match.last_faults(standing.faults)
        said = "; ".join(map(str, last))
        raise errors.RefusedError(f"the self-check has found faults: {said}")


# -- what is asked -------------------------------------------------------------------


def match_name(name: str | None, kind: str) -> str:
    """Return the name that a match is given, or one of its time; raise ``UsageError``."""
    if name is None:
        return f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    if not NAME.fullmatch(name):
        raise errors.UsageError(
            f"--id: found {name[:120]!r}; allowed: up to 100 letters, digits, . _ -"
        )
    return name


def _engine_and_bounds(positional: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return ENGINE and what else stands there: the words behind --sprt may come before it."""
    names = [
        word for word in positional if "=" not in word or word.partition("=")[0] not in SPRT_WORDS
    ]
    rest = list(positional)
    if names:
        rest.remove(names[0])
    return (names[0] if names else None), tuple(rest)


def _match(
    engine: str | None, test_words: Sequence[str], options: dict[str, Any]
) -> tuple[testmatch_orders.Spec, sprt_match.Terms]:
    """Return a new match, or the old one of ``--id`` where no engine is named."""
    name = match_name(options["name"], "test")
    if engine is None:
        if options["name"] is None:
            raise errors.UsageError("name an ENGINE to test, or an old match with --id")
        return _old(name, test_words, options)
    test = _test(test_words, asked=options["tested"])
    names = [engine, *([engine] if options["self_check"] else options["against"])]
    if len(names) < 2 or (options["self_check"] and options["against"]):
        raise errors.UsageError("give --against ENGINE (several make a gauntlet) or --self-check")
    if test is not None and len(names) > 2:
        raise errors.UsageError("--sprt needs exactly one opponent; give --against once")
    return spec_of(name, names, options), terms_of(options, test)


def _old(
    name: str, test_words: Sequence[str], options: dict[str, Any]
) -> tuple[testmatch_orders.Spec, sprt_match.Terms]:
    """Return the match of ``--id`` alone, longer or dealt otherwise where that is asked.

    Raise ``UsageError`` for an option that would make it another match.
    """
    given = _given()
    refused = [option for parameter, option in given.items() if parameter not in GOES_ON]
    if test_words and "tested" not in given:
        refused.append("--sprt's words")
    if refused:
        raise errors.UsageError(
            f"--id {name} without an ENGINE goes on with that match as it was opened, also with"
            f" more --games: leave out {', '.join(refused)}, or name the ENGINE of a new match"
        )
    spec, terms = sprt_match.load(common.match_folder(name))
    source_builds.require_kept(spec)
    if options["games"] is not None:
        spec = spec.copied(name, {"games": options["games"]})
    changes = {parameter: options[parameter] for parameter in TERMS & given.keys()}
    return spec, dataclasses.replace(terms, **changes)


def _given() -> dict[str, str]:
    """Return the options that stand in the command line, as it writes them, by parameter."""
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name is not None
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def terms_of(options: dict[str, Any], test: sprt.Test | None) -> sprt_match.Terms:
    """Return what is asked of results and lanes."""
    return sprt_match.Terms(
        test=test,
        priority=options["priority"],
        share=options["share"],
        halls=options["halls"],
        min_nps=options["min_nps"],
        gpus=options["gpus"],
        one_node=options["one_node"],
    )


def spec_of(
    name: str, names: Sequence[str], options: dict[str, Any], **other: Any
) -> testmatch_orders.Spec:
    """Return what is played by engines of these names, the tested one first."""
    control = test_games.control(options["control"])
    if options["build"] is not None:
        specs, builds, nps = source_builds.built(names, options)
    else:
        specs, builds, nps = source_builds.with_options(_listed(names, options), options), (), 0
    if options["tc_against"]:
        odds = {"time_control": test_games.control(options["tc_against"])}
        specs[1:] = [spec.model_copy(update=odds) for spec in specs[1:]]
    return testmatch_orders.Spec(
        id=name,
        engines=tuple(specs),
        remote=options["remote"],
        check_nodes=options["check_nodes"] if options["remote"] else 0,
        builds=builds,
        reference_nps=options["scale_nps"] or nps,
        time_control=control,
        games=other.pop("games", 0)
        or options["games"]
        or (CHECK_GAMES if options["self_check"] else 1000),
        openings=openings_of(options["book"], options["plies"], options["variant"]),
        seed=options["seed"],
        variant=options["variant"],
        adjudication=test_games.adjudication(options, remote=options["remote"]),
        **other,
    )


def _listed(names: Sequence[str], told: dict[str, Any]) -> list[contract.EngineSpec]:
    """Return the engines of these names, of a roster file or a season."""
    file = told["file"]
    engines = _pinned(file, names) if told["remote"] else _engines(told["season"], file)
    missing = [name for name in names if name not in engines]
    if missing:
        raise errors.UsageError(f"no engine {missing[0]!r}; engines: {', '.join(engines)}")
    return [orders.engine_in(engines[name], "") for name in names]


def _engines(season: str | None, file: str | None) -> dict[str, contract.EngineSpec]:
    """Return the engines of a roster file, else those of a season."""
    if file is not None:
        return rosters.specs(file)
    with common.open_ledger() as ledger:
        return dict(common.choose(ledger, season).engines)


def _pinned(file: str | None, names: Sequence[str]) -> dict[str, contract.EngineSpec]:
    """Return a roster file's engines; those of these names with their files' checksums."""
    if file is None:
        raise errors.UsageError("--remote pins the files of a roster: give it with --file")
    engines = {}
    for name, entry in rosters.entries_of(file).items():
        spec = roster.spec(rosters.pinned(entry)).model_copy(update={"builds": {}})
        if name in names and spec.box:
            raise errors.UsageError(
                f"--remote: {file}: {name}: its box is {spec.box}, which remote workers do not"
                " reach; a match without --remote is played in lanes that have it"
            )
        for path in filter(None, (spec.command[0], spec.network)):
            if name in names and path not in spec.checksums:
                raise errors.UsageError(
                    f"--remote: {file}: {name}: {path} is not on this machine, and has no checksum"
                )
        engines[name] = spec
    return engines


def openings_of(
    book: pathlib.Path | None, plies: int | None, variant: str
) -> tuple[contract.Opening, ...]:
    """Return the openings of a book, or of the variant where there is none."""
    if book is None and variant == "fischerandom":
        return tuple(chess960.opening(number) for number in range(chess960.POSITIONS))
    path = book or test_games.DEMO_BOOK
    kind: openings.Kind = "epd" if path.suffix in {".epd", ".fen"} else "pgn"
    try:
        text = bounds.text(path, bounds.BOOK_BYTES)
    except bounds.DAMAGED as error:
        raise errors.BookError(f"--book {path}: cannot be read: {errors.reason(error)}") from error
    return tuple(
        openings.parse(text, kind, plies or (None if book else test_games.PLIES), str(path))
    )


def _test(test_words: Sequence[str], *, asked: bool) -> sprt.Test | None:
    """Read ``elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized``."""
    allowed = "--sprt elo0=N elo1=N [alpha=0.05] [beta=0.05] [model=normalized|logistic]"
    values_given = dict(word.partition("=")[::2] for word in test_words)
    if not asked and not values_given:
        return None
    numbers = SPRT_WORDS - {"model"}
    wrong = values_given.keys() - SPRT_WORDS
    if not asked or wrong or not values_given.keys() >= {"elo0", "elo1"}:
        raise errors.UsageError(f"--sprt: found {' '.join(test_words)!r}; allowed: {allowed}")
    if values_given.get("model", "normalized") not in sprt.MODELS:
        raise errors.UsageError(
            f"--sprt model: found {values_given['model']!r}; allowed: {allowed}"
        )
    try:
        values = {key: float(text) for key, text in values_given.items() if key in numbers}
    except ValueError as error:
        raise errors.UsageError(f"--sprt: {error}; allowed: {allowed}") from None
    chosen = values_given.get("model", "normalized")
    return sprt.Test(**values, model=chosen)  # type: ignore[arg-type] # checked above
