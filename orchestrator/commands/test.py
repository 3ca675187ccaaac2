"""``farm test``: a test match in a hall's lanes, with the sequential test as it goes.

This process opens the match, mirrors its results and says when it is over; the games are
played by the workers of the lanes. Stopped by Ctrl-C or SIGTERM, or by its terminal's end, it
closes the match first; it goes on with ``farm test --id NAME``.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from orchestrator import contract
from orchestrator.arbiter import chess960, openings
from orchestrator.commands import common, rosters, source_builds, test_games
from orchestrator.common import bounds, errors, output
from orchestrator.ledger import batches, lane_store, store, worker_tokens
from orchestrator.rating import elo, sprt
from orchestrator.season.file import roster
from orchestrator.season.fold import orders
from orchestrator.serve import doorbell
from orchestrator.testmatch import orders as testmatch_orders
from orchestrator.testmatch import sprt_match, worker_verdicts

WAIT_MS = 1_000  # ms: a look at the lanes at least this often
AWAY_SECONDS = 1.0  # s: between two tries while Redis is away
TELL_SECONDS = 2.0  # s: between two lines about a match that goes well
CHECK_GAMES = 4  # of a self-check: both colours twice
CHECK_NODES = 5_000  # a move: 80,000 in a check, less than a second of most engines
ENDS = (signal.SIGTERM, signal.SIGHUP)  # heard as Ctrl-C: nobody would be left to close the match
LOST = (
    "Redis has lost what it knew of this match; it goes on from the results that are kept here, and"
    " games that were being played are dealt again"
)
STOPPED = 130  # exit code of a match that was stopped, as of a shell's Ctrl-C
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}")  # a folder's; its games' are longer


@click.command()
@click.argument("engine", required=False)
@click.argument("words", nargs=-1)
@click.option("--against", multiple=True, help="An opponent's id; several make a gauntlet.")
@source_builds.options
@click.option("--self-check", is_flag=True, help="Against itself; any fault is an error.")
@click.option("--sprt", "tested", is_flag=True, help="Stop by elo0= elo1= [alpha= beta= model=].")
@click.option(
    "--games", type=click.IntRange(1, sprt_match.MOST), help="Default: 1000; self-check: 4."
)
@click.option(
    "--tc", "control", default="10+0.1", show_default=True, help="In seconds, or with units."
)
@click.option("--tc-against", metavar="TC", help="Time odds: the opponents' clock, as --tc.")
@click.option("--book", type=click.Path(path_type=pathlib.Path), help="Openings, PGN or EPD.")
@click.option("--plies", type=int, help="Cut the lines of a PGN book.")
@click.option("--variant", type=click.Choice(["standard", "fischerandom"]), default="standard")
@click.option("--draw", help="movenumber=34,movecount=8,score=20: as -draw of farm match.")
@click.option("--resign", help="movecount=3,score=600[,twosided]: as -resign of farm match.")
@click.option("--maxmoves", type=click.IntRange(1), help="A draw after so many moves.")
@click.option("--tb", metavar="DIRS", help="End games by the halls' tablebases in DIRS (a:b).")
@click.option("--tb-pieces", default=6, show_default=True, type=click.IntRange(3, 7))
@click.option("--hall", "halls", multiple=True, help="In these halls; default: in any.")
@click.option("--priority", default=0, show_default=True, help="Higher ones are dealt first.")
@click.option("--share", default=1, show_default=True, type=click.IntRange(1), help="Of the lanes.")
@click.option("--min-nps", default=0, type=click.IntRange(0), help="Only lanes at least so fast.")
@click.option("--gpus", default=0, type=click.IntRange(0), help="GPUs that a lane must have.")
@click.option("--one-node", is_flag=True, help="Only lanes on one NUMA node.")
@click.option(
    "--scale-nps",
    default=0,
    type=click.IntRange(0),
    help="Scale remote workers' clocks: --tc is for machines where the first opponent has so many"
    " nodes a second.",
)
@click.option("--remote", is_flag=True, help="Remote workers may play it, too (docs/workers.md).")
@click.option(
    "--check-nodes",
    default=CHECK_NODES,
    show_default=True,
    type=click.IntRange(0),
    help="Nodes a move in short games that show remote workers' builds; 0: no such checks.",
)
@click.option("--id", "name", help="The match's name; an old one goes on.")
@click.option("--seed", default="", help="Deal openings in another order.")
@common.season_option
@rosters.file_option
@common.json_option
def test(engine: str | None, words: tuple[str, ...], **options: Any) -> None:
    """Test ENGINE against others in the lanes of the farm's halls.

    Two games make a pair: one opening, colours swapped. --sprt stops when the pentanomial
    test has decided; bounds are in normalized Elo unless model=logistic.

    With --build a recipe's revisions are tested: ENGINE and --against are git's names of them.

    Example: farm test dev --against base --file engines.toml --tc 8+0.08 --sprt elo0=0 elo1=5
    """
    with common.open_ledger() as ledger:
        spec, terms = _match(engine, words, options)
        directory = common.data_directory() / "tests" / spec.id
        ledger_lanes = lane_store.RedisLanes(ledger.server)
        verdicts = worker_verdicts.Verdicts(
            ledger,
            worker_tokens.RedisTokens(ledger.server),
            batches.RedisBatches(ledger.server),
            spec.id,
            common.author(ledger, sprt_match.KEEPER),
        )
        judges = verdicts if spec.remote else None
        keeper = sprt_match.Keeper(ledger, ledger_lanes, directory, spec, terms, judges)
        with _ended_like_ctrl_c(), source_builds.held(spec):
            standing, stopped = _run(ledger, keeper, spec, terms, quiet=options["as_json"])
        keeper.close()
    _report(standing, spec, terms, directory, as_json=options["as_json"])
    if stopped:
        click.echo(f"stopped; `farm match test --id {spec.id}` goes on", err=True)
        raise click.exceptions.Exit(STOPPED)
    if options["self_check"] and standing.faults:
        raise errors.RefusedError(f"{spec.engines[0].name}: " + "; ".join(standing.faults))


# -- what is asked -------------------------------------------------------------------


def _match(
    engine: str | None, test_words: Sequence[str], options: dict[str, Any]
) -> tuple[testmatch_orders.Spec, sprt_match.Terms]:
    """Return a new match, or the old one of ``--id`` where no engine is named."""
    name = options["name"] or f"test-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    if not NAME.fullmatch(name):
        raise errors.UsageError(
            f"--id: found {name[:120]!r}; allowed: up to 100 letters, digits, . _ -"
        )
    if engine is None:
        if options["name"] is None:
            raise errors.UsageError("name an ENGINE to test, or an old match with --id")
        spec, terms = sprt_match.load(common.data_directory() / "tests" / name)
        source_builds.require_kept(spec)
        return spec, terms
    test = _test(test_words, asked=options["tested"])
    names = [engine, *([engine] if options["self_check"] else options["against"])]
    if len(names) < 2 or (options["self_check"] and options["against"]):
        raise errors.UsageError("give --against ENGINE (several make a gauntlet) or --self-check")
    if test is not None and len(names) > 2:
        raise errors.UsageError("--sprt needs exactly one opponent; give --against once")
    return _spec(name, names, options), sprt_match.Terms(
        test=test,
        priority=options["priority"],
        share=options["share"],
        halls=options["halls"],
        min_nps=options["min_nps"],
        gpus=options["gpus"],
        one_node=options["one_node"],
    )


def _spec(name: str, names: Sequence[str], options: dict[str, Any]) -> testmatch_orders.Spec:
    control = test_games.control(options["control"])
    if options["build"] is not None:
        specs, builds, nps = source_builds.built(names, options)
    else:
        specs, builds, nps = source_builds.with_options(_listed(names, options), options), (), 0
    elsewhere = next((spec for spec in specs if spec.box), None)
    if elsewhere is not None:
        raise errors.UsageError(
            f"{elsewhere.name}: its box is {elsewhere.box}, and lanes start engines on their own"
            " host alone; farm match plays it there with host=, a season with box ="
        )
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
        games=options["games"] or (CHECK_GAMES if options["self_check"] else 1000),
        openings=_openings(options["book"], options["plies"], options["variant"]),
        seed=options["seed"],
        variant=options["variant"],
        adjudication=test_games.adjudication(options, remote=options["remote"]),
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
        for path in filter(None, (spec.command[0], spec.network)):
            if name in names and path not in spec.checksums:
                raise errors.UsageError(
                    f"--remote: {file}: {name}: {path} is not on this machine, and has no checksum"
                )
        engines[name] = spec
    return engines


def _openings(
    book: pathlib.Path | None, plies: int | None, variant: str
) -> tuple[contract.Opening, ...]:
    if book is None and variant == "fischerandom":
        return tuple(chess960.opening(number) for number in range(chess960.POSITIONS))
    path = book or test_games.DEMO_BOOK
    kind: openings.Kind = "epd" if path.suffix in {".epd", ".fen"} else "pgn"
    try:
        text = bounds.text(path, bounds.BOOK_BYTES)
    except bounds.DAMAGED as error:
        raise errors.BookError(f"--book {path}: cannot be read: {error}") from error
    return tuple(
        openings.parse(text, kind, plies or (None if book else test_games.PLIES), str(path))
    )


def _test(test_words: Sequence[str], *, asked: bool) -> sprt.Test | None:
    """Read ``elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized``."""
    allowed = "--sprt elo0=N elo1=N [alpha=0.05] [beta=0.05] [model=normalized|logistic]"
    values_given = dict(word.partition("=")[::2] for word in test_words)
    if not asked and not values_given:
        return None
    numbers = {"elo0", "elo1", "alpha", "beta"}
    wrong = values_given.keys() - numbers - {"model"}
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


# -- while it is played --------------------------------------------------------------


def _run(
    ledger: store.RedisLedger,
    keeper: sprt_match.Keeper,
    spec: testmatch_orders.Spec,
    terms: sprt_match.Terms,
    *,
    quiet: bool,
) -> tuple[sprt_match.Standing, bool]:
    """Keep the match until it is over or stopped; return its standing and whether it was."""
    reported_at, shown, unbuilt = 0.0, -1, 0
    ring, remote = doorbell.at(common.redis_url()), batches.RedisBatches(ledger.server)
    try:
        keeper.open(common.author(ledger, "farm test"))
        _announce(ledger, keeper, spec, quiet=quiet)
        for standing in _standings(keeper, remote, ring, spec.id):
            for failure in standing.failed_builds[unbuilt:]:
                click.echo(output.plain(f"{failure} (farm match show {spec.id})"), err=True)
            unbuilt = len(standing.failed_builds)
            due = time.monotonic() - reported_at > TELL_SECONDS and standing.games != shown
            if not quiet and (due or standing.over):
                click.echo(line(standing, terms.test))
                reported_at, shown = time.monotonic(), standing.games
            if standing.over:
                break
    except KeyboardInterrupt:
        with contextlib.suppress(errors.LedgerAwayError):  # what it has is kept by the next keeper
            keeper.step(lambda _: None, 1)
        return keeper.standing(), True
    else:
        return standing, False
    finally:
        _finish(keeper, spec.id)


def _standings(
    keeper: sprt_match.Keeper,
    remote: batches.RedisBatches,
    ring: Callable[[str], None],
    match: str,
) -> Iterator[sprt_match.Standing]:
    """Yield where the match stands after each look, without end: Redis may be started again."""
    away, reopened = False, 0
    while True:
        try:
            remote.lapse()
            standing = keeper.step(ring, WAIT_MS)
        except errors.LedgerForeignError:
            raise
        except errors.LedgerAwayError as error:
            if not away:
                click.echo(f"{match}: {error}; the match goes on when it answers", err=True)
            away = True
            time.sleep(AWAY_SECONDS)
            continue
        if keeper.reopened > reopened:
            reopened = keeper.reopened
            click.echo(f"{match}: {LOST}", err=True)
        elif away:
            click.echo(f"{match}: Redis answers again", err=True)
        away = False
        yield standing


def _finish(keeper: sprt_match.Keeper, match: str) -> None:
    """Close the match; where Redis is away say that it stays open."""
    try:
        keeper.finish()
    except errors.LedgerAwayError:
        click.echo(
            f"{match} stays open, but Redis is away: `farm match test --id {match}` goes on"
            " with it, and Ctrl-C there ends it",
            err=True,
        )


def _announce(
    ledger: store.RedisLedger,
    keeper: sprt_match.Keeper,
    spec: testmatch_orders.Spec,
    *,
    quiet: bool,
) -> None:
    """Say what is played, and why not where no lane can."""
    if not spec.remote and not keeper.able():
        click.echo(f"no lane can play this yet ({_lacking(keeper, ledger)}); waiting", err=True)
    if not quiet:
        names = ", ".join(map(_paced, spec.engines[1:]))
        games = f"{spec.games} games at {spec.time_control.spoken}"
        click.echo(f"{spec.id}: {spec.engines[0].name} against {names}, {games}")


def _paced(engine: contract.EngineSpec) -> str:
    """Return an engine's name, with its clock where it has one of its own."""
    own = engine.time_control
    return engine.name if own is None else f"{engine.name} (at {own.spoken})"


@contextlib.contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and a terminal's end close the match; who ignores one (nohup) goes on to."""
    heard = [number for number in ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in heard:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


def _lacking(keeper: sprt_match.Keeper, ledger: store.RedisLedger) -> str:
    ledger_lanes = lane_store.RedisLanes(ledger.server)
    every = [lane for hall in ledger.halls() for lane in ledger_lanes.lanes_of(hall)]
    reasons = [
        f"{open_lane.hall}.{open_lane.name}: {keeper.needs().unmet(open_lane) or 'fits'}"
        for open_lane in every
    ]
    return (
        "; ".join(reasons) or "no lane is open: `farm up --lane NAME=CORES`, docs/test-matches.md"
    )


def line(standing: sprt_match.Standing, test: sprt.Test | None) -> str:
    """Return where a match stands, in a line."""
    counts = standing.counts
    estimate = elo.logistic(counts)
    parts = [
        f"{standing.games}/{standing.total}",
        f"+{counts.wins} ={counts.draws} -{counts.losses}",
        f"pairs {' '.join(map(str, counts.pairs))}",
        f"Elo {estimate.elo:+.1f} ± {estimate.error:.1f}",
    ]
    if test is not None and standing.llr is not None:
        bounds = f"[{test.lower:.2f}, {test.upper:.2f}]"
        parts.append(f"LLR {standing.llr:+.2f} {bounds} {test.model}")
    if standing.lost or standing.set_aside:
        parts.append(f"lost {standing.lost}, set aside {standing.set_aside}")
    states = [review.state for review in standing.workers if review.state]
    kinds = sorted(set(states))
    parts += [f"tokens {kind}: {states.count(kind)}" for kind in kinds]
    return "  ".join(parts)


def _report(
    standing: sprt_match.Standing,
    spec: testmatch_orders.Spec,
    terms: sprt_match.Terms,
    directory: pathlib.Path,
    *,
    as_json: bool,
) -> None:
    if as_json:
        names = [engine.name for engine in spec.engines]
        test = None if terms.test is None else terms.as_json()["test"]
        report = {
            "match": spec.id,
            "engines": names,
            "sprt": test,
            "pgn": str(directory / "games.pgn"),
        }
        common.print_json(report | standing.as_json())
        return
    if standing.verdict is not None:
        better = {"H1": "accepted: it is better", "H0": "accepted: it is not"}
        click.echo(f"{standing.verdict} {better[standing.verdict]}")
    for opponent, counts in zip(spec.engines[1:], standing.opponents, strict=True):
        estimate = elo.logistic(counts)
        figures = (
            f"{counts.points:g}/{counts.games}, Elo {estimate.elo:+.1f} ± {estimate.error:.1f}"
        )
        click.echo(f"against {opponent.name}: {figures}")
    for fault in standing.faults:
        click.echo(f"fault: {fault}")
    for review in standing.workers:
        if review.state:
            why = review.reason or "its results are looked at more closely"
            click.echo(f"{review.state}: {' '.join(review.workers)} (token {review.token}): {why}")
    click.echo(f"games: {directory / 'games.pgn'}")
