"""Commands by which an operator steers a running season: pause, resume, gates, abort, drain.

Wishes are state in the ledger, read by the halls with every renewal; Celery's remote
control would not reach a worker that is busy, draining or cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from orchestrator import contract, errors
from orchestrator.commands import common, moments, tables
from orchestrator.ledger import api
from orchestrator.season import amending, entries, operations, state

Change = Callable[[state.SeasonState], Sequence[contract.Draft]]
SICK = "sick"  # the name of the hold that a hall sets on itself (worker_cpu.holds)

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
@click.option("--at", help=f"Pause by itself then: {moments.HELP} `farm resume` takes it back.")
@common.audited
@common.json_option
def pause(
    season: str | None, at: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool
) -> None:
    """Start no new game; the running game is played to its end.

    Example: farm pause --at 2026-12-01T17:30 --reason "power work at 18:00"
    """
    if at is not None:
        _plan_pause(season, at, by, reason, dry_run=dry_run, as_json=as_json)
        return
    chosen = _steer(
        season,
        lambda now: operations.pause(now, by, reason),
        by,
        dry_run=dry_run,
        effects=lambda now: [api.Hold(now.launched.id, "pause", reason or f"paused by {by}")],
    )
    facts = {"season": chosen.launched.id, "paused": True, "dry_run": dry_run}
    common.report(as_json, facts, f"{chosen.launched.id} is paused; `farm resume` goes on")


def _plan_pause(
    season: str | None, at: str, by: str, reason: str, *, dry_run: bool, as_json: bool
) -> None:
    with common.open_ledger() as ledger:
        now_ms = ledger.now_ms()
        at_ms = moments.read(at, now_ms)
        chosen = common.change_season(
            ledger,
            season,
            lambda now: amending.plan_pause(now, at_ms, now_ms, by, reason),
            by,
            dry_run=dry_run,
        )
    facts = {"season": chosen.launched.id, "pauses_at_ms": at_ms, "dry_run": dry_run}
    sentence = f"{chosen.launched.id} pauses at {tables.moment(at_ms)}; `farm resume` takes it back"
    common.report(as_json, facts, sentence)


@click.command()
@common.season_argument
@common.audited
@common.json_option
def resume(season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Go on after a pause, or after the farm itself has held the season.

    Where there is neither, a planned pause is taken back.

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
@common.season_option
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
@click.option(
    "--then",
    type=click.Choice(["at-once", "end-of-round", "restart"]),
    help="Play on at once, at the end of the round (CUP-7c), or again after the opening;"
    " default: as the event has it.",
)
@common.audited
@common.json_option
def abort(
    season: str | None,
    then: entries.Then | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """End the running attempt as an interruption; the event's rules say what becomes of it.

    The hall hears of it with its next renewal. Evals that decide a game at an interruption
    decide it here, too; else it is resumed from its position, unless --then restart.

    Example: farm abort --then restart --reason "wrong network file mounted"
    """
    chosen = _steer(
        season,
        lambda now: operations.abort(now, by, reason, then or ""),
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


@click.command("release-hall")
@click.argument("hall", default="hall-1")
@common.audited
@common.json_option
def release_hall(hall: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Let a hall play again that the farm holds because its host was found sick.

    Example: farm release-hall hall-1 --reason "memory module replaced"
    """
    with common.open_ledger() as ledger:
        holds = ledger.holds(f"hall:{hall}")
        if SICK not in holds:
            known = ", ".join(ledger.halls()) or "none"
            raise errors.RefusedError(f"hall {hall!r} is not held; halls: {known}")
        if not dry_run:
            fact = {"hall": hall, "held": holds[SICK], "reason": reason}
            effects = [api.Release(f"hall:{hall}", SICK)]
            draft = contract.Draft("hall_released", fact)
            common.append_farm(ledger, draft, common.author(ledger, by), effects)
    facts = {"hall": hall, "held": holds[SICK], "released": not dry_run, "dry_run": dry_run}
    common.report(as_json, facts, f"{hall} may play again (it was held: {holds[SICK]})")
