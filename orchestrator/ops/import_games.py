"""Seed a running season with games that were played elsewhere, from a PGN archive.

Each recorded game must be the next one of the schedule: its engines by id, name, family or
the names the operator gives, its colours, its place in the order of play. What contradicts
the schedule or the rules of chess is refused, always and as a whole; what raises a doubt
(another time control, an end that the event's rules do not reproduce, a reverse game with
another opening, a game that the season has already) only unless the operator insists, and then
stands in the journal.

Pure: a copy of the season goes on under the same ``decide`` as the farm's, so a file may
hold several rounds and events, and the journal gets pairings and rankings in between as ever.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.arbiter import record
from orchestrator.audit import reading, reasons, replaying, tables
from orchestrator.season import decide
from orchestrator.season.fold import amendment_entries, events
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import base, registry
from orchestrator.season.spec import model

BATCH: Final = 20  # games in one entry: its PGN texts stay below a megabyte

ADJUDICATION_HINT: Final = (
    "games that other rules ended: --insist takes them as they were played; a file whose event has"
    " no [event.adjudication] does so, too, but then the games to come are not ended early either"
)

_DURATION = re.compile(r"(\d+):(\d\d):(\d\d)")


@dataclasses.dataclass
class Line:
    """What becomes of one recorded game; ``game`` is '' where it has no place."""

    number: int
    white: str
    black: str
    result: str
    game: str = ""
    problem: str = ""
    doubts: tuple[str, ...] = ()


@dataclasses.dataclass
class Plan:
    """The preview of an import, and the facts to be journaled if nothing is in the way."""

    lines: list[Line]
    drafts: list[contract.Draft]
    hints: tuple[str, ...] = ()  # what would take the games as they are

    @property
    def games(self) -> list[str]:
        """Return the games of the schedule that get their results."""
        return [line.game for line in self.lines if line.game]

    @property
    def problems(self) -> list[str]:
        """Return what contradicts schedule or rules, by game."""
        return [f"game {line.number}: {line.problem}" for line in self.lines if line.problem]

    @property
    def doubts(self) -> list[str]:
        """Return what an operator may insist on, by game."""
        return [f"game {line.number}: {doubt}" for line in self.lines for doubt in line.doubts]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the games come from, who imports them and why."""

    file: str
    sha256: str
    reason: str
    name: str
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)


def plan(
    state: season_state.SeasonState,
    recorded: Sequence[tuple[reading.Game, str]],
    source: Source,
    now_ms: int,
) -> Plan:
    """Map recorded games (with their PGN texts) onto the schedule, one after the other."""
    return _Import(copy.deepcopy(state), source, now_ms).run(recorded)


class _Import:
    """One import in progress, on its own copy of the season."""

    def __init__(self, state: season_state.SeasonState, source: Source, now_ms: int) -> None:
        self._state, self._source, self._now_ms = state, source, now_ms
        # Alike moves are no sign of a twin: engines repeat short games, in one file, too.
        self._had = [game for game in state.games.values() if game.finished is not None]
        self._drafts: list[contract.Draft] = []
        self._batch: list[amendment_entries.Imported] = []
        self._doubts: list[str] = []
        self._ended_otherwise = False  # a game, than the event's rules would have ended it
        self._openings: dict[tuple[str, events.Pair], contract.Opening] = {}

    def run(self, recorded: Sequence[tuple[reading.Game, str]]) -> Plan:
        if lines := self._unknown_names(recorded):
            return Plan(lines, [], (self._names_hint(recorded),))
        hints: list[str] = []
        for game, text in recorded:
            line, finished = self._line(game, text)
            lines.append(line)
            if finished is None:
                if not line.game:
                    hints += self._order_hint([later for later, _ in recorded[len(lines) - 1 :]])
                break  # the rest would only be out of order
            self._take(game, text, line, finished)
        self._flush()
        hints += [ADJUDICATION_HINT] if self._ended_otherwise else []
        return Plan(lines, self._drafts, tuple(hints))

    def _unknown_names(self, recorded: Sequence[tuple[reading.Game, str]]) -> list[Line]:
        """Return the first game of each engine that nobody knows: nothing else is told before."""
        lines, named = [], set[str]()
        for game, _ in recorded:
            names = [name for name in dict.fromkeys((game.white, game.black)) if name not in named]
            unknown = [name for name in names if self._engine(name) is None]
            named.update(unknown)
            if unknown:
                problem = "; ".join(map(self._unknown, unknown))
                result = game.tags["Result"]
                lines.append(Line(game.number, game.white, game.black, result, problem=problem))
        return lines

    def _unknown(self, name: str) -> str:
        given = self._source.names.get(name)
        if given is None:
            return f"{name!r} is no engine of this season"
        return f"{given!r}, as --engine calls {name!r}, is no engine of this season"

    def _names_hint(self, recorded: Sequence[tuple[reading.Game, str]]) -> str:
        """Say how all names are given at once that no engine of the season has."""
        names = dict.fromkeys(name for game, _ in recorded for name in (game.white, game.black))
        missing = [shlex.quote(f"{name}=ID") for name in names if self._engine(name) is None]
        ids = ", ".join(
            spec.id if spec.id == spec.name else f"{spec.id} ({spec.name})"
            for spec in self._state.engines.values()
        )
        return f"say which engines they are: --engine {' --engine '.join(missing)}, of {ids}"

    def _order_hint(self, recorded: Sequence[reading.Game]) -> list[str]:
        """Say by which settings a round robin would have the games in the order of the record."""
        event = self._state.current
        if event is None or not isinstance(event.spec.format, model.RoundRobin):
            return []
        begun = [self._state.games[game] for game in event.order[: event.cursor]]
        pairs = [(game.white, game.black) for game in begun]
        for game in recorded:
            pair = self._pair(game)
            if pair[0] not in event.entrants or pair[1] not in event.entrants:
                break
            pairs.append(pair)
        if len(pairs) == len(begun):
            return []  # the first game in the way is nobody's of this event
        fitting = _fitting(event, pairs[: len(event.order)])
        return [] if fitting is None else [fitting]

    def _line(self, game: reading.Game, text: str) -> tuple[Line, contract.GameFinished | None]:
        """Return what becomes of a game, and its result unless there is a problem."""
        line = Line(game.number, game.white, game.black, game.tags["Result"])
        due = self._matched(game)
        if isinstance(due, str):
            line.problem = due
            return line, None
        line.game = due.id
        line.problem = self._contradiction(game, due)
        if line.problem:
            return line, None
        finished = self._finished(game, text, due)
        line.doubts = (*self._twin(game, finished, due), *self._doubts_of(game, due))
        return line, finished

    def _twin(
        self, game: reading.Game, here: contract.GameFinished, due: events.Game
    ) -> Iterator[str]:
        """Yield the doubt that the season had this game before the import: same text, or time."""
        times = record.moment_ms(game.tags.get("GameStartTime", "")) == here.started_ms
        for had in self._had:
            there = had.finished
            if there is None or (had.white, had.black) != (due.white, due.black):
                continue
            if there.record_sha256 == here.record_sha256:
                yield f"the season has it already as {had.id}: the same text was imported"
                return
            span = (there.started_ms, there.ended_ms, there.plies)
            if times and span == (here.started_ms, here.ended_ms, here.plies):
                yield f"the season has it already as {had.id}: the same players, times and length"
                return

    def _matched(self, game: reading.Game) -> events.Game | str:
        """Return the next game of the schedule if it is this one, else why it is not."""
        white, black = self._pair(game)
        if not self._waits():
            self._begin_next_event()
        event = self._state.current
        if event is None or event.cursor >= len(event.order):
            return (
                "no game is paired that waits to be played: a gate or a decision is in the way"
                " (`farm status` names it, `farm season open-gate EVENT` opens a gate)"
            )
        due = self._state.games[event.order[event.cursor]]
        if (due.white, due.black) == (white, black):
            return due
        return self._elsewhere(event, due, white, black)

    def _elsewhere(self, event: events.EventState, due: events.Game, white: str, black: str) -> str:
        """Say where the pairing stands that is not the next one of the schedule."""
        next_one = f"next in the schedule is {due.id}, {due.white} - {due.black}"
        if (due.black, due.white) == (white, black):
            return f"the colours are reversed: {next_one}"
        games = [self._state.games[game] for game in event.order]
        for game in games:
            if (game.white, game.black) == (white, black) and game.open:
                return f"{white} - {black} is {game.id}, out of order: {next_one}"
        if any((game.white, game.black) == (white, black) for game in games):
            return f"{white} - {black} has its result already; {next_one}"
        return f"{white} - {black} is not in the schedule of {event.id}; {next_one}"

    def _pair(self, game: reading.Game) -> tuple[str, str]:
        """Return White and Black of a game whose names are known."""
        return str(self._engine(game.white)), str(self._engine(game.black))

    def _engine(self, operator_name: str) -> str | None:
        """Find an engine by the operator's word, its id or name, or its family alone."""
        named = self._source.names.get(operator_name, operator_name).casefold()
        engines = self._state.engines.values()
        exact = [spec.id for spec in engines if named in (spec.id.casefold(), spec.name.casefold())]
        if exact:
            return exact[0]
        family = [spec.id for spec in engines if _family(spec).casefold() == _first(named)]
        return family[0] if len(family) == 1 else None

    def _contradiction(self, game: reading.Game, due: events.Game) -> str:
        spec = self._state.events[due.event].spec
        if game.result is None:
            return "it was not finished"
        if game.variant != spec.variant:
            return f"{game.variant} chess in an event of {spec.variant}"
        if reasons.by_people(game):
            return ""  # organizers overruled the board, and a doubt will say so
        for ply in replaying.replay(game, contract.Adjudication()):
            if ply.ending is not None and ply.ending.result != game.result:
                return f"the board ends it {ply.ending.result} at ply {ply.number}"
            if ply.ending is not None and ply.number < len(game.plies):
                return f"it went on after ply {ply.number} had ended it"
        return ""

    def _doubts_of(self, game: reading.Game, due: events.Game) -> Iterator[str]:
        spec = self._state.events[due.event].spec
        control = str(due.time_control or spec.time_control)
        if game.tags.get("TimeControl", control) != control:
            yield f"time control {game.tags['TimeControl']}, not {control}"
        mismatches = replaying.report([game], spec.adjudication)["mismatches"]
        for miss in mismatches:
            self._ended_otherwise = True
            yield f"{miss['rule']}: {_otherwise(game, miss)}"
        pair, earlier = events.pair(due), self._state.events[due.event].imported_openings
        first = self._openings.get((due.event, pair), earlier.get(pair))
        if game.plies and first is not None and first.line != game.opening.line:
            yield "another opening than in the game with the colours reversed"

    def _take(
        self, game: reading.Game, text: str, line: Line, finished: contract.GameFinished
    ) -> None:
        due = self._state.games[line.game]
        if game.plies:
            self._openings.setdefault((due.event, events.pair(due)), game.opening)
        self._doubts += [f"game {line.number}: {doubt}" for doubt in line.doubts]
        opening = None if due.opening is None and due.start is None else _opening(game)
        imported = amendment_entries.Imported(
            game=due.id, number=game.number, opening=opening, finished=finished, pgn=text
        )
        self._batch.append(imported)
        self._state.finish(finished)
        if len(self._batch) >= BATCH or not self._waits():
            self._flush()

    def _waits(self) -> bool:
        event = self._state.current
        return event is not None and event.cursor < len(event.order)

    def _begin_next_event(self) -> None:
        """Begin the event that is next: a pause keeps new games from it, not recorded ones."""
        self._flush()
        self._apply(decide.next_event(self._state))
        self._decide()

    def _finished(self, game: reading.Game, text: str, due: events.Game) -> contract.GameFinished:
        recorded = tables.finished(game)
        assert recorded is not None  # _contradiction has refused unfinished games
        last = list(replaying.replay(game, self._state.events[due.event].spec.adjudication))[-1:]
        ended = last[0].ending if last else None
        agrees = ended is not None and ended.result == game.result
        details = game.tags.get("TerminationDetails") or game.tags.get("Termination") or ""
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        started_ms, ended_ms = _times_ms(game, self._now_ms)
        return recorded.model_copy(
            update={
                "game": due.id,
                "attempt": f"{due.id}.import{self._state.seq}",
                "hall": self._state.hall,
                "ending": ended.ending if ended is not None and agrees else recorded.ending,
                "details": details,
                "started_ms": started_ms,
                "ended_ms": ended_ms,
                "record_sha256": sha256,
                "imported": True,
            }
        )

    def _flush(self) -> None:
        """Journal the batch, then what the farm decides on it."""
        if not self._batch:
            return
        fact = amendment_entries.GamesImported(
            source=self._source.file,
            sha256=self._source.sha256,
            games=tuple(self._batch),
            doubts=tuple(self._doubts),
            reason=self._source.reason,
            name=self._source.name,
        )
        data = fact.model_dump(mode="json", by_alias=True)
        self._drafts.append(contract.Draft(amendment_entries.GAMES_IMPORTED, data))
        self._state.seq += 1  # its results stand in the copy already
        self._batch, self._doubts = [], []
        self._decide()

    def _decide(self) -> None:
        self._drafts += decide.settle(self._state, self._now_ms)

    def _apply(self, drafts: Sequence[contract.Draft]) -> None:
        decide.write(self._state, drafts, self._now_ms)
        self._drafts += drafts


def _fitting(event: events.EventState, pairs: Sequence[tuple[str, str]]) -> str | None:
    """Return the format of a round robin whose order of play the pairs are, None for none.

    What changes least is taken; other seeds only where no table fits with those that there are.
    """
    spec = event.spec.format
    assert isinstance(spec, model.RoundRobin)
    others = [
        {"table": table, "reverse": reverse, "first_white": first_white}
        for table in ("berger", "circle", "cutechess")
        for reverse in ("next-cycle", "at-once")
        for first_white in ("berger", "lower-seed")
    ]
    now = spec.model_dump()
    others.sort(key=lambda settings: sum(now[key] != value for key, value in settings.items()))
    listed = event.spec.seeding == "entry" and not event.arrivals  # a file can name their order
    for same_seeds in (True, False) if listed else (True,):
        for settings in others:
            tried = spec.model_copy(update=settings)
            seeds = _seeds(tried, event.entrants, pairs, same=same_seeds)
            if seeds is not None:
                return _settings(tried, None if same_seeds else seeds)
    return None


def _seeds(
    spec: model.RoundRobin, entrants: Sequence[str], pairs: Sequence[tuple[str, str]], *, same: bool
) -> list[str] | None:
    """Return the order of seeds by which a format plays pairs in their order, None for none."""
    drawn = registry.build(spec, base.Field(len(entrants)))
    boards = (
        board
        for index in range(drawn.rounds)
        for board in _boards(drawn.pair(index, base.History(index)))
    )
    seats = dict(enumerate(entrants)) if same else {}
    for board, engines in zip(boards, pairs, strict=False):
        for seat, engine in zip((board.white, board.black), engines, strict=True):
            if seats.setdefault(seat, engine) != engine:
                return None
    if len(set(seats.values())) < len(seats):
        return None
    rest = iter([engine for engine in entrants if engine not in seats.values()])
    return [seats[seat] if seat in seats else next(rest) for seat in range(len(entrants))]


def _boards(pairing: base.Pairing | None) -> tuple[base.Board, ...]:
    return () if pairing is None else pairing.boards


def _settings(spec: model.RoundRobin, seeds: Sequence[str] | None) -> str:
    settings = [f'kind = "round-robin", double_rounds = {spec.double_rounds}']
    usual = model.RoundRobin(kind="round-robin")
    settings += [
        f'{name} = "{getattr(spec, name)}"'
        for name in ("table", "reverse", "first_white")
        if getattr(spec, name) != getattr(usual, name)
    ]
    listed = ", ".join(f'"{engine}"' for engine in seeds or ())
    entrants = f" and entrants = [{listed}]" if seeds else ""
    return (
        f"this is the order of format = {{ {', '.join(settings)} }}{entrants}: launch the season"
        " from a file that says so"
    )


def _otherwise(game: reading.Game, miss: Mapping[str, Any]) -> str:
    """Say where the event's rules end a game that its record ends otherwise."""
    ply, last = miss["computed_ply"], miss["recorded_ply"]
    if ply is None:
        return f"the event's rules do not end it, the record does at ply {last}"
    if ply == last and reasons.by_people(game):
        return f"the event's rules end it at ply {ply} with another result than people set"
    if ply == last:
        return f"the event's rules end it at ply {ply}, too, but otherwise than recorded"
    return f"the event's rules end it at ply {ply}, the record at ply {last}"


def _family(engine: contract.EngineSpec) -> str:
    return engine.family or _first(engine.name)


def _first(name: str) -> str:
    return name.split(maxsplit=1)[0] if name.split() else name


def _opening(game: reading.Game) -> contract.Opening | None:
    """Return what a game began with, None where its record does not tell it."""
    fen, moves = game.opening.line
    if fen is None and not moves:
        return None
    name, eco = game.tags.get("Opening", ""), game.tags.get("ECO", "")
    return contract.Opening(fen=fen, moves=moves, name=name, eco=eco)


def _times_ms(game: reading.Game, now_ms: int) -> tuple[int, int]:
    """Return when a game began and ended by its record; without a word on it, just now."""
    moments = [record.moment_ms(game.tags.get(tag, "")) for tag in ("GameStartTime", "GameEndTime")]
    match moments:
        case [int(started_ms), int(ended_ms)] if started_ms <= ended_ms <= now_ms:
            return started_ms, ended_ms
    return now_ms - _duration_ms(game), now_ms


def _duration_ms(game: reading.Game) -> int:
    match = _DURATION.fullmatch(game.tags.get("GameDuration", ""))
    if match is None:
        return 0
    hours, minutes, seconds = map(int, match.groups())
    return 1000 * (3600 * hours + 60 * minutes + seconds)
