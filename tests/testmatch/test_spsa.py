"""SPSA: what is dealt, where it leads, and that a journal alone gives it again."""

from __future__ import annotations

import itertools
import math
import pathlib
import statistics
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import harness
import hypothesis
import pytest
from hypothesis import strategies

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import lane_store, lanes, store
from orchestrator.testmatch import openings, orders, sprt_match, spsa

HALL = "main"
Options: TypeAlias = Mapping[str, object]
BEST = {"Razor": 460.0, "Scale": 0.8}  # of the engine that plays here
ELO = {"Razor": 160.0, "Scale": 0.9}  # so far from its best an engine loses 100 Elo


def parameter(**other: Any) -> spsa.Parameter:
    """Describe an int."""
    facts = {"name": "Razor", "whole": True, "start": 300, "least": 100, "most": 600}
    return spsa.Parameter.model_validate(facts | {"c_end": 20, "r_end": 0.002} | other)


def a_tuning(iterations: int = 400, pairs: int = 1, **other: Any) -> spsa.Tuning:
    """Describe a tuning of an int and a float."""
    scale = {"name": "Scale", "whole": False, "start": 2, "least": 0.1, "most": 4}
    both = (parameter(r_end=0.06), parameter(**scale, c_end=0.1, r_end=0.06))
    facts = {"parameters": both, "iterations": iterations, "pairs": pairs, **other}
    return spsa.Tuning.model_validate(facts)


def points(tested: Options, other: Options, lot: str) -> float:
    """Return what the first of two engines, best at ``BEST``, gets: of 100 Elo more, 64 %."""
    elo = [
        -sum(100 * ((float(str(side[name])) - BEST[name]) / ELO[name]) ** 2 for name in BEST)
        for side in (tested, other)
    ]
    expected = 1 / (1 + 10 ** ((elo[1] - elo[0]) / 400))
    drawn = openings.draw(lot) / 2**64
    return 0.5 if drawn < 0.4 else float((drawn - 0.4) / 0.6 < expected)


# -- what is dealt ---------------------------------------------------------------------


numbers = strategies.floats(-1000, 1000)
PARAMETERS = strategies.builds(
    lambda whole, ends, c_end, at: parameter(
        whole=whole,
        least=(low := math.floor(min(ends))),
        most=(high := math.floor(max(ends)) + 2),
        start=low + math.floor(at * (high - low)),
        c_end=c_end,
    ),
    strategies.booleans(),
    strategies.tuples(numbers, numbers),
    strategies.floats(0.01, 50),
    strategies.floats(0, 1),
)


@hypothesis.settings(max_examples=50)
@hypothesis.given(PARAMETERS, strategies.integers(1, 50), strategies.floats(0, 1))
def test_both_sides_are_mirrored_within_the_bounds(
    one: spsa.Parameter, iteration: int, at: float
) -> None:
    """One is above the value as far as the other is below it, but for bounds and rounding."""
    tuning = spsa.Tuning(parameters=(one,), iterations=50)
    value = one.least + at * (one.most - one.least)
    sides = tuning.sides([value], "seed", iteration)
    assert sides == tuning.sides([value], "seed", iteration), "of the same lots the same"
    told = [float(side[one.name]) for side in sides]
    assert all(one.least <= said <= one.most for said in told)
    move = tuning.move(one, iteration)
    rounding = 1.0 if one.whole else 1e-4 * max(abs(value), move)
    if all(one.least < said < one.most for said in told):
        assert abs(told[0] + told[1] - 2 * value) <= 2 * rounding
        assert abs(abs(told[0] - told[1]) - 2 * move) <= rounding
        assert told[0] != told[1]
    if one.whole:
        assert all(said.is_integer() for said in told)


def test_lots_are_of_the_seed_and_even() -> None:
    """Another seed, another way; each direction comes as often, and rounding keeps the mean."""
    tuning = a_tuning(iterations=1000)
    first, other = (
        [tuning.sides((300.25, 1.0), seed, k) for k in range(1, 1001)] for seed in ("a", "b")
    )
    assert first != other
    up = [float(tested["Razor"]) > float(against["Razor"]) for tested, against in first]
    assert 450 < sum(up) < 550
    means = [(int(tested["Razor"]) + int(against["Razor"])) / 2 for tested, against in first]
    assert abs(statistics.mean(means) - 300.25) < 0.05


@pytest.mark.parametrize(("iteration", "c", "r"), [(1, 31.845, 0.0031552), (100, 20.0, 0.002)])
def test_gains_are_those_of_the_field(iteration: int, c: float, r: float) -> None:
    """c_end and r_end are those of the last iteration; before it they fall as Spall's do.

    By OpenBench: c(k) = c_end * N^gamma / k^gamma, a = r_end * c_end^2 * (A + N)^alpha, and
    R(k) = a / (A + k)^alpha / c(k)^2.
    """
    tuning, one = spsa.Tuning(parameters=(parameter(),), iterations=100), parameter()
    by_field = one.c_end * 100**0.101 / iteration**0.101
    a = one.r_end * one.c_end**2 * (10 + 100) ** 0.602
    assert tuning.move(one, iteration) == pytest.approx(by_field)
    assert tuning.rate(one, iteration) == pytest.approx(a / (10 + iteration) ** 0.602 / by_field**2)
    assert tuning.rate(one, iteration) == pytest.approx(r, rel=1e-4)
    assert tuning.move(one, iteration) == pytest.approx(c, rel=1e-4)


# -- where it leads --------------------------------------------------------------------


def simulated(tuning: spsa.Tuning, seed: str, ahead: int = 1) -> spsa.Course:
    """Tune with so many iterations in play at a time; return where it led."""
    results: dict[int, float] = {}
    course = spsa.Course(tuning, seed, results.get)
    for first in range(1, tuning.iterations + 1, ahead):
        dealt = course.values
        for iteration in range(first, min(first + ahead, tuning.iterations + 1)):
            sides = tuning.sides(dealt, seed, iteration)
            for game in tuning.games_of(iteration):
                results[game] = points(*sides, f"{seed}/{game}")
                course.add(game)
    return course


@pytest.mark.parametrize(("pairs", "ahead"), [(1, 1), (1, 12), (4, 4)])
def test_values_go_to_where_the_engine_is_best(pairs: int, ahead: int) -> None:
    """From 280 Elo below its best to within 20 of it, also with many games in play."""
    course = simulated(a_tuning(iterations=1200 // pairs, pairs=pairs), "s", ahead)
    elo = sum(
        100 * ((row.value - BEST[row.parameter.name]) / ELO[row.parameter.name]) ** 2
        for row in course.rows()
    )
    assert elo < 20, list(course.rows())


def test_the_same_results_lead_to_the_same_values() -> None:
    """A way is a function of seed and results; another seed goes another one."""
    first, again, other = (simulated(a_tuning(60), seed) for seed in ("a", "a", "b"))
    assert first.values == again.values != other.values


@hypothesis.settings(max_examples=25)
@hypothesis.given(strategies.lists(strategies.integers(1, 24), max_size=8), strategies.randoms())
def test_what_was_set_aside_leaves_no_trace(aside: list[int], chance: Any) -> None:
    """Played again with the same results, or not at all: as if it had never been there."""
    tuning = a_tuning(iterations=6, pairs=2)
    results = {game: chance.choice([0.0, 0.5, 1.0]) for game in range(1, 25)}
    counted = dict(results)
    course = spsa.Course(tuning, "s", counted.get)
    played = chance.sample(range(1, 25), 24)
    for game in played:
        course.add(game)
    gone = set(aside)
    for game in gone:
        del counted[game]
    course.aside(gone)
    left = [game for game in played if game not in gone]
    without = spsa.Course(tuning, "s", counted.get)
    for game in left:
        without.add(game)
    assert sorted(course._scores) == sorted(without._scores)
    for game in gone:
        counted[game] = results[game]
        course.add(game)
    assert course.done == 6


# -- what is asked ---------------------------------------------------------------------


def test_lines_of_both_programs_are_read() -> None:
    """OpenBench's have a type, fishtest's are ints; comments and empty lines are nothing."""
    text = "# ours\nRazor, int, 300, 100, 600, 20, 0.002\n\nScale,float,2,0.1,4,0.1,0.004 # ?\n"
    found = spsa.parameters(f"{text}Futility,120,0,300,10,0.002\n", "f")
    assert [one.name for one in found] == ["Razor", "Scale", "Futility"]
    assert (found[0], found[2].whole) == (parameter(), True)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "found no parameter"),
        ("Razor,int,300,100,600,20", "line 1: could not|line 1: Razor|found"),
        ("Razor,bool,1,0,1,1,1", "allowed: NAME"),
        ("Razor,int,700,100,600,20,0.002", "MIN <= START <= MAX"),
        ("Razor,int,300.5,100,600,20,0.002", "whole START"),
        ("Razor,int,300,100,600,0,0.002", "c_end: "),
        ("Razor,int,300,100,600,20,nan", "r_end: "),
        ("Hash,int,16,1,64,4,0.002", "lanes are chosen by it"),
        ("A\x1bB,int,300,100,600,20,0.002", "name: "),
    ],
)
def test_a_wrong_line_is_refused_by_name(line: str, why: str) -> None:
    """The message says which line it is, and what is allowed."""
    with pytest.raises(errors.UsageError, match=why):
        spsa.parameters(line, "--parameters f")


def test_a_parameter_is_tuned_once() -> None:
    """UCI does not tell razor from Razor."""
    with pytest.raises(ValueError, match="razor: it is tuned twice"):
        a_tuning(parameters=(parameter(), parameter(name="razor")))


# -- in a farm -------------------------------------------------------------------------


def spec_of(tuning: spsa.Tuning, seed: str = "s") -> orders.Spec:
    """Describe the match of a tuning."""
    engine = contract.EngineSpec(id="dev", name="Dev", command=("none",), options={"Hash": 4})
    control = contract.TimeControl(base_ms=1000)
    return orders.Spec(
        id="m",
        engines=(engine, engine),
        time_control=control,
        games=tuning.games,
        seed=seed,
        tuning=tuning,
    )


class Farm:
    """A tuning on a real Redis; this test is its lanes, and plays by what it is dealt."""

    def __init__(self, root: pathlib.Path, url: str, tuning: spsa.Tuning) -> None:
        self.folder, self.spec = root / "m", spec_of(tuning)
        self.ledger, self.lanes = store.connect(url), lane_store.connect(url)
        self.ledger.server.client.flushall()
        self.attempts = itertools.count()
        self.dealt: dict[int, tuple[str, str]] = {}  # what both sides of a game were told to be
        self.open()

    def open(self) -> None:
        """Begin to keep the match, as the command does each time."""
        for name, cpu in (("a", 0), ("b", 1)):
            self.lanes.open_lane(lanes.Lane(HALL, name, "h1", frozenset({cpu}), 1024))
        terms = sprt_match.Terms()
        self.keeper = sprt_match.Keeper(self.ledger, self.lanes, self.folder, self.spec, terms)
        self.keeper.open("test")

    def lease(self, lane: str) -> lanes.Lease | None:
        """Claim a game for a lane, None where there is none."""
        claim = lanes.LaneClaim(HALL, lane, f"{lane}-{next(self.attempts)}", "w", "h1", 60_000)
        reply = self.lanes.claim_lane(claim)
        if not isinstance(reply, lanes.Dealt):
            return None
        place = (HALL, lane, claim.attempt, reply.token, reply.match, reply.games)
        return lanes.Lease(*place, "w", "h1", 0, reply.run)

    def tell(self, lease: lanes.Lease, **other: Any) -> object:
        """Play a game by its order, as a lane does, and tell its result."""
        tuning = self.spec.tuning
        assert tuning is not None
        dealt = self.lanes.values("m", tuning.iteration(lease.game))
        order = self.spec.order(lease.game, values=spsa.values(dealt))
        self.dealt[lease.game] = (str(order.white.options), str(order.black.options))
        assert order.white.options["Hash"] == 4
        white = points(order.white.options, order.black.options, f"farm/{lease.game}")
        said = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}[white]
        facts = {"game": lease.game, "host": "h1", "result": said, "ending": "checkmate"}
        facts |= {"loser": None, "details": "", "note": "", "pgn": f"game {lease.game}", **other}
        return self.lanes.complete_lane(lease, contract.dumps(facts), goes_on=False)

    def play(self, games: int) -> sprt_match.Standing:
        """Play so many games, two at a time, the second of them first."""
        for _ in range(games // 2):
            leased = [lease for lane in "ab" if (lease := self.lease(lane))]
            for lease in reversed(leased):
                self.tell(lease)
            self.step()
        return self.step()

    def step(self) -> sprt_match.Standing:
        """Let the keeper look."""
        return self.keeper.step(lambda _: None, 0)

    def kept(self) -> spsa.Course:
        """Fold what is on disk."""
        course = sprt_match.folded(self.folder, self.spec).course
        assert course is not None
        return course


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Redis]:
    """Run one real server for this file."""
    with harness.Redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def farm(tmp_path: pathlib.Path, server: harness.Redis) -> Iterator[Farm]:
    """Give a tuning of eight iterations of two pairs."""
    made = Farm(tmp_path, server.url, a_tuning(iterations=8, pairs=2))
    yield made
    made.keeper.close()
    made.lanes.close()
    made.ledger.close()


def values_of_pairs(farm: Farm) -> list[set[tuple[str, ...]]]:
    """Return what was played with in each iteration, whoever had White."""
    tuning = farm.spec.tuning
    assert tuning is not None
    return [
        {tuple(sorted(farm.dealt[game])) for game in tuning.games_of(k) if game in farm.dealt}
        for k in range(1, tuning.iterations + 1)
    ]


def test_a_tuning_is_played_like_any_match(farm: Farm) -> None:
    """Both games of all pairs of an iteration have its two sets; each colour has each of them."""
    assert farm.play(32).over
    assert all(len(sets) == 1 for sets in values_of_pairs(farm))
    assert all(farm.dealt[game] == farm.dealt[game + 1][::-1] for game in range(1, 32, 2)), (
        "colours are swapped, values are not"
    )
    course = farm.keeper.standing().course
    assert course is not None
    assert (course.done, course.values) == (8, farm.kept().values)
    assert course.values != farm.spec.tuning.start  # type: ignore[union-attr] # it is there
    assert len({str(dealt.values) for dealt in course.dealt}) > 4, "what was learnt is dealt"
    facts = farm.keeper.standing().as_json()["tuning"]
    assert facts["course"]["values"][-1] == course.values  # type: ignore[index] # a mapping
    assert contract.loads(contract.dumps(facts)), "it is plain data"


@pytest.mark.parametrize("lost", ["redis", "keeper", "both"])
def test_a_tuning_goes_on_exactly(farm: Farm, lost: str) -> None:
    """Whatever is lost on the way: iterations that were begun go on with their values."""
    farm.play(14)
    begun = farm.lease("a")
    assert begun is not None
    before = farm.kept()
    told = {k: spsa.values(farm.lanes.values("m", k)) for k in range(1, 5)}
    if lost != "redis":
        farm.keeper.close()
    if lost != "keeper":
        farm.ledger.server.client.flushall()
    if lost != "redis":
        farm.open()
    farm.step()
    for name, cpu in (("a", 0), ("b", 1)):
        farm.lanes.open_lane(lanes.Lane(HALL, name, "h1", frozenset({cpu}), 1024))
    assert farm.kept().values == before.values
    assert {k: spsa.values(farm.lanes.values("m", k)) for k in range(1, 5)} == told
    counted = farm.tell(begun)
    assert isinstance(counted, lanes.Counted) == (lost == "keeper")
    assert farm.play(18).over
    assert all(len(sets) == 1 for sets in values_of_pairs(farm))
    assert farm.kept().done == 8


def test_what_a_host_has_played_is_taken_out_of_the_values(farm: Farm) -> None:
    """Its iterations are played again, with the values that they had."""
    farm.play(8)
    for lease in (farm.lease("a"), farm.lease("b")):
        assert lease is not None
        farm.tell(lease, host="bad")
    assert farm.step().games == 10
    folded = sprt_match.folded(farm.folder, farm.spec)
    aside = sprt_match.set_aside(farm.lanes, "m", folded.tally, "bad", "op", "fan")
    assert aside == [9, 10]
    farm.step()
    assert farm.kept().done == 2
    assert farm.play(24).over
    assert all(len(sets) == 1 for sets in values_of_pairs(farm))
    assert farm.keeper.standing().set_aside == 2


def test_a_parameter_that_the_engine_has_not_ends_the_tuning(farm: Farm) -> None:
    """It would be played for nothing; set aside, the match goes on."""
    lease = farm.lease("a")
    assert lease is not None
    farm.tell(lease, unmet="Razor: not offered")
    with pytest.raises(
        errors.RefusedError, match="m: game 1: Razor: not offered; nothing is tuned"
    ):
        farm.step()
    folded = sprt_match.folded(farm.folder, farm.spec)
    sprt_match.set_aside(farm.lanes, "m", folded.tally, "h1", "op", "wrong build")
    assert farm.step().games == 0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"first": 2, "done": 1, "values": [1.0]}, "values of 2 parameters"),
        ({"first": 0, "done": 1, "values": [1.0, 2.0]}, "first: "),
        ({"first": 2, "done": 1, "values": [1.0, math.inf]}, "values.1: "),
    ],
)
def test_values_that_are_none_are_not_folded(farm: Farm, data: dict[str, Any], why: str) -> None:
    """Whoever wrote them."""
    draft = contract.Draft(lanes.TUNED, data)
    farm.lanes.replay("m", [], draft, "somebody")
    with pytest.raises(errors.LedgerDamagedError, match=why):
        farm.step()
