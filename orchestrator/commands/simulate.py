"""``farm simulate``: a season under virtual time, without engines, hall or Redis."""

from __future__ import annotations

import contextlib
import pathlib
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from orchestrator.broadcast.forecast import settings as outlook
from orchestrator.commands import common, serve_web, services, shell_offers, tables
from orchestrator.commands import launch as launching
from orchestrator.common import errors, files, logs, numbers
from orchestrator.forecast import game_model, season_simulation
from orchestrator.season import views
from orchestrator.season.file import load, wording

_DEFAULTS = game_model.Chances()
SEEDS: Final = 1_000_000  # as many are drawn from: a seed is typed again
SHOW_SECONDS: Final = 600.0  # s: how long a season takes on the page where no speed is given


@click.command()
@click.argument("file", shell_complete=shell_offers.season_files)
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of all draws; default: one is drawn, and printed."
)
@click.option(
    "--draw-rate",
    type=numbers.Number(),
    default=_DEFAULTS.draw,
    show_default=True,
    help="Of equal engines.",
)
@click.option(
    "--white-advantage",
    type=numbers.Number(),
    default=_DEFAULTS.white_elo,
    show_default=True,
    help="In Elo points.",
)
@click.option(
    "--crash-rate",
    multiple=True,
    metavar="RATE|ENGINE=RATE",
    help=f"A game and engine; may be given again for one engine.  [default: {_DEFAULTS.crash}]",
)
@click.option(
    "--time-loss-rate",
    multiple=True,
    metavar="RATE|ENGINE=RATE",
    help=f"Likewise.  [default: {_DEFAULTS.time_loss}]",
)
@click.option(
    "--interruption-rate",
    type=numbers.Number(),
    default=_DEFAULTS.interruption,
    show_default=True,
    help="How often the host is lost during a game.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Write the season's journal there.",
)
@click.option("--serve", is_flag=True, help="Then play it on the live page, until stopped.")
@click.option(
    "--speed",
    type=numbers.NumberRange(0, min_open=True),
    metavar="FACTOR",
    help="How many times as fast as real time --serve plays it: 3600 is an hour a second;"
    " default: the whole season in 10 minutes.",
)
@services.address(serve_web.PORT)
@common.json_option
def simulate(
    file: str,
    seed: int | None,
    draw_rate: float,
    white_advantage: float,
    crash_rate: Sequence[str],
    time_loss_rate: Sequence[str],
    interruption_rate: float,
    journal: pathlib.Path | None,
    host: str,
    port: int,
    speed: float | None,
    *,
    serve: bool,
    as_json: bool,
) -> None:
    """Play the season of FILE to its end in virtual time, its games drawn from ratings.

    FILE is a path, or the name of a bundled season. The same seed plays the same
    season, to the byte. Ties that the organizers must decide are decided by lot. What people and
    hosts are taken to need for gates, answers and repairs is told apart from play and breaks.
    With --serve, which leaves it out, the live page shows the season as it goes: tables,
    brackets, forecast. Its games have results and no moves.

    Example: farm simulate season16 --seed 7 --crash-rate l2-3=0.1
    """
    if speed is not None and not serve:
        raise errors.UsageError("--speed: found without --serve; allowed: both, or neither")
    crash, crashes = _rates("--crash-rate", crash_rate, _DEFAULTS.crash)
    time_loss, time_losses = _rates("--time-loss-rate", time_loss_rate, _DEFAULTS.time_loss)
    drawn = game_model.Chances(
        draw=draw_rate,
        white_elo=white_advantage,
        crash=crash,
        time_loss=time_loss,
        interruption=interruption_rate,
        crashes=crashes,
        time_losses=time_losses,
    )
    loaded = load.load(launching.season_file(file))
    if serve:
        loaded = season_simulation.marked(loaded)
    chosen = secrets.randbelow(SEEDS) if seed is None else seed
    played = season_simulation.Simulation.launched(loaded, chosen, drawn).run()
    if journal is not None:
        _write(journal, season_simulation.journal_bytes(played.journal))
    report = season_simulation.as_json(played)
    if as_json:
        common.print_json(report)
    elif not serve:
        _show(played, report)
    if serve:
        _serve(played, speed, host, port)


def _rates(option: str, given: Sequence[str], default: float) -> tuple[float, dict[str, float]]:
    """Read rates: one for all engines, and those of engines that differ."""
    everybody, single = default, {}
    for text in given:
        engine, equals, rate = text.rpartition("=")
        try:
            value = float(rate)
        except ValueError:
            allowed = "a rate such as 0.01, or ENGINE=0.01"
            raise errors.UsageError(f"{option}: found {text!r}; allowed: {allowed}") from None
        if equals:
            single[engine] = value
        else:
            everybody = value
    return everybody, single


def _write(path: pathlib.Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise errors.HostError(f"{path}: cannot be written: {errors.reason(error)}") from error


def _serve(played: season_simulation.Simulation, speed: float | None, host: str, port: int) -> None:
    """Play a simulated season on the live page, from its launch, until somebody ends it."""
    from orchestrator.broadcast.web import app, server  # noqa: PLC0415 - the web's libraries

    logs.configure()
    took_seconds = _took_seconds(played)
    factor = speed or max(1.0, took_seconds / SHOW_SECONDS)
    with (
        serve_web.listen(host, port) as listening,
        files.scratch("simulate") as root,
        contextlib.suppress(KeyboardInterrupt),
    ):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the folder goes, too
        source = season_simulation.Playback(played.journal, factor, time.monotonic)
        made = app.create(source, root / "archive", root / "feeds", outlook.Settings(humble=False))
        others = serve_web.from_others(listening)
        click.echo(f"farm: the live page is at {serve_web.url(listening)}{others}", err=True)
        click.echo(
            f"farm: {played.state.launched.season.name}, seed {played.seed}:"
            f" {wording.duration(took_seconds)} pass in"
            f" {wording.duration(max(1.0, took_seconds / factor))}; Ctrl-C ends it",
            err=True,
        )
        for line in _assumed(played, "assumed and left out"):
            click.echo(f"farm: {line}", err=True)
        server.make(made, host, port).run(sockets=[listening])


def _show(played: season_simulation.Simulation, report: dict[str, Any]) -> None:
    console = common.console()
    for event in played.state.events:
        console.print(tables.standings(views.standings(played.state, event)))
    console.print(
        f"{played.state.launched.season.name}, seed {report['seed']}: {report['games']} games in"
        f" {wording.duration(_took_seconds(played))}, ties decided by lot: {report['decisions']},"
        f" disqualifications: {report['disqualifications']},"
        f" interruptions: {report['interruptions']}"
    )
    for line in _assumed(played, "assumed"):
        console.print(line)
    console.print(f"Champion: {views.name(played.state, report['champion'])}")


def _took_seconds(played: season_simulation.Simulation) -> float:
    """Return how long play and breaks took, without what people and hosts were waited for."""
    return (played.state.at_ms - played.state.launched_ms - played.waited_ms) / 1000


def _assumed(played: season_simulation.Simulation, how: str) -> Iterator[str]:
    """Say what a simulation takes for granted: waits that no file gives, missing ratings."""
    if played.waited_ms:
        answer = wording.duration(season_simulation.ANSWER_MS / 1000)
        outage = wording.duration(season_simulation.OUTAGE_MS / 1000)
        yield (
            f"Besides, {wording.duration(played.waited_ms / 1000)} of waiting are {how}: {answer}"
            f" for each gate that an operator opens and each answer of the organizers, {outage}"
            " for each lost host"
        )
    if unrated := game_model.unrated(played.state.engines.values()):
        yield f"Strengths: {unrated}"
