"""Points, tiebreak numbers and the chain that orders a tie."""

from __future__ import annotations

import json
import pathlib

import driver
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.commands import tables
from orchestrator.season.fold import standings, tally, tiebreaks
from orchestrator.season.spec import model

C = model.Criterion
S16 = (C.CRASHES, C.DIRECT_ENCOUNTER, C.WINS, C.SONNEBORN_BERGER)
SWISS = (C.OPPONENTS_SCORE, C.BLACK_GAMES, C.WINS, C.BLACK_WINS, C.DIRECT_ENCOUNTER)
ROOT = pathlib.Path(__file__).parents[2]


def played(engines: str, *games: str) -> tally.Tally:
    """Count games written as ``ab1`` (White, Black, White's points: 1, = or 0; ! a crash)."""
    counted = tally.Tally(tuple(engines))
    results: dict[str, contract.Result] = {"1": "1-0", "=": "1/2-1/2", "0": "0-1"}
    for text in games:
        ending = contract.Ending.STALL if text.endswith("!") else contract.Ending.TIME
        counted.add(text[0], text[1], driver.finished("g", "a", (results[text[2]], ending)))
    return counted


def table(counted: tally.Tally, *chain: model.Criterion) -> list[tuple[int, str, str]]:
    """Return rank, engine and what decided it, line by line."""
    return [(row.rank, row.engine, row.decided_by) for row in standings.rank(counted, chain)]


def test_points_decide_first() -> None:
    """Engines apart on points need no tiebreak."""
    assert table(played("abc", "ab1", "bc1", "ac1"), *S16) == [
        (1, "a", "points"),
        (2, "b", "points"),
        (3, "c", "points"),
    ]


def test_each_criterion_only_among_those_still_level() -> None:
    """Crashes put a last of the tie; wins then order b and c, whatever a has won."""
    of_a, of_b = ["ad1", "ad1", "da1!", "ea1"], ["bd=", "be=", "db=", "eb="]
    counted = played("abcde", *of_a, *of_b, "cd1", "ce=", "dc=", "ec1")
    assert table(counted, C.CRASHES, C.WINS)[2:] == [
        (3, "c", "wins"),
        (4, "b", "wins"),
        (5, "a", "crashes"),
    ]


DIRECT = {
    # White, Black, White's points; what the texts make of it: rank, engine, decided by.
    "S16-12c: c has crashed, so a and b alone are tied; a beat b": (
        "ab1 ba= ac0 ca1 ad1 da0 bc1! cb= bd1 db= cd= dc=",
        S16,
        [(1, "a", "direct-encounter"), (2, "b", "direct-encounter"), (3, "c", "crashes")],
    ),
    "S17-12c: a circle in which a crashed; b beat c": (
        "ab1 bc1 ca1!",
        S16,
        [(1, "b", "direct-encounter"), (2, "c", "direct-encounter"), (3, "a", "crashes")],
    ),
    "N1 Tiebreaks: d and f are level to the end and never met": (
        "ad1 eb= cf1 ca0 bd= fe1 af= bc= de1",
        SWISS,
        [(3, "d", ""), (3, "f", "")],
    ),
    "N1 Tiebreaks: b and d are level but for their game": (
        "ad0 eb0 cf= bd0 ac0 fe0 dc0 fb0 ea1",
        SWISS,
        [(2, "d", "direct-encounter"), (3, "b", "direct-encounter")],
    ),
    "S16-12d: the direct encounter leaves b and c level, so the next criterion orders them": (
        "ab1 ac= ad1 bc1 bd= cd1 ae0 be= ce0 de1 ae0 be= ce1 de1",
        (C.DIRECT_ENCOUNTER, C.WINS),
        [(2, "a", "direct-encounter"), (3, "c", "wins"), (4, "b", "wins")],
    ),
}


@pytest.mark.parametrize("case", DIRECT)
def test_direct_encounter_is_between_those_still_tied(case: str) -> None:
    """S16-12c, S17-12c, N1: games against engines that are parted already count no more."""
    games, chain, expected = DIRECT[case]
    engines = "".join(sorted(set(games) & set("abcdef")))
    told = table(played(engines, *games.split()), *chain)
    assert [row for row in told if row in expected] == expected, told


def test_fewer_crashes_stand_first_and_time_losses_are_none() -> None:
    """A stalled connection counts as a crash, a loss on time does not."""
    counted = played("abcd", "ac0!", "ad1", "bc0", "bd1")
    assert (counted.scores["a"].crashes, counted.scores["b"].crashes) == (1, 0)
    assert [row[1:] for row in table(counted, *S16)[1:3]] == [("b", "crashes"), ("a", "crashes")]


def test_sonneborn_berger_and_opponents_score_by_hand() -> None:
    """SB sums own score times opponent's points; opponents' score sums their points."""
    counted = played("abc", "ab1", "ba=", "ac=", "ca0", "bc1", "cb1")
    assert {e: counted.scores[e].half_points for e in "abc"} == {"a": 6, "b": 3, "c": 3}
    assert tiebreaks.sonneborn_berger(counted, "a") == 3 * 3 + 3 * 3
    assert tiebreaks.points(C.SONNEBORN_BERGER, 18) == 4.5
    assert tiebreaks.opponents_score(counted, "b") == 2 * 6 + 2 * 3
    assert tiebreaks.points(C.OPPONENTS_SCORE, 18) == 9.0


def test_black_games_and_black_wins_count() -> None:
    """The criteria of nTCEC count games and wins with Black."""
    counted = played("abc", "ab0", "cb1", "ac=")
    numbers = tiebreaks.numbers(counted, "b", 2)
    assert (numbers[C.BLACK_GAMES], numbers[C.BLACK_WINS], numbers[C.WINS]) == (2, 1, 1)


results = st.sampled_from(["1", "=", "0", "1!", "0!"])


@given(st.lists(st.tuples(st.permutations("abcde"), results), max_size=60))
def test_tables_keep_their_invariants(games: list[tuple[list[str], str]]) -> None:
    """Points add up, the order falls in points, and ``seed`` leaves nobody level."""
    counted = played("abcde", *(f"{pair[0]}{pair[1]}{result}" for pair, result in games))
    rows = standings.rank(counted, (*S16, C.SEED))
    assert [row.rank for row in rows] == [1, 2, 3, 4, 5]
    assert sum(row.half_points for row in rows) == 2 * len(games)
    assert [row.half_points for row in rows] == sorted((r.half_points for r in rows), reverse=True)
    assert sum(row.wins for row in rows) == sum(row.losses for row in rows)
    assert all(row.wins + row.draws + row.losses == row.games for row in rows)


@given(st.lists(st.tuples(st.permutations("abcd"), results), max_size=40))
def test_the_order_of_games_does_not_matter(games: list[tuple[list[str], str]]) -> None:
    """A table depends on which games were played, not on when."""
    texts = [f"{pair[0]}{pair[1]}{result}" for pair, result in games]
    shuffled = sorted(texts)
    chain = (*S16, C.SEED)
    assert standings.rank(played("abcd", *texts), chain) == standings.rank(
        played("abcd", *shuffled), chain
    )


NUMBERS = [one for one in C if one not in {C.SEED, C.PLAYOFF, C.ORGANIZERS}]


@pytest.mark.parametrize("criterion", NUMBERS)
def test_each_number_is_computed_shown_and_documented(criterion: model.Criterion) -> None:
    """An engine has it in units, terminal and page head its column, two pages say what it is."""
    texts = ROOT / "orchestrator/broadcast/page/texts/en.json"  # the others have the same keys
    season_file = (ROOT / "docs/season-file.md").read_text(encoding="utf-8")
    # Behind the default chain the list of all stands in backquotes; the prose has some as words.
    names = season_file.partition("* **Tiebreaks** (default `")[2].split("`", 3)[2]
    meanings = (ROOT / "docs/rules/index.md").read_text(encoding="utf-8")
    table = meanings.partition("## Tiebreaks")[2].partition("\n## ")[0]
    counted = played("ab", "ab1")
    counted.tells_mobility = True
    numbers = tiebreaks.numbers(counted, "a", 1)
    missing = {
        "its number: `tiebreaks.numbers`": criterion not in {*numbers, C.DIRECT_ENCOUNTER},
        "its unit, 1 of a count: `_UNITS` of tiebreaks": criterion not in tiebreaks._UNITS,
        "its column: TIEBREAK_HEADS of commands/tables.py": criterion not in tables.TIEBREAK_HEADS,
        f"tiebreak.{criterion} in broadcast/page/texts/*.json": f"tiebreak.{criterion}"
        not in json.loads(texts.read_text(encoding="utf-8")),
        "its name: Tiebreaks in docs/season-file.md": criterion not in names.split(),
        "what it is: Tiebreaks in docs/rules/index.md": f"`{criterion}`" not in table,
    }
    lacking = [what for what, lacks in missing.items() if lacks]
    assert not lacking, "missing:\n" + "\n".join(lacking)
