"""Which logical CPUs each concurrent game gets: disjoint sets, whole cores first.

A game takes as many cores as its engines have threads (only one side thinks at a time), and
as many for each of them where one ponders: then both think, and neither at the other's expense.
The referee of engines with one thread is on their core: waking it there takes 3 to 5 µs,
on a core that sleeps 30 µs and more (decision 021). With more threads it gets one more core
where the machine has it: output is then not read at the expense of a thread that thinks.
Second threads of a core are taken last. Where the machine is too small for disjoint sets
nobody is bound. Each CPU in use is locked for the whole machine, whoever's match it is: a
second match takes others. The kernel frees a lock when the match's process ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping, Sequence

from worker_cpu.engines import handles

TOPOLOGY = pathlib.Path("/sys/devices/system/cpu")
# The first that every user may write to: all users of a machine choose the same one.
LOCKS = (pathlib.Path("/run/lock"), pathlib.Path("/tmp"))  # noqa: S108 - shared on purpose


@dataclasses.dataclass(frozen=True)
class Share:
    """What a match has of the machine: the cores of each game, and who has the others."""

    lanes: Sequence[handles.Cores]
    cpus: Sequence[int]  # those it may use
    busy: Sequence[int] = ()  # of these, those that another match has

    @property
    def bound(self) -> bool:
        """Say whether each game is bound to cores of its own."""
        return any(lane.engines for lane in self.lanes)


@contextlib.contextmanager
def held(
    games: int, threads: int, wanted: frozenset[int], *, apart: bool = False
) -> Iterator[Share]:
    """Lock the cores of a match and keep this process off them, until the block is left.

    ``apart`` gives each engine of a game as many cores as it has threads.
    """
    before = os.sched_getaffinity(0)
    cpus = available(wanted)
    width = threads * (1 + apart)
    locks, busy = _locks(cpus, games * (width + (width > 1)))
    with contextlib.ExitStack() as stack:
        for lock in locks.values():
            stack.enter_context(lock)
        lanes = allot(games, width, list(locks))
        if apart:
            lanes = [_apart(lane) for lane in lanes]
        for cpu in left_over(lanes, list(locks)):
            locks[cpu].close()
        share = Share(lanes, cpus, busy)
        if share.bound:
            stack.callback(os.sched_setaffinity, 0, before)
            os.sched_setaffinity(0, left_over(lanes, cpus) - {*busy} or cpus)
        yield share


def allot(games: int, threads: int, cpus: Sequence[int]) -> list[handles.Cores]:
    """Return the cores of each game; ``ANYWHERE`` for all when they do not suffice.

    ``cpus`` are in the order in which they are taken (``whole_cores_first``).
    """
    if threads > 1 and games * (threads + 1) <= len(cpus):
        return [_separate(cpus[at : at + threads + 1]) for at in _starts(games, threads + 1)]
    if games * threads <= len(cpus):
        sets = [frozenset(cpus[at : at + threads]) for at in _starts(games, threads)]
        return [handles.Cores(own, own) for own in sets]
    return [handles.ANYWHERE] * games


def left_over(lanes: Sequence[handles.Cores], cpus: Sequence[int]) -> frozenset[int]:
    """Return the CPUs that no game is bound to, for everything else of the match."""
    return frozenset(cpus).difference(*(lane.referee | lane.engines for lane in lanes))


def _starts(games: int, width: int) -> range:
    return range(0, games * width, width)


def _separate(own: Sequence[int]) -> handles.Cores:
    return handles.Cores(frozenset(own[:1]), frozenset(own[1:]))


def _apart(lane: handles.Cores) -> handles.Cores:
    """Halve the engines' CPUs; what shares a core is one engine's where that can be."""
    cpus = sorted(lane.engines, key=lambda cpu: (min(_siblings(cpu)), cpu))
    return dataclasses.replace(lane, second=frozenset(cpus[len(cpus) // 2 :]))


def available(wanted: frozenset[int]) -> list[int]:
    """Return the CPUs a match may use, siblings last: those wanted, else all it has."""
    allowed = os.sched_getaffinity(0)
    cpus = wanted & allowed or allowed
    return whole_cores_first({cpu: _siblings(cpu) for cpu in cpus})


def whole_cores_first(siblings: Mapping[int, Sequence[int]]) -> list[int]:
    """Order CPUs, given those of the same core, second threads after every first one."""
    return sorted(siblings, key=lambda cpu: (sorted(siblings[cpu]).index(cpu), cpu))


def _siblings(cpu: int) -> list[int]:
    """Return the CPUs that share a core with this one, itself included."""
    with contextlib.suppress(OSError, ValueError):
        text = (TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text()
        siblings: list[int] = []
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            siblings += range(int(first), int(last or first) + 1)
        return siblings if cpu in siblings else [cpu]
    return [cpu]


# -- one lock a CPU ----------------------------------------------------------------------


def _locks(cpus: Sequence[int], count: int) -> tuple[dict[int, contextlib.ExitStack], list[int]]:
    """Lock up to so many CPUs; return the locks, and the CPUs met that another match has.

    Where there is no place for locks, CPUs count as free.
    """
    folder = next(filter(_is_shared, LOCKS), None)
    free: dict[int, contextlib.ExitStack] = {}
    busy: list[int] = []
    for cpu in cpus:
        if len(free) == count:
            break
        lock = contextlib.ExitStack()
        try:
            if folder is not None:
                lock.callback(os.close, _locked(folder / f"tournament-farm-cpu-{cpu}.lock"))
        except (BlockingIOError, PermissionError):
            busy.append(cpu)
            continue
        except OSError:
            pass  # something else stands in the lock's place, or the disk is full
        free[cpu] = lock
    return free, busy


def _is_shared(folder: pathlib.Path) -> bool:
    """Say whether every user may make files in a folder, and nobody may remove another's."""
    with contextlib.suppress(OSError):
        mode = folder.stat().st_mode
        shared = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH
        return bool(shared) and os.access(folder, os.W_OK)  # its file system may be read-only
    return False


def _locked(path: pathlib.Path) -> int:
    """Lock a file, which may be another user's; raise ``BlockingIOError`` when somebody has it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        # never O_CREAT on a file that is there: the kernel refuses that for another user's
        created = os.open(path, flags | os.O_CREAT | os.O_EXCL)
        os.fchmod(created, 0o644)
        os.close(created)
    descriptor = os.open(path, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
