"""What keeps a test match: its journal and files, until it is over or somebody stops it.

This process opens the match, mirrors its results and says when it is over; the games are
played by the workers of the lanes, and by remote ones. Stopped by Ctrl-C or SIGTERM, or by its
terminal's end, it closes the match first; `farm match test --id NAME` goes on.
"""

from __future__ import annotations

import collections
import contextlib
import pathlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence

import click

from orchestrator import contract
from orchestrator.commands import common, source_builds
from orchestrator.common import errors, output
from orchestrator.ledger import batches, farm_journal, lane_store, lanes, store, worker_tokens
from orchestrator.rating import elo, sprt
from orchestrator.serve import doorbell
from orchestrator.testmatch import orders, sprt_match, spsa, worker_verdicts

WAIT_MS = 1_000  # ms: a look at the lanes at least this often
AWAY_SECONDS = 1.0  # s: between two tries while Redis is away
TELL_SECONDS = 2.0  # s: between two lines about a match that goes well
ENDS = (signal.SIGTERM, signal.SIGHUP)  # heard as Ctrl-C: nobody would be left to close the match
LOST = (
    "Redis has lost what it knew of this match; it goes on from the results that are kept here, and"
    " games that were being played are dealt again"
)
SHOWN = 3  # parameters of a tuning in a line
STOPPED = 130  # exit code of a match that was stopped, as of a shell's Ctrl-C


def keep(spec: orders.Spec, terms: sprt_match.Terms, *, as_json: bool) -> sprt_match.Standing:
    """Keep a match until it is over, and report it; exit by ``STOPPED`` where it was stopped."""
    with common.open_ledger() as ledger:
        directory = common.match_folder(spec.id)
        author = common.author(ledger, sprt_match.KEEPER)
        names = [engine.name for engine in spec.engines]
        keeper = keeper_of(ledger, directory, spec, terms, author)
        try:
            with _ended_like_ctrl_c(), source_builds.held(spec):
                standing, stopped = _run(ledger, keeper, spec, terms, quiet=as_json)
        except errors.FarmError as error:
            announce_end(ledger, spec.id, names, author, f"failed: {error}", "")
            raise
        if not stopped or keeper.stopped is not None:  # who has pressed Ctrl-C knows
            announce_end(
                ledger,
                spec.id,
                names,
                author,
                why_ended(standing, keeper),
                line(standing, terms.test),
            )
        keeper.close()
    _report(standing, spec, terms, directory, as_json=as_json)
    if stopped:
        click.echo(f"stopped; `farm match test --id {spec.id}` goes on", err=True)
        raise click.exceptions.Exit(STOPPED)
    return standing


def keeper_of(
    ledger: store.RedisLedger,
    directory: pathlib.Path,
    spec: orders.Spec,
    terms: sprt_match.Terms,
    author: str,
) -> sprt_match.Keeper:
    """Return what keeps a match in a directory; raise ``RefusedError`` where another one does."""
    verdicts = worker_verdicts.Verdicts(
        ledger,
        worker_tokens.RedisTokens(ledger.server),
        batches.RedisBatches(ledger.server),
        spec.id,
        author,
    )
    ledger_lanes, judges = lane_store.RedisLanes(ledger.server), verdicts if spec.remote else None
    return sprt_match.Keeper(ledger, ledger_lanes, directory, spec, terms, judges)


def why_ended(standing: sprt_match.Standing, keeper: sprt_match.Keeper) -> str:
    """Return why a match has ended."""
    if standing.verdict is not None:
        return f"{standing.verdict} accepted"
    if standing.over:
        return "all games were played"
    who, why = keeper.stopped or ("", "")
    return f"stopped by {who}: {why}"


def announce_end(
    ledger: store.RedisLedger,
    match: str,
    engines: Sequence[str],
    author: str,
    why: str,
    score: str,
) -> None:
    """Write into the farm's journal that a match has ended: `farm notify` tells people of it."""
    data: dict[str, object] = {"match": match, "engines": [*engines], "why": why, "score": score}
    try:
        farm_journal.append(ledger, contract.Draft(lanes.ENDED, data), author)
    except (errors.LedgerAwayError, errors.RefusedError) as error:
        click.echo(f"{match}: nobody is told of its end: {error}", err=True)


def _run(
    ledger: store.RedisLedger,
    keeper: sprt_match.Keeper,
    spec: orders.Spec,
    terms: sprt_match.Terms,
    *,
    quiet: bool,
) -> tuple[sprt_match.Standing, bool]:
    """Keep the match until it is over or stopped; return its standing and whether it was."""
    reported_at, shown, unbuilt = 0.0, -1, 0
    ring, remote = doorbell.at(common.redis_url()), batches.RedisBatches(ledger.server)
    try:
        keeper.open(common.author(ledger, "farm match test"))
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
            if keeper.stopped is not None:
                who, why = keeper.stopped
                click.echo(output.plain(f"{spec.id}: stopped by {who}: {why}"), err=True)
                return standing, True
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
    spec: orders.Spec,
    *,
    quiet: bool,
) -> None:
    """Say what is played, and why not where no lane can."""
    if not spec.remote and not keeper.able():
        click.echo(f"no lane can play this yet ({_lacking(keeper, ledger)}); waiting", err=True)
    if not quiet:
        click.echo(f"{spec.id}: {outline(spec)}")


def outline(spec: orders.Spec) -> str:
    """Return what is played, in a line."""
    names = ", ".join(map(_paced, spec.engines[1:]))
    games = f"{spec.games} games at {spec.time_control.spoken}"
    if spec.tuning is not None:
        tuned = output.some(len(spec.tuning.parameters), "parameter")
        games = f"{tuned}, {spec.tuning.iterations} iterations, {games}"
    return f"{spec.engines[0].name} against {names}, {games}"


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
    if (course := standing.course) is not None:
        parts[1:] = [f"{course.done} iterations", *_changed(course)]
    if test is not None and standing.llr is not None:
        bounds = f"[{test.lower:.2f}, {test.upper:.2f}]"
        llr = round(standing.llr, 2) + 0.0  # no -0.00
        parts.append(f"LLR {llr:+.2f} {bounds} {test.model}")
    if standing.lost or standing.set_aside:
        parts.append(f"lost {standing.lost}, set aside {standing.set_aside}")
    states = [review.state for review in standing.workers if review.state]
    kinds = sorted(set(states))
    parts += [f"tokens {kind}: {states.count(kind)}" for kind in kinds]
    return "  ".join(parts)


def _changed(course: spsa.Course) -> list[str]:
    """Return the parameters that have gone farthest, by their moves, in a word each."""
    rows = sorted(course.rows(), key=lambda row: -abs(row.value - row.parameter.start) / row.c)
    words = [f"{row.parameter.name} {row.parameter.start:g} -> {row.value:.4g}" for row in rows]
    more = [f"and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return [*words[:SHOWN], *more]


def tuned(course: spsa.Course) -> Iterator[str]:
    """Yield the lines of a table: where each parameter stands."""
    yield f"{'parameter':<24} {'value':>10} {'start':>8} {'min':>8} {'max':>8} {'C':>8} {'R':>10}"
    for row in course.rows():
        parameter = row.parameter
        yield (
            f"{parameter.name:<24} {row.value:>10.4f} {parameter.start:>8g} {parameter.least:>8g}"
            f" {parameter.most:>8g} {row.c:>8.3f} {row.rate:>10.3g}"
        )
    yield f'--options "{course.options()}"'


def faults(standing: sprt_match.Standing) -> Iterator[str]:
    """Yield whose faults there were and how many, then the last of them with the engines' words."""
    counts = collections.Counter(fault.engine for fault in standing.faults)
    for engine, number in counts.items():
        yield f"faults of {engine}: {number}"
    last, others = sprt_match.last_faults(standing.faults)
    if others:
        yield f"the last of them; the {others} others are in the match's journal"
    for repeated in last:
        yield f"fault: {repeated}"
        for line in repeated.fault.said:
            yield f"  {line}"


def never_sound(standing: sprt_match.Standing, spec: orders.Spec) -> Iterator[str]:
    """Yield a line for each engine that has lost every game by a fault, as by crashes at its start.

    In a match of an engine with itself every game is one game of its name.
    """
    tested, played = spec.engines[0].name, collections.Counter[str]()
    for opponent, counts in zip(spec.engines[1:], standing.opponents, strict=True):
        for name in {tested, opponent.name}:
            played[name] += counts.games
    for engine, number in collections.Counter(fault.engine for fault in standing.faults).items():
        if number == played[engine]:
            yield (
                f"{engine} lost {number} of {output.some(number, 'game')} by faults: the score is"
                f" no measure of its strength (farm match show {spec.id})"
            )


def _report(
    standing: sprt_match.Standing,
    spec: orders.Spec,
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
        for text in never_sound(standing, spec):
            click.echo(output.plain(text), err=True)
        return
    for text in () if standing.course is None else tuned(standing.course):
        click.echo(text)
    if standing.verdict is not None:
        better = {"H1": "accepted: it is better", "H0": "accepted: it is not"}
        click.echo(f"{standing.verdict} {better[standing.verdict]}")
    opponents = () if spec.tuning else zip(spec.engines[1:], standing.opponents, strict=True)
    for opponent, counts in opponents:
        estimate = elo.logistic(counts)
        figures = (
            f"{counts.points:g}/{counts.games}, Elo {estimate.elo:+.1f} ± {estimate.error:.1f}"
        )
        click.echo(f"against {opponent.name}: {figures}")
    for text in faults(standing):
        click.echo(output.plain(text))
    for review in standing.workers:
        if review.state:
            why = review.reason or "its results are looked at more closely"
            click.echo(f"{review.state}: {' '.join(review.workers)} (token {review.token}): {why}")
    click.echo(f"games: {directory / 'games.pgn'}")
    for text in never_sound(standing, spec):
        click.echo(output.plain(text))
