"""Adjudication in season files: presets, overrides, what is refused, what halls are told."""

from __future__ import annotations

import pathlib

import driver
import pytest

from orchestrator import contract
from orchestrator.arbiter.adjudication import presets
from orchestrator.common import errors
from orchestrator.season.file import load as file_load
from orchestrator.season.fold import orders
from orchestrator.season.spec import model


def load(tmp_path: pathlib.Path, rules: str, limits: str = "") -> file_load.Loaded:
    """Load a season whose league is played by some rules."""
    line = f'book = "short"\nadjudication = {rules}\nlimits = {{ {limits} }}'
    return driver.load(tmp_path, driver.season_text().replace('book = "short"', line, 1))


def rules_of(tmp_path: pathlib.Path, rules: str, limits: str = "") -> contract.Adjudication:
    """Return the rules of the league."""
    return load(tmp_path, rules, limits).season.event("league").adjudication


def test_without_adjudication_nothing_is_adjudicated(tmp_path: pathlib.Path) -> None:
    """The default is no rule at all."""
    season = load(tmp_path, "{}").season
    assert {event.adjudication for event in season.events} == {contract.Adjudication()}


@pytest.mark.parametrize("name", presets.PRESETS)
def test_each_rule_text_is_a_preset(tmp_path: pathlib.Path, name: str) -> None:
    """A name alone, or under ``rules``, stands for all rules of a text."""
    limits = 'syzygy_path = "/tables"'
    found = rules_of(tmp_path, f'"{name}"', limits)
    assert found == presets.PRESETS[name]
    assert rules_of(tmp_path, f'{{ rules = "{name}" }}', limits) == found


def test_the_presets_are_the_rule_texts() -> None:
    """docs/rules: which adjudicators apply, and their numbers."""
    s16, cup, ntcec = (presets.PRESETS[name] for name in ("s16", "cup", "ntcec1"))
    assert s16.eval_draw == contract.EvalDraw(min_ply=70, bound_cp=8, plies=10, zeroing="reset")
    assert s16.eval_win == contract.EvalWin(bound_cp=1000, plies=10, zeroing="ignore")
    assert (s16.syzygy, s16.few_pieces_draw) == (contract.Syzygy(men=6), None)
    assert cup.few_pieces_draw == contract.FewPiecesDraw(pieces=6, bound_cp=25, plies=8)
    assert (cup.eval_draw, cup.eval_win, cup.syzygy) == (None, None, contract.Syzygy(men=6))
    assert ntcec.eval_draw == contract.EvalDraw(min_ply=82, bound_cp=5, plies=10)
    assert (ntcec.eval_win, ntcec.syzygy) == (contract.EvalWin(bound_cp=650, plies=6), None)


def test_single_numbers_of_a_preset_are_changed_and_rules_taken_away(
    tmp_path: pathlib.Path,
) -> None:
    """What stands beside ``rules`` changes a number, adds a rule, or removes one."""
    text = """{ rules = "s17", eval_win = false, max_moves = 300,
      eval_draw = { bound_cp = 15 }, syzygy = { path = "/t", draw_only = true } }"""
    text = " ".join(text.split())
    assert rules_of(tmp_path, text) == contract.Adjudication(
        rules="s17",
        syzygy=contract.Syzygy(men=6, path="/t", draw_only=True),
        eval_draw=contract.EvalDraw(min_ply=70, bound_cp=15, plies=10),
        max_moves=300,
    )


def test_the_journaled_model_needs_no_preset(tmp_path: pathlib.Path) -> None:
    """Every rule is journaled in full and reads back the same, taken away ones too."""
    text = '{ rules = "s16", syzygy = false, eval_draw = { plies = 8 } }'
    season = load(tmp_path, text).season
    again = model.Season.model_validate_json(season.model_dump_json(by_alias=True))
    assert again == season
    shown = season.model_dump(mode="json", by_alias=True)["event"][0]["adjudication"]
    assert shown["eval_draw"] == {"min_ply": 70, "bound_cp": 8, "plies": 8, "zeroing": "reset"}
    assert shown["syzygy"] is None


BAD = [
    ('"s18"', "adjudication", "'s18'", "s16, s17, cup, frc, ntcec1"),
    ("7", "adjudication", "7", "keys in { }"),
    ("{ eval_drawn = {} }", "adjudication.eval_drawn", "unknown key", "did you mean eval_draw?"),
    ("{ eval_draw = { plies = 10 } }", "adjudication.eval_draw.bound_cp", "nothing", "required"),
    ("{ eval_win = { bound = 10 } }", "adjudication.eval_win.bound", "unknown key", "bound_cp"),
    ('{ rules = "s16" }', "adjudication.syzygy", "no directory", "limits.syzygy_path"),
    ('{ syzygy = { men = 8, path = "/t" } }', "adjudication.syzygy.men", "8", "7 or less"),
    (
        '{ rules = "ntcec1", draw = { move_number = 40, move_count = 5, score_cp = 8 } }',
        "adjudication.draw",
        "two draw rules",
        "eval_draw or draw",
    ),
]


@pytest.mark.parametrize(("rules", "where", "found", "allowed"), BAD)
def test_wrong_rules_are_refused_with_their_place(
    tmp_path: pathlib.Path, rules: str, where: str, found: str, allowed: str
) -> None:
    """The error names file, place, what was found and what is allowed."""
    with pytest.raises(errors.SeasonFileError) as caught:
        load(tmp_path, rules)
    message = str(caught.value)
    assert f"[event league] {where}: found" in message
    assert found in message
    assert allowed in message


def test_the_order_of_a_game_carries_its_events_rules(tmp_path: pathlib.Path) -> None:
    """The hall is told every rule; it needs no preset."""
    season = driver.Driver.launched(load(tmp_path, '"ntcec1"'))
    season.settle()
    game = season.state.ready_game()
    assert game is not None
    order = orders.game_order(season.state, game)
    assert order.adjudication == presets.PRESETS["ntcec1"]
    assert contract.GameOrder.decode(order.encode()) == order
