"""Commands that only look: status, standings, schedule, games, graph.

What they print follows from the journal alone. None tells an opening that has not been
played (draws are sealed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from orchestrator.commands import common, paths, shell_offers, tables
from orchestrator.common import errors
from orchestrator.ledger import services, store, vitals
from orchestrator.season import decide, needs, views
from orchestrator.season import graph as season_graph
from orchestrator.season.fold import state

OVER: Final = frozenset({"finished", "abandoned"})  # statuses of seasons that wait for no hall


@click.command()
@common.season_argument
@common.json_option
def status(season: str | None, *, as_json: bool) -> None:
    """Show seasons, all or one, and halls: what is played, what is blocked and why.

    Exit code 3: something needs a person, such as a season or hall that is held, a decision, a
    Redis that has lost entries, or seasons that no `farm serve` plays on. Lines that begin with
    ALARM say what it is, and what to type. A pause or a gate that somebody has set is no alarm.

    Example: farm status --json
    """
    with common.open_ledger() as ledger:
        launched = ledger.seasons()
        alarms = ledger.alarms() or ({} if launched else common.emptied(launched))
        names = launched if season is None else [season]
        if season is not None and season not in launched:
            common.fold(ledger, season)  # raises, with those that there are
        waiting: list[tuple[str, needs.Need]] = []  # who waits, and for what
        seasons = [
            seen for name in names if (seen := _season(ledger, name, alarms, waiting)) is not None
        ]
        hosts = vitals.read(ledger)
        failed = {
            heartbeat.hall for heartbeat in hosts.values() if heartbeat.problem and heartbeat.hall
        }
        serve = services.read(ledger, services.SERVE, services.Serve)
        now_ms = ledger.now_ms()
        silence = common.silence(serve, now_ms)
        if silence and any(seen["status"] not in OVER for seen in seasons):
            alarms["farm serve"] = silence
        clocks = _clocks(serve, hosts)
        unsafe = [] if serve is None else list(serve.unsafe)  # as it saw Redis' settings last
        names = sorted({*ledger.halls(), *failed})
        halls = [
            seen
            for name in names
            if (seen := _hall(ledger, name, hosts, now_ms, alarms)) is not None
        ]
    _alarm(alarms, halls, waiting)
    if not silence:  # else all of the farm may have been ended
        for hall, hall_view in _left(seasons, halls):
            _add(alarms, f"hall {hall}", tables.silent(hall_view))
    if as_json:
        others = {"alarms": alarms, "clocks": clocks, "unsafe": unsafe}
        common.print_json({"seasons": seasons, "halls": halls} | others)
    else:
        _show(seasons, halls, alarms, waiting)
        for host, skew in clocks.items():
            common.console().print(f"Clock of {host}: {_skew(skew)}", style="yellow")
        for complaint in unsafe:
            text = f"Redis may lose what it has acknowledged: {complaint}"
            common.console().print(text, style="yellow")
    if alarms:
        click.get_current_context().exit(errors.LedgerDamagedError.exit_code)


def _clocks(serve: services.Serve | None, hosts: Mapping[str, vitals.Vitals]) -> dict[str, float]:
    """Return the hosts whose clock is not Redis', with the seconds that they are ahead of it."""
    skews = {host: host_vitals.clock_skew_seconds for host, host_vitals in hosts.items()}
    if serve is not None:
        skews.setdefault(serve.host, serve.clock_skew_seconds)
    measured = {host: skew for host, skew in skews.items() if skew is not None}
    return {host: skew for host, skew in measured.items() if abs(skew) > vitals.SKEW_SECONDS}


def _skew(seconds: float) -> str:
    where = "ahead of" if seconds > 0 else "behind"
    return (
        f"{abs(seconds):.0f} s {where} Redis' clock. Games and leases go on; "
        "dates in logs and PGN are wrong: start chrony on that host"
    )


def _alarm(
    alarms: dict[str, str],
    halls: list[dict[str, Any]],
    waiting: list[tuple[str, needs.Need]],
) -> None:
    """Add what needs a person to the alarms."""
    held = [
        (f"hall {hall['hall']}", need)
        for hall in halls
        for need in needs.of_hall(hall["hall"], hall["holds"])
    ]
    for name, need in (*waiting, *held):
        if need.urgent:
            _add(alarms, name, tables.need(need))


def _add(alarms: dict[str, str], name: str, alarm: str) -> None:
    alarms[name] = "; ".join(filter(None, (alarms.get(name), alarm)))


def _left(
    seasons: list[dict[str, Any]], halls: list[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the halls in which a season is open, and whose hosts are not heard."""
    for hall in halls:
        if hall["silent_seconds"] is not None and _open_in(hall["hall"], seasons):
            yield hall["hall"], hall


def _open_in(hall: str, seasons: list[dict[str, Any]]) -> list[str]:
    """Return the seasons of a hall that are not over."""
    return [
        seen["season"] for seen in seasons if seen["hall"] == hall and seen["status"] not in OVER
    ]


def _season(
    ledger: store.RedisLedger,
    name: str,
    alarms: dict[str, str],
    waiting: list[tuple[str, needs.Need]],
) -> dict[str, Any] | None:
    """Return what is shown of a season, and add what it waits for.

    One that cannot be read is an alarm.
    """
    try:
        folded = common.fold(ledger, name)
        view = views.season(folded)
    except Exception as error:
        if errors.is_outage(error):
            raise
        alarms.setdefault(name, f"its journal cannot be read: {error}; see `farm fsck`")
        return None
    waiting += [(name, need) for need in needs.of_season(folded)]
    return view


def _show(
    seasons: list[dict[str, Any]],
    halls: list[dict[str, Any]],
    alarms: dict[str, str],
    waiting: list[tuple[str, needs.Need]],
) -> None:
    console = common.console()
    if not seasons and not alarms:
        # At a desk the demo would be given this machine's engines, which the hall may not have.
        begin = "`farm season new FILE` writes one, `farm season launch FILE` starts it"
        if not paths.at_desk():
            begin = "`farm season launch demo` starts one"
        console.print(f"No season has been launched yet; {begin}.", soft_wrap=True)
    for seen in seasons:
        console.print(tables.season(seen))
    for hall in halls:
        open_here = _open_in(hall["hall"], seasons)
        gone = not hall["worker"] or (hall["drained"] and not hall["hosts"])
        if open_here or not gone or hall["problems"] or hall["game"]:
            console.print(tables.hall(hall, open_here))
    for name, need in waiting:
        if need.kind is needs.Kind.GATE and need.until_ms is None:
            console.print(f"{name} waits for you: {tables.need(need)}", soft_wrap=True)
    for name, reason in alarms.items():
        console.print(f"ALARM, {name}: {reason}", style="bold red")


def _hall(
    ledger: store.RedisLedger,
    name: str,
    hosts: Mapping[str, vitals.Vitals],
    now_ms: int,
    alarms: dict[str, str],
) -> dict[str, Any] | None:
    """Return what is shown of a hall; one whose keys are not the farm's is an alarm."""
    try:
        return _hall_fields(ledger, name, hosts, now_ms)
    except errors.LedgerForeignError as error:
        alarms.setdefault(f"hall {name}", str(error))
        return None


def _hall_fields(
    ledger: store.RedisLedger, name: str, hosts: Mapping[str, vitals.Vitals], now_ms: int
) -> dict[str, Any]:
    slot, holds = ledger.slot(name), ledger.holds(f"hall:{name}")
    fields: dict[str, Any] = {"hall": name, "holds": holds, "game": None}
    fields["worker"] = ledger.worker(name)
    fields["drained"] = ledger.drained(name, fields["worker"]) if fields["worker"] else ""
    fields["hosts"] = sorted(host for host, seen in hosts.items() if seen.hall == name)
    fields["problems"] = {
        host: host_vitals.problem
        for host, host_vitals in hosts.items()
        if host_vitals.hall == name and host_vitals.problem
    }
    fields["silent_seconds"] = None
    if fields["hosts"] and not fields["drained"] and not fields["problems"]:
        seconds = (now_ms - max(hosts[host].at_ms for host in fields["hosts"])) / 1000
        fields["silent_seconds"] = seconds if seconds > vitals.SILENT_SECONDS else None
    if slot is not None:
        newer = ledger.plies(slot.attempt, slot.ply)  # since the lease was renewed last
        fields |= {
            "season": slot.season,
            "game": slot.game,
            "attempt": slot.attempt,
            "host": slot.host,
            "worker": slot.worker,
            "ply": newer[-1][0] if newer else slot.ply,
            "overdue": slot.overdue,
        }
    return fields


@click.command()
@common.season_argument
@click.option(
    "--event",
    shell_complete=shell_offers.events,
    help="Only this event; default: every event that has begun.",
)
@common.json_option
def standings(season: str | None, event: str | None, *, as_json: bool) -> None:
    """Show the table of each event, with what decided every place.

    Example: farm standings --event league
    """
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
    names = views.event_ids(chosen, event)
    begun = [name for name in names if chosen.events[name].entrants or event]
    tables_shown = [views.standings(chosen, name) for name in begun]
    if as_json:
        common.print_json(tables_shown)
        return
    for table in tables_shown:
        common.console().print(tables.standings(table))
    if not tables_shown:
        common.console().print(f"no event of {chosen.launched.id} has begun")


@click.command()
@common.season_argument
@click.option("--event", shell_complete=shell_offers.events, help="Only this event.")
@common.json_option
def schedule(season: str | None, event: str | None, *, as_json: bool) -> None:
    """Show the games in their order of play, with results and estimated starts.

    Of a paused season also those of the event that begins next. Long reasons are cut in *How*;
    --json has them whole.

    Example: farm schedule --event final
    """
    with common.open_ledger() as ledger:
        chosen, now_ms = common.choose(ledger, season), ledger.now_ms()
    if chosen.paused or chosen.held:
        chosen = decide.begun(chosen, now_ms)
    rows = _rows(chosen, event, now_ms)
    _print_games(rows, "Schedule", as_json=as_json)
    if not rows and not as_json:
        what = event or chosen.launched.id
        click.echo(f"No game of {what} is paired yet; `farm status` says what is waited for.")


@click.command()
@common.season_argument
@click.option("--event", shell_complete=shell_offers.events, help="Only this event.")
@common.json_option
def games(season: str | None, event: str | None, *, as_json: bool) -> None:
    """Show the finished games: result, how it ended, length, duration.

    Long reasons are cut in *How*; --json has them whole.

    Example: farm games --json
    """
    with common.open_ledger() as ledger:
        chosen, now_ms = common.choose(ledger, season), ledger.now_ms()
    rows = _rows(chosen, event, now_ms)
    _print_games([row for row in rows if row["result"]], "Games", as_json=as_json)


def _rows(chosen: state.SeasonState, event: str | None, now_ms: int) -> list[dict[str, Any]]:
    """Return the games of a season, or of one event, in their order of play."""
    return [
        row
        for name in views.event_ids(chosen, event)
        for row in views.schedule(chosen, name, now_ms)
    ]


def _print_games(rows: list[dict[str, Any]], title: str, *, as_json: bool) -> None:
    if as_json:
        common.print_json(rows)
    else:
        common.console().print(tables.games(rows, title))


@click.command()
@common.season_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="The language of the drawing.",
)
@click.option("--games", "unfold", is_flag=True, help="Draw every game, not every round.")
@common.json_option
def graph(season: str | None, form: str, *, unfold: bool, as_json: bool) -> None:
    """Draw the season's graph: games, pairings, rankings and gates with their states.

    Example: farm graph --format dot | dot -Tsvg > season.svg
    """
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
    drawn = season_graph.build(chosen, by_round=not unfold)
    if as_json:
        common.print_json(drawn.data())
    else:
        click.echo(season_graph.dot(drawn) if form == "dot" else season_graph.mermaid(drawn))
