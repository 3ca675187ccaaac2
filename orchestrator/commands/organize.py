"""Commands of the organizers: decisions, corrections of single games, withdrawals.

Each is refused without a reason, and stands in the journal with who, when and why. A
correction needs a season that is paused or held: the hall's offer is taken back first, so
that no game can begin that the correction concerns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from orchestrator import contract
from orchestrator.commands import change_words, common, season_change, shell_offers
from orchestrator.ledger import api
from orchestrator.season import consequences, interruption, published
from orchestrator.season import decisions as season_decisions
from orchestrator.season.fold import corrections, disqualification, entries, events, state


@click.command()
@common.season_argument
@common.json_option
def decisions(season: str | None, *, as_json: bool) -> None:
    """Show what only the organizers can decide, and what waits for it, in all open seasons.

    Example: farm decisions
    """
    with common.open_ledger() as ledger:
        seasons = [common.fold(ledger, season)] if season else common.open_seasons(ledger)
    if as_json:
        common.print_json([question for each in seasons for question in _questions(each)])
        return
    for each in seasons:
        for line in _asked(each, named=season is not None or len(seasons) > 1):
            click.echo(line)


def _questions(season: state.SeasonState) -> Iterator[dict[str, Any]]:
    """Yield what a season asks, for programs."""
    for needed in season_decisions.outstanding(season):
        yield {"season": season.launched.id} | needed.model_dump(mode="json")
    for game_question in interruption.outstanding(season):
        choose = list(interruption.ANSWERS)
        yield {"season": season.launched.id, "decision": game_question, "choose": choose}


def _asked(season: state.SeasonState, *, named: bool) -> Iterator[str]:
    """Yield what a season asks, and how it is answered; ``named``: the answer names the season."""
    name = season.launched.id
    of = f" --season {name}" if named else ""
    rest = f"--by NAME --reason WHY{of}"
    interrupted, asked = interruption.outstanding(season), season_decisions.outstanding(season)
    if not asked and not interrupted:
        yield f"{name}: no decision is waiting for the organizers"
    for question in interrupted:
        yield f"{question}: no tablebase has the position"
        yield f"  choose one of {', '.join(interruption.ANSWERS)}"
        yield f"  farm season decide {question} --choose ANSWER {rest}"
    for needed in asked:
        level = f"{', '.join(needed.engines)} are level ({needed.about})"
        yield f"{needed.decision}: {needed.about if needed.to else level}"
        yield f"  {season_decisions.choice(needed)}"
        names = ",".join(["ENGINE"] * needed.choose)  # nothing that could be pasted unread
        yield f"  farm season decide {needed.decision} --choose {names} {rest}"
    for event in season.events.values():
        if event.status is events.Status.GATE and event.opens_at_ms is None:
            yield f"{event.id} waits for you: farm season open-gate {event.id}{of}"


@click.command()
@click.argument("decision")
@click.option("--choose", "chosen", required=True, help="Engine ids, best first: A or A,B.")
@season_change.act
def decide(decision: str, chosen: str, act: season_change.Act) -> None:
    """Decide what the rules leave to the organizers (see farm decisions): ties, interruptions.

    Example: farm decide l2:place-4 --choose igel --by anna --reason "more stable in tests"
    """
    if decision.endswith(interruption.ASKED):
        _decide_interruption(decision, chosen, act)
        return
    engines = common.listed(chosen)
    done = act.change(
        lambda now: season_decisions.decide(now, decision, engines, act.by, act.reason)
    )
    report = {"decision": decision, "choose": engines}
    will = act.tense("will be decided", "is decided")
    sentence = f"{decision} {will}: {', '.join(engines)}"
    act.report(done, report, sentence + change_words.until_resumed(done.before))


def _decide_interruption(question: str, choice: str, act: season_change.Act) -> None:
    """Say how an interrupted game ends, or that it is resumed."""

    def drafts(now: state.SeasonState) -> Sequence[contract.Draft]:
        return interruption.answer(now, question, choice, act.by, act.reason)

    def settled(now: state.SeasonState) -> Sequence[api.Effect]:
        results = [draft for draft in drafts(now) if draft.kind == entries.GAME_FINISHED]
        return [api.Settle(now.launched.id, str(draft.data["game"])) for draft in results]

    done = act.change(drafts, settled)
    will = act.tense("will be answered", "is answered")
    act.report(done, {"decision": question, "choose": choice}, f"{question} {will}: {choice}")


def _correction(function: season_change.Command) -> season_change.Command:
    """Add what the corrections of one game share: GAME, the cascade, its crash, and the act."""
    cascade = click.option(
        "--cascade",
        default="",
        help="Take back what depends on the result: exactly the events that the refusal names.",
    )
    crash = click.option(
        "--take-back-crash",
        "uncrashed",
        default="",
        metavar="ENGINE",
        help="Take ENGINE's crash in the game back, too; without it the crash stays counted.",
    )
    return click.argument("game")(cascade(crash(season_change.act(function))))


@click.command()
@_correction
@click.option(
    "--result",
    required=True,
    type=click.Choice(["1-0", "0-1", "1/2-1/2"]),
    help="The result that counts from now on, White's points first.",
)
def adjudicate(
    game: str, result: contract.Result, cascade: str, uncrashed: str, act: season_change.Act
) -> None:
    """Set the result of GAME, played or not, by the organizers' decision.

    The season must be paused or held. A crash stays counted (S16-15c) unless it is taken back.

    Example: farm adjudicate l1.17 --result 1-0 --reason "S16-15b ii"
    """
    _correct(
        "adjudicate",
        act,
        lambda now: corrections.adjudicate(
            now, game, result, act.by, act.reason, common.listed(cascade), uncrashed
        ),
        {"game": game, "result": result},
        (f"will be {result}", f"is now {result}"),
    )


@click.command()
@_correction
def replay(game: str, cascade: str, uncrashed: str, act: season_change.Act) -> None:
    """Play GAME again in its place; the first one no longer counts.

    The season must be paused or held.

    Example: farm replay l1.17 --reason "wrong network file"
    """
    _correct(
        "replay",
        act,
        lambda now: corrections.replay(
            now, game, act.by, act.reason, common.listed(cascade), uncrashed
        ),
        {"game": game},
        ("will be played again", "is played again"),
    )


@click.command()
@_correction
def void(game: str, cascade: str, uncrashed: str, act: season_change.Act) -> None:
    """Make GAME count for nobody; it is not played again, its PGN stays.

    The season must be paused or held. A game of a match is played again in its place (S16-8a);
    one of a Cup is replayed or adjudicated instead.

    Example: farm void l1.17 --reason "engine list was wrong"
    """
    _correct(
        "void",
        act,
        lambda now: corrections.void(
            now, game, act.by, act.reason, common.listed(cascade), uncrashed
        ),
        {"game": game},
        ("will count no longer", "counts no longer"),
    )


@click.command()
@click.argument("engine", shell_complete=shell_offers.engines)
@click.option(
    "--event", shell_complete=shell_offers.events, required=True, help="The event that it leaves."
)
@season_change.act
def withdraw(engine: str, event: str, act: season_change.Act) -> None:
    """Take ENGINE out of a running event: its results are annulled, it ranks last.

    Annulled games are not played again. The season must be paused or held.

    Example: farm withdraw chiron --event stage-3 --reason "author"
    """
    _correct(
        "withdraw",
        act,
        lambda now: disqualification.withdraw(now, event, engine, act.by, act.reason),
        {"engine": engine, "event": event},
        (f"will leave {event}", f"has left {event}"),
    )


def _correct(
    name: str,
    act: season_change.Act,
    drafts: season_change.Drafts,
    report: dict[str, str],
    becomes: tuple[str, str],
) -> None:
    """Correct a paused season, with a second operator where the season wants one.

    ``becomes`` says what the game, or the engine, will do and what it has done.
    """
    agreed = act.seconded(name, drafts)
    done = agreed.change(drafts, unoffered=True)
    voided = (draft.data for draft in done.drafts if draft.kind == entries.GAME_VOIDED)
    again = "".join(f", as {fact['replay']}" for fact in voided if fact["replay"])
    if again and name == "void":
        again = f"; a match has all its games (S16-8a): it is played again{again}"
    if name == "replay" and published.unplayed(done.before.game(report["game"])):
        becomes = ("will be played after all", "is to be played after all")
    about = report.get("engine") or _game(done.before, report["game"])
    sentence = f"{about} {agreed.tense(*becomes)}{again}{_crash(done)}"
    about_game = report.get("game", "") if "result" in report else ""
    agreed.report(done, report, sentence, "; `farm season resume` goes on", about_game)


def _crash(done: season_change.Changed) -> str:
    """Say whose crash stays counted though its game's result falls (S16-15c, S16-15d)."""
    corrected = done.drafts[-1]  # behind what is taken back for it
    if corrected.kind == entries.GAME_ADJUDICATED:
        stays = bool(corrected.data["finished"]["crashed"])
    else:
        stays = corrected.kind == entries.GAME_VOIDED and corrected.data["crash_stays"]
    if not stays:
        return ""
    crashed = corrections.crasher(done.before.game(corrected.data["game"]))
    return f"; the crash of {crashed} stays counted (--take-back-crash {crashed})"


def _game(now: state.SeasonState, game_id: str) -> str:
    """Name a game with its players and how it stands."""
    stands = consequences.standing(now, now.game(game_id))
    is_open = stands == consequences.TO_PLAY
    return f"{consequences.named(now, game_id)}, {'not played yet' if is_open else stands},"
