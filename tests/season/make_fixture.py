"""Write frozen journals, and the tables that every version must fold them to.

Run it once for each, by hand, from the repository's root (``make_fixture.py organized``): it
refuses to overwrite a fixture. ``league``: five engines (byes), a gate, a pause,
interrupted attempts, an abort, a hold and crashes. ``organized``: what organizers and operators
do to a running season: decisions, corrections, exclusions, amendments, an import.
``interrupted``: every end that an interruption can have (``interrupted_fixture``).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import driver
import interrupted_fixture

from orchestrator import contract
from orchestrator.audit import reading
from orchestrator.ops import import_games
from orchestrator.season import decide, decisions
from orchestrator.season.amend import amending, operations, substitute
from orchestrator.season.file import load
from orchestrator.season.fold import (
    amendment_entries,
    corrections,
    crosstable,
    disqualification,
    events,
    own_book,
    state,
)
from orchestrator.season.spec import model

FOLDERS = Path(__file__).parent / "fixtures"
FOLDER = FOLDERS / "league"
ORGANIZED = FOLDERS / "organized"
INTERRUPTED = FOLDERS / "interrupted"
WHY = ("ann", "a fixture")
CHAIN = 'tiebreaks = ["direct-encounter", "wins", "organizers"]\ndisqualify_after = 3\npromote ='
NEW = contract.EngineSpec(id="new", name="Newcomer", command=("new",))
MATE = '[Event "old"]\n[White "{}"]\n[Black "{}"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1'


SIDE = """
[[event]]
id = "side"
name = "Side"
format = { kind = "round-robin" }
entrants = ["e1", "e2", "e3"]
time_control = "1+0"
tiebreaks = ["direct-encounter", "wins", "organizers"]
promote = [{ top = 2, to = "last" }]

[[event]]
id = "last"
name = "Last"
format = { kind = "match", games = 4 }
time_control = "1+0"
"""


def organized_season() -> driver.Driver:
    """Play the season that organizers and operators change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = driver.season_text(engines=6).replace("promote =", CHAIN) + SIDE
        played = driver.Driver.launched(driver.load(folder, text), level)
        (folder / "new.epd").write_text("".join(driver.book_text(48).splitlines(True)[32:]))
        exits = load.load_book(folder / "new.epd", "short", model.Book(file="new.epd"))
    played.play(4)
    _correct(played)
    _amend(played, exits)
    _import(played)
    played.append(operations.resume(played.state, *WHY))
    _go_away(played)
    played.play()
    _decide(played)
    played.append(operations.pause(played.state, *WHY))
    first = played.state.events["side"].order[0]
    undone = corrections.adjudicate(played.state, first, "1-0", *WHY, ("side", "last"))
    played.append(undone)
    played.append(operations.resume(played.state, *WHY))
    played.play()
    _decide(played)
    return played.play()


def level(game: events.Game) -> driver.Verdict:
    """Let e6 crash, and all others draw but in the match."""
    if "e6" in (game.white, game.black):
        return ("0-1" if game.white == "e6" else "1-0"), contract.Ending.DISCONNECT
    if game.event in {"final", "last"}:
        return driver.by_name(game)
    return "1/2-1/2", contract.Ending.THREEFOLD


def _correct(played: driver.Driver) -> None:
    played.append(operations.pause(played.state, *WHY))
    order = played.state.events["league"].order
    played.append(corrections.adjudicate(played.state, order[1], "1/2-1/2", *WHY))
    played.append(corrections.replay(played.state, order[2], *WHY))
    played.append(corrections.void(played.state, order[20], *WHY))
    played.append(disqualification.withdraw(played.state, "league", "e5", *WHY, "disqualification"))


def _amend(played: driver.Driver, exits: tuple[contract.Opening, ...]) -> None:
    now, source = played.now_ms, ("new.epd", "0" * 64)
    played.append(amending.mend_book(played.state, "short", exits, source, (), *WHY))
    played.append(substitute.replace(played.state, "league", "e4", NEW, "replay", *WHY))
    played.append(amending.move_gate(played.state, "final", now + 86_400_000, now, *WHY))
    played.append(amending.plan_pause(played.state, now + 43_200_000, now, *WHY))


def _import(played: driver.Driver) -> None:
    event = played.state.events["league"]
    game = played.state.game(event.order[event.cursor])
    text = MATE.format(*(played.state.engines[one].name for one in (game.white, game.black)))
    source = import_games.Source("old.pgn", "1" * 64, WHY[1], WHY[0])
    recorded = list(zip(reading.games(text), [text], strict=True))
    played.append(import_games.plan(played.state, recorded, source, played.now_ms).drafts)


def _go_away(played: driver.Driver) -> None:
    """Let a host go and come back, an engine be flagged and cleared, the planned pause come."""
    played.append(amending.set_away_policy(played.state, "others", *WHY))
    played.append(amending.host_away(played.state, "box", ("e1",), *WHY))
    played.play(2)
    played.append(amending.host_back(played.state, "box", *WHY))
    flag = amendment_entries.EngineFlagged(event="league", engine="e2", games={"league.1": 3})
    played.append([contract.Draft(amendment_entries.ENGINE_FLAGGED, flag.model_dump(mode="json"))])
    played.append(own_book.dismiss(played.state, "league", "e2", *WHY))
    planned = played.state.planned_pause
    assert planned is not None
    played.append(decide.decide(played.state, planned.at_ms), at_ms=planned.at_ms)
    played.append(operations.resume(played.state, *WHY))


def _decide(played: driver.Driver) -> None:
    for asked in decisions.outstanding(played.state):
        choice = asked.engines[: asked.choose]
        played.append(decisions.decide(played.state, asked.decision, choice, *WHY))
    played.play(2)


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
    """Write both files of the fixture that is named."""
    folder = FOLDERS / sys.argv[1]
    make = {
        FOLDER: season,
        ORGANIZED: organized_season,
        INTERRUPTED: interrupted_fixture.season,
    }[folder]
    journal = folder / "journal.jsonl"
    if journal.exists():
        sys.exit(f"{journal} is frozen: a fixture is never made again")
    played = make()
    folder.mkdir(parents=True, exist_ok=True)
    journal.write_text("".join(entry.line() + "\n" for entry in played.journal))
    expected = json.dumps(table(played.state), indent=1) + "\n"
    (folder / "table.json").write_text(expected)


if __name__ == "__main__":
    main()
