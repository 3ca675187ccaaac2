"""Rating lists against those of Ordo 1.2.6, and what must hold for any list."""

from __future__ import annotations

import collections
import csv
import pathlib
import random

import numpy as np
import pytest

from orchestrator.common import errors
from orchestrator.rating import error_bars, likelihood, lists, logistic, ordo, pairings

REFERENCE = pathlib.Path(__file__).parents[1] / "data" / "ordo"
Games = collections.Counter[tuple[str, str, str]]
ESTIMATED = ordo.Settings(white=None, draws=None)
W, D, B = "1-0", "1/2-1/2", "0-1"


def reference() -> list[dict[str, str]]:
    """Return the parameters of the reference lists whose games are at hand."""
    with (REFERENCE / "ordo_params.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [
        row
        for row in rows
        if row["table"] and (REFERENCE / f"ordo_{row['dataset']}_games.csv").exists()
    ]


def read(dataset: str) -> Games:
    """Read a list of games."""
    with (REFERENCE / f"ordo_{dataset}_games.csv").open() as file:
        return Games((row["white"], row["black"], row["result"]) for row in csv.DictReader(file))


def drawn(engines: int, games: int, seed: int, white: float = 35.0, width: float = 150.0) -> Games:
    """Draw games of engines whose ratings are known by their names."""
    numbers = random.Random(seed)
    strength = [numbers.gauss(0, width) for _ in range(engines)]
    found: Games = Games()
    for _ in range(games):
        one, other = numbers.sample(range(engines), 2)
        chances = logistic.outcomes(np.array([strength[one] - strength[other] + white]), 0.5)[0]
        result = numbers.choices(list(pairings.RESULTS), chances.tolist())[0]
        found[f"e{one}", f"e{other}", result] += 1
    return found


@pytest.mark.parametrize("row", reference(), ids=lambda row: f"{row['dataset']}-{row['variant']}")
def test_ordos_lists_are_met(row: dict[str, str]) -> None:
    """Ratings agree to 0.01, white advantage and draw rate to the last figure, errors to 10 %.

    Errors of a few games: 25 %. Where Ordo's check of connections fails, only the
    connected part has numbers; those of one-way islands are meaningless in Ordo too.
    """
    estimated = "wd" in row["variant"]
    anchor = row["flags"].partition("-A ")[2].partition(" -")[0] or None
    rated = ordo.rate(
        pairings.count(read(row["dataset"])),
        ordo.Settings(
            white=None if estimated else 0.0,
            draws=None if estimated else 0.5,
            average=float(row["flags"].split()[1]),
            anchor=anchor,
        ),
    )
    simulated = "-s" in row["flags"]
    found = {
        line.engine: line for line in lists.rows(error_bars.of(rated, 1000 if simulated else 0))
    }
    with (REFERENCE / row["table"]).open() as file:
        theirs = {line["PLAYER"]: line for line in csv.DictReader(file)}
    assert found.keys() == theirs.keys()
    if row["dataset"] == "edge_oneway":
        assert [found[name].provisional for name in "ABCD"] == [False, False, True, True]
        return
    for name, line in theirs.items():
        if found[name].provisional:
            assert row["dataset"] == "edge_islands"
            continue
        assert found[name].rating == pytest.approx(float(line["RATING"]), abs=0.01), name
        assert (found[name].points, found[name].played) == (
            float(line["POINTS"]),
            int(line["PLAYED"]),
        )
        assert found[name].mark == (line.get("PERFECT") or "")
        if simulated:
            assert found[name].error == pytest.approx(float(line["ERROR"]), rel=0.25), name
    assert rated.white == pytest.approx(float(row["white_advantage"]), abs=0.01)
    assert 100 * rated.draws == pytest.approx(float(row["draw_rate_pct"]), abs=0.01)


def test_the_reference_is_not_skipped() -> None:
    """The lists of Ordo are there to be compared with."""
    assert len(reference()) >= 19


def test_expected_scores_are_the_scores() -> None:
    """The likeliest ratings give every engine, and White, the points they took."""
    counted = pairings.count(drawn(20, 2_000, 1))
    found = likelihood.fit(counted, None)
    place = np.append(found.ratings, found.white)
    gradient, _ = likelihood.slopes(counted, place)
    assert found.settled
    assert np.abs(gradient).max() < 1e-6


def test_one_more_game_takes_a_few_steps_from_the_last_list() -> None:
    """A warm start leads to the same ratings in at most three steps, a cold one in more."""
    games = drawn(40, 8_000, 2)
    before = ordo.rate(pairings.count(games), ESTIMATED)
    games["e3", "e7", "1-0"] += 1
    counted = pairings.count(games)
    warm, cold = ordo.rate(counted, ESTIMATED, before), ordo.rate(counted, ESTIMATED)
    assert warm.fit.steps <= 3 < cold.fit.steps
    assert warm.ratings == pytest.approx(cold.ratings, abs=1e-6)


def test_simulated_and_analytic_errors_agree_where_games_are_many() -> None:
    """Both ways lead to the same errors, relative to the mean and to an anchor."""
    counted = pairings.count(drawn(6, 3_000, 3, width=80))
    for anchor in (None, "e2"):
        settings = ordo.Settings(white=None, draws=None, anchor=anchor, exact=True)
        rated = ordo.rate(counted, settings)
        simulated, analytic = error_bars.of(rated, 400), error_bars.of(rated, 0)
        for engine in range(6):
            one, other = simulated.error(engine), analytic.error(engine)
            assert one == pytest.approx(other or 0.0, rel=0.15, abs=1e-9)


def test_errors_are_those_of_games_that_white_s_advantage_made_even() -> None:
    """The weaker one always has White: even scores err most, and both ways say so."""
    games = Games(
        {("weak", "strong", W): 300, ("weak", "strong", D): 400, ("weak", "strong", B): 300}
    )
    rated = ordo.rate(pairings.count(games), ordo.Settings(white=200.0, draws=None))
    simulated, analytic = error_bars.of(rated, 400), error_bars.of(rated, 0)
    assert analytic.error(0) == pytest.approx(simulated.error(0), rel=0.15)


def test_superiority_of_two_is_one_together() -> None:
    """Either the one or the other is stronger, and the better rated is more likely so."""
    rated = ordo.rate(pairings.count(drawn(5, 300, 4)), ESTIMATED)
    known = error_bars.of(rated, 0)
    listed = lists.rows(known)
    table = lists.superiority(known, listed)
    for i, row in enumerate(table):
        for k, cell in enumerate(row):
            if i != k:
                assert (cell or 0) + (table[k][i] or 0) == pytest.approx(1)
                assert ((cell or 0) >= 0.5) == (i < k)


def test_versions_of_a_family_are_one_engine() -> None:
    """A mapping joins names; games within a family tell nothing."""
    games = Games({("A 1", "B", "1-0"): 2, ("A 2", "B", "0-1"): 1, ("A 1", "A 2", "1-0"): 5})
    counted = pairings.count(games, {"A 1": "A", "A 2": "A"})
    assert counted.engines == ("A", "B")
    assert counted.games.sum() == 3


def test_unconnected_engines_get_no_number() -> None:
    """An island beside the rest is provisional, and leaves the others' ratings alone."""
    games = drawn(8, 400, 5)
    alone = ordo.rate(pairings.count(games), ESTIMATED)
    games.update({("x", "y", "1-0"): 1, ("y", "x", "1-0"): 1, ("x", "y", "*"): 9})
    rated = ordo.rate(pairings.count(games), ESTIMATED)
    rows = {row.engine: row for row in lists.rows(error_bars.of(rated, 0))}
    assert rows["x"].provisional
    assert (rows["x"].rank, rows["x"].rating, rows["x"].error) == (None, None, None)
    for engine in alone.counted.engines:
        assert rows[engine].rating == alone.rating(engine)


def test_perfect_scorers_have_a_bound_only_beside_whom_games_lead_to() -> None:
    """Two who met nobody else are provisional, in table and JSON; others' figures stay."""
    linked = Games({("A", "P", "1-0"): 3, ("P", "A", "1-0"): 1, ("Up", "A", "1-0"): 2})
    linked.update({("Up", "Down", "1-0"): 2})  # Down is led to the rest by Up alone
    before = lists.rows(error_bars.of(ordo.rate(pairings.count(linked), ESTIMATED), 0))
    assert {row.engine + row.mark for row in before} == {"A", "P", "Up>", "Down<"}
    linked.update({("far", "off", "1-0"): 20})
    spread = error_bars.of(ordo.rate(pairings.count(linked), ESTIMATED), 0)
    after = lists.rows(spread)
    assert after[: len(before)] == before
    assert [(row.engine, row.rank, row.rating, row.mark) for row in after[len(before) :]] == [
        ("far", None, None, ""),
        ("off", None, None, ""),
    ]
    told = {row["engine"]: row for row in lists.as_json(spread)["ratings"]}
    assert (told["far"]["provisional"], told["far"]["rating"]) == (True, None)


def test_where_all_won_or_lost_everything_one_group_has_bounds() -> None:
    """It is the largest, else the anchor's; the others are provisional."""
    games = Games({("a", "b", "1-0"): 2, ("c", "d", "1-0"): 2, ("c", "e", "1-0"): 2})
    counted = pairings.count(games)
    rated = ordo.rate(counted, ordo.Settings())
    assert [rated.rating(name) is None for name in "abcde"] == [True, True, False, False, False]
    anchored = ordo.rate(counted, ordo.Settings(anchor="a"))
    assert [anchored.rating(name) is None for name in "abcde"] == [False, False, True, True, True]


def test_who_lost_every_game_stands_before_nobody() -> None:
    """A bound from above is no place: however high it is, who has scored at all is before it."""
    games = Games({("S", "L", "1-0"): 3, ("S", "M", "1-0"): 1, ("M", "N", "1/2-1/2"): 2})
    rows = lists.rows(error_bars.of(ordo.rate(pairings.count(games), ESTIMATED), 0))
    assert [row.engine + row.mark for row in rows] == ["S>", "M", "N", "L<"]
    assert (rows[-1].rating or 0) > (rows[-2].rating or 0)


def test_an_anchor_without_games_is_refused() -> None:
    """A list cannot hang on an engine that nobody met."""
    with pytest.raises(errors.UsageError, match="--anchor"):
        ordo.rate(pairings.count(drawn(4, 50, 6)), ordo.Settings(anchor="nobody"))


ROUND = [("a", "b", W), ("b", "a", D), ("b", "a", B), ("a", "b", B)]


@pytest.mark.parametrize(
    ("games", "white", "draws"),
    [
        ([("a", "b", W), ("b", "a", W)], False, False),  # 1133 points, by Ordo
        ([("a", "b", W), ("b", "a", W)] * 20, False, True),
        ([("a", "b", D), ("b", "a", D)] * 2, False, False),
        ([("a", "b", D), ("b", "a", D)] * 20, False, True),
        (ROUND, False, False),
        (ROUND * 15, True, True),
    ],
)
def test_only_what_games_tell_is_told(
    games: list[tuple[str, str, str]], *, white: bool, draws: bool
) -> None:
    """White's advantage and the draw rate need games; what never varies has no error of naught."""
    rated = ordo.rate(pairings.count(Games(games)), ESTIMATED)
    told = lists.as_json(error_bars.of(rated, 100))
    assert (told["white_advantage"] is not None) is white
    assert (told["draw_rate"] is not None) is draws
    assert all(row["error"] is None or row["error"] > 1 for row in told["ratings"])


def test_white_s_advantage_has_a_likeliest_value_once_colours_change() -> None:
    """While the same one always has White it may be the better engines' as well (decision 19)."""
    always = [(*pair, result) for pair in (("a", "b"), ("b", "c")) for result in (W, D, B)] * 5
    assert not likelihood.fit(pairings.count(Games(always)), None).settled
    changed = [*always, *(("b", "a", result) for result in (W, D, B))]
    assert likelihood.fit(pairings.count(Games(changed)), None).settled


def test_what_was_given_is_told_however_few_the_games() -> None:
    """A white advantage and a draw rate that nobody estimates need no games, errors no runs."""
    given = ordo.Settings(white=33.0, draws=0.6)
    told = lists.as_json(error_bars.of(ordo.rate(pairings.count(Games(ROUND)), given), 0))
    assert (told["white_advantage"], told["draw_rate"]) == (33.0, 0.6)
    many = ordo.rate(pairings.count(Games(ROUND * 15)), ESTIMATED)
    assert lists.as_json(error_bars.of(many, 0))["white_advantage"] is not None
