"""The agent alone: what its key opens, whose GPU it takes, what it refuses to run."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import pathlib
import sys
import time
from collections.abc import Iterator

import bed
import pytest

from orchestrator import contract, errors
from worker_cpu import boxes, seating
from worker_cpu.seats import records, ssh
from worker_gpu import agent, files

SECONDS = 15.0


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bed.Box]:
    """Run a box on loopback; nothing of it may be left."""
    root = tmp_path_factory.mktemp("box")
    with bed.loopback(root, grace_ms=1_500, beat_ms=200) as one:
        yield one
    deadline = time.monotonic() + SECONDS
    while bed.survivors(root) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert bed.survivors(root) == []


def first_message(seat: contract.SeatAddress) -> records.Message:
    """Join a seat and return the first thing that is said."""
    with contextlib.closing(ssh.Connection(seat, SECONDS)) as connection:
        connection.send(records.Message("join", 0, 0).encode())
        parser, deadline = records.Parser(), time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = parser.feed(connection.receive() or b"")
            if found:
                return found[0]
            time.sleep(0.01)
    pytest.fail("nothing was said")


@pytest.mark.parametrize(
    "command",
    ["", "sh", "seat", "seat unknown", "seat ../run/x", "seat a; id", "seat a\nid", "rm -rf /"],
)
def test_the_halls_key_opens_a_prepared_seat_and_nothing_else(box: bed.Box, command: str) -> None:
    """Whatever else is asked for with it is refused, and nothing is run."""
    seat = box.seat(["cat"])
    with ssh.transport(seat, seat.key, SECONDS) as transport:
        session = transport.open_session(timeout=SECONDS)
        session.settimeout(SECONDS)
        if command:
            session.exec_command(command)
        else:
            session.invoke_shell()
        said = b""
        while chunk := session.recv(4096):
            said += chunk
    message = records.Parser().feed(said)[0]
    assert message.kind == "gone"
    assert not (box.farm / "run" / seat.seat).exists()


def test_a_box_with_another_host_key_is_told_nothing(box: bed.Box) -> None:
    """The pinned key is the host's identity; another one is never a reason to try again."""
    other = (box.root / "play.pub").read_text().split()
    seat = box.seat(["cat"]).model_copy(update={"host_key": " ".join(other[:2])})
    with pytest.raises(ssh.RefusedHostError, match="not the pinned one"):
        ssh.Connection(seat, SECONDS)


def test_a_gpu_is_one_attempts_only(box: bed.Box) -> None:
    """Both seats of a game share a GPU; an agent of another attempt does not start on it."""
    ours = [box.seat(["cat"], ("GPU-1",), "a-1", grace_ms=4_000) for _ in range(2)]
    assert [first_message(seat).kind for seat in ours] == ["joined", "joined"]
    theirs = box.seat(["cat"], ("GPU-2", "GPU-1"), "a-2")
    message = first_message(theirs)
    assert message.kind == "gone"
    assert b"GPU-1 is locked by a-1" in message.payload


def test_only_pinned_files_are_run(box: bed.Box, tmp_path: pathlib.Path) -> None:
    """An engine whose file was changed after it was prepared is not started."""
    program = tmp_path / "network"
    program.write_bytes(b"changed")
    seat = box.seat(["cat"], checksums={str(program): hashlib.sha256(b"pinned").hexdigest()})
    message = first_message(seat)
    assert message.kind == "gone"
    assert b"is not the pinned file" in message.payload


def test_a_seat_is_used_once(box: bed.Box) -> None:
    """A seat whose engine has ended starts no other one; how it ended is told."""
    seat = box.seat(["true"])
    assert first_message(seat).kind == "joined"
    deadline = time.monotonic() + SECONDS
    while not (box.farm / "run" / seat.seat / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    message = first_message(seat)
    assert message.kind == "gone"
    assert b"exit 0" in message.payload


def test_missing_files_are_pushed_and_verified(box: bed.Box, tmp_path: pathlib.Path) -> None:
    """A pinned file that the box lacks comes by SFTP, and only the right one is put in place."""
    home = tmp_path / "hall"
    home.mkdir()
    (home / "net.pb").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    spec = contract.EngineSpec(
        id="e",
        name="E",
        command=("cat",),
        directory=str(home),
        network="net.pb",
        checksums={"net.pb": digest},
    )
    request = contract.SeatRequest(
        hall="h",
        attempt="a",
        token="trial",
        game="g",
        engines={"white": spec},
        grace_ms=1,
        beat_ms=1,
    )
    address = boxes.BoxAddress(
        address=box.address,
        port=box.port,
        user=bed.user(),
        key=str(box.root / "play"),
        push_key=str(box.root / "push"),
        host_key=box.host_key,
        incoming=str(box.farm / "incoming"),
    )
    engines = box.farm / "engines"
    there = spec.model_copy(update={"directory": str(engines)})
    known = files.Files(engines, box.farm / "incoming")
    (box.farm / "incoming" / digest).write_bytes(b"something else")
    assert known.find(there).missing == {digest: str(engines / "net.pb")}
    seating.push("box-1", address, request, {digest: "net.pb"}, lambda: None)
    assert known.find(there).missing == {}
    assert (engines / "net.pb").read_bytes() == b"weights"
    elsewhere = spec.model_copy(update={"directory": str(tmp_path / "other")})
    with pytest.raises(errors.HostError, match="install it by hand"):
        known.find(elsewhere)


def test_the_agent_is_one_file_for_old_pythons() -> None:
    """It imports the standard library only, and Python 3.9 reads it."""
    tree = ast.parse(bed.AGENT.read_text(), feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.module.partition(".")[0] in sys.stdlib_module_names


def test_hall_and_agent_write_the_same_messages() -> None:
    """Both codecs agree, however the stream is cut."""
    told = [("go", 1, 0, b"a\nb"), ("ask", 2, 5, b""), ("out", 3, 7, b"x" * 70_000)]
    stream = b"".join(agent.encode(*one) for one in told)
    assert stream == b"".join(records.Message(*one).encode() for one in told)
    for size in (1, 7, 1 << 20):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        ours, theirs = records.Parser(), agent.Parser()
        assert [tuple(one) for piece in pieces for one in ours.feed(piece)] == told
        assert [one for piece in pieces for one in theirs.feed(piece)] == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[box.a]\n", "address"),
        ('[box.a]\naddress="h"\nkey="k"\nhost_key="none"\n', "host_key"),
        ('[box.a]\naddress="h"\nkey="k"\nhost_key="t k"\ngrace_seconds=95\n', "DEAD_MAN"),
        ('[box.a]\naddress="h"\nkey="k"\nhost_key="t k"\nbeat_seconds=20\n', "four beats"),
        ("box", "boxes.toml"),
    ],
)
def test_a_wrong_boxes_file_says_what_is_wrong(
    tmp_path: pathlib.Path, text: str, told: str
) -> None:
    """The message names the file and the place; the grace stays below the dead man."""
    path = tmp_path / "boxes.toml"
    path.write_text(text)
    with pytest.raises(errors.UsageError, match=told):
        boxes.load(path, 90.0)
