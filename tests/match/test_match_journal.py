"""The journal of a match: a kill at any byte loses no finished game and doubles none."""

from __future__ import annotations

import pathlib
import shutil

import made
import pytest

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import errors
from orchestrator.testmatch import match_journal
from worker_cpu.match import command, journal, schedule
from worker_cpu.referee import result

SLOTS = schedule.slots(schedule.Plan(2, rounds=3))


def game(slot: schedule.Slot) -> result.Ended:
    """Make the end of a game that White won without a move."""
    engines = [contract.EngineSpec(id=x, name=x, command=(x,)) for x in ("A", "B")]
    order = made.order(white=engines[slot.white], black=engines[slot.black])
    return result.Ended(
        order=order,
        outcome=verdict.disconnect("black"),
        plies=0,
        final_fen="8/8/8/8/8/8/8/K1k5 w - - 0 1",
        started_ms=0,
        ended_ms=slot.number,
        pgn=f'[Round "{slot.number}"]\n\n{{B\u00e9la}} 1-0\n\n',
    )


def outputs(directory: pathlib.Path) -> journal.Outputs:
    """Name the files of a match."""
    return journal.Outputs(directory / "j.jsonl", directory / "g.pgn", epd=directory / "e.epd")


def played(directory: pathlib.Path, games: int) -> journal.Journal:
    """Write a match with so many games."""
    kept = journal.Journal(outputs(directory))
    kept.open(["-x"], 7)
    for slot in SLOTS[:games]:
        kept.write(slot, game(slot))
    return kept


def test_a_match_is_read_back_as_it_was_written(tmp_path: pathlib.Path) -> None:
    """Arguments, seed and results come back; PGN and EPD hold each game once."""
    kept = played(tmp_path, 2)
    past = kept.resume()
    assert (past.arguments, past.seed) == (("-x",), 7)
    assert [one.number for one in past.results] == [1, 2]
    assert past.results[1].loser == "black"
    text = (tmp_path / "g.pgn").read_text()
    assert text == game(SLOTS[0]).pgn + game(SLOTS[1]).pgn
    assert len((tmp_path / "e.epd").read_text().splitlines()) == 2


@pytest.mark.parametrize("name", ["j.jsonl", "g.pgn", "e.epd"])
def test_a_torn_end_is_completed_not_doubled(tmp_path: pathlib.Path, name: str) -> None:
    """Wherever the write of the last game stopped, resuming leaves it in each file once."""
    whole = tmp_path / "whole"
    whole.mkdir()
    played(whole, 1)
    before = {file.name: file.stat().st_size for file in whole.iterdir()}
    journal.Journal(outputs(whole)).write(SLOTS[1], game(SLOTS[1]))
    files = ["j.jsonl", "g.pgn", "e.epd"]
    size = (whole / name).stat().st_size
    for cut in sorted({before[name], before[name] + 1, (before[name] + size) // 2, size - 1, size}):
        torn = tmp_path / f"torn-{cut}"
        shutil.copytree(whole, torn)
        for later in files[files.index(name) + 1 :]:
            with (torn / later).open("r+b") as file:
                file.truncate(before[later])
        with (torn / name).open("r+b") as file:
            file.truncate(cut)
        past = journal.Journal(outputs(torn)).resume()
        assert [one.number for one in past.results] == [1, 2]
        for file_name in files:
            assert (torn / file_name).read_bytes() == (whole / file_name).read_bytes(), cut


def test_what_others_wrote_into_the_pgn_stays(tmp_path: pathlib.Path) -> None:
    """Games appended by somebody else are neither cut nor taken for the last game's end."""
    kept = played(tmp_path, 2)
    with (tmp_path / "g.pgn").open("a") as file:
        file.write('[Event "mine"]\n\n*\n\n')
    before = (tmp_path / "g.pgn").read_text()
    kept.resume()
    assert (tmp_path / "g.pgn").read_text() == before


def test_a_new_match_is_appended_and_alone_is_resumed(tmp_path: pathlib.Path) -> None:
    """A second match in the same files keeps the first one's games and does not count them."""
    played(tmp_path, 2)
    kept = played(tmp_path, 1)
    assert len(kept.resume().results) == 1
    assert (tmp_path / "g.pgn").read_text().count("[Round ") == 3


def test_a_file_that_is_no_journal_is_refused(tmp_path: pathlib.Path) -> None:
    """Missing files, foreign lines and an empty journal are named."""
    path = tmp_path / "j.jsonl"
    with pytest.raises(errors.UsageError, match="does not exist"):
        match_journal.past(path)
    path.write_text("")
    with pytest.raises(errors.UsageError, match="holds no match"):
        match_journal.past(path)
    path.write_text('{"kind":"match","v":1,"arguments":[],"seed":1}\nnonsense\n')
    with pytest.raises(errors.UsageError, match="line 2 is no line of a match"):
        match_journal.past(path)


def test_without_a_journal_the_folder_s_others_are_named(tmp_path: pathlib.Path) -> None:
    """A match with ``-pgnout g.pgn`` keeps its own in g.pgn.jsonl, which a bare -resume lacks."""
    asked = tmp_path / "farm-match.jsonl"
    with pytest.raises(errors.UsageError, match=r"does not exist; -journal FILE names another$"):
        match_journal.past(asked)
    (tmp_path / "farm-match.pgn.jsonl").touch()
    with pytest.raises(errors.UsageError, match=r"another; here: .*farm-match\.pgn\.jsonl$"):
        match_journal.past(asked)


def test_resuming_reads_each_game_once_however_many_there_are(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was played is put together once, not again for each game that follows."""
    made: list[int] = []

    class Counted(match_journal.Past):
        def __init__(self, results: tuple[object, ...], **_: object):
            made.append(len(results))

    monkeypatch.setattr(match_journal, "Past", Counted)
    played(tmp_path, 1)
    head, line = (tmp_path / "j.jsonl").read_text().splitlines(keepends=True)
    for games in (10, 1_000):
        made.clear()
        (tmp_path / "j.jsonl").write_text(head + line * games)
        match_journal.past(tmp_path / "j.jsonl")
        assert sum(made) == games


def test_a_journal_is_one_matchs_alone_while_it_runs(tmp_path: pathlib.Path) -> None:
    """A second match is refused with what to do, and touches no file; after the first it begins."""
    first = played(tmp_path, 1)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for begin in (
        lambda: journal.Journal(outputs(tmp_path)).open(["-y"], 8, append=False),
        lambda: journal.Journal(outputs(tmp_path)).resume(),
    ):
        with pytest.raises(errors.RefusedError, match=r"another match is writing.*-journal FILE"):
            begin()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    first.close()
    journal.Journal(outputs(tmp_path)).open(["-y"], 8)


@pytest.mark.parametrize(
    "other",
    ["-dialect cutechess", "-openings file=b.epd order=random start=2", "-variant fischerandom"],
)
def test_a_match_is_not_resumed_with_other_openings(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Games' numbers and engines would agree, the positions would not: refused, not dealt anew."""
    monkeypatch.chdir(tmp_path)
    engines = [word for name in "AB" for word in ("-engine", "cmd=sh", f"name={name}", "tc=1")]
    words = [*engines, "-openings", "file=b.epd", "order=random"]
    journal.Journal(journal.Outputs(tmp_path / "farm-match.jsonl")).open(words, 7)
    assert command._settings([*words, "-rounds", "9", "-resume"]).seed == 7
    for again in ([*words, *other.split(), "-resume"], ["-resume", *other.split()]):
        with pytest.raises(errors.RefusedError, match="its openings are dealt from"):
            command._settings(again)
    with pytest.raises(errors.RefusedError, match=r"dealt by -srand 7; here by -srand 8; resume"):
        command._settings(["-resume", "-srand", "8"])
    assert command._settings(["-resume", "-srand", "7"]).seed == 7


def test_a_match_that_is_changed_keeps_its_games_and_its_lock(tmp_path: pathlib.Path) -> None:
    """Its line is another one, all else of the file is as it was; who follows it loses no game."""
    played(tmp_path, 1)
    kept = played(tmp_path, 2)
    path = tmp_path / "j.jsonl"
    follower = match_journal.Follower(path)
    assert len(follower.read()) == 2
    before = path.read_bytes().splitlines()
    kept.resume()
    about = match_journal.About(
        event="e",
        site="",
        engines=(),
        time_control=contract.TimeControl.parse("1+0", "s"),
        clocks="1+0",
        games=6,
    )
    kept.change(["-x", "-rounds", "3", "-event", "long" * 100], about)
    with pytest.raises(errors.RefusedError, match="another match is writing"):
        journal.Journal(outputs(tmp_path)).resume()
    kept.write(SLOTS[2], game(SLOTS[2]))
    assert follower.read()[-1].number == SLOTS[2].number
    lines = path.read_bytes().splitlines()
    assert (lines[:2], lines[3:5]) == (before[:2], before[3:])
    past = kept.resume()
    assert (past.seed, past.about, past.arguments[:3]) == (7, about, ("-x", "-rounds", "3"))
    assert [one.number for one in past.results] == [slot.number for slot in SLOTS[:3]]
