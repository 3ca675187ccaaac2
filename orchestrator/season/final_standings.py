"""What a finished season leaves: final standings, relegations, the next season's fields.

Final standings (CUP-1c, CUP-1d): the engines of the last event by rank, then those of
each earlier event, every engine once, at its highest event. Events of one tier (S17: CPU
and GPU League 1) are interleaved by rank. Engines of one rank in one event, or in two of a
tier, are level: nothing says which is before the other, so the organizers are asked where that
matters (``require_parted``), and elsewhere it is marked. An engine's next home is the highest
event it has reached that has a field of its own (playoffs and finals have none); the relegated go
to the event that leads there, of their own competition where there are several (S17-7c).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from orchestrator.common import errors
from orchestrator.season import decisions
from orchestrator.season.amend import engine_update
from orchestrator.season.fold import events, plan
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


@dataclasses.dataclass(frozen=True)
class Placing:
    """An engine's place in the final standings; ``rank`` is that in its highest event.

    ``level`` are the engines that have as good a claim to the place, itself not among them.
    """

    place: int
    engine: str
    event: str
    rank: int
    level: tuple[str, ...] = ()


def final_standings(
    state: season_state.SeasonState, dropped: Collection[str] = (), order: Sequence[str] = ()
) -> tuple[Placing, ...]:
    """Return the final standings; ``dropped`` engines leave their place to the next one.

    ``order`` is the organizers' word: of those who are level, it names some or all, best first.
    Raise ``RefusedError`` while the season is not finished, or when it was abandoned.
    """
    if state.abandoned:
        why = f"the season was abandoned ({state.abandoned}); it has no outcome"
        raise errors.RefusedError(why)
    if not state.finished:
        asked = ", ".join(awaited.decision for awaited in decisions.outstanding(state))
        why = f"; the organizers must decide {asked} (`farm season decisions`)" if asked else ""
        raise errors.RefusedError(f"the season is not over; it has no outcome yet{why}")
    placings: list[Placing] = []
    seen = set(dropped)
    for tier in _tiers(state):
        rows = [
            (row.rank, number, row, event.id)
            for number, event in enumerate(tier)
            for row in event.rows
        ]
        best: dict[str, tuple[int, str]] = {}
        for rank, _, row, event_id in sorted(rows, key=lambda item: item[:2]):
            if row.engine not in seen:
                best.setdefault(row.engine, (rank, event_id))
        for _, same in itertools.groupby(best, key=lambda engine: best[engine][0]):
            tied = list(same)
            ordered = [engine for engine in order if engine in tied]
            rest = [engine for engine in tied if engine not in ordered]
            for engine in (*ordered, *rest):
                level = tuple(other for other in rest if other != engine and engine in rest)
                rank, event_id = best[engine]
                placings.append(Placing(len(placings) + 1, engine, event_id, rank, level))
        seen |= best.keys()
    return tuple(placings)


def require_parted(placings: Sequence[Placing], top: int, placed: int) -> None:
    """Raise ``RefusedError`` where engines are level and a place of theirs matters (CUP-1c, 1d).

    It matters who is among the first ``top``, and at which of the first ``placed`` places: those
    are seeds that a Cup's bracket places (CUP-2c). No other place decides who meets whom.
    """
    for first, *others in _ties(placings):
        last = others[-1].place
        if first.place <= placed or first.place <= top < last:
            level = ", ".join(
                f"{placing.engine} ({placing.event}, {placing.rank})"
                for placing in (first, *others)
            )
            count = (
                min(last, max(top if first.place <= top < last else 0, placed)) - first.place + 1
            )
            named = min(count, len(others))
            raise errors.RefusedError(
                f"places {first.place} to {last} of the final standings: {level} are level, and"
                f" the first {placed} are placed as seeds, the first {top} go on (CUP-1c, CUP-1d,"
                f" CUP-2c); the organizers name {named} of them, best first: --order ENGINE,…"
            )


def _ties(placings: Sequence[Placing]) -> Iterator[list[Placing]]:
    """Yield those who are level with each other, where there are any."""
    for _, same in itertools.groupby(
        placings, key=lambda placing: {placing.engine, *placing.level}
    ):
        tied = list(same)
        if len(tied) > 1:
            yield tied


def _tiers(state: season_state.SeasonState) -> list[list[events.EventState]]:
    """Return the events from the last to the first, those of one tier together."""
    tiers: dict[str, list[events.EventState]] = {}
    for event in state.events.values():
        if event.parts is not None:
            continue  # a playoff has placed its engines in the table of the event that it parts
        tiers.setdefault(event.spec.tier or f"event {event.id}", []).append(event)
    return list(tiers.values())[::-1]


def relegations(state: season_state.SeasonState) -> dict[str, tuple[str, str]]:
    """Return for each relegated engine the event it leaves and the one it goes to, or ''."""
    moves = {}
    for event in state.events.values():
        if event.spec.relegate:
            for row in event.rows[-event.spec.relegate :]:
                moves[row.engine] = (event.id, _below(state, event.spec, row.engine))
    return moves


def _below(state: season_state.SeasonState, event: model.Event, engine: str) -> str:
    """Return the event that leads to another and takes this engine, '' where there is none."""
    homes = list(_feeders(state.launched.season, event))
    competition = _competition(state, engine)
    fitting = [home for home in homes if home.competition in {None, competition}]
    return fitting[0].id if fitting else ""


def _feeders(season: model.Season, event: model.Event) -> Iterator[model.Event]:
    for source in plan.sources(season, event.id):
        feeder = season.event(source.event)
        if feeder.entrants:
            yield feeder
        else:
            yield from _feeders(season, feeder)


def _competition(state: season_state.SeasonState, engine: str) -> str:
    """Return an engine's competition: its entry's, else that of an event it has played (S17-2)."""
    entry = engine_update.entries_of(state).get(engine)
    if entry is not None:
        return entry.competition
    played = (event.spec for event in state.events.values() if engine in event.entrants)
    return next((spec.competition for spec in played if spec.competition is not None), "cpu")


def next_fields(
    state: season_state.SeasonState, dropped: Collection[str] = (), order: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return who is entitled to each event's own field next season, best first."""
    homes = {e.id: list[str]() for e in state.events.values() if e.spec.entrants}
    down = relegations(state)
    for placing in final_standings(state, dropped, order):
        home = _home(state, placing.engine)
        leaves, below = down.get(placing.engine, ("", ""))
        goes = below if leaves == home else home
        if goes:
            homes[goes].append(placing.engine)
    return homes


def _home(state: season_state.SeasonState, engine: str) -> str:
    """Return the highest event with a field of its own that an engine has played."""
    played = [e.id for e in state.events.values() if e.spec.entrants and engine in e.entrants]
    return played[-1] if played else ""


def outcome(
    state: season_state.SeasonState, dropped: Collection[str] = (), order: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the whole outcome as plain data."""
    placings = final_standings(state, dropped, order)
    down = relegations(state)
    promoted = itertools.chain.from_iterable(
        ((engine, source, event.id) for engine in arrival.engines)
        for event in state.events.values()
        for source, arrival in event.arrivals.items()
    )
    return {
        "season": state.launched.id,
        "champion": state.champion,
        "standings": [dataclasses.asdict(placing) for placing in placings],
        "promotions": [{"engine": e, "from": s, "to": t} for e, s, t in promoted],
        "relegations": [{"engine": e, "from": s, "to": t} for e, (s, t) in down.items()],
        "next": next_fields(state, dropped, order),
        "dropped": sorted(dropped),
        "order": list(order),
    }
