"""The agent alone: what its key opens, whose GPU it takes, what it refuses to run."""

from __future__ import annotations

import ast
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time
from collections.abc import Iterator

import bed
import hall
import paramiko
import pytest
import remote_games

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import agent_wire, remote, ssh
from worker_cpu.hall import gpu_hosts, gpu_seats
from worker_cpu.host import pulse, stall
from worker_cpu.protocols import base, uci, xboard
from worker_gpu import agent, files, stale_agents

LONG = os.environ.get("FARM_LONG") == "1"
SECONDS = 60.0  # s: how long a busy machine may take
HELD_BYTES = 512 << 20  # which the kernel does not take back at once
OLD = ("3.9", "3.10")  # that the agent promises beyond the farm's own


def pythons() -> dict[str, str]:
    """Return the oldest Python that is here, all of them in the long form: version to program."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = {}
    for version in OLD:
        places = sorted(map(str, pyenv.glob(f"{version}.*/bin/python{version}")))
        program = next(iter(places), None) or shutil.which(f"python{version}")
        if program is not None:
            found[version] = program
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    every = [*found.items(), (own, sys.executable)]
    return dict(every if LONG else every[:1])


PYTHONS = pythons()


@pytest.mark.parametrize("limit", ["allowed_ns", "quit_ns"])
@pytest.mark.parametrize(
    ("killed_for", "ended", "over"),
    [("link lost", False, 0), ("link lost", True, 0), ("", True, 0), ("link lost", True, 7)],
)
def test_a_limit_that_has_passed_does_not_let_an_agent_run_without_a_pause(
    limit: str, killed_for: str, ended: bool, over: int
) -> None:
    """It runs before all else on its core: the engine that it waits for could not even end."""
    now = agent.boottime_ns()
    one = object.__new__(agent.Agent)
    one.search, one.joined, one.next_ask_ns = None, True, now + 60 * 10**9
    one.allowed_ns = one.quit_ns = now + 60 * 10**9
    setattr(one, limit, now - 10**9)
    one.killed_for, one.ended_ns, one.closed_ns, one.over = killed_for, ended and now, 0, over
    one.records = collections.deque([(7, b"")])
    # With its end told and no permission left it is finished: the one case that needs no pause.
    assert one._finished() or one._patience_ms() > 100


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bed.Box]:
    """Run a box on loopback; nothing of it may be left."""
    root = tmp_path_factory.mktemp("box")
    with bed.loopback(root, grace_ms=1_500, beat_ms=200) as one:
        yield one
    assert bed.gone(root), bed.survivors(root)


@contextlib.contextmanager
def joined(
    seat: contract.SeatAddress,
) -> Iterator[tuple[ssh.Connection, Iterator[agent_wire.Message]]]:
    """Join a seat; give the connection and what is said there, until nothing comes any more."""
    with contextlib.closing(ssh.Connection(seat, SECONDS)) as connection:
        connection.send(agent_wire.Message("join", 0, 0, seat.secret.encode()).encode())

        def messages() -> Iterator[agent_wire.Message]:
            parser, deadline = agent_wire.Parser(), time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                yield from parser.feed(connection.receive() or b"")
                time.sleep(0.01)
            pytest.fail("nothing was said")

        yield connection, messages()


def first_message(seat: contract.SeatAddress, kind: str = "") -> agent_wire.Message:
    """Join a seat and return the first thing that is said, or the first of its kind."""
    with joined(seat) as (_, messages):
        return next(message for message in messages if kind in ("", message.kind))


def held(pid: int) -> int:
    """Return the memory that a process has touched, in bytes."""
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def runs(pid: int) -> bool:
    """Say whether a process runs or is ending; one that nobody has reaped yet does not."""
    with contextlib.suppress(OSError):
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text("utf-8")
    return False


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
    message = agent_wire.Parser().feed(said)[0]
    assert message.kind == "gone"
    assert not (box.farm / "run" / seat.seat).exists()


def test_the_halls_key_opens_no_other_door(box: bed.Box) -> None:
    """No file transfer, no terminal, no way on into the network, no environment of its choice."""
    seat = box.seat(["cat"])
    with ssh.transport(seat, seat.key, SECONDS) as transport:
        with pytest.raises(paramiko.ChannelException, match="prohibited"):
            transport.open_channel("direct-tcpip", (box.address, box.port), ("127.0.0.1", 1))
        with pytest.raises(paramiko.SSHException):
            transport.request_port_forward("", 0)
        session = transport.open_session(timeout=SECONDS)
        with pytest.raises(paramiko.SSHException):
            session.get_pty()
        session = transport.open_session(timeout=SECONDS)
        session.settimeout(SECONDS)
        session.set_environment_variable("PYTHONSTARTUP", "/tmp/x")
        session.invoke_subsystem("sftp")
        said = b""
        while chunk := session.recv(4096):
            said += chunk
    message = agent_wire.Parser().feed(said)[0]
    assert (message.kind, message.payload[:10]) == ("gone", b"not a seat")


@pytest.mark.parametrize("name", ["hall-1", "Hall_1", "hall-1.b", "H" * 120])
def test_a_seat_of_any_halls_attempt_is_one(name: str) -> None:
    """Halls and lanes may have capitals, dots and underscores in their names; no path is a seat."""
    assert contract.is_name(name)
    assert agent.SEAT.fullmatch(f"seat {name}-0123456789abcdef-white-eda72b")
    assert not agent.SEAT.fullmatch(f"seat ../{name}")
    assert not agent.SEAT.fullmatch(f"seat {name}/x")


def test_a_host_that_cannot_hold_a_seat_says_so_at_once(box: bed.Box) -> None:
    """A disk that takes nothing is told with its reason, and is the host's fault."""
    seat = box.seat(["cat"])
    place = box.farm / "run" / seat.seat
    place.parent.mkdir(exist_ok=True)
    place.write_text("no directory: nothing can be written")
    message = first_message(seat)
    assert (message.kind, message.number) == ("gone", agent.HOSTS_FAULT)
    assert b"File exists" in message.payload


def test_a_box_with_another_host_key_is_told_nothing(box: bed.Box) -> None:
    """The pinned key is the host's identity; another one is never a reason to try again."""
    other = (box.root / "play.pub").read_text().split()
    seat = box.seat(["cat"]).model_copy(update={"host_key": " ".join(other[:2])})
    with pytest.raises(ssh.RefusedHostError, match="not the pinned one"):
        ssh.Connection(seat, SECONDS)


def test_a_gpu_is_one_attempts_only(box: bed.Box) -> None:
    """Both seats of a game share a GPU; an agent of another attempt does not start on it."""
    ours = [box.seat(["cat"], ("GPU-1",), "a-1", grace_ms=120_000) for _ in range(2)]
    try:
        assert [first_message(seat).kind for seat in ours] == ["joined", "joined"]
        message = first_message(box.seat(["cat"], ("GPU-2", "GPU-1"), "a-2"))
    finally:
        for seat in ours:
            os.kill(box.identity(seat)["agent"], signal.SIGKILL)
    assert message.kind == "gone"
    assert b"GPU-1 is locked by a-1" in message.payload


def test_only_pinned_files_are_run(box: bed.Box, tmp_path: pathlib.Path) -> None:
    """An engine whose file was changed after it was prepared is not started."""
    program = tmp_path / "network"
    program.write_bytes(b"changed")
    seat = box.seat(["cat"], checksums={str(program): hashlib.sha256(b"pinned").hexdigest()})
    message = first_message(seat)
    assert (message.kind, message.number) == ("gone", agent.HOSTS_FAULT)
    assert b"is not the pinned file" in message.payload


def test_a_seat_is_used_once(box: bed.Box) -> None:
    """A seat whose engine has ended starts no other one; how it ended is told."""
    seat = box.seat(["true"])
    assert first_message(seat).kind == "joined"
    deadline = time.monotonic() + SECONDS
    while not (box.farm / "run" / seat.seat / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    message = first_message(seat)
    assert (message.kind, message.number) == ("gone", 0)
    assert b"exit 0" in message.payload


ANSWERER = """
import sys
for line in sys.stdin:
    if line.startswith("go"):
        print("last words", flush=True)
        sys.exit(7)
"""
GO = {"flag_ns": 10**12, "stop_ns": 10**12, "stall_ns": 10**12, "stop": "stop", "answers": []}


def test_an_agent_asks_for_its_permission_on_its_beat(box: bed.Box) -> None:
    """It asks again and again, each time by another number, and tells nothing else meanwhile."""
    seat = box.seat(["cat"], grace_ms=120_000, beat_ms=20)
    with joined(seat) as (connection, messages):
        assert next(messages).kind == "joined"
        try:
            for number in (1, 2, 3):
                message = next(messages)
                assert (message.kind, message.number) == ("ask", number)
                connection.send(agent_wire.Message("grant", 0, number).encode())
        finally:
            os.kill(box.identity(seat)["agent"], signal.SIGKILL)


def test_what_an_engine_said_last_is_kept_on_its_box(box: bed.Box) -> None:
    """An engine that ends in a search: the seat's log has its last line and how it ended."""
    seat = box.seat([sys.executable, "-I", "-S", "-c", ANSWERER], grace_ms=120_000)
    place = box.farm / "run" / seat.seat
    with joined(seat) as (connection, messages):
        go = json.dumps(GO).encode() + b"\ngo\n"
        connection.send(agent_wire.Message("go", 1, 0, go).encode())
        over = next(one for one in messages if one.kind == "over")
        connection.send(agent_wire.Message("grant", over.number, 0).encode())
        deadline = time.monotonic() + SECONDS
        while not (place / "ended").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    kept = agent_wire.Parser().feed((place / "log").read_bytes())
    assert b"last words" in b"".join(one.payload for one in kept if one.kind == "out")
    assert [json.loads(one.payload)["status"] for one in kept if one.kind == "over"] == ["exit 7"]


ENGINE = """
import json, os, resource
print(json.dumps({
    "environment": dict(os.environ), "cores": sorted(os.sched_getaffinity(0)),
    "policy": os.sched_getscheduler(0), "files": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
    "limits": [resource.getrlimit(one) for one in (resource.RLIMIT_CORE, resource.RLIMIT_RTPRIO)],
    "leads": os.getsid(0) == os.getpid(),
}), flush=True)
input()
"""


def test_an_engine_gets_what_its_seat_says_and_nothing_else(box: bed.Box) -> None:
    """Its GPUs by UUID, its cores, its limits: nothing of SSH's or the agent's comes with them."""
    core = max(os.sched_getaffinity(0))
    given = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "GPU-7,GPU-8"}
    seat = box.seat(
        [sys.executable, "-I", "-S", "-c", ENGINE],
        ("GPU-7", "GPU-8"),
        "a-7",
        env=given,
        cpus=[core],
        limits={"CORE": 0, "RTPRIO": 0},
    )
    told = json.loads(first_message(seat, "out").payload)
    environment = told.pop("environment")
    environment.pop("LC_CTYPE", None)  # Python's own, where there is no locale
    assert environment == given
    assert told == {
        "cores": [core],
        "policy": os.SCHED_OTHER,
        "files": [0, 1, 2],
        "limits": [[0, 0], [0, 0]],
        "leads": True,
    }


def test_what_outlives_a_killed_agent_is_ours_to_end(box: bed.Box) -> None:
    """The child of an engine that is a script is known for the box's own, and ended.

    It ends as slowly as an engine does that has a large hash, and is waited for.
    """
    child = f"{sys.executable} -c \"hash = b'1' * {HELD_BYTES}; __import__('time').sleep(600)\""
    seat = box.seat(["sh", "-c", f"{child}; true"], ("GPU-5",), "a-1", grace_ms=120_000)
    assert first_message(seat).kind == "joined"
    old = box.identity(seat)
    deadline = time.monotonic() + SECONDS
    while not (children := set(agent.members(old["engine"])) - {old["engine"]}):
        assert time.monotonic() < deadline
    while sum(map(held, children)) < HELD_BYTES:
        assert time.monotonic() < deadline
    os.kill(old["agent"], signal.SIGKILL)
    while runs(old["engine"]):
        assert time.monotonic() < deadline
    left = stale_agents.Runs(box.farm)
    assert children <= left.engines(), "no foreign process: it is in nobody's way"
    left.end_stale("hall", "a-2", frozenset({"GPU-5"}))
    assert not any(map(runs, children))


@pytest.mark.long
def test_a_frozen_agent_is_ended_before_its_gpu_is_given_on(box: bed.Box) -> None:
    """One that answers nobody is killed, its engine with it, and the next attempt begins."""
    seat = box.seat(["cat"], ("GPU-9",), "a-1", grace_ms=120_000)
    assert first_message(seat).kind == "joined"
    old = box.identity(seat)
    os.kill(old["agent"], signal.SIGSTOP)
    stale_agents.Runs(box.farm).end_stale("hall", "a-2", frozenset({"GPU-9"}))
    assert not any(runs(old[who]) for who in ("agent", "engine"))
    assert first_message(box.seat(["cat"], ("GPU-9",), "a-2")).kind == "joined"


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
    address = gpu_hosts.BoxAddress(
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
    gpu_seats.push("box-1", address, request, {digest: "net.pb"}, lambda: None)
    assert known.find(there).missing == {}
    assert (engines / "net.pb").read_bytes() == b"weights"
    elsewhere = spec.model_copy(update={"directory": str(tmp_path / "other")})
    with pytest.raises(errors.HostError, match="install it by hand"):
        known.find(elsewhere)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_agent_runs_under_old_pythons(tmp_path: pathlib.Path, version: str) -> None:
    """A box needs no newer Python than 3.9: a game is played by the oldest one that is here."""
    with bed.loopback(tmp_path, python=PYTHONS[version]) as old:
        played = remote_games.play(tmp_path, old, moves=3)
    assert played.game.outcome.ending is contract.Ending.MAX_MOVES
    assert len(played.own) == 3


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
    assert stream == b"".join(agent_wire.Message(*one).encode() for one in told)
    for size in (1, 7, 1 << 20):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        ours, theirs = agent_wire.Parser(), agent.Parser()
        assert [tuple(one) for piece in pieces for one in ours.feed(piece)] == told
        assert [one for piece in pieces for one in theirs.feed(piece)] == told


def test_agent_and_hall_count_alike() -> None:
    """What an agent tells of its host is what a hall would read there."""
    cores, own = sorted(os.sched_getaffinity(0)), os.getpid()
    host = pulse.Pulse(cores, prompt=False)
    before, used_ns = host.look(), stall.processor_ns([own])
    told = stall._sample(json.loads(json.dumps(agent.counters(cores, own))))
    after = host.look()
    for name in ("busy", "steal", "throttled"):
        first, mid, last = (getattr(one, name) for one in (before, told, after))
        assert all(first[core] <= mid[core] <= last[core] for core in cores)
    assert before.at_ns < told.at_ns < after.at_ns
    assert used_ns <= told.used[""] <= stall.processor_ns([own])


@pytest.mark.parametrize(
    ("protocol", "line", "answers"),
    [
        ("uci", b" bestmove e2e4 ponder e7e5\r", True),
        ("uci", b"bestmove", True),
        ("uci", b"bestmoves e2e4", False),
        ("uci", b"info string bestmove e2e4", False),
        ("uci", b"", False),
        ("xboard", b"move e2e4", True),
        ("xboard", b"1-0 {White mates}", True),
        ("xboard", b"resign", True),
        ("xboard", b"moves left: 12", False),
        ("xboard", b"tellics resign", False),
    ],
)
def test_the_agent_stops_its_clock_by_what_the_referee_takes_for_an_answer(
    protocol: contract.ProtocolName, line: bytes, answers: bool
) -> None:
    """A line that only one of them takes for an answer would leave the other's deadline alone."""
    told = {"stop_ns": 0, "stall_ns": 0, "stop": "", "answers": remote.ANSWERS[protocol]}
    assert agent.Search(0, told, {}).answered(line) is answers
    finder: base.Finder = uci.MoveFinder() if protocol == "uci" else xboard.AnswerFinder()
    assert (finder.feed(line + b"\n") is not None) is answers


def test_only_an_answers_stamp_ends_the_charge() -> None:
    """What an agent (of another version) takes for an answer, and the referee not, costs nobody."""
    far = contract.EngineSpec(id="far", name="Far", command=("far",), box="box")
    near = contract.EngineSpec(id="near", name="Near", command=("near",))
    place = gpu_hosts.BoxAddress(address="box", key="key", host_key="type key").seat("box", "a-1")
    seat = remote.RemoteSeat("white", place, hall.order(far, near))
    said = [("went", 1_000, b"1"), ("ans", 2_000, b"bestmoves: none yet\n")]
    said += [("out", 9_000, b"bestmove e2e4\n")]
    read, seat.stdin = os.pipe()
    seat.arm(10**9, b"stop\n")
    seat.write(b"go\n")
    for number, (kind, stamp, payload) in enumerate(said, start=1):
        seat._take(agent_wire.Message(kind, number, stamp, payload))
    assert seat.charged_ns(0, 20_000) == 8_000
    assert seat.network_ns == 12_000
    os.close(read)
    seat.close()


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
        gpu_hosts.load(path, 90.0)
