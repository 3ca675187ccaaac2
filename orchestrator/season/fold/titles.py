"""The title that a season's winner holds until the next winner is found (S16-9a, S17-9a, N1).

Seasons of one title follow each other: the winner of the last one that was finished in this
farm holds it, or who the season file says, and both must be the same. In a Cup and in the FRC
the holder is seeded first if it takes part (CUP-1e, FRC-1e); nowhere is it qualified (S16-9b).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


@dataclasses.dataclass(frozen=True)
class Winner:
    """Who won the last season of a title."""

    season: str
    engine: contract.EngineSpec

    def is_called(self, name: str) -> bool:
        """Say whether a name in a season file means this engine, in whatever version."""
        return name in _names(self.engine)


def _names(engine: contract.EngineSpec) -> set[str]:
    return {engine.id, engine.name, engine.family} - {""}


def last_winner(title: str, seasons: Iterable[season_state.SeasonState]) -> Winner | None:
    """Return the winner of the season of a title that was finished last, None without one."""
    of_title = [
        state
        for state in seasons
        if state.finished
        and state.launched.season.title is not None
        and state.launched.season.title.name == title
    ]
    if not of_title:
        return None
    last = max(of_title, key=lambda state: state.at_ms)
    return Winner(last.launched.id, last.engines[last.champion])


def settled(season: model.Season, winner: Winner | None, file: str) -> model.Season:
    """Return a season that says who holds its title; raise ``SeasonFileError`` for somebody else.

    ``winner`` is that of the last season of the title in this farm.
    """
    title = season.title
    if title is None or winner is None:
        return season
    if title.holder and not winner.is_called(title.holder):
        won = f"{winner.engine.name} won {winner.season}, the last season of {title.name} here"
        allowed = f"{winner.engine.name!r}, or no holder: {won}"
        raise errors.SeasonFileError(file, "[title] holder", repr(title.holder), allowed)
    held = title.model_copy(update={"holder": winner.engine.family or winner.engine.name})
    return season.model_copy(update={"title": held})


def seeded(
    title: model.Title | None, engines: tuple[contract.EngineSpec, ...]
) -> tuple[contract.EngineSpec, ...]:
    """Return a roster with the holder of the title first, where it is a seed (CUP-1e, FRC-1e)."""
    if title is None or not title.first_seed:
        return engines
    return tuple(sorted(engines, key=lambda engine: title.holder not in _names(engine)))


def holder(state: season_state.SeasonState) -> str:
    """Return who holds the title now: the winner once there is one, '' if nobody is known."""
    title = state.launched.season.title
    if title is None:
        return ""
    return state.engines[state.champion].name if state.finished else title.holder
