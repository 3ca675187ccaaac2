"""What a match prints while it runs and at its end, in the lines that scripts read.

``Started game``, ``Finished game``, ``Score of``, ``Elo difference`` and ``SPRT`` lines are
close to cutechess-cli's, because other programs read them. A table with all numbers ends
the match. With ``--json`` the lines go to stderr, one object to stdout. What the other
programs print letter for letter is in ``peer_reports``.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import sys
import time
import zlib
from collections.abc import Iterable
from typing import Any, TextIO

from orchestrator import contract
from orchestrator.common import output
from orchestrator.rating import elo, results, sprt
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import arguments, schedule
from worker_cpu.referee import result as referee_result

BEAT_SECONDS = 1.0  # s: so often a terminal's last line shows the time


class Report:
    """Tells of one match."""

    def __init__(
        self, settings: arguments.Settings, table: standings.Standings, games: int
    ) -> None:
        self._settings, self._table, self._games = settings, table, games
        self._out: TextIO = sys.stderr if settings.json else sys.stdout
        self._noted: set[str] = set()
        self._running: set[int] = set()
        self._before, self._since = 0, time.monotonic()
        self._live = self._out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._summed = self._crc = 0  # bytes of the PGN file whose CRC32 this is
        self.unmet = False  # an engine did not take an option, or was warned of

    def say(self, text: str) -> None:
        """Print a line at once; on a terminal how far the match is stands below the last one."""
        erased, live = ("\r\033[K", self._progress()) if self._live else ("", "")
        print(f"{erased}{text}\n{live}", end="", file=self._out, flush=True)

    def beat(self) -> float:
        """Bring the line below the others up to date; return when that is due again, in s."""
        if not self._live:
            return math.inf
        if live := self._progress():
            print(f"\r\033[K{live}", end="", file=self._out, flush=True)
        return BEAT_SECONDS

    def _progress(self) -> str:
        """Return how far the match is, no wider than the terminal; '' when nothing runs."""
        if not self._running:
            return ""
        done, seconds = self._table.played, time.monotonic() - self._since
        text = f"{done} of {self._games} games, {len(self._running)} running, {_clock(seconds)}"
        if done > self._before and not self._table.adaptive:
            left = seconds / (done - self._before) * (self._games - done)
            text += f", about {_clock(left)} left"
        return text[: shutil.get_terminal_size().columns - 1]

    def played_before(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Count a game that the journal of a resumed match has; its result is told already."""

    def opens(self, missing: int, openings: str) -> None:
        """Tell what is going to be played, from which ``openings``."""
        self._before = self._games - missing
        done = f", {self._before} of them played before" if self._before else ""
        most = "at most " if self._table.adaptive else ""
        self.say(
            f"Match of {len(self._table.names)} engines:"
            f" {most}{output.some(self._games, 'game')}{done},"
            f" {openings}, {self._settings.concurrency} at a time,"
            f" {self._clocks()},"
            f" seed {self._settings.seed}, journal {self._settings.journal}"
        )

    def started(self, slot: schedule.Slot) -> None:
        """Tell that a game begins."""
        self._running.add(slot.number)
        self.say(self._started(slot))

    def finished(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Tell a result, and the score at its intervals."""
        self._running.discard(slot.number)
        self.say(self._finished(slot, result.result, result.sentence))
        self._tell_fault(slot, result)
        played = self._table.played
        if due(played, self._settings.outcome_interval) and len(self._table.names) == 2:
            self.say(self._score())
        if due(played, self._settings.rating_interval):
            self._ratings()

    def _tell_fault(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        if result.ending in standings.FAULTS and result.note:
            loser = result.white if result.loser == "white" else result.black
            self.say(f"Fault in game {slot.number}: {loser}: {_fault(result)}")

    def notes(self, notes: Iterable[str | referee_result.Unmet | referee_result.Warned]) -> None:
        """Tell each of these sentences once in a match."""
        for note in notes:
            self.unmet |= not isinstance(note, str)
            if str(note) not in self._noted:
                self._noted.add(str(note))
                self._note(note)

    @property
    def faultless(self) -> bool:
        """Say whether no engine lost by a fault, refused an option, or was warned of."""
        faults = (self._table.faults(engine) for engine in range(len(self._table.names)))
        return not self.unmet and not any(count for kinds in faults for count in kinds.values())

    def _note(self, note: str | referee_result.Unmet | referee_result.Warned) -> None:
        self.say(str(note) if isinstance(note, referee_result.Warned) else f"Note: {note}")

    def interrupted(self, slot: schedule.Slot, cause: str, evidence: str) -> None:
        """Tell that a game ended without a verdict and is played again."""
        lines = evidence.strip().splitlines()
        self._running.discard(slot.number)
        self.say(
            f"Interrupted game {slot.number} ({self._players(slot)}):"
            f" {cause}{f' ({lines[-1]})' if lines else ''}"
        )

    def _ratings(self) -> None:
        """Print Elo and test of two engines, or the ranking of more."""
        if len(self._table.names) == 2:
            self.say("\n".join(self._match_lines()))
        else:
            self.say("\n".join(_ranking(self._table)))

    def end(self, reason: str) -> None:
        """Print the final score and table."""
        self._running.clear()
        if len(self._table.names) == 2 and self._table.played:
            self.say("\n".join([self._score(), *self._colours(), *self._match_lines()]))
        self.say("\n".join(["", *_ranking(self._table), *_faults(self._table)]))
        for line in self._checksum():
            self.say(line)
        self.say(f"\nFinished match{f': {reason}' if reason else ''}")

    def as_json(self, reason: str, *, complete: bool) -> dict[str, Any]:
        """Return all numbers of the match for programs."""
        names = self._table.names
        return {
            "complete": complete,
            "reason": reason,
            "games": self._games,
            "played": self._table.played,
            "seed": self._settings.seed,
            "journal": str(self._settings.journal),
            "pgn": None if self._settings.pgn is None else str(self._settings.pgn),
            "engines": [
                {"name": names[rank.engine], **standings.numbers(self._table.of(rank.engine))}
                | {
                    "rating": standings.finite(rank.elo),
                    "rating_error": standings.finite(rank.error),
                }
                | {"faults": self._table.faults(rank.engine)}
                for rank in standings.ranks(self._table)
            ],
            "matches": [
                {"first": names[first], "second": names[second]}
                | standings.numbers(self._table.between(first, second))
                for first in range(len(names))
                for second in range(first + 1, len(names))
                if self._table.between(first, second).games
            ],
            "sprt": self._test_facts(),
        }

    def _checksum(self) -> list[str]:
        """Return the line of -crc32; what was read before is not read again."""
        pgn = self._settings.pgn
        if not self._settings.crc32 or pgn is None or not pgn.exists():
            return []
        with pgn.open("rb") as file:
            file.seek(self._summed)
            appended = file.read()
        self._summed += len(appended)
        self._crc = zlib.crc32(appended, self._crc)
        return [f"File {pgn} has CRC32: {self._crc:#x}"]

    def _clocks(self) -> str:
        spoken = [engine.control.spoken for engine in self._settings.engines]
        if len(set(spoken)) == 1:
            return spoken[0]
        return " against ".join(dict.fromkeys(spoken))

    def _started(self, slot: schedule.Slot) -> str:
        return f"Started game {slot.number} of {self._games} ({self._players(slot)})"

    def _finished(self, slot: schedule.Slot, result: str, details: str) -> str:
        return f"Finished game {slot.number} ({self._players(slot)}): {result} {{{details}}}"

    def _players(self, slot: schedule.Slot) -> str:
        return f"{self._table.names[slot.white]} vs {self._table.names[slot.black]}"

    def _score(self) -> str:
        return score(" vs ".join(self._table.names), self._table.between(0, 1), "Score of ")

    def _colours(self) -> list[str]:
        name = self._table.names[0]
        white, black = self._table.as_white(0, 1), self._table.as_white(1, 0)
        return [
            score(f"{name} playing White", white, "...      "),
            score(f"{name} playing Black", black.reversed(), "...      "),
            score("White vs Black", results.total([white, black]), "...      "),
        ]

    def _match_lines(self) -> list[str]:
        counts = self._table.between(0, 1)
        logistic, normalized = elo.logistic(counts), elo.normalized(counts)
        difference = f"Elo difference: {_estimate(counts, logistic)}"
        los = elo.superiority(counts)
        superior = f"LOS: {'-' if los is None else f'{100 * los:.1f} %'}"
        lines = [f"{difference}, {superior}, DrawRatio: {100 * counts.draw_ratio:.1f} %"]
        if any(counts.pairs):
            nelo = f"nElo: {_estimate(counts, normalized)}"
            lines.append(f"{nelo}, Ptnml(0-2): {list(counts.pairs)}")
        test = self._settings.test
        return lines if test is None else [*lines, _test_line(test, counts)]

    def _test_facts(self) -> dict[str, Any] | None:
        test = self._settings.test
        if test is None:
            return None
        counts = self._table.between(0, 1)
        figures = {"llr": test.llr(counts), "lower": test.lower, "upper": test.upper}
        decided = {"engine": self._table.names[0], "accepted": test.verdict(counts)}
        return {**dataclasses.asdict(test), **figures, **decided}


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
    )


def due(played: int, interval: int) -> bool:
    """Say whether a line that is printed every so many games is printed now; 0: never."""
    return interval > 0 and played % interval == 0


def score(what: str, counts: results.Counts, lead: str) -> str:
    """Return the line of a score: wins, losses, draws, share of the points, games."""
    line = f"{counts.wins} - {counts.losses} - {counts.draws}"
    return f"{lead}{what}: {line}  [{counts.score:.3f}] {counts.games}"


def _test_line(test: sprt.Test, counts: results.Counts) -> str:
    llr, verdict = test.llr(counts) + 0.0, test.verdict(counts)  # no -0
    share = 100 * llr / (test.upper if llr >= 0 else -test.lower)
    accepted = f" - {verdict} was accepted" if verdict else ""
    return (
        f"SPRT: llr {llr:.3g} ({share:.1f}%), lbound {test.lower:.3g}, ubound {test.upper:.3g}"
        f"{accepted} ({test.model} Elo {test.elo0:g} against {test.elo1:g})"
    )


def _ranking(table: standings.Standings) -> list[str]:
    width = max(4, *(len(name) for name in table.names))
    head = f"{'Rank':>4} {'Name':<{width}} {'Elo':>7} {'+/-':>7} {'Games':>6} {'W':>5} {'D':>5}"
    lines = [f"{head} {'L':>5} {'Points':>7} {'Score':>6} {'Draw':>6} {'LOS':>6}  Ptnml(0-2)"]
    for position, rank in enumerate(standings.ranks(table), start=1):
        counts = table.of(rank.engine)
        los = "-" if rank.superiority is None else f"{100 * rank.superiority:.1f}%"
        lines.append(
            f"{position:>4} {table.names[rank.engine]:<{width}} {_elo(rank.elo):>7}"
            f" {_elo(rank.error):>7} {counts.games:>6} {counts.wins:>5} {counts.draws:>5}"
            f" {counts.losses:>5} {counts.points:>7.1f} {100 * counts.score:>5.1f}%"
            f" {100 * counts.draw_ratio:>5.1f}% {los:>6}"
            f"  {list(counts.pairs) if any(counts.pairs) else '-'}"
        )
    return lines


def _faults(table: standings.Standings) -> list[str]:
    lines = []
    for engine, name in enumerate(table.names):
        seen = [
            f"{count} by {'an illegal move or claim' if kind == 'illegal' else kind}"
            for kind, count in table.faults(engine).items()
            if count
        ]
        lines += [f"{name} lost {', '.join(seen)}"] if seen else []
    return ["", *lines] if lines else []


def _fault(result: match_journal.Result) -> str:
    """Say what an engine did; a note of a move or a claim alone does not say that it was wrong."""
    note = " ".join(result.note.split())
    kinds = {contract.Ending.ILLEGAL: "illegal move", contract.Ending.FALSE_CLAIM: "false claim"}
    if result.ending not in kinds:
        return note
    return f"{kinds[result.ending]} {note} in {result.position}"


def _estimate(counts: results.Counts, estimate: elo.Estimate) -> str:
    """Write a difference with its error, ``-`` where there are too few games."""
    if not elo.is_estimated(counts):
        return "- +/- -"
    return f"{_elo(estimate.elo)} +/- {_elo(estimate.error)}"


def _elo(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if math.isfinite(value) else str(value)


def encoded(summary: dict[str, Any]) -> str:
    """Return the facts as JSON text."""
    return contract.dumps(summary)
