"""Seasons that are over rest: nobody asks for their journals, and still nothing is missed."""

from __future__ import annotations

import dataclasses
import pathlib
import time

import httpx
import pytest
import theatre

from orchestrator import contract
from orchestrator.broadcast import projector
from orchestrator.broadcast.content import game_store, season_view

LOOKS = 50


class Counted(theatre.Tape):
    """A tape that counts how often its journal and its records are asked for."""

    reads = records = 0

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Count, and return entries."""
        self.reads += 1
        return super().read(journal, after, limit)

    def record(self, attempt: str) -> bytes | None:
        """Count; there is no record."""
        self.records += 1
        return None


@pytest.fixture
def tape() -> Counted:
    """Return the whole journal of the demo season."""
    return Counted(theatre.simulated("demo").journal)


def test_a_season_that_is_over_is_not_polled(
    tape: Counted, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it runs each look asks for its journal; once it is over only a longer one is read."""
    made = theatre.projected(tape, tmp_path)
    tape.shown = len(tape.journal) - 1
    for _ in range(LOOKS):
        made.projector.look()
    assert tape.reads > LOOKS
    tape.shown += 1
    made.projector.look()
    assert made.projector.seasons["demo"].over
    rested = tape.reads
    for _ in range(LOOKS):
        made.projector.look()
    assert tape.reads == rested
    last = tape.journal[-1]
    facts = {"reason": "late", "name": "test"}
    note = contract.Entry(last.seq + 1, last.at_ms, "paused", "test", facts)
    tape.journal = [*tape.journal, note]
    tape.shown += 1
    monkeypatch.setattr(projector, "CLOCK_SECONDS", 0.0)
    made.projector.look()
    assert made.projector.seasons["demo"].state.seq == note.seq


def test_a_record_that_does_not_come_is_looked_for_ever_more_seldom(
    tape: Counted, tmp_path: pathlib.Path
) -> None:
    """Of many looks at a game without its record a handful read the archive."""
    made = theatre.projected(tape, tmp_path)
    tape.shown = len(tape.journal)
    made.projector.look()
    season = made.projector.seasons["demo"]
    game = next(iter(season.state.games.values()))
    assert game.finished is not None
    finished = game.finished.model_copy(update={"record_sha256": "ab"})
    season.state.games[game.id] = dataclasses.replace(game, finished=finished)
    season.bare[game.id] = 0
    tape.records = 0
    for _ in range(season_view.SOON):
        season.recorded()
    assert tape.records == season_view.SOON.bit_length()
    assert season.over
    kept = made.projector.album
    kept._briefs[game.finished.attempt] = game_store.Brief()  # the record has come after all
    for _ in range(season_view.SOON):
        season.recorded()
    assert not season.bare


class Slow(theatre.Tape):
    """A tape whose journal takes a while to be read."""

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Wait, and return entries."""
        time.sleep(0.2)
        return super().read(journal, after, limit)


def test_who_comes_first_finds_the_season(tape: Counted, tmp_path: pathlib.Path) -> None:
    """A server that was just started answers when it has read the journals, not before."""
    slow = Slow(tape.journal)
    slow.shown = len(slow.journal)
    with theatre.served(slow, tmp_path) as url:
        told = httpx.get(f"{url}/api/v1/seasons", timeout=60).json()
    assert [one["season"] for one in told] == ["demo"]
