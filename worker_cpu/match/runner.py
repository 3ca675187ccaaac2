"""Plays the games of a match, several at a time, until all are played or there is a reason.

One process, one poll loop; the games themselves run in referees of their own, each on
its own cores. Invariants:

* a finished game is written down, and on disk, before it is told and before anything else
  is listened to; the next game of its lane is begun first, so that no game waits for a disk,
  for a line of the report or for its own order: that is written while the games before it
  are played;
* an engine that cannot start, crashes or stalls loses its game (in another program's dialect
  without -recover the match ends with it); a host that cannot play a game in ``TRIES``
  attempts ends the match, with what is finished kept;
* the first Ctrl-C starts no more games, the second (or SIGTERM, or the first one in another
  program's dialect) drops those that run;
* when this process dies, the dead men kill every engine.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import itertools
import os
import pathlib
import re
import select
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import errors, processor
from orchestrator.testmatch import match_journal, standings
from worker_cpu.engines import handles, sandbox
from worker_cpu.match import arguments, engine_lines, game, journal, schedule, stopping
from worker_cpu.referee import forkserver, session
from worker_cpu.referee import result as referee_result
from worker_cpu.wire import frames

FEED_SECONDS = 5.0  # s: beat towards the dead men, well below ``session.LIMIT_SECONDS``
LATE = (contract.Ending.TIME, contract.Ending.STALL)  # what a busy machine may cause
GAMES_A_CPU = 2  # of more at a time, several are played by one referee's process
TRIES = 3  # attempts at one game that the host may spoil
# What the referee says of a loss on time or a stall, and of its engine's core time.
_FIGURES: Final = re.compile(
    r"(?:([\d.]+) ms of ([\d.]+) ms|no answer within [\d.]+ ms); computed ([\d.]+) ms of these"
    r"(?:, waited ([\d.]+) ms)?"
)
LONG_MS: Final = 1_000.0  # ms late; of these an engine that sleeps computes less than NOTHING
NOTHING: Final = 0.01
REFUSED_ORDER = "order refused"  # the referee's word for an opening that cannot be played


class Reason(enum.Enum):
    """Why a match came to its end."""

    COMPLETE = ""
    CRASHED = "an engine crashed or stalled, and there is no -recover; running games were dropped"
    DECIDED = "the sequential test is decided"
    STOPPED = "stopped; the running games were finished"
    DROPPED = "stopped; the running games were dropped"


class Writer(Protocol):
    """Writes the orders of games: ``orders.Orders``, or a remote worker's batches."""

    def order(self, slot: schedule.Slot, attempt: int = 1) -> contract.GameOrder:
        """Return the order of a game's attempt."""


class Keeper(Protocol):
    """Keeps finished games: ``journal.Journal``, or a remote worker's spool."""

    def write(self, slot: schedule.Slot, game: referee_result.Ended) -> object:
        """Make a finished game durable."""


class Teller(Protocol):
    """Tells people what happens: ``report.Report``."""

    def say(self, text: str) -> None:
        """Print a line at once."""

    def beat(self) -> float:
        """Show how far the match is; return in how many seconds that is wanted again."""

    def started(self, slot: schedule.Slot) -> None:
        """Tell that a game begins."""

    def finished(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Tell a result."""

    def notes(self, notes: Iterable[str | referee_result.Unmet | referee_result.Warned]) -> None:
        """Tell each of these once in a match."""

    def interrupted(self, slot: schedule.Slot, cause: str, evidence: str) -> None:
        """Tell that a game ended without a verdict and is played again."""


class Feed(Protocol):
    """Takes what people may look at of running games: ``live.Feed``, or a remote worker's spool."""

    def begin(
        self, board: int, slot: schedule.Slot, order: contract.GameOrder
    ) -> game.Watch | None:
        """Begin a game; return who takes its frames."""

    def end(self, order: contract.GameOrder) -> None:
        """End a game, however it ended."""


class Lane:
    """One of the places where games are played at the same time."""

    def __init__(self, cores: handles.Cores) -> None:
        self.cores = cores
        self.slot: schedule.Slot | None = None
        self.game: game.Game | None = None
        self.seated: session.Seated | None = None
        self.spare: session.Seated | None = None
        self.free_at = 0.0
        self.kept: frozenset[int] = frozenset()  # engines that stay at ``spare``


class Runner:
    """One run of a match."""

    def __init__(
        self,
        settings: arguments.Settings,
        lanes: Sequence[handles.Cores],
        written: Writer,
        kept: Keeper,
        table: standings.Standings,
        teller: Teller,
        scratch: pathlib.Path,
        more: Callable[[], Iterable[schedule.Slot]] = tuple,
        feed: Feed | None = None,
        others: processor.Others | None = None,
        changed: Callable[[int], str] = lambda _: "",
    ) -> None:
        """Prepare a match; ``more`` is asked for further games when a lane may soon be idle.

        ``feed`` takes what a live page shows; ``others`` measures other programs' use of the cores.
        ``changed`` is asked before an engine is started: it says what makes it another build.
        """
        self._more, self._page_feed, self._changed = more, feed, changed
        bound = frozenset[int]().union(*(cores.engines for cores in lanes))
        threads = max((engine.threads for engine in settings.engines), default=1)
        self._others, self._crowded = others or processor.Others(games=bound), False
        self._needed = len(bound) or len(lanes) * threads
        self._settings, self._orders, self._journal = settings, written, kept
        self._table, self._report, self._scratch = table, teller, scratch
        self._lanes = [Lane(cores) for cores in lanes]
        # So many games wait for a core in any case, by far longer than for each other.
        self._together = not bound and len(lanes) > GAMES_A_CPU * len(os.sched_getaffinity(0))
        self._seats: list[session.Seated] = []  # of the next lanes
        confinement = sandbox.Confinement(sandbox.choose(settings.sandbox))
        self._fork_server = handles.ForkServer(confinement, forkserver.forked)
        self._poll = select.poll()
        self._busy: dict[int, Lane] = {}
        self._leaving: list[session.Seated] = []
        self._tries: collections.Counter[int] = collections.Counter()
        self._queue: collections.deque[schedule.Slot] = collections.deque()
        self._ahead: dict[str, game.Sealed] = {}
        self._begun: list[schedule.Slot] = []
        self._traffic = Traffic(settings) if settings.listens else None
        self._next_feed = self._next_beat = 0.0
        self._stop = stopping.Stop()
        # Scripts read the other programs' files as soon as they have stopped them.
        self._drops = stopping.DROP if settings.dialect == "farm" else stopping.FINISH
        self._failure: errors.FarmError | None = None
        self._decided = self._crashed = False

    def run(self, slots: Sequence[schedule.Slot]) -> Reason:
        """Play these games; raise ``HostError`` or ``UsageError`` when one cannot be."""
        self._queue.extend(slots)
        self._decided = self._is_decided()
        self._others.look()
        with self._stop.heard() as signals:
            self._poll.register(signals, select.POLLIN)
            try:
                while self._busy or (self._queue and not self._stopping):
                    self._fill()
                    self._announce()
                    self._write_ahead()
                    self._listen()
                    dropped = self._crashed or self._stop.urgency >= self._drops
                    at_once = (errors.UsageError, errors.RefusedError)
                    if dropped or isinstance(self._failure, at_once):
                        self._drop()
            finally:
                self._close()
        if self._failure is not None:
            raise self._failure
        return self._reason()

    def _reason(self) -> Reason:
        if self._crashed:
            return Reason.CRASHED
        if self._decided:
            return Reason.DECIDED
        if not self._stop.urgency:
            return Reason.COMPLETE
        return Reason.STOPPED if self._stop.urgency < self._drops else Reason.DROPPED

    @property
    def _stopping(self) -> bool:
        return bool(self._stop.urgency or self._crashed or self._decided or self._failure)

    # -- starting games ----------------------------------------------------------------

    def _fill(self) -> None:
        self._begin()
        if len(self._queue) < len(self._lanes) and not self._stopping:
            self._queue.extend(self._more())
            self._begin()

    def _begin(self) -> None:
        now = time.monotonic()
        for lane in self._lanes:
            if lane.game is None and self._queue and not self._stopping and now >= lane.free_at:
                slot = self._queue.popleft()
                kept = lane.kept if lane.spare is not None else frozenset()
                starting = sorted({*slot.engines} - kept)
                if changes := "; ".join(filter(None, map(self._changed, starting))):
                    self._queue.appendleft(slot)
                    self._failure = errors.RefusedError(changes)
                    return
                self._start(lane, slot)

    def _start(self, lane: Lane, slot: schedule.Slot) -> None:
        order = self._sealed(slot)
        self._tries[slot.number] += 1
        if self._together and not (lane.spare or self._seats) and len(order.order.keep) == 2:
            self._seat_together()
        lane.slot, lane.seated = slot, lane.spare or self._seat(lane)
        lane.spare, lane.seated.keeps = None, False
        hear = None if self._traffic is None else self._traffic.ear(slot)
        watch = None
        if self._page_feed is not None:
            watch = self._page_feed.begin(self._lanes.index(lane) + 1, slot, order.order)
        lane.game = game.Game(lane.seated, order, self._settings.site, hear, watch)
        self._busy[lane.game.fileno()] = lane
        self._poll.register(lane.game.fileno(), select.POLLIN)
        self._begun.append(slot)
        if self._queue and not lane.game.order.keep:  # else these seats play on
            lane.spare = self._seat(lane)

    def _seat_together(self) -> None:
        """Make seats for the games that are about to begin, if they are several."""
        free = sum(lane.game is None and lane.spare is None for lane in self._lanes)
        games = min(free, len(self._queue) + 1, handles.MOST_TOGETHER)
        if games > 1:
            self._seats = session.seat_together(self._fork_server, self._scratch, games)

    def _seat(self, lane: Lane) -> session.Seated:
        if self._seats:
            return self._seats.pop()
        return session.seat(self._fork_server, lane.cores, self._scratch)

    def _sealed(self, slot: schedule.Slot) -> game.Sealed:
        """Return the order of a game's next attempt, if possible the one written ahead."""
        attempt = self._tries[slot.number] + 1
        sealed = self._ahead.pop(f"{slot.number}/{attempt}", None)
        return sealed or game.Sealed(self._orders.order(slot, attempt))

    def _write_ahead(self) -> None:
        """Write the orders of the games that will be begun next, while nobody waits."""
        for slot in itertools.islice(self._queue, len(self._lanes)):
            self._ahead[f"{slot.number}/{self._tries[slot.number] + 1}"] = self._sealed(slot)

    def _announce(self) -> None:
        """Tell of the games that were begun."""
        for slot in self._begun:
            self._report.started(slot)
        self._begun.clear()

    # -- running games -----------------------------------------------------------------

    def _listen(self) -> None:
        """Wait for a referee, a signal, the next beat or the end of a pause."""
        now = time.monotonic()
        if now >= self._next_feed:
            self._feed()
            self._next_feed = now + FEED_SECONDS
        if now >= self._next_beat:
            self._next_beat = now + self._report.beat()
        wakes = [lane.free_at for lane in self._lanes if lane.game is None and lane.free_at > now]
        patience = min([self._next_feed, self._next_beat, *wakes]) - now
        for fd, _ in self._poll.poll(max(0.0, patience) * 1000):
            if fd in self._busy:
                self._serve(self._busy[fd])
            else:
                os.read(fd, 64)  # the byte of a signal that has been counted
                self._announce_stop()
        self._leaving = [seated for seated in self._leaving if not seated.gone()]

    def _feed(self) -> None:
        for lane in self._lanes:
            for seated in (lane.seated, lane.spare):
                if seated is not None:
                    seated.feed()
            end = None if lane.game is None else lane.game.check()
            if isinstance(end, session.Interrupted):
                self._again(self._vacate(lane), end)

    def _serve(self, lane: Lane) -> None:
        assert lane.game is not None
        end = lane.game.serve()
        if end is None:
            return
        if isinstance(end, session.Interrupted):
            self._again(self._vacate(lane), end)
            return
        slot = self._vacate(lane, stays=bool(lane.game.order.keep))
        players: dict[contract.Side, int] = {"white": slot.white, "black": slot.black}
        lane.kept = frozenset(players[side] for side in end.kept)
        if self._traffic is not None:
            end = self._traffic.written(slot, end)
        end, load = self._with_load(end)
        result = journal.result_of(slot, end)
        self._table.add(slot, result)
        self._decided = self._decided or self._is_decided()
        if not self._settings.recover and result.ending in verdict.CRASHES:
            self._crashed = True
        try:
            self._fill()
        finally:  # a game that cannot begin takes nothing from the one that has ended
            self._journal.write(slot, end)
        self._report.notes([*end.unmet, *end.remarks])
        self._report.finished(slot, result)
        self._report.notes(load)  # behind the loss that it is about
        self._announce()
        if lane.spare is not None and (self._stopping or not self._queue):
            self._dismiss(lane.spare)
            lane.spare = None

    def _with_load(self, end: referee_result.Ended) -> tuple[referee_result.Ended, list[str]]:
        """Add to a loss on time that other programs used the cores; return what to note of it.

        That is once in a match.
        """
        late = end.outcome.ending in LATE
        self._others.look(at_once=late)
        crowd = self._others.crowd(self._needed) if late else ""
        if not crowd:
            return end, []
        notes = []
        if not self._crowded and not self._late_by_itself(end):
            self._crowded = True
            notes = [f"{crowd}: losses on time may come from them"]
        note = f"{end.outcome.note}; {crowd}" if end.outcome.note else crowd
        outcome = end.outcome.model_copy(update={"note": note})
        return dataclasses.replace(end, outcome=outcome), notes

    def _late_by_itself(self, end: referee_result.Ended) -> bool:
        """Say whether an engine's figures clear the machine.

        They do where it would have been late without any waiting for a core, and where each of its
        threads computed as long as it had. Where its wait is not known, they do if it computed next
        to nothing of seconds: a busy core would have given it a share.
        """
        figures = _FIGURES.match(end.outcome.note)
        if figures is None:
            return False
        thought_ms, allowed_ms, computed_ms, waited_ms = figures.groups()
        late = float(end.order.timeouts.stop_ms + end.order.timeouts.stall_ms)  # at least
        if thought_ms is not None:
            late = float(thought_ms) - float(allowed_ms)
            threads = max((engine.threads for engine in self._settings.engines), default=1)
            if float(computed_ms) >= threads * float(allowed_ms):
                return True
        if waited_ms is None:
            return late >= LONG_MS and float(computed_ms) < NOTHING * late
        return float(waited_ms) < late

    def _dismiss(self, seated: session.Seated) -> None:
        seated.dismiss()
        self._leaving.append(seated)

    def _vacate(self, lane: Lane, *, stays: bool = False) -> schedule.Slot:
        """Take a lane's game off it; referee and engines that stay are its next ones."""
        assert lane.game is not None
        assert lane.seated is not None
        assert lane.slot is not None
        if self._page_feed is not None:
            self._page_feed.end(lane.game.order)
        self._poll.unregister(lane.game.fileno())
        del self._busy[lane.game.fileno()]
        if stays:
            lane.seated.keeps = True
            lane.spare = lane.seated
        else:
            self._dismiss(lane.seated)
        lane.free_at = time.monotonic() + self._settings.wait_ms / 1000
        slot, lane.slot, lane.game, lane.seated = lane.slot, None, None, None
        lane.kept = frozenset()
        return slot

    def _again(self, slot: schedule.Slot, end: session.Interrupted) -> None:
        self._report.interrupted(slot, end.cause, end.evidence)
        what = f"game {slot.number}: {end.cause}: {end.evidence}"
        if end.cause == REFUSED_ORDER:
            self._failure = errors.UsageError(what)
        elif self._tries[slot.number] >= TRIES:
            self._failure = self._failure or errors.HostError(f"{what} ({TRIES} attempts)")
        else:
            self._queue.appendleft(slot)

    def _is_decided(self) -> bool:
        test = self._settings.test
        return test is not None and test.verdict(self._table.between(0, 1)) is not None

    # -- the end -----------------------------------------------------------------------

    def _drop(self) -> None:
        for lane in list(self._busy.values()):
            assert lane.game is not None
            lane.game.drop("the match was stopped")
            self._vacate(lane)

    def _close(self) -> None:
        """Leave no process behind."""
        self._drop()
        spares = [lane.spare for lane in self._lanes if lane.spare is not None]
        seats = (*self._leaving, *spares, *self._seats)
        for seated in seats:  # all quit at the same time, before any is waited for
            seated.dismiss()
        for seated in seats:
            seated.leave()
        self._fork_server.end()
        if self._traffic is not None:
            self._traffic.close()

    def _announce_stop(self) -> None:
        if self._stop.urgency < self._drops and self._busy:
            running = f"{len(self._busy)} running game{'s are' if len(self._busy) > 1 else ' is'}"
            self._report.say(f"Stopping: {running} finished first; Ctrl-C again drops them")


class Traffic:
    """Keeps what engines say: all of it in the match's log, stderr in files of the engines'."""

    def __init__(self, settings: arguments.Settings) -> None:
        self._log = None if settings.log is None else settings.log.open("ab")
        self._stderr = [
            None if engine.stderr is None else engine.stderr.open("ab")
            for engine in settings.engines
        ]
        self._names = [engine.spec.name for engine in settings.engines]
        self._settings = settings
        self._lines: dict[int, engine_lines.GameLines] = {}  # of the games that are played

    def ear(self, slot: schedule.Slot) -> Callable[[frames.Chunk], None]:
        """Return who takes the traffic of one game."""
        lines = None
        if engine_lines.listens(self._settings):
            players = [self._settings.engines[number].spec for number in (slot.white, slot.black)]
            lines = engine_lines.GameLines(self._settings, engine_lines.seats(players))
            self._lines[slot.number] = lines  # of a game that is played again the last attempt's

        def hear(chunk: frames.Chunk) -> None:
            if lines is not None:
                lines.hear(chunk)
            engine = slot.white if chunk.seat == "w" else slot.black
            own = self._stderr[engine]
            if chunk.direction == "!" and own is not None:
                own.write(chunk.data)
                own.flush()
            if self._log is not None:
                head = (
                    f"{chunk.monotonic_ns} {slot.number} {self._names[engine]} {chunk.direction} "
                )
                data = chunk.data.rstrip(b"\n").replace(b"\n", b"\n" + head.encode())
                self._log.write(head.encode() + data + b"\n")

        return hear

    def written(self, slot: schedule.Slot, ended: referee_result.Ended) -> referee_result.Ended:
        """Return a finished game with what was looked for in its engines' lines."""
        lines = self._lines.pop(slot.number, None)
        return ended if lines is None else lines.written(ended, self._settings)

    def close(self) -> None:
        """Close the files."""
        for file in (self._log, *self._stderr):
            if file is not None:
                file.close()
