"""Commands by which an operator steers a running season: pause, resume, gates, abort, drain.

Wishes are state in the ledger, read by the halls with every renewal; Celery's remote
control would not reach a worker that is busy, draining or cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from orchestrator import contract, errors
from orchestrator.commands import common
from orchestrator.ledger import api
from orchestrator.season import operations, state

Change = Callable[[state.SeasonState], Sequence[contract.Draft]]
Effects = Callable[[state.SeasonState], Sequence[api.Effect]]


def _steer(
    season: str | None,
    change: Change,
    by: str,
    *,
    dry_run: bool,
    effects: Effects = lambda _: (),
) -> state.SeasonState:
    with common.open_ledger() as ledger:
        return common.change_season(ledger, season, change, by, dry_run=dry_run, effects=effects)


@click.command()
@common.season_argument
@common.audited
@common.json_option
def pause(season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Start no new game; the running game is played to its end.

    Example: farm pause --reason "power work at 18:00"
    """
    chosen = _steer(
        season,
        lambda now: operations.pause(now, by, reason),
        by,
        dry_run=dry_run,
        effects=lambda now: [api.Hold(now.launched.id, "pause", reason or f"paused by {by}")],
    )
    facts = {"season": chosen.launched.id, "paused": True, "dry_run": dry_run}
    common.report(as_json, facts, f"{chosen.launched.id} is paused; `farm resume` goes on")


@click.command()
@common.season_argument
@common.audited
@common.json_option
def resume(season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Go on after a pause, or after the farm itself has held the season.

    Example: farm resume --by anna
    """
    chosen = _steer(
        season,
        lambda now: operations.resume(now, by, reason),
        by,
        dry_run=dry_run,
        effects=lambda now: [api.Release(now.launched.id, "pause")],
    )
    facts = {"season": chosen.launched.id, "paused": False, "dry_run": dry_run}
    common.report(as_json, facts, f"{chosen.launched.id} goes on")


@click.command("open-gate")
@click.argument("event")
@click.option("--season", help="The season; default: the one that runs.")
@common.audited
@common.json_option
def open_gate(
    event: str, season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool
) -> None:
    """Open the gate (the break) before EVENT now, ahead of its deadline.

    Example: farm open-gate final --reason "updates are done"
    """
    chosen = _steer(
        season, lambda now: operations.open_gate(now, event, by, reason), by, dry_run=dry_run
    )
    facts = {"season": chosen.launched.id, "event": event, "opened": True, "dry_run": dry_run}
    common.report(as_json, facts, f"the gate before {event} is open")


@click.command()
@common.season_argument
@common.audited
@common.json_option
def abort(season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """End the running attempt as an interruption; its game is played again from the start.

    The hall hears of it with its next renewal. Nobody loses the game by this.

    Example: farm abort --reason "wrong network file mounted"
    """
    chosen = _steer(
        season,
        lambda now: operations.abort(now, by, reason),
        by,
        dry_run=dry_run,
        effects=lambda now: _abort(now, reason or f"aborted by {by}"),
    )
    running = chosen.running
    assert running is not None  # operations.abort refuses otherwise
    facts = {
        "season": chosen.launched.id,
        "game": running.game,
        "attempt": running.attempt,
        "dry_run": dry_run,
    }
    common.report(as_json, facts, f"the running attempt at {running.game} will end")


def _abort(now: state.SeasonState, why: str) -> list[api.Effect]:
    assert now.running is not None  # operations.abort refuses otherwise
    return [api.Abort(now.running.hall, now.running.attempt, why)]


@click.command()
@click.argument("hall", default="hall-1")
@common.audited
@common.json_option
def drain(hall: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Let the hall's worker finish its game, take no new one, and end.

    Example: farm drain hall-1 --reason "kernel update"
    """
    with common.open_ledger() as ledger:
        worker = ledger.worker(hall)
        if not worker:
            known = ", ".join(ledger.halls()) or "none"
            raise errors.RefusedError(f"no worker has opened hall {hall!r}; halls: {known}")
        facts = {"hall": hall, "worker": worker, "dry_run": dry_run}
        if not dry_run:
            why = reason or f"drained by {by}"
            draft = contract.Draft("drained", {"hall": hall, "worker": worker, "reason": why})
            effects = [api.Drain(hall, worker, why)]
            common.append_farm(ledger, draft, common.author(ledger, by), effects)
    common.report(as_json, facts, f"{worker} ends after its game; {hall} then stands still")
