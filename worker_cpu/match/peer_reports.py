"""The lines of fastchess and of cutechess-cli, letter for letter (``-output format=``).

Programs that drive one of the two read these lines: OpenBench's and fishtest's workers
count games, pairs, crashes and losses on time by them. What the farm itself has to say
goes to stderr here, so that stdout holds the other program's lines alone. Formats are
those of fastchess 1.8 and cutechess-cli 1.5; numbers are theirs too, infinities and
``nan`` of too few games included.
"""

from __future__ import annotations

import collections
import math
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.rating import elo, results
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import arguments, engines, report, schedule
from worker_cpu.protocols import options
from worker_cpu.referee import result as referee_result

RULE = "-" * 50
SHORTEST = 25  # columns of a name in a table
_NAN = math.copysign(math.nan, -1)
CUTECHESS_NORMAL = 1.957162  # its approximation of the normal distribution's 97.5 % point


class _Peer(report.Report):
    """A report whose own sentences go to stderr, and the other program's lines to stdout."""

    def __init__(
        self, settings: arguments.Settings, table: standings.Standings, games: int
    ) -> None:
        super().__init__(settings, table, games)
        self._lines: TextIO = self._out
        self._out, self._live = sys.stderr, False
        self._began = time.monotonic()

    def started(self, slot: schedule.Slot) -> None:
        """Tell that a game begins."""
        self._print(self._started(slot))

    def _print(self, *lines: str) -> None:
        if lines:
            print("\n".join(lines), file=self._lines, flush=True)

    @property
    def _two(self) -> bool:
        return len(self._table.names) == 2

    @property
    def _whole(self) -> bool:
        """Say whether every game of the match is played."""
        return self._table.played == self._games


class Fastchess(_Peer):
    """fastchess' lines: a block of results between two rules, over whole pairs."""

    def __init__(
        self, settings: arguments.Settings, table: standings.Standings, games: int
    ) -> None:
        super().__init__(settings, table, games)
        plan = settings.plan
        self._pairs = settings.penta and plan.games == 2 and plan.repeat == 2 and plan.swap
        self._faults: dict[str, collections.Counter[str]] = {}

    def played_before(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Count a fault that was told before the match was resumed."""
        self._count(slot, result)

    def finished(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Tell a result; a block after each so many pairs, and behind the last game."""
        self._tell_fault(slot, result)
        self._warn(slot, result)
        self._count(slot, result)
        self._print(*self._checksum())
        crashed = result.ending in verdict.CRASHES and not self._settings.recover
        if crashed:
            self._print(
                f"Game {slot.number} stalled / disconnected and no recover option set for engine,"
                " stopping tournament."
            )
        self._print(self._finished(slot, result.result, _fastchess_reason(result)))
        if crashed:
            self._print("Tournament was interrupted.")
        if not self._pairs or slot.pair is None:
            due = report.due(self._table.played, self._settings.rating_interval)
        else:
            due = report.due(slot.pair + 1, self._settings.rating_interval)
            due = due and self._table.is_whole(slot)
        if due or self._whole:
            self._print(*self._block(*slot.engines))

    def end(self, reason: str) -> None:
        """Tell what the test accepted, who crashed, and that the match is over."""
        test = self._settings.test
        accepted = None if test is None else test.verdict(self._table.between(0, 1))
        if test is not None and accepted is not None:
            bounds = f"[{test.elo0:.2f}, {test.elo1:.2f}]"
            self._print(*self._block(0, 1), f"SPRT ({bounds}) completed - {accepted} was accepted")
        if self._faults:
            self._print("")
            for name, kinds in reversed(self._faults.items()):
                self._print(f"Player: {name}", f"  Timeouts: {kinds['timeouts']}")
                self._print(f"  Crashed: {kinds['crashes']}")
            self._print("")
        seconds = int(time.monotonic() - self._began)
        spent = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        self._print("Finished match", f"Total Time: {spent} (hours:minutes:seconds)", "")
        if reason:
            self.say(f"The match ended early: {reason}")

    def _note(self, note: str | referee_result.Unmet | referee_result.Warned) -> None:
        """Tell of an option as fastchess does: both test farms stop a task by this line."""
        if isinstance(note, str | referee_result.Warned):
            super()._note(note)
        elif note.remark == options.MISSING:
            self._print(f"Warning; {note.engine} doesn't have option {note.option}")
        else:
            self._print(f"Warning; Invalid value for option {note.option}; {note.asked}")

    def _warn(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        if result.ending is contract.Ending.STALL:
            self._print(f"Warning; Engine {self._loser(slot, result)} is not responsive")
        elif result.ending is contract.Ending.ILLEGAL:
            move = result.note or "<none>"
            self._print(f"Warning; Illegal move {move} played by {self._loser(slot, result)}")

    def _count(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        if result.ending in verdict.CRASHES:
            kind = "crashes"
        elif result.ending is contract.Ending.TIME:
            kind = "timeouts"
        else:
            return
        loser = self._loser(slot, result)
        self._faults.setdefault(loser, collections.Counter())[kind] += 1

    def _loser(self, slot: schedule.Slot, result: match_journal.Result) -> str:
        return self._table.names[slot.white if result.loser == "white" else slot.black]

    def _block(self, first: int, second: int) -> list[str]:
        lines = self._versus(first, second) if self._two else self._table_lines()
        test = self._settings.test
        if test is not None:
            counts = self._seen(self._table.pairs(0, 1), self._table.between(0, 1))
            llr = test.llr(counts)
            share = 100 * llr / (test.upper if llr >= 0 else -test.lower)
            lines.append(
                f"LLR: {llr:.2f} ({share:.1f}%) ({test.lower:.2f}, {test.upper:.2f})"
                f" [{test.elo0:.2f}, {test.elo1:.2f}]"
            )
        return [RULE, *lines, RULE]

    def _seen(self, pairs: standings.Pairs, games: results.Counts) -> results.Counts:
        """Return what fastchess counts: whole pairs, or single games where there are none."""
        return (
            pairs.counts if self._pairs else results.Counts(games.wins, games.draws, games.losses)
        )

    def _versus(self, first: int, second: int) -> list[str]:
        names = self._table.names
        whole = self._table.pairs(first, second)
        counts = self._seen(whole, self._table.between(first, second))
        figures = _Figures(counts)
        drawn = _fixed(100 * _drawn(counts))
        share = _fixed(100 * _share(counts.points, counts.games))
        nelo = f"{_fixed(figures.nelo)} +/- {_fixed(figures.nelo_error)}"
        games = f"Games: {counts.games}, Wins: {counts.wins}, Losses: {counts.losses}"
        lines = [
            f"Results of {names[first]} vs {names[second]} ({self._terms(first, second)}):",
            f"Elo: {_fixed(figures.elo)} +/- {_fixed(figures.error)}, nElo: {nelo}",
            f"LOS: {_fixed(100 * figures.los)} %, DrawRatio: {drawn} %",
            f"{games}, Draws: {counts.draws}, Points: {counts.points:.1f} ({share} %)",
        ]
        if self._pairs:
            worst, bad, even, good, best = counts.pairs
            lines[2] += f", PairsRatio: {_fixed(_share(good + best, worst + bad))}"
            ratio = _share(whole.decisive, even - whole.decisive)
            lines.append(f"Ptnml(0-2): {list(counts.pairs)}, WL/DD Ratio: {_fixed(ratio)}")
        return lines

    def _terms(self, first: int, second: int) -> str:
        """Return the conditions of a match: clock, threads, hash and book."""
        both = self._settings.engines[first], self._settings.engines[second]
        book = self._settings.openings
        terms = [
            _alike(_limit(engine.control) for engine in both),
            _alike(_option(engine, "Threads", "t") for engine in both),
            _alike(_option(engine, "Hash", "MB") for engine in both),
        ]
        if book is not None and book.file is not None:
            terms.append(book.file.name)
        return ", ".join(terms)

    def _table_lines(self) -> list[str]:
        width = max(SHORTEST, *(len(name) for name in self._table.names))
        head = ("Elo", "+/-", "nElo", "+/-", "Games", "Score", "Draw")
        last = f" {'Ptnml(0-2)':>20}" if self._pairs else ""
        lines = [f"{'Rank':<4} {'Name':<{width}} {' '.join(f'{h:>10}' for h in head)}{last}"]
        rows = []
        for engine, name in enumerate(self._table.names):
            counts = self._seen(self._table.pairs_of(engine), self._table.of(engine))
            rows.append((_Figures(counts), counts, name))
        rows.sort(key=lambda row: math.inf if math.isnan(row[0].elo) else -row[0].elo)
        for rank, (figures, counts, name) in enumerate(rows, start=1):
            last = f" {list(counts.pairs)!s:>20}" if self._pairs else ""
            lines.append(
                f"{rank:>4} {name:<{width}} {_fixed(figures.elo):>10}"
                f" {_fixed(figures.error):>10} {_fixed(figures.nelo):>10}"
                f" {_fixed(figures.nelo_error):>10} {counts.games:>10}"
                f" {_fixed(100 * _share(counts.points, counts.games), 1):>9}%"
                f" {_fixed(100 * _drawn(counts), 1):>9}%{last}"
            )
        return lines


class Cutechess(_Peer):
    """cutechess-cli's lines: a score after each game, Elo over single games."""

    def __init__(
        self, settings: arguments.Settings, table: standings.Standings, games: int
    ) -> None:
        super().__init__(settings, table, games)
        self._outcomes: list[collections.Counter[str]] = [
            collections.Counter() for _ in table.names
        ]
        self._printed = -1

    def played_before(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Count how a game ended that was played before the match was resumed."""
        self._outcome(slot, result)

    def finished(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Tell a result and the score; the ranking at its intervals."""
        self._tell_fault(slot, result)
        self._outcome(slot, result)
        self._print(self._finished(slot, result.result, _cutechess_reason(result)))
        if self._two:
            self._print(self._score())
        if report.due(self._table.played, self._settings.rating_interval):
            self._ranking()

    def end(self, reason: str) -> None:
        """Print the ranking and how each engine's games ended."""
        if self._printed != self._table.played:
            self._ranking()
        for name, seen in zip(self._table.names, self._outcomes, strict=True):
            self._print("", f"Player: {name}")
            for outcome, count in sorted(seen.items()):
                self._print(f'   "{outcome}": {count}')
        self._print("Finished match")
        if reason:
            self.say(f"The match ended early: {reason}")

    def _outcome(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        details = _cutechess_reason(result)
        for engine, side in ((slot.white, "white"), (slot.black, "black")):
            kind = "" if result.loser is None else "Loss: " if side == result.loser else "Win: "
            self._outcomes[engine][kind + details] += 1

    def _ranking(self) -> None:
        self._printed = self._table.played
        lines = self._two_lines() if self._two else self._many_lines()
        test = self._settings.test
        if test is not None and self._table.played:
            games = self._table.between(0, 1)
            llr, hypothesis = test.llr(games), test.verdict(games)
            accepted = f" - {hypothesis} was accepted" if hypothesis else ""
            lines.append(
                f"SPRT: llr {llr:.3g} ({100 * llr / test.upper:.1f}%),"
                f" lbound {test.lower:.3g}, ubound {test.upper:.3g}{accepted}"
            )
        self._print(*lines)

    def _two_lines(self) -> list[str]:
        counts = self._table.between(0, 1)
        games = _Figures(_single(counts), CUTECHESS_NORMAL)
        decided = counts.wins + counts.losses
        los = 50 + 50 * math.erf(_share(counts.wins - counts.losses, math.sqrt(2 * decided)))
        drawn = 100 * _share(counts.draws, counts.games)
        difference = f"Elo difference: {games.elo:.1f} +/- {games.error:.1f}"
        sides = self._colours() if counts.games else []
        return [*sides, f"{difference}, LOS: {los:.1f} %, DrawRatio: {drawn:.1f} %"]

    def _many_lines(self) -> list[str]:
        heads = ("Elo", "+/-", "Games", "Score", "Draw")
        lines = [f"{'Rank':>4} {'Name':<25} {' '.join(f'{head:>7}' for head in heads)} "]
        for rank, engine in enumerate(self._table.ranked(), start=1):
            counts = self._table.of(engine)
            figures = _Figures(_single(counts), CUTECHESS_NORMAL)
            lines.append(
                f"{rank:>4} {self._table.names[engine]:<25} {figures.elo:>7.0f}"
                f" {figures.error:>7.0f} {counts.games:>7}"
                f" {100 * _share(counts.points, counts.games):>6.1f}%"
                f" {100 * _share(counts.draws, counts.games):>6.1f}% "
            )
        return [*lines, ""]


REPORTS = {"farm": report.Report, "fastchess": Fastchess, "cutechess": Cutechess}


def of(settings: arguments.Settings, table: standings.Standings, games: int) -> report.Report:
    """Return the report that ``-output`` asks for."""
    return REPORTS[settings.output](settings, table, games)


# -- words ---------------------------------------------------------------------------------


def _cutechess_reason(result: match_journal.Result) -> str:
    return verdict.peer_sentence(result.outcome, "cutechess")


def _fastchess_reason(result: match_journal.Result) -> str:
    """Return why a game ended; an illegal move is in a line of its own and in the PGN's comment."""
    if result.ending is contract.Ending.ILLEGAL:
        return result.details
    return verdict.peer_sentence(result.outcome, "fastchess")


def _limit(control: contract.TimeControl) -> str:
    if control.base_ms:
        period = f"{control.moves}/" if control.moves else ""
        increment = f"+{control.increment_ms / 1000:.2g}" if control.increment_ms else ""
        return f"{period}{control.base_ms / 1000:.15g}{increment}"
    if control.move_ms is not None:
        return f"{control.move_ms / 1000:.15g}/move"
    if control.depth is not None:
        return f"{control.depth} plies"
    return "" if control.nodes is None else f"{control.nodes} nodes"


def _option(engine: engines.Engine, name: str, unit: str) -> str:
    """Return the value that was given; an engine's own default is not known here."""
    given = {key.lower(): value for key, value in engine.spec.options.items()}
    return f"{given[name.lower()]}{unit}" if name.lower() in given else "NULL"


def _alike(both: Iterable[str]) -> str:
    first, second = both
    return first if first == second else f"{first} - {second}"


# -- numbers -------------------------------------------------------------------------------


class _Figures:
    """Elo of pairs, or of games where there are none, by IEEE's rules for infinities."""

    def __init__(self, counts: results.Counts, normal: float = elo.CONFIDENCE) -> None:
        seen = counts.distribution()
        variance = seen.variance if seen.total else math.nan
        mean = seen.mean if seen.total else math.nan
        error = math.sqrt(_share(variance, seen.total))
        low, high = mean - normal * error, mean + normal * error
        unit = _share(elo.NORMALIZED, math.sqrt(variance) * seen.scale)
        self.elo = _elo(mean)
        beyond = low < 0 or high > 1  # the logarithm of a negative number: ``nan`` with a plus
        self.error = math.nan if beyond else _nan((_elo(high) - _elo(low)) / 2)
        self.nelo = _nan((mean - 0.5) * unit)
        self.nelo_error = _nan(((high - 0.5) * unit - (low - 0.5) * unit) / 2)
        self.los = _nan((1 - math.erf(-_share(mean - 0.5, math.sqrt(2) * error))) / 2)


def _fixed(value: float, digits: int = 2) -> str:
    """Write a number as fastchess does, which writes the sign of what is no number, too."""
    sign = "-" if math.isnan(value) and math.copysign(1, value) < 0 else ""
    return f"{sign}{value:.{digits}f}"


def _nan(value: float) -> float:
    """Return a number as x86 computes it: what is none by subtraction or division is -nan."""
    return _NAN if math.isnan(value) else value


def _single(counts: results.Counts) -> results.Counts:
    return results.Counts(counts.wins, counts.draws, counts.losses)


def _elo(score: float) -> float:
    odds = _share(1, score) - 1
    if odds > 0:
        return -400 * math.log10(odds) if math.isfinite(odds) else -math.inf
    return math.inf if odds == 0 else _NAN


def _share(part: float, whole: float) -> float:
    """Divide as floating point does: by zero is infinite, or ``nan``."""
    if whole:
        return part / whole
    return math.copysign(math.inf, part) if part and not math.isnan(part) else _NAN


def _drawn(counts: results.Counts) -> float:
    """Return the share of even pairs, or of drawn games where there are no pairs."""
    pairs = sum(counts.pairs)
    return counts.pairs[2] / pairs if pairs else _share(counts.draws, counts.games)
