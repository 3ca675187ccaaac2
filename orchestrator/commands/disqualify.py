"""Commands about an engine's conduct: flags of hidden books, disqualification."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import click

from orchestrator import contract
from orchestrator.commands import common, season_change, shell_offers, substitutes
from orchestrator.common import errors
from orchestrator.season.amend import substitute as amend_substitute
from orchestrator.season.fold import amendment_entries, disqualification, own_book, state


@click.command()
@common.season_argument
@common.json_option
def flags(season: str | None, *, as_json: bool) -> None:
    """Show engines that answered without a search out of the book, again and again.

    A flag is a notice to the organizers and stops nothing (TCEC Season 16, Own Opening Book).

    Example: farm flags
    """
    with common.open_ledger() as ledger:
        chosen = common.choose(ledger, season)
        named = season or common.several_open(ledger)
    standing_flags = [flag.model_dump(mode="json") for flag in own_book.standing(chosen)]
    if as_json:
        common.print_json(standing_flags)
        return
    for flag in standing_flags:
        games = ", ".join(f"{game} ({moves} moves)" for game, moves in flag["games"].items())
        click.echo(f"{flag['engine']} in {flag['event']}: no search out of the book in {games}")
        about = f"{flag['engine']} --event {flag['event']}"
        about += f" --season {chosen.launched.id}" if named else ""
        click.echo(
            f"  farm engine disqualify {about} --reason WHY,"
            f" or farm engine dismiss {about} --reason WHY"
        )
    if not standing_flags:
        click.echo(f"{chosen.launched.id}: no engine is flagged")


@click.command()
@click.argument("engine", shell_complete=shell_offers.engines)
@click.option(
    "--event",
    shell_complete=shell_offers.events,
    required=True,
    help="The event in which it is flagged.",
)
@season_change.act
def dismiss(engine: str, event: str, act: season_change.Act) -> None:
    """Dismiss the flag of ENGINE: the organizers have checked it, it plays on.

    Example: farm dismiss chiron --event l2 --reason "forced lines, its log shows a search"
    """
    done = act.change(lambda now: own_book.dismiss(now, event, engine, act.by, act.reason))
    report = {"engine": engine, "event": event}
    will = act.tense("will be", "is")
    act.report(done, report, f"the flag of {engine} in {event} {will} dismissed")


@click.command()
@click.argument("engine", shell_complete=shell_offers.engines)
@click.option(
    "--event", shell_complete=shell_offers.events, required=True, help="The event that it leaves."
)
@substitutes.options(required=False, played="annul")
@season_change.act
def disqualify(
    engine: str,
    event: str,
    substitute: str | None,
    entry: pathlib.Path | None,
    played: amendment_entries.Played,
    act: season_change.Act,
) -> None:
    """Disqualify ENGINE in an event, such as for a hidden book; perhaps replace it.

    Without a substitute its results are annulled, it ranks last, its other games are
    cancelled; the season must be paused or held. Before an event only its seat changes hands.

    Example: farm disqualify chiron --event l2 --with igel --played replay --reason "hidden book"
    """
    if substitute is None and (played != "annul" or entry is not None):
        raise errors.UsageError("--played and --entry need a substitute (--with)")

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        if substitute is None:
            return disqualification.withdraw(
                now, event, engine, act.by, act.reason, "disqualification"
            )
        new = substitutes.spec(now, event, substitute, entry, engine)
        cause: amendment_entries.ReplacementCause = "disqualification"
        return amend_substitute.replace(now, event, engine, new, played, act.by, act.reason, cause)

    act = act.seconded("disqualify", change)
    done = act.change(change, unoffered=True)
    if substitute is not None:
        substitutes.warn(done.fact)
    ending = "nobody takes its seat" if substitute is None else substitutes.in_words(done.fact, act)
    report = {"engine": engine, "event": event, "substitute": substitute, "played": played}
    will = act.tense("will be", "is")
    act.report(done, report, f"{engine} {will} disqualified in {event}: {ending}")
