"""A test match from the operator's side: open it, mirror and fold its results, end it.

The match is dealt by its lanes' claims (``ledger.lanes``); this process decides nothing
about single games. It may be killed at any moment: the lanes play on as far as results
may wait (``lanes.LEAD``), and a keeper started again goes on where its mirror ends.

Invariants: a result counts when it is in the mirror; results set aside stay in the mirror
and in ``set-aside.pgn``, never in ``games.pgn``; a game that is lost ``LOSSES`` times ends
the match with its reason, for something is wrong that playing does not repair;
what is read begins with the entry that the mirror ends with, so that a Redis that came back without
its last entries, emptied or grown again, is seen by the first look, and the match is opened again
where its mirror ends; an entry that cannot be counted is never mirrored, and ends the match;
results of remote workers that are not believed (``worker_review``) are set aside before anything
is said of the match, and their games dealt again.
"""

from __future__ import annotations

import dataclasses
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import pydantic

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.contract.remote import SourceBuild
from orchestrator.ledger import api, journal_mirror, lane_store, lanes, store
from orchestrator.rating import elo, results, sprt, tally
from orchestrator.testmatch import orders, spsa, worker_review, worker_verdicts

RING_SECONDS = 5.0  # s: a lane that plays nothing is rung again
LOOK_SECONDS = 1.0  # s: between two looks at all lanes; results come many times as often
KEEPER = "farm match test"  # who writes down what follows from the results
PRIORITY, SHARE = 1_000_000, 1_000_000  # of a match, at most
LOSSES = 3  # times one game may be lost before the match is given up
MOST = orders.LAST_GAME  # games of a match
BATCH = 500  # entries read at once: bounds memory, not work
FAULTS = worker_review.FAULTS  # the loser's own doing: what a self-check looks for
SHOWN_FAULTS = (
    20  # of different words: a build that crashes in each game fills no more of a terminal
)
SHOWN_GAMES = 10  # numbers of games behind one fault
POINTS = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}  # of White
# What is counted is the entry as it stands, so a number must be one: no text that looks like it.
_Number = Annotated[int, pydantic.Field(ge=1, strict=True)]
_Whole = Annotated[int, pydantic.Field(gt=-(1 << 63), lt=1 << 63, strict=True)]
_Nats = Annotated[float, pydantic.Field(le=100.0, allow_inf_nan=False, strict=True)]


class _Heard(pydantic.BaseModel):
    """When a worker's last answer came."""

    at_ms: _Whole
    boot_ms: _Whole


class _Clock(pydantic.BaseModel):
    """A worker's clocks beside Redis'."""

    process: str
    at_ms: _Whole
    boot_ms: _Whole
    day_ms: _Whole
    heard: _Heard | None = None


class _Stamps(pydantic.BaseModel):
    """What thinking times say of a worker's clock."""

    plies: _Whole
    repeated: _Whole
    overhead_ns: _Whole


class _Counted(pydantic.BaseModel):
    """What is read of an entry that tells a result; the rest is nobody's business here."""

    game: _Number
    host: str
    result: contract.Result
    ending: contract.Ending
    loser: contract.Side | None
    details: str
    note: str
    stderr: str = ""  # the end of what the loser of a fault wrote there
    pgn: str
    hall: str = ""
    attempt: str = ""
    clock: _Clock | None = None
    stamps: _Stamps | None = None
    unmet: str = ""


class _Lost(pydantic.BaseModel):
    """What is read of an entry that tells of a lost game."""

    game: _Number
    cause: str
    evidence: str = ""


class _Aside(pydantic.BaseModel):
    """What is read of an entry that sets results aside."""

    games: tuple[_Number, ...]


class _Condemned(_Aside):
    """What is read of an entry that condemns an owner of workers."""

    token: str
    reason: str


class _Pardoned(pydantic.BaseModel):
    """What is read of an entry that pardons him."""

    token: str


class _Build(pydantic.BaseModel):
    """What is read of an entry that tells of a build."""

    worker: str
    name: str
    build: str
    why: str


class _Carried(pydantic.BaseModel):
    """What is read of the evidence of earlier matches."""

    nats: Mapping[str, tuple[_Nats, ...]]


class _Tuned(pydantic.BaseModel):
    """What is read of the values that a tuning's games are dealt with."""

    first: _Number
    done: Annotated[int, pydantic.Field(ge=0, strict=True)]
    values: tuple[Annotated[float, pydantic.Field(allow_inf_nan=False, strict=True)], ...]


class _Stop(pydantic.BaseModel):
    """What is read of a wish to stop the match."""

    reason: str = ""


class _Change(pydantic.BaseModel):
    """What is read of a wish to deal the match otherwise; None leaves a number as it is."""

    priority: Annotated[int, pydantic.Field(ge=-PRIORITY, le=PRIORITY)] | None = None
    share: Annotated[int, pydantic.Field(ge=1, le=SHARE)] | None = None


_READ: Mapping[str, type[pydantic.BaseModel]] = {
    lanes.GAME: _Counted,
    lanes.LOST: _Lost,
    lanes.ASIDE: _Aside,
    lanes.CONDEMNED: _Condemned,
    lanes.PARDONED: _Pardoned,
    lanes.CARRIED: _Carried,
    lanes.TUNED: _Tuned,
    lanes.STOP: _Stop,
    lanes.CHANGE: _Change,
    lanes.BUILD: _Build,
}


@dataclasses.dataclass(frozen=True)
class Terms:
    """What is asked of the results, and how lanes are shared with other matches."""

    test: sprt.Test | None = None
    priority: int = 0
    share: int = 1
    halls: tuple[str, ...] = ()
    min_nps: int = 0
    gpus: int = 0
    one_node: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the terms as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Terms:
        """Read what ``facts`` returned."""
        test = None if raw["test"] is None else sprt.Test(**raw["test"])
        return cls(**{**raw, "test": test, "halls": tuple(raw["halls"])})


@dataclasses.dataclass(frozen=True)
class Fault:
    """A game that counts and that an engine lost by a fault, and what it wrote to stderr last."""

    game: int
    engine: str
    what: str
    stderr: str = ""

    @classmethod
    def of(cls, spec: orders.Spec, data: Mapping[str, Any]) -> Fault:
        """Read it from the entry of a game that ended by a fault."""
        tested = (data["loser"] == "white") == spec.white_is_tested(data["game"])
        engine = spec.engines[0 if tested else spec.opponent(data["game"])]
        what = ": ".join(filter(None, (data["details"], data["note"])))
        return cls(data["game"], engine.name, what, data.get("stderr", ""))

    @property
    def said(self) -> tuple[str, ...]:
        """Return the lines of its stderr, but for a last one that ends ``what`` already."""
        lines = tuple(self.stderr.splitlines())
        is_told = bool(lines) and self.what.endswith(f": {lines[-1].strip()}")
        return lines[:-1] if is_told else lines

    def __str__(self) -> str:
        return f"game {self.game}: {self.engine}: {self.what}"


@dataclasses.dataclass(frozen=True)
class Repeated:
    """A fault and the games that were lost by it in the same words, the first ones by number."""

    fault: Fault
    games: tuple[int, ...]

    def __str__(self) -> str:
        if len(self.games) == 1:
            return str(self.fault)
        numbers = ", ".join(map(str, self.games[:SHOWN_GAMES]))
        more = ", …" if len(self.games) > SHOWN_GAMES else ""
        return f"{len(self.games)} games ({numbers}{more}): {self.fault.engine}: {self.fault.what}"


def last_faults(faults: Sequence[Fault]) -> tuple[list[Repeated], int]:
    """Return faults, those in the same words once, the last ``SHOWN_FAULTS`` by their last game.

    The number is that of the games which these leave out.
    """
    games: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        games.setdefault((fault.engine, fault.what, fault.stderr), []).append(fault)
    together = sorted(games.values(), key=lambda equal: equal[-1].game)
    last = [
        Repeated(equal[0], tuple(fault.game for fault in equal))
        for equal in together[-SHOWN_FAULTS:]
    ]
    return last, len(faults) - sum(len(repeated.games) for repeated in last)


@dataclasses.dataclass(frozen=True)
class Standing:
    """What is known of a match: counts, the ratio of its test, and its faults."""

    games: int
    total: int
    counts: results.Counts
    opponents: tuple[results.Counts, ...]
    llr: float | None
    verdict: sprt.Verdict | None
    set_aside: int
    lost: int
    faults: tuple[Fault, ...]
    failed_builds: tuple[str, ...] = ()  # on workers; `farm match show` has their logs
    workers: tuple[worker_review.Review, ...] = ()  # remote ones, those to look at first
    course: spsa.Course | None = None  # of a tuning

    @property
    def over(self) -> bool:
        """Say whether nothing more is to be played."""
        return self.verdict is not None or self.games == self.total

    def as_json(self) -> dict[str, object]:
        """Return the standing for programs; infinite bounds are ``null``."""
        logistic, normalized = elo.logistic(self.counts), elo.normalized(self.counts)
        return {
            "games": self.games,
            "of": self.total,
            **dataclasses.asdict(self.counts),
            "elo": _finite(logistic.elo),
            "error": _finite(logistic.error),
            "normalized_elo": _finite(normalized.elo),
            "normalized_error": _finite(normalized.error),
            "los": elo.superiority(self.counts),
            "llr": self.llr,
            "verdict": self.verdict,
            "opponents": [dataclasses.asdict(opponent) for opponent in self.opponents],
            "set_aside": self.set_aside,
            "lost": self.lost,
            "faults": list(map(str, self.faults)),
            "failed_builds": list(self.failed_builds),
            "workers": [review.as_json() for review in self.workers],
            "tuning": None if self.course is None else self.course.as_json(),
        }


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


class Results:
    """The results of a match as its journal tells them, and who has played them.

    ``late`` are games whose results came from an owner who was condemned before: to deal again.
    ``fresh`` says that nothing was played, nor any evidence of earlier matches taken.
    """

    def __init__(self, spec: orders.Spec) -> None:
        """Start with nothing played."""
        self.tally = tally.Tally(spec.opponents)
        self.review = worker_review.WorkerReview(spec)
        self.course = (
            None if spec.tuning is None else spsa.Course(spec.tuning, spec.lots, self.tally.points)
        )
        self.late: set[int] = set()
        self.fresh = True
        self._spec = spec
        self._faults: dict[int, Fault] = {}  # by game

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return the faults of games that count, in the order of the games."""
        return tuple(fault for game, fault in sorted(self._faults.items()) if self.tally.has(game))

    def take(self, entry: contract.Entry) -> bool:
        """Take an entry; return whether it is the result of a game that counts now."""
        data = entry.data
        if entry.kind == lanes.GAME:
            self.fresh = False
            return self._play(data)
        if entry.kind == lanes.ASIDE:
            self._aside(data["games"])
            self.late.difference_update(data["games"])
        elif entry.kind == lanes.CONDEMNED:
            # Results may have come between the decision and its entry: they are dealt again, too.
            counted = set(self.tally.of_owner(data["token"]))
            self.late |= counted - set(data["games"])
            self._aside(sorted(counted))
            self.review.condemn(data["token"], data["reason"])
        elif entry.kind == lanes.PARDONED:
            self.review.pardon(data["token"])
        elif entry.kind == lanes.CARRIED:
            self.fresh = False
            self.review.carry(data["nats"])
        elif entry.kind == lanes.TUNED and self.course is not None:
            self.course.take(data)
        return False

    def _aside(self, games: Sequence[int]) -> None:
        had = self.tally.aside(games)
        if self.course is not None:
            self.course.aside(had)

    def _play(self, data: Mapping[str, Any]) -> bool:
        game, owner = data["game"], worker_review.owner(data)
        if self._spec.is_check(game):
            self.review.check(data)
            return False
        if self.review.condemned(owner):
            self.late.add(game)
            return False
        if not self.tally.add(game, _points(self._spec, data), data["host"], owner):
            return False
        self.review.game(data)
        self._faults.pop(game, None)  # of a result that was set aside
        if data["loser"] and data["ending"] in FAULTS:
            self._faults[game] = Fault.of(self._spec, data)
        if self.course is not None:
            self.course.add(game)
        return True


class Keeper:
    """Keeps one test match: its mirror, its tally, its files."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        ledger_lanes: lane_store.RedisLanes,
        directory: pathlib.Path,
        spec: orders.Spec,
        terms: Terms,
        verdicts: worker_verdicts.Verdicts | None = None,
    ) -> None:
        """Fold what the mirror has; raise ``RefusedError`` when another keeper is at work.

        Raise it, too, where another match of this name was played here. Without ``verdicts``
        nothing follows from what remote workers have done.
        """
        self._ledger, self._lanes, self._spec, self._terms = ledger, ledger_lanes, spec, terms
        self._directory = directory
        self._journal = lanes.journal(spec.id)
        self._verdicts = verdicts
        self._words: dict[str, worker_verdicts.Word] = {}  # what was said elsewhere of owners
        self._dealt_checks: dict[int, int] = {}  # check to the runs that lanes had had then
        self._checked_again: set[str] = set()
        self._results = Results(spec)
        self._tally, self._review = self._results.tally, self._results.review
        self._reviews: tuple[worker_review.Review, ...] = ()
        self._reviewed = float("-inf")  # s, monotonic
        self._course = self._results.course
        self.stopped: tuple[str, str] | None = None  # who asked to stop it since, and why
        self._wished: contract.Entry | None = None  # the last wish to deal it otherwise
        self._all_dealt = False  # of a tuning: no game is left for new values
        self._unmet: dict[int, str] = {}  # options that an engine did not take, by game
        self._losses: Counter[int] = Counter()
        self._why = ""
        self._failed_builds: dict[str, str] = {}  # by worker and engine: why
        self._mirror = journal_mirror.Mirror(directory / "journal.jsonl")
        self._end = ""  # the mirror's last line
        self._by = api.FARM
        self._keeps = False  # the match is open, and nobody else keeps it
        self.reopened = 0  # times that Redis came back with another past than the mirror's
        self._rung: dict[tuple[str, str], float] = {}
        self._looked = float("-inf")  # s, monotonic: at the lanes
        self._pgn = directory / "games.pgn"
        self._unsorted = False  # the PGN files hold results that were set aside since
        try:
            self._require_same()  # before games are counted: another match has other numbers
            self._count_mirror()
        except BaseException:
            self._mirror.close()
            raise

    def _count_mirror(self) -> None:
        """Fold what the mirror has, and write the PGN files again."""
        self._pgn.unlink(missing_ok=True)
        (self._directory / "set-aside.pgn").unlink(missing_ok=True)
        longest = self._spec.model_copy(update={"games": MOST})  # it may have been shortened since
        for entry in journal_mirror.entries(self._mirror.path):
            if why := _wrong(entry, longest):
                raise errors.LedgerDamagedError(
                    f"{self._mirror.path}: line {entry.seq} ({entry.kind}) cannot be counted:"
                    f" {why}; move the folder away, and the match begins again from game 1"
                )
            self._fold(entry)
            self._end = entry.line()
        self._sort_games()

    def close(self) -> None:
        """Close the mirror."""
        self._mirror.close()

    def open(self, by: str) -> None:
        """Let the match be dealt from where its mirror ends; keep how it was ordered.

        Raise ``RefusedError`` where another match of this name is open, or has more games already.
        """
        self._by = by
        if self._tally.next > self._spec.games + 1:
            raise errors.RefusedError(
                f"{self._spec.id} has played {self._tally.next - 1} games: it cannot have"
                f" {self._spec.games}; `farm match test --id {self._spec.id}` goes on with it as it"
                " is, or shows it, --games makes it longer"
            )
        spec = self._spec.encode()
        if self._mirror.last and self._lanes.spec(self._spec.id) not in {None, spec}:
            self._lanes.close_match(self._spec.id)  # its other games are dealt again
        match = lanes.Match(
            id=self._spec.id,
            games=self._spec.games,
            spec=spec,
            halls=self._terms.halls,
            priority=self._terms.priority,
            share=self._terms.share,
            needs=self.needs(),
            next=self._tally.next,
            again=tuple(self._tally.missing()),
            values=() if self._course is None else tuple(self._course.kept()),
        )
        if isinstance(self._lanes.open_match(match, by, self._mirror.last), lanes.Elsewhere):
            raise errors.RefusedError(
                f"a test match {self._spec.id} is open already, and is not kept in"
                f" {self._directory}: end it with Ctrl-C where it is, or give this one another --id"
            )
        self._keeps = True
        self._all_dealt = False  # Redis may have lost that it was open
        order = encoded(self._spec, self._terms).encode()
        files.write(self._directory / "match.json", order)

    def _require_same(self) -> None:
        """Raise ``RefusedError`` where the results kept here are of another match.

        One that was opened with other engines, clocks, openings or bounds is; more games are no
        difference.
        """
        try:
            before, terms = load(self._directory)
        except errors.RefusedError:
            return
        if not self._mirror.last:
            return
        match = self._spec.id
        others, by_remote = _differences(before, self._spec)
        if others:
            what = f"{others[0]} was another"
        elif terms.test != self._terms.test:
            # Bounds that are chosen by the results make the test's errors more frequent.
            what = f"its --sprt was {terms.test.spoken}" if terms.test else "it had no --sprt"
        elif by_remote:
            opened, instead = ("with", "add it") if before.remote else ("without", "leave it out")
            raise errors.RefusedError(
                f"{match} was opened {opened} --remote: {instead}, or `farm match test --id"
                f" {match}` goes on with it as it is ({self._directory})"
            )
        else:
            return
        raise errors.RefusedError(
            f"{self._directory} holds games of another match {match} ({what}); `farm match test"
            f" --id {match}` goes on with that one, another --id begins this one"
        )

    @property
    def position(self) -> tuple[str, int]:
        """Return the match's journal, and the last of its entries that is kept."""
        return self._journal, self._mirror.last

    def needs(self) -> lanes.Needs:
        """Return what a lane must have for this match."""
        return lanes.Needs(
            threads=self._spec.threads,
            memory_mb=self._spec.memory_mb,
            gpus=self._terms.gpus,
            one_node=self._terms.one_node,
            nps=self._terms.min_nps,
            boxes=self._spec.boxes,
        )

    def step(self, ring: Callable[[str], None], wait_ms: int) -> Standing:
        """Ring idle lanes, wait for results and fold them; return where the match stands."""
        looked = self._ring(ring)
        self._ledger.wait({self._journal: self._mirror.last}, wait_ms)
        self._take_results()
        while self._judge(looked=looked):
            looked = False
            self._take_results()
        self._tune()
        self._change()
        return self.standing()

    def _change(self) -> None:
        """Let the match be dealt as somebody has asked since the last look."""
        if self._wished is None:
            return
        wished, self._wished = _Change.model_validate(self._wished.data), None
        given = {key: value for key, value in wished.model_dump().items() if value is not None}
        self._terms = dataclasses.replace(self._terms, **given)
        self.open(self._by)

    def _tune(self) -> None:
        """Let later games of a tuning be dealt with the values that have come of the others."""
        course, tuning = self._course, self._spec.tuning
        if course is None or tuning is None or self._all_dealt or not course.due:
            return
        dealt = lanes.Tuned(course.values, course.done, 2 * tuning.pairs, tuning.iterations)
        self._all_dealt = not self._lanes.tune(self._spec.id, dealt, KEEPER)
        self._take_results()

    def _take_results(self) -> None:
        """Mirror and count what is new; raise ``LedgerDamagedError`` for what cannot be counted."""
        while entries := self._new_entries():
            wrong = next(
                (at for at, candidate in enumerate(entries) if _wrong(candidate, self._spec)),
                len(entries),
            )
            self._keep(entries[:wrong])
            for entry in entries[wrong:]:
                raise errors.LedgerDamagedError(
                    f"{self._spec.id}: entry {entry.seq} ({entry.kind}, by {entry.by[:80]!r})"
                    f" cannot be counted: {_wrong(entry, self._spec)}; look at that worker, then"
                    f" `farm match test --id {self._spec.id}` goes on without the entry"
                )

    def _keep(self, entries: Sequence[contract.Entry]) -> None:
        """Mirror and count what may be counted."""
        self._mirror.extend(entries)
        for entry in entries:
            self._fold(entry)
            self._end = entry.line()
            if entry.kind == lanes.STOP:
                self.stopped = entry.by, entry.data.get("reason", "")
            elif entry.kind == lanes.CHANGE:
                self._wished = entry
        self._sort_games()
        self._lanes.forget(self._spec.id, self._mirror.last)

    def _new_entries(self) -> Sequence[contract.Entry]:
        """Return what follows the mirror's end; open the match again where nothing can.

        The journal holds the mirror's last entry (``forget`` leaves it), or begins behind it.
        """
        last = self._mirror.last
        entries = self._ledger.read(self._journal, max(0, last - 1), BATCH)
        if not last:
            return entries
        if entries and entries[0].line() == self._end:
            return entries[1:]
        if entries and (entries[0].seq, entries[0].kind) == (last + 1, lanes.OPENED):
            return entries
        if entries and entries[0].seq > last:
            self._keeps = False
            raise errors.RefusedError(
                f"test match {self._spec.id} is kept by another process as well, which has read"
                f" further: end that one, then `farm match test --id {self._spec.id}`"
            )
        self.reopened += 1
        self._lanes.close_match(self._spec.id)
        self.open(self._by)
        return ()

    def finish(self) -> None:
        """End the match: nothing more is dealt; what still runs is told to stop."""
        if self._keeps:
            self._lanes.close_match(self._spec.id)
            if self._verdicts is not None:
                self._verdicts.close(self._review.carried())

    def standing(self) -> Standing:
        """Return where the match stands; raise ``HostError`` for a game that keeps being lost."""
        for game, times in self._losses.items():
            if times >= LOSSES:
                raise errors.HostError(
                    f"{self._spec.id}: game {game} was lost {times} times, last because of"
                    f" {self._why}; see the lane's log, and `farm match test --id {self._spec.id}`"
                    " goes on with it"
                )
        for game, why in self._unmet.items():
            if self._tally.has(game):
                raise errors.RefusedError(f"{self._spec.id}: game {game}: {why}; nothing is tuned")
        counts, test = self._tally.counts(), self._terms.test
        if (
            time.monotonic() - self._reviewed > LOOK_SECONDS
            or self._tally.games == self._spec.games
        ):
            self._reviewed, self._reviews = time.monotonic(), tuple(self._review.reviews())
        return Standing(
            games=self._tally.games,
            total=self._spec.games,
            counts=counts,
            opponents=tuple(
                self._tally.counts(opponent) for opponent in range(self._spec.opponents)
            ),
            llr=None if test is None else test.llr(counts),
            verdict=None if test is None else self._verdict(test, counts),
            set_aside=self._tally.set_aside,
            lost=self._losses.total(),
            faults=self._results.faults,
            failed_builds=tuple(self._failed_builds.values()),
            workers=self._reviews,
            course=self._course,
        )

    def _verdict(self, test: sprt.Test, counts: results.Counts) -> sprt.Verdict | None:
        """Return the test's verdict; it has to stand without those who are doubted, too.

        That makes tests longer and errors no more frequent: both have to pass the same bound.
        """
        verdict = test.verdict(counts)
        if verdict is not None and (doubted := self._review.doubted()):
            return verdict if test.verdict(self._tally.without(doubted)) == verdict else None
        return verdict

    # -- remote workers ----------------------------------------------------------------

    def _judge(self, *, looked: bool) -> bool:
        """Write down what follows from the results; return whether there is more to take."""
        if self._verdicts is None:
            return False
        drafts: list[contract.Draft] = []
        if looked:
            drafts += self._follow(self._verdicts.news())
            self._check_doubtful(self._verdicts)
        if self._results.fresh and (evidence := self._verdicts.evidence()):
            drafts.append(contract.Draft(lanes.CARRIED, {"games": [], "nats": evidence}))
        for finding in self._review.findings():
            self._verdicts.condemn(finding)
            drafts.append(self._condemnation(finding.token, finding.rule, finding.reason))
            self._reviewed = float("-inf")
        if late := sorted(self._results.late):
            content = {"games": late, "host": "", "reason": "of a token that was stopped"}
            drafts.append(contract.Draft(lanes.ASIDE, content))
        if wanted := self._wanted_checks():
            drafts.append(contract.Draft(lanes.CHECKED, {"games": wanted}))
        written = False
        for draft in drafts:
            games: list[int] = draft.data["games"]
            written |= self._lanes.replay(self._spec.id, games, draft, KEEPER)
        return written

    def _follow(self, news: list[worker_verdicts.Word]) -> list[contract.Draft]:
        """Return what other matches' and people's words mean here."""
        drafts, tokens = [], set(self._review.tokens())
        self._words.update({word.token: word for word in news})
        for word in news:
            if not word.reason and self._review.condemned(word.token):
                content = {"games": [], "token": word.token}
                drafts.append(contract.Draft(lanes.PARDONED, content))
        new = [word for word in self._words.values() if word.reason and word.token in tokens]
        return drafts + [
            self._condemnation(word.token, word.rule, word.reason)
            for word in new
            if not self._review.condemned(word.token)
        ]

    def _wanted_checks(self) -> list[int]:
        """Return the checks that lanes are to play now: workers have, and lanes are there."""
        wanted = {number: self._review.lane_runs(number) for number in self._review.wanted()}
        new = {
            number: runs
            for number, runs in wanted.items()
            if self._dealt_checks.get(number) != runs
        }
        if not new or not self.able():
            return []
        self._dealt_checks.update(new)
        return list(new)

    def _condemnation(self, token: str, rule: str, reason: str) -> contract.Draft:
        games = self._tally.of_owner(token)
        content = {"games": games, "token": token, "rule": rule, "reason": reason}
        return contract.Draft(lanes.CONDEMNED, content)

    def _check_doubtful(self, verdicts: worker_verdicts.Verdicts) -> None:
        for review in self._review.reviews():
            if review.state == "suspect" and review.token not in self._checked_again:
                self._checked_again.add(review.token)
                hosts = (name.rpartition("/")[2] for name in review.workers)
                verdicts.check_again([f"{review.token}/{host}" for host in hosts])

    # -- the fold ----------------------------------------------------------------------

    def _fold(self, entry: contract.Entry) -> None:
        data = entry.data
        if self._results.take(entry):
            self._count(data)
        elif entry.kind == lanes.LOST:
            if not self._spec.is_check(data["game"]):
                self._losses[data["game"]] += 1
                self._why = f"{data['cause']} ({data.get('evidence', '')})"
        elif entry.kind in {lanes.ASIDE, lanes.CONDEMNED} or self._results.late:
            self._unsorted = True
        elif entry.kind == lanes.BUILD and data["why"]:
            message = f"{data['worker']}: {data['name']} was not built: {data['why']}"
            self._failed_builds.setdefault(f"{data['worker']} {data['build']}", message)

    def _count(self, data: Mapping[str, Any]) -> None:
        game = data["game"]
        self._losses.pop(game, None)
        if why := data.get("unmet"):
            self._unmet.setdefault(game, why)
        with self._pgn.open("a", encoding="utf-8") as file:
            file.write(f"{data['pgn']}\n")

    def _sort_games(self) -> None:
        """Write the PGN files again: what counts in one, what was set aside in the other."""
        if not self._unsorted:
            return
        again = Results(self._spec)
        last_entry = {  # game to the last entry that was counted as its result
            entry.data["game"]: entry.seq
            for entry in journal_mirror.entries(self._mirror.path)
            if again.take(entry)
        }
        counted = {seq for game, seq in last_entry.items() if again.tally.has(game)}
        aside = self._directory / "set-aside.pgn"
        with (
            self._pgn.open("w", encoding="utf-8") as good,
            aside.open("w", encoding="utf-8") as bad,
        ):
            for entry in journal_mirror.entries(self._mirror.path):
                if entry.kind == lanes.GAME and not self._spec.is_check(entry.data["game"]):
                    file = good if entry.seq in counted else bad
                    file.write(f"{entry.data['pgn']}\n")
        self._unsorted = False

    # -- lanes -------------------------------------------------------------------------

    def _ring(self, ring: Callable[[str], None]) -> bool:
        """Ring lanes that play nothing: a new one soon, then at intervals. Say whether it looked.

        However many results come, all lanes are read once a second, and who plays once a hall.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        by_hall: dict[str, list[str]] = {}
        for lane in self.able():
            if now - self._rung.get((lane.hall, lane.name), float("-inf")) >= RING_SECONDS:
                by_hall.setdefault(lane.hall, []).append(lane.name)
        for hall, names in by_hall.items():
            playing = {lease.lane for lease in self._lanes.leases(hall)}
            for name in names:
                if name not in playing:
                    self._rung[hall, name] = now
                    ring(f"{hall}.{name}")
        return True

    def able(self) -> list[lanes.Lane]:
        """Return the lanes that may play this match."""
        return [
            lane
            for hall in self._terms.halls or self._ledger.halls()
            for lane in self._lanes.lanes_of(hall)
            if not self.needs().unmet(lane)
        ]


def _differences(before: orders.Spec, now: orders.Spec) -> tuple[list[str], bool]:
    """Return the fields by which two matches are others, and whether --remote makes them so.

    It pins the engines' files and adds checks; what differs by that alone is not named.
    """

    def differing(first: orders.Spec, second: orders.Spec) -> list[str]:
        names = [name for name, value in first if value != getattr(second, name)]
        return [name for name in names if name not in {"games", "remote"}]

    fields = differing(before, now)
    if before.remote == now.remote:
        return fields, False
    others = differing(_unpinned(before), _unpinned(now))
    return others, bool(fields)


def _unpinned(spec: orders.Spec) -> orders.Spec:
    """Return a match without what --remote adds to it."""
    loose: dict[str, dict[str, str]] = {"checksums": {}, "builds": {}}
    engines = tuple(engine.model_copy(update=loose) for engine in spec.engines)
    return spec.model_copy(update={"engines": engines, "check_nodes": 0})


def _wrong(entry: contract.Entry, spec: orders.Spec) -> str:
    """Say why an entry of a match cannot be counted, '' where it can."""
    kind = _READ.get(entry.kind)
    if kind is None:
        return ""
    try:
        payload = kind.model_validate(entry.data)
    except pydantic.ValidationError as error:
        return ": ".join(contract.first_wrong(error))
    games = payload.games if isinstance(payload, _Aside) else (getattr(payload, "game", 1),)
    wrong = [game for game in games if not spec.has(game)]
    if isinstance(payload, _Tuned):
        number = 0 if spec.tuning is None else len(spec.tuning.parameters)
        return (
            "" if len(payload.values) == number else f"values of {number} parameters are expected"
        )
    return f"there is no game {wrong[0]}" if wrong else ""


def _points(spec: orders.Spec, data: Mapping[str, Any]) -> float:
    """Return what a result brought the tested engine."""
    points = POINTS[data["result"]]
    return points if spec.white_is_tested(data["game"]) else 1 - points


def set_aside(
    ledger_lanes: lane_store.RedisLanes,
    match: str,
    folded: tally.Tally,
    host: str,
    by: str,
    reason: str,
) -> list[int]:
    """Set a host's results aside, kept and marked, and let their games be played again."""
    games = folded.of_host(host)
    if games:
        data: dict[str, object] = {"games": games, "host": host, "reason": reason}
        if not ledger_lanes.replay(match, games, contract.Draft(lanes.ASIDE, data), by):
            raise errors.RefusedError(f"test match {match} is over: nothing is replayed")
    return games


def folded(directory: pathlib.Path, spec: orders.Spec) -> Results:
    """Fold the results of a match's mirror, for a look beside its keeper."""
    folded_results = Results(spec)
    for entry in journal_mirror.entries(directory / "journal.jsonl"):
        folded_results.take(entry)
    return folded_results


@dataclasses.dataclass(frozen=True)
class Shown:
    """A match as its directory has it, whoever keeps it: counts by host, and workers' builds."""

    standing: Standing
    by_host: Mapping[str, int]
    builds: tuple[Mapping[str, Any], ...]


def shown(directory: pathlib.Path, spec: orders.Spec, terms: Terms) -> Shown:
    """Read a match from its mirror, beside its keeper."""
    results_folded = folded(directory, spec)
    counted, builds, lost = results_folded.tally, [], 0
    for entry in journal_mirror.entries(directory / "journal.jsonl"):
        if entry.kind == lanes.BUILD:
            builds.append(entry.data)
        lost += entry.kind == lanes.LOST
    counts, test = counted.counts(), terms.test
    return Shown(
        Standing(
            games=counted.games,
            total=spec.games,
            counts=counts,
            opponents=tuple(counted.counts(opponent) for opponent in range(spec.opponents)),
            llr=None if test is None else test.llr(counts),
            verdict=None if test is None else test.verdict(counts),
            set_aside=counted.set_aside,
            lost=lost,
            faults=results_folded.faults,
            failed_builds=tuple(
                f"{failed['worker']}: {failed['why']}" for failed in builds if failed["why"]
            ),
            course=results_folded.course,
        ),
        {name: counts.games for name, counts in counted.hosts().items() if counts.games},
        tuple(builds),
    )


def built_before(
    sources: Sequence[SourceBuild], workers: Iterable[str], builds: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield who has played with which builds that were made for an earlier match, and kept."""
    made = {(build["worker"], build["build"]) for build in builds}
    for worker in workers:
        kept_ones = [source.name for source in sources if (worker, source.id) not in made]
        if kept_ones:
            yield f"{worker}: {', '.join(kept_ones)}: built for an earlier match"


def encoded(spec: orders.Spec, terms: Terms) -> str:
    """Return how a match is ordered, as its folder keeps it."""
    return contract.dumps({"spec": spec.model_dump(mode="json"), "terms": terms.as_json()})


def load(directory: pathlib.Path) -> tuple[orders.Spec, Terms]:
    """Read how a match was ordered; raise ``RefusedError`` where there is none."""
    try:
        raw = contract.loads((directory / "match.json").read_bytes())
    except FileNotFoundError:
        others = ", ".join(path.name for path in kept(directory.parent)) or "none"
        raise errors.RefusedError(
            f"there is no test match {directory.name!r} in {directory.parent}; there are: {others}"
        ) from None
    return decoded(raw)


def decoded(raw: Mapping[str, Any]) -> tuple[orders.Spec, Terms]:
    """Read what ``encoded`` wrote."""
    return orders.Spec.model_validate(raw["spec"]), Terms.of(raw["terms"])


def is_kept(directory: pathlib.Path) -> bool:
    """Say whether a test match is in a directory."""
    return files.is_file(directory / "match.json")


def has_keeper(directory: pathlib.Path) -> bool:
    """Say whether a process of this machine keeps the test match in a directory."""
    return files.is_held(directory / "journal.jsonl")


def kept(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the directories of all test matches below a directory."""
    return sorted(path.parent for path in root.glob("*/match.json"))
