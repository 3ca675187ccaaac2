"""Commands of the organizers: decisions, corrections of single games, withdrawals.

Each is refused without a reason, and stands in the journal with who, when and why. A
correction needs a paused season: the hall's offer is taken back first, so that no game
can begin that the correction concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from orchestrator import contract
from orchestrator.commands import common, second
from orchestrator.ledger import api
from orchestrator.season import corrections, entries, exclusion, judgement, state
from orchestrator.season import decisions as season_decisions

Drafts = Callable[[state.SeasonState], Sequence[contract.Draft]]


@click.command()
@common.season_argument
@common.json_option
def decisions(season: str | None, *, as_json: bool) -> None:
    """Show what only the organizers can decide, and what waits for it.

    Example: farm decisions
    """
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
    asked = [one.model_dump(mode="json") for one in season_decisions.outstanding(chosen)]
    interrupted = judgement.outstanding(chosen)
    if as_json:
        told = [{"decision": one, "choose": list(judgement.ANSWERS)} for one in interrupted]
        common.print_json([*asked, *told])
        return
    for question in interrupted:
        click.echo(f"{question}: no tablebase has the position; a result, or resume")
        click.echo(f"  farm decide {question} --choose 1/2-1/2 --by NAME --reason WHY")
    for one in asked:
        click.echo(f"{one['decision']}: level are {', '.join(one['engines'])} ({one['about']})")
        names = ",".join(one["engines"][: one["choose"]])
        click.echo(f"  farm decide {one['decision']} --choose {names} --by NAME --reason WHY")
    if not asked and not interrupted:
        click.echo(f"{chosen.launched.id}: nothing waits for the organizers")


@click.command()
@click.argument("decision")
@click.option("--choose", "chosen", required=True, help="Engine ids, best first: A or A,B.")
@common.season_option
@common.audited
@common.json_option
def decide(
    decision: str,
    chosen: str,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Decide what the rules leave to the organizers (see farm decisions): ties, interruptions.

    Example: farm decide l2:place-4 --choose igel --by anna --reason "more stable in tests"
    """
    if decision.endswith(judgement.ASKED):
        _decide_interruption(decision, chosen, season, by, reason, dry_run=dry_run, as_json=as_json)
        return
    engines = _names(chosen)
    with common.open_ledger() as ledger:
        folded = common.change_season(
            ledger,
            season,
            lambda now: season_decisions.decide(now, decision, engines, by, reason),
            by,
            dry_run=dry_run,
        )
    facts = {"season": folded.launched.id, "decision": decision, "choose": engines}
    common.report(as_json, facts | {"dry_run": dry_run}, f"{decision}: {', '.join(engines)}")


def _decide_interruption(
    question: str,
    choice: str,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Say how an interrupted game ends, or that it is resumed."""

    def drafts(now: state.SeasonState) -> Sequence[contract.Draft]:
        return judgement.answer(now, question, choice, by, reason)

    def settled(now: state.SeasonState) -> Sequence[api.Effect]:
        results = [draft for draft in drafts(now) if draft.kind == entries.GAME_FINISHED]
        return [api.Settle(now.launched.id, str(draft.data["game"])) for draft in results]

    with common.open_ledger() as ledger:
        folded = common.change_season(ledger, season, drafts, by, dry_run=dry_run, effects=settled)
    facts = {"season": folded.launched.id, "decision": question, "choose": choice}
    common.report(as_json, facts | {"dry_run": dry_run}, f"{question}: {choice}")


def _correction(function: common.Function) -> common.Function:
    """Add what the corrections of one game share: GAME, the season, the cascade, who and why."""
    cascade = click.option(
        "--cascade",
        default="",
        help="Take back what is built on the result: exactly the events that the refusal names.",
    )
    asked = (click.argument("game"), common.season_option, cascade, common.audited)
    for option in reversed((*asked, common.json_option)):
        function = option(function)
    return function


@click.command()
@_correction
@click.option("--result", required=True, type=click.Choice(["1-0", "0-1", "1/2-1/2"]))
def adjudicate(
    game: str,
    result: contract.Result,
    season: str | None,
    cascade: str,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the result of GAME, played or not, by the organizers' word.

    The season must be paused. Example: farm adjudicate l1.17 --result 1-0 --reason "S16-15b ii"
    """
    _correct(
        "adjudicate",
        season,
        lambda now: corrections.adjudicate(now, game, result, by, reason, _names(cascade)),
        by,
        {"game": game, "result": result, "dry_run": dry_run},
        f"{game} is {result}",
        as_json=as_json,
    )


@click.command()
@_correction
def replay(
    game: str,
    season: str | None,
    cascade: str,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Have GAME played again in its place; the first one counts no longer.

    The season must be paused. Example: farm replay l1.17 --reason "wrong network file"
    """
    _correct(
        "replay",
        season,
        lambda now: corrections.replay(now, game, by, reason, _names(cascade)),
        by,
        {"game": game, "dry_run": dry_run},
        f"{game} is played again",
        as_json=as_json,
    )


@click.command()
@_correction
def void(
    game: str,
    season: str | None,
    cascade: str,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let GAME count for nobody; it is not played (again), its PGN stays.

    The season must be paused. Example: farm void l1.17 --reason "engine list was wrong"
    """
    _correct(
        "void",
        season,
        lambda now: corrections.void(now, game, by, reason, _names(cascade)),
        by,
        {"game": game, "dry_run": dry_run},
        f"{game} counts no longer",
        as_json=as_json,
    )


@click.command()
@click.argument("engine")
@click.option("--event", required=True, help="The event that it leaves.")
@common.season_option
@common.audited
@common.json_option
def withdraw(
    engine: str,
    event: str,
    season: str | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take ENGINE out of a running event: its results are annulled, it ranks last.

    The season must be paused. Example: farm withdraw chiron --event stage-3 --reason "author"
    """
    _correct(
        "withdraw",
        season,
        lambda now: exclusion.withdraw(now, event, engine, by, reason),
        by,
        {"engine": engine, "event": event, "dry_run": dry_run},
        f"{engine} has left {event}",
        as_json=as_json,
    )


def _correct(
    act: str,
    season: str | None,
    drafts: Drafts,
    by: str,
    facts: dict[str, Any],
    sentence: str,
    *,
    as_json: bool,
) -> None:
    dry_run = bool(facts["dry_run"])
    with common.open_ledger() as ledger:
        by = second.consent(ledger, season, act, drafts, by, dry_run=dry_run)
        folded = common.change_season(ledger, season, drafts, by, dry_run=dry_run, unoffered=True)
    ending = " (nothing was changed)" if dry_run else "; `farm resume` goes on"
    common.report(as_json, {"season": folded.launched.id} | facts, sentence + ending)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
