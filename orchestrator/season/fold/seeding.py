"""Who enters an event and as which seed; the draw of a Cup's bracket.

Entrants come in the order of ``Event.seeding``. CUP-1d: the seeds of a Cup are those of
its first round and stay to its end; CUP-2c: all but the placed are drawn by lot.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from orchestrator.season.fold import entries, events, plan, vacancies
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import knockout
from orchestrator.season.spec import model, seeded_random


def started(
    state: season_state.SeasonState, event: events.EventState
) -> entries.EventStarted | None:
    """Return the fact that an event begins, None while promotions are awaited."""
    entrants = _entrants(state, event)
    if entrants is None:
        return None
    seated = tuple(_seated(event, entrants))
    return entries.EventStarted(
        event=event.id,
        entrants=seated,
        ranks=_ranks(state, event, entrants),
        bracket=_bracket(state, event.spec, seated),
        engines=tuple(state.engines[engine] for engine in seated),
    )


def _seated(event: events.EventState, entrants: tuple[str, ...]) -> Iterator[str]:
    """Yield who plays: a substitute has the seed of whom it replaces.

    One that comes in its own right after all (what came before was taken back) leaves that
    seat to whom it was to replace.
    """
    taken = {engine for engine in entrants if event.seat(engine) == engine}
    for engine in entrants:
        substitute = event.seat(engine)
        yield engine if substitute == engine or substitute in taken else substitute
        taken.add(substitute)


def _entrants(state: season_state.SeasonState, event: events.EventState) -> tuple[str, ...] | None:
    """Return the field in the order of its seeds, None while promotions are awaited."""
    roster = tuple(engine for engine in state.engines if engine not in state.joined)
    field = [*plan.listed(event.spec, roster), *event.added]
    for source in plan.sources(state.launched.season, event.id):
        arrival = event.arrivals.get(source.event)
        if arrival is None:
            return None
        field += _drawn(state, state.events[source.event], arrival.engines)
    return tuple(_seeded(state, event, field))


def _seeded(
    state: season_state.SeasonState, event: events.EventState, field: list[str]
) -> list[str]:
    match event.spec.seeding:
        case "entry":
            return field
        case "rating":
            return sorted(field, key=lambda engine: -(state.engines[engine].rating or 0))
        case "score":
            scores = _scores(state, event)
            return sorted(field, key=lambda engine: scores.get(engine, (0, 0)), reverse=True)
        case "lot":
            lot = seeded_random.shuffle(state.launched.seed, f"{event.id}:seeds", len(field))
            return [field[number] for number in lot]
        case model.Groups(groups=groups):
            return by_groups(field, groups)
        case places:
            takers = (_at(state, event, rank) for rank in places)
            by_place = [engine for engine in takers if engine]
            return [*by_place, *(engine for engine in field if engine not in by_place)]


def _drawn(
    state: season_state.SeasonState, before: events.EventState, engines: Sequence[str]
) -> Sequence[str]:
    """Return the promoted of an event; those who are level at its seeding places by lot.

    Their seeds say who has White in a match, or the side of a bracket (FRC-2b, CUP-3b).
    """
    if before.spec.seeding_ties == "organizers":
        return engines
    ranks, order = {row.engine: row.rank for row in before.rows}, list[str]()
    for rank, same in itertools.groupby(engines, key=lambda engine: ranks.get(engine, 0)):
        level = list(same)
        if 0 < rank <= before.spec.seeding_places:
            node = f"{before.id}:place-{rank}"
            level = [level[n] for n in seeded_random.shuffle(state.launched.seed, node, len(level))]
        order += level
    return order


def by_groups(field: Sequence[str], groups: int) -> list[str]:
    """Return a field in equal-distance order: the first of each group, then the next ones."""
    cut, first = [], 0
    for group in range(groups):
        size = -(-(len(field) - first) // (groups - group))
        cut.append(field[first : first + size])
        first += size
    ranks = range(max(map(len, cut)))
    return [group[rank] for rank in ranks for group in cut if rank < len(group)]


def _scores(
    state: season_state.SeasonState, event: events.EventState
) -> dict[str, tuple[int, int]]:
    """Return points and Sonneborn-Berger of the promoted in the events they come from."""
    return {
        row.engine: (row.half_points, row.tiebreaks[model.Criterion.SONNEBORN_BERGER])
        for source in event.arrivals
        for row in state.events[source].rows
    }


def _at(state: season_state.SeasonState, event: events.EventState, source_rank: str) -> str:
    """Return who took a place such as ``league-a.1``, '' where it was left empty."""
    source, _, number = source_rank.rpartition(".")
    return vacancies.taker(state.events[source], event.id, int(number))


def _ranks(
    state: season_state.SeasonState, event: events.EventState, entrants: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the seeds that the Cup's first round gave, () where the order is the seeding."""
    before = [state.events[source] for source in event.arrivals]
    if not before or any(source.spec.format.kind != "knockout" for source in before):
        return ()
    ranks: dict[str, int] = {}
    for source in before:
        ranks |= dict(
            zip(source.entrants, source.ranks or range(len(source.entrants)), strict=True)
        )
    return tuple(ranks.get(engine, len(ranks)) for engine in entrants)


def _bracket(
    state: season_state.SeasonState, spec: model.Event, entrants: tuple[str, ...]
) -> tuple[str, ...]:
    if not isinstance(spec.format, model.Knockout) or spec.format.bracket == "listed":
        return ()
    lot = seeded_random.shuffle(state.launched.seed, f"{spec.id}:bracket", len(entrants))
    slots = knockout.bracket(len(entrants), spec.format.placed, lot)
    return tuple("" if engine is None else entrants[engine] for engine in slots)
