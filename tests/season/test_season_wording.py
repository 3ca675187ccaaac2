"""Words for people: they hold every number of what they tell, and can be read back."""

from __future__ import annotations

from pathlib import Path

import driver
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestrator
from orchestrator import contract
from orchestrator.arbiter.adjudication import presets
from orchestrator.season import views
from orchestrator.season.file import describe, load, wording
from orchestrator.season.spec import model

ROOT = Path(orchestrator.__file__).parents[1]
SEASONS = ROOT / "orchestrator" / "seasons"
LIMITS = contract.Limits(syzygy_path="/tables")
CLOCKS = st.builds(
    contract.TimeControl,
    base_ms=st.integers(1, 10**8),
    increment_ms=st.integers(0, 10**6),
    moves=st.none() | st.integers(1, 99),
    nodes=st.none() | st.integers(1, 10**9),
)
FIXED = st.builds(contract.TimeControl, move_ms=st.integers(1, 10**7))
UNCLOCKED = st.builds(
    contract.TimeControl, nodes=st.integers(1), depth=st.none() | st.integers(1, 99)
)
RULES = {  # each with every number unlike those of the others
    "syzygy": contract.Syzygy(men=5),
    "eval_draw": contract.EvalDraw(min_ply=41, bound_cp=13, plies=17),
    "few_pieces_draw": contract.FewPiecesDraw(pieces=7, pawns=11, bound_cp=23, plies=19),
    "eval_win": contract.EvalWin(min_ply=61, bound_cp=729, plies=29),
    "draw": contract.MovesDraw(move_number=31, move_count=37, score_cp=43),
    "resign": contract.MovesResign(move_count=47, score_cp=953),
    "max_moves": 271,
}


@given(CLOCKS | FIXED | UNCLOCKED)
def test_a_season_file_understands_a_told_time_control(control: contract.TimeControl) -> None:
    """What is shown of a time control may be written into a season file, and means the same."""
    assert contract.TimeControl.parse(wording.control(control)) == control


def test_people_and_programs_read_a_time_control(tmp_path: Path) -> None:
    """People read a season file's words, programs also PGN's seconds."""
    whole = driver.season_text().replace('"30+5"', '"10s+200ms"')
    season = driver.Driver.launched(driver.load(tmp_path, whole))
    seen = views.event(season.state, "league")
    assert (seen["time_control_words"], seen["time_control"]) == ("10s+200ms", "10+0.2")


@pytest.mark.parametrize("words", ["30s+300ms", "1+1", "1.5+0.3", "75s+1s"])
def test_a_time_control_is_written_as_people_would(words: str) -> None:
    """Half a minute is seconds; from a minute on, halves of minutes are minutes."""
    assert wording.control(contract.TimeControl.parse(words)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (45, "45s"),
        (60, "1m"),
        (61.2, "1m 01s"),
        (725, "12m"),
        (3 * 3600 + 300, "3h 05m"),
        (0.25 * 86_400, "6h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (5 * 86_400 + 4 * 3600, "5d 04h"),
    ],
)
def test_durations_are_told_in_one_way(seconds: float, words: str) -> None:
    """Hours are told below two days, seconds below ten minutes, nothing that is zero."""
    assert wording.duration(seconds) == words


def test_every_rule_is_told_and_documented() -> None:
    """A rule that is added has its sentence in ``farm season check``, and its row on the page."""
    rules = contract.Adjudication.model_fields.keys() - {"rules"}
    assert rules == RULES.keys(), "its sentence: season/file/wording.py; its case: RULES above"
    page = (ROOT / "docs" / "season-file.md").read_text(encoding="utf-8")
    table = page.partition("## Adjudication")[2].partition("\n## ")[0]
    undocumented = [rule for rule in sorted(rules) if f"`{rule}`" not in table]
    assert not undocumented, "rows that Adjudication of docs/season-file.md lacks"


@pytest.mark.parametrize("rule", RULES)
def test_each_number_of_a_rule_is_told(rule: str) -> None:
    """A rule that ends games early is one sentence, with all of its numbers."""
    (told,) = wording.early_ends(contract.Adjudication(**{rule: RULES[rule]}), LIMITS)
    value = RULES[rule]
    fields = value.model_dump() if isinstance(value, contract.Message) else {rule: value}
    for key, number in fields.items():
        if isinstance(number, int) and not isinstance(number, bool):
            assert str(number) in told, key


@pytest.mark.parametrize("rules", presets.PRESETS.values(), ids=presets.PRESETS.keys())
def test_a_changed_rule_is_told_as_changed(rules: contract.Adjudication) -> None:
    """A rule text is named as it is; one with a number of its own is said to be changed."""
    assert wording.preset(rules) == rules.rules
    assert wording.preset(rules.model_copy(update={"max_moves": 300})) == f"{rules.rules}, changed"


def test_check_promises_no_bound(tmp_path: Path) -> None:
    """Hours are told as those of 60 moves a game, with the break that they hold."""
    told = list(describe.sentences(describe.explain(driver.load(tmp_path, driver.season_text()))))
    assert "16 games, about 22h 50m if each game takes 60 moves and all their time" in told[0]
    assert not any("at most" in line for line in told)
    assert any("4 games, about 8h 50m with its break;" in line for line in told)


def test_check_bounds_no_knockout() -> None:
    """Matches end early (CUP-3a) or go on (CUP-3d), and leave no tie: no total is promised."""
    told = list(describe.sentences(describe.explain(load.load(SEASONS / "cup.toml"))))
    assert "208 games (fewer or more, as matches go), about" in told[0]
    assert "ends when it is decided, a level one by the next pair that is won" in told[2]
    assert "64 games (fewer or more, as matches go), about" in told[2]
    assert told[2].endswith("; openings: book book32, by lot")
    assert not any(line.startswith("  ties:") for line in told)


def test_check_tells_time_controls_in_their_order() -> None:
    """A superfinal's own comes with its games, those of its extensions behind (S16-8c, S16-8d)."""
    told = list(describe.sentences(describe.explain(load.load(SEASONS / "season16.toml"))))
    (line,) = (line for line in told if "match of 100 games" in line)
    first = "match of 100 games at 120 min + 10 s; if drawn, 16 more at 25 min + 10 s; if drawn, 8"
    assert f"{first} more at 3 min + 2 s, again and again until one side is ahead: 100" in line


def test_check_confirms_a_changed_draw_rule(tmp_path: Path) -> None:
    """What `farm check` says of an event holds its draw rule, and that others have none."""
    rule = 'adjudication = { rules = "ntcec1", eval_draw = { bound_cp = 15 } }\n'
    whole = driver.season_text().replace("promote =", f"{rule}promote =", 1)
    told = list(describe.sentences(describe.explain(driver.load(tmp_path, whole))))
    start = told.index("  adjudication by ntcec1, changed:")
    assert "drawn after 10 plies in a row with evals within 15 centipawns" in told[start + 1]
    assert "from ply 82 on (move 41)" in told[start + 1]
    assert told.count("  no adjudication: games end by the rules of chess alone") == 1


@pytest.mark.parametrize(
    ("event", "book", "told"),
    [
        ({}, None, "none, all games begin at the start position"),
        ({"variant": "fischerandom"}, None, "Chess960, start positions by lot"),
        ({"variant": "fischerandom"}, {}, "Chess960, book short, by lot"),
        ({}, {}, "book short, by lot"),
        ({"start_position": True}, {}, "book short, by lot, the start position once"),
        ({}, {"order": "sequential"}, "book short, in its order"),
        ({}, {"order": "sequential", "start": 3}, "book short, in its order from exit 3"),
    ],
)
def test_check_tells_openings(
    event: dict[str, object], book: dict[str, object] | None, told: str
) -> None:
    """Variant, book and order are said, so that a change of any of them can be seen."""
    shipped = driver.shipped("season16").season.events[0]
    plain = {"book": None if book is None else "short", "start_position": False}
    exits = None if book is None else model.Book.model_validate({"file": "short.pgn", **book})
    assert wording.openings(shipped.model_copy(update={**plain, **event}), exits) == told
