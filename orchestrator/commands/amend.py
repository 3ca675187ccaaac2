"""``farm amend``: change a running season under audit, what it is built of and when.

Each subcommand journals one fact with who and why, and says what follows from it;
``--dry-run`` says the same and changes nothing. Openings are never told (sealed draws).
"""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import click

from orchestrator import contract, errors
from orchestrator.commands import common, moments, tables
from orchestrator.ledger import store
from orchestrator.season import (
    amending,
    amendments,
    eligibility,
    files,
    model,
    replacing,
    roster,
    state,
)

Change = Callable[[state.SeasonState], Sequence[contract.Draft]]
_FILE = click.Path(path_type=pathlib.Path, dir_okay=False)


@click.group()
def amend() -> None:
    """Change a running season, journaled with who and why (RULEBOOK §5).

    \b
    farm amend engine e1 --event league --with e9 --by anna --reason "hidden book"
    farm amend book short --file mended.pgn --by anna --reason "illegal line"
    farm amend gate final --at 2026-12-01T18:00 --by anna --reason "author's journey"
    farm amend host gpu-box --away --engine lc0 --by anna --reason "power supply"
    farm amend away-policy others --by anna --reason "the CPU league can go on"
    """  # noqa: D301 - click reads the backspace as "do not wrap"


def _amend(
    ledger: store.RedisLedger,
    season: str | None,
    change: Change,
    by: str,
    *,
    dry_run: bool,
    unoffered: bool = False,
) -> tuple[state.SeasonState, dict[str, Any]]:
    """Journal one amendment; return the state before it and the fact."""
    before = common.change_season(ledger, season, change, by, dry_run=dry_run, unoffered=unoffered)
    return before, dict(change(before)[0].data)


def _report(
    season: state.SeasonState, facts: dict[str, Any], sentence: str, *, dry_run: bool, as_json: bool
) -> None:
    told = {"season": season.launched.id, "dry_run": dry_run} | facts
    common.report(as_json, told, sentence + (" (nothing was changed)" if dry_run else ""))


@amend.command()
@click.argument("engine")
@click.option("--event", required=True, help="The event in which its seat changes hands.")
@click.option("--with", "substitute", required=True, help="The substitute's id.")
@click.option("--entry", type=_FILE, help="An engines.toml with the substitute, if it is new.")
@click.option(
    "--played",
    type=click.Choice(["keep", "annul", "replay"]),
    default="keep",
    show_default=True,
    help="Games it has played: count for the substitute, for nobody, or are played again.",
)
@common.season_option
@common.audited
@common.json_option
def engine(
    engine: str,
    event: str,
    substitute: str,
    entry: pathlib.Path | None,
    played: amendments.Played,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give the seat of ENGINE in an event to a substitute: seed, open games, later rounds.

    A running event needs a paused season. Refused in a ranked event, and where later rounds
    or a match's winner hang on the games.

    Example: farm amend engine e1 --event league --with e9 --played replay --reason "hidden book"
    """
    with common.open_ledger() as ledger:
        before, fact = _amend(
            ledger,
            season,
            lambda now: replacing.replace(
                now, event, engine, spec(now, substitute, entry, engine), played, by, reason
            ),
            by,
            dry_run=dry_run,
            unoffered=True,
        )
    sentence = replacement(fact)
    facts = {key: fact[key] for key in ("event", "engine", "games", "annulled", "replays")}
    _report(before, facts | {"substitute": substitute}, sentence, dry_run=dry_run, as_json=as_json)


def spec(
    now: state.SeasonState, engine: str, entry: pathlib.Path | None, replaced: str
) -> contract.EngineSpec:
    """Return a substitute: one of the season's engines, or of a file; raise ``UsageError``.

    Its parts must be unlike those of all entries but the one that it replaces (S16-16).
    """
    if entry is None:
        if engine not in now.engines:
            known = ", ".join(now.engines)
            raise errors.UsageError(
                f"{engine!r} is no engine of this season ({known}); give --entry engines.toml"
            )
        return now.engines[engine]
    listed = {roster.id_of(found): found for found in files.load_engines(entry)}
    if engine not in listed:
        raise errors.UsageError(f"{entry} has no engine {engine!r}; it has {', '.join(listed)}")
    others = (one for one in now.launched.season.roster.engines if roster.id_of(one) != replaced)
    _require_unique(listed[engine], list(others))
    return roster.spec(listed[engine])


def _require_unique(entry: model.EngineEntry, others: Sequence[model.EngineEntry]) -> None:
    neural = [one for one in others if one.neural and not one.exception and not one.dropped]
    shared = eligibility.clash(entry, neural) if entry.neural and not entry.exception else ""
    if shared:
        raise errors.RefusedError(f"{entry.name or entry.id}: {shared}; {eligibility.ALLOWED}")


def replacement(fact: dict[str, Any]) -> str:
    """Say in words what follows from a replaced engine."""
    done = {"keep": "", "annul": f", {len(fact['annulled'])} played games count for nobody"}
    done["replay"] = f", {len(fact['replays'])} games are played again"
    return (
        f"{fact['substitute']['id']} plays {fact['event']} in the seat of {fact['engine']}:"
        f" {len(fact['games'])} games change hands{done[fact['played']]}"
    )


@amend.command()
@click.argument("name")
@click.option("--file", "path", type=_FILE, required=True, help="The new book: PGN or EPD, .gz.")
@click.option("--game", "games", multiple=True, help="Only the openings of these games.")
@common.season_option
@common.audited
@common.json_option
def book(
    name: str,
    path: pathlib.Path,
    games: Sequence[str],
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Replace the openings of book NAME that no game has been begun with.

    The season must be paused. An opening that was played stays: its reverse game has the
    same (S16-8a). New ones come in the book's order, by lot from the sealed seed or as listed.

    Example: farm amend book short --file mended.epd --game league.17 --reason "illegal line"
    """

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        like = now.launched.season.books.get(name)
        exits = files.load_book(path, name, like) if like is not None else ()
        source = (path.name, hashlib.sha256(path.read_bytes()).hexdigest() if like else "")
        return amending.mend_book(now, name, exits, source, games, by, reason)

    with common.open_ledger() as ledger:
        before, fact = _amend(ledger, season, change, by, dry_run=dry_run, unoffered=True)
    new = {int(number) for number in fact["exits"]}
    waiting = [
        game.id
        for game in before.games.values()
        if game.open and game.opening in new and (game.book or _book(before, game.event)) == name
    ]
    facts = {"book": name, "sha256": fact["sha256"], "exits": len(new), "games": waiting}
    sentence = f"{len(new)} exits of {name} are replaced, those of {len(waiting)} paired games too"
    _report(before, facts, sentence, dry_run=dry_run, as_json=as_json)


def _book(now: state.SeasonState, event: str) -> str | None:
    return now.events[event].spec.book


@amend.command()
@click.argument("event")
@click.option("--at", required=True, help=f"When it opens: {moments.HELP}")
@common.season_option
@common.audited
@common.json_option
def gate(
    event: str, at: str, season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool
) -> None:
    """Move the time at which the gate (the break) before EVENT opens by itself.

    It still waits for the events before it and for the organizers' decisions.

    Example: farm amend gate final --at +2d --reason "the authors asked for two days more"
    """
    with common.open_ledger() as ledger:
        now_ms = ledger.now_ms()
        opens_at_ms = moments.read(at, now_ms)
        before, fact = _amend(
            ledger,
            season,
            lambda now: amending.move_gate(now, event, opens_at_ms, now_ms, by, reason),
            by,
            dry_run=dry_run,
        )
    was = f", not {tables.moment(fact['before_ms'])}" if fact["before_ms"] else ""
    sentence = f"the gate before {event} opens {tables.moment(opens_at_ms)}{was}"
    facts = {key: fact[key] for key in ("event", "opens_at_ms", "before_ms")}
    _report(before, facts, sentence, dry_run=dry_run, as_json=as_json)


@amend.command("away-policy")
@click.argument("policy", type=click.Choice(["wait", "others"]))
@common.season_option
@common.audited
@common.json_option
def away_policy(
    policy: amendments.AwayPolicy,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Say what the season does while a host is away (see farm amend host).

    wait: the order of play stands. others: games and events that do not need the host are
    played meanwhile; what waited comes next when it is back.

    Example: farm amend away-policy others --reason "the box is under repair until Friday"
    """
    with common.open_ledger() as ledger:
        before, _ = _amend(
            ledger,
            season,
            lambda now: amending.set_away_policy(now, policy, by, reason),
            by,
            dry_run=dry_run,
        )
    away = f"; away are {', '.join(before.away)}" if before.away else ""
    sentence = f"while a host is away, {_POLICIES[policy]}{away}"
    _report(before, {"policy": policy}, sentence, dry_run=dry_run, as_json=as_json)


_POLICIES = {"wait": "the season waits for it", "others": "other ready games are played"}


@amend.command()
@click.argument("host")
@click.option("--away/--back", required=True, help="It is away, or plays again.")
@click.option("--engine", "engines", multiple=True, help="Runs there; default: the GPU entries.")
@common.season_option
@common.audited
@common.json_option
def host(
    host: str,
    engines: Sequence[str],
    season: str | None,
    by: str,
    reason: str,
    *,
    away: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tell the season that HOST is away, with the engines that run there, or back.

    The hall itself is no such host: without it nothing can be played (farm pause).

    Example: farm amend host gpu-box --away --reason "power supply, back on Friday"
    """

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        if not away:
            return amending.host_back(now, host, by, reason)
        named = engines or _gpu_engines(now)
        return amending.host_away(now, host, named, by, reason)

    with common.open_ledger() as ledger:
        before, fact = _amend(ledger, season, change, by, dry_run=dry_run)
    gone = f" with {', '.join(fact['engines'])}: {_POLICIES[before.away_policy]}" if away else ""
    sentence = f"{host} is {'away' if away else 'back'}{gone}"
    facts = {"host": host, "away": away, "engines": fact.get("engines", [])}
    _report(before, facts, sentence, dry_run=dry_run, as_json=as_json)


def _gpu_engines(now: state.SeasonState) -> tuple[str, ...]:
    kinds = roster.competitions(now.launched.season.roster)
    return tuple(engine for engine in now.engines if kinds.get(engine) == "gpu")
