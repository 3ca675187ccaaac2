"""``farm amend``: change a running season under audit, what it is built of and when.

Each subcommand journals one fact with who and why, and says what follows from it;
``--dry-run`` says the same and changes nothing. Openings are never told (sealed draws).
Who takes an engine's seat is said in ``substitutes``.
"""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Sequence

import click

from orchestrator import contract
from orchestrator.commands import season_change, shell_offers, substitutes, tables, times
from orchestrator.season.amend import amending
from orchestrator.season.file import load, roster
from orchestrator.season.fold import amendment_entries, openings, state


@click.group()
def amend() -> None:
    """Change a running season, journaled with who and why.

    Its rules cannot be changed; docs/how-to/change-a-rule.md: how another season takes over.

    \b
    Examples:
    farm amend engine e1 --event league --with e9 --by anna --reason "hidden book"
    farm amend book short --file fixed.pgn --by anna --reason "illegal line"
    farm amend gate final --at 2026-12-01T18:00 --by anna --reason "author's journey"
    farm amend host gpu-box --away --engine lc0 --by anna --reason "power supply"
    farm amend away-policy others --by anna --reason "the CPU league can go on"
    """  # noqa: D301 - click reads the backspace as "do not wrap"


amend.add_command(substitutes.engine)


@amend.command()
@click.argument("name")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=pathlib.Path, dir_okay=False),
    required=True,
    help="The new book: PGN or EPD, .gz.",
)
@click.option("--game", "games", multiple=True, help="Only the openings of these games.")
@season_change.act
def book(name: str, path: pathlib.Path, games: Sequence[str], act: season_change.Act) -> None:
    """Replace the openings of book NAME that no game has used yet.

    The season must be paused or held. An opening that was played stays: its reverse game has the
    same (S16-8a). New ones come in the book's order, by lot from the sealed seed or as listed.

    Example: farm amend book short --file fixed.epd --game league.17 --reason "illegal line"
    """

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        like = now.launched.season.books.get(name)
        exits = load.load_book(path, name, like) if like is not None else ()
        source = (path.name, hashlib.sha256(path.read_bytes()).hexdigest() if like else "")
        return amending.mend_book(now, name, exits, source, games, act.by, act.reason)

    done = act.change(change, unoffered=True)
    new = {int(number) for number in done.fact["exits"]}
    waiting = [
        game.id
        for game in done.before.games.values()
        if game.open and game.opening in new and openings.book_of(done.before, game) == name
    ]
    report = {"book": name, "sha256": done.fact["sha256"], "exits": len(new), "games": waiting}
    will = act.tense("will be", "are")
    sentence = (
        f"{len(new)} exits of {name} {will} replaced, those of {len(waiting)} paired games too"
    )
    act.report(done, report, sentence)


@amend.command()
@click.argument("event", shell_complete=shell_offers.events)
@click.option("--at", required=True, help=f"When it opens: {times.HELP}")
@season_change.act
def gate(event: str, at: str, act: season_change.Act) -> None:
    """Move the time at which the gate (the break) before EVENT opens by itself.

    It still waits for the events before it and for the organizers' decisions. A gate that only
    you would open (break = "operator") then opens by itself, too, whether it is shut yet or not.

    Example: farm amend gate final --at +2d --reason "the authors asked for two days more"
    """

    def change(now: state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        at_ms = times.read(at, now_ms)
        return amending.move_gate(now, event, at_ms, now_ms, act.by, act.reason)

    done = act.change_at(change)
    report = {key: done.fact[key] for key in ("event", "opens_at_ms", "before_ms")}
    was = f", not {tables.moment(report['before_ms'])}" if report["before_ms"] else ""
    opens = f"{act.tense('will open', 'opens')} by itself {tables.moment(report['opens_at_ms'])}"
    act.report(done, report, f"the gate before {event} {opens}{was}")


@amend.command("away-policy")
@click.argument("policy", type=click.Choice(["wait", "others"]))
@season_change.act
def away_policy(policy: amendment_entries.AwayPolicy, act: season_change.Act) -> None:
    """Say what the season does while a host is away (see farm amend host).

    wait: the season waits for it. others: games and events that do not need the host are
    played meanwhile; what waited comes next when it is back.

    Example: farm amend away-policy others --reason "the box is under repair until Friday"
    """
    done = act.change(lambda now: amending.set_away_policy(now, policy, act.by, act.reason))
    away = f"; away are {', '.join(done.before.away)}" if done.before.away else ""
    will = act.tense("from then on", "from now on")
    sentence = f"{will}, while a host is away, {_POLICIES[policy]}{away}"
    act.report(done, {"policy": policy}, sentence)


_POLICIES = {"wait": "the season waits for it", "others": "other ready games are played"}


@amend.command()
@click.argument("host")
@click.option("--away/--back", required=True, help="It is away, or plays again.")
@click.option("--engine", "engines", multiple=True, help="Runs there; default: the GPU entries.")
@season_change.act
def host(host: str, engines: Sequence[str], act: season_change.Act, *, away: bool) -> None:
    """Mark HOST, and the engines that run there, as away or as back.

    Not for the hall itself: without it nothing can be played (farm season pause).

    Example: farm amend host gpu-box --away --reason "power supply, back on Friday"
    """

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        if not away:
            return amending.host_back(now, host, act.by, act.reason)
        named = engines or _gpu_engines(now)
        return amending.host_away(now, host, named, act.by, act.reason)

    done = act.change(change)
    away_with = ", ".join(done.fact.get("engines", ()))
    gone = f" with {away_with}: {_POLICIES[done.before.away_policy]}" if away else ""
    report = {"host": host, "away": away, "engines": done.fact.get("engines", [])}
    is_ = act.tense("will be", "is")
    act.report(done, report, f"{host} {is_} {'away' if away else 'back'}{gone}")


def _gpu_engines(now: state.SeasonState) -> tuple[str, ...]:
    kinds = roster.competitions(now.launched.season.roster)
    return tuple(engine for engine in now.engines if kinds.get(engine) == "gpu")
