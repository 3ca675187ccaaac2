"""From the format a season file names to the schedule that plays it."""

from __future__ import annotations

from orchestrator.season.formats import (
    base,
    encounters,
    knockout,
    match,
    round_robin,
    swiss,
    tcec_swiss,
)
from orchestrator.season.spec import model


def build(spec: model.Format, field: base.Field) -> base.Format:
    """Return the schedule of a format for a field."""
    if isinstance(spec, model.RoundRobin):
        return round_robin.RoundRobin(
            field.size, spec.double_rounds, spec.table, spec.first_white, field.ranks, spec.reverse
        )
    if isinstance(spec, model.Gauntlet):
        return encounters.gauntlet(field.size, spec.hubs, spec.double_rounds, spec.first_white)
    if isinstance(spec, model.Encounters):
        return encounters.listed(spec.meetings, spec.games)
    if isinstance(spec, model.Swiss) and spec.pairing == "tcec":
        return tcec_swiss.TcecSwiss(field.size, spec.rounds, spec.games)
    if isinstance(spec, model.Swiss):
        return swiss.Swiss(field.size, spec.rounds, spec.ranking, spec.first_board)
    if isinstance(spec, model.Knockout):
        return knockout.Knockout(field, spec.pairs, spec.first_white)
    return match.Match(spec.games, _first_white(spec, field), spec.extensions)


def _first_white(spec: model.Match, field: base.Field) -> int:
    better = min((0, 1), key=field.rank)
    return 1 - better if spec.first_white == "lower-seed" else better


def expected_field(spec: model.Format, entrants: int) -> base.Field:
    """Return a field of that size before anything is drawn; byes stand where they count."""
    if isinstance(spec, model.Knockout) and spec.bracket == "equal-distance" and entrants > 1:
        return base.Field(entrants, (), knockout.bracket(entrants, spec.placed, range(entrants)))
    return base.Field(entrants)


def field_error(spec: model.Format, entrants: int) -> str | None:
    """Return which field sizes the format takes when ``entrants`` is not one of them."""
    if isinstance(spec, model.Match):
        return None if entrants == 2 else "exactly 2 engines in a match"
    if isinstance(spec, model.Knockout):
        even = spec.bracket == "equal-distance" or entrants % 2 == 0
        return None if entrants >= 2 and even else "an even number of engines, 2 or more"
    if isinstance(spec, model.Gauntlet):
        return None if entrants > spec.hubs else f"{spec.hubs + 1} engines or more in a gauntlet"
    if isinstance(spec, model.Encounters):
        last = max(max(meeting) for meeting in spec.meetings)
        return None if entrants == last else f"{last} engines, the highest seed of its meetings"
    if isinstance(spec, model.Swiss) and spec.pairing == "tcec":
        return None if entrants >= 2 else "2 or more engines in a Swiss"
    if isinstance(spec, model.Swiss):
        # So long nobody need meet twice: half of the others are left for everybody (Dirac).
        needed = max(2, 2 * spec.rounds - 1)
        return None if entrants >= needed else f"{needed} or more for {spec.rounds} Swiss rounds"
    return None if entrants >= 2 else "2 or more engines in a round robin"
