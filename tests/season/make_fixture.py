"""Write the frozen journal of issue 1 and the table that every version must fold it to.

Run it once, by hand, from the repository's root: it refuses to overwrite a fixture. The
season has a league of five (byes), a gate, a pause, interrupted attempts, an abort, a
hold and crashes, so that every kind of entry is in the journal.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import driver

from orchestrator.season import crosstable, operations, state

FOLDER = Path(__file__).parent / "fixtures" / "issue-1"


def season() -> driver.Driver:
    """Play the fixture's season."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = driver.load(Path(folder), driver.season_text(engines=5, double_rounds=2))
    played = driver.Driver.launched(loaded).play(3)
    attempt = played.start("league.4")
    played.append(operations.pause(played.state, "ann", "thunderstorm"), by="ann")
    played.interrupt("league.4", attempt, ply=31)
    played.append(operations.resume(played.state, "ann", "sky is clear"), by="ann")
    attempt = played.start("league.4")
    played.append(operations.abort(played.state, "bob", "wrong network file"), by="bob")
    played.interrupt("league.4", attempt, cause="operator")
    for _ in range(3):
        played.interrupt("league.4", played.start("league.4"))
        played.settle()
    played.append(operations.resume(played.state, "bob", "cable replaced"), by="bob")
    played.play(36)
    played.play_one()
    while drafts := played.undelayed():
        played.append(drafts)
    played.append(operations.open_gate(played.state, "final", "ann", "everybody is here"), by="ann")
    return played.play()


def table(folded: state.SeasonState) -> dict[str, Any]:
    """Return what a version must find in the journal: tables, crosstables, the champion."""
    return {
        "seq": folded.seq,
        "champion": folded.champion,
        "finished": folded.finished,
        "events": {
            event.id: {
                "entrants": list(event.entrants),
                "games": len(event.order),
                "rows": [row.model_dump(mode="json") for row in event.rows],
                "crosstable": [
                    [None if cell is None else cell.text for cell in line.cells]
                    for line in crosstable.crosstable(folded, event.id)
                ],
            }
            for event in folded.events.values()
        },
    }


def main() -> None:
    """Write both files."""
    journal = FOLDER / "journal.jsonl"
    if journal.exists():
        sys.exit(f"{journal} is frozen: a fixture is never made again")
    played = season()
    FOLDER.mkdir(parents=True, exist_ok=True)
    journal.write_text("".join(entry.line() + "\n" for entry in played.journal))
    expected = json.dumps(table(played.state), indent=1) + "\n"
    (FOLDER / "table.json").write_text(expected)


if __name__ == "__main__":
    main()
