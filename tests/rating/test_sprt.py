"""Sequential tests: reference values of fishtest's code, bounds, symmetry."""

from __future__ import annotations

import csv
import itertools
import math
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common import errors
from orchestrator.rating import elo, results, sprt

REFERENCE = pathlib.Path(__file__).parents[1] / "data" / "sprt" / "sprt_pentanomial_llr.csv"
PAIRS = st.tuples(*[st.integers(0, 200)] * 5)


def test_the_reference_values_are_met() -> None:
    """Every pentanomial LLR of the reference agrees to 1e-3, in both models."""
    with REFERENCE.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    names = ("LL", "LD_DL", "LW_DD_WL", "DW_WD", "WW")
    for row in rows:
        seen = results.Distribution([int(row[name]) for name in names])
        model = row["elo_model"]
        assert model in ("normalized", "logistic")
        llr = sprt.ratio(seen, float(row["elo0"]), float(row["elo1"]), model)
        assert llr == pytest.approx(float(row["llr"]), abs=1e-3), row


@given(PAIRS, st.sampled_from(sprt.MODELS))
def test_the_ratio_turns_its_sign_with_the_hypotheses(
    pairs: tuple[int, int, int, int, int], model: sprt.Model
) -> None:
    """Asking the other way round, or from the other side, turns the sign of the LLR."""
    seen = results.Distribution(pairs)
    turned = results.Distribution(pairs[::-1])
    llr = sprt.ratio(seen, 0.0, 5.0, model)
    assert llr == pytest.approx(-sprt.ratio(seen, 5.0, 0.0, model), abs=1e-6)
    assert llr == pytest.approx(-sprt.ratio(turned, -5.0, 0.0, model), abs=1e-6)


def test_a_match_stops_at_the_bounds() -> None:
    """Many wins accept H1, many losses H0, and nothing played accepts neither."""
    question = sprt.Test(0, 10)
    assert question.verdict(results.Counts()) is None
    wins = results.Counts(600, 800, 300, (20, 130, 400, 230, 70))
    assert question.verdict(wins) == "H1"
    assert question.verdict(wins.reversed()) == "H0"
    assert question.upper == pytest.approx(2.944, abs=1e-3)
    assert question.lower == pytest.approx(-2.944, abs=1e-3)


@pytest.mark.parametrize(
    "bounds",
    [
        (5.0, 5.0, 0.05, 0.05),
        (5.0, 0.0, 0.05, 0.05),
        (0.0, 5.0, 0.0, 0.05),
        (0.0, 5.0, 0.05, 0.0),
        (0.0, 5.0, 0.5, 0.5),
    ],
)
def test_bounds_that_ask_nothing_are_refused(bounds: tuple[float, float, float, float]) -> None:
    """Equal or turned hypotheses and impossible error rates are wrong usage."""
    with pytest.raises(errors.UsageError, match="-sprt: found"):
        sprt.Test(*bounds)


COUNTS = [
    *(results.Counts(*counts) for counts in itertools.product((0, 1, 100_000), repeat=3)),
    *(results.Counts(pairs=pairs) for pairs in itertools.product((0, 1, 30_000), repeat=5)),
]


@pytest.mark.parametrize("model", sprt.MODELS)
def test_the_widest_question_has_an_answer_whatever_was_played(model: sprt.Model) -> None:
    """However one-sided the results, the ratio is a number, from the other side its opposite."""
    widest = sprt.WIDEST[model]
    up, down = sprt.Test(0, widest, model=model), sprt.Test(-widest, 0, model=model)
    for counts in COUNTS:
        assert up.llr(counts) == pytest.approx(-down.llr(counts.reversed()), rel=1e-3, abs=1e-3)
    for elo0, elo1 in ((0, widest + 1), (-widest - 1, 0), (0, math.inf)):
        with pytest.raises(errors.UsageError, match=f"allowed: -{widest} to {widest}"):
            sprt.Test(elo0, elo1, model=model)


def test_elo_and_score_are_inverse() -> None:
    """The score an Elo difference brings is worth that difference."""
    for one in (-400, -35.5, 0, 12, 800):
        assert elo.difference(elo.expected(one)) == pytest.approx(one, abs=1e-9)
    assert elo.difference(1.0) == float("inf")
    assert elo.difference(0.0) == float("-inf")


def test_known_matches() -> None:
    """Elo, error, normalized Elo and LOS of matches worked out by hand."""
    even = results.Counts(30, 40, 30)
    assert elo.logistic(even).elo == 0
    assert elo.superiority(even) == 0.5
    better = results.Counts(40, 40, 20)  # mean 0.6, variance 0.14
    estimate = elo.logistic(better)
    assert estimate.elo == pytest.approx(70.4, abs=0.05)
    assert estimate.error == pytest.approx(53.9, abs=0.6)
    assert elo.normalized(better).elo == pytest.approx(0.1 / 0.14**0.5 * 347.4356, abs=0.01)
    assert elo.superiority(better) == pytest.approx(0.99624, abs=1e-4)


@pytest.mark.parametrize(
    ("counts", "los"),
    [
        (results.Counts(1, 0, 0), None),
        (results.Counts(2, 0, 0, (0, 0, 0, 0, 1)), None),
        (results.Counts(2, 0, 1, (0, 0, 0, 1, 0)), None),  # the third game's pair is not whole
        (results.Counts(0, 4, 0, (0, 0, 2, 0, 0)), 0.5),
        (results.Counts(4, 0, 0, (0, 0, 0, 0, 2)), 0.875),
        (results.Counts(0, 0, 4, (2, 0, 0, 0, 0)), 0.125),
    ],
)
def test_few_results_make_nobody_surely_the_stronger_one(
    counts: results.Counts, los: float | None
) -> None:
    """One pair has no spread, and a sweep of two is no certainty."""
    assert elo.superiority(counts) == los
    assert elo.is_estimated(counts) == (los is not None)


def test_every_game_counts_beside_the_pairs() -> None:
    """Two wins of three are worth 120 Elo, also where two of the games are a pair."""
    counts = results.Counts(2, 0, 1, (0, 0, 1, 0, 0), singles=(0, 0, 1))
    assert elo.logistic(counts).elo == pytest.approx(elo.difference(2 / 3))
    assert counts.observed().error == pytest.approx((2 / 9) ** 0.5 / 3)
    assert elo.logistic(counts.reversed()).elo == pytest.approx(-elo.difference(2 / 3))
    many = results.total([counts] * 100)
    assert many.singles == (0, 0, 100)
    assert elo.normalized(many).elo == pytest.approx((1 / 6) / (2 / 27) ** 0.5 * elo.NORMALIZED)
    question = sprt.Test(0, 5)
    pairs, singles = results.Counts(1, 0, 1, (0, 0, 1, 0, 0)), results.Counts(1)
    assert question.llr(counts) == pytest.approx(question.llr(pairs) + question.llr(singles))
    assert question.llr(many) > question.llr(counts)


def test_a_pair_waits_for_its_second_game() -> None:
    """A test of pairs does not move with the first game of one."""
    whole = results.Counts(3, 2, 1, (0, 1, 1, 1, 0))
    begun = results.Counts(4, 2, 1, (0, 1, 1, 1, 0))
    assert elo.logistic(begun) == elo.logistic(whole)


def test_without_draws_both_elos_are_the_same_near_zero() -> None:
    """Normalized Elo is scaled to logistic Elo of games that are never drawn."""
    close = results.Counts(502, 0, 498)
    assert elo.normalized(close).elo == pytest.approx(elo.logistic(close).elo, rel=1e-3)


@given(PAIRS)
def test_the_other_side_sees_the_opposite(pairs: tuple[int, int, int, int, int]) -> None:
    """Reversed results give the opposite difference and the same error."""
    counts = results.Counts(pairs[3] + 2 * pairs[4], 2 * pairs[2], pairs[1] + 2 * pairs[0], pairs)
    mine, theirs = elo.logistic(counts), elo.logistic(counts.reversed())
    assert mine.elo == pytest.approx(-theirs.elo, abs=1e-6)
    assert mine.error == pytest.approx(theirs.error, rel=1e-6)
    los, other = elo.superiority(counts), elo.superiority(counts.reversed())
    assert (los is None) == (other is None)
    assert los is None or other is None or los == pytest.approx(1 - other)


def test_totals_add_up_field_by_field() -> None:
    """The total of an engine's matches counts every game and every pair once."""
    parts = [results.Counts(1, 2, 3, (1, 0, 1, 0, 1)), results.Counts(4, 0, 1, (0, 1, 0, 1, 0))]
    added = results.total(parts)
    assert (added.wins, added.draws, added.losses) == (5, 2, 4)
    assert added.pairs == tuple(itertools.chain((1, 1, 1, 1, 1)))
    assert (added.games, added.points) == (11, 6.0)
