"""The frozen journal of issue 1 folds to the same table in every later version."""

from __future__ import annotations

import json

import make_fixture

from orchestrator import contract
from orchestrator.season import decide, entries, standings, state


def fixture_journal() -> list[contract.Entry]:
    """Read the frozen journal."""
    lines = (make_fixture.FOLDER / "journal.jsonl").read_text().splitlines()
    return [contract.Entry.from_line(line) for line in lines]


def test_the_frozen_journal_folds_to_its_table() -> None:
    """Tables, crosstables and champion are what they were when the journal was written."""
    folded = state.fold(fixture_journal())
    expected = json.loads((make_fixture.FOLDER / "table.json").read_text())
    assert json.loads(json.dumps(make_fixture.table(folded))) == expected


def test_the_frozen_journal_is_complete() -> None:
    """It holds all 15 kinds of entries of its time, and nothing is left to be decided."""
    journal = fixture_journal()
    kinds = {value for name, value in vars(entries).items() if name.isupper()}
    found = {entry.kind for entry in journal}
    assert found <= kinds
    assert len(found) == 15
    assert decide.decide(state.fold(journal), journal[-1].at_ms + 1) == []


def test_its_rankings_follow_from_its_results() -> None:
    """Today's tiebreaks still compute the rows that were journaled then."""
    for event in state.fold(fixture_journal()).events.values():
        assert standings.rank(event.tally, event.spec.tiebreaks) == event.rows
