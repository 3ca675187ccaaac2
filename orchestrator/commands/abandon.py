"""``farm abandon``: end a season for good before it is finished (docs/decisions/027).

It cannot be taken back, so it is confirmed by typing the season's id. Fact, hold and abort are
one step in the ledger: from then on no hall can begin a game of the season.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import click

from orchestrator import contract
from orchestrator.commands import season_change
from orchestrator.common import errors
from orchestrator.ledger import api
from orchestrator.season.fold import abandoning, progress, state


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for the season's id to be typed again.")
@season_change.act_on_named_season
def abandon(act: season_change.Act, *, yes: bool) -> None:
    """End SEASON for good before it is finished, such as one launched by mistake.

    The game in flight ends without a result, none is begun any more, and nothing of the season
    can be changed. What was played is kept: games, tables so far, ratings. Another season may
    be launched at once, under an id of its own. (`farm pause` stops a season that goes on.)

    Example: farm abandon autumn --reason "launched with last year's roster"
    """

    def drafts(now: state.SeasonState) -> Sequence[contract.Draft]:
        return abandoning.abandon(now, act.by, act.reason)

    seen = dataclasses.replace(act, dry_run=True).change(drafts).before
    if not yes and not act.dry_run:
        _confirm(seen)
    agreed = act.seconded("abandon", drafts)
    why = f"the season was abandoned: {act.reason}"
    done = agreed.change(drafts, lambda now: _effects(now, why), unoffered=True)
    season = done.before
    sentence = f"{season.launched.id} {act.tense('will be', 'is')} abandoned: {_stood(season)}"
    agreed.report(done, _as_json(season), sentence, "; another season may be launched")


def _confirm(season: state.SeasonState) -> None:
    """Raise ``UsageError`` unless the season's id is typed."""
    name = season.launched.id
    click.echo(f"{name} ({season.launched.season.name}): {_stood(season)}", err=True)
    click.echo("It cannot be taken back.", err=True)
    try:
        typed = click.prompt(f"Type {name} to abandon it", default="", show_default=False, err=True)
    except click.Abort:
        typed = ""
    if typed.strip() != name:
        raise errors.UsageError(
            f"not confirmed, nothing was changed: type {name}, or give --yes where nobody can type"
        )


def _stood(season: state.SeasonState) -> str:
    """Say how far a season had come, and what becomes of its game in flight."""
    done = progress.of_season(season)
    sentence = f"{done.played} of {done.total} games were played"
    if season.running is not None:
        sentence += f", {season.running.game} is given up unless it ends before its hall hears"
    return sentence


def _as_json(season: state.SeasonState) -> dict[str, Any]:
    done = progress.of_season(season)
    return {
        "abandoned": True,
        "games": {"played": done.played, "total": done.total},
        "given_up": None if season.running is None else season.running.game,
    }


def _effects(now: state.SeasonState, why: str) -> list[api.Effect]:
    """Return what is atomic with the fact: no claim any more, the game in flight ends."""
    held = api.Hold(now.launched.id, abandoning.HOLD, why)
    flying = now.running
    return [held] if flying is None else [held, api.Abort(flying.hall, flying.attempt, why)]
