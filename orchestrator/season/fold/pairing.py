"""Pair the next games of an event, and say how it stands.

The bridge between the season's journaled facts, which name engines, and the formats,
which know only numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from orchestrator.season.fold import entries, events, openings, plan, standings, tally
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import base, knockout, registry
from orchestrator.season.spec import model

_BATCH: Final = 500  # games paired in one answer: huge events reach the journal in small steps
_SOON_PAIRED: Final = 32  # engines: a Swiss round of so many takes 10 ms, of 128 0.2 s
_AHEAD: Final = 2_000  # games paired and not played yet: a larger event is paired as it is played


def schedule(event: events.EventState) -> base.Format:
    """Return the schedule of an event that has started."""
    number = event.entrants.index
    bracket = tuple(number(engine) if engine else None for engine in event.bracket)
    field = base.Field(len(event.entrants), event.ranks, bracket)
    return registry.build(event.spec.format, field)


def history(state: season_state.SeasonState, event: events.EventState) -> base.History:
    """Return what was paired and played, as numbers; games are read only when needed."""
    number = {engine: at for at, engine in enumerate(event.entrants)}.__getitem__

    def games() -> Iterator[base.Game]:
        for game_id in event.order:
            game = state.games[game_id]
            if not game.cancelled:
                done = game.finished
                taken = None if done is None else tally.halves(done.result)
                yield base.Game(number(game.white), number(game.black), game.round_number, taken)

    byes = [(round_number, number(engine)) for round_number, engine in event.byes]
    return base.History(event.rounds_paired, games, byes, map(number, event.tally.excluded))


def complete(state: season_state.SeasonState, event: events.EventState) -> bool:
    """Say whether an event has nothing left to be paired or played."""
    played = history(state, event)
    return event.all_played and schedule(event).complete(event.rounds_paired, played)


def needless(state: season_state.SeasonState, event: events.EventState) -> list[str]:
    """Return the games paired last of which the match is decided without them (CUP-3a, CUP-3e).

    There are some only after a correction, since none is paired before it is certain. One that
    the organizers have played again in the middle of a match is played: pairs have no holes.
    """
    format_ = schedule(event)
    if event.all_played or not isinstance(format_, knockout.Knockout):
        return []
    last = itertools.takewhile(lambda game: game.open, map(state.game, reversed(event.order)))
    played = history(state, event)
    return [game.id for game in last if format_.decided(game.round_number, played)][::-1]


def table(state: season_state.SeasonState, event: events.EventState) -> tuple[standings.Row, ...]:
    """Return the journaled final table, or the standings of this moment."""
    if event.rows or not event.entrants:
        return event.rows
    levels = schedule(event).order(history(state, event))
    if levels is None:
        return standings.rank(event.tally, event.spec.tiebreaks)
    named = [[event.entrants[engine] for engine in level] for level in levels]
    return standings.by_matches(event.tally, named)


def remaining(state: season_state.SeasonState, event: events.EventState) -> list[tuple[int, int]]:
    """Return round number and size of what is still expected to be paired."""
    if event.status is events.Status.RANKED or (event.parts and event.settled):
        return []
    played = history(state, event)
    if event.entrants:
        return list(schedule(event).remaining(played))
    if event.parts is not None:
        field = registry.expected_field(event.spec.format, len(event.added))
        return list(registry.build(event.spec.format, field).remaining(played))
    launched = state.launched
    expected = plan.schedule(launched.season, len(launched.engines), event.id)
    return list(expected.remaining(played))


def takes_long(event: events.EventState) -> bool:
    """Say whether the next round of a large Swiss is to be paired: tenths of a second."""
    swiss = isinstance(event.spec.format, model.Swiss)
    return swiss and len(event.entrants) > _SOON_PAIRED and event.cursor >= len(event.order)


def pair(state: season_state.SeasonState, event: events.EventState) -> list[entries.GamesPaired]:
    """Return the next pairings of an event, [] while results are missing or all is paired."""
    drawn: list[entries.GamesPaired] = []
    format_, played = schedule(event), history(state, event)
    lot = openings.Lot(state, event, format_)
    index, number = event.rounds_paired, len(event.order)
    if number - event.cursor >= _AHEAD:
        return []
    while number - len(event.order) < _BATCH and not format_.complete(index, played):
        pairing = format_.pair(index, played)
        if pairing is None:
            break
        drawn.append(_games(event, pairing, number, lot))
        index, number = index + 1, number + len(pairing.boards)
    return drawn


def _games(
    event: events.EventState, pairing: base.Pairing, played_before: int, lot: openings.Lot
) -> entries.GamesPaired:
    games = []
    for number, board in enumerate(pairing.boards, start=played_before + 1):
        opening = lot.of(board.slot, replayed=pairing.replayed)
        games.append(
            entries.PairedGame(
                game=event.game_id(number),
                number=number,
                round=board.tag,
                white=event.entrants[board.white],
                black=event.entrants[board.black],
                opening=opening.number,
                book=None if opening.book == event.spec.book else opening.book,
                start=opening.start,
            )
        )
    return entries.GamesPaired(
        event=event.id,
        cycle=pairing.cycle,
        round=pairing.round,
        games=tuple(games),
        time_control=pairing.time_control,
        byes=tuple(event.entrants[engine] for engine in pairing.byes),
    )
