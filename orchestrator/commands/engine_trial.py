"""``farm engine test``: a few games of one engine in the hall, while the season waits."""

from __future__ import annotations

from typing import Any

import click

from orchestrator import contract
from orchestrator.arbiter import chess960, openings
from orchestrator.commands import common, programs, rosters, shell_offers, test_games
from orchestrator.common import bounds, errors, output
from orchestrator.ops import entry_points as players
from orchestrator.season.amend import windows
from orchestrator.season.file import load
from orchestrator.season.fold import orders, state
from orchestrator.season.spec import model

OWN = contract.EngineSpec(
    id="farm-engine", name="Farm Engine", command=("farm-engine", "--nodes", "400")
)
HALL = "hall-1"
STDERR_LINES = 3  # of a crashed engine's standard error: the cause is mostly the last
_FAULTS = frozenset({contract.Ending.DISCONNECT, contract.Ending.STALL})


@click.command()
@click.argument("name", shell_complete=shell_offers.engines)
@click.option("--against", help="Another engine's id; default: the farm's own engine.")
@click.option(
    "--games",
    default=2,
    show_default=True,
    type=click.IntRange(1, 100),
    help="How many are played.",
)
@click.option(
    "--tc", "control", default="10+0.1", show_default=True, help="In seconds, or with units."
)
@click.option("--event", help="Play by this event's limits; default: the engine's next.")
@common.season_option
@rosters.any_file_option
@common.json_option
def test(
    name: str,
    against: str | None,
    games: int,
    control: str,
    event: str | None,
    season: str | None,
    file: str | None,
    *,
    as_json: bool,
) -> None:
    """Play test games of engine NAME in the hall; nothing of them counts.

    Run it on the hall's host, while the season is at a gate or paused, or without any
    season. With --file both engines are those of a roster file, or of a season file that
    need not be launched: then they play by its first event's limits.

    \b
    Examples:
    farm engine test igel --against minic --games 4 --tc 60+1
    farm engine test igel --file autumn.toml
    """  # noqa: D301 - click reads the backspace as "do not wrap"
    clock = test_games.control(control)
    chosen = _season(season, required=file is None)
    loaded = None if file is None else rosters.season_of(file)
    engines = _engines(chosen, file, loaded)
    hall = HALL if chosen is None else chosen.hall
    rules = _rules(chosen, event, name) if loaded is None else _rules_of_file(loaded, event)
    pair = (_named(engines, name), OWN if against is None else _named(engines, against))
    programs.warn(programs.warnings(pair))
    written = [_order(number, pair, clock, rules) for number in range(games)]
    url = None if chosen is None else common.redis_url()
    played = []
    for record in players.player()(written, hall, url):
        played.append(_as_json(record))
        if not as_json:
            click.echo(output.plain(_sentence(played[-1])))
    if as_json:
        common.print_json({"engine": name, "against": pair[1].id, "games": played})
        return
    for remark in dict.fromkeys(remark for game in played for remark in game["remarks"]):
        click.echo(output.plain(remark))
    if len(played) < games:
        click.echo("an official game is waiting: the test ends here")


def _season(name: str | None, *, required: bool) -> state.SeasonState | None:
    """Return the season that must not be disturbed, None where no farm runs."""
    try:
        with common.open_ledger() as ledger:
            if not required and name is None and not ledger.seasons():
                return None
            chosen = common.choose(ledger, name)
    except errors.LedgerUnreachableError:
        if required:
            raise
        return None
    test_games.require_waiting(chosen, "engines are tested")
    return chosen


def _engines(
    chosen: state.SeasonState | None, file: str | None, loaded: load.Loaded | None
) -> dict[str, contract.EngineSpec]:
    if loaded is not None:
        return {spec.id: spec for spec in loaded.engines}
    if file is None:
        assert chosen is not None  # required without a file
        return dict(chosen.engines)
    return rosters.specs(file)


def _named(engines: dict[str, contract.EngineSpec], name: str) -> contract.EngineSpec:
    if name not in engines:
        raise errors.RefusedError(f"no engine {name!r}; engines: {', '.join(engines) or 'none'}")
    return engines[name]


def _rules(chosen: state.SeasonState | None, event: str | None, engine: str) -> model.Event | None:
    """Return the event by whose limits is played, None for the farm's smallest."""
    if chosen is None:
        if event is not None:
            raise errors.UsageError(f"--event {event}: there is no season")
        return None
    if event is not None:
        return chosen.event(event).spec
    coming = windows.upcoming(chosen, engine)
    spec = coming[0].spec if coming else None
    return spec or next(iter(chosen.events.values())).spec


def _rules_of_file(loaded: load.Loaded, event: str | None) -> model.Event:
    """Return the event of a season file by whose limits is played: the first one, or that named."""
    named = {spec.id: spec for spec in loaded.season.events}
    if event is None:
        return loaded.season.events[0]
    if event not in named:
        raise errors.UsageError(f"--event: found {event!r}; allowed: {', '.join(named)}")
    return named[event]


def _order(
    number: int,
    pair: tuple[contract.EngineSpec, contract.EngineSpec],
    control: contract.TimeControl,
    rules: model.Event | None,
) -> contract.GameOrder:
    """Write the order of a test game; colours change from game to game."""
    event = "" if rules is None else rules.id
    white, black = (orders.engine_in(engine, event) for engine in (pair, pair[::-1])[number % 2])
    order = contract.GameOrder(
        season="test",
        season_name="Engine test",
        event="test",
        event_name="Engine test",
        game=f"test-{number + 1}",
        number=number + 1,
        round=str(number + 1),
        white=white,
        black=black,
        time_control=control,
        journaled=False,
        opening=_opening(number // 2, rules),
    )
    if rules is None:
        return order
    update = {
        "limits": rules.limits,
        "timeouts": rules.timeouts,
        "variant": rules.variant,
        "adjudication": rules.adjudication,
    }
    return order.model_copy(update=update)


def _opening(pair: int, rules: model.Event | None) -> contract.Opening:
    if rules is not None and rules.variant == "fischerandom":
        return chess960.opening(pair % chess960.POSITIONS)
    book = test_games.DEMO_BOOK
    exits = openings.parse(bounds.text(book, bounds.BOOK_BYTES), "pgn", test_games.PLIES, str(book))
    return exits[pair % len(exits)]


def _as_json(record: contract.GameRecord) -> dict[str, Any]:
    last = record.plies[-1] if record.plies else None
    return {
        "game": record.order.game,
        "white": record.order.white.name,
        "black": record.order.black.name,
        "result": record.outcome.result,
        "details": record.outcome.details,
        "note": record.outcome.note,
        "stderr": _last_words(record),
        "plies": 0 if last is None else last.ply,
        "builds": {"white": record.order.white.build, "black": record.order.black.build},
        "sandbox": {"white": record.white.sandbox, "black": record.black.sandbox},
        "checksums": {
            "white": dict(record.order.white.checksums),
            "black": dict(record.order.black.checksums),
        },
        "remarks": [
            f"{engine.name}: option {option.name}: {option.remark}"
            for engine, report in (
                (record.order.white, record.white),
                (record.order.black, record.black),
            )
            for option in report.options
            if option.remark
        ],
    }


def _last_words(record: contract.GameRecord) -> str:
    """Return the end of the standard error of the engine that crashed or did not start."""
    if record.outcome.ending not in _FAULTS or record.outcome.loser is None:
        return ""
    return (record.white if record.outcome.loser == "white" else record.black).stderr_tail


def _sentence(game: dict[str, Any]) -> str:
    players = f"{game['white']} - {game['black']}"
    why = f"{game['details']}{': ' + game['note'] if game['note'] else ''}"
    lines = game["stderr"].strip().splitlines()[-STDERR_LINES:]
    stderr = "".join(f"\n  stderr: {line}" for line in lines)
    return f"{game['game']}: {players} {game['result']} ({why}, {game['plies']} plies){stderr}"
