"""Commands of the operator: pause, resume, gates, abort, drain.

Wishes are state in the ledger, read by the halls with every renewal; Celery's remote
control would not reach a worker that is busy, draining or cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from orchestrator import contract
from orchestrator.commands import (
    change_words,
    common,
    season_change,
    shell_offers,
    tables,
    times,
)
from orchestrator.common import errors
from orchestrator.ledger import api, store
from orchestrator.season import consequences, needs
from orchestrator.season.amend import amending, operations
from orchestrator.season.fold import entries, progress, state


@click.command()
@click.option(
    "--at", help=f"Pause by itself then: {times.HELP} `farm season resume` takes it back."
)
@season_change.act_on_season
def pause(at: str | None, act: season_change.Act) -> None:
    """Start no new game; the running game is played to its end.

    Example: farm pause --at 2026-12-01T17:30 --reason "power work at 18:00"
    """
    if at is not None:
        _plan_pause(at, act)
        return
    done = act.change(
        lambda now: operations.pause(now, act.by, act.reason),
        lambda now: [api.Hold(now.launched.id, "pause", act.reason or f"paused by {act.by}")],
    )
    now = done.before
    sentence = f"{now.launched.id} {act.tense('will be', 'is')} paused"
    if now.running is not None:
        game = consequences.named(now, now.running.game)
        sentence += f"; {game} is in flight and is played to its end"
        planned = progress.of_season(now)
        if planned.total - planned.played == 1:
            sentence += (
                ". No game is planned behind it: the season does not end before"
                " `farm season resume`, so that it can be corrected"
            )
    act.report(done, {"paused": True}, sentence)


def _plan_pause(at: str, act: season_change.Act) -> None:
    def change(now: state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        return amending.plan_pause(now, times.read(at, now_ms), now_ms, act.by, act.reason)

    done = act.change_at(change)
    at_ms = int(done.fact["at_ms"])
    will = act.tense("will pause by itself", "pauses by itself")
    sentence = f"{done.before.launched.id} {will} at {tables.moment(at_ms)}"
    planned = done.before.planned_pause
    if planned is not None:
        sentence += f", no longer at {tables.moment(planned.at_ms)}"
    act.report(done, {"pauses_at_ms": at_ms}, sentence)


@click.command()
@season_change.act_on_season
def resume(act: season_change.Act) -> None:
    """Resume after a pause, or after the farm itself has held the season.

    If it is neither paused nor held, a planned pause is cancelled.

    Example: farm resume --by anna
    """
    done = act.change(
        lambda now: operations.resume(now, act.by, act.reason),
        lambda now: [api.Release(now.launched.id, "pause")],
    )
    now = done.before
    if now.paused or now.held:
        sentence = f"{now.launched.id} {act.tense('will go on', 'goes on')}"
    else:
        sentence = f"the pause planned for {now.launched.id} {act.tense('will be', 'is')} cancelled"
    act.report(done, {"paused": False}, sentence)


@click.command("open-gate")
@click.argument("event", shell_complete=shell_offers.events)
@season_change.act
def open_gate(event: str, act: season_change.Act) -> None:
    """Open the gate (the break) before EVENT now, ahead of its deadline.

    Example: farm open-gate final --reason "updates are done"
    """
    done = act.change_at(
        lambda now, now_ms: operations.open_gate(now, event, act.by, act.reason, now_ms)
    )
    sentence = f"the gate before {event} {act.tense('will be', 'is')} open"
    sentence += change_words.until_resumed(done.before)
    act.report(done, {"event": event, "opened": True}, sentence)


@click.command()
@click.option(
    "--then",
    type=click.Choice(["at-once", "end-of-round", "restart"]),
    help="Play on at once, at the end of the round (CUP-7c), or again after the opening;"
    " default: as the event has it.",
)
@season_change.act_on_season
def abort(then: entries.Then | None, act: season_change.Act) -> None:
    """End the running attempt as an interruption; the event's rules say what becomes of it.

    The hall reacts at its next lease renewal. Evals that decide a game at an interruption
    decide it here, too; else it is resumed from its position, unless --then restart.

    Example: farm abort --then restart --reason "wrong network file mounted"
    """
    done = act.change(
        lambda now: operations.abort(now, act.by, act.reason, then or ""),
        lambda now: _abort(now, act.reason or f"aborted by {act.by}"),
    )
    running = done.before.running
    assert running is not None  # operations.abort refuses otherwise
    report = {"game": running.game, "attempt": running.attempt}
    game = consequences.named(done.before, running.game)
    ends = act.tense("will end", "ends")
    sentence = (
        f"the running attempt at {game} {ends} as an interruption, unless the game is over before"
        f" its hall renews its lease (within 10 s, FARM_BEAT_SECONDS); {_becomes(done, then)}"
    )
    act.report(done, report, sentence)


def _becomes(done: season_change.Changed, then: entries.Then | None) -> str:
    """Say what becomes of an aborted game by its event's rules and the operator's wish."""
    running = done.before.running
    assert running is not None  # operations.abort refuses otherwise
    rules = done.before.events[done.before.games[running.game].event].spec.interruptions
    again = "restart" in {then, rules.otherwise}
    how = "begins again after its opening" if again else "is played on from its position"
    when = "at the end of its round" if (then or rules.when) == "end-of-round" else "next"
    decides = rules.win_cp or rules.draw_cp or rules.tablebase_men
    return f"the game {how} {when}{', unless evals or tablebases decide it' if decides else ''}"


def _abort(now: state.SeasonState, why: str) -> list[api.Effect]:
    assert now.running is not None  # operations.abort refuses otherwise
    return [api.Abort(now.running.hall, now.running.attempt, why)]


def _only_hall(ledger: store.RedisLedger) -> str:
    """Return the only hall that a worker has opened; raise ``UsageError`` where there are more."""
    opened = [hall for hall in ledger.halls() if ledger.worker(hall)]
    if len(opened) > 1:
        raise errors.UsageError(f"several halls are open; name one: {', '.join(sorted(opened))}")
    return opened[0] if opened else "hall-1"


@click.command()
@click.argument("hall", required=False)
@common.audited
@common.json_option
def drain(hall: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Stop the hall's worker after its running game; it takes no new one.

    HALL may be left out where there is only one.

    Example: farm drain hall-1 --reason "kernel update"
    """
    with common.open_ledger() as ledger:
        hall = hall or _only_hall(ledger)
        worker = ledger.worker(hall)
        if not worker:
            halls = ", ".join(ledger.halls()) or "none"
            raise errors.RefusedError(f"no worker has opened hall {hall!r}; halls: {halls}")
        already = ledger.drained(hall, worker)
        report = {"hall": hall, "worker": worker, "changed": not already, "dry_run": dry_run}
        if not dry_run and not already:
            why = reason or f"drained by {by}"
            draft = contract.Draft("drained", {"hall": hall, "worker": worker, "reason": why})
            effects = [api.Drain(hall, worker, why)]
            common.append_farm(ledger, draft, common.author(ledger, by), effects)
    if already:  # no refusal: an upgrade that is begun again drains again
        sentence = f"{worker} of {hall} is drained already; nothing changes by this command"
    else:
        will = change_words.tense("will end", "ends", dry_run=dry_run)
        sentence = (
            f"{worker} {will} after its running game; {hall} then stands still"
            "\nit can be taken back: `farm host undrain`, until the game is over"
        )
    common.report(as_json, report, sentence + change_words.unchanged(dry_run=dry_run))


@click.command()
@click.argument("hall", required=False)
@common.audited
@common.json_option
def undrain(hall: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Cancel a drain: the hall's worker goes on after its running game.

    A worker that has ended already is started again on its host; under systemd by `systemctl
    start farm-hall@HALL`. HALL may be left out where there is only one.

    Example: farm undrain hall-1 --reason "the upgrade is put off"
    """
    with common.open_ledger() as ledger:
        hall = hall or _only_hall(ledger)
        worker = ledger.worker(hall)
        if not worker or not ledger.drained(hall, worker):
            raise errors.RefusedError(
                f"the last worker of {hall} is not drained: there is no drain to cancel; start a"
                f" worker that has ended on its host (`systemctl start farm-hall@{hall}`)"
            )
        report = {"hall": hall, "worker": worker, "dry_run": dry_run}
        if not dry_run:
            draft = contract.Draft("undrained", {"hall": hall, "worker": worker, "reason": reason})
            effects = [api.Undrain(hall, worker)]
            common.append_farm(ledger, draft, common.author(ledger, by), effects)
    will = change_words.tense("will go on", "goes on", dry_run=dry_run)
    sentence = (
        f"{worker} {will}; if it has ended, start it again on its host"
        f" (`systemctl start farm-hall@{hall}`)\nit can be taken back: `farm host drain`"
    )
    common.report(as_json, report, sentence + change_words.unchanged(dry_run=dry_run))


@click.command("release-hall")
@click.argument("hall", required=False)
@common.audited
@common.json_option
def release_hall(hall: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Release a hall that the farm has held because its host seemed faulty.

    HALL may be left out where there is only one.

    Example: farm release-hall hall-1 --reason "memory module replaced"
    """
    with common.open_ledger() as ledger:
        hall = hall or _only_hall(ledger)
        holds = ledger.holds(f"hall:{hall}")
        if needs.SICK not in holds:
            halls = ", ".join(ledger.halls()) or "none"
            raise errors.RefusedError(f"hall {hall!r} is not held; halls: {halls}")
        if not dry_run:
            fact = {"hall": hall, "held": holds[needs.SICK], "reason": reason}
            effects = [api.Release(f"hall:{hall}", needs.SICK)]
            draft = contract.Draft("hall_released", fact)
            common.append_farm(ledger, draft, common.author(ledger, by), effects)
    report = {"hall": hall, "held": holds[needs.SICK], "released": not dry_run, "dry_run": dry_run}
    will = change_words.tense("will be able to play", "may play", dry_run=dry_run)
    sentence = f"{hall} {will} again (it was held: {holds[needs.SICK]})\nit cannot be taken back"
    common.report(as_json, report, sentence + change_words.unchanged(dry_run=dry_run))
