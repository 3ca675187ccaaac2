"""Simulate SPRT tests that remote workers play, some of them bad: who is found, after how much.

``make workers`` (or with TESTS=1000 SEED=1 ELO1=20). The engines are equal, so each accepted
test is a false one. One worker of twenty is bad, in one of eight ways; whoever is found comes back
in the next test under a new token. Machines of honest workers differ: each has a difference of its
own (4 Elo) in each test, and loses games on time at a rate of its own. Three rules play the same:
all evidence (``worker_review``), the residual rule alone (a mean 5 standard errors from all
others', looked at after each test), and none.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from orchestrator import contract
from orchestrator.rating import results, sprt
from orchestrator.testmatch import orders, worker_review

WORKERS, BAD = 200, 10
PAIRS = (0.02, 0.2, 0.56, 0.2, 0.02)  # of equal engines, by half points
LOOK = 40  # pairs between two looks at the test
MOST = 20_000  # pairs of a test
ERRORS = 5.0  # standard errors of the residual rule
LEAST = 8  # pairs, fewer have no standard error
RIGHT, WRONG = "e2e4", "d2d4"  # how a check is played
GAMES = 1_000_000


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to be: what is told of the tested engine (share of a point), and what shows it."""

    name: str
    more: float = 0.0
    faults: float = 0.001  # of games, lost by either side
    checked: bool = False  # its checks go wrong
    clock: float = 1.0  # its clock's speed
    stamped: bool = False  # its thinking times repeat


HONEST = Kind("honest")
KINDS = (
    Kind("slow: 12 % lost on time", faults=0.12),
    Kind("noisy: 6 % lost on time", faults=0.06),
    Kind("another binary", more=-0.1, checked=True),
    Kind("another binary, true checks", more=-0.1),
    Kind("made-up wins", more=0.3, checked=True),
    Kind("made-up wins, true checks", more=0.3),
    Kind("made-up, repeated times", more=0.1, stamped=True),
    Kind("clock 10 % slow", clock=0.9),
)


@dataclasses.dataclass
class Worker:
    """A worker under its token, and what it has played so far."""

    token: str
    kind: Kind
    faults: float
    games: int = 0
    score: float = 0.0  # of pairs, from 0 to 1
    squares: float = 0.0


@dataclasses.dataclass
class Outcome:
    """What came of all tests under one rule."""

    accepted: int = 0
    pairs: int = 0
    false_alarms: int = 0
    games: dict[str, list[int]] = dataclasses.field(default_factory=lambda: defaultdict(list))
    missed: dict[str, int] = dataclasses.field(default_factory=lambda: defaultdict(int))


class Rule:
    """No rule: nobody is found. Others say after each pair, and at a test's end, who is."""

    def begin(self, workers: Sequence[Worker]) -> list[Worker]:
        """Start a test."""
        return []

    def pair(self, worker: Worker, half_points: int, faults: int, pair: int) -> list[str]:
        """Take a pair; return the tokens that are found."""
        return []

    def end(self, workers: Sequence[Worker]) -> list[str]:
        """End a test; return the tokens that are found."""
        return []

    def doubted(self) -> set[str]:
        """Return the tokens without which a verdict has to stand, too."""
        return set()


class Residual(Rule):
    """The residual rule alone."""

    def end(self, workers: Sequence[Worker]) -> list[str]:
        """Look at each worker's mean beside that of all others."""
        all_of = [
            sum(each) for each in zip(*((w.games / 2, w.score) for w in workers), strict=True)
        ]
        found = []
        for one in workers:
            pairs, others = one.games / 2, all_of[0] - one.games / 2
            if pairs < LEAST or not others:
                continue
            spread = math.sqrt(max(0.01, one.squares / pairs - (one.score / pairs) ** 2))
            apart = one.score / pairs - (all_of[1] - one.score) / others
            if abs(apart) > ERRORS * spread / math.sqrt(pairs):
                found.append(one.token)
        return found


class Everything(Rule):
    """All evidence, as the keeper of a match folds it."""

    def __init__(self) -> None:
        self.spec = orders.Spec(
            id="m",
            engines=tuple(contract.EngineSpec(id=n, name=n, command=(n,)) for n in "ab"),
            time_control=contract.TimeControl(base_ms=1000),
            games=GAMES,
            check_nodes=1,
        )
        self._known: dict[str, list[float]] = {}
        self._games: dict[str, int] = defaultdict(int)

    def begin(self, workers: Sequence[Worker]) -> list[str]:
        """Start with what earlier tests have found, and let each worker play a check."""
        self.review = worker_review.WorkerReview(self.spec)
        self.review.carry(self._known)
        self._checks: dict[str, int] = {}
        for number in range(1, orders.CHECKS + 1):
            for _ in range(worker_review.LANE_RUNS):
                self.review.check(self._check(None, orders.LAST_GAME + number, RIGHT))
        for worker in workers:
            self._ask(worker)
        found = self._found()
        for worker in workers:  # a wrong one is followed by another before any game
            if self.review.doubtful(worker.token):
                self._ask(worker)
        return found + self._found()

    def pair(self, worker: Worker, half_points: int, faults: int, pair: int) -> list[str]:
        """Take both games of a pair."""
        shared = {
            "host": worker.token,
            "hall": "",
            "attempt": f"{worker.token}/b",
            "loser": "white",
        }
        first = min(2, max(0, half_points - half_points // 2))
        for game, points in ((2 * pair - 1, first), (2 * pair, half_points - first)):
            white = points if game % 2 else 2 - points
            fault = faults > 0
            faults -= 1
            data: dict[str, Any] = {
                **shared,
                "game": game,
                "result": ("0-1", "1/2-1/2", "1-0")[white],
                "ending": contract.Ending.TIME if fault else contract.Ending.CHECKMATE,
                "stamps": {"plies": 80, "repeated": 79 * worker.kind.stamped, "overhead_ns": 80},
            }
            at = self._games[worker.token] = self._games[worker.token] + 1
            if worker.kind.clock != 1:  # results come each minute: honest clocks show nothing
                at_ms = 70_000 * at
                day = boot = round(at_ms * worker.kind.clock)
                heard = round((at_ms - 70_000) * worker.kind.clock)
                data["clock"] = {"process": "p", "at_ms": at_ms, "boot_ms": boot, "day_ms": day}
                data["clock"]["heard"] = {"at_ms": at_ms - 70_000, "boot_ms": heard}
            self.review.game(data)
        return self._found()

    def end(self, workers: Sequence[Worker]) -> list[str]:
        """Keep the evidence for the next test."""
        self._known = self.review.carried()
        return []

    def doubted(self) -> set[str]:
        """Return whom the review doubts."""
        return self.review.doubted()

    def _ask(self, worker: Worker) -> None:
        at = self._checks[worker.token] = self._checks.get(worker.token, 0) + 1
        line = WRONG if worker.kind.checked else RIGHT
        self.review.check(self._check(worker.token, orders.LAST_GAME + at, line))

    @staticmethod
    def _check(token: str | None, game: int, move: str) -> dict[str, Any]:
        hall = {"hall": "main", "attempt": "lane"} if token is None else {"attempt": f"{token}/b"}
        san = move[2:]
        told = {"game": game, "host": token or "h", "pgn": f"1. {san} *", "result": "1/2-1/2"}
        return {**told, **hall, "ending": contract.Ending.MAX_MOVES}

    def _found(self) -> list[str]:
        found = [one.token for one in self.review.findings()]
        for token in found:
            self.review.condemn(token, "found")
        return found


class Tests:
    """All tests under one rule, drawn from one seed."""

    def __init__(self, rule: Rule, seed: int, elo1: float) -> None:
        self.rule, self.random = rule, random.Random(seed)
        self.test = sprt.Test(0, elo1)
        self.outcome = Outcome()
        self._tokens = (f"t{number}" for number in itertools.count())
        self.workers = [self._new(KINDS[at % len(KINDS)]) for at in range(BAD)]
        self.workers += [self._new(HONEST) for _ in range(WORKERS - BAD)]

    def run(self, tests: int) -> Outcome:
        """Play all tests."""
        for _ in range(tests):
            self._one()
        for worker in self.workers[:BAD]:
            self.outcome.missed[worker.kind.name] += 1
        return self.outcome

    def _new(self, kind: Kind) -> Worker:
        often = kind.faults * (self.random.lognormvariate(0, 0.7) if kind is HONEST else 1)
        return Worker(next(self._tokens), kind, often)

    def _one(self) -> None:
        """Play one test to its decision."""
        living = list(self.workers)
        gone = set(self.rule.begin(living))
        tables = {one.token: self._table(one) for one in living}
        counts: dict[str, list[int]] = {one.token: [0] * results.PAIR_SCORES for one in living}
        for pair in range(1, MOST + 1):
            if gone:
                living = self._without(living, gone, counts)
                gone = set()
            worker = self.random.choice(living)
            faults = sum(self.random.random() < worker.faults for _ in range(2))
            seen = self.random.choices(range(5), tables[worker.token])[0]
            if faults:  # whoever loses on time is anybody
                seen = sum(self.random.choice((0, 2)) for _ in range(faults))
                seen += self.random.choices(range(3), (1, 3, 1))[0] * (2 - faults)
            worker.games += 2
            worker.score += seen / 4
            worker.squares += (seen / 4) ** 2
            counts[worker.token][seen] += 1
            gone = set(self.rule.pair(worker, seen, faults, pair))
            if pair % LOOK == 0 and not gone and (verdict := self._verdict(counts)):
                self.outcome.accepted += verdict == "H1"
                break
        self.outcome.pairs += pair
        self._without(living, gone | set(self.rule.end(living)), counts)

    def _verdict(self, counts: dict[str, list[int]]) -> sprt.Verdict | None:
        """Return the verdict where it stands without those who are doubted, too."""
        verdict = self._of(counts)
        if verdict is not None and (doubted := self.rule.doubted()):
            others = {token: one for token, one in counts.items() if token not in doubted}
            return verdict if self._of(others) == verdict else None
        return verdict

    def _of(self, counts: dict[str, list[int]]) -> sprt.Verdict | None:
        pairs = [sum(each) for each in zip(*counts.values(), strict=True)]
        wins, draws, losses = 2 * pairs[4] + pairs[3], 0, 2 * pairs[0] + pairs[1]
        draws = 2 * sum(pairs) - wins - losses
        return self.test.verdict(results.Counts(wins, draws, losses, tuple(pairs)))  # type: ignore[arg-type]

    def _table(self, worker: Worker) -> list[float]:
        """Return a worker's pairs in this test: tilted by what its machine, or its lie, makes."""
        more = worker.kind.more
        if worker.kind is HONEST:
            more = self.random.gauss(0, 4) * math.log(10) / 1600
        t = more / 0.0325  # the variance of a pair's score
        for _ in range(8):
            table = [share * math.exp(t * at / 4) for at, share in enumerate(PAIRS)]
            whole = sum(table)
            mean = sum(at * one for at, one in enumerate(table)) / whole / 4
            t += (0.5 + more - mean) / 0.0325
        return table

    def _without(
        self, living: list[Worker], gone: set[str], counts: dict[str, list[int]]
    ) -> list[Worker]:
        """Take out whoever was found; he comes back next time under a new token."""
        for at, worker in enumerate(self.workers):
            if worker.token in gone:
                if worker.kind is HONEST:
                    self.outcome.false_alarms += 1
                else:
                    self.outcome.games[worker.kind.name].append(worker.games)
                counts.pop(worker.token, None)
                self.workers[at] = self._new(worker.kind)
        return [one for one in living if one.token not in gone]


RULES = {"all evidence": Everything, "residuals alone": Residual, "none": Rule}


def main(words: list[str]) -> None:
    """Run all rules and print what came of them."""
    tests, seed, elo1 = (int(one) for one in [*words, *("1000", "1", "20")[len(words) :]])
    for name, rule in RULES.items():
        began = time.process_time()
        one = Tests(rule(), seed, elo1).run(tests)
        print(
            f"{name}: {one.accepted} of {tests} accepted ({one.accepted / tests:.1%}),"
            f" {one.pairs} pairs, honest workers condemned {one.false_alarms},"
            f" {time.process_time() - began:.0f} s of CPU"
        )
        for kind in KINDS:
            games = one.games[kind.name]
            told = f"median {statistics.median(games):.0f}, most {max(games)}" if games else "never"
            left = one.missed[kind.name]
            print(f"  {kind.name}: found {len(games)}, games until then {told}, left {left}")


if __name__ == "__main__":
    main(sys.argv[1:])
