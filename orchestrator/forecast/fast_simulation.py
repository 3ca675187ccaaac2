"""One possible rest of a season: results only, no journal, no openings, no clock.

The forecast plays a season a thousand times; the journal's checks and messages would
cost more than the games. So a branch changes a copy of the state itself, and asks the
season's own functions whatever decides anything: formats pair, ``standings`` rank,
``seeding`` says who enters, ``decisions`` which ties are questions. A property test
holds it against the core: from the same results both give the same standings, promotions
and champion. Gates are taken as open, hosts as back, a game that the organizers are asked about
as one to be played; ties that they decide are decided by the ``lot``.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season import decisions
from orchestrator.season.fold import entries, events, pairing, seeding, standings, tally, vacancies
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import base, round_robin
from orchestrator.season.spec import model

Lot = Callable[[str, int], Sequence[int]]  # decision, number of engines → their order
_NOTHING = base.History()


class Play(Protocol):
    """How a game of a branch ends."""

    def __call__(self, event: str, white: str, black: str) -> contract.GameFinished:
        """Return the result of the next game of these two in an event."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Played:
    white: str
    black: str
    round: int
    finished: contract.GameFinished


class Branch:
    """A copy of a season that can be played on; the original is never changed."""

    def __init__(self, origin: season_state.SeasonState, play: Play, lot: Lot) -> None:
        """Copy what a branch changes, and share the rest."""
        self.state = copy.copy(origin)
        self.state.events = {name: _copied(event) for name, event in origin.events.items()}
        self._play, self._lot = play, lot
        self._games: list[_Played] = []
        self.games = dict.fromkeys(origin.events, 0)

    @property
    def champion(self) -> str:
        """Return the season's champion."""
        return self.state.champion or self.state.final.rows[0].engine

    def run(self) -> Branch:
        """Play to the end; raise ``OrganizerError`` where the season cannot go on."""
        for event in self.state.events.values():
            self._settle(event)
        while not all(event.settled for event in self.state.events.values()):
            event = self._running() or self._begin()
            self._play_on(event)
            event.rows = self._table(event)
            event.status = events.Status.RANKED
            self._settle(event)
        return self

    # -- between events --------------------------------------------------------------

    def _running(self) -> events.EventState | None:
        """Return the event that is played, though its next game may wait for people or a host."""
        all_events = self.state.events.values()
        return next((event for event in all_events if event.status is events.Status.RUNNING), None)

    def _begin(self) -> events.EventState:
        """Start the first event that can be: its promoted are known."""
        for event in self.state.events.values():
            if event.entrants or event.settled:
                continue
            fact = seeding.started(self.state, event)
            if fact is not None:
                event.status = events.Status.RUNNING
                event.entrants, event.ranks, event.bracket = (
                    fact.entrants,
                    fact.ranks,
                    fact.bracket,
                )
                event.tally = tally.Tally(fact.entrants)
                return event
        raise errors.OrganizerError(f"{self.state.launched.id} cannot go on: no event can begin")

    def _settle(self, event: events.EventState) -> None:
        """Decide the ties of a ranked event by lot, and send the promoted on."""
        if event.status is not events.Status.RANKED:
            return
        season = self.state.launched.season
        while asked := _open_tie(season, event):
            lot = self._lot(asked.decision, len(asked.engines))
            first = [asked.engines[at] for at in lot[: asked.choose]]
            order = [*first, *(engine for engine in asked.engines if engine not in first)]
            event.rows = decisions.placed(event.rows, asked, order, asked.choose)
            event.asked.pop(asked.decision, None)
        for promotion in event.spec.promote:
            if promotion.to not in event.promoted:
                engines = vacancies.promoted(event, promotion)
                arrivals = self.state.events[promotion.to].arrivals
                arrivals[event.id] = events.Arrival(engines, self.state.at_ms)
                event.promoted.add(promotion.to)

    # -- one event -------------------------------------------------------------------

    def _play_on(self, event: events.EventState) -> None:
        """Play the games that are paired, then pair and play until nothing is left."""
        self._games = list(self._so_far(event))
        for game_id in event.order[event.cursor :]:
            game = self.state.games[game_id]
            if game.open:
                self._game(event, game.white, game.black, game.round_number)
        format_ = pairing.schedule(event)
        while not format_.complete(event.rounds_paired, self._history(event)):
            drawn = _paired(format_, event.rounds_paired, self._history(event))
            if drawn is None:
                raise errors.OrganizerError(f"{event.id} cannot be paired on")
            for number in drawn.byes:
                event.byes.append((drawn.round, event.entrants[number]))
                event.tally.bye(event.entrants[number])
            names = event.entrants
            for board in drawn.boards:
                self._game(event, names[board.white], names[board.black], drawn.round)
            event.rounds_paired += 1

    def _so_far(self, event: events.EventState) -> Iterator[_Played]:
        for game in map(self.state.games.__getitem__, event.order):
            if game.counts and game.finished is not None:
                yield _Played(game.white, game.black, game.round_number, game.finished)

    def _game(self, event: events.EventState, white: str, black: str, round_: int) -> None:
        if event.tally.excluded and not event.tally.excluded.isdisjoint((white, black)):
            return
        finished = self._play(event.id, white, black)
        self.games[event.id] += 1
        event.tally.add(white, black, finished)
        self._games.append(_Played(white, black, round_, finished))
        if finished.ending in tally.CRASHES:
            self._disqualify(event)

    def _disqualify(self, event: events.EventState) -> None:
        """Annul the results of who has crashed too often (S16-15c), as the core does."""
        limit = event.spec.disqualify_after
        gone = {engine for engine, crashes in event.tally.crashed.items() if crashes >= limit}
        if not limit or gone <= event.tally.excluded:
            return
        event.tally = tally.Tally(event.entrants, event.tally.excluded | gone)
        for _, engine in event.byes:
            event.tally.bye(engine)
        for game in self._games:
            event.tally.add(game.white, game.black, game.finished)

    def _table(self, event: events.EventState) -> tuple[standings.Row, ...]:
        levels = pairing.schedule(event).order(self._history(event))
        if levels is None:
            return standings.rank(event.tally, event.spec.tiebreaks)
        named = [[event.entrants[engine] for engine in level] for level in levels]
        return standings.by_matches(event.tally, named)

    def _history(self, event: events.EventState) -> base.History:
        number = event.entrants.index
        if event.spec.format.kind == "round-robin":
            return _NOTHING  # no result changes a table of pairings

        def games() -> Iterator[base.Game]:
            for game in self._games:
                taken = tally.halves(game.finished.result)
                yield base.Game(number(game.white), number(game.black), game.round, taken)

        byes = [(round_number, number(engine)) for round_number, engine in event.byes]
        out = [number(engine) for engine in event.tally.excluded]
        return base.History(event.rounds_paired, games, byes, out)


def _open_tie(season: model.Season, event: events.EventState) -> entries.DecisionNeeded | None:
    """Return a tie that the organizers, or a playoff, have still to part."""
    parted = event.spec.tiebreaks[-1] in {model.Criterion.ORGANIZERS, model.Criterion.PLAYOFF}
    ties = (asked for asked, _ in decisions.level(season, event)) if parted else iter(())
    return next(ties, None) or next(iter(event.asked.values()), None)


@functools.lru_cache(maxsize=4096)
def _round(format_: round_robin.RoundRobin, index: int) -> base.Pairing:
    return format_.pair(index, _NOTHING)


def _paired(format_: base.Format, index: int, played: base.History) -> base.Pairing | None:
    if isinstance(format_, round_robin.RoundRobin):
        return _round(format_, index)
    return format_.pair(index, played)


def _copied(event: events.EventState) -> events.EventState:
    made = copy.copy(event)
    made.byes, made.promoted = list(event.byes), set(event.promoted)
    made.arrivals, made.asked = dict(event.arrivals), dict(event.asked)
    if event.status is events.Status.RUNNING:
        made.tally = copy.deepcopy(event.tally)
    return made
