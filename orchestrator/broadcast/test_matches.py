"""Test matches of ``farm match test`` on the farm's page: their folders read, documents made.

A match is shown by the documents that ``farm match -live`` shows a match by, under the id
``test:NAME``. It is read of its mirror below the data directory (``testmatch.sprt_match`` writes
it); the ledger says which ones are open and what is played now. Invariants:

* nothing is written, and neither keeper nor lanes wait for the page;
* a result counts here when it counts for the keeper (``sprt_match.Results`` says so for both):
  those that were set aside do not, nor checks, nor what a condemned owner has played;
* of a match that is over only its line in the list is kept, unless somebody looks at it: then its
  mirror is read again. Of the others results are kept, moves never.
"""

from __future__ import annotations

import collections
import pathlib
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import structlog

from orchestrator import contract
from orchestrator.broadcast.content import documents, match_games, match_view, messages
from orchestrator.common import errors, text
from orchestrator.contract import remote
from orchestrator.ledger import batches, lane_store, lanes, store
from orchestrator.testmatch import match_journal, orders, sprt_match, worker_review

log = structlog.get_logger()

PREFIX: Final = "test:"  # of a match's id among seasons, whose ids hold no colon
LIST: Final = "tests"  # the place of the list
LOOK_SECONDS: Final = 2.0  # s: between two looks at the folders
LAST_SECONDS: Final = 10.0  # s: the last finished game is shown so often: it costs its positions
POINTS: Final = 300  # of the way that a tuning has gone
LOADED: Final = 8  # matches that are over, as somebody looked at them
RESTING_LINES: Final = 200  # of a mirror between two rests: live games go first
REST_SECONDS: Final = 0.005  # s
_DURATION: Final = re.compile(r'^\[GameDuration "(\d+):(\d+):(\d+)"\]', re.MULTILINE)
_DAMAGED: Final = (ValueError, KeyError, TypeError, OSError, errors.FarmError)


class Evidence(Protocol):
    """What the ledger says of test matches."""

    def open(self) -> Collection[str]:
        """Return the names of the matches that are dealt."""

    def leases(self) -> Sequence[lanes.Lease]:
        """Return what is played in all halls' lanes."""


class RedisEvidence:
    """The evidence of one Redis; any question may raise ``LedgerAwayError``."""

    def __init__(self, ledger: store.RedisLedger) -> None:
        self._ledger = ledger
        self._lanes = lane_store.RedisLanes(ledger.server)
        self._batches = batches.RedisBatches(ledger.server)

    def open(self) -> Collection[str]:
        """Return the names of the matches that are dealt."""
        return {match.id for match in self._batches.open_matches()}

    def leases(self) -> Sequence[lanes.Lease]:
        """Return what is played in all halls' lanes."""
        return [lease for hall in self._ledger.halls() for lease in self._lanes.leases(hall)]


class Place(NamedTuple):
    """Where test matches are found."""

    folder: pathlib.Path
    evidence: Evidence


class Match:
    """One match: its results as they stand in its mirror, and where in it each game lies."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Read how it was ordered; raise what a damaged file raises."""
        self.id = f"{PREFIX}{folder.name}"
        self.folder = folder
        self.opened_ms = (folder / "match.json").stat().st_mtime_ns // 1_000_000
        self.lock = threading.RLock()
        self.line: dict[str, Any] = {}  # in the list of all
        self._journal = folder / "journal.jsonl"
        raw = contract.loads((folder / "match.json").read_bytes())
        raw["spec"].pop("openings", None)  # as many as a book has; moves are in the games' PGN
        self._spec = orders.Spec.model_validate(raw["spec"])
        self._about = _about(self._spec, sprt_match.Terms.of(raw["terms"]))
        self.forget()

    def forget(self) -> None:
        """Keep of the match its line in the list alone."""
        self.view = match_view.MatchView(self._about, self.opened_ms, season=self.id, boards=0)
        self.games = match_games.Games(self._about, self, self.id)
        self._results = sprt_match.Results(self._spec)  # says which ones count
        self.view.tuning = self._tuning
        self.builds: dict[str, dict[str, Any]] = {}  # on workers, by who and what
        self._offsets: dict[int, int] = {}
        self._read = 0  # bytes of the mirror
        self.loaded = False
        self.shown: tuple[float, int] = (float("-inf"), 0)  # when, and which game was the last

    @property
    def grown(self) -> bool:
        """Say whether its mirror has what was not read."""
        return self._journal.exists() and self._journal.stat().st_size > self._read

    def read(self, rest: Callable[[], object] = lambda: None) -> bool:
        """Fold what its mirror has more; return whether there was anything."""
        self.loaded = True
        if not self._journal.exists():
            return False
        before = self._read
        with self._journal.open("rb") as file:
            file.seek(self._read)
            for count, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._fold(contract.Entry.from_line(line.decode()))
                self._read += len(line)
                if not count % RESTING_LINES:
                    rest()
        return self._read > before

    def _fold(self, entry: contract.Entry) -> None:
        if self._results.take(entry):
            result = _result(self._spec, self.view.names, entry)
            self._offsets[result.number] = self._read
            self.view.add(result)
        elif entry.kind in {lanes.ASIDE, lanes.CONDEMNED}:
            counts = self._results.tally.has
            self.view.set_aside([number for number in self.view.results if not counts(number)])
        elif entry.kind == lanes.BUILD:
            name = f"{entry.data['worker']} {entry.data['build']}"
            self.builds.pop(name, None)  # the last word comes last
            self.builds[name] = dict(entry.data)

    def reviews(self) -> list[worker_review.Review]:
        """Return what is known of the owners of remote workers, those to look at first."""
        return self._results.review.reviews()

    @property
    def faults(self) -> tuple[sprt_match.Fault, ...]:
        """Return the faults of games that count, in the order of the games."""
        return self._results.faults

    @property
    def sources(self) -> tuple[remote.SourceBuild, ...]:
        """Return the revisions that play, of engines that are built from source."""
        return tuple(filter(None, self._spec.builds))

    def text(self, number: int) -> str | None:
        """Return the PGN of a game, from the mirror."""
        offset = self._offsets.get(number)
        if offset is None:
            return None
        with self._journal.open("rb") as file:
            file.seek(offset)
            return str(contract.Entry.from_line(file.readline().decode()).data["pgn"])

    def stand(self, leases: Sequence[lanes.Lease], *, is_open: bool) -> None:
        """Take what is played now, and whether the match is over."""
        self.view.reason = None if is_open else self._why()
        names, spec = self.view.names, self._spec
        self.view.running = {
            board: match_view.Running(
                number=lease.game,
                round=str(lease.game),
                board=board,
                white=names[0 if spec.white_is_tested(lease.game) else spec.opponent(lease.game)],
                black=names[spec.opponent(lease.game) if spec.white_is_tested(lease.game) else 0],
                started_ms=0,
                place=f"{lease.hall}.{lease.lane}",
            )
            for board, lease in enumerate(leases, start=1)
        }

    def _tuning(self) -> dict[str, Any] | None:
        course = self._results.course
        return None if course is None else course.as_json(POINTS)

    def _why(self) -> str:
        accepted = (self.view.test()["sprt"] or {}).get("accepted")
        if accepted:
            return f"{accepted} accepted"
        whole = len(self.view.results) >= self._spec.games
        return "all games were played" if whole else "stopped"

    def overview(self, now_ms: int) -> dict[str, Any]:
        """Return its line in the list of all."""
        test, season = self.view.test(), self.view.season(1, now_ms)
        return {
            "season": self.id,
            "name": self.folder.name,
            "engines": list(self.view.names),
            "time_control": self._about.clocks,
            "status": season["status"],
            "reason": season["reason"],
            "opened_ms": self.opened_ms,
            "games": season["games"],
            "score": test["score"],
            "sprt": test["sprt"],
            "running": len(self.view.running),
            "tuned": [each.name for each in self._spec.tuning.parameters]
            if self._spec.tuning
            else [],
        }


class TestMatches:
    """All test matches below a folder; ``publish`` takes what listeners of the page are told."""

    def __init__(
        self,
        where: Place,
        shelf: documents.Library,
        publish: Callable[[Sequence[messages.Message]], None],
    ) -> None:
        """Read below a folder, which need not exist; put documents into ``shelf``."""
        self._folder, self._evidence = where
        self.shelf = shelf
        self._publish = publish
        self._matches: dict[str, Match] = {}  # by id
        self._refused: dict[str, int] = {}  # folders that cannot be read: by when they were written
        self._open: frozenset[str] = frozenset()
        self._asked: dict[str, None] = {}  # ids of matches that are over, the last asked for last
        self._lock = threading.Lock()  # of what is asked for
        self._stop = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        self._stop = stop
        while not stop.is_set():
            try:
                self.look()
            except errors.LedgerAwayError as error:
                log.warning("test_matches.ledger_away", error=str(error))
            except Exception:  # the top of the loop: the next look tries again
                log.exception("test_matches.failed")
            stop.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Bring list and documents up to what folders and ledger say now."""
        self._open = frozenset(f"{PREFIX}{name}" for name in self._evidence.open())
        leases: dict[str, list[lanes.Lease]] = collections.defaultdict(list)
        if self._open:
            for lease in self._evidence.leases():
                leases[f"{PREFIX}{lease.match}"].append(lease)
        self._find()
        newest = sorted(self._matches.values(), key=lambda listed: listed.opened_ms, reverse=True)
        for match in sorted(newest, key=lambda listed: listed.id not in self._open):
            if self._stop.is_set():
                return
            self._follow(match, leases[match.id])
        lines = [match.line for match in newest if match.line]
        self.shelf.put({LIST: lines})
        self.shelf.tests = len(lines)
        self._let_go()

    def _find(self) -> None:
        """Take the matches that are new, and those that were gone on with."""
        for folder in sprt_match.kept(self._folder) if self._folder.is_dir() else ():
            written = (folder / "match.json").stat().st_mtime_ns // 1_000_000
            name = f"{PREFIX}{folder.name}"
            kept = self._matches.get(name)
            if self._refused.get(name) == written or (kept and kept.opened_ms == written):
                continue
            try:
                self._matches[name] = Match(folder)
            except _DAMAGED as error:
                self._refuse(name, written, error)

    def _refuse(self, name: str, written: int, error: Exception) -> None:
        log.warning("test_matches.unreadable", match=name, error=str(error))
        self._refused[name] = written
        self._drop(name)
        self._matches.pop(name, None)

    def _follow(self, match: Match, leases: Sequence[lanes.Lease]) -> None:
        """Read on, where there is anything new or nothing was read; show what has changed."""
        is_open = match.id in self._open
        with match.lock:
            over = match.line.get("status") == "finished"
            if over and not is_open and not (match.grown and match.loaded):
                return
            try:
                grown = match.read(lambda: self._stop.wait(REST_SECONDS))
            except _DAMAGED as error:
                self._refuse(match.id, match.opened_ms, error)
                return
            before = match.line, list(match.view.running.values())
            match.stand(leases, is_open=is_open)
            match.line = match.overview(self.shelf.now_ms())
            changed = grown or before != (match.line, list(match.view.running.values()))
            is_shown = self.shelf.get(f"seasons/{match.id}") is not None
            if is_shown and not changed:
                return
            if is_open or is_shown:
                self._show(match)
                self._ask_for(match.id)
            else:
                match.forget()

    def _ask_for(self, name: str) -> None:
        """Note that a match that is over is looked at, or was when it ended."""
        with self._lock:
            self._asked.pop(name, None)
            if name not in self._open:
                self._asked[name] = None

    def _show(self, match: Match) -> None:
        """Put a match's documents into their places, and tell of them."""
        now_ms = self.shelf.now_ms()
        for path, document in match.view.made(now_ms).items():
            self.shelf.put_made(path, document)
        last, now = next(reversed(match.view.results), 0), time.monotonic()
        shown_at, shown = match.shown
        if last != shown and (now - shown_at > LAST_SECONDS or not match.view.running):
            match.shown = (now, last)
            replay = match.games.replay(match.view.results[last])
            self.shelf.put({f"seasons/{match.id}/live": replay.document()})
        tables = {"season": match.id, "events": [match_view.EVENT]}
        season_delta = messages.Delta("season", match.view.season(1, now_ms))
        self._publish([season_delta, messages.Delta("tables", tables)])

    def _let_go(self) -> None:
        """Forget the games of matches that are over and that others were asked for after."""
        with self._lock:
            names = list(self._asked)[: max(0, len(self._asked) - LOADED)]
            for name in names:
                del self._asked[name]
        for name in names:
            match = self._matches.get(name)
            if match is not None and name not in self._open:
                with match.lock:
                    self._drop(name)
                    match.forget()

    def _drop(self, name: str) -> None:
        for path in match_view.places(name):
            self.shelf.drop(path)

    # -- what is asked for -----------------------------------------------------------------

    @property
    def newest(self) -> str:
        """Return the id of the match that was begun last, of those that are open; else of all."""
        matches = list(self._matches.values())
        newest = max(
            matches, key=lambda match: (match.id in self._open, match.opened_ms), default=None
        )
        return "" if newest is None else newest.id

    def find(self, name: str) -> Match | None:
        """Return a match by its id, read; None where there is none. It may take seconds."""
        match = self._matches.get(name)
        if match is None:
            return None
        with match.lock:
            self._ask_for(name)
            if not match.loaded or self.shelf.get(f"seasons/{name}") is None:
                match.read()
                match.stand((), is_open=name in self._open)
                match.line = match.overview(self.shelf.now_ms())
                self._show(match)
        return match

    def result(self, name: str, game: str) -> tuple[Match, match_journal.Result] | None:
        """Return a match, and the result of one of its games, by their names."""
        match = self.find(name)
        result = match and match.view.results.get(text.whole(game) or 0)
        return (match, result) if match and result else None


def _about(spec: orders.Spec, terms: sprt_match.Terms) -> match_journal.About:
    """Return what is shown of a match's order; engines that meet themselves get two names."""
    engines: list[contract.EngineSpec] = []
    for engine in spec.engines:
        names = {earlier.name for earlier in engines}
        twins = (f"{engine.name} ({number})" for number in range(2, len(spec.engines) + 2))
        name = engine.name if engine.name not in names else next(n for n in twins if n not in names)
        engines.append(engine.model_copy(update={"name": name}))
    clocks = dict.fromkeys((engine.time_control or spec.time_control).spoken for engine in engines)
    return match_journal.About(
        event=spec.id,
        site="",
        engines=tuple(engines),
        time_control=spec.time_control,
        clocks=" against ".join(clocks),
        variant=spec.variant,
        games=spec.games,
        test=terms.test,
    )


def _result(spec: orders.Spec, names: Sequence[str], entry: contract.Entry) -> match_journal.Result:
    """Return a game as matches know them; it ended when its result was told."""
    data: Mapping[str, Any] = entry.data
    number = int(data["game"])
    pair = names[0], names[spec.opponent(number)]
    white, black = pair if spec.white_is_tested(number) else pair[::-1]
    return match_journal.Result(
        number=number,
        round=(number + 1) // 2,
        white=white,
        black=black,
        opening=0,
        result=data["result"],
        ending=contract.Ending(data["ending"]),
        loser=data["loser"],
        details=data["details"],
        note=data["note"],
        plies=data["plies"],
        started_ms=entry.at_ms - _duration_ms(data["pgn"]),
        ended_ms=entry.at_ms,
        pair=(number - 1) // 2,
    )


def _duration_ms(pgn: str) -> int:
    match = _DURATION.search(pgn)
    hours, minutes, seconds = map(int, match.groups()) if match else (0, 0, 0)
    return 1000 * (3600 * hours + 60 * minutes + seconds)
