"""The agent beside a GPU engine: it owns the process, the clock's stamps and the deadline.

One standard-library file (Python 3.9 or later), the forced command of the hall's SSH key:
``agent.py --serve --root DIRECTORY``. That key can start or rejoin the agent of a seat the
GPU worker has prepared (``SSH_ORIGINAL_COMMAND`` is ``seat <id>``), and nothing else.
Invariants:

* the agent is detached from SSH: it survives its channel, and a new channel goes on where
  the last one broke; no record is lost and no command is carried out twice;
* the stamp of ``go`` is taken immediately before the write, that of output right after the
  read; while a clock runs nothing is written to a disk;
* it asks for each extension of its permission and counts it from the moment of asking
  (CLOCK_BOOTTIME); without one it writes down why, then kills the engine and all its own;
* only the hall is heard: a channel says the seat's secret first, of which the box holds the
  hash alone, and no process that the engine has started is listened to, whatever it says;
* it runs nothing whose files are not the pinned ones, and nothing without the lock of each
  of its GPUs, which only agents of the same attempt share;
* the engine dies with it (PDEATHSIG), and it leaves no process behind.

Messages go both ways as ``KIND NUMBER STAMP LENGTH`` in a line, then the payload.
To the agent: ``join`` (NUMBER: the last record that arrived; payload: the secret), ``in``, ``go``,
``end`` (NUMBER counts commands), ``grant`` (NUMBER as in ``join``, STAMP: the ask it answers),
``echo``, and from the box's own worker ``stop``. From the agent: ``joined`` (NUMBER: the last
command done), ``ask``, ``echo``, ``gone`` (there is no agent, and why; NUMBER 1: this host
cannot give one), and records, NUMBER counting and STAMP in monotonic ns: ``went`` (the search
begins; payload: its command's number), ``out``, ``ans`` (the line that answers), ``err``,
``late`` (no answer until the stall), ``host`` (before an answer beyond the flag, or ``late``:
what this host took from the engine meanwhile), ``cut`` (records were dropped) and ``over`` (how
the engine ended).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import fcntl
import gc
import hashlib
import hmac
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, NoReturn

VERSION = 2  # of the messages
HOSTS_FAULT = 1  # the number of a ``gone`` that says: this host cannot give the seat
# A file's name that begins with an attempt's, and so with any hall's or lane's.
SEAT = re.compile(r"seat ([A-Za-z0-9_][A-Za-z0-9_.-]{0,199})")
READ_BYTES = 1 << 16  # bytes: one read
LINE_BYTES = 1 << 16  # bytes: a longer line goes out in pieces
KEPT_BYTES = 8 << 20  # bytes of records kept for a channel that comes back
LOG_BYTES = 32 << 20  # bytes of the log's newer half; the older one is as large at most
UNSAVED_BYTES = 1 << 20  # bytes of records that wait for the disk while a clock runs
HEAD_BYTES = 1 << 10  # bytes: no head of a message is longer
PAYLOAD_BYTES = 16 << 20  # bytes: a longer message is a broken stream
CALLERS = 4  # channels at once that have not said the secret yet
CLIENT_BYTES = 16 << 20  # bytes a channel may be behind before it is cut off
SETTLE_NS = 250_000_000  # ns: a shutdown reaches engines first; wait for its other signs
MUTE_NS = 1_000_000_000  # ns: from the end of an engine's output to the end of its process
START_SECONDS = 20.0  # s: until a new agent listens
JOIN_SECONDS = 5.0  # s: a living agent answers a connection within milliseconds
REAP_SECONDS = 0.005  # s: pause between two looks at processes that are being killed
LOOK_NS = 1_000_000_000  # ns: poll stands still while the host sleeps, CLOCK_BOOTTIME does not
WATCH_NS = 100_000_000  # ns: the same while an engine thinks, to see when this host stood still
LATE_NS = 200_000_000  # ns: a process that is woken later than that was frozen with its host
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
KERNEL_LEVELS = 8  # a record of /dev/kmsg with a lower number is the kernel's own
NEVER_NS = 1 << 62  # ns: a deadline that is none
MAX_FD = 1 << 16  # descriptors are closed up to here
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_DUMPABLE = 4  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4  # linux/prctl.h


class AgentError(Exception):
    """Why there is no engine, for the record of the interrupted game."""


class EndedError(AgentError):
    """The seat was used up: its agent has ended."""


def encode(kind: str, number: int, stamp: int, payload: bytes = b"") -> bytes:
    """Write a message."""
    return b"%s %d %d %d\n%s" % (kind.encode(), number, stamp, len(payload), payload)


class Parser:
    """Cuts a byte stream into messages, however it was split on its way."""

    def __init__(self) -> None:
        self._bytes = b""

    @property
    def begun(self) -> bool:
        """Say whether a part of a message is here."""
        return bool(self._bytes)

    def feed(self, data: bytes) -> list[tuple[str, int, int, bytes]]:
        """Take bytes; return kind, number, stamp and payload of what is complete now."""
        self._bytes += data
        complete: list[tuple[str, int, int, bytes]] = []
        while True:
            head, newline, rest = self._bytes.partition(b"\n")
            if not newline:
                if len(head) > HEAD_BYTES:
                    raise ValueError("a message without a head")
                return complete
            kind, number, stamp, length = head.decode("ascii").split(" ")
            if not 0 <= int(length) <= PAYLOAD_BYTES:
                raise ValueError(f"a message of {length} bytes")
            if len(rest) < int(length):
                return complete
            complete.append((kind, int(number), int(stamp), rest[: int(length)]))
            self._bytes = rest[int(length) :]


# -- what a channel does -------------------------------------------------------------------


def serve(root: str, command: str) -> int:
    """Start or rejoin the agent of a seat, and carry bytes between it and the channel."""
    wanted = SEAT.fullmatch(command)
    if wanted is None:
        return refuse("not a seat: this key starts or rejoins a prepared seat, nothing else")
    seat = wanted.group(1)
    run_folder = os.path.join(root, "run", seat)  # noqa: PTH118 - pathlib doubles the start-up time
    order = os.path.join(root, "seats", seat + ".json")  # noqa: PTH118 - likewise
    if not os.path.exists(order) and not os.path.exists(run_folder):  # noqa: PTH110 - likewise
        return refuse("no such seat is prepared on this host")
    try:
        os.makedirs(run_folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - likewise
        os.chdir(run_folder)  # a socket's path must be short
        with locked("start"):
            channel = connect() or begin(root, order)
    except EndedError as error:
        return refuse(str(error))
    except (AgentError, OSError) as error:  # such as a full disk
        return refuse(str(error), HOSTS_FAULT)
    carry(channel)
    return 0


def refuse(why: str, fault: int = 0) -> int:
    """Say on the channel why there is no agent, and whether it is this host's fault."""
    os.write(1, encode("gone", fault, 0, why.encode()))
    return 1


@contextlib.contextmanager
def locked(name: str) -> Any:
    """Hold a lock file of the working directory: one channel at a time looks for the agent."""
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def connect() -> socket.socket | None:
    """Return a connection to the living agent of the working directory, None without one."""
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(JOIN_SECONDS)
    try:
        channel.connect("socket")
    except OSError:
        channel.close()
        return None
    return channel


def begin(root: str, order: str) -> socket.socket:
    """Detach a new agent, connect to it; raise ``EndedError`` if it ended, else ``AgentError``."""
    if os.path.exists("begun"):  # noqa: PTH110 - as in serve
        raise EndedError("the agent of this seat has ended: " + last_words())
    write_file("begun", b"")
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                os.close(read)
                be_agent(root, order, write)
        finally:
            os._exit(0)
    os.close(write)
    os.wait()
    if not select.select([read], [], [], START_SECONDS)[0]:
        raise AgentError(f"the agent did not come up within {START_SECONDS:g} s")
    problem = os.read(read, READ_BYTES).decode(errors="replace")
    if problem:
        raise AgentError(problem)
    channel = connect()
    if channel is None:  # it came up and died at once: a death like any later one
        raise EndedError("the agent of this seat has ended: " + last_words())
    return channel


def last_words() -> str:
    """Return how the last agent of the working directory ended."""
    try:
        return str(json.loads(read("ended"))["reason"])
    except (OSError, ValueError, KeyError):
        return "it was killed, and its engine with it"


def carry(channel: socket.socket) -> None:
    """Copy bytes both ways until one side is closed."""
    channel.settimeout(None)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(channel, select.POLLIN)
    with contextlib.suppress(OSError):
        while True:
            for fd, _ in poll.poll():
                data = os.read(fd, READ_BYTES)
                if not data:
                    return
                if fd == 0:
                    channel.sendall(data)
                else:
                    write_all(1, data)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes to a descriptor that may block."""
    while data:
        data = data[os.write(fd, data) :]


# -- the agent -----------------------------------------------------------------------------


def be_agent(root: str, order: str, report: int) -> NoReturn:
    """Be the agent: listen, start the engine, serve until both are done."""
    status = 1
    try:
        let_go_of_ssh(report)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_DUMPABLE, 0)  # its memory and descriptors are nobody's, the engine's neither
        run_at_once()
        with open(order, "rb") as file:  # noqa: PTH123 - as in serve
            seat = json.load(file)
        agent = Agent(seat, root)
        os.close(report)  # whoever waits may connect now
        report = -1
        agent.run()
        status = 0
    except BaseException as error:  # the top of a process that has nobody to tell but its channel
        why = str(error) if isinstance(error, AgentError) else repr(error)
        with contextlib.suppress(OSError):
            if report >= 0:
                os.write(report, why.encode()[:4096])
        with contextlib.suppress(OSError):  # the disk may be what is full
            write_file("ended", json.dumps({"reason": why}).encode())
    finally:
        with contextlib.suppress(OSError):
            os.unlink("socket")  # noqa: PTH108 - as in serve
        os._exit(status)


def let_go_of_ssh(report: int) -> None:
    """Close all that SSH has given, so that its channel can end; ``report`` is kept."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in range(3, 64):
        if fd != report:
            with contextlib.suppress(OSError):
                os.close(fd)


class Log:
    """The bounded log of a seat: two halves, the older one is dropped as a whole."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        self._unsaved: list[bytes] = []
        self.unsaved = 0

    def add(self, record: bytes) -> None:
        """Keep a record until ``save``."""
        self._unsaved.append(record)
        self.unsaved += len(record)

    def save(self) -> None:
        """Write what was kept; a full disk costs the log, never the game."""
        data, self._unsaved, self.unsaved = b"".join(self._unsaved), [], 0
        with contextlib.suppress(OSError):
            if self._size + len(data) > LOG_BYTES:
                os.close(self._fd)
                os.replace(self._name, self._name + ".1")  # noqa: PTH105 - as in serve
                self._fd = os.open(
                    self._name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
                )
                self._size = 0
            write_all(self._fd, data)
            self._size += len(data)


class Search:
    """A search: its deadlines in monotonic ns, and what this host has taken from it."""

    def __init__(self, started_ns: int, terms: dict[str, Any], before: dict[str, Any]) -> None:
        self.before = before  # the host's counters
        self.frozen_ns = 0
        self.flag_ns = started_ns + int(terms.get("flag_ns", terms["stop_ns"]))
        self.stop_ns = started_ns + int(terms["stop_ns"])
        self.stall_ns = started_ns + int(terms["stall_ns"])
        self.stop = str(terms["stop"]).encode()
        self.answers = [[str(word).encode()] for word in terms["answers"]]

    @property
    def due_ns(self) -> int:
        """Return when something must be done."""
        return min(self.stop_ns, self.stall_ns)

    def answered(self, line: bytes) -> bool:
        """Say whether a line answers the search: its first word does, whole."""
        return line.split(None, 1)[:1] in self.answers

    def woken(self, late_ns: int) -> None:
        """Note how much later than it wished the agent was woken."""
        if late_ns > LATE_NS:
            self.frozen_ns += late_ns


class Agent:
    """A poll loop over the engine, its channel and three deadlines."""

    def __init__(self, seat: dict[str, Any], root: str) -> None:
        self.seat = seat
        self.grace_ns = int(seat["grace_ms"]) * 1_000_000
        self.beat_ns = int(seat["beat_ms"]) * 1_000_000
        self.log = Log("log")
        self.records: collections.deque[tuple[int, bytes]] = collections.deque()
        self.kept = 0
        self.number = 0  # of the last record
        self.dropped = 0  # records dropped since the last ``cut`` was sent
        self.done = 0  # the last command carried out
        self.search: Search | None = None
        self.started = False  # a search, in this turn of the loop
        self.line = b""
        self.unsent = b""  # what the engine has not taken yet
        self.secret_sha256 = str(seat["secret_sha256"])
        self.callers: dict[int, tuple[socket.socket, Parser]] = {}
        self.client: socket.socket | None = None
        self.behind = bytearray()
        self.parser = Parser()
        self.joined = False
        self.asked: dict[int, int] = {}
        self.asks = 0
        self.next_ask_ns = 0
        self.allowed_ns = boottime_ns() + self.grace_ns
        self.quit_ns = NEVER_NS
        self.killed_for = ""
        self.closed_ns = 0  # the engine writes no more
        self.ended_ns = 0
        self.status = ""
        self.over = 0  # the number of the record that tells the end
        self.group = str(seat.get("cgroup") or "")
        self.oom_before = oom_kills(self.group)
        self.kernel_log = open_kernel_log()
        self.cores = seat.get("cpus") or sorted(os.sched_getaffinity(0))
        self.poll = select.poll()
        self._hear_signals()
        self._open_door()
        self.locks = [lock_gpu(root, uuid, str(seat["attempt"])) for uuid in seat["gpus"]]
        check_files(seat["checksums"])
        self._start_engine()

    def _hear_signals(self) -> None:
        self.wake, wake_write = os.pipe()
        for fd in (self.wake, wake_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._terminate)
        self.poll.register(self.wake, select.POLLIN)

    def _open_door(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            os.unlink("socket")  # noqa: PTH108 - as in serve
        self.listener.bind("socket")
        self.listener.listen(4)
        self.listener.settimeout(0)
        self.poll.register(self.listener, select.POLLIN)

    def _start_engine(self) -> None:
        self.pid, (self.stdin, self.stdout, self.stderr) = start_engine(self.seat)
        self.pidfd = os.pidfd_open(self.pid)
        identity = {"agent": os.getpid(), "engine": self.pid, "attempt": self.seat["attempt"]}
        write_file("identity", json.dumps(identity).encode())
        for fd in (self.stdout, self.stderr, self.pidfd):
            self.poll.register(fd, select.POLLIN)
        gc.collect()
        gc.freeze()
        gc.disable()

    def run(self) -> None:
        """Serve until the end was told, or nobody is left to hear it."""
        while not self._finished():
            for fd, _ in self._wait():
                self._attend(fd)
            self._look_at_clock()
            self._look_at_permission()
            self._look_at_end()
            if self.started:
                self.started = False  # nothing stands between a search's start and its answer
                continue
            if self.search is None or self.log.unsaved > UNSAVED_BYTES:
                self.log.save()
            self._push()
        self.log.save()
        ending = {"reason": self.killed_for or "the engine ended: " + self.status}
        write_file("ended", json.dumps({**ending, "status": self.status}).encode())

    def _finished(self) -> bool:
        if not self.over:
            return False
        asked_for = self.quit_ns != NEVER_NS and not self.joined  # nobody waits to hear of it
        return not self.records or asked_for or boottime_ns() > self.allowed_ns

    def _wait(self) -> list[tuple[int, int]]:
        """Wait for something to do; note how much later than wished this host went on."""
        search, patience_ms = self.search, self._patience_ms()
        due_ns = time.monotonic_ns() + round(patience_ms * 1e6)
        ready = self.poll.poll(patience_ms)
        if search is not None:
            search.woken(time.monotonic_ns() - due_ns)
        return ready

    def _patience_ms(self) -> float:
        boot, now = boottime_ns(), time.monotonic_ns()
        look_ns = LOOK_NS if self.search is None else WATCH_NS
        waits = [look_ns]
        # What has passed and has nothing left to do would let the loop run without a pause, before
        # everything else on its core, the dying engine first.
        if not (self.killed_for or self.ended_ns):
            waits += [self.allowed_ns - boot, self.quit_ns - boot]
        elif self.over:  # who is to hear of it may come until then
            waits.append(self.allowed_ns - boot)
        if self.joined:
            waits.append(self.next_ask_ns - boot)
        if self.search is not None:
            waits.append(self.search.due_ns - now)
        if self.ended_ns and not self.over:
            waits.append(self.ended_ns + SETTLE_NS - boot)
        elif self.closed_ns and not self.ended_ns:
            waits.append(self.closed_ns + MUTE_NS - boot)
        return max(0.0, min(waits) / 1e6)

    def _terminate(self, *_: Any) -> None:
        why = "shutdown: the agent was told to end (SIGTERM)"
        if self.ended_ns and not self.over:
            self.killed_for = self.killed_for or why  # it reached the engine first
        self._kill(why)

    # -- the engine ------------------------------------------------------------------------

    def _attend(self, fd: int) -> None:
        if fd == self.stdout:
            self._hear()
        elif fd == self.stderr:
            self._hear_stderr()
        elif fd == self.stdin:
            self._write(b"")
        elif fd == self.pidfd:
            self._note_end()
        elif fd == self.listener.fileno():
            self._accept()
        elif fd in self.callers:
            self._identify(fd)
        elif self.client is not None and fd == self.client.fileno():
            self._listen()
        elif fd == self.wake:
            os.read(self.wake, READ_BYTES)

    def _hear(self) -> bool:
        try:
            data = os.read(self.stdout, READ_BYTES)
        except BlockingIOError:
            return False
        at_ns = time.monotonic_ns()
        if not data:
            self._forget(self.stdout)
            self.closed_ns = self.closed_ns or boottime_ns()
            return False
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            self._tell_line(line + b"\n", at_ns)
        if len(self.line) > LINE_BYTES:
            self._tell_line(self.line, at_ns)
            self.line = b""
        return True

    def _tell_line(self, line: bytes, at_ns: int) -> None:
        search = self.search
        if search is None or not search.answered(line):
            self._tell("out", at_ns, line)
            return
        self.search = None
        if at_ns > search.flag_ns:
            self._tell_host(search)
        self._tell("ans", at_ns, line)

    def _tell_host(self, search: Search) -> None:
        """Tell what this host took from an engine that is late: it may be why."""
        taken = {
            "before": search.before,
            "after": counters(self.cores, self.pid, self.group),
            "frozen_ns": search.frozen_ns,
            # Load of others proves something only where all that the engine does is counted.
            "own_cores": bool(self.seat.get("cpus")) and group_ns(self.group) is not None,
            "cpus": os.cpu_count() or 1,
        }
        self._tell("host", time.monotonic_ns(), json.dumps(taken).encode())

    def _hear_stderr(self) -> None:
        try:
            data = os.read(self.stderr, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._tell("err", time.monotonic_ns(), data)
        else:
            self._forget(self.stderr)

    def _forget(self, fd: int) -> None:
        with contextlib.suppress(KeyError):
            self.poll.unregister(fd)

    def _write(self, data: bytes) -> None:
        """Write to the engine as far as it takes it; the rest goes out when it reads."""
        data = self.unsent + data
        try:
            sent = os.write(self.stdin, data) if data else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(data)  # it reads no more: its end tells
        if bool(self.unsent) != (sent < len(data)):
            if sent < len(data):
                self.poll.register(self.stdin, select.POLLOUT)
            else:
                self.poll.unregister(self.stdin)
        self.unsent = data[sent:]

    def _look_at_clock(self) -> None:
        """Stop a search at its deadline, and give it up at its stall."""
        search, now = self.search, time.monotonic_ns()
        if search is None or now < search.due_ns:
            return
        if now >= search.stall_ns:
            if self.line:
                self._tell("out", now, self.line)
                self.line = b""
            self.search = None
            self._tell_host(search)
            self._tell("late", now, b"")
        else:
            search.stop_ns = NEVER_NS
            self._write(search.stop)

    def _note_end(self) -> None:
        """Note how the engine ended, without reaping it: its group keeps its number."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return
        self._forget(self.pidfd)
        for _ in range(KEPT_BYTES // READ_BYTES):  # its last words; children may write on
            if not self._hear():
                break
        self._hear_stderr()
        self.ended_ns = boottime_ns()
        if self.status:
            return  # it has been judged: it ran on without its pipes
        if ended.si_code == os.CLD_EXITED:
            self.status = f"exit {ended.si_status}"
        else:
            self.status = "signal " + signal_name(ended.si_status)

    def _look_at_end(self) -> None:
        """Tell how the engine ended, once the true cause of it could show."""
        now = boottime_ns()
        if self.closed_ns and not self.ended_ns and now > self.closed_ns + MUTE_NS:
            self.status = "closed its pipes but runs on"
            self.ended_ns = now
        if not self.ended_ns or self.over or now < self.ended_ns + SETTLE_NS:
            return
        kill_all(members(self.pid))
        while reap():
            kill_all(members(self.pid) + descendants())
            time.sleep(REAP_SECONDS)
        if self.line:
            self._tell("out", time.monotonic_ns(), self.line)
        reason = self.killed_for
        killed = self.status == "signal SIGKILL" and not reason
        if killed and self._lacked_memory():
            reason = "out of memory: the kernel killed it"
        ending = {"status": self.status, "by": "farm" if reason else "engine", "reason": reason}
        self._tell("over", time.monotonic_ns(), json.dumps(ending).encode())
        self.over = self.number
        for lock in self.locks:
            os.close(lock)

    def _lacked_memory(self) -> bool:
        """Say whether the kernel itself killed the engine: not a child of it, and not itself."""
        if oom_kills(self.group) <= self.oom_before:
            return False
        if self.group and read_if_there(self.group + "/memory.oom.group").strip() == b"1":
            return True  # all of the group's processes at once
        return named_as_killed(self.kernel_log, self.pid)

    def _kill(self, why: str) -> None:
        """Write down why, then kill the engine and all its processes."""
        if self.killed_for or self.ended_ns:
            return
        self.killed_for = why
        self.log.add(encode("kill", 0, time.monotonic_ns(), why.encode()))
        self.log.save()
        kill_all(members(self.pid))

    # -- records ---------------------------------------------------------------------------

    def _tell(self, kind: str, at_ns: int, payload: bytes) -> None:
        """Number a record, keep it for a channel that comes back, send it."""
        self.number += 1
        record = encode(kind, self.number, at_ns, payload)
        self.records.append((self.number, record))
        self.kept += len(record)
        self.log.add(record)
        while self.kept > KEPT_BYTES and len(self.records) > 1:
            self.kept -= len(self.records.popleft()[1])
            self.dropped += 1
        if self.joined:
            self.behind += record

    def _acknowledged(self, number: int) -> None:
        while self.records and self.records[0][0] <= number:
            self.kept -= len(self.records.popleft()[1])

    # -- the channel -----------------------------------------------------------------------

    def _accept(self) -> None:
        """Let a caller say who it is; one that the engine has started is not listened to."""
        with contextlib.suppress(BlockingIOError):
            caller, _ = self.listener.accept()
            if not may_speak(caller):
                self.log.add(encode("refused", 0, time.monotonic_ns(), b"a caller of the engine's"))
                caller.close()
                return
            caller.settimeout(0)
            while len(self.callers) >= CALLERS:
                self._dismiss(next(iter(self.callers)))
            self.callers[caller.fileno()] = (caller, Parser())
            self.poll.register(caller, select.POLLIN)

    def _dismiss(self, fd: int) -> tuple[socket.socket, Parser]:
        """Stop listening to a caller, close it unless it is the client now."""
        caller, parser = self.callers.pop(fd)
        self.poll.unregister(fd)
        if caller is not self.client:
            caller.close()
        return caller, parser

    def _identify(self, fd: int) -> None:
        """Take a caller that says the secret for the hall's; it replaces the channel before."""
        caller, parser = self.callers[fd]
        try:
            messages = parser.feed(caller.recv(READ_BYTES))
        except BlockingIOError:
            return
        except (OSError, ValueError, UnicodeError):
            messages = [("", 0, 0, b"")]
        else:
            if not messages and parser.begun:
                return
        kind, _, _, payload = messages[0] if messages else ("", 0, 0, b"")
        said = hashlib.sha256(payload).hexdigest()
        if kind == "join" and hmac.compare_digest(said, self.secret_sha256):
            self._hang_up()
            self.client, self.parser, self.joined = caller, parser, False
            self._dismiss(fd)
            self.poll.register(caller, select.POLLIN)
            self._obey_all(messages)
            return
        if kind == "stop":  # from the box itself, which needs its GPU; it waits for the end
            self._obey(*messages[0])
            return
        self._dismiss(fd)

    def _hang_up(self) -> None:
        if self.client is not None:
            self.poll.unregister(self.client)
            self.client.close()
        self.client, self.joined = None, False
        self.behind.clear()

    def _listen(self) -> None:
        assert self.client is not None
        try:
            data = self.client.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        try:
            self._obey_all(self.parser.feed(data))
        except (ValueError, UnicodeError):
            self._hang_up()

    def _obey_all(self, messages: list[tuple[str, int, int, bytes]]) -> None:
        try:
            for message in messages:
                self._obey(*message)
        except (ValueError, KeyError, TypeError, UnicodeError):
            self._hang_up()

    def _obey(self, kind: str, number: int, stamp: int, payload: bytes) -> None:
        if kind == "join":
            self._join(number)
        elif kind == "grant":
            self._acknowledged(number)
            asked_ns = self.asked.pop(stamp, None)
            if asked_ns is not None:
                self.allowed_ns = max(self.allowed_ns, asked_ns + self.grace_ns)
        elif kind == "echo":
            self.behind += encode("echo", number, time.monotonic_ns(), b"%d" % time.time_ns())
        elif kind == "stop":  # from the box itself, which needs its GPU
            self._kill(payload.decode(errors="replace"))
            self.allowed_ns = 0
        elif kind in ("in", "go", "end"):
            if number == self.done + 1:
                self.done = number
                self._command(kind, number, payload)
        else:
            raise ValueError("no such message: " + kind)

    def _join(self, number: int) -> None:
        self._acknowledged(number)
        first = self.records[0][0] if self.records else self.number + 1
        greeting = {"version": VERSION, "agent": os.getpid(), "engine": self.pid}
        self.behind += encode(
            "joined", self.done, time.monotonic_ns(), json.dumps(greeting).encode()
        )
        if first > number + 1:
            lost = first - number - 1
            self.behind += encode("cut", first - 1, time.monotonic_ns(), b"%d" % lost)
        for _, record in self.records:
            self.behind += record
        self.joined, self.next_ask_ns = True, 0
        self.asked.clear()
        self._look_at_permission()

    def _command(self, kind: str, number: int, payload: bytes) -> None:
        self.search = None  # whatever was asked before is over
        if kind == "in":
            self._write(payload)
        elif kind == "go":
            head, _, commands = payload.partition(b"\n")
            terms, before = json.loads(head), counters(self.cores, self.pid, self.group)
            at_ns = time.monotonic_ns()
            self._write(commands)
            self.search = Search(at_ns, terms, before)
            self._tell("went", at_ns, b"%d" % number)
            self.started = True
        else:
            ending = json.loads(payload)
            self._write(str(ending["quit"]).encode())
            self.quit_ns = boottime_ns() + int(ending["quit_ms"]) * 1_000_000

    def _look_at_permission(self) -> None:
        """Ask for the next extension; end the engine when the last one has run out."""
        now = boottime_ns()
        if self.joined and now >= self.next_ask_ns:
            self.asks += 1
            self.asked[self.asks] = now
            self.next_ask_ns = now + self.beat_ns
            self.behind += encode("ask", self.asks, time.monotonic_ns())
        if now > self.allowed_ns:
            seconds = self.grace_ns / 1e9
            self._kill(f"link lost: no permission from the hall for {seconds:g} s")
        if now > self.quit_ns:
            self._kill("did not quit when it was told to")

    def _push(self) -> None:
        """Send what the channel takes now; one that is far behind is cut off."""
        if self.client is None or not self.behind:
            return
        try:
            sent = self.client.send(self.behind, socket.MSG_NOSIGNAL)
            del self.behind[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._hang_up()
            return
        if len(self.behind) > CLIENT_BYTES:
            self._hang_up()
        elif self.client is not None:
            events = select.POLLIN | (select.POLLOUT if self.behind else 0)
            self.poll.modify(self.client, events)


def may_speak(caller: socket.socket) -> bool:
    """Say whether a caller is this user's or root's, and no process that the agent has started."""
    credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", credentials)
    if user not in (0, os.geteuid()):
        return False
    while pid > 1:
        fields = read_if_there(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if not fields or pid == os.getpid():
            return False  # it is gone, or one of the engine's
        pid = int(fields[1])
    return True


# -- what an engine needs ------------------------------------------------------------------


def lock_gpu(root: str, uuid: str, attempt: str) -> int:
    """Lock a GPU for an attempt; raise ``AgentError`` when another attempt has it.

    Its first agent writes the attempt down under an exclusive lock; each keeps a shared one.
    """
    if re.fullmatch(r"[A-Za-z0-9-]{1,100}", uuid) is None:
        raise AgentError(f"not a GPU: {uuid!r}")
    os.makedirs(os.path.join(root, "gpus"), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH118 - as in serve
    path = os.path.join(root, "gpus", uuid + ".lock")  # noqa: PTH118 - as in serve
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, attempt.encode(), 0)
        # The change of lock lets go for a moment: who came in between has written its name.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        owner = os.pread(fd, 200, 0).decode(errors="replace")
    except BlockingIOError:
        owner = "another attempt"
    if owner != attempt:
        os.close(fd)
        raise AgentError(f"GPU {uuid} is locked by {owner}")
    return fd


def check_files(checksums: dict[str, str]) -> None:
    """Hold files against their SHA-256; raise ``AgentError`` for one that differs."""
    for path, wanted in checksums.items():
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - as in serve
                while True:
                    chunk = file.read(1 << 20)
                    if not chunk:
                        break
                    digest.update(chunk)
        except OSError as error:
            raise AgentError(f"{path} cannot be read: {error}") from error
        actual = digest.hexdigest()
        if actual != wanted:
            raise AgentError(f"{path} is not the pinned file: wanted {wanted}, found {actual}")


def start_engine(seat: dict[str, Any]) -> tuple[int, tuple[int, int, int]]:
    """Fork the engine; return its process id and our ends of its pipes."""
    engine_in, stdin = os.pipe()
    stdout, engine_out = os.pipe()
    stderr, engine_err = os.pipe()
    problem, report = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        be_engine(seat, (engine_in, engine_out, engine_err), report, parent)
    for fd in (engine_in, engine_out, engine_err, report):
        os.close(fd)
    said = os.read(problem, READ_BYTES)
    os.close(problem)
    if said:
        os.waitpid(pid, 0)
        raise AgentError("the engine cannot be started: " + said.decode(errors="replace"))
    for fd in (stdin, stdout, stderr):
        os.set_blocking(fd, False)
    return pid, (stdin, stdout, stderr)


def be_engine(
    seat: dict[str, Any], pipes: tuple[int, int, int], report: int, parent: int
) -> NoReturn:
    """Become the engine: own session, own cores, memory of its control group, its three pipes."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        prctl(PR_SET_DUMPABLE, 1)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)  # CAP_SYS_NICE is the agent's
        with contextlib.suppress(OSError):  # out of memory: the engine first, not the agent
            write_file("/proc/self/oom_score_adj", b"1000")
        if seat.get("cgroup"):
            write_file(os.path.join(seat["cgroup"], "cgroup.procs"), b"0")  # noqa: PTH118 - as in serve
        if seat.get("cpus"):
            os.sched_setaffinity(0, seat["cpus"])
        for name, value in seat.get("limits", {}).items():
            number = getattr(resource, "RLIMIT_" + name)
            resource.setrlimit(number, (value, value))  # both: it may not be raised again
        if seat.get("user") is not None:
            become(int(seat["user"]), parent)
        os.chdir(seat.get("cwd") or "/")
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (*pipes, report)]
        for target, fd in enumerate(moved):
            os.dup2(fd, target, inheritable=target < 3)
        report = 3
        os.closerange(4, MAX_FD)
        os.execvpe(seat["argv"][0], seat["argv"], seat["env"])  # noqa: S606 - no shell is wanted
    except BaseException as error:  # this copy must end here, whatever happened
        os.write(report, str(error).encode()[:4096] or b"unknown error")
    finally:
        os._exit(127)


def become(user: int, parent: int) -> None:
    """Be another user, who owns nothing; the engine still dies with its agent."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user takes it away
    if os.getppid() != parent:
        os._exit(127)


# -- what this host takes from an engine ---------------------------------------------------


def counters(cores: list[int], engine: int, group: str = "") -> dict[str, Any]:
    """Return this host's counters in ns, by core, as ``worker_cpu/host/pulse.py`` reads them."""
    busy: dict[int, int] = {}
    steal: dict[int, int] = {}
    for line in read_if_there("/proc/stat").splitlines():
        name, _, rest = line.partition(b" ")
        if name.startswith(b"cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            ticks = list(map(int, rest.split()))
            busy[int(name[3:])] = sum(ticks[:3]) * TICK_NS  # user, nice, system
            steal[int(name[3:])] = ticks[7] * TICK_NS
    in_group = group_ns(group)
    return {
        "at_ns": time.monotonic_ns(),
        "busy": busy,
        "steal": steal,
        "throttled": {core: throttled_ns(core) for core in cores},
        "engines_ns": processor_ns(engine) if in_group is None else in_group,
    }


def group_ns(group: str) -> int | None:
    """Return the processor time of all that ever ran in a control group, None if it counts none."""
    fields = read_if_there(group + "/cpu.stat").split(None, 2) if group else []
    return int(fields[1]) * 1_000 if fields[:1] == [b"usage_usec"] else None


def throttled_ns(core: int) -> int:
    """Return for how long a core was throttled for its heat since the host's start."""
    counter = f"/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_total_time_ms"
    return int(read_if_there(counter) or 0) * 1_000_000


def processor_ns(pid: int) -> int:
    """Return the processor time of a process and its children, ended children included."""
    fields = read_if_there(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    threads: list[str] = []
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - as in serve
    children_lists = [read_if_there(f"/proc/{pid}/task/{thread}/children") for thread in threads]
    children = map(int, b" ".join(children_lists).split())
    return sum(map(int, fields[11:15])) * TICK_NS + sum(map(processor_ns, children))


# -- processes -----------------------------------------------------------------------------
# The same again as in worker_cpu/engines/supervisor.py: each of the two has to be one file of the
# standard library, and runs on a host where the other one need not be.


def process_table() -> list[tuple[int, str, int, int, int]]:
    """Return process id, state, parent, group and session of every process."""
    table = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - as in serve
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = read(f"/proc/{name}/stat").rpartition(b")")[2].split()
                parent, group, session = map(int, fields[1:4])
                table.append((int(name), fields[0].decode(), parent, group, session))
    return table


def descendants(root: int | None = None) -> list[int]:
    """Return all living processes below ``root`` (default: below the agent)."""
    table = process_table()
    below = {os.getpid() if root is None else root}
    while True:
        more = {pid for pid, _, parent, _, _ in table if parent in below} - below
        if not more:
            break
        below |= more
    return [pid for pid, state, *_ in table if pid in below and state != "Z" and pid != os.getpid()]


def members(leader: int) -> list[int]:
    """Return the living processes of an engine: its tree, its group and its session."""
    tree = set(descendants(leader))
    return [
        pid
        for pid, state, _, group, session in process_table()
        if state != "Z" and (pid in tree or leader in (group, session))
    ]


def kill_all(pids: list[int]) -> None:
    """Send SIGKILL to each process; those already gone are fine."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def reap() -> bool:
    """Reap every child that has ended; say whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """Set a process attribute; raise ``OSError`` when the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def signal_name(number: int) -> str:
    """Return a signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def run_at_once() -> None:
    """Run before ordinary processes when woken, as the referee does, where that is allowed.

    A stamp would else wait for the time slice of whoever runs on this core. The engine does
    not inherit it.
    """
    with contextlib.suppress(OSError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))


def oom_kills(group: str = "") -> int:
    """Return how many processes the kernel has killed for want of memory.

    Those of a control group, of either version, where the seat has one; else the host's.
    """
    own = [group + name for name in ("/memory.events", "/memory.oom_control") if group]
    for path in (*own, "/proc/vmstat"):
        with contextlib.suppress(OSError, ValueError):
            counters = read(path).split()
            return int(counters[counters.index(b"oom_kill") + 1])
    return 0


def open_kernel_log() -> int:
    """Open the kernel's log at its end, -1 where this process may not read it."""
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return -1
    os.lseek(fd, 0, os.SEEK_END)
    return fd


def named_as_killed(log: int, pid: int) -> bool:
    """Say whether the kernel's log names a process among what it killed for want of memory."""
    kernel_line = b"Killed process %d " % pid
    while log >= 0:
        try:
            head, _, text = os.read(log, READ_BYTES).partition(b";")
        except BrokenPipeError:
            continue  # records that were overwritten; the next read goes on behind them
        except OSError:
            return False
        level = head.partition(b",")[0]
        kernels = level.isdigit() and int(level) < KERNEL_LEVELS
        if kernels and b"ut of memory" in text and kernel_line in text:
            return True
    return False


def boottime_ns() -> int:
    """Return CLOCK_BOOTTIME: it runs on while the host sleeps, and is never set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def read(path: str) -> bytes:
    """Read a small file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, READ_BYTES)
    finally:
        os.close(fd)


def read_if_there(path: str) -> bytes:
    """Read a small file of the kernel's, b"" where there is none."""
    try:
        return read(path)
    except OSError:
        return b""


def write_file(path: str, content: bytes) -> None:
    """Write a small file and wait until it is on the disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, content)
        with contextlib.suppress(OSError):  # a control group's file cannot be synced
            os.fsync(fd)
    finally:
        os.close(fd)


def main(arguments: list[str]) -> int:
    """Serve a channel: ``--serve --root DIRECTORY``; the seat is SSH's original command."""
    if len(arguments) != 3 or arguments[:2] != ["--serve", "--root"]:
        sys.stderr.write("usage: agent.py --serve --root DIRECTORY\n")
        return 2
    return serve(arguments[2], os.environ.get("SSH_ORIGINAL_COMMAND", ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
