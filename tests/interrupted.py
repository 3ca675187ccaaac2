"""Matches of two scripted engines under an event's rules of interruption.

What tests that break a hall share: the season that is launched, the moment at which it is
broken, and what holds of every season in which no engine was to blame.
"""

from __future__ import annotations

import checker
import harness

from orchestrator import contract
from orchestrator.season.fold import state

MOVES = 6  # moves: how long a game is that nothing else ends


def launch(
    farm: harness.Farm,
    season: str,
    *words: str,
    control: str = "20s+1s",
    rules: str = '"s16"',
    fen: str = "",
    hold_after_attempts: int = 3,
) -> None:
    """Launch a match of two games; ``words`` are the engines' playbook.

    ``rules`` is the event's ``interruptions`` as a season file writes it; ``fen`` is where
    both games begin.
    """
    entries = [harness.scripted(farm.life, strength, *words) for strength in (1, 2)]
    head = 'schema = 1\nid = "test"\nname = "Test"'
    rows = [head, f"hold_after_attempts = {hold_after_attempts}", "[roster]"]
    rows += harness.roster(entries)
    if fen:
        book = farm.root / f"{season}.epd"
        book.write_text(f"{fen}\n")
        rows.append(f'[books.b]\nfile = "{book}"')
    rows.append(
        f"""[[event]]
id = "m"
name = "Match"
format = {{ kind = "match", games = 2 }}
entrants = "roster"
time_control = "{control}"
{'book = "b"' if fen else ""}
tiebreaks = ["seed"]
adjudication = {{ max_moves = {MOVES} }}
interruptions = {rules}
"""
    )
    path = farm.root / f"{season}.toml"
    path.write_text("\n".join(rows))
    farm.launch(path, season)


def reached(farm: harness.Farm, season: str, plies: int = 2) -> str:
    """Wait until a game of a season has so many plies; return its attempt."""
    found = ""

    def journaled() -> bool:
        nonlocal found
        slot = farm.ledger.slot(harness.HALL)
        if slot is None or slot.season != season or len(farm.ledger.plies(slot.attempt)) < plies:
            return False
        found = slot.attempt
        return True

    farm.wait(journaled, 60, f"ply {plies} of {season}")
    return found


def unharmed(farm: harness.Farm, season: str) -> state.SeasonState:
    """Let a season end: all its games were played out, no engine has a crash or a loss by it."""
    folded = farm.finish(season)
    checker.check_season(farm.archive, season)
    endings = {game.finished.ending for game in folded.games.values() if game.finished}
    assert endings == {contract.Ending.MAX_MOVES}
    assert not any(score.crashes for score in folded.events["m"].tally.scores.values())
    return folded
