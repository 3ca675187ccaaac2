"""``farm forecast``: what the rest of a season may bring."""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import rich.progress
import rich.table

from orchestrator.commands import common, shell_offers, tables
from orchestrator.commands import launch as launching
from orchestrator.common import errors, numbers, output
from orchestrator.forecast import forecast as forecasts
from orchestrator.forecast import game_model, season_simulation
from orchestrator.season import views
from orchestrator.season.file import load, wording
from orchestrator.season.fold import progress
from orchestrator.season.fold import state as season_state

PLACES = 3  # shown one by one in a table; --json has all


@click.command()
@click.argument("what", metavar="[FILE|SEASON]", required=False)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="How often the rest is simulated.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The same one forecasts the same.",
)
@click.option("--event", shell_complete=shell_offers.events, help="Only this event.")
@click.option(
    "--rating-error",
    type=numbers.NumberRange(1, 1000),
    default=forecasts.RATING_ERROR,
    show_default=True,
    help="Standard error of the roster's ratings, in points.",
)
@click.option(
    "--processes",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="That simulate at once; 0: one for each core.",
)
@common.json_option
def forecast(
    what: str | None,
    runs: int,
    seed: int,
    event: str | None,
    rating_error: float,
    processes: int,
    *,
    as_json: bool,
) -> None:
    """Simulate the rest of a season many times; print how likely each outcome is.

    SEASON is a launched one (default: the one that runs); FILE a season file, of which
    the whole is played. Strengths are the roster's ratings with their error, corrected
    by the season's games so far. The same seed forecasts the same.

    Example: farm forecast season17 --runs 1000 --seed 7
    """
    state = _state(what, seed)
    if event is not None and event not in state.events:
        event_ids = ", ".join(state.events)
        raise errors.UsageError(f"--event: found {event!r}; allowed: {event_ids}")
    asked = forecasts.Forecast(state, seed, rating_error)
    with _progress(runs, quiet=as_json) as done:
        odds = forecasts.forecast(asked, runs, processes, done)
    report = forecasts.as_json(asked, odds, time.time_ns() // 1_000_000)
    report["untimed_gates"] = progress.untimed_gates(state)
    report["unrated"] = game_model.without_rating(state.engines.values())
    if event is not None:
        report["events"] = [simulated for simulated in report["events"] if simulated["id"] == event]
    if as_json:
        common.print_json(report)
    else:
        _show(state, report)


def _state(what: str | None, seed: int) -> season_state.SeasonState:
    """Return a launched season's state, or that of a file before its first game."""
    if what is not None and (pathlib.Path(what).is_file() or not _launched(what)):
        return season_simulation.Simulation.launched(
            load.load(launching.season_file(what)), seed
        ).state
    with common.open_ledger() as ledger:
        return common.choose(ledger, what)


def _launched(season: str) -> bool:
    """Say whether a farm is there and plays a season of that id."""
    try:
        with common.open_ledger() as ledger:
            return season in ledger.seasons()
    except errors.LedgerUnreachableError:
        return False


@contextlib.contextmanager
def _progress(runs: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    bar = rich.progress.Progress(console=common.console(stderr=True), disable=quiet, transient=True)
    with bar:
        task = bar.add_task("seasons", total=runs)
        yield lambda played: bar.update(task, advance=played)


# -- for people ----------------------------------------------------------------------


def _show(state: season_state.SeasonState, report: Mapping[str, Any]) -> None:
    console = common.console()
    for event in report["events"]:
        console.print(_table(state, event))
    title = ", ".join(
        f"{views.name(state, candidate['engine'])} {_percent(candidate['chance'])}"
        for candidate in report["champion"][:5]
    )
    console.print(f"Champion: {title}")
    if unrated := game_model.unrated(state.engines.values()):
        played = ", but for the games played so far" if forecasts.games_of(state) else ""
        console.print(f"Strengths: {unrated}{played}")
    end = report["end_ms"]
    left = {key: wording.duration(86_400 * days) for key, days in report["remaining_days"].items()}
    breaks_seconds = progress.of_season(state).break_seconds
    breaks = f", {wording.duration(breaks_seconds)} of it breaks" if breaks_seconds else ""
    console.print(
        f"The season ends about {tables.moment(end['expected'])}"
        f" (in {left['expected']}{breaks}; 9 in 10: {left['early']} to"
        f" {left['late']}), by {output.some(report['runs'], 'run')}, seed {report['seed']}"
    )
    if gates := report["untimed_gates"]:
        console.print(
            f"Besides, the wait until an operator opens the gate of {', '.join(gates)}, however"
            " long that takes"
        )


def _table(state: season_state.SeasonState, event: Mapping[str, Any]) -> rich.table.Table:
    made = rich.table.Table(title=event["name"])
    targets = list(event["engines"][0]["promoted"]) if event["engines"] else []
    relegates = any(line["relegated"] for line in event["engines"])
    made.add_column("Engine")
    shown = min(PLACES, len(event["engines"][0]["places"])) if event["engines"] else PLACES
    for head in ("Plays", *map(str, range(1, shown + 1)), *(f"→ {to}" for to in targets)):
        made.add_column(head, justify="right")
    if relegates:
        made.add_column("Relegated", justify="right")
    for line in event["engines"]:
        cells = [line["plays"], *line["places"][:PLACES], *line["promoted"].values()]
        made.add_row(
            views.name(state, line["engine"]),
            *map(_percent, [*cells, line["relegated"]] if relegates else cells),
        )
    return made


def _percent(chance: float) -> str:
    """Write a chance; what may still happen, or fail to, is never told as 0 or 100 %."""
    if chance in {0.0, 1.0}:
        return f"{chance:.0%}" if chance else ""
    return "<1%" if chance < 0.01 else ">99%" if chance > 0.99 else f"{chance:.0%}"
