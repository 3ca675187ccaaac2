"""The system calls an engine does not get: a seccomp filter for its sandbox.

Namespaces hide files, processes and the network; the kernel itself is still there. No
engine needs what is refused here: tracing, keyrings, namespaces and mounts of its own, rings
of kernel work, sockets that no namespace holds (``AF_VSOCK`` speaks to a hypervisor), locks and
watches on files that the opponent sees too.
Bubblewrap hands the program to the kernel. Invariants:

* what is refused is an error number, never a kill: a library that only asks plays on;
* ``clone3``, whose flags no filter can read, is said not to exist: libraries then use ``clone``;
* everything that every engine does is allowed without a look at arguments, so that the kernel
  decides it by a table: the clock does not suffer.
"""

from __future__ import annotations

import errno
import pathlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

# seccomp_data of linux/seccomp.h: the number at 0, the architecture at 4, arguments from 16
_NUMBER, _ARCHITECTURE = 0, 4
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _JUMP, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # numbers from here on are x32's: a third way into the same calls

# CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET
NAMESPACES: Final = 0x7E020000
TERMINAL: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: put words into a terminal's mouth
FAMILIES: Final = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: namespaces hold them


class Machine(NamedTuple):
    """How the kernel calls a kind of program, and its column in the tables below."""

    audit: int
    column: int


_X86_64, _I386 = Machine(0xC000003E, 0), Machine(0x40000003, 1)
_AARCH64 = Machine(0xC00000B7, 2)
MACHINES: Final[Mapping[str, tuple[Machine, ...]]] = {
    "x86_64": (_X86_64, _I386),
    "aarch64": (_AARCH64,),
}

# Numbers on x86_64, i386 and aarch64 (None: there is no such call).
_Numbers = tuple[int | None, int | None, int | None]
REFUSED: Final[Mapping[str, _Numbers]] = {
    # other processes
    "ptrace": (101, 26, 117),
    "process_vm_readv": (310, 347, 270),
    "process_vm_writev": (311, 348, 271),
    "kcmp": (312, 349, 272),
    "pidfd_getfd": (438, 438, 438),
    # keyrings are no namespace's
    "keyctl": (250, 288, 219),
    "add_key": (248, 286, 217),
    "request_key": (249, 287, 218),
    # a view of the system of its own
    "unshare": (272, 310, 97),
    "setns": (308, 346, 268),
    "mount": (165, 21, 40),
    "umount2": (166, 52, 39),
    "umount": (None, 22, None),
    "pivot_root": (155, 217, 41),
    "chroot": (161, 61, 51),
    "open_by_handle_at": (304, 342, 265),
    # the kernel's inside
    "bpf": (321, 357, 280),
    "perf_event_open": (298, 336, 241),
    "userfaultfd": (323, 374, 282),
    "syslog": (103, 103, 116),
    "kexec_load": (246, 283, 104),
    "kexec_file_load": (320, None, 294),
    "init_module": (175, 128, 105),
    "finit_module": (313, 350, 273),
    "delete_module": (176, 129, 106),
    "swapon": (167, 87, 224),
    "swapoff": (168, 115, 225),
    "reboot": (169, 88, 142),
    "quotactl": (179, 131, 60),
    "acct": (163, 51, 89),
}
MISSING: Final[Mapping[str, _Numbers]] = {
    "clone3": (435, 435, 435),
    "io_uring_setup": (425, 425, 425),
    "io_uring_enter": (426, 426, 426),
    "io_uring_register": (427, 427, 427),
    "open_tree": (428, 428, 428),
    "move_mount": (429, 429, 429),
    "fsopen": (430, 430, 430),
    "fsconfig": (431, 431, 431),
    "fsmount": (432, 432, 432),
    "fspick": (433, 433, 433),
    "mount_setattr": (442, 442, 442),
    # who opens a library or reads a table is the opponent, seen through a file that both see
    "inotify_init": (253, 291, None),
    "inotify_init1": (294, 332, 26),
    "fanotify_init": (300, 338, 262),
}
# Said to be done, and not done: a lock on a file that two engines see carries words from one
# to the other, and an engine that is alone with its own files needs none.
PRETENDED: Final[Mapping[str, _Numbers]] = {"flock": (73, 143, 32)}
LOCKS: Final = (6, 7, 13, 14, 37, 38)  # fcntl: F_SETLK, _SETLKW, the 64-bit and OFD ones
WATCHES: Final = (1024, 1026)  # fcntl: F_SETLEASE, F_NOTIFY
_CLONE: Final[_Numbers] = (56, 120, 220)
_FCNTL: Final[tuple[_Numbers, ...]] = ((72, 55, 25), (None, 221, None))
_IOCTL: Final[_Numbers] = (16, 54, 29)
_SOCKET: Final[_Numbers] = (41, 359, 198)
_SOCKETCALL = 102  # i386 only: all of the above in one call, whose arguments cannot be seen

# Where an older kernel says so here, it slows every filtered process (its Speculative Store
# Bypass is off): strength that no engine should lose to its sandbox.
SPECULATION = pathlib.Path("/sys/devices/system/cpu/vulnerabilities/spec_store_bypass")


def program(machine: str, speculation: pathlib.Path = SPECULATION) -> bytes:
    """Return the filter for a kind of machine (``os.uname().machine``).

    ``b""`` where none is made: an unknown machine, or a kernel that makes filtered programs
    slower.
    """
    kinds = MACHINES.get(machine, ())
    if not kinds or _slows(speculation):
        return b""
    return b"".join(_instructions(kinds))


def _slows(speculation: pathlib.Path) -> bool:
    try:
        return "seccomp" in speculation.read_text(encoding="ascii")
    except OSError:
        return False


def _instructions(kinds: tuple[Machine, ...]) -> Iterator[bytes]:
    """Yield the program: a section for each kind of program that this machine runs."""
    for kind in kinds:
        section = list(_section(kind))
        yield _instruction(_LOAD, _ARCHITECTURE)
        yield _instruction(_EQUAL, kind.audit, 1, 0)
        yield _instruction(_JUMP, len(section))  # 32 bits wide; a condition's jumps have 8
        yield from section
    yield _refuse(errno.ENOSYS)  # programs of a kind that is not known


def _section(kind: Machine) -> Iterator[bytes]:
    yield _instruction(_LOAD, _NUMBER)
    if kind is _X86_64:
        yield _instruction(_AT_LEAST, _X32, 0, 1)
        yield _refuse(errno.ENOSYS)
    for table, error in ((REFUSED, errno.EPERM), (MISSING, errno.ENOSYS), (PRETENDED, 0)):
        for numbers in table.values():
            number = numbers[kind.column]
            if number is not None:
                yield _instruction(_EQUAL, number, 0, 1)
                yield _refuse(error)
    yield from _by_arguments(kind)
    yield _instruction(_RETURN, _ALLOW)


def _by_arguments(kind: Machine) -> Iterator[bytes]:
    """Yield what is decided by an argument: flags of clone, requests of ioctl, families."""
    column = kind.column
    yield from _when(
        _CLONE[column], [_argument(0), _instruction(_ANY_BIT, NAMESPACES, 0, 1)], errno.EPERM
    )
    yield from _when(_IOCTL[column], _one_of(TERMINAL), errno.EPERM)
    for numbers in _FCNTL:
        if numbers[column] is not None:
            yield from _when(numbers[column], _one_of(LOCKS), 0)
            yield from _when(numbers[column], _one_of(WATCHES), errno.EPERM)
    families = [
        _instruction(_EQUAL, family, len(FAMILIES) - at, 0) for at, family in enumerate(FAMILIES)
    ]
    yield from _when(_SOCKET[column], [_argument(0), *families], errno.EAFNOSUPPORT)
    if kind is _I386:
        yield _instruction(_EQUAL, _SOCKETCALL, 0, 1)
        yield _refuse(errno.EAFNOSUPPORT)


def _one_of(values: Sequence[int]) -> list[bytes]:
    """Return a look whether the second argument is one of these."""
    last = len(values) - 1
    instructions = [_argument(1)]
    for at, value in enumerate(values):
        instructions.append(_instruction(_EQUAL, value, last - at, int(at == last)))
    return instructions


def _when(number: int | None, look: list[bytes], error: int) -> Iterator[bytes]:
    """Yield a refusal of one call by what ``look`` finds; its last jumps pass the refusal by."""
    assert number is not None
    yield _instruction(_EQUAL, number, 0, len(look) + 2)
    yield from look
    yield _refuse(error)
    yield _instruction(_LOAD, _NUMBER)  # for the next comparison


def _argument(index: int) -> bytes:
    """Load the lower half of an argument: all that the kernel reads of these."""
    return _instruction(_LOAD, 16 + 8 * index)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Write one instruction (``struct sock_filter``)."""
    return struct.pack("=HBBI", code, yes, no, value)
