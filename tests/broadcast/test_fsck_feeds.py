"""``farm fsck`` and TCEC's files: what the journal does not tell is found, and mended."""

from __future__ import annotations

import json
import pathlib
import types
from typing import cast

import pytest
import theatre

from orchestrator import contract
from orchestrator.broadcast.feeds.tcec import names
from orchestrator.ledger import store
from orchestrator.ops import fsck
from orchestrator.ops.fsck import feeds, findings
from orchestrator.season.fold import state

SEASON = "demo"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no web server."""
    monkeypatch.setattr(feeds, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def tape() -> theatre.Tape:
    """Return a season that is half played."""
    made = theatre.simulated(SEASON)
    made.shown = round(len(made.journal) * 0.7)
    return made


def shown(tape: theatre.Tape, root: pathlib.Path) -> dict[str, bytes]:
    """Write the files as a web server does that is started now; return them."""
    theatre.projected(tape, root).projector.look()
    return theatre.tree(root / "feeds")


def checked(
    tape: theatre.Tape, root: pathlib.Path, *, season: str = SEASON, repair: bool = False
) -> list[findings.Told]:
    """Run the checker of the feeds over a season."""
    copies = copies_of(tape, root, season)
    return list(fsck.check(copies, fsck.checkers(["feeds"]), repair=repair))


def copies_of(tape: theatre.Tape, root: pathlib.Path, season: str = SEASON) -> findings.Season:
    """Return where a season's copies are; a tape has all that is read of a ledger."""
    ledger = cast("store.RedisLedger", tape)
    return findings.Season(season, ledger, root / "archive", None, root / "feeds")


def test_a_host_without_feeds_has_nothing_to_judge(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """Where no web server has written, nothing is missing."""
    assert checked(tape, tmp_path) == []


def test_what_a_web_server_wrote_agrees(tape: theatre.Tape, tmp_path: pathlib.Path) -> None:
    """At any moment of a season the files are those of a projection made anew."""
    for share in (0.3, 0.7, 1.0):
        tape.shown = round(len(tape.journal) * share)
        shown(tape, tmp_path)
        assert checked(tape, tmp_path) == []


def test_each_file_that_is_lost_or_changed_is_rebuilt(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """A file is found by its content, alone, and its bytes come back; the others are as before."""
    before = shown(tape, tmp_path)
    judged = {f"{name}.json" for name in feeds.FRONT} & before.keys() - {feeds.INDEX}
    judged |= {name for name in before if name.startswith("archive/")}
    assert len(judged) > 10
    for number, name in enumerate(sorted(judged)):
        path = tmp_path / "feeds" / name
        path.unlink()  # equal contents are one file with several names
        if number % 2 == 0:
            path.write_bytes(b"{}")
        if number % 5 == 0:
            assert [one.repaired for one in checked(tape, tmp_path)] == [False]
        (told,) = checked(tape, tmp_path, repair=True)
        assert (told.finding.place, told.repaired) == (str(path), True)
    assert theatre.tree(tmp_path / "feeds") == before


def test_feeds_that_are_ahead_of_a_restored_journal_are_set_back(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """A copy that lags knows fewer games: their PGN goes, tables and schedule are the copy's."""
    shown(tape, tmp_path)
    kept, lost = finished(tape, 0.4), finished(tape, 0.7)
    for name in lost:
        (tmp_path / "feeds" / name).write_text("moves")
    tape.shown = round(len(tape.journal) * 0.4)
    assert 0 < len(kept) < len(lost)
    told = checked(tape, tmp_path, repair=True)
    assert all(one.repaired for one in told)
    unknown = {one.finding.place for one in told if "not finished" in one.finding.problem}
    assert unknown == {str(tmp_path / "feeds" / name) for name in lost - kept}
    assert any(one.finding.place.endswith("/crosstable.json") for one in told)
    assert checked(tape, tmp_path) == []
    there = theatre.tree(tmp_path / "feeds").keys()
    assert {name for name in there if name.endswith(".pgn")} - {"live.pgn"} == kept


class Two:
    """A ledger with two seasons, each a tape."""

    def __init__(self, first: theatre.Tape, second: theatre.Tape) -> None:
        """Take the seasons in the order of their launch."""
        self._tapes = {tape.season: tape for tape in (first, second)}
        self.now_ms, self.plies = second.now_ms, second.plies
        self.live, self.record = second.live, second.record

    def seasons(self) -> tuple[str, ...]:
        """Return both."""
        return tuple(self._tapes)

    def resting(self) -> dict[str, int]:
        """Return that none is at rest."""
        return {}

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Read a season's journal."""
        return self._tapes[journal].read(journal, after, limit)

    def last(self, journal: str) -> int:
        """Return how long a season's journal is."""
        return self._tapes[journal].last(journal)


def test_the_lists_of_all_seasons_are_compared_once_and_keep_every_season(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """Two seasons in one folder are no fault, and a repair takes neither out of the lists."""
    earlier = theatre.simulated("cup")
    earlier.shown = 40
    both = Two(earlier, tape)
    ledger = cast("theatre.Tape", both)
    before = shown(ledger, tmp_path)
    path = tmp_path / "feeds" / "archive" / "gamelist.json"
    assert len(json.loads(path.read_bytes())["Seasons"]) == len(both.seasons()) == 2
    assert [one for name in both.seasons() for one in checked(ledger, tmp_path, season=name)] == []
    path.unlink()
    told = [
        one
        for name in both.seasons()
        for one in checked(ledger, tmp_path, season=name, repair=True)
    ]
    assert [(one.finding.place, one.repaired) for one in told] == [(str(path), True)]
    assert theatre.tree(tmp_path / "feeds") == before


def finished(tape: theatre.Tape, share: float) -> set[str]:
    """Return the names of the PGN files of the games that are finished at some moment."""
    folded = state.fold(tape.journal[: round(len(tape.journal) * share)])
    found = set()
    for event in folded.events.values():
        for number, game in enumerate(event.order, 1):
            if folded.game(game).finished is not None:
                found.add(f"archive/{names.stem(folded, event)}_{number}.pgn")
    return found


def test_a_web_server_that_writes_meanwhile_is_no_finding(
    tape: theatre.Tape, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs is looked at again: the web server was a moment behind."""
    shown(tape, tmp_path)
    tape.shown += 8
    looks: list[float] = []

    def caught_up(seconds: float) -> None:
        looks.append(seconds)
        shown(tape, tmp_path)

    # Its own name of the clock: other threads of this process sleep on.
    monkeypatch.setattr(feeds, "time", types.SimpleNamespace(sleep=caught_up))
    assert checked(tape, tmp_path) == []
    assert looks


def test_a_game_that_ends_while_one_looks_is_no_finding(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """Its PGN is there before the look at the files, but after the look at the journal."""
    looking = copies_of(tape, tmp_path)
    assert looking.state.seq == tape.shown
    tape.shown += 10
    shown(tape, tmp_path)
    assert list(fsck.check(looking, fsck.checkers(["feeds"]), repair=False)) == []


def test_what_is_right_at_a_second_look_is_no_finding(
    tape: theatre.Tape, tmp_path: pathlib.Path
) -> None:
    """The farm may run meanwhile; what stays wrong is told, as it is then."""
    looks: list[findings.Season] = []

    def checker(season: findings.Season) -> list[findings.Finding]:
        looks.append(season)
        wrong = ["a", "b"] if len(looks) == 1 else ["b", "c"]
        return [findings.Finding(place, f"look {len(looks)}") for place in wrong]

    told = list(fsck.check(copies_of(tape, tmp_path), {"new": checker}, repair=False))
    assert [(each.finding.place, each.finding.problem) for each in told] == [("b", "look 2")]
    assert looks[0] is not looks[1]
