"""From the format a season file names to the schedule that plays it."""

from __future__ import annotations

from orchestrator.season import model
from orchestrator.season.formats import base, match, round_robin


def build(spec: model.Format, entrants: int) -> base.Format:
    """Return the schedule of a format for a field of ``entrants`` engines."""
    if isinstance(spec, model.RoundRobin):
        return round_robin.RoundRobin(entrants, spec.double_rounds, spec.table)
    return match.Match(spec.games, first_white=int(spec.first_white == "lower-seed"))


def field_error(spec: model.Format, entrants: int) -> str | None:
    """Return which field sizes the format takes when ``entrants`` is not one of them."""
    if isinstance(spec, model.Match):
        return None if entrants == 2 else "exactly 2 engines in a match"
    return None if entrants >= 2 else "2 or more engines in a round robin"
