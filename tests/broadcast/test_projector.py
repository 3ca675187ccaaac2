"""The projector: a fault of the host is tried again, one of a season leaves the others alone."""

from __future__ import annotations

import pathlib

import pytest
import theatre

from orchestrator.broadcast.content import tables
from orchestrator.broadcast.feeds import files


def test_a_full_disk_takes_no_season_off_the_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written now is an error of this pass; the next one shows the season on."""
    tape = theatre.simulated("demo")
    tape.shown = 3
    made = theatre.projected(tape, tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.Directory, "write", full)
        with pytest.raises(OSError, match="No space left"):
            made.projector.look()
    tape.shown = len(tape.journal)
    made.projector.look()
    season = made.projector.seasons[tape.season]
    assert not season.failed
    assert season.state.seq == len(tape.journal)
    assert made.shelf.shown == tape.season


def test_a_season_that_cannot_be_rendered_stays_as_it_was(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass ends without an error, and the season is not tried at every pass."""
    tape = theatre.simulated("demo")
    tape.shown = 3
    made = theatre.projected(tape, tmp_path)
    tried = []

    def broken(*_: object) -> None:
        tried.append(1)
        raise KeyError("nobody foresaw it")

    monkeypatch.setattr(tables, "season", broken)
    for _ in range(3):
        made.projector.look()
    assert made.projector.seasons[tape.season].failed
    assert len(tried) == 1
