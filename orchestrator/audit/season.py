"""A season file against the record: every event's field, pairings, openings, clocks, playoffs.

What the file says is predicted and compared with what was played: the field from the tables
of the events before, the games one by one from the format and the real results so far, who
shares an opening, the clocks, and which ties were played off by whom. What the record cannot
tell is a note, no disagreement: seeds that were drawn by lot, fields that come from an
event without a record.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.audit import reading, reasons, record, replaying
from orchestrator.season import decisions, playoffs
from orchestrator.season.file import load
from orchestrator.season.fold import events, plan, seeding, standings, tally
from orchestrator.season.formats import base, knockout, registry
from orchestrator.season.spec import model

_STEM: Final = re.compile(r"^(TCEC_)?(Season_\d+_-_)?|\.pgn(\.gz)?$", re.IGNORECASE)
_PLAYOFF: Final = re.compile(r"^(?P<event>.+?)tiebreak(?P<number>\d*)(?P<about>.*)$")
_NUMBERED: Final = re.compile(r"Season_(\d+)_")
_TESTS: Final = re.compile(r"testing\w*$")
_SHOWN: Final = 3  # disagreements of one kind that are told one by one
_SUBSTITUTED: Final = (
    " (a season file does not know who came in for whom: of an event whose games are all a"
    " substitute's, compare with a copy of the file that has the substitute in the seat)"
)
_CRASHES: Final = {"disconnects": contract.Ending.DISCONNECT, "stalls": contract.Ending.STALL}


@dataclasses.dataclass(frozen=True)
class Compared:
    """What became of one event of the record; it agrees where nothing differs."""

    event: record.Event
    season: str = ""
    played_as: str = ""  # the event's id in the file, "playoff of …", or "tests"
    differs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rules: contract.Adjudication | None = None  # what ends its games early, where it is known

    @property
    def agrees(self) -> bool:
        """Say whether a rule explains the whole event."""
        return bool(self.played_as) and not self.differs


def compare(seasons: Iterable[load.Loaded], played: Sequence[record.Event]) -> list[Compared]:
    """Compare each event of the record with the season file that has it."""
    by_source: dict[str, Compared] = {}
    for loaded in seasons:
        by_source |= {
            compared.event.source: compared for compared in _Season(loaded, played).compared()
        }
    missing = ("no season file has this event",)
    rest = [event for event in played if event.source not in by_source]
    for event in rest:
        tests = _TESTS.search(_key(event.source))
        by_source[event.source] = _tests(event) if tests else Compared(event, differs=missing)
    return [by_source[event.source] for event in played]


def with_ends(compared: Compared, games: Sequence[reading.Game]) -> Compared:
    """Add the games that the event's rules end otherwise than the archive has it."""
    if compared.rules is None:
        return compared
    mismatches = replaying.report(games, compared.rules)["mismatches"]
    by_people = [game.number for game in games if reasons.by_people(game)]
    wrong = [
        f"game {wrong['game']}: does not end as the rules say"
        for wrong in mismatches  # but for an end that people have overruled
        if wrong["game"] not in by_people or wrong["computed_ply"] != wrong["recorded_ply"]
    ]
    shown = ", ".join(map(str, by_people))
    notes = [f"the end of game {shown}: people set its result"] if by_people else []
    return dataclasses.replace(
        compared,
        differs=(*compared.differs, *_some(wrong, "games")),
        notes=(*compared.notes, *notes),
    )


def sentences(comparisons: Sequence[Compared]) -> Iterator[str]:
    """Yield the comparison in words: a line an event, its reasons below, and the sum."""
    for compared in comparisons:
        state = "agrees " if compared.agrees else "differs"
        played_as = f" ({compared.season} {compared.played_as})" if compared.played_as else ""
        yield f"{state}  {compared.event.source}{played_as.replace('( ', '(')}"
        yield from (f"    {reason}" for reason in compared.differs)
        yield from (f"    not compared: {note}" for note in compared.notes)
    yield f"{sum(compared.agrees for compared in comparisons)} of {len(comparisons)} events agree"


def plain(comparisons: Sequence[Compared]) -> list[dict[str, object]]:
    """Return the comparison as plain data."""
    return [
        {
            "source": compared.event.source,
            "title": compared.event.title,
            "games": len(compared.event.games),
            "season": compared.season,
            "played_as": compared.played_as,
            "agrees": compared.agrees,
            "differs": list(compared.differs),
            "not_compared": list(compared.notes),
        }
        for compared in comparisons
    ]


def _key(name: str) -> str:
    """Return an event's name without what is written now so, now so."""
    return re.sub(r"[^a-z0-9]+", "", _STEM.sub("", name).lower())


class _Season:
    """One season file and the part of the record that is of it."""

    def __init__(self, loaded: load.Loaded, played: Sequence[record.Event]) -> None:
        self.spec, self.roster = loaded.season, [engine.id for engine in loaded.engines]
        self._names = {engine.name.lower(): engine.id for engine in loaded.engines}
        self._head = f"{loaded.season.name} - "  # of the tag Event, as the farm writes it
        own = [event for event in played if self._of_season(event)]
        by_key = {self._key(event): event for event in own}
        self.played = {
            spec.id: by_key[_key(spec.name)]
            for spec in self.spec.events
            if _key(spec.name) in by_key
        }
        taken = {event.source for event in self.played.values()}
        self.playoffs = sorted(
            (e for e in own if e.source not in taken and _PLAYOFF.match(self._key(e))),
            key=lambda event: [int(n) for n in re.findall(r"\d+", event.source)],
        )
        self._tables: dict[str, list[str] | None] = {}
        self._results: dict[str, Compared] = {}

    def _of_season(self, event: record.Event) -> bool:
        number = _NUMBERED.search(event.source)
        if number is not None:
            return self.spec.name.endswith(f" {number[1]}")
        key, keys = self._key(event), {_key(spec.name) for spec in self.spec.events}
        tie = _PLAYOFF.match(key) if self._by_title(event) else None
        return key in keys or (tie is not None and tie["event"] in keys)

    def _key(self, event: record.Event) -> str:
        """Return an event's name by its file, or by its tag Event where the farm wrote that."""
        if self._by_title(event):
            return _key(event.title.removeprefix(self._head))
        return _key(event.source)

    def _by_title(self, event: record.Event) -> bool:
        """Say whether the tag is the farm's, whose files are named by the events' ids."""
        return _NUMBERED.search(event.source) is None and event.title.startswith(self._head)

    def compared(self) -> Iterator[Compared]:
        """Yield what became of each event, in the order of the file; then the playoffs."""
        done: set[str] = set()
        for spec in self.spec.events:
            if spec.id in self.played:
                event = _Event(self, spec, self.played[spec.id])
                ties = self._of(spec)
                done |= {tie.source for tie in ties}
                differs, notes = event.differences()
                expected = list(self._expected(spec, ties)) if self._plays_off(spec) else []
                differs += [reason for tie, reason in expected if tie is None]
                compared_fields = (
                    event.record,
                    self.spec.id,
                    spec.id,
                    tuple(differs),
                    tuple(notes),
                )
                yield Compared(*compared_fields, spec.adjudication)
                for tie in ties:
                    reasons = [text for other, text in expected if other is tie]
                    yield self._tie(tie, spec, reasons, [])
        alone = [tie for tie in self.playoffs if tie.source not in done]
        for tie in alone:
            spec, notes = (
                self._tied(tie),
                ["the tied event has no record: its tie is not predicted"],
            )
            yield self._tie(tie, spec, list(self._nested(tie, alone)), notes)

    # -- engines and tables ----------------------------------------------------------

    def engine(self, name: str) -> str | None:
        """Return whom the record's name means: the longest name of the roster that begins it."""
        parts = name.lower().split(" ")
        for count in range(len(parts), 0, -1):
            engine_id = self._names.get(" ".join(parts[:count]))
            if engine_id is not None:
                return engine_id
        return None

    def table(self, event_id: str) -> list[str] | None:
        """Return the final order of an event with a record, None where there is none."""
        if event_id not in self._tables:
            spec = self.spec.event(event_id)
            event = self.played.get(event_id)
            self._tables[event_id] = None if event is None else self._order(spec, event)
        return self._tables[event_id]

    def _order(self, spec: model.Event, event: record.Event) -> list[str] | None:
        table_of = _Event(self, spec, event)
        rows = table_of.rows()
        order = [row.engine for row in rows]
        for tie in self._of(spec):
            again = [row.engine for row in _Event(self, self._tied(tie), tie).rows()]
            places = sorted(order.index(engine) for engine in again if engine in order)
            for index, engine in zip(places, again, strict=False):
                order[index] = engine
        return order

    def level_at(self, event_id: str, places: Iterable[int]) -> bool:
        """Say whether the record's table leaves open who takes one of some places."""
        spec, event = self.spec.event(event_id), self.played[event_id]
        if isinstance(spec.format, model.Knockout):
            return False  # its matches have decided every place
        rows = _Event(self, spec, event).rows()
        parted = {
            engine
            for tie in self._of(spec)
            for engine in map(self.engine, tie.engines)
            if engine is not None
        }
        return any(
            rows[rank - 1].rank != rank or (rank < len(rows) and rows[rank].rank == rank)
            for rank in places
            if rank <= len(rows) and rows[rank - 1].engine not in parted
        )

    # -- playoffs --------------------------------------------------------------------

    @staticmethod
    def _plays_off(spec: model.Event) -> bool:
        return spec.tiebreaks[-1:] == (model.Criterion.PLAYOFF,)

    def _of(self, spec: model.Event) -> list[record.Event]:
        """Return the record's playoffs of an event, in their order."""
        own_playoffs = []
        for tie in self.playoffs:
            match = _PLAYOFF.match(self._key(tie))
            if match is not None and match["event"] == _key(spec.name):
                own_playoffs.append(tie)
        return own_playoffs

    def _tied(self, tie: record.Event) -> model.Event:
        """Return a playoff as the rules make it of the event that it parts."""
        match = _PLAYOFF.match(self._key(tie))
        name = match["event"] if match else ""
        named = [spec for spec in self.spec.events if _key(spec.name) == name]
        plain = [spec for spec in self.spec.events if spec.book is not None]
        root = (named or plain or list(self.spec.events))[0]
        return playoffs.spec(root, len(tie.engines), 1)

    def _expected(
        self, spec: model.Event, ties: Sequence[record.Event]
    ) -> Iterator[tuple[record.Event | None, str]]:
        """Yield what is wrong with an event's playoffs: with one, or None for a missing one."""
        waiting = list(ties)
        event = _Event(self, spec, self.played[spec.id]).state()
        yield from self._parting(event, waiting)
        yield from ((tie, "no tie creates this playoff") for tie in waiting)

    def _parting(
        self, event: events.EventState, waiting: list[record.Event]
    ) -> Iterator[tuple[record.Event | None, str]]:
        for asked, leads in reversed(list(decisions.level(self.spec, event))):
            tie = next((t for t in waiting if self._field(t) == set(asked.engines)), None)
            if tie is None:
                level = ", ".join(asked.engines)
                yield None, f"{level} are level across a line, and no playoff of theirs was played"
                continue
            waiting.remove(tie)
            playoff = _Event(self, self._tied(tie), tie).state()
            playoff.parts, playoff.leads = asked, tuple(map(frozenset, leads))
            yield from self._parting(playoff, waiting)

    def _field(self, event: record.Event) -> set[str]:
        return {self.engine(name) or name for name in event.engines}

    def _nested(self, tie: record.Event, ties: Sequence[record.Event]) -> Iterator[str]:
        """Yield what is wrong with a playoff that follows another one of its engines."""
        field = self._field(tie)
        before = [other for other in ties[: ties.index(tie)] if field < self._field(other)]
        for other in before[-1:]:
            rows = _Event(self, self._tied(other), other).rows()
            own = {row.rank for row in rows if row.engine in field}
            if len(own) > 1:
                yield f"its engines were not level in {other.source}"

    def _tie(
        self, tie: record.Event, spec: model.Event, differs: list[str], notes: list[str]
    ) -> Compared:
        own = spec if spec.id.endswith("-tiebreak-1") else self._tied(tie)
        differences, remarks = _Event(self, own, tie).differences()
        of = own.name.removesuffix(" Tiebreak 1") if not notes else "an event without a record"
        return Compared(
            tie, self.spec.id, f"playoff of {of}", (*differs, *differences), (*notes, *remarks)
        )


class _Event:
    """One event of the file beside its record."""

    def __init__(self, season: _Season, spec: model.Event, event: record.Event) -> None:
        self.season, self.spec, self.record = season, spec, event
        listed = spec.id in {listed_event.id for listed_event in season.spec.events}
        self._who = {
            name: season.engine(name) or (None if listed else name) for name in event.engines
        }

    def differences(self) -> tuple[list[str], list[str]]:
        """Return what differs, and what could not be compared."""
        unknown = [name for name, engine in self._who.items() if engine is None]
        if unknown:
            return [f"not in the roster: {', '.join(unknown)}{_SUBSTITUTED}"], []
        field, notes = self._field()
        names = {engine for engine in self._who.values() if engine is not None}
        if field is not None and set(field) != names:
            return [_fields(field, names)], notes
        seeds, more = self._seeds(field)
        notes += more
        differs = [*self._placed(seeds), *self._games(seeds), *self._clocks(), *self._starts()]
        return differs, notes

    # -- who plays -------------------------------------------------------------------

    def _field(self) -> tuple[list[str] | None, list[str]]:
        """Return the field in the order of entry, None where a source has no record."""
        field = list(plan.listed(self.spec, self.season.roster))
        notes: list[str] = []
        if self.spec.id not in {event.id for event in self.season.spec.events}:
            return None, notes
        complete = True
        for promotion, source in self._sources():
            order = self.season.table(source)
            if order is None:
                complete = False
                notes.append(f"who came from {source} is not in the record")
            elif self.season.level_at(source, promotion.places):
                notes.append(f"{source} left places level that went on; the organizers chose")
                complete = False
            else:
                field += [order[rank - 1] for rank in promotion.places]
        return (field if complete else None), notes

    def _sources(self) -> Iterator[tuple[model.Promotion, str]]:
        for event in self.season.spec.events:
            for promotion in event.promote:
                if promotion.to == self.spec.id:
                    yield promotion, event.id

    def _seeds(self, field: Sequence[str] | None) -> tuple[list[str], list[str]]:
        """Return the seeds that the file predicts, else those that the games tell."""
        if isinstance(self.spec.format, model.Knockout):
            return self._matched(field)
        match self.spec.seeding:
            case "entry" if field is not None:
                return list(field), []
            case model.Groups(groups=groups) if field is not None:
                return seeding.by_groups(field, groups), []
            case tuple() as places if field is not None:
                return [self._at(source) for source in places], []
        lot = self.spec.seeding == "lot"
        return self._solved(), ["seeds by lot: as the first games tell them"] if lot else []

    def _at(self, source: str) -> str:
        event, _, number = source.rpartition(".")
        return (self.season.table(event) or [])[int(number) - 1]

    def _solved(self) -> list[str]:
        """Return the seeds that make the first games those of the format."""
        size = len(self._who)
        format_ = registry.build(self.spec.format, base.Field(size))
        names: dict[int, str] = {}
        boards: list[base.Board] = []
        for index in range(format_.rounds):
            drawn = format_.pair(index, base.History(index))
            if drawn is None:
                break
            boards += drawn.boards
        for board, game in zip(boards, self.record.games, strict=False):
            for number, name in ((board.white, game.white), (board.black, game.black)):
                if self._id(name) not in names.values():
                    names.setdefault(number, self._id(name))
        rest = [engine for engine in map(self._id, self._who) if engine not in names.values()]
        return [names[n] if n in names else rest.pop(0) for n in range(size)]

    def _matched(self, field: Sequence[str] | None) -> tuple[list[str], list[str]]:
        """Return a knockout's engines in the order of its matches, as the file or games have it."""
        spec = self.spec.format
        if field is not None and isinstance(spec, model.Knockout) and spec.bracket == "listed":
            return list(field), []
        order: list[str] = []
        for game in self.record.games:
            # White of the first game is the later of the two (``first_white``), or unplaced.
            pair = [self._id(game.black), self._id(game.white)]
            if pair[0] not in order:
                order += pair
        return order, ["matches as drawn, or as a round without a record left them"]

    def _id(self, name: str) -> str:
        return self._who[name] or name

    # -- what was played -------------------------------------------------------------

    def _games(self, seeds: Sequence[str]) -> Iterator[str]:
        """Yield games that are not those which the format draws, by the results so far."""
        format_ = self._format(seeds)
        rounds = list(_drawn(format_, self._numbers(seeds)))
        boards = [board for pairing in rounds for board in pairing.boards]
        wrong = [
            f"game {number}: {seeds[board.white]} - {seeds[board.black]} by the rules,"
            f" {self._id(game.white)} - {self._id(game.black)} in the record"
            for number, (board, game) in enumerate(
                zip(boards, self.record.games, strict=False), start=1
            )
            if (seeds[board.white], seeds[board.black])
            != (self._id(game.white), self._id(game.black))
        ]
        yield from _some(wrong, "games")
        games = self.record.games
        if len(boards) != len(games):
            yield f"{len(boards)} games by the rules, {len(games)} in the record"
        if not wrong:
            yield from self._openings(boards)

    def _placed(self, seeds: Sequence[str]) -> Iterator[str]:
        """Yield matches of a drawn bracket that do not hold the seed that the file places there."""
        spec, listed = self.spec.format, plan.listed(self.spec, self.season.roster)
        if not isinstance(spec, model.Knockout) or spec.bracket == "listed" or not listed:
            return
        order = knockout.equal_distance(spec.placed) if spec.placed else []
        for number, seed in enumerate(order):
            slot = number * len(seeds) // len(order)
            if listed[seed] not in seeds[slot : slot + 2]:
                yield f"match {slot // 2 + 1}: {listed[seed]} (seed {seed + 1}) stands elsewhere"

    def _format(self, seeds: Sequence[str]) -> base.Format:
        spec = self.spec.format
        if isinstance(spec, model.Knockout):
            ranks = self._ranks(seeds)
            return knockout.Knockout(base.Field(len(seeds), ranks), spec.pairs, spec.first_white)
        return registry.build(spec, base.Field(len(seeds)))

    def _ranks(self, seeds: Sequence[str]) -> tuple[int, ...]:
        """Return the seeds of a Cup's first round: the placed ones, then all others alike."""
        listed = plan.listed(self.spec, self.season.roster)
        numbers = {engine: number for number, engine in enumerate(listed)}
        placed = range(0, len(seeds), 4)
        return tuple(
            numbers.get(engine, number // 4 if number in placed else len(seeds) + number)
            for number, engine in enumerate(seeds)
        )

    def _numbers(self, seeds: Sequence[str]) -> list[tuple[int, int, tuple[int, int] | None]]:
        number = {engine: index for index, engine in enumerate(seeds)}
        return [
            (
                number[self._id(game.white)],
                number[self._id(game.black)],
                None if game.result is None else tally.halves(game.result),
            )
            for game in self.record.games
        ]

    def _openings(self, boards: Sequence[base.Board]) -> Iterator[str]:
        shared: dict[int, set[object]] = {}
        for board, game in zip(boards, self.record.games, strict=False):
            unplayed = reasons.set_by_people(game.ended) and game.opening == (None, ())
            if not unplayed:
                shared.setdefault(board.slot, set()).add(game.opening)
        wrong = sum(len(openings) > 1 for openings in shared.values())
        if wrong:
            yield f"{wrong} of {len(shared)} openings are not shared by the games that should"

    def _clocks(self) -> Iterator[str]:
        wrong = []
        for number, game in enumerate(self.record.games, start=1):
            sides = (game.white, game.black)
            due = tuple(str(self.spec.odds.get(self._id(s), self.spec.time_control)) for s in sides)
            if due != game.clocks:
                shown = [" v ".join(dict.fromkeys(clocks)) for clocks in (due, game.clocks)]
                wrong.append(
                    f"game {number}: clocks {shown[0]} by the file, {shown[1]} in the record"
                )
        yield from _some(wrong, "clocks")

    def _starts(self) -> Iterator[str]:
        due = _starts(self.spec)
        wrong = [
            f"game {number}: a start position of kind {game.start}"
            for number, game in enumerate(self.record.games, start=1)
            if game.start not in due
        ]
        yield from _some(wrong, "start positions")

    # -- how it ended ----------------------------------------------------------------

    def rows(self) -> tuple[standings.Row, ...]:
        """Return the final table by the event's tiebreaks."""
        seeds, _ = self._seeds(None)
        counted = tally.Tally(tuple(seeds))
        for game in self.record.games:
            if game.result is not None:
                counted.add(self._id(game.white), self._id(game.black), _finished(game))
        format_ = self._format(seeds)
        levels = format_.order(
            _history(self._numbers(seeds), list(_drawn(format_, self._numbers(seeds))))
        )
        if levels is None:
            return standings.rank(counted, self.spec.tiebreaks)
        return standings.by_matches(counted, [[seeds[n] for n in level] for level in levels])

    def state(self) -> events.EventState:
        """Return the event as the season has it when it is ranked."""
        event = events.EventState(self.spec)
        event.status, event.rows = events.Status.RANKED, self.rows()
        return event


def _drawn(
    format_: base.Format, games: Sequence[tuple[int, int, tuple[int, int] | None]]
) -> Iterator[base.Pairing]:
    """Yield the rounds that a format draws while the recorded games are its results."""
    rounds: list[base.Pairing] = []
    while True:
        played = _history(games, rounds)
        if format_.complete(len(rounds), played):
            return
        drawn = format_.pair(len(rounds), played)
        if drawn is None:
            return
        yield drawn
        rounds.append(drawn)


def _history(
    games: Sequence[tuple[int, int, tuple[int, int] | None]], rounds: Sequence[base.Pairing]
) -> base.History:
    """Return the rounds so far with the recorded results, game by game."""
    boards = [(pairing.round, board) for pairing in rounds for board in pairing.boards]
    played = [
        base.Game(white, black, number, result)
        for (number, _), (white, black, result) in zip(boards, games, strict=False)
    ]
    missing = [base.Game(b.white, b.black, number) for number, b in boards[len(played) :]]
    byes = [(pairing.round, engine) for pairing in rounds for engine in pairing.byes]
    return base.History(len(rounds), lambda: (*played, *missing), byes)


def _finished(game: record.Game) -> contract.GameFinished:
    loser = None if game.result is None else verdict.loser_of(game.result)
    ending = next(
        (ending for word, ending in _CRASHES.items() if word in game.ended),
        contract.Ending.CHECKMATE,
    )
    outcome = contract.Outcome(
        result=game.result or "1/2-1/2", ending=ending, loser=loser, details=game.ended
    )
    return verdict.untold(outcome, "recorded")


def _starts(spec: model.Event) -> frozenset[record.Start]:
    """Return the kinds of start positions that an event may have; a book's exits may be any."""
    kinds: set[record.Start] = {"standard"}
    if spec.variant == "fischerandom":
        kinds |= {"chess960"}
    if spec.double_random:
        kinds |= {"double-chess960"}
    if spec.book is not None:
        kinds |= {"position"}
    return frozenset(kinds)


def _fields(field: Iterable[str], names: set[str]) -> str:
    without = ", ".join(sorted(set(field) - names)) or "nobody"
    more = ", ".join(sorted(names - set(field))) or "nobody"
    return f"field: by the file also {without}, in the record also {more}"


def _some(wrong: Sequence[str], of: str) -> Iterator[str]:
    """Yield the first disagreements of a kind, and how many more there are."""
    yield from wrong[:_SHOWN]
    if len(wrong) > _SHOWN:
        yield f"and {len(wrong) - _SHOWN} more {of}"


# -- tests between events --------------------------------------------------------------


def _tests(event: record.Event) -> Compared:
    """Judge test games: pairs of games, the reverse game with the same opening at once.

    The reverse game may be played by another version of an engine, and a session may end in the
    middle of its last pair.
    """
    alone, unlike, number = [], 0, 0
    while number < len(event.games):
        first, *rest = event.games[number : number + 2]
        if not rest or not _reversed(first, rest[0]):
            if number + 1 < len(event.games):
                alone.append(f"game {number + 1}: {first.white} - {first.black}: no reverse game")
            number += 1
            continue
        unlike += first.opening != rest[0].opening or first.clocks != rest[0].clocks[::-1]
        number += 2
    differs = list(_some(alone, "games alone"))
    if unlike:
        differs.append(f"{unlike} pairs of games with different openings or clocks")
    return Compared(event, "", "tests", tuple(differs))


def _reversed(first: record.Game, second: record.Game) -> bool:
    """Say whether two games are of the same engines, whatever their versions, in turned colours."""
    sides = [name.split(" ")[0].lower() for name in (first.white, first.black)]
    return sides[::-1] == [name.split(" ")[0].lower() for name in (second.white, second.black)]
