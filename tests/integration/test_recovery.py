"""Restore, fsck, export and backup over a ledger in memory: every copy that is left is enough."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator

import harness
import made
import pytest
from click import testing
from twins import memory

from orchestrator import commands, contract
from orchestrator.common import errors
from orchestrator.ledger import api, journal_mirror, restoring, services, store
from orchestrator.ops import fsck
from orchestrator.ops.fsck import findings
from orchestrator.ops.recovery import backup, leftovers, restore
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import events as season_events
from orchestrator.season.fold import state
from orchestrator.serve import archive
from worker_cpu.hall import directory

Farm = Callable[..., testing.Result]


class Scene:
    """A season in play: a ledger in memory, an archive, a hall that plays at once."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.archive = root / "archive"
        self.ledger = memory.MemoryLedger()
        self.attempts = 0
        engines = [harness.scripted(root / "life", strength) for strength in range(3)]
        loaded = load.load(harness.league(root / "season.toml", engines, final_games=2))
        drafts = operations.launch(loaded, "s", "00", harness.HALL, "0")
        self.ledger.append("s", 0, drafts, "test")
        self.ledger.append(api.FARM, 0, [contract.Draft("season_launched", {"season": "s"})], "t")

    def serve(self) -> None:
        """Make one pass of a new server."""
        harness.serve_once(self.ledger, self.archive)

    def claim(self) -> tuple[api.Claim, api.Claimed] | None:
        """Take the offered game."""
        for season, game in self.ledger.offered(harness.HALL).items():
            self.attempts += 1
            claim = harness.claim(season, game, f"attempt-{self.attempts}")
            claimed = self.ledger.claim(claim)
            assert isinstance(claimed, api.Claimed), claimed
            return claim, claimed
        return None

    def play(self, games: int = 1000) -> None:
        """Play so many games, or to the season's end; each is archived."""
        while games and not self.state().finished:
            self.serve()
            taken = self.claim()
            if taken is None:
                time.sleep(0.01)  # the break before the final
            else:
                self.complete(*taken)
                games -= 1
        self.serve()

    def complete(self, claim: api.Claim, claimed: api.Claimed) -> api.Recorded | api.Refused:
        """Tell the result of a claimed game."""
        order = contract.GameOrder.decode(claimed.order)
        finished, record = harness.invented(order, claim, claimed.token)
        return self.ledger.complete(harness.HALL, claimed.token, "s", finished, record)

    def spool(self, claim: api.Claim, claimed: api.Claimed) -> tuple[contract.GameFinished, bytes]:
        """Leave the result of a claimed game on its hall's disk, as a worker does first."""
        order = contract.GameOrder.decode(claimed.order)
        finished, record = harness.invented(order, claim, claimed.token)
        hall = directory.HallDirectory(self.root / "halls" / "h")
        hall.write_spool(directory.Spooled(harness.HALL, claimed.token, "s", finished, record))
        return finished, record

    def state(self) -> state.SeasonState:
        """Fold the journal."""
        return state.fold(self.ledger.read("s", 0, 10_000))

    def restore(self, other: pathlib.Path | None = None) -> list[restore.Plan]:
        """Restore into the present ledger and archive."""
        sources = restore.Sources(self.archive, other, self.root / "halls")
        journals, _ = restore.plan(self.ledger, sources)
        _, _, plans = restore.apply(self.ledger, sources, journals, "op", "test")
        return plans

    def fsck(self, *, repair: bool = False) -> list[findings.Told]:
        """Check the season."""
        season = findings.Season("s", self.ledger, self.archive, self.root / "halls")
        return list(fsck.check(season, fsck.checkers(), repair=repair))


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    """Give a season of which three games are played."""
    made = Scene(tmp_path)
    made.play(3)
    return made


def results(folded: state.SeasonState) -> dict[str, str]:
    """Return the results by game."""
    games: list[season_events.Game] = list(folded.games.values())
    return {game.id: game.finished.result for game in games if game.finished is not None}


def test_an_empty_redis_is_filled_from_mirror_and_archive(scene: Scene) -> None:
    """A Redis that has lost everything goes on where the mirror ends, to the same table."""
    before = scene.ledger.read("s", 0, 10_000)
    scene.ledger = memory.MemoryLedger()
    scene.restore()
    assert scene.ledger.read("s", 0, len(before)) == before
    assert scene.fsck() == []
    scene.play()
    assert scene.state().finished
    assert len(results(scene.state())) == 8
    assert scene.fsck() == []
    farm = scene.ledger.read(api.FARM)
    assert [entry.kind for entry in farm] == ["season_launched", "ledger_restored"]
    assert journal_mirror.read(scene.archive / "farm" / "journal.jsonl") == farm


def test_a_lagging_redis_gets_what_it_lost_and_fences_its_workers(scene: Scene) -> None:
    """The attempt that the lagging copy still holds can write nothing; its game is played once."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    lagging = memory.MemoryLedger()
    lagging.load("s", scene.ledger.read("s")[:-1])
    scene.serve()  # the mirror has the attempt's start, the lagging Redis has not
    scene.ledger = lagging
    scene.restore()
    with pytest.raises(errors.LedgerUncheckedError):
        scene.complete(*taken)
    scene.ledger.set_checked("s", scene.ledger.run_id())
    refused = scene.complete(*taken)
    assert isinstance(refused, api.Refused)
    assert "epoch" in refused.reason
    last = scene.ledger.read("s", 0, 10_000)[-1]
    assert (last.kind, last.data["cause"]) == ("attempt_ended", "restored")
    scene.play()
    assert scene.state().finished


def test_a_lost_disk_is_filled_from_redis_alone(scene: Scene) -> None:
    """Without archive the journal is whole again; games whose moves are lost are named first."""
    shutil.rmtree(scene.archive)
    sources = restore.Sources(scene.archive)
    _, (plan,) = restore.plan(scene.ledger, sources)
    assert plan.lost == ("league.1", "league.2", "league.3")
    before = scene.ledger.read("s", 0, 10_000)
    scene.restore()
    assert journal_mirror.read(scene.archive / "s" / "journal.jsonl") == before
    scene.play()
    assert scene.state().finished
    told = {one.finding.place.split("/")[-2] for one in scene.fsck()}
    assert told == {"league.1", "league.2", "league.3"}


def test_copies_that_part_are_refused_and_left(scene: Scene) -> None:
    """Two histories: the error shows where, neither Redis nor mirror is changed."""
    path = scene.archive / "s" / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[4] = lines[4].replace('"by":"', '"by":"x')
    path.write_text("".join(lines))
    before = path.read_text()
    with pytest.raises(errors.LedgerDamagedError, match="differ from entry 5"):
        scene.restore()
    assert path.read_text() == before
    assert scene.ledger.present_epoch() == 1
    (told,) = scene.fsck(repair=True)
    assert "differ from entry 5" in told.finding.problem
    assert path.read_text() == before


def test_a_torn_last_line_is_repaired_other_damage_is_not(scene: Scene) -> None:
    """Half a line at the end is cut and written again; a damaged line stops everything."""
    path = scene.archive / "s" / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    (told,) = scene.fsck(repair=True)
    assert (told.finding.problem, told.repaired) == ("the last line is torn", True)
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b'"kind":"attempt_started"', b'"kind:"attempt_started"', 1))
    scene.ledger = memory.MemoryLedger()
    with pytest.raises(errors.LedgerDamagedError, match=r"journal\.jsonl: line \d+ is damaged"):
        scene.restore()
    assert scene.ledger.last("s") == 0


def test_a_copy_of_a_seasons_folder_is_no_season(scene: Scene) -> None:
    """`cp -r s s.old` in the archive must not play the season twice: told, nothing written."""
    shutil.copytree(scene.archive / "s", scene.archive / "s.old")
    for ledger in (scene.ledger, memory.MemoryLedger()):
        scene.ledger = ledger
        before = ledger.seasons(), ledger.last("s"), ledger.present_epoch()
        with pytest.raises(errors.LedgerDamagedError, match=r"season s, not of s\.old.*Move it"):
            scene.restore()
        assert (ledger.seasons(), ledger.last("s"), ledger.present_epoch()) == before
        season = findings.Season("s.old", ledger, scene.archive)
        (told,) = fsck.check(season, fsck.checkers(), repair=True)
        assert "not of s.old" in told.finding.problem


def test_nothing_is_written_before_all_can_be_indexed(scene: Scene) -> None:
    """An attempt that lost its token stops a restore before the epoch is raised."""
    path = scene.archive / "s" / "journal.jsonl"
    token = next(e.token for e in scene.ledger.read("s", 0, 100) if e.kind == "attempt_started")
    path.write_text(path.read_text().replace(f'"token":"{token}"', '"token":""'))
    scene.ledger = memory.MemoryLedger()
    with pytest.raises(errors.LedgerDamagedError, match="has no token"):
        scene.restore()
    assert (scene.ledger.last("s"), scene.ledger.present_epoch()) == (0, 1)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\u0085", "\x1c"])
def test_what_an_engine_says_ends_no_line(scene: Scene, end: str) -> None:
    """Line ends of other alphabets in an engine's words lose no ply that was kept."""
    ply = made.ply(1, "e2e4", "e4", said=f"mate{end}soon").encode()
    kept = archive.SeasonArchive(scene.archive, "s")
    kept.keep_given_up("league.1", "a", [(1, ply)])
    assert kept.given_up("league.1", "a") == [ply]
    path = kept.games / "league.1" / "given-up" / "a.jsonl"
    assert list(leftovers.read_plies(path)) == [(1, ply)]


def test_a_second_restore_of_the_same_copy_has_another_epoch(scene: Scene) -> None:
    """What was given out after a first restore from an old copy is worth nothing after a second."""
    kept = scene.root / "kept"
    shutil.copytree(scene.archive, kept)
    epochs = []
    for _ in range(2):
        shutil.rmtree(scene.archive)
        shutil.copytree(kept, scene.archive)
        scene.ledger = memory.MemoryLedger(lambda: 10_000 * (len(epochs) + 1))
        scene.restore()
        epochs.append(scene.ledger.present_epoch())
    assert epochs[0] < epochs[1]


def test_a_game_in_flight_keeps_its_plies(scene: Scene) -> None:
    """Plies that only the hall's disk has are given back, and told with the attempt's end."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    claim, _ = taken
    scene.serve()
    log = scene.root / "halls" / "h" / "attempts" / f"{claim.attempt}.plies.jsonl"
    log.parent.mkdir(parents=True)
    plies = [_ply(number).encode() for number in (5, 6)]
    log.write_text("\n".join([*plies, '{"torn']))
    scene.ledger = memory.MemoryLedger()
    scene.restore()
    assert scene.ledger.plies(claim.attempt) == [(5, plies[0]), (6, plies[1])]
    end = scene.ledger.read("s", 0, 10_000)[-1]
    assert (end.data["ply"], end.data["white_clock_ns"]) == (6, 7)


def _ply(number: int) -> contract.PlyRecord:
    return made.ply(number, "e2e4", "e4", white_clock_ns=7, black_clock_ns=8)


def test_a_finished_game_is_taken_from_the_spool(scene: Scene) -> None:
    """A record that was neither in the archive nor in Redis is found on its hall's disk."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    finished, _ = scene.spool(*taken)
    scene.complete(*taken)
    spool = scene.root / "halls" / "h" / "spool" / f"{finished.attempt}.spool"
    journal = scene.archive / "s" / "journal.jsonl"
    with journal_mirror.Mirror(journal) as kept:  # mirrored, not archived: the moment of a kill
        kept.extend(scene.ledger.read("s", kept.last))
    scene.ledger = memory.MemoryLedger()
    assert scene.restore()[0].lost == ()
    scene.serve()
    assert (scene.archive / "s" / "games" / finished.game / "record.json").exists()
    spool.unlink()
    shutil.rmtree(scene.archive / "s" / "games" / finished.game)
    scene.ledger = memory.MemoryLedger()
    _, (plan,) = restore.plan(scene.ledger, restore.Sources(scene.archive))
    assert (plan.lost, plan.spooled) == ((), (finished.game,)), "a hall keeps what is not archived"


def test_a_result_that_was_not_recorded_yet_is_taken_from_the_spool(scene: Scene) -> None:
    """A hall held its result while Redis forgot: the restore records it, it is not played again."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    claim, claimed = taken
    scene.serve()  # the mirror has the attempt's start
    finished, record = scene.spool(claim, claimed)
    lagging = memory.MemoryLedger()
    lagging.load("s", scene.ledger.read("s")[:-1])
    scene.ledger = lagging
    scene.restore()
    last = scene.ledger.read("s", 0, 10_000)[-1]
    assert (last.kind, last.data["attempt"]) == ("game_finished", claim.attempt)
    scene.serve()
    late = scene.ledger.complete(harness.HALL, claimed.token, "s", finished, record)
    assert late == api.Recorded(last.seq), "the hall hears that it is recorded, and forgets it"
    scene.play()
    assert scene.state().finished
    assert scene.fsck() == []


@pytest.mark.parametrize("spooled", [True, False], ids=["on the disk too", "in Redis alone"])
def test_a_worker_may_tell_its_result_while_a_restore_reads(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, spooled: bool
) -> None:
    """Workers may stay: a result that comes before they are fenced counts, once, as it came."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    scene.serve()  # the mirror has the attempt's start
    if spooled:
        scene.spool(*taken)
    raised = scene.ledger.raise_epoch

    def told_before(epoch: int) -> int:
        assert isinstance(scene.complete(*taken), api.Recorded)
        shutil.rmtree(scene.root / "halls", ignore_errors=True)  # the hall forgets it
        return raised(epoch)

    monkeypatch.setattr(scene.ledger, "raise_epoch", told_before)
    (plan,) = scene.restore()
    assert plan.running is None
    last = scene.ledger.read("s", 0, 10_000)[-1]
    assert (last.kind, last.data["attempt"]) == ("game_finished", taken[0].attempt)
    assert scene.ledger.read("s", 0, 10_000) == journal_mirror.read(
        scene.archive / "s" / "journal.jsonl"
    )
    scene.play()
    assert scene.state().finished
    assert scene.fsck() == []


def test_a_restore_is_told_although_the_gateway_writes_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The farm's journal is everybody's: what another one writes meanwhile costs no fact."""
    last = scene.ledger.last
    others = [contract.Draft("worker_condemned", {"worker": "w", "reason": "cheats"})]

    def overtaken(journal: str) -> int:
        seq = last(journal)
        if journal == api.FARM and others:
            scene.ledger.append(journal, seq, [others.pop()], "gateway")
        return seq

    monkeypatch.setattr(scene.ledger, "last", overtaken)
    scene.restore()
    farm = [entry.kind for entry in scene.ledger.read(api.FARM)]
    assert farm == ["season_launched", "worker_condemned", "ledger_restored"]


def test_a_spool_may_go_while_it_is_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hall forgets it when it hears that the result is recorded: then it is no leftover."""
    taken = scene.claim()
    assert taken is not None
    finished, _ = scene.spool(*taken)
    start = scene.ledger.read("s", 0, 10_000)[-1]
    look = leftovers.Leftovers(None, [], scene.root / "halls")
    assert look.record(finished) is not None
    assert look.spooled(start) is not None
    read = pathlib.Path.read_bytes

    def gone(path: pathlib.Path) -> bytes:
        path.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(pathlib.Path, "read_bytes", gone)
    assert look.spooled(start) is None
    scene.spool(*taken)
    assert look.record(finished) is None


def test_a_damaged_season_keeps_no_other_from_its_restore(scene: Scene) -> None:
    """One journal that does not fold is named and left; the others are restored."""
    folder = scene.archive / "bad"
    folder.mkdir()
    (folder / "journal.jsonl").write_text('{"no": "entry"}\n')
    refused: dict[str, str] = {}
    scene.ledger = memory.MemoryLedger()
    sources = restore.Sources(scene.archive)
    journals, plans = restore.plan(scene.ledger, sources, refused)
    assert [plan.journal.name for plan in plans] == ["s"]
    assert "line 1 is damaged" in refused["bad"]
    restore.apply(scene.ledger, sources, journals, "op", refused=refused)
    assert scene.ledger.seasons() == ("s",)
    assert (folder / "journal.jsonl").read_text() == '{"no": "entry"}\n'


UNREADABLE = ("games/league.2/record.json", "games/league.2/game.pgn", "league.pgn")


@pytest.mark.parametrize("name", UNREADABLE)
def test_fsck_tells_what_cannot_be_read_and_goes_on(scene: Scene, name: str) -> None:
    """A wrong owner or kind is no damage: it is named, nothing is written over it."""
    path = scene.archive / "s" / name
    path.unlink()
    path.mkdir()  # rights would be no hindrance to a root who runs the tests
    (scene.archive / "s" / "games" / "league.3" / "game.pgn").unlink()
    told = {one.finding.place: one for one in scene.fsck(repair=True)}
    assert told[str(path)].finding.problem.startswith("cannot be read")
    assert not told[str(path)].repaired
    assert path.is_dir()
    assert (scene.archive / "s" / "games" / "league.3" / "game.pgn").exists()


def test_fsck_tells_what_cannot_be_mended(scene: Scene) -> None:
    """A place that does not take the repair stays a finding, with the system's word."""
    path = scene.archive / "s" / "games" / "league.2" / "game.pgn"
    path.unlink()
    (path.parent / "game.pgn.tmp").mkdir()
    told = next(one for one in scene.fsck(repair=True) if one.finding.place == str(path))
    assert not told.repaired
    assert "cannot be repaired: Is a directory" in told.finding.problem


DAMAGE = {
    "game.pgn": ("games/league.2/game.pgn", b'[Result "0-1"]\n\n0-1\n'),
    "no game.pgn": ("games/league.2/game.pgn", None),
    "event": ("league.pgn", b"nonsense"),
    "no event": ("league.pgn", None),
    "left over": ("games/league.1/game.pgn.tmp", b"half"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_fsck_mends_what_can_be_rebuilt(scene: Scene, damage: str) -> None:
    """Each damage is found once; looking changes nothing, mending brings every byte back."""
    name, content = DAMAGE[damage]
    path = scene.archive / "s" / name
    before = path.read_bytes() if path.exists() else None
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    found = scene.fsck()
    assert str(path) in {one.finding.place for one in found}
    assert (path.read_bytes() if path.exists() else None) == content
    assert all(one.repaired for one in scene.fsck(repair=True))
    assert (path.read_bytes() if path.exists() else None) == before
    assert scene.fsck() == []


def test_fsck_takes_a_lost_game_from_a_spool_only_if_it_is_the_one(scene: Scene) -> None:
    """A record is given back from a spool; a damaged one is no repair; without one it is told."""
    folder = scene.archive / "s" / "games" / "league.2"
    packed = next(
        entry.data["attempt"]
        for entry in scene.ledger.read("s", 0, 1000)
        if entry.kind == "game_finished" and entry.data["game"] == "league.2"
    )
    game = contract.GameRecord.decode((folder / "record.json").read_bytes())
    shutil.rmtree(folder)
    lost = [one for one in scene.fsck(repair=True) if one.checker == "games"]
    assert [(one.repaired, one.finding.problem) for one in lost] == [(False, "missing")]
    claim = harness.claim("s", "league.2", packed)
    _, record = harness.invented(game.order, claim, contract.Token.parse(game.token))
    spool = scene.root / "halls" / "h" / "spool" / f"{packed}.spool"
    spool.parent.mkdir(parents=True)
    spool.write_bytes(b"{}\n" + record[:-30])
    assert not any(one.repaired for one in scene.fsck(repair=True) if one.checker == "games")
    spool.write_bytes(b"{}\n" + record)
    scene.fsck(repair=True)
    assert scene.fsck() == []


def test_a_changed_record_is_found_by_its_hash(scene: Scene) -> None:
    """A record that is not the one that was journaled is told, and never overwritten by a guess."""
    assert not leftovers.is_whole(b"nonsense", "")
    path = scene.archive / "s" / "games" / "league.1" / "record.json"
    path.write_bytes(b"{}")
    (told,) = [one for one in scene.fsck(repair=True) if one.checker == "games"]
    assert not told.repaired
    assert path.read_bytes() == b"{}"


def test_a_backup_restores_to_the_same_table(scene: Scene) -> None:
    """Redis and archive gone: a backup, brought up to date twice, is the whole season."""
    target = scene.root / "backup"
    assert backup.backup(scene.ledger, scene.archive, target).games == 3
    scene.play(2)
    assert backup.backup(scene.ledger, scene.archive, target).games == 2
    assert backup.backup(scene.ledger, scene.archive, target).games == 0
    before = scene.state()
    shutil.rmtree(scene.archive)
    scene.ledger = memory.MemoryLedger()
    scene.restore(target)
    assert results(scene.state()) == results(before)
    assert scene.fsck() == []
    scene.play()
    assert scene.state().finished
    assert scene.fsck() == []


def test_an_older_copy_brings_no_game_back_that_was_played_again(scene: Scene) -> None:
    """The event's PGN holds what counts, also where it ends as that of an older backup does."""
    target = scene.root / "backup"
    backup.backup(scene.ledger, scene.archive, target)
    path = scene.archive / "s" / "league.pgn"
    before = path.read_bytes()
    older = before.replace(b"1-0", b"0-1", 2)  # its first game: the last one is the same
    (target / "s" / "league.pgn").write_bytes(older)
    scene.restore(target)
    scene.serve()
    assert path.read_bytes() == before
    assert scene.fsck() == []


def test_games_that_a_restore_gave_up_fail_no_backup(scene: Scene) -> None:
    """They are in no copy for good; what is missing because the archive is elsewhere is counted."""
    assert backup.backup(scene.ledger, scene.root / "nowhere", scene.root / "desk").lacking == 3
    shutil.rmtree(scene.archive / "s" / "games" / "league.1")
    target = scene.root / "backup"
    assert backup.backup(scene.ledger, scene.archive, target).lacking == 0
    scene.play(1)
    assert backup.backup(scene.ledger, scene.archive, target).lacking == 0


def test_a_backup_forgets_what_its_archive_has_by_now(scene: Scene) -> None:
    """What only Redis had of a game is kept until the game is copied, whatever its name."""
    scene.serve()
    ((season, game),) = scene.ledger.offered(harness.HALL).items()
    claim = harness.claim(season, game, "hall.b-4")
    claimed = scene.ledger.claim(claim)
    assert isinstance(claimed, api.Claimed)
    scene.ledger.write_ply(harness.HALL, claimed.token, claim.attempt, 1, "{}")
    target = scene.root / "backup"
    kept = target / "s" / leftovers.FOLDER
    backup.backup(scene.ledger, scene.archive, target)
    assert [path.name for path in kept.iterdir()] == ["hall.b-4.plies.jsonl"]
    scene.complete(claim, claimed)
    backup.backup(scene.ledger, scene.archive, target)
    assert len(list(kept.iterdir())) == 2, "its record is not archived yet"
    scene.serve()
    backup.backup(scene.ledger, scene.archive, target)
    assert list(kept.iterdir()) == []


def test_an_export_holds_what_redis_alone_has(scene: Scene) -> None:
    """A game whose record is only in Redis is in the export, and restored from it."""
    scene.serve()
    taken = scene.claim()
    assert taken is not None
    scene.complete(*taken)
    target = scene.root / "export"
    backup.export(scene.ledger, target)
    manifest = json.loads((target / "backup.json").read_text())
    assert manifest["journals"] == {"s": scene.ledger.last("s"), "farm": 1}
    scene.ledger = memory.MemoryLedger()
    assert scene.restore(target)[0].lost == ()
    scene.serve()
    assert (scene.archive / "s" / "games" / taken[0].game / "record.json").exists()


def test_a_damaged_farm_never_spoils_its_backup(scene: Scene) -> None:
    """A Redis that lost entries, or tells another story, is refused; so is a stranger's folder."""
    target = scene.root / "backup"
    backup.backup(scene.ledger, scene.archive, target)
    before = (target / "s" / "journal.jsonl").read_bytes()
    poorer = memory.MemoryLedger()
    poorer.load("s", scene.ledger.read("s")[:3])
    with pytest.raises(errors.RefusedError, match="farm restore --from"):
        backup._keep_journal(target, "s", poorer.read("s"))
    (scene.root / "elsewhere").mkdir()
    other = Scene(scene.root / "elsewhere")
    with pytest.raises(errors.LedgerDamagedError, match="differ from entry 1"):
        backup.export(other.ledger, target)
    assert (target / "s" / "journal.jsonl").read_bytes() == before
    with pytest.raises(errors.RefusedError, match="not empty"):
        backup.export(scene.ledger, scene.root)
    with pytest.raises(errors.UsageError, match="archive itself"):
        backup.backup(scene.ledger, scene.archive, scene.archive / "copy")


def test_a_redis_that_lost_a_season_is_no_success(scene: Scene) -> None:
    """Lost whole or in part, known to backup or mirror: refused, nothing copied."""
    target = scene.root / "backup"
    backup.backup(scene.ledger, scene.archive, target)
    empty, shorter = memory.MemoryLedger(), memory.MemoryLedger()
    shorter.load("s", scene.ledger.read("s")[:3])
    for ledger in (empty, shorter):
        for copy in (target, scene.root / "first"):
            before = sorted(path.stat().st_mtime_ns for path in target.rglob("*"))
            with pytest.raises(errors.RefusedError, match=r"lost facts .*s: 14 entries"):
                backup.backup(ledger, scene.archive, copy)
            assert sorted(path.stat().st_mtime_ns for path in target.rglob("*")) == before
            assert not (scene.root / "first").exists()
    with pytest.raises(errors.RefusedError, match="Redis has lost facts"):
        backup.export(empty, target)
    journal = scene.archive / "s" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"torn')
    assert backup.backup(scene.ledger, scene.archive, target).games == 0


def test_restore_and_fsck_find_nothing_to_do_in_nothing(tmp_path: pathlib.Path) -> None:
    """Without any journal a restore is refused; an unknown checker is named with the known."""
    with pytest.raises(errors.RefusedError, match="nothing to restore"):
        restore.plan(memory.MemoryLedger(), restore.Sources(tmp_path))
    with pytest.raises(errors.UsageError, match="allowed: events, feeds, games, journal"):
        fsck.checkers(["feeds of tomorrow"])


def test_a_restore_waits_for_the_archive(scene: Scene) -> None:
    """While another process writes the archive, its lock says no."""
    with (
        archive.sole_writer(scene.archive),
        pytest.raises(errors.RefusedError, match="farm serve"),
        archive.sole_writer(scene.archive),
    ):
        pass


# -- the commands ----------------------------------------------------------------------


@pytest.fixture
def farm(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    """Give a farm whose Redis holds a launched season, and its commands."""
    with harness.Redis(tmp_path / "redis") as server:
        monkeypatch.setenv("FARM_REDIS_URL", server.url_of(harness.OPERATOR))
        monkeypatch.setenv("FARM_DATA", str(tmp_path))
        played = Scene(tmp_path)
        with store.connect(server.url) as ledger:
            ledger.load("s", played.ledger.read("s"))
            ledger.reindex(restoring.index("s", (), {}, 0))
        yield lambda *words: testing.CliRunner().invoke(commands.farm, words)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("backup", "--to", "{}/b", "--every", "soon"), 2, "--every: found 'soon'"),
        (("restore", "--from", "{}/nowhere"), 2, "no journal.jsonl"),
        (("export", "--to", "{}"), 3, "not empty"),
        (("fsck", "--only", "nothing"), 2, "--only: found 'nothing'"),
        (("fsck", "nobody"), 3, "there is no journal"),
        (("export", "--to", "/proc/nowhere"), 5, "/proc/nowhere: No such file"),
        (("backup", "--to", "/dev/null"), 5, "/dev/null: File exists"),
        (("pause", "--by", "ann", "--reason", "a\udcff"), 2, "not UTF-8: 'a?'"),
        (("evidence", "league.1"), 3, "no game 'league.1'"),
    ],
)
def test_what_a_command_refuses(
    farm: Farm, tmp_path: pathlib.Path, words: tuple[str, ...], code: int, told: str
) -> None:
    """Each refusal has its exit code and says what was found; no traceback."""
    done = farm(*(word.format(tmp_path) for word in words))
    assert done.exit_code == code, done.output
    assert told in " ".join(done.output.split())


@pytest.fixture
def desk(farm: Farm, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Farm:
    """Give the commands of a desk: it has the address of the farm's Redis and an empty folder."""
    (tmp_path / "control").mkdir()
    played = Scene(tmp_path / "control")
    played.play(3)
    with store.connect(os.environ["FARM_REDIS_URL"]) as ledger:
        ledger.load(api.FARM, played.ledger.read(api.FARM))
        entries = played.ledger.read("s", 1, 1_000)
        ledger.load("s", entries)
        ledger.reindex(restoring.index("s", entries, {}, 0))
        ledger.set_mirrored("s", played.ledger.last("s"))
    monkeypatch.delenv("FARM_DATA")
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return farm


def test_a_backup_at_a_desk_says_which_games_it_lacks(desk: Farm, tmp_path: pathlib.Path) -> None:
    """Journals without their games are no success; the farm's own backup stays what it was."""
    done = desk("backup", "--to", str(tmp_path / "copy"))
    told = " ".join(done.output.split())
    assert (done.exit_code, "lacks the moves of 3 finished games" in told) == (3, True), told
    assert "systemctl start farm-backup" in told
    with store.connect(os.environ["FARM_REDIS_URL"]) as ledger:
        assert services.read(ledger, services.BACKUP, services.Backup) is None
    archive_there = tmp_path / "control" / "archive"
    done = desk("backup", "--to", str(tmp_path / "copy"), "--archive", str(archive_there))
    assert done.exit_code == 0, done.output
    with store.connect(os.environ["FARM_REDIS_URL"]) as ledger:
        report = services.read(ledger, services.BACKUP, services.Backup)
    assert report is not None
    assert (report.complete_ms > 0, report.error) == (True, "")


def test_a_backup_of_the_farm_that_lacks_games_is_told(
    desk: Farm, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the farm's data should be it is a failure, for the alerts, too."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path / "wrong"))
    assert desk("backup", "--to", str(tmp_path / "copy")).exit_code == 3
    with store.connect(os.environ["FARM_REDIS_URL"]) as ledger:
        report = services.read(ledger, services.BACKUP, services.Backup)
    assert report is not None
    assert (report.complete_ms, "3 finished games" in report.error) == (0, True)


@pytest.mark.parametrize(
    "words",
    [
        ("fsck",),
        ("fsck", "--repair"),
        ("evidence", "league.1"),
        ("notify", "list"),
        ("notify", "ack", "1"),
    ],
    ids=" ".join,
)
def test_a_desk_is_told_where_the_farms_files_are(desk: Farm, words: tuple[str, ...]) -> None:
    """A command that reads the farm's files looks into no empty folder in their place."""
    done = desk(*words)
    told = " ".join(done.output.split())
    assert done.exit_code == 3, told
    assert "not on this machine" in told
    assert "/var/lib/farm" in told
    assert list(pathlib.Path().iterdir()) == [], "nothing was made"


def test_a_trace_at_a_desk_says_what_it_has_not(desk: Farm) -> None:
    """The journal's lines are shown, and that logs and protocol are elsewhere."""
    done = desk("trace", "league.1")
    told = " ".join(done.output.split())
    assert done.exit_code == 0, told
    assert "game_finished" in told
    assert "no logs are read" in told
    assert "not on this machine" in told


def test_a_notice_that_there_is_not_cannot_be_acknowledged(farm: Farm) -> None:
    """Where nobody was ever told of anything, too."""
    done = farm("notify", "ack", "1")
    assert done.exit_code == 3, done.output
    assert "no notice '1' is waiting; waiting: none" in done.output


def test_a_dry_restore_changes_nothing(farm: Farm, tmp_path: pathlib.Path) -> None:
    """It reads and checks all, shows the table, and leaves epoch, Redis and disk as they are."""
    assert farm("export", "--to", str(tmp_path / "copy")).exit_code == 0
    done = farm("restore", "--from", str(tmp_path / "copy"), "--dry-run")
    assert done.exit_code == 0, done.output
    assert "nothing was changed" in done.output
    assert not (tmp_path / "archive" / "s").exists()
    shown = json.loads(farm("restore", "--json", "--reason", "why").output)
    assert shown["epoch"] > 1
    assert [row["in_redis"] for row in shown["journals"]] == [1]
    assert farm("fsck").output == "1 season: journal, archive and feeds agree\n"
    with (tmp_path / "archive" / "s" / "journal.jsonl").open("a") as file:
        file.write('{"torn')
    looked = farm("fsck")
    assert (looked.exit_code, "--repair can repair it" in looked.output) == (3, True)
    assert farm("fsck", "--repair").exit_code == 0
