"""What a hall's past left on its disk, damaged: kept aside, and the game is judged by its plies."""

from __future__ import annotations

import hashlib
import pathlib

import harness
import made
import pytest
from twins import memory

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.ledger import api
from worker_cpu import settings
from worker_cpu.hall import directory as hall_directory
from worker_cpu.worker import recovery

HEAD = 40  # bytes: inside of the spool's first line


@pytest.fixture
def ledger() -> memory.MemoryLedger:
    """Return a ledger with one offered game."""
    ledger = memory.MemoryLedger()
    ledger.append("s", 0, [contract.Draft("season_launched", {})], "test")
    ledger.offer(harness.HALL, "s", "e.1", made.order().encode(), 1)
    return ledger


def spooled(ledger: memory.MemoryLedger, directory: hall_directory.HallDirectory) -> pathlib.Path:
    """Claim the game and spool its result, as a link does that is killed then."""
    claim = harness.claim("s", "e.1", "a")
    claimed = ledger.claim(claim)
    assert isinstance(claimed, api.Claimed), claimed
    finished, packed = harness.invented(made.order(), claim, claimed.token)
    digest = hashlib.sha256(game_zip.unpack(packed)["record.json"]).hexdigest()
    finished = finished.model_copy(update={"record_sha256": digest})
    return directory.write_spool(
        hall_directory.Spooled(harness.HALL, claimed.token, "s", finished, packed)
    )


def settle(ledger: memory.MemoryLedger, directory: hall_directory.HallDirectory) -> list[str]:
    """Settle as the host's next child; return the kinds of what was journaled."""
    host = harness.claim("s", "e.1", "a").host
    configured = settings.HallSettings(harness.HALL, directory.root, "", host, "w")
    recovery.settle(configured, directory, ledger)
    return [entry.kind for entry in ledger.read("s")]


def test_a_whole_spool_is_the_result(ledger: memory.MemoryLedger, tmp_path: pathlib.Path) -> None:
    """The game that was spooled before the kill is recorded once, however often it is settled."""
    directory = hall_directory.HallDirectory(tmp_path)
    spooled(ledger, directory)
    for _ in range(2):
        assert settle(ledger, directory)[-2:] == ["attempt_started", "game_finished"]


def test_plies_that_the_halls_log_alone_has_are_given_back(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """An attempt ends with the last whole ply that its host wrote down; a torn line is none."""
    directory = hall_directory.HallDirectory(tmp_path)
    claimed = ledger.claim(claim := harness.claim("s", "e.1", "a"))
    assert isinstance(claimed, api.Claimed), claimed
    plies = [made.ply(1, "e2e4", "e4"), made.ply(2, "e7e5", "e5"), made.ply(3, "g1f3", "Nf3")]
    lines = [one.encode() for one in plies]
    ledger.write_ply(harness.HALL, claimed.token, claim.attempt, 1, lines[0])
    log = "\n".join([*lines, lines[0][:20]])
    directory.ply_log(claim.attempt).write_text(log)
    assert settle(ledger, directory)[-2:] == ["attempt_started", "attempt_ended"]
    assert ledger.plies(claim.attempt) == list(enumerate(lines, start=1))
    assert ledger.read("s")[-1].data["ply"] == 3


def test_what_waits_for_one_seasons_comparison_keeps_no_other_waiting(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """Redis came back, and one season's journal is not compared: another one's spool is told."""
    directory = hall_directory.HallDirectory(tmp_path)
    waiting = spooled(ledger, directory)
    other = hall_directory.Spooled.decode(waiting.read_bytes())
    ledger.append("t", 0, [contract.Draft("season_launched", {})], "test")
    ledger.complete(harness.HALL, other.token, "s", other.finished, other.record)
    ledger.offer(harness.HALL, "t", "e.1", made.order().encode(), 1)
    claim = harness.claim("t", "e.1", "b")
    claimed = ledger.claim(claim)
    assert isinstance(claimed, api.Claimed), claimed
    finished, packed = harness.invented(made.order(), claim, claimed.token)
    directory.write_spool(
        hall_directory.Spooled(harness.HALL, claimed.token, "t", finished, packed)
    )
    ledger.server_run = "another"
    assert ledger.set_checked("t", "another")
    settle(ledger, directory)
    assert ledger.read("t")[-1].kind == "game_finished"
    assert waiting.exists()


@pytest.mark.parametrize("part", ["head", "record", "end", "all"])
def test_a_damaged_spool_is_kept_aside(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, part: str
) -> None:
    """A record nobody could read is not journaled: the attempt is given up, the file kept."""
    directory = hall_directory.HallDirectory(tmp_path)
    path = spooled(ledger, directory)
    content = path.read_bytes()
    packed = content.index(b"\n") + 1
    damaged = {
        "head": content[:HEAD] + b"\xff" + content[HEAD + 1 :],
        "record": content[: packed + 60] + b"\xff\xff" + content[packed + 62 :],
        "end": content[:-30],
        "all": b"\0" * len(content),
    }[part]
    path.write_bytes(damaged)
    assert settle(ledger, directory)[-1] == "attempt_ended"
    assert (directory.refused / path.name).read_bytes() == damaged
    assert (directory.refused / f"{path.stem}.reason").read_text()


def test_a_spool_with_another_games_record_is_kept_aside(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """The hash in the result is that of its own record."""
    directory = hall_directory.HallDirectory(tmp_path)
    path = spooled(ledger, directory)
    whole = hall_directory.Spooled.decode(path.read_bytes())
    other = harness.claim("s", "e.1", "b")
    _, packed = harness.invented(made.order(), other, whole.token)
    head = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(head + b"\n" + packed)
    assert settle(ledger, directory)[-1] == "attempt_ended"
    reason = (directory.refused / f"{path.stem}.reason").read_text()
    assert "not the one of its result" in reason


def test_a_look_that_fails_is_followed_by_another_child(tmp_path: pathlib.Path) -> None:
    """A fault that nobody foresaw ends the child, with all it held; the next one plays."""
    with harness.running(tmp_path) as farm:
        # A fault that meets the child while it still opens the hall ends the worker, with no look.
        farm.wait(lambda: bool(farm.ledger.vitals()), 30, "a hall that its child has opened")
        child, attempts = harness.link_pid(farm), farm.root / "halls" / harness.HALL / "attempts"
        attempts.rename(attempts.with_name("away"))
        attempts.write_text("no directory")
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(farm.root / "s.toml", engines, final_games=2), "s")
        farm.wait(lambda: "look.failed" in farm.worker.log.read_text(), 30, "the fault")
        attempts.unlink()
        attempts.with_name("away").rename(attempts)
        assert farm.finish("s").finished
        assert harness.link_pid(farm) != child
