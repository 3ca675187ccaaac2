"""A storm: faults at named moments of a season, and how soon the farm plays on after each.

Moments are seen from outside: a lease has appeared (claim), a ply has been logged, a game
has been spooled, its result stands in the journal (complete), its folder stands in the
archive. Recovery is the time from the strike to the second ply after it, the first having
perhaps been under way; it is taken only of faults that met a farm that was whole. The same
from the fault's end leaves out how long it lasted, and how long the test took to start again
what it had ended.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime as dt
import json
import pathlib
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import faults
import harness
import redis
import stage as stages
import watch as watches

from orchestrator.common import errors

MOMENTS = ("claim", "ply", "spool", "complete", "archive")
MOMENT_SECONDS = 4.0  # s: longer than a game without faults takes
RECOVERY_SECONDS = 90.0 * harness.BUSY  # s: no fault may stop a farm for longer, beside a lease
TURNS = ("first", "", "last")
Wanted = tuple[faults.Fault, str]  # and its moment


@dataclasses.dataclass(frozen=True)
class Pace:
    """How a storm goes: what part of its time a lasting fault lasts, how often none is awaited.

    ``haste`` is the share of faults that are followed by the next before the farm plays on.
    """

    share: float
    haste: float
    companions: tuple[int, ...] = (0, 1, 2, 2)  # how many more strike at the same moment


SHORT, LONG = Pace(0.25, 0.85), Pace(1.0, 0.3)


@dataclasses.dataclass
class Tally:
    """What a storm has done."""

    struck: collections.Counter[tuple[str, str]] = dataclasses.field(
        default_factory=collections.Counter
    )
    recovered: dict[str, list[float]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(list)
    )
    mended: dict[str, list[float]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(list)
    )
    together: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    seasons: int = 0
    games: int = 0
    attempts: int = 0

    @property
    def injections(self) -> int:
        """Return how many faults have struck."""
        return self.struck.total()

    def report(self, seed: int, seconds: float) -> str:
        """Write a line a fault, and the totals."""
        names = dict.fromkeys([*(name for name, _ in self.struck), *self.recovered])
        heads = " ".join(f"{moment:>8}" for moment in MOMENTS)
        last = "(s, from fault, and from its end, to next move)"
        lines = [f"{'fault':26} {'all':>4} {heads}   p50     p99    p50     p99  {last}"]
        for name in names:
            counts = [self.struck[name, moment] for moment in MOMENTS]
            cells = " ".join(f"{count:8}" for count in counts)
            times = " ".join(quantiles(found[name]) for found in (self.recovered, self.mended))
            lines.append(f"{name:26} {sum(counts):4} {cells} {times}")
        pairs = ", ".join(f"{count} x {size} at once" for size, count in self.together.items())
        every = [seconds for found in self.recovered.values() for seconds in found]
        lines.append(f"{pairs or 'each alone'}; recovery of all: {quantiles(every)}")
        lines.append(
            f"{self.injections} injections, seed {seed}, {seconds:.0f} s: {self.games} games in"
            f" {self.seasons} seasons, {self.attempts} attempts with engines,"
            " 0 lost, 0 duplicated, 0 overlapping, 0 seasons stopped by another, 0 files outside"
        )
        return "\n".join(lines)

    def save(self, path: pathlib.Path) -> None:
        """Write all of it, for `run_chaos.py`, which adds the parts of a run up."""
        struck = [[*key, count] for key, count in self.struck.items()]
        plain = {"struck": struck, "recovered": self.recovered, "mended": self.mended}
        plain |= {name: getattr(self, name) for name in ("seasons", "games", "attempts")}
        plain["together"] = [*self.together.items()]
        path.write_text(json.dumps(plain))

    def add(self, path: pathlib.Path) -> None:
        """Add what another storm has saved."""
        plain = json.loads(path.read_text())
        self.struck.update({(name, moment): count for name, moment, count in plain["struck"]})
        for name, seconds in plain["recovered"].items():
            self.recovered[name] += seconds
        for name, seconds in plain["mended"].items():
            self.mended[name] += seconds
        self.together.update(dict(plain["together"]))
        for name in ("seasons", "games", "attempts"):
            setattr(self, name, getattr(self, name) + plain[name])


def quantiles(seconds: Sequence[float]) -> str:
    """Return median and 99th percentile, as far as there are samples."""
    if not seconds:
        return f"{'-':>6} {'-':>7}"
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"{statistics.median(ordered):6.2f} {last:7.2f}"


class Storm:
    """Faults that are still wanted, each with its moment, and the farm they strike."""

    def __init__(
        self,
        farm: stages.Stage,
        wanted: list[Wanted],
        dice: random.Random,
        tally: Tally,
        pace: Pace,
    ) -> None:
        self._farm, self._wanted, self._dice, self._tally = farm, wanted, dice, tally
        self._pace = pace
        self._whole = True  # whether the farm has played on since the last fault
        self._limit = RECOVERY_SECONDS + farm.lease_seconds

    def strike(self, season: str) -> None:
        """Strike until nothing is wanted any more or the season is over."""
        self._farm.season = season
        moments, struck = Moments(self._farm, season), time.monotonic()
        while self._wanted:
            self._farm.keep_alive()
            if self._over(season):
                return
            fault, moment = self._wanted[-1]
            if moments.reached(moment):
                self._inject(fault, moment, season)
                struck = time.monotonic()
            elif time.monotonic() - struck > self._limit:
                tails = f"{self._farm.serve.log_tail()}\n--\n{self._farm.worker.log_tail()}"
                raise AssertionError(f"no {moment} for {self._limit:g} s:\n{tails}")

    def _inject(self, fault: faults.Fault, moment: str, season: str) -> None:
        watch, began = watches.Watch.begin(self._farm), time.monotonic()
        held = self._struck(fault, moment)
        if held is None:  # a finished game has no referee: another moment, then
            later = MOMENTS[(MOMENTS.index(moment) + 1) % len(MOMENTS)]
            self._wanted[-1] = (fault, later)
            return
        self._wanted.pop()
        self._tally.struck[fault.name, moment] += 1
        all_held = [held, *self._companions(fault, moment)]
        try:
            time.sleep(max(one.seconds for one in all_held) * self._pace.share)
        finally:
            for one in sorted(all_held, key=lambda one: TURNS.index(one.turn)):
                one.mend()
        _tell(f"mended {len(all_held)}")
        if len(all_held) > 1:
            self._tally.together[len(all_held)] += 1
            fault = dataclasses.replace(fault, name=f"{len(all_held)} at once")
        if self._dice.random() < self._pace.haste:
            self._whole = False
            time.sleep(self._dice.uniform(0.0, 0.6))
            return
        ended = time.monotonic()
        alone, self._whole = self._whole, True
        if self._plays_on(watch, ended, season) and alone:
            now, ended = time.monotonic(), max(ended, self._farm.restored)
            self._tally.recovered[fault.name].append(now - began)
            self._tally.mended[fault.name].append(now - ended)

    def _struck(self, fault: faults.Fault, moment: str) -> faults.Held | None:
        held = None
        with contextlib.suppress(redis.RedisError, errors.FarmError):  # Redis is away, or refuses
            held = fault.strike(self._farm, self._dice)
        _tell(f"{fault.name} at {moment}" + ("" if held else ": nothing to strike"))
        return held

    def _companions(self, first: faults.Fault, moment: str) -> Iterator[faults.Held]:
        """Strike other wanted faults at the same moment, too; yield what holds of each."""
        names = {first.name}
        for _ in range(self._dice.choice(self._pace.companions)):
            others = [at for at, (fault, _) in enumerate(self._wanted) if fault.name not in names]
            if not others:
                return
            at = self._dice.choice(others)
            fault = self._wanted[at][0]
            names.add(fault.name)
            held = self._struck(fault, moment)
            if held is not None:
                del self._wanted[at]
                self._tally.struck[fault.name, moment] += 1
                yield held

    def _plays_on(self, watch: watches.Watch, mended: float, season: str) -> bool:
        """Wait for the next moves; False when the season is over instead."""
        checked = mended
        while not watch.moved():
            now = time.monotonic()
            if now - mended > self._limit:
                tails = f"{self._farm.serve.log_tail()}\n--\n{self._farm.worker.log_tail()}"
                raise AssertionError(f"no move for {self._limit:g} s after a fault's end:\n{tails}")
            if now - checked > 0.2:
                checked = now
                self._farm.keep_alive()
                if self._over(season):
                    return False
            time.sleep(0.004)
        return True

    def _over(self, season: str) -> bool:
        try:
            return self._farm.state(season).finished
        except errors.FarmError:
            return False


def _tell(what: str) -> None:
    """Print a line with the time, as in the logs: a red test shows what has struck."""
    print(f"{dt.datetime.now(dt.UTC):%H:%M:%S.%f} {what}", flush=True)


class Moments:
    """Waits for the moments of games, through Redis' own socket and the disk."""

    def __init__(self, farm: stages.Stage, season: str) -> None:
        self._farm, self._season = farm, season
        self._see: dict[str, Callable[[], object]] = {
            "claim": self._attempt,
            "ply": lambda: sum(farm.moves().values()),
            "spool": lambda: frozenset(farm.spool.iterdir()),
            "complete": lambda: farm.ledger.last(season),
            "archive": self._archived,
        }

    def reached(self, moment: str) -> bool:
        """Wait until a moment comes; False when it does not within a game's time."""
        try:
            before = self._see[moment]()
            for _ in watches.until(MOMENT_SECONDS):
                now = self._see[moment]()
                if now != before and self._is(moment, before, now):
                    return True
                before = now
        except (errors.LedgerAwayError, FileNotFoundError):
            time.sleep(0.05)
        return False

    def _is(self, moment: str, before: object, now: object) -> bool:
        """Say whether a change is the one meant: a new lease, not its end."""
        if moment == "claim":
            return now is not None
        if moment == "spool":
            return bool(now - before)  # type: ignore[operator]
        return moment != "complete" or self._finished()

    def _attempt(self) -> str | None:
        slot = self._farm.ledger.slot(harness.HALL)
        return slot.attempt if slot else None

    def _finished(self) -> bool:
        last = self._farm.ledger.last(self._season)
        newest = self._farm.ledger.read(self._season, max(0, last - 3))
        return any(entry.kind == "game_finished" for entry in newest)

    def _archived(self) -> int:
        games = self._farm.archive / self._season / "games"
        return sum(1 for _ in games.glob("*/record.json"))
