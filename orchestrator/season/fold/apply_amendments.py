"""Apply amendments to the season's state: each verb records one journaled fact.

Part of the fold (``state``): nothing is decided here, and a fact that contradicts the
ones before it raises ``ContradictionError``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from orchestrator import contract
from orchestrator.season.fold import amendment_entries, events

if TYPE_CHECKING:
    from orchestrator.season.fold import state as season_state


class ContradictionError(Exception):
    """What an entry says cannot follow from the entries before it."""


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not a switch
    """Raise ``ContradictionError`` unless a condition holds."""
    if not holds:
        raise ContradictionError(otherwise)


def because(ruling: str, reason: str) -> str:
    """Return what was made of a game, with the reason that was given for it."""
    return f"{ruling}: {reason}" if reason else ruling


def _engine_replaced(
    state: season_state.SeasonState, fact: amendment_entries.EngineReplaced, _at_ms: int
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
    replaced = f"{state.engines[fact.engine].name} was replaced by {fact.substitute.name}"
    for game_id in fact.games:
        state.games[game_id] = _handed_over(state.games[game_id], fact.engine, new)
    for game_id in fact.annulled:
        cancelled = dataclasses.replace(state.games[game_id], cancelled=True)
        state.games[game_id] = events.ruled(cancelled, because(replaced, fact.reason))
    event.annulled |= {*fact.annulled, *fact.crashes}
    for game_id, again in fact.replays.items():
        game = _handed_over(state.games[game_id], fact.engine, new)
        state.replace_game(event, game_id, dataclasses.replace(game, id=again, finished=None))
        ruling = because(f"{replaced}, it is played again as {again}", fact.reason)
        state.games[game_id] = events.ruled(state.games[game_id], ruling)
    state.count_again(event)


def _swapped(field: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if engine == old else engine for engine in field)


def _handed_over(game: events.Game, old: str, new: str) -> events.Game:
    return dataclasses.replace(
        events.untouched(game),  # an interrupted game of another engine is not played on
        white=new if game.white == old else game.white,
        black=new if game.black == old else game.black,
        played_by=None if game.finished is None else game.players,
    )


def _book_mended(
    state: season_state.SeasonState, fact: amendment_entries.BookMended, _at_ms: int
) -> None:
    exits = list(state.books[fact.book])
    for number, opening in fact.exits.items():
        require(0 <= number < len(exits), f"the book has no exit {number}")
        exits[number] = opening
    state.books[fact.book] = tuple(exits)


def _gate_moved(
    state: season_state.SeasonState, fact: amendment_entries.GateMoved, _at_ms: int
) -> None:
    event = state.events[fact.event]
    shut = event.status in {events.Status.WAITING, events.Status.GATE}
    gated = event.spec.gated or event.opens_at_ms is not None
    require(shut and gated, "no gate is shut")
    event.moved_to_ms = fact.opens_at_ms
    if event.status is events.Status.GATE:
        event.opens_at_ms = fact.opens_at_ms


def _pause_planned(
    state: season_state.SeasonState, fact: amendment_entries.PausePlanned, _at_ms: int
) -> None:
    state.planned_pause = fact


def _away_policy_set(
    state: season_state.SeasonState, fact: amendment_entries.AwayPolicySet, _at_ms: int
) -> None:
    state.away_policy = fact.policy


def _host_away(
    state: season_state.SeasonState, fact: amendment_entries.HostAway, _at_ms: int
) -> None:
    require(fact.host not in state.away, "the host is away already")
    state.away[fact.host] = fact


def _host_back(
    state: season_state.SeasonState, fact: amendment_entries.HostBack, _at_ms: int
) -> None:
    require(fact.host in state.away, "the host is not away")
    del state.away[fact.host]


def _games_imported(
    state: season_state.SeasonState, fact: amendment_entries.GamesImported, _at_ms: int
) -> None:
    for game in fact.games:
        paired = state.games[game.game]
        require(paired.open, f"{game.game} has its result, or is cancelled")
        require(state.running is None, "a game is in flight")
        if game.opening is not None:
            openings = state.events[paired.event].imported_openings
            openings.setdefault(events.pair(paired), game.opening)
        state.finish(game.finished)


def _engine_flagged(
    state: season_state.SeasonState, fact: amendment_entries.EngineFlagged, _at_ms: int
) -> None:
    state.events[fact.event].flags[fact.engine] = fact


def _flag_dismissed(
    state: season_state.SeasonState, fact: amendment_entries.FlagDismissed, _at_ms: int
) -> None:
    flags = state.events[fact.event].flags
    require(flags.get(fact.engine) is not None, "the engine is not flagged")
    flags[fact.engine] = None


Verb = Callable[["season_state.SeasonState", Any, int], None]
VERBS: Final[Mapping[str, tuple[type[contract.Message], Verb]]] = {
    amendment_entries.ENGINE_REPLACED: (amendment_entries.EngineReplaced, _engine_replaced),
    amendment_entries.BOOK_MENDED: (amendment_entries.BookMended, _book_mended),
    amendment_entries.GATE_MOVED: (amendment_entries.GateMoved, _gate_moved),
    amendment_entries.PAUSE_PLANNED: (amendment_entries.PausePlanned, _pause_planned),
    amendment_entries.AWAY_POLICY_SET: (amendment_entries.AwayPolicySet, _away_policy_set),
    amendment_entries.HOST_AWAY: (amendment_entries.HostAway, _host_away),
    amendment_entries.HOST_BACK: (amendment_entries.HostBack, _host_back),
    amendment_entries.GAMES_IMPORTED: (amendment_entries.GamesImported, _games_imported),
    amendment_entries.ENGINE_FLAGGED: (amendment_entries.EngineFlagged, _engine_flagged),
    amendment_entries.FLAG_DISMISSED: (amendment_entries.FlagDismissed, _flag_dismissed),
}
