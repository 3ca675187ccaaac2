"""Apply amendments to the season's state: each verb records one journaled fact.

Part of the fold (``state``): nothing is decided here, and a fact that contradicts the
ones before it raises ``ContradictionError``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from orchestrator import contract
from orchestrator.season.fold import amendments, events

if TYPE_CHECKING:
    from orchestrator.season.fold import state as season_state


class ContradictionError(Exception):
    """What an entry says cannot follow from the entries before it."""


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not a switch
    """Raise ``ContradictionError`` unless a condition holds."""
    if not holds:
        raise ContradictionError(otherwise)


def _engine_replaced(
    state: season_state.SeasonState, fact: amendments.EngineReplaced, _at_ms: int
) -> None:
    event, new = state.events[fact.event], fact.substitute.id
    require(event.status is not events.Status.RANKED, "the event is ranked")
    require(new not in event.entrants, "the substitute plays the event already")
    if new not in state.engines:
        state.engines[new] = fact.substitute
        state.joined.add(new)
    event.give_seat(fact.engine, new)
    if event.status is not events.Status.RUNNING:
        return
    require(fact.engine in event.entrants, "no entrant")
    event.entrants = _swapped(event.entrants, fact.engine, new)
    event.bracket = _swapped(event.bracket, fact.engine, new)
    event.byes = [(number, new if e == fact.engine else e) for number, e in event.byes]
    for game_id in fact.games:
        state.games[game_id] = _handed_over(state.games[game_id], fact.engine, new)
    for game_id in fact.annulled:
        state.games[game_id] = dataclasses.replace(state.games[game_id], cancelled=True)
    event.annulled |= {*fact.annulled, *fact.crashes}
    for game_id, again in fact.replays.items():
        game = _handed_over(state.games[game_id], fact.engine, new)
        state.replace_game(event, game_id, dataclasses.replace(game, id=again, finished=None))
    state.count_again(event)


def _swapped(field: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if engine == old else engine for engine in field)


def _handed_over(game: events.Game, old: str, new: str) -> events.Game:
    return dataclasses.replace(
        game,
        white=new if game.white == old else game.white,
        black=new if game.black == old else game.black,
        progress=None,  # an interrupted game of another engine is not played on
        asks=False,
        played_by=None if game.finished is None else game.players,
    )


def _book_mended(state: season_state.SeasonState, fact: amendments.BookMended, _at_ms: int) -> None:
    exits = list(state.books[fact.book])
    for number, opening in fact.exits.items():
        require(0 <= number < len(exits), f"the book has no exit {number}")
        exits[number] = opening
    state.books[fact.book] = tuple(exits)


def _gate_moved(state: season_state.SeasonState, fact: amendments.GateMoved, _at_ms: int) -> None:
    event = state.events[fact.event]
    shut = event.status in {events.Status.WAITING, events.Status.GATE}
    gated = event.spec.gated or event.opens_at_ms is not None
    require(shut and gated, "no gate is shut")
    event.moved_to_ms = fact.opens_at_ms
    if event.status is events.Status.GATE:
        event.opens_at_ms = fact.opens_at_ms


def _pause_planned(
    state: season_state.SeasonState, fact: amendments.PausePlanned, _at_ms: int
) -> None:
    state.planned_pause = fact


def _away_policy_set(
    state: season_state.SeasonState, fact: amendments.AwayPolicySet, _at_ms: int
) -> None:
    state.away_policy = fact.policy


def _host_away(state: season_state.SeasonState, fact: amendments.HostAway, _at_ms: int) -> None:
    require(fact.host not in state.away, "the host is away already")
    state.away[fact.host] = fact


def _host_back(state: season_state.SeasonState, fact: amendments.HostBack, _at_ms: int) -> None:
    require(fact.host in state.away, "the host is not away")
    del state.away[fact.host]


def _games_imported(
    state: season_state.SeasonState, fact: amendments.GamesImported, _at_ms: int
) -> None:
    for game in fact.games:
        require(state.games[game.game].open, f"{game.game} has its result, or is cancelled")
        require(state.running is None, "a game is in flight")
        state.finish(game.finished)


def _engine_flagged(
    state: season_state.SeasonState, fact: amendments.EngineFlagged, _at_ms: int
) -> None:
    state.events[fact.event].flags[fact.engine] = fact


def _flag_dismissed(
    state: season_state.SeasonState, fact: amendments.FlagDismissed, _at_ms: int
) -> None:
    flags = state.events[fact.event].flags
    require(flags.get(fact.engine) is not None, "the engine is not flagged")
    flags[fact.engine] = None


Verb = Callable[["season_state.SeasonState", Any, int], None]
VERBS: Final[Mapping[str, tuple[type[contract.Message], Verb]]] = {
    amendments.ENGINE_REPLACED: (amendments.EngineReplaced, _engine_replaced),
    amendments.BOOK_MENDED: (amendments.BookMended, _book_mended),
    amendments.GATE_MOVED: (amendments.GateMoved, _gate_moved),
    amendments.PAUSE_PLANNED: (amendments.PausePlanned, _pause_planned),
    amendments.AWAY_POLICY_SET: (amendments.AwayPolicySet, _away_policy_set),
    amendments.HOST_AWAY: (amendments.HostAway, _host_away),
    amendments.HOST_BACK: (amendments.HostBack, _host_back),
    amendments.GAMES_IMPORTED: (amendments.GamesImported, _games_imported),
    amendments.ENGINE_FLAGGED: (amendments.EngineFlagged, _engine_flagged),
    amendments.FLAG_DISMISSED: (amendments.FlagDismissed, _flag_dismissed),
}
