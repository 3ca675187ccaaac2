"""Evidence for authors: the own side whole, of the rival nothing, no binary, no network."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import pathlib
import tarfile

import made
import pytest

from orchestrator import contract
from orchestrator.arbiter import record, verdict
from orchestrator.common import errors
from orchestrator.serve import evidence

SECRET = "secret-of-the-rival"  # what no file of the pack may hold
NETWORK = b"weights" * 100
LOG = (
    b"10 w> uci\n11 w< id name Mine\n12 b> setoption name X value secret-of-the-rival\n"
    b"13 b! secret-of-the-rival on stderr\n14 w! mine on stderr\n"
)


def spec(name: str, **more: object) -> contract.EngineSpec:
    """Make an engine."""
    fields = {"id": name, "name": name.title(), "command": (f"/opt/{name}/{name}-bin",), **more}
    return contract.EngineSpec.model_validate(fields)


def ply(number: int, said: str) -> contract.PlyRecord:
    """Make a ply with something that only its engine's author may read."""
    move, san = ("e2e4", "e4") if number == 1 else ("e7e5", "e5")
    return made.ply(number, move, san, said=said)


@pytest.fixture
def case(tmp_path: pathlib.Path) -> evidence.Case:
    """Archive a game of two plies with a given-up attempt before it, scratch and core."""
    game = contract.GameRecord(
        order=made.order(
            spec("mine", network="/opt/mine/net.bin", options={"Hash": 4}),
            spec("rival", options={"Key": SECRET}),
        ),
        attempt="a2",
        started_ms=1,
        ended_ms=2_000,
        white=contract.EngineReport(id_name="Mine 1", exit="signal 11", stderr_tail="mine"),
        black=contract.EngineReport(id_name="Rival 1", stderr_tail=SECRET),
        plies=(ply(1, "white said"), ply(2, SECRET)),
        outcome=verdict.disconnect("white"),
        final_fen="",
        remarks=("the host is slow", f"rival: {SECRET}"),
    )
    folder, halls = tmp_path / "games" / "e.1", tmp_path / "halls"
    (folder / "given-up").mkdir(parents=True)
    (folder / "record.json").write_text(game.encode())
    (folder / "game.pgn").write_text(record.pgn(game))
    (folder / "protocol.log.gz").write_bytes(gzip.compress(LOG))
    (folder / "given-up" / "a1.jsonl").write_text(f"{ply(2, SECRET).encode()}\n")
    attempts = halls / "h" / "attempts"
    attempts.mkdir(parents=True)
    (attempts / "a1.protocol.gz").write_bytes(gzip.compress(LOG)[:-9])  # cut off by the fault
    mine = halls / "h" / "scratch" / "a2" / "w-77"
    rival = halls / "h" / "scratch" / "a2" / "b-78"
    for seat in (mine, rival):
        (seat / "deep").mkdir(parents=True)
    (mine / "deep" / "notes.txt").write_text("mine")
    (mine / "core").write_bytes(b"\x7fELF" + bytes(12) + b"\x04\x00" + b"mine")
    (mine / "copy").write_bytes(b"\x7fELF" + bytes(12) + b"\x03\x00" + b"a program")
    (mine / "net.bin").write_bytes(b"by its name")
    (mine / "renamed").write_bytes(NETWORK)
    (mine / "link").symlink_to(rival)
    (mine / "one").symlink_to(rival / "theirs.txt")
    (rival / "theirs.txt").write_text(SECRET)
    ended = contract.AttemptEnded(
        game="e.1", attempt="a1", hall="h", lane="", host="host", cause="host lost"
    )
    return evidence.read(folder, halls, [ended], {hashlib.sha256(NETWORK).hexdigest()})


def unpacked(case: evidence.Case, side: contract.Side, path: pathlib.Path) -> dict[str, bytes]:
    """Write one side's pack and read it back; all of it lies in a folder of the pack's name."""
    evidence.write(path, evidence.members(case, side), 2_000)
    root = f"{path.name.removesuffix('.tar.gz')}/"
    with tarfile.open(path) as tar:
        assert all(name.startswith(root) for name in tar.getnames())
        files = {name: tar.extractfile(name) for name in tar.getnames()}
        return {name.removeprefix(root): file.read() for name, file in files.items() if file}


def test_a_pack_holds_all_of_the_own_side(case: evidence.Case, tmp_path: pathlib.Path) -> None:
    """Options, exit, errors, own plies whole, protocol, interrupted attempts, scratch and core."""
    pack = unpacked(case, "white", tmp_path / "pack.tar.gz")
    engine = json.loads(pack["engine.json"])
    assert engine["engine"]["options"] == {"Hash": 4}
    assert engine["report"]["exit"] == "signal 11"
    assert pack["stderr.txt"] == b"mine"
    assert pack["protocol.log"] == b"10 w> uci\n11 w< id name Mine\n14 w! mine on stderr\n"
    own, other = map(json.loads, pack["plies.jsonl"].splitlines())
    assert own["said"] == "white said"
    assert set(other) == set(evidence.PUBLIC)
    assert json.loads(pack["host.json"])["attempts"][0]["cause"] == "host lost"
    assert json.loads(pack["host.json"])["remarks"] == ["the host is slow"]
    assert b"11 w< id name Mine" in pack["attempts/a1/protocol.log"]
    assert pack["scratch/a2/w-77/deep/notes.txt"] == b"mine"
    assert pack["scratch/a2/w-77/core"].endswith(b"mine")


def test_nothing_of_the_rival_and_nothing_private_is_in_a_pack(
    case: evidence.Case, tmp_path: pathlib.Path
) -> None:
    """No word of the rival, no file behind a link, no program, no network by name or by hash."""
    pack = unpacked(case, "white", tmp_path / "pack.tar.gz")
    for name, content in pack.items():
        assert SECRET.encode() not in content, name
        assert b"a program" not in content, name
        assert NETWORK not in content, name
    kept = {name.rpartition("/")[2] for name in pack if name.startswith("scratch/")}
    assert kept == {"core", "notes.txt"}


def test_an_interruption_by_one_engine_is_told_to_its_author_alone(
    case: evidence.Case, tmp_path: pathlib.Path
) -> None:
    """Whose file was another one is read by him; the rival reads that there was something."""
    (one,) = case.ended
    faulty = one.model_copy(update={"evidence": "Rival: net (/srv/nets of r/net) is another one"})
    case = dataclasses.replace(case, ended=[faulty])
    host = {
        side: json.loads(unpacked(case, side, tmp_path / "pack.tar.gz")["host.json"])
        for side in evidence.SEATS
    }
    assert host["black"]["attempts"][0]["evidence"] == "Rival: net (net) is another one"
    assert host["white"]["attempts"][0]["evidence"] == "withheld: it tells of the opponent"


def test_the_rival_gets_his_own(case: evidence.Case, tmp_path: pathlib.Path) -> None:
    """The other side's pack is the mirror image."""
    pack = unpacked(case, "black", tmp_path / "pack.tar.gz")
    assert SECRET.encode() in pack["protocol.log"]
    assert SECRET.encode() in pack["scratch/a2/b-78/theirs.txt"]
    assert b"signal 11" not in pack["engine.json"]
    assert b"w<" not in pack["protocol.log"]


def test_what_is_damaged_is_left_out_and_the_rest_is_packed(
    case: evidence.Case, tmp_path: pathlib.Path
) -> None:
    """A lost PGN is written from the record; of a torn file of plies the whole ones are told."""
    (case.folder / "game.pgn").unlink()
    kept = case.folder / "given-up" / "a1.jsonl"
    said = "a\u2028b"
    kept.write_text(f'{ply(1, said).encode()}\n{{"torn')
    pack = unpacked(case, "white", tmp_path / "pack.tar.gz")
    assert b"1. e4" in pack["game.pgn"]
    (line,) = pack["attempts/a1/plies.jsonl"].split(b"\n")[:-1]
    assert json.loads(line)["said"] == said


def test_a_pack_that_cannot_be_written_leaves_nothing(
    case: evidence.Case, tmp_path: pathlib.Path
) -> None:
    """Half a pack is no pack."""
    (case.folder / "game.pgn").unlink()
    (case.folder / "game.pgn").mkdir()
    with pytest.raises(IsADirectoryError):
        unpacked(case, "white", tmp_path / "pack.tar.gz")
    assert not list(tmp_path.glob("pack*"))


def test_who_did_not_play_gets_nothing(case: evidence.Case, tmp_path: pathlib.Path) -> None:
    """A stranger, a game that is not archived and a damaged record are three clear errors."""
    with pytest.raises(errors.UsageError, match="played by mine and rival"):
        case.side("stranger")
    with pytest.raises(errors.RefusedError, match="not archived yet"):
        evidence.read(tmp_path / "nowhere", tmp_path, ())
    (case.folder / "record.json").write_text("{}")
    with pytest.raises(errors.HostError, match="farm fsck"):
        evidence.read(case.folder, tmp_path, ())
