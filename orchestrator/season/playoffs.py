"""Playoffs: a tie that matters creates an event of its own, which decides it.

A chain of tiebreaks that ends with ``playoff`` sends engines that stay level where a line runs
through them (``decisions.questions``) into a playoff: two engines play pairs of games until one
wins a pair, more of them double round robins. Who stays level there across the line plays
again. Playoffs of one event are played one after the other, the lowest places first; the
season's next events wait only for what they need.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator import contract
from orchestrator.season import decisions
from orchestrator.season.fold import entries, events
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


def next_fact(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the next fact of a playoff: its result, or that one is to be played."""
    return _parted(state) or _created(state)


def _parted(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the answer that a finished playoff gives to the tie it was created for."""
    for playoff in state.events.values():
        if playoff.parts is None or playoff.status is not events.Status.RANKED:
            continue
        if any(decisions.level(state.launched.season, playoff)):
            continue  # who is level there across the line plays again first
        asked, event = playoff.parts, state.events[playoff.parts.event]
        if asked.decision in event.asked:
            order = [row.engine for row in playoff.rows]
            rows = decisions.placed(event.rows, asked, order, asked.choose, model.Criterion.PLAYOFF)
            fact = entries.Decided(
                decision=asked.decision,
                event=event.id,
                choose=tuple(order[: asked.choose]),
                rows=rows,
                reason=playoff.spec.name,
                name="",  # nobody's word
            )
            return [contract.Draft.of(entries.DECIDED, fact)]
    return []


def _created(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the next playoff that a ranked event needs."""
    for event in state.events.values():
        root = _root(state, event)
        if event.status is not events.Status.RANKED or not _free(state, root):
            continue
        for asked, leads in reversed(list(decisions.level(state.launched.season, event))):
            if asked.decision not in event.asked and _plays_off(event):
                number = sum(1 for _ in _of(state, root)) + 1
                playoff = spec(root.spec, len(asked.engines), number)
                fact = entries.EventAdded(event=event.id, playoff=playoff, asked=asked, leads=leads)
                return [contract.Draft.of(entries.EVENT_ADDED, fact)]
    return []


def due(season: model.Season, event: events.EventState) -> bool:
    """Say whether a tie that a ranking leaves is played off, and has not been parted yet."""
    return _plays_off(event) and any(decisions.level(season, event))


def _plays_off(event: events.EventState) -> bool:
    return event.spec.tiebreaks[-1:] == (model.Criterion.PLAYOFF,)


def _root(state: season_state.SeasonState, event: events.EventState) -> events.EventState:
    """Return the event of the season file in which a tie began."""
    while event.parts is not None:
        event = state.events[event.parts.event]
    return event


def _of(state: season_state.SeasonState, root: events.EventState) -> Iterator[events.EventState]:
    """Yield the playoffs of an event, those of their own ties too."""
    for event in state.events.values():
        if event.parts is not None and _root(state, event) is root:
            yield event


def _free(state: season_state.SeasonState, root: events.EventState) -> bool:
    """Say whether no playoff of an event is still to be played."""
    unplayed = (events.Status.RANKED, events.Status.ABANDONED)
    return all(playoff.status in unplayed for playoff in _of(state, root))


def spec(root: model.Event, engines: int, number: int) -> model.Event:
    """Return a playoff of so many engines as an event: settings of the tied one, its own format."""
    wanted = root.playoff
    return root.model_copy(
        update={
            "id": f"{root.id}-tiebreak-{number}",
            "name": f"{root.name} Tiebreak {number}",
            "format": _format(wanted, engines),
            "entrants": (),
            "seeding": wanted.seeding,
            "time_control": wanted.time_control or root.time_control,
            "book": wanted.book or root.book,
            "double_random": root.double_random and wanted.double_random,
            "tiebreaks": (model.Criterion.PLAYOFF,),
            "promote": (),
            "relegate": 0,
            "seeding_places": 0,
            "start_position": False,
            "tier": None,
            "break_": None,
        }
    )


def _format(wanted: model.Playoff, engines: int) -> model.Format:
    if engines > 2:
        return model.RoundRobin(kind="round-robin", double_rounds=wanted.double_rounds)
    again = model.Extension(games=2, repeat=True)
    return model.Match(kind="match", games=2, extensions=(again,))
