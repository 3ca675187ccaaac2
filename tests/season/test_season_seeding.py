"""Who goes on to which event, and as which seed."""

from __future__ import annotations

from pathlib import Path

import driver
import pytest

from orchestrator.common import errors
from orchestrator.season.spec import model

EVENT = """
[[event]]
id = "{id}"
name = "{id}"
format = {{ kind = "round-robin"{format} }}
time_control = "30+5"
{more}
"""


def event(name: str, more: str, format_: str = "") -> str:
    """Return the table of an event."""
    return EVENT.format(id=name, more=more, format=format_)


def head(engines: int) -> str:
    """Return the roster of a season; ratings grow with the number."""
    text = driver.season_text(engines).split("[[event]]")[0]
    for number in range(1, engines + 1):
        text = text.replace(f'"engine-{number}"]', f'"engine-{number}"]\nrating = {3000 + number}')
    return text


def frc(engines: int) -> str:
    """Return the tree of an FRC season (FRC-2a to 2g)."""
    text = head(engines)
    for name, first, semis in [("a", 1, "12"), ("b", 3, "12"), ("c", 2, "21"), ("d", 4, "21")]:
        going = ", ".join(
            f'{{ ranks = [{rank}], to = "semi-{semi}" }}' for rank, semi in enumerate(semis, 1)
        )
        share = f"entrants = {{ first = {first}, every = 4 }}\npromote = [{going}]"
        text += event(name, share, ', first_white = "lower-seed"')
    last = 'promote = [{ top = 2, to = "final-league" }]'
    text += event("semi-1", f'seeding = ["a.1", "b.1", "c.2", "d.2"]\n{last}')
    text += event("semi-2", f'seeding = ["c.1", "d.1", "a.2", "b.2"]\n{last}')
    return text + event("final-league", "")


@pytest.mark.parametrize("engines", [8, 14, 16])
def test_equal_distance_leagues_and_their_semileagues(tmp_path: Path, engines: int) -> None:
    """FRC-2a: A, C, B, D for s mod 4 = 1, 2, 3, 0; then A1 B1 C2 D2 and C1 D1 A2 B2."""
    played = driver.Driver.launched(driver.load(tmp_path, frc(engines))).play()
    found = played.state.events
    for name, rest in [("a", 1), ("c", 2), ("b", 3), ("d", 0)]:
        seeds = [seed for seed in range(1, engines + 1) if seed % 4 == rest]
        assert found[name].entrants == tuple(f"e{seed}" for seed in seeds)
    place = {(n, k): found[n].rows[k - 1].engine for n in "abcd" for k in (1, 2)}
    assert found["semi-1"].entrants == tuple(
        place[at] for at in [("a", 1), ("b", 1), ("c", 2), ("d", 2)]
    )
    assert found["semi-2"].entrants == tuple(
        place[at] for at in [("c", 1), ("d", 1), ("a", 2), ("b", 2)]
    )
    semis = [row.engine for n in ("semi-1", "semi-2") for row in found[n].rows[:2]]
    assert list(found["final-league"].entrants) == semis


def test_the_lower_seed_begins_with_white(tmp_path: Path) -> None:
    """FRC-2b as the text reads: White of each pair's first game is the lower seed."""
    played = driver.Driver.launched(driver.load(tmp_path, frc(16))).play()
    league = played.state.events["a"]
    half = len(league.order) // 2
    for number, game_id in enumerate(league.order):
        game = played.state.games[game_id]
        lower = league.entrants.index(game.white) > league.entrants.index(game.black)
        assert lower == (number < half)


def ntcec() -> str:
    """Return stages 1 to 3 of an nTCEC season in small: 8 engines, 4 a group."""
    text = head(8) + event(
        "stage-1",
        'entrants = "roster"\nseeding = "rating"\npromote = ['
        '{ ranks = [1, 4, 5, 8], to = "a" }, { ranks = [2, 3, 6, 7], to = "b" }]',
    )
    for group in "ab":
        text += event(group, 'promote = [{ top = 2, to = "stage-3" }]', ', table = "circle"')
    return text + event("stage-3", 'seeding = "score"')


def test_groups_take_the_named_ranks(tmp_path: Path) -> None:
    """N1: 2a is ranks 1, 4, 5, 8 …, 2b the others, each in the order of their ranks."""
    found = driver.Driver.launched(driver.load(tmp_path, ntcec())).play().state.events
    ranked = [row.engine for row in found["stage-1"].rows]
    assert found["a"].entrants == tuple(ranked[rank - 1] for rank in (1, 4, 5, 8))
    assert found["b"].entrants == tuple(ranked[rank - 1] for rank in (2, 3, 6, 7))


def test_a_field_is_seeded_by_rating(tmp_path: Path) -> None:
    """N1 stage 1: the highest rated engine is seed 1."""
    found = driver.Driver.launched(driver.load(tmp_path, ntcec())).play().state.events
    assert found["stage-1"].entrants == tuple(f"e{number}" for number in range(8, 0, -1))


def test_stage_3_is_seeded_by_score_then_sonneborn_berger(tmp_path: Path) -> None:
    """N1: points in 2a or 2b, then Sonneborn-Berger, whatever the group."""
    found = driver.Driver.launched(driver.load(tmp_path, ntcec())).play().state.events
    rows = {row.engine: row for group in "ab" for row in found[group].rows}
    numbers = [
        (rows[e].half_points, rows[e].tiebreaks[model.Criterion.SONNEBORN_BERGER])
        for e in found["stage-3"].entrants
    ]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["a.1", "b.1", "c.2", "d.2"]', '["a.1", "b.1", "c.2"]', "each place that goes on"),
        ('["a.1", "b.1", "c.2", "d.2"]', '["a.1", "b.1", "c.2", "d.1"]', "semi-1 once: a.1"),
        ("ranks = [1]", "ranks = [1], top = 1", "either top"),
        ("ranks = [1]", "ranks = [9]", "semi-1 once: a.9"),
        ("first = 1, every = 4", "first = 0, every = 4", "1 or more"),
        ("first = 1, every = 4", "first = 1", "required"),
    ],
)
def test_wrong_ways_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Places that lead nowhere, or twice, are refused with what is allowed."""
    with pytest.raises(errors.SeasonFileError, match=message):
        driver.load(tmp_path, frc(16).replace(old, new, 1))
