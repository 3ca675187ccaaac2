"""The season's state: a fold over its journal.

One owner object applies entries in place and only records: nothing here computes a
pairing, a standing, a tiebreak or a draw. The values it hands out are
frozen. An entry that contradicts the ones before it raises ``LedgerDamagedError``:
unknown kinds, gaps in the numbering, a second result of a game, a second game in flight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final

from orchestrator import contract
from orchestrator.arbiter import chess960
from orchestrator.common import errors
from orchestrator.season.fold import (
    abandoning,
    amendment_entries,
    apply_amendments,
    apply_engine_updates,
    entries,
    events,
    tally,
)
from orchestrator.season.spec import model

# What happens game by game: none of them cancels a game, or lets one go on from a ply.
_OF_A_GAME: Final = frozenset(
    {entries.ATTEMPT_STARTED, entries.ATTEMPT_ENDED, entries.GAME_FINISHED}
)
STARTS = chess960.POSITIONS + chess960.DOUBLE  # start positions that a game may be given


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt in flight; ``abort`` is the operator's reason to end it, or ''."""

    game: str
    attempt: str
    hall: str
    lane: str
    host: str
    worker: str
    started_ms: int
    abort: str = ""
    then: entries.Then = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Lost:
    """An attempt that has ended without a result and waits for its verdict.

    ``then`` is the operator's wish, ``started_ms`` when the attempt began.
    """

    ended: contract.AttemptEnded
    started_ms: int
    then: entries.Then = ""


class SeasonState:
    """Everything the journal says about one season."""

    def __init__(self, season: str = "") -> None:
        """Start with an empty journal; ``season`` is whose it must be, '' for any's.

        What follows from a fold is written under the id that the launch names. A journal that
        stands under another one would be played, shown and judged in that season's place.
        """
        self._season = season
        self.seq = 0
        self.at_ms = 0
        self.launched_ms = 0
        self.launch: entries.Launched | None = None
        self.engines: dict[str, contract.EngineSpec] = {}
        self.entered: dict[str, model.EngineEntry] = {}  # entries newer than the launch's
        self.events: dict[str, events.EventState] = {}
        self.games: dict[str, events.Game] = {}
        self.running: Attempt | None = None
        self.lost: Lost | None = None
        self.paused = ""
        self.held = ""
        self.fruitless = 0
        self.fruitless_game = ""
        self.fruitless_why = ""  # the evidence of the last such attempt
        self.champion = ""
        self.abandoned = ""  # why the organizers ended it before its end
        self.books: dict[str, tuple[contract.Opening, ...]] = {}
        self.joined: set[str] = set()  # engines that came as substitutes, to their events only
        self.planned_pause: amendment_entries.PausePlanned | None = None
        self.away_policy: amendment_entries.AwayPolicy = "wait"
        self.away: dict[str, amendment_entries.HostAway] = {}
        self._cancelled: dict[str, int] = {}  # by event, counted when asked for
        self._begun: tuple[str, ...] | None = None  # games that go on from a ply, or went on

    # -- queries ---------------------------------------------------------------------

    @property
    def launched(self) -> entries.Launched:
        """Return the launch; raise ``LedgerDamagedError`` before there is one."""
        if self.launch is None:
            raise errors.LedgerDamagedError("the journal does not begin with a launch")
        return self.launch

    @property
    def finished(self) -> bool:
        """Say whether the season was played to its end: it has its champion."""
        return bool(self.champion)

    @property
    def over(self) -> bool:
        """Say whether nothing more is played: the season is finished, or abandoned."""
        return self.finished or bool(self.abandoned)

    @property
    def hall(self) -> str:
        """Return the name of the hall the season is played in."""
        return self.launched.hall

    @property
    def current(self) -> events.EventState | None:
        """Return the event that is being played: started, and not ranked yet.

        One whose games all need a host that is away is passed over if the operator's
        policy is to play others meanwhile; one whose games all wait for the organizers,
        always.
        """
        for event in self.events.values():
            if event.status is events.Status.RUNNING and not self._passed_over(event):
                return event
        return None

    def _passed_over(self, event: events.EventState) -> bool:
        if event.all_played:
            return False
        if self.games[event.order[event.cursor]].asks:
            return True
        if not self.away or self.away_policy == "wait":
            return False
        return self._next_game(event) is None

    def _next_game(self, event: events.EventState) -> str | None:
        """Return the first open game that can be played where its hosts are away or not."""
        if event.cursor >= len(event.order):
            return None
        first = event.order[event.cursor]
        if not self.away:
            return None if self.games[first].asks else first
        last = len(event.order) if self.away_policy == "others" else event.cursor + 1
        waiting = (self.games[name] for name in event.order[event.cursor : last])
        return next((game.id for game in waiting if game.open and self._at_hand(game)), None)

    def _at_hand(self, game: events.Game) -> bool:
        missing = {engine for host in self.away.values() for engine in host.engines}
        return not game.asks and missing.isdisjoint((game.white, game.black))

    @property
    def final(self) -> events.EventState:
        """Return the event whose winner is the champion: the last of the season file."""
        return self.events[self.launched.season.events[-1].id]

    def event(self, event_id: str) -> events.EventState:
        """Return an event; raise ``RefusedError`` where there is none."""
        if event_id not in self.events:
            event_ids = ", ".join(self.events)
            season = self.launched.id
            raise errors.RefusedError(f"no event {event_id!r} in {season}; there are {event_ids}")
        return self.events[event_id]

    def require_unfinished(self) -> None:
        """Raise ``RefusedError`` once the season is over."""
        self.require_not_abandoned()
        if self.finished:
            raise errors.RefusedError(
                f"the season is over; its champion is {self.champion}. It can no longer be changed:"
                " another season can take its games over (`farm season import`, in"
                " docs/how-to/change-a-rule.md), and correct them before it ends"
            )

    def require_not_abandoned(self) -> None:
        """Raise ``RefusedError`` once the organizers have ended the season before its end."""
        if self.abandoned:
            season = self.launched.id
            raise errors.RefusedError(
                f"the season is over: {season} was abandoned ({self.abandoned}); it can"
                " no longer be changed. Launch another season with an id of its own"
                " (`farm season launch`)"
            )

    def game(self, game_id: str) -> events.Game:
        """Return a paired game; raise ``RefusedError`` where there is none."""
        try:
            return self.games[game_id]
        except KeyError:
            raise errors.RefusedError(
                f"no game {game_id!r} is paired in this season; {self._meant(game_id)}"
            ) from None

    def _meant(self, round_name: str) -> str:
        """Name the games of a round as page and PGN write it, such as 1.2."""
        games = (game for game in self.games.values() if game.round == round_name)
        meant = [f"{game.id} ({game.white} - {game.black})" for game in games]
        if not meant:
            return "`farm season schedule` names all"
        return f"round {round_name} is {', '.join(meant)}: give the id in front"

    def ready_game(self) -> str | None:
        """Return the one game to be played next (also while an attempt at it runs).

        None while the season is paused, held or over, or waits for something else
        than a game: a verdict on an interruption, or the organizers.
        """
        if self.paused or self.held or self.over or self.lost:
            return None
        running = self.running
        if running is not None and self.games[running.game].open:
            return running.game
        return self.next_game()

    def next_game(self) -> str | None:
        """Return the game that comes next, whatever keeps it from being begun."""
        event = self.current
        return None if event is None else self._next_game(event)

    def dropped(self, game: events.Game) -> bool:
        """Say whether a game is cancelled, or will not be played because its season is over."""
        flying = self.running is not None and self.running.game == game.id
        return game.cancelled or (self.over and game.open and not flying)

    def cancelled(self, event: events.EventState) -> int:
        """Return how many games of an event's order will not be played."""
        if event.id not in self._cancelled:
            count = sum(self.games[game].cancelled for game in event.order)
            self._cancelled[event.id] = count
        return self._cancelled[event.id]

    def interrupted(self) -> list[events.Game]:
        """Return the open games that go on from a ply, in the order in which they were paired."""
        if self._begun is None:
            self._begun = tuple(g.id for g in self.games.values() if g.progress is not None)
        return [self.games[name] for name in self._begun if self.games[name].open]

    def next_deadline_ms(self) -> int | None:
        """Return when the next gate opens by itself, None where none is set."""
        gates = [
            event.opens_at_ms
            for event in self.events.values()
            if event.status is events.Status.GATE and event.opens_at_ms is not None
        ]
        return min(gates, default=None)

    # -- the fold --------------------------------------------------------------------

    def apply(self, entry: contract.Entry) -> None:
        """Record the next entry of the journal; raise ``LedgerDamagedError``."""
        if entry.seq != self.seq + 1:
            raise errors.LedgerDamagedError(f"entry {entry.seq} follows entry {self.seq}")
        if entry.kind not in self._VERBS:
            raise errors.LedgerDamagedError(f"entry {entry.seq} is of unknown kind {entry.kind!r}")
        if (entry.kind == entries.LAUNCHED) != (self.launch is None):
            raise errors.LedgerDamagedError(f"entry {entry.seq}: exactly the first one launches")
        shape, record = self._VERBS[entry.kind]
        try:
            abandoning.require_may_follow(self, entry.kind)
            record(self, shape.model_validate(entry.data), entry.at_ms)
        except Exception as error:  # whatever a fact of another hand leads to
            text = f"entry {entry.seq} ({entry.kind}) contradicts the journal: {error}"
            raise errors.LedgerDamagedError(text) from error
        if self.lost is not None and not self.games[self.lost.ended.game].open:
            self.lost = None  # its hall came back in time, or the organizers had their word
        self.seq, self.at_ms = entry.seq, entry.at_ms
        if entry.kind not in _OF_A_GAME:
            self._cancelled.clear()
            self._begun = None

    def _launched(self, fact: entries.Launched, at_ms: int) -> None:
        _require(self._season in ("", fact.id), f"it launches {fact.id}, not {self._season}")
        self.launch, self.launched_ms = fact, at_ms
        self.engines = {engine.id: engine for engine in fact.engines}
        self.events = {spec.id: events.EventState(spec) for spec in fact.season.events}
        self.books = dict(fact.books)

    def _event_started(self, fact: entries.EventStarted, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status in {events.Status.WAITING, events.Status.OPEN}, "cannot start")
        _require(self.current is None, "another event is being played")
        entrants = set(fact.entrants)
        _require(len(entrants) == len(fact.entrants) > 1, "an engine twice, or fewer than two")
        _require(entrants <= self.engines.keys(), "an engine that is not in the roster")
        _require(entrants >= {engine for engine in fact.bracket if engine}, "no entrant")
        _require(len(fact.engines) in {0, len(entrants)}, "not each of them is pinned")
        event.status = events.Status.RUNNING
        event.entrants, event.ranks, event.bracket = fact.entrants, fact.ranks, fact.bracket
        event.tally = tally.Tally(fact.entrants)
        event.pinned = {engine.id: engine for engine in fact.engines}

    def _games_paired(self, fact: entries.GamesPaired, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.RUNNING, "the event is not being played")
        for paired in fact.games:
            _require(paired.game not in self.games, f"{paired.game} is paired already")
            _require({paired.white, paired.black} <= event.tally.scores.keys(), "no entrant")
            _require(paired.white != paired.black, "an engine against itself")
            book = self.books.get(paired.book or event.spec.book or "", ())
            drawn = paired.opening is None or 0 <= paired.opening < len(book)
            _require(drawn and 0 <= (paired.start or 0) < STARTS, "no such opening")
            self.games[paired.game] = _game(fact, paired)
            event.order.append(paired.game)
        for engine in fact.byes:
            event.byes.append((fact.round, engine))
            event.tally.bye(engine)
        event.rounds_paired += 1

    def _attempt_started(self, fact: contract.AttemptStarted, at_ms: int) -> None:
        _require(self.running is None, "another game is in flight")
        _require(self.games[fact.game].open, "the game has its result, or is cancelled")
        self.lost = None  # journals of before verdicts go on without one
        self.running = Attempt(
            game=fact.game,
            attempt=fact.attempt,
            hall=fact.hall,
            lane=fact.lane,
            host=fact.host,
            worker=fact.worker,
            started_ms=at_ms,
        )

    def _attempt_ended(self, fact: contract.AttemptEnded, _at_ms: int) -> None:
        running = self.running
        if running is None or running.attempt != fact.attempt:
            raise apply_amendments.ContradictionError("not in flight")
        self.running = None
        if self.games[fact.game].open and not self.over:
            self.lost = Lost(fact, running.started_ms, running.then)
        if fact.excused is not None:
            game = self.games[fact.game]
            engine = game.white if fact.excused == "white" else game.black
            excused = self.events[game.event].excused
            excused[engine] = excused.get(engine, 0) + 1
        if fact.cause == "operator":
            return  # an abort says nothing about engines or host
        progress = self.games[fact.game].progress
        barren = fact.ply <= (progress.ply if progress else 0)
        self.fruitless_why = fact.evidence
        if barren and fact.game == self.fruitless_game:
            self.fruitless += 1
        else:
            self.fruitless, self.fruitless_game = int(barren), fact.game

    def _attempt_judged(self, fact: entries.AttemptJudged, _at_ms: int) -> None:
        game = self.games[fact.game]
        _require(game.open, "the game has its result, or is cancelled")
        if self.lost is not None and self.lost.ended.game == game.id and not fact.decided:
            self.lost = None  # else another one was answered: the verdict on this one is to come
        # A game whose result follows waits for it as before: a journal may end between the two.
        asks, scenario = (game.asks, fact.scenario) if fact.decided else (fact.asks, "")
        self.games[game.id] = dataclasses.replace(
            game, progress=fact.progress, asks=asks, verdict=scenario
        )
        event = self.events[game.event]
        order = event.order
        if fact.after or fact.before:
            order.remove(game.id)
            index = order.index(fact.after or fact.before) + bool(fact.after)
            order.insert(index, game.id)
            self._move_cursor(event)  # what came next may be cancelled

    def _game_finished(self, fact: contract.GameFinished, _at_ms: int) -> None:
        game = self.games[fact.game]
        if self.running is not None and self.running.attempt == fact.attempt:
            self.running = None
        if _overruled(game):
            return  # a host that was away tells its result after the organizers' word
        self.finish(fact)

    def finish(self, fact: contract.GameFinished) -> None:
        """Record the result of a paired game; raise ``ContradictionError`` for a second one."""
        game = self.games[fact.game]
        _require(game.finished is None, "the game has a result already")
        event = self.events[game.event]
        _require(event.status in events.IN_PLAY, "the event is not being played")
        self.games[game.id] = dataclasses.replace(game, finished=fact)
        event.tally.add(game.white, game.black, fact)
        event.note_unsearched(game, fact)
        apply_engine_updates.pin_files(self, game, fact)
        self._move_cursor(event)
        self.fruitless = 0

    def _move_cursor(self, event: events.EventState) -> None:
        while event.cursor < len(event.order) and not self.games[event.order[event.cursor]].open:
            event.cursor += 1

    def _event_ranked(self, fact: entries.EventRanked, at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.RUNNING, "the event is not being played")
        _require(event.all_played, "games are missing")
        ranked = [row.engine for row in fact.rows]
        _require(sorted(ranked) == sorted(event.entrants), "the table is not that of its entrants")
        event.status, event.rows, event.ranked_ms = events.Status.RANKED, fact.rows, at_ms

    def _promoted(self, fact: entries.Promoted, at_ms: int) -> None:
        event, to = self.events[fact.event], self.events[fact.to]
        _require(event.status is events.Status.RANKED, "the event is not ranked")
        _require(fact.to not in event.promoted, "they have gone on already")
        _require(set(fact.engines) <= self.engines.keys(), "an engine that is not in the roster")
        event.promoted.add(fact.to)
        to.arrivals[fact.event] = events.Arrival(fact.engines, at_ms)

    def _gate_set(self, fact: entries.GateSet, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.WAITING, "no gate is awaited")
        event.status, event.opens_at_ms = events.Status.GATE, fact.opens_at_ms

    def _gate_opened(self, fact: entries.GateOpened, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.GATE, "no gate is shut")
        event.status = events.Status.OPEN

    def _paused(self, fact: entries.Paused, _at_ms: int) -> None:
        self.paused = fact.reason or f"paused by {fact.name or 'the operator'}"
        if fact.planned:
            self.planned_pause = None

    def _resumed(self, _fact: entries.Resumed, _at_ms: int) -> None:
        if not self.paused and not self.held:
            self.planned_pause = None
        self.paused = self.held = ""
        self.fruitless = 0

    def _held(self, fact: entries.Held, _at_ms: int) -> None:
        self.held = fact.reason or "held by the farm"

    def _abort_wished(self, fact: entries.AbortWished, _at_ms: int) -> None:
        running = self.running
        if running is None or running.attempt != fact.attempt:
            raise apply_amendments.ContradictionError("not in flight")
        reason = fact.reason or f"aborted by {fact.name or 'the operator'}"
        self.running = dataclasses.replace(running, abort=reason, then=fact.then)

    def _season_finished(self, fact: entries.SeasonFinished, _at_ms: int) -> None:
        _require(fact.champion in self.engines, "a champion that is not in the roster")
        self.champion = fact.champion

    # -- organizers ------------------------------------------------------------------

    def _engine_excluded(self, fact: entries.EngineExcluded, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.RUNNING, "the event is not being played")
        _require(fact.engine in event.tally.scores, "no entrant")
        event.excluded[fact.engine] = fact
        self._cancel(event, fact.cancelled)
        ruling = f"{self.engines[fact.engine].name} is out of the event by {fact.cause}"
        self._rule(fact.annulled, _because(ruling, fact.reason))
        self.count_again(event)

    def _games_cancelled(self, fact: entries.GamesCancelled, _at_ms: int) -> None:
        self._cancel(self.events[fact.event], fact.games)
        self._rule(fact.games, fact.reason)

    def _cancel(self, event: events.EventState, games: Iterable[str]) -> None:
        for game_id in games:
            game = self.games[game_id]
            _require(game.event == event.id, "a game of another event")
            self.games[game_id] = dataclasses.replace(game, cancelled=True)
        self._move_cursor(event)

    def _rule(self, games: Iterable[str], ruling: str) -> None:
        """Note why games that were played count no longer."""
        for game in map(self.games.__getitem__, games):
            if game.finished is not None:
                self.games[game.id] = events.ruled(game, ruling)

    def count_again(self, event: events.EventState) -> None:
        """Count an event's standing results from the first one on.

        Of games that were annulled with a replaced engine, voided or replayed, the crashes stay
        (S16-15d), unless the organizers have taken them back.
        """
        event.tally = tally.Tally(event.entrants, event.excluded)
        for _, engine in event.byes:
            event.tally.bye(engine)
        for game in map(self.games.__getitem__, event.order):
            if game.finished is None:
                continue
            if game.counts:
                event.tally.add(game.white, game.black, game.finished)
            elif game.id in event.annulled:
                event.tally.add_annulled(game.white, game.black, game.finished)
        for game in map(self.games.__getitem__, event.annulled.difference(event.order)):
            if game.finished is not None:
                event.tally.add_annulled(game.white, game.black, game.finished)

    def _decision_needed(self, fact: entries.DecisionNeeded, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(event.status is events.Status.RANKED, "the event is not ranked")
        event.asked[fact.decision] = fact

    def _event_added(self, fact: entries.EventAdded, _at_ms: int) -> None:
        tied, added = self.events[fact.event], fact.playoff.id
        _require(tied.status is events.Status.RANKED, "the event is not ranked")
        _require(added not in self.events, "there is such an event already")
        playoff = events.EventState(fact.playoff)
        playoff.parts, playoff.added = fact.asked, fact.asked.engines
        playoff.leads = tuple(map(frozenset, fact.leads))
        tied.asked[fact.asked.decision] = fact.asked
        order = list(self.events.items())
        index = 1 + max(
            number
            for number, (name, event) in enumerate(order)
            if fact.event in {name, event.parts and event.parts.event}
        )
        self.events = dict([*order[:index], (added, playoff), *order[index:]])

    def _decided(self, fact: entries.Decided, _at_ms: int) -> None:
        event = self.events[fact.event]
        _require(fact.decision in event.asked, "nobody asked")
        del event.asked[fact.decision]
        ranked = [row.engine for row in fact.rows]
        _require(sorted(ranked) == sorted(event.entrants), "the table is not that of its entrants")
        event.answers[fact.decision] = fact
        event.rows = fact.rows

    def _game_adjudicated(self, fact: entries.GameAdjudicated, _at_ms: int) -> None:
        game = self.games[fact.game]
        event = self.events[game.event]
        _require(event.status is events.Status.RUNNING, "the event is not being played")
        _require(game.id in event.order, "the game counts no longer")
        instead = "" if fact.before is None else f" instead of {fact.before}"
        ruling = _because(f"the organizers set {fact.finished.result}{instead}", fact.reason)
        adjudicated = dataclasses.replace(game, finished=fact.finished, cancelled=False)
        self.games[game.id] = events.ruled(adjudicated, ruling)
        self.count_again(event)
        self._move_cursor(event)

    def _game_voided(self, fact: entries.GameVoided, _at_ms: int) -> None:
        game = self.games[fact.game]
        event = self.events[game.event]
        _require(event.status is events.Status.RUNNING, "the event is not being played")
        self.games[game.id] = dataclasses.replace(game, cancelled=True)
        ruling = f"it is played again as {fact.replay}" if fact.replay else "by the organizers"
        self._rule([game.id], _because(ruling, fact.reason))
        if fact.crash_stays:
            event.annulled.add(game.id)
        if fact.replay:
            replay = dataclasses.replace(
                events.untouched(game), id=fact.replay, finished=None, cancelled=False
            )
            self.replace_game(event, game.id, replay)
        self.count_again(event)
        self._move_cursor(event)

    def replace_game(self, event: events.EventState, game_id: str, again: events.Game) -> None:
        """Let a game be played in the place of one that counts no longer."""
        _require(again.id not in self.games, f"{again.id} is paired already")
        index = event.order.index(game_id)
        self.games[game_id] = dataclasses.replace(self.games[game_id], cancelled=True)
        self.games[again.id] = dataclasses.replace(again, played_by=None, ruling="")
        event.order[index] = again.id
        event.cursor = min(event.cursor, index)

    def _events_undone(self, fact: entries.EventsUndone, _at_ms: int) -> None:
        first, *reached = (self.events[name] for name in fact.events)
        _require(first.status is events.Status.RANKED, "the event is not ranked")
        first.status, first.rows, first.ranked_ms = events.Status.RUNNING, (), None
        first.asked, first.answers, first.promoted = {}, {}, set()
        for event in reached:
            self._cancel(event, event.order)
            self._rule(event.order, _because(f"a result of {first.spec.name} changed", fact.reason))
            if event.parts is not None:
                event.status = events.Status.ABANDONED  # its tie was taken back
                continue
            anew = events.EventState(event.spec, event.generation + 1)
            anew.arrivals = {s: a for s, a in event.arrivals.items() if s not in fact.events}
            anew.substitutes, anew.added = event.substitutes, event.added
            anew.deadlines = event.deadlines
            self.events[event.id] = anew

    _VERBS: ClassVar[dict[str, tuple[type[contract.Message], Callable[..., None]]]] = {
        entries.LAUNCHED: (entries.Launched, _launched),
        entries.EVENT_STARTED: (entries.EventStarted, _event_started),
        entries.GAMES_PAIRED: (entries.GamesPaired, _games_paired),
        entries.ATTEMPT_STARTED: (contract.AttemptStarted, _attempt_started),
        entries.ATTEMPT_ENDED: (contract.AttemptEnded, _attempt_ended),
        entries.GAME_FINISHED: (contract.GameFinished, _game_finished),
        entries.EVENT_RANKED: (entries.EventRanked, _event_ranked),
        entries.PROMOTED: (entries.Promoted, _promoted),
        entries.GATE_SET: (entries.GateSet, _gate_set),
        entries.GATE_OPENED: (entries.GateOpened, _gate_opened),
        entries.PAUSED: (entries.Paused, _paused),
        entries.RESUMED: (entries.Resumed, _resumed),
        entries.HELD: (entries.Held, _held),
        entries.ABORT_WISHED: (entries.AbortWished, _abort_wished),
        entries.SEASON_FINISHED: (entries.SeasonFinished, _season_finished),
        entries.ENGINE_EXCLUDED: (entries.EngineExcluded, _engine_excluded),
        entries.GAMES_CANCELLED: (entries.GamesCancelled, _games_cancelled),
        entries.DECISION_NEEDED: (entries.DecisionNeeded, _decision_needed),
        entries.DECIDED: (entries.Decided, _decided),
        entries.EVENT_ADDED: (entries.EventAdded, _event_added),
        entries.GAME_ADJUDICATED: (entries.GameAdjudicated, _game_adjudicated),
        entries.GAME_VOIDED: (entries.GameVoided, _game_voided),
        entries.EVENTS_UNDONE: (entries.EventsUndone, _events_undone),
        entries.ATTEMPT_JUDGED: (entries.AttemptJudged, _attempt_judged),
        **apply_amendments.VERBS,
        **apply_engine_updates.VERBS,
        **abandoning.VERBS,
    }


_require = apply_amendments.require
_because = apply_amendments.because


def _overruled(game: events.Game) -> bool:
    """Say whether people have settled a game, by word or import, whatever a hall tells of it."""
    done = game.finished
    settled = done is not None and (done.imported or done.ending is contract.Ending.ORGANIZERS)
    return settled or game.cancelled


def _game(fact: entries.GamesPaired, paired: entries.PairedGame) -> events.Game:
    return events.Game(
        id=paired.game,
        event=fact.event,
        number=paired.number,
        cycle=fact.cycle,
        round_number=fact.round,
        round=paired.round,
        white=paired.white,
        black=paired.black,
        opening=paired.opening,
        book=paired.book,
        start=paired.start,
        time_control=fact.time_control,
    )


def fold(journal: Iterable[contract.Entry], season: str = "") -> SeasonState:
    """Return the state after a whole journal, ``season``'s; raise ``LedgerDamagedError``."""
    state = SeasonState(season)
    for _ in fold_each(state, journal):
        pass
    return state


def fold_each(
    state: SeasonState, entries_behind: Iterable[contract.Entry]
) -> Iterator[contract.Entry]:
    """Fold a journal's next entries; yield each as soon as it is folded.

    Raise ``LedgerDamagedError``.
    """
    for entry in entries_behind:
        state.apply(entry)
        yield entry


def follow(
    state: SeasonState, read: Callable[[int], Sequence[contract.Entry]]
) -> Iterator[contract.Entry]:
    """Fold what a journal has behind a state; yield each entry as soon as it is folded.

    ``read`` returns some of the entries behind a sequence number, none at the end. Raise
    ``LedgerDamagedError``.
    """
    while batch := read(state.seq):
        yield from fold_each(state, batch)
