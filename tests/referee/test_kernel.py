"""What an engine can do with the kernel: system calls, keys, devices, terminals, memory.

Namespaces do not hold these. In a bubblewrap a hostile engine tries each for real; the filter's
program is also run by hand, for machines that this one is not.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import pathlib
import struct
from collections.abc import Callable, Iterator

import groups
import hall
import hostile_hall as hostile
import pytest

from orchestrator import contract
from worker_cpu.engines import sandbox, syscalls
from worker_gpu import seats

HARMLESS = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "ptmx")}
IPC_CREAT, IPC_RMID, OPEN_TO_ALL = 0o1000, 0, 0o666  # linux/ipc.h
KEYCTL = {"x86_64": (250, 248), "aarch64": (219, 217)}  # keyctl, add_key
KEYCTL_UNLINK, KEY_SESSION = 9, -3  # linux/keyctl.h

Boxed = Callable[..., hall.Played]


@pytest.fixture
def filtered(boxed: Boxed) -> Boxed:
    """Play a deed under the filter; skip where the kernel or the machine has none."""
    if not syscalls.program(os.uname().machine):
        pytest.skip("hardware: no filter of system calls for this machine or its old kernel")
    assert sandbox.describe().filtered, "a filter is made, and does not work"
    return boxed


def test_no_deep_call_is_done(filtered: Boxed) -> None:
    """Rings, programs for the kernel, namespaces, tracing: each is refused or said not to exist."""
    played = filtered("calls")
    assert set(hostile.engine_output(played).values()) == {"EPERM", "ENOSYS"}
    assert played.outcome.ending == hostile.MATED


def test_twins_cannot_speak_through_a_file(filtered: Boxed) -> None:
    """No lock is felt by another descriptor, and nobody can be watched opening a file."""
    seen = hostile.engine_output(filtered("twins", "/usr/bin/env"))
    assert seen == dict.fromkeys(("flock", "lease", "dnotify", "inotify", "fanotify"), False)


def test_the_opponents_work_is_not_to_be_read(boxed: Boxed) -> None:
    """What the kernel counts for the whole machine is covered."""
    assert hostile.engine_output(boxed("busy")) == {"read": []}


def test_no_socket_leaves_the_namespace(filtered: Boxed) -> None:
    """``AF_VSOCK`` is no network namespace's: it would reach a hypervisor. None of them opens."""
    assert not any(hostile.engine_output(filtered("families")).values())


def test_no_terminal_and_no_device_is_in_reach(boxed: Boxed) -> None:
    """No terminal takes words from it, and the devices it opens are nobody's."""
    assert hostile.engine_output(boxed("terminal")) == {"reached": []}


def test_no_device_can_be_made(boxed: Boxed) -> None:
    """Of the machine's devices only those that hold nothing can be opened."""
    disk = os.makedev(8, 0)
    assert set(hostile.engine_output(boxed("devices", str(disk)))["reached"]) <= HARMLESS


def test_rights_and_limits_only_go_down(boxed: Boxed) -> None:
    """It becomes nobody else, preempts nobody, lifts no limit, and is the first to be killed."""
    seen = hostile.engine_output(boxed("elevate"))
    assert (seen["done"], seen["suid"]) == ([], [])
    assert seen["scores"] == [1000, 1000], "it is the first that the kernel ends"


@pytest.fixture
def shared() -> Iterator[list[str]]:
    """Share memory, a queue and semaphores with all of this machine; return their names."""
    libc = ctypes.CDLL(None, use_errno=True)
    key, name = os.getpid(), f"farm-test-{os.getpid()}"
    memory = libc.shmget(key, 4096, IPC_CREAT | OPEN_TO_ALL)
    queue = libc.msgget(key, IPC_CREAT | OPEN_TO_ALL)
    semaphores = libc.semget(key, 1, IPC_CREAT | OPEN_TO_ALL)
    assert min(memory, queue, semaphores) >= 0, os.strerror(ctypes.get_errno())
    file = pathlib.Path("/dev/shm", name)
    file.write_text("an opponent's hash")
    file.chmod(0o666)
    yield [str(memory), str(key), name]
    file.unlink()
    libc.shmctl(memory, IPC_RMID, None)
    libc.msgctl(queue, IPC_RMID, None)
    libc.semctl(semaphores, 0, IPC_RMID)


def test_what_others_share_is_out_of_reach(boxed: Boxed, shared: list[str]) -> None:
    """Shared memory, queues and semaphores of this machine are another namespace's."""
    assert not any(hostile.engine_output(boxed("share", *shared)).values())


@pytest.fixture
def secret() -> Iterator[str]:
    """Put a secret into this session's keyring, as a service's credentials lie there."""
    numbers = KEYCTL.get(os.uname().machine)
    if numbers is None:
        pytest.skip("hardware: the number of keyctl is not known for this machine")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    name = f"farm-test-{os.getpid()}"
    key = libc.syscall(numbers[1], b"user", name.encode(), b"password", 8, KEY_SESSION)
    if key < 0:
        pytest.skip(f"hardware: this kernel keeps no keys: {os.strerror(ctypes.get_errno())}")
    yield name
    libc.syscall(numbers[0], KEYCTL_UNLINK, key, KEY_SESSION)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("kind", ["bubblewrap", "plain"])
def test_keys_of_the_hall_are_out_of_reach(
    place: hostile.Place, secret: str, kind: sandbox.Kind
) -> None:
    """Keyrings are no namespace's: an engine has a session keyring of its own, or none."""
    found = hostile.engine_output(place.play(kind, "keyring", secret))
    assert not found["found"]
    assert not found["asked for"]
    assert not found["added"] or kind == "plain"


@pytest.mark.usefixtures("bubblewrap")
def test_memory_that_no_limit_counts_kills_its_engine_first(place: hostile.Place) -> None:
    """Shared memory fills the hall's group: the kernel ends the engine, no part of the farm.

    It is an interruption with its cause, and nobody's loss.
    """
    with (
        groups.room() as room,
        hall.opened(place.hall, confinement=place.confinement("bubblewrap")) as opened,
    ):
        group = seats.memory_group(room, "hall", 300)
        for process in (opened.dead_man, opened.referee):
            groups.enter(group, process.pid)
        order = place.order("hoard", time_control=contract.TimeControl(base_ms=20_000))
        played = opened.play(order)
    assert played.finished is None
    assert played.interrupted is not None
    assert "out of memory" in json.dumps(played.interrupted)
    assert hall.survivors(order.game) == []


# -- the filter, by hand -----------------------------------------------------------------

LOAD, JUMP, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
KINDS = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7}
COLUMNS = list(KINDS)


def verdict(program: bytes, kind: str, number: int, *arguments: int) -> int:
    """Return the error that a filter gives, 0 where it gives none."""
    found = action(program, kind, number, *arguments)
    return found & 0xFFFF if found >> 16 == 0x0005 else 0


def action(program: bytes, kind: str, number: int, *arguments: int) -> int:
    """Run a filter as the kernel does; return what it decides (SECCOMP_RET_...)."""
    data = struct.pack("=IIQ6Q", number, KINDS[kind], 0, *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("=HBBI", program))
    at, value = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code == LOAD:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == JUMP:
            at += operand
        elif code == RETURN:
            return operand
        else:
            holds = {EQUAL: value == operand, AT_LEAST: value >= operand}
            holds[ANY_BIT] = bool(value & operand)
            at += yes if holds[code] else no


@pytest.fixture(params=["x86_64", "i386", "aarch64"])
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind of program."""
    name: str = request.param
    return name


def made(kind: str, tmp_path: pathlib.Path) -> bytes:
    """Return the filter of the machine that runs a kind of program."""
    machine = "x86_64" if kind == "i386" else kind
    return syscalls.program(machine, tmp_path / "none")


@pytest.mark.parametrize(
    ("table", "error"),
    [(syscalls.REFUSED, errno.EPERM), (syscalls.MISSING, errno.ENOSYS)],
)
def test_each_call_of_the_tables_is_refused(
    tmp_path: pathlib.Path, kind: str, table: dict[str, tuple[int | None, ...]], error: int
) -> None:
    """For every kind of program, by its own numbers; the neighbours' numbers stay their own."""
    program, column = made(kind, tmp_path), COLUMNS.index(kind)
    refused = [numbers[column] for numbers in table.values() if numbers[column] is not None]
    assert len(refused) == len(set(refused))
    for number in refused:
        assert verdict(program, kind, number) == error
    everything = sum(verdict(program, kind, number) != 0 for number in range(500))
    tables = (*syscalls.REFUSED.values(), *syscalls.MISSING.values())
    known = sum(numbers[column] is not None for numbers in tables)
    assert everything - known == {"x86_64": 1, "i386": 2, "aarch64": 1}[kind]  # socket(AF_UNSPEC)


def test_locks_are_said_to_be_done_and_are_not(tmp_path: pathlib.Path, kind: str) -> None:
    """A lock's call returns 0 without the kernel: SECCOMP_RET_ERRNO with no error."""
    program = made(kind, tmp_path)
    flock, fcntl = {"x86_64": (73, 72), "i386": (143, 55), "aarch64": (32, 25)}[kind]
    pretended, done = 0x00050000, 0x7FFF0000
    assert action(program, kind, flock) == pretended
    for command in syscalls.LOCKS:
        assert action(program, kind, fcntl, 0, command) == pretended
    for command in syscalls.WATCHES:
        assert verdict(program, kind, fcntl, 0, command) == errno.EPERM
    for command in (1, 2, 3, 4, 5, 1030, 1033):  # descriptors' flags, F_GETLK, F_DUPFD_CLOEXEC ...
        assert action(program, kind, fcntl, 0, command) == done


def test_arguments_decide_where_a_call_is_needed(tmp_path: pathlib.Path, kind: str) -> None:
    """Threads, ordinary sockets and terminals' sizes are allowed; the rest of each call is not."""
    program = made(kind, tmp_path)
    clone, ioctl, socket = {
        "x86_64": (56, 16, 41),
        "i386": (120, 54, 359),
        "aarch64": (220, 29, 198),
    }[kind]
    threads, users = 0x3D0F00, 0x10000000
    assert verdict(program, kind, clone, threads) == 0
    assert verdict(program, kind, clone, threads | users) == errno.EPERM
    assert verdict(program, kind, ioctl, 0, 0x5413) == 0  # TIOCGWINSZ
    for request in syscalls.TERMINAL:
        assert verdict(program, kind, ioctl, 0, request) == errno.EPERM
    allowed = [family for family in range(64) if not verdict(program, kind, socket, family)]
    assert allowed == [1, 2, 10, 16]


def test_no_other_kind_of_program_slips_through(tmp_path: pathlib.Path) -> None:
    """x32's numbers, and programs of a machine that is not known, get no call at all."""
    program = made("x86_64", tmp_path)
    assert verdict(program, "x86_64", 0x40000000 | 1) == errno.ENOSYS
    assert verdict(program, "aarch64", 64) == errno.ENOSYS


def test_no_filter_where_it_would_cost_strength(tmp_path: pathlib.Path) -> None:
    """An older kernel slows filtered programs; an unknown machine has no table."""
    told = tmp_path / "spec_store_bypass"
    told.write_text("Mitigation: Speculative Store Bypass disabled via prctl and seccomp\n")
    assert syscalls.program("x86_64", told) == b""
    told.write_text("Mitigation: Speculative Store Bypass disabled via prctl\n")
    assert syscalls.program("x86_64", told) != b""
    assert syscalls.program("riscv64", tmp_path / "none") == b""
