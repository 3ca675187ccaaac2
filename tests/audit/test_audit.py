"""The audit against TCEC's real events (``tests/data/tcec/README.md``).

Source of the data: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import pathlib
from typing import Any

import click.testing
import pytest
import tcec_events

from orchestrator import commands
from orchestrator.audit import rules

SHORT = [
    "Season_16_-_League_1_Playoff",
    "Season_16_-_Frc_Cpu_League_2",
    "Season_19_-_Frc2_League_A",
    "Season_22_-_Frc5_League_A",
    "Season_19_-_Frc2_Semileague_2",
    "Season_4_-_Stage_2a",
    "Season_4_-_Superfinal",
    "Season_5_-_Stage_1",
    "Cup_12_Bronze",
    "Cup_12_Quarterfinal",
    "Cup_3_Semifinal",
]
RULES = {"S16/S17": "s16", "CUP": "cup", "FRC": "frc", "nTCEC1": "ntcec1", "nTCEC1-swiss": "ntcec1"}
NUMBERS = {
    "points": "points",
    "games": "played",
    "wins": "wins",
    "black_games": "black_games",
    "black_wins": "black_wins",
    "crashes": "crashes",
    "direct_encounter": "direct_encounter",
    "sonneborn_berger": "sonneborn_berger",
    "opponents_score": "opponents_score",
}
FRC5 = ["--draw-pieces", "8", "--draw-pawns", "8", "--draw-cp", "20", "--draw-plies", "10"]


def _names() -> list[str]:
    return tcec_events.names() if os.environ.get("FARM_LONG") else SHORT


EVENTS = _names()


def numbers(known: dict[str, Any]) -> list[str]:
    """Return the options with the event's own adjudication numbers."""
    rule = known["adjudication_rule"]
    if rule is None:
        return FRC5
    options = ["--draw-cp", str(rule["draw_cp"]), "--draw-plies", str(rule["draw_n"])]
    if rule["kind"] == "new":
        return [*options, "--draw-pieces", str(rule["max_pieces"])]
    options += ["--draw-ply", str(rule["draw_ply"])]
    if "win_n" in rule:
        return [*options, "--win-cp", str(rule["win_cp"]), "--win-plies", str(rule["win_n"])]
    return [*options, "--no-win-rule"]


def run(*arguments: str) -> click.testing.Result:
    """Run ``farm audit``."""
    return click.testing.CliRunner().invoke(commands.farm, ["audit", *arguments])


@functools.cache
def audited(name: str) -> dict[str, Any]:
    """Return the report on an event under the numbers of its year."""
    known = tcec_events.expected(name)
    options = ["--rules", RULES[known["ruleset"]], *numbers(known)]
    if name.startswith("Cup_3_"):
        options += ["--pairs", "4"]
    result = run(str(tcec_events.games(name)), *options, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


@pytest.mark.parametrize("name", EVENTS)
def test_standings_are_the_record_s(name: str) -> None:
    """Points, every tiebreak number and the order are TCEC's own."""
    known, rows = tcec_events.expected(name), audited(name)["standings"]
    if not known["standings"]:
        assert rows is None
        return
    ours = {row["engine"]: row for row in rows}
    for row in known["standings"]:
        for field, own in NUMBERS.items():
            if field == "direct_encounter" and ours[row["name"]][own] is None:
                continue  # the record has it also for engines that were not level any more
            assert ours[row["name"]][own] == row[field], (row["name"], field)
        assert ours[row["name"]]["r_mobility"] == pytest.approx(row["rmobility"], abs=1e-5)
    ranks = [ours[row["name"]]["rank"] for row in known["standings"]]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("name", EVENTS)
def test_who_went_on_is_the_record_s(name: str) -> None:
    """The first places are those engines that played the next event."""
    known, rows = tcec_events.expected(name), audited(name)["standings"]
    if not known.get("advancement"):
        return  # a final, a match, or an event whose next one is not in the archive
    cut, real = known["advancement"]["cut"], known["advancement"]["really"]
    ours = [row["engine"] for row in rows if row["rank"] <= cut]
    assert len(ours) == cut == len(real)
    assert all(any(engine.startswith(family) for engine in ours) for family in real)


TIES = {"sb": "sonneborn-berger", "de": "direct-encounter", "wins": "wins", "rmob": "r-mobility"}


@pytest.mark.parametrize("name", EVENTS)
def test_real_ties_at_a_cut_are_decided_by_the_same_criterion(name: str) -> None:
    """Who went on, who stayed, in this order, and by which criterion."""
    ties = tcec_events.expected("ties")
    rows = {row["engine"]: row for row in audited(name)["standings"] or ()}
    for tie in (tie for tie in ties if tie["event"] == name):
        order = [rows[engine] for engine in tie["order_by_rules"]]
        first, last = tie["places"]
        assert [row["rank"] for row in order] == list(range(first, last + 1))
        cut = order[tie["seats"] - 1]
        assert cut["decided_by"] == TIES[tie["decided_by"]]


@pytest.mark.parametrize("name", EVENTS)
def test_every_end_by_a_rule_is_reproduced(name: str) -> None:
    """The games that differ are those that are known to, and no others."""
    known, found = tcec_events.expected(name), audited(name)["adjudication"]
    reasons = [game[known["columns"].index("reason")] for game in known["games"]]
    named = {(miss[0], miss[1]) for miss in known["adjudication_result"]["mismatches"]}
    differ = {(miss["game"], miss["rule"]) for miss in found["mismatches"]}
    for rule, reason in (("draw_rule", "draw_rule"), ("win_rule", "win_rule"), ("tablebase", "tb")):
        missed = sum(of == rule for _, of in named | differ)
        counts = found[rule] or {"recorded": 0, "reproduced": 0}
        assert counts["recorded"] == reasons.count(reason)
        assert counts["reproduced"] == counts["recorded"] - missed
    # The programs of 2013 ended games by tables that the rule text does not have.
    assert {miss for miss in differ if miss[1] != "tablebase"} == named
    assert len(differ - named) == (reasons.count("tb") if known["group"] == "nTCEC2" else 0)


@pytest.mark.parametrize("name", EVENTS)
def test_order_and_openings_are_the_record_s(name: str) -> None:
    """Table, seeds, order, colours and shared openings are those of the record."""
    known, found = tcec_events.expected(name), audited(name)
    if known["schedule"]:
        schedule = known["schedule"]
        assert found["schedule"]["table"] == schedule["generator"].partition("_")[0]
        assert found["schedule"]["seeds"] == schedule["seeds"]
        assert found["schedule"]["matched"] == found["schedule"]["games"] == schedule["games"]
    if found["openings"]:
        real = known["reverse_games"]
        assert found["openings"] == {
            "pairs": real["same_opening"] + real["different_opening"],
            "same_opening": real["same_opening"],
        }


@pytest.mark.parametrize("name", [name for name in EVENTS if name.startswith("Cup_")])
def test_matches_are_the_record_s(name: str) -> None:
    """CUP-3: who began, score, games and winner are TCEC's, and each length is by rule."""
    _, number, stage = name.split("_")
    cups = tcec_events.expected("cups")
    real = cups[f"Cup_{number}"]["rounds"][stage]
    ours = audited(name)["knockout"]["matches"]
    assert all(match["length_ok"] for match in ours)
    assert [
        (m["white_first"], m["black_first"], m["score"], m["games"], m["winner"]) for m in ours
    ] == [(m["first_white"], m["other"], m["score"], m["games"], m["winner"]) for m in real]


def text_of(name: str) -> str:
    """Return the PGN text of an event."""
    return gzip.decompress(tcec_events.games(name).read_bytes()).decode()


def test_plain_archives_disagreements_and_seeds(tmp_path: pathlib.Path) -> None:
    """Two games that changed places are reported, in words too, and are no error."""
    head, first, second, *rest = text_of("Season_16_-_League_1_Playoff").split("[Event ")
    path = tmp_path / "swapped.pgn"
    path.write_text("[Event ".join([head, first, *rest, second]))
    seeds = "Stoofvlees,Laser,Ethereal,ScorpioNN"
    result = run(str(path), "--rules", "s16", "--seeds", seeds, "--json")
    schedule = json.loads(result.output)["schedule"]
    assert schedule["seeds"][0] == "Stoofvlees II a12"
    assert len(schedule["mismatches"]) == 24 - schedule["matched"] > 20
    words = run(str(path), "--rules", "s16", "--seeds", seeds)
    assert words.exit_code == 0
    assert "game 2: scheduled Laser 230319 - Ethereal 11.57, played" in words.output


def test_unplayed_games_leave_the_rest_in_order(tmp_path: pathlib.Path) -> None:
    """Games that were never played are named; every other game still stands in its place."""
    first, *rest = text_of("Season_19_-_Frc2_League_A").split("\n[Event ")
    path = tmp_path / "withdrawn.pgn"
    path.write_text("\n[Event ".join([first, *rest[:9], *rest[10:16], *rest[17:]]))
    schedule = json.loads(run(str(path), "--rules", "frc", "--json").output)["schedule"]
    assert schedule["matched"] == schedule["games"] == 22
    assert [wrong["game"] for wrong in schedule["mismatches"]] == [None, None]
    assert "  not played: scheduled " in run(str(path), "--rules", "frc").output


def test_numbers_of_another_year_disagree() -> None:
    """A wrong threshold misses recorded ends or ends games early, and each is named."""
    path = str(tcec_events.games("Season_16_-_League_1_Playoff"))
    late = json.loads(run(path, "--rules", "s16", "--draw-plies", "11", "--json").output)
    assert late["adjudication"]["draw_rule"]["reproduced"] < 8
    early = json.loads(run(path, "--rules", "s16", "--win-cp", "300", "--json").output)
    won = [miss for miss in early["adjudication"]["mismatches"] if miss["rule"] == "win_rule"]
    assert won
    assert all(miss["computed_ply"] < miss["recorded_ply"] for miss in won)


def test_annulled_engines_rank_last_and_count_for_nobody() -> None:
    """S16-15c: after that many crashes, or named as withdrawn, nothing of an engine counts."""
    name = "Season_16_-_Frc_Cpu_League_2"
    path = str(tcec_events.games(name))
    crashed = next(row["engine"] for row in audited(name)["standings"] if row["crashes"])
    by_rule = json.loads(run(path, "--rules", "frc", "--disqualify-after", "1", "--json").output)
    by_name = json.loads(run(path, "--rules", "frc", "--exclude", crashed, "--json").output)
    assert by_rule["standings"] == by_name["standings"]
    assert by_rule["standings"][-1]["engine"] == crashed
    assert by_rule["standings"][-1]["decided_by"] == "excluded"
    assert {row["played"] for row in by_rule["standings"]} == {16, 0}


def test_a_cup_in_one_archive_has_the_pairs_of_each_round() -> None:
    """CUP-3b: without --pairs the round tells them, bronze and final apart."""
    stages = ("Quarterfinal", "Semifinal", "Bronze", "Final")
    paths = [str(tcec_events.games(f"Cup_12_{stage}")) for stage in stages]
    found = json.loads(run(*paths, "--rules", "cup", "--json").output)
    assert [match["length_ok"] for match in found["knockout"]["matches"]] == [True] * 8


def test_a_match_of_the_wrong_length_is_named() -> None:
    """CUP-3a: 4½-2½ ends a match of 4 pairs, but neither one of 3 nor one of 5."""
    path = str(tcec_events.games("Cup_3_Bronze"))
    assert "WRONG LENGTH" not in run(path, "--rules", "cup", "--pairs", "4").output
    for pairs in ("3", "5"):
        assert "WRONG LENGTH" in run(path, "--rules", "cup", "--pairs", pairs).output


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no chess at all",
        b'[Event "x"]\n[White "a"]\n[Black "b"]\n\n1. e4',
        b'[Event "x"]\n[White "a"]\n[Black "b"]\n[Result "*"]\n\n1. e5 *',
        b"\x1f\x8b\x08\x00broken",
    ],
)
def test_unreadable_input_is_exit_code_2(tmp_path: pathlib.Path, content: bytes) -> None:
    """What is no PGN, breaks off or holds an impossible move is named with its file."""
    path = tmp_path / "broken.pgn"
    path.write_bytes(content)
    result = run(str(path), "--rules", "s16")
    assert result.exit_code == 2
    assert "broken.pgn" in result.output


def test_unknown_names_are_exit_code_2() -> None:
    """A missing file, and a seed that nobody bears, are usage errors."""
    assert run("missing.pgn", "--rules", "cup").exit_code == 2
    path = str(tcec_events.games("Cup_12_Bronze"))
    assert run(path, "--rules", "cup", "--seeds", "Nobody,Ethereal").exit_code == 2


def test_the_pairs_of_a_cup_s_match_cite_their_clause() -> None:
    """CUP-3c has the pairs of a match; CUP-3b is about colours."""
    text = pathlib.Path(rules.__file__).read_text(encoding="utf-8")
    assert "CUP-3c" in text
    assert "CUP-3b" not in text
