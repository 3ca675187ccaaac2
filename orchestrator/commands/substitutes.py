"""``farm amend engine``: who takes another engine's seat in an event.

A substitute is an engine of the season or an entry of a file; its parts must be unlike
those of all others (S16-16).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, get_args

import click

from orchestrator import contract
from orchestrator.commands import common, programs, rosters, season_change, shell_offers
from orchestrator.common import errors
from orchestrator.season.amend import engine_update
from orchestrator.season.amend import substitute as amend_substitute
from orchestrator.season.file import roster
from orchestrator.season.fold import amendment_entries, state
from orchestrator.season.spec import eligibility, model


def options(
    *, required: bool, played: amendment_entries.Played
) -> Callable[[common.Function], common.Function]:
    """Add ``--with``, ``--entry`` and ``--played``: who takes a seat, and what its games count.

    ``required`` says whether somebody must take it, ``played`` what they count unsaid.
    """
    nobody = "" if required else "; default: nobody takes the seat"
    who = click.option(
        "--with", "substitute", required=required, help=f"The substitute's id{nobody}."
    )
    entry = click.option(
        "--entry",
        type=click.Path(path_type=pathlib.Path, dir_okay=False),
        help="An engines.toml with the substitute, if it is new.",
    )
    games = click.option(
        "--played",
        type=click.Choice(get_args(amendment_entries.Played)),
        default=played,
        show_default=True,
        help="Games it has played: count for the substitute (keep), for nobody and are not played"
        " again (annul), or are played again (replay).",
    )
    return lambda function: who(entry(games(function)))


@click.command()
@click.argument("engine", shell_complete=shell_offers.engines)
@click.option(
    "--event",
    shell_complete=shell_offers.events,
    required=True,
    help="The event in which its seat changes hands.",
)
@options(required=True, played="keep")
@season_change.act
def engine(
    engine: str,
    event: str,
    substitute: str,
    entry: pathlib.Path | None,
    played: amendment_entries.Played,
    act: season_change.Act,
) -> None:
    """Give the seat of ENGINE in an event to a substitute: seed, open games, later rounds.

    A running event needs a season that is paused or held. Refused in a ranked event, and where
    later rounds or a match's winner depend on the games.

    Example: farm amend engine e1 --event league --with e9 --played replay --reason "hidden book"
    """

    def change(now: state.SeasonState) -> Sequence[contract.Draft]:
        new = spec(now, event, substitute, entry, engine)
        return amend_substitute.replace(now, event, engine, new, played, act.by, act.reason)

    done = act.change(change, unoffered=True)
    report = {key: done.fact[key] for key in ("event", "engine", "games", "annulled", "replays")}
    warn(done.fact)
    act.report(done, report | {"substitute": substitute}, in_words(done.fact, act))


def warn(fact: dict[str, Any]) -> None:
    """Warn of a substitute whose program is missing here, or started by another protocol."""
    programs.warn(programs.warnings([contract.EngineSpec.model_validate(fact["substitute"])]))


def spec(
    now: state.SeasonState,
    event: str,
    engine: str,
    entry: pathlib.Path | None,
    replaced: str,
) -> contract.EngineSpec:
    """Return a substitute: one of the season's engines, or of a file; raise ``UsageError``.

    A new one must be of the event's competition (S17-2), and its parts unlike those of all
    entries but the one that it replaces (S16-16).
    """
    if entry is None:
        if engine not in now.engines:
            engine_ids = ", ".join(now.engines)
            raise errors.UsageError(
                f"{engine!r} is no engine of this season ({engine_ids}); give --entry engines.toml"
            )
        return now.engines[engine]
    new = rosters.entry(entry, engine)
    others = (other for i, other in engine_update.entries_of(now).items() if i != replaced)
    _require_unique(new, list(others))
    amend_substitute.require_competition(now.event(event).spec, new)
    return roster.spec(new)


def _require_unique(entry: model.EngineEntry, others: Sequence[model.EngineEntry]) -> None:
    neural = [
        other for other in others if other.neural and not other.exception and not other.dropped
    ]
    shared = eligibility.clash(entry, neural) if entry.neural and not entry.exception else ""
    if shared:
        raise errors.RefusedError(f"{entry.name or entry.id}: {shared}; {eligibility.ALLOWED}")


def in_words(fact: dict[str, Any], act: season_change.Act) -> str:
    """Say what an engine's replacement does, or has done."""
    done = {"keep": "", "annul": ", those that were played are annulled and not played again"}
    done["replay"] = f", {len(fact['replays'])} games are played again"
    will = act.tense("will play", "plays")
    seat = f"{fact['substitute']['id']} {will} {fact['event']} in the seat of {fact['engine']}"
    if fact["played"] == "keep" and not fact["games"]:
        return f"{seat}, from its beginning on"
    return f"{seat}: {len(fact['games'])} games change hands{done[fact['played']]}"
