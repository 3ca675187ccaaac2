"""The frozen journals fold to the same tables in every later version."""

from __future__ import annotations

import json
from pathlib import Path

import make_fixture
import pytest

from orchestrator import contract
from orchestrator.season import decide, verify_seed
from orchestrator.season.fold import amendment_entries, entries, standings, state
from orchestrator.season.spec import model

KINDS = {make_fixture.FOLDER: 15, make_fixture.ORGANIZED: 28, make_fixture.INTERRUPTED: 13}


DIRECT = model.Criterion.DIRECT_ENCOUNTER  # counted among all of equal points in its time


def fixture_journal(folder: Path = make_fixture.FOLDER) -> list[contract.Entry]:
    """Read a frozen journal."""
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return [contract.Entry.from_line(line) for line in lines]


@pytest.mark.parametrize("folder", KINDS, ids=lambda folder: folder.name)
def test_the_frozen_journal_folds_to_its_table(folder: Path) -> None:
    """Tables, crosstables and champion are what they were when the journal was written."""
    folded = state.fold(fixture_journal(folder))
    expected = json.loads((folder / "table.json").read_text())
    assert json.loads(json.dumps(make_fixture.table(folded))) == expected


@pytest.mark.parametrize("folder", KINDS, ids=lambda folder: folder.name)
def test_the_frozen_journal_is_complete(folder: Path) -> None:
    """It holds so many kinds of entries of its time, and nothing is left to be decided."""
    journal = fixture_journal(folder)
    names = vars(entries) | vars(amendment_entries)
    kinds = {value for name, value in names.items() if name.isupper()}
    found = {entry.kind for entry in journal}
    assert found <= kinds
    assert len(found) == KINDS[folder]
    assert decide.decide(state.fold(journal), journal[-1].at_ms + 1) == []


def test_the_fixture_of_the_organizers_holds_every_amendment() -> None:
    """Each kind of amendment is in the journal, and its draws still follow from the seed."""
    journal = fixture_journal(make_fixture.ORGANIZED)
    kinds = {value for name, value in vars(amendment_entries).items() if name.isupper()}
    assert kinds <= {entry.kind for entry in journal}
    assert verify_seed.verify(journal).mismatches == ()


def test_the_fixture_of_interruptions_holds_every_verdict() -> None:
    """Resumed, decided, moved, begun anew, asked; and the end that a restore journals."""
    journal = fixture_journal(make_fixture.INTERRUPTED)
    judged = [entry.data for entry in journal if entry.kind == entries.ATTEMPT_JUDGED]
    assert len({one["scenario"] for one in judged}) == 5
    assert any(one["after"] for one in judged)
    ended = [entry.data for entry in journal if entry.kind == entries.ATTEMPT_ENDED]
    assert "restored" in {one["cause"] for one in ended}


def test_its_rankings_follow_from_its_results() -> None:
    """Today's tiebreaks still compute the rows that were journaled then, newer numbers apart."""
    for event in state.fold(fixture_journal()).events.values():
        rows = standings.rank(event.tally, event.spec.tiebreaks)
        for now, then in zip(rows, event.rows, strict=True):
            known = {c: now.tiebreaks[c] for c in then.tiebreaks if c != DIRECT}
            known |= {c: number for c, number in then.tiebreaks.items() if c == DIRECT}  # of all
            assert now.model_copy(update={"tiebreaks": known}) == then
