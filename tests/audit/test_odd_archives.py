"""The audit of archives that are not as tidy as they should be, made from TCEC's real ones.

Source of the data: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import json
import pathlib
import re

import pytest
import tcec_events
import test_audit

from orchestrator.audit import pgn, reading, reasons
from orchestrator.contract import Ending

SIDES = ("White", "Black")
LEAGUE = "Season_19_-_Frc2_League_A"


def broken_off(chunk: str) -> str:
    """Return a game as it is written when it broke off: without a result and a reason."""
    kept = [line for line in chunk.strip().splitlines() if not line.startswith("[Termination")]
    text = re.sub(r'Result "[^"]*"', 'Result "*"', "\n".join(kept))
    return re.sub(r"\S+$", "*", text)


@pytest.mark.parametrize(("place", "later"), [(0, 1), (9, 2), (23, 1)])
def test_a_game_begun_again_takes_no_place_in_the_order(
    tmp_path: pathlib.Path, place: int, later: int
) -> None:
    """S16-15b v: whether begun again at once or later in its round, the rest stays in order."""
    games = pgn.chunks(test_audit.text_of(LEAGUE))
    games.insert(max(0, place + 1 - later), broken_off(games[place]))
    path = tmp_path / "again.pgn"
    path.write_text("\n\n".join(games))
    found = json.loads(
        test_audit.run(
            str(path), "--rules", "frc", *test_audit.numbers(tcec_events.expected(LEAGUE)), "--json"
        ).output
    )
    rows = test_audit.audited(LEAGUE)["standings"]
    assert found["games"] == 25
    assert found["schedule"]["mismatches"] == []
    assert (found["openings"], found["standings"]) == (test_audit.audited(LEAGUE)["openings"], rows)


@pytest.mark.parametrize(("which", "after"), [(0, 1), (3, 7), (5, 24)])
def test_a_game_too_many_is_the_only_one_out_of_order(
    tmp_path: pathlib.Path, which: int, after: int
) -> None:
    """A game that stands in it twice, or a playoff, begins no other cycle: it is named."""
    games = pgn.chunks(test_audit.text_of(LEAGUE))
    games.insert(after, games[which])
    path = tmp_path / "twice.pgn"
    path.write_text("\n\n".join(games))
    found = json.loads(test_audit.run(str(path), "--rules", "frc", "--json").output)
    schedule = found["schedule"]
    assert found["copies"] == [{"game": after + 1, "of": which + 1}]
    (wrong,) = schedule["mismatches"]
    assert wrong["scheduled"] is None
    assert wrong["played"] == [re.findall(rf'\[{side} "(.*?)"', games[after])[0] for side in SIDES]
    assert schedule["seeds"] == test_audit.audited(LEAGUE)["schedule"]["seeds"]


def test_a_cycle_that_was_begun_is_a_cycle(tmp_path: pathlib.Path) -> None:
    """An event still in play: what is to come is not played, what was played is in order."""
    games = pgn.chunks(test_audit.text_of(LEAGUE))[:13]
    path = tmp_path / "begun.pgn"
    path.write_text("\n\n".join(games))
    schedule = json.loads(test_audit.run(str(path), "--rules", "frc", "--json").output)["schedule"]
    assert schedule["matched"] == 13
    assert [wrong["played"] for wrong in schedule["mismatches"]] == [None] * 5


def test_a_match_with_a_game_begun_again_has_its_length(tmp_path: pathlib.Path) -> None:
    """CUP-3a counts games that were finished; the one that broke off is none of them."""
    games = pgn.chunks(test_audit.text_of("Cup_3_Bronze"))
    path = tmp_path / "again.pgn"
    path.write_text("\n\n".join([*games[:3], broken_off(games[3]), *games[3:]]))
    found = json.loads(test_audit.run(str(path), "--rules", "cup", "--pairs", "4", "--json").output)
    (match,) = found["knockout"]["matches"]
    assert (match["games"], match["length_ok"]) == (7, True)


def test_an_end_with_another_result_is_told_in_words(tmp_path: pathlib.Path) -> None:
    """Mate at the last ply that the record scored as a draw is not said to be as recorded."""
    path = tmp_path / "mate.pgn"
    head = '[White "A"]\n[Black "B"]\n[Result "1/2-1/2"]\n'
    path.write_text(f"{head}\n1. f3 e5 2. g4 Qh4# 1/2-1/2\n")
    told = "game 1: ended at ply 4; rules of chess: at 4, but otherwise than recorded"
    assert told in test_audit.run(str(path), "--rules", "s16").output


FAULTS = {
    "disconnect": Ending.DISCONNECT,
    "stall": Ending.STALL,
    "time": Ending.TIME,
    "illegal": Ending.ILLEGAL,
    "resign": Ending.RESIGN,
}
LOOPING = ("Season_15_-_Division_4b", 12)  # "White in infinite loop", tagged as abandoned


def test_every_fault_of_the_archive_is_what_it_was() -> None:
    """Faults of 104 events by their tags alone; only the first two are crashes."""
    found = tcec_events.expected("faults")
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert len(rows) > 300
    for row in rows:
        tags = {"Result": row["result"]}
        tags |= {tag: row[tag] for tag in ("Termination", "TerminationDetails") if row[tag]}
        ending = reasons.ending(reading.Game(1, tags, [], "standard"))
        looping = (row["event"], row["index"]) == LOOPING
        due = Ending.DISCONNECT if looping else FAULTS.get(row["kind"], Ending.ORGANIZERS)
        assert ending is due, row
