"""Draw the openings of an event by lot, and find that of a paired game.

A book exit is found by counting slots (CUP-4b), a Chess960 position by the lot of its
slot (FRC-4a), and the opening of a rapid or blitz set by the lot of those that were played
earlier in the season, none twice before all were used (S16-8c, S16-8d).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final, NamedTuple

import chess

from orchestrator import contract
from orchestrator.arbiter import chess960
from orchestrator.season.fold import events, plan
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import base
from orchestrator.season.spec import model, seeded_random

CHESS960: Final = chess960.POSITIONS  # start positions, numbered from 0


class Choice(NamedTuple):
    """An exit of a book, a Chess960 position, or neither: the start position."""

    book: str | None = None
    number: int | None = None
    start: int | None = None


class Lot:
    """Which opening each slot of an event gets."""

    def __init__(
        self, state: season_state.SeasonState, event: events.EventState, format_: base.Format
    ) -> None:
        """Prepare to draw for the next games of an event."""
        self._state, self._event, self._format = state, event, format_
        self._spec, self._seed = event.spec, state.launched.seed
        self._replays: dict[int, Choice] = {}

    def of(self, slot: int, *, replayed: bool) -> Choice:
        """Return the opening of a slot, new or played earlier in the season."""
        if replayed:
            return self._replay(slot)
        if self._spec.book is not None:
            return self._exit(slot, self._spec.book)
        if self._spec.variant == "fischerandom":
            double = self._spec.double_random
            return Choice(start=self._double(slot) if double else self._starts[slot % CHESS960])
        return Choice()

    def _exit(self, slot: int, book: str) -> Choice:
        if self._bare is not None and slot >= self._bare:
            if slot == self._bare:
                return Choice(book)
            slot -= 1
        return Choice(book, (self._first + slot) % len(self._state.books[book]))

    @functools.cached_property
    def _first(self) -> int:
        launched, roster = self._state.launched, len(self._state.launched.engines)
        if self._event.parts is None:
            return plan.first_exit(launched.season, roster, self._spec.id)
        # A playoff takes exits that no event of the file needs, behind those of other playoffs.
        planned = plan.openings_needed(launched.season, roster)[self._spec.book or ""]
        return max([planned, *self._taken_by_playoffs()])

    def _taken_by_playoffs(self) -> Iterator[int]:
        for other in self._state.events.values():
            if other.parts is not None and other.id != self._spec.id:
                games = map(self._state.games.__getitem__, other.order)
                yield from (
                    game.opening + 1
                    for game in games
                    if game.opening is not None
                    and (game.book or other.spec.book) == self._spec.book
                )

    @functools.cached_property
    def _bare(self) -> int | None:
        """Return the slot of the start position (S16-8a), None without one."""
        if not self._spec.start_position:
            return None
        numbers = seeded_random.numbers(self._seed, f"{self._spec.id}:start-position")
        return seeded_random.below(numbers, self._format.openings)

    def _double(self, slot: int) -> int:
        """Return the number of a slot's double start position, none twice in an event."""
        draw = seeded_random.numbers(self._seed, f"{self._spec.id}:double-chess960")
        drawn: dict[int, None] = {}
        while len(drawn) <= slot:
            drawn.setdefault(seeded_random.below(draw, chess960.DOUBLE))
        return CHESS960 + list(drawn)[slot]

    @functools.cached_property
    def _starts(self) -> list[int]:
        return seeded_random.shuffle(self._seed, f"{self._spec.id}:chess960", CHESS960)

    def _replay(self, slot: int) -> Choice:
        if slot not in self._replays:
            self._replays[slot] = self._next_replay()
        return self._replays[slot]

    def _next_replay(self) -> Choice:
        """Return the first opening in drawn order that no set of this match has used yet."""
        used = [*self._used, *self._replays.values()]
        pool = self._pool or [Choice()]
        lot = seeded_random.shuffle(self._seed, f"{self._spec.id}:replayed", len(pool))
        times = {opening: used.count(opening) for opening in pool}
        return min((pool[number] for number in lot), key=times.__getitem__)

    @functools.cached_property
    def _pool(self) -> list[Choice]:
        """Return the openings of all games played before this match, or else in it."""
        state, spec = self._state, self._spec
        earlier = [other for other in state.events.values() if other.id != spec.id]
        played = dict.fromkeys(
            _opening_of(other.spec, state.games[game])
            for other in earlier
            if other.spec.variant == spec.variant
            for game in other.order
            if state.games[game].finished is not None
        )
        return list(played) or list(dict.fromkeys(self._own(0, 2 * self._format.openings)))

    @property
    def _used(self) -> list[Choice]:
        """Return the openings of this match's earlier sets, one for each pair of games."""
        return list(self._own(2 * self._format.openings, len(self._event.order)))[::2]

    def _own(self, first: int, end: int) -> Iterator[Choice]:
        for game in self._event.order[first:end]:
            yield _opening_of(self._spec, self._state.games[game])


def _opening_of(spec: model.Event, game: events.Game) -> Choice:
    if game.opening is None:
        return Choice(start=game.start)  # whatever book the event has
    return Choice(game.book or spec.book, game.opening)


def start_position(number: int) -> contract.Opening:
    """Return a start position by its number (518 is that of standard chess).

    Numbers from 960 on are those of double Chess960, counted from there.
    """
    if number >= CHESS960:
        return chess960.double(number - CHESS960)
    board = chess.Board.from_chess960_pos(number)
    return contract.Opening(fen=board.fen(), name=f"Chess960 position {number}")


def book_of(state: season_state.SeasonState, game: events.Game) -> str | None:
    """Return the book that a paired game takes its opening from: its own, or its event's."""
    return game.book or state.events[game.event].spec.book


def of_game(state: season_state.SeasonState, game: events.Game) -> contract.Opening:
    """Return the opening of a paired game: that of its pair's imported game, else by its lot."""
    imported = state.events[game.event].imported_openings.get(events.pair(game))
    if imported is not None:
        return imported
    book = book_of(state, game)
    if game.start is not None:
        return start_position(game.start)
    if book is None or game.opening is None:
        return contract.Opening()
    return state.books[book][game.opening]
