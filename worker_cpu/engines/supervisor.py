"""The dead man: the one process that owns a game's engines, and kills them for a reason.

One standard-library file, run as ``python -I -S supervisor.py`` beside the referee, or by
the fork server: a fork costs a third of the memory and no start of an interpreter.
The link feeds it over a pipe; the referee asks it over a unix socket to
start engines and how they ended. Where many games share few cores one process is the dead man
of several games, each with a pipe and a socket of its own. Invariants:

* it writes down why, durably, *before* it kills;
* it ends only when no process of an engine is left: it is the reaper of their orphans (one that
  left its engine's tree, group and session lives until the last of several games has ended);
* an engine's process id is not reaped, so cannot be reused, before its group is killed;
* it and a sandbox's first process hold the hall's lock file open, its engines hold
  nothing but their three pipes;
* engines die with it (PDEATHSIG); nothing else can end it but the end of its work;
* a lack of memory is the host's fault only where the kernel itself names the engine as what it
  has killed, and the engine had not taken more than its share.

Link pipe, lines: ``feed <CLOCK_BOOTTIME ns at which the renewal was sent>``,
``kill <why>``, ``end``. Referee socket, JSON lines with an ``id`` that the reply echoes:
``hello``, ``spawn`` (with three descriptors), ``ask``, ``kill``. A line with ``note``
comes unasked, before everything is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4  # linux/prctl.h
KEYCTL = {"x86_64": 250, "aarch64": 219}  # the system call's number, by machine
KEYCTL_JOIN_SESSION_KEYRING = 1  # linux/keyctl.h
CLONE3, CLONE_INTO_CGROUP = 435, 1 << 33  # the number on every machine; linux/sched.h
READ_BYTES = 65_536  # bytes: one read, and the longest line that is understood
LOOK_SECONDS = 1.0  # s: poll stands still while the host sleeps, CLOCK_BOOTTIME does not
SETTLE_NS = 250_000_000  # ns: a shutdown reaches engines first; wait for its other signs
SAVE_NS = 1_000_000_000  # ns: a sandbox whose engine is dead saves its scratch for so long
REAP_SECONDS = 0.005  # s: pause between two looks at processes that are being killed
OUT_OF_MEMORY = "out of memory: the kernel killed it"
GROUP = "farm-engine-"  # as cgroups.NAME
MOST_PROCESSES = 4096  # looked at before the first of them is killed: an engine may fork on and on
KERNEL_LEVELS = 8  # a record of /dev/kmsg with a lower number is the kernel's own
SIGNALLED = 128  # bubblewrap's exit status for its first process' death by signal N is 128 + N
NEVER_NS = 1 << 62  # ns: the deadline of a question that has none
MAX_FD_OF_SANDBOX = 20  # as SAFE_FD, for a sandbox
SAFE_FD = 10  # descriptors are moved above this before 0, 1 and 2 are laid out
MAX_FD = 1 << 20  # descriptors of a child are closed up to here


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    state: str
    parent: int
    group: int
    session: int


class Engine:
    """One engine process, its leader unreaped until its group has been killed."""

    def __init__(self, seat: str, pid: int, exec_fd: int, request: Any) -> None:
        self.seat = seat
        self.pid = pid
        self.exec_fd = exec_fd  # -1 once the program runs
        self.request = request
        self.sandbox: Sandbox | None = None
        self.status: str | None = None
        self.ended_ns = 0
        self.killed_for = ""
        self.out_of_memory = False
        self.remark = ""
        self.oom_before = oom_kills()
        self.group = ""  # its control group, '' where it has none
        self.leader = pid  # the engine itself, in a sandbox or not
        self.kernel_log = open_kernel_log()


class Sandbox:
    """What the first process of an engine's sandbox has reported (``sandbox_init.py``)."""

    def __init__(self, report_fd: int, keep: str) -> None:
        self.report_fd, self.keep = report_fd, keep
        self.started = False
        self.ended = ""
        self.kill_ns = NEVER_NS  # when the sandbox itself is killed, its engine being so
        self.problem = ""
        self._text = b""

    def read(self) -> None:
        """Take what has been reported; the descriptor does not block."""
        try:
            chunk = os.read(self.report_fd, READ_BYTES)
        except BlockingIOError:
            return
        self._text = (self._text + chunk)[-READ_BYTES:]
        if not chunk and not self.started:
            self.problem = self.problem or "it ended before its engine was started"
        for line in self._text.decode(errors="replace").splitlines():
            self.started = self.started or line == "+"
            if line.startswith("="):
                self.ended = line[1:]

    def refusal(self) -> tuple[str, bool] | None:
        """Return why no engine runs, and whether that was the host's fault, once known."""
        text = self._text.decode(errors="replace")
        if text.startswith("!") and text.endswith("\n"):
            return text[1:].strip(), False
        return (text.strip() or self.problem, True) if self.problem else None


class Question(NamedTuple):
    """A question that is answered when the engine has ended or the time has come."""

    request: Any
    seat: str
    deadline_ns: int
    last: bool = False  # the engine is reaped and its seat is free with the answer


class Listening:
    """What the dead men of one process listen to, around one poll object."""

    def __init__(self) -> None:
        self.poll = select.poll()
        self.readers: dict[int, Callable[[], object]] = {}
        self.dead_men: list[DeadMan] = []  # those that serve
        self.wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.watch(self.wake_read, lambda: os.read(self.wake_read, READ_BYTES))

    def watch(self, fd: int, reader: Callable[[], object]) -> None:
        """Call a reader when there is something to read."""
        self.readers[fd] = reader
        self.poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Listen to this descriptor no more; one that was not listened to is fine."""
        if self.readers.pop(fd, None) is not None:
            self.poll.unregister(fd)

    def serve(self) -> None:
        """Serve until each has a reason to end, and leave no engine behind."""
        while self.dead_men:
            for fd, _ in self.poll.poll(min(each.patience_ms() for each in self.dead_men)):
                if fd in self.readers:
                    self.readers[fd]()
            for each in self.dead_men:
                each.look()
            for each in [each for each in self.dead_men if each.why]:
                each.finish(last=len(self.dead_men) == 1)
                self.dead_men.remove(each)

    def terminate(self, *_: Any) -> None:
        """Take a SIGTERM: a shutdown of the host or of the farm."""
        for each in self.dead_men:
            each.why = each.why or "shutdown: the engines' supervisor got SIGTERM"


class DeadMan:
    """Serves the link and the referee of one game, until there is a reason to ``finish``."""

    def __init__(
        self,
        listening: Listening,
        link_fd: int,
        referee: socket.socket,
        log: str,
        limit_ns: int,
        lock_fd: int,
        link_pid: int,
    ) -> None:
        self.link_fd, self.referee, self.log, self.limit_ns = link_fd, referee, log, limit_ns
        self.lock_fd = lock_fd  # -1 where no hall is locked
        self.link_pidfd = os.pidfd_open(link_pid)
        self.referee_pidfd = -1
        self.fed_ns = boottime_ns()
        self.why = ""
        self.silent = False
        self.engines: dict[str, Engine] = {}
        self.questions: list[Question] = []
        self.descriptors: list[int] = []
        self.link_bytes = b""
        self.referee_bytes = b""
        self.listening = listening
        listening.dead_men.append(self)
        os.set_blocking(link_fd, False)
        referee.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listening.watch(link_fd, self._read_link)
        listening.watch(referee.fileno(), self._read_referee)

    def look(self) -> None:
        """Look at the engines, answer what is due, and see whether the link is silent."""
        self._look_at_engines()
        self._answer()
        # Judged after all input was read: what was fed in time counts.
        if not self.why and boottime_ns() - self.fed_ns > self.limit_ns:
            self.silent = True
            self.why = f"link silent for more than {self.limit_ns // 1_000_000} ms"

    def finish(self, *, last: bool) -> None:
        """Write down why, tell the referee, kill every engine process and reap them all.

        The ``last`` one takes whatever is below this process.
        """
        left = self._left(last=last)
        if left:
            self._write_down(self.why, list(self.engines.values()))
        self._send({"note": "kill", "why": self.why})
        for engine in self.engines.values():
            self._forget_start(engine)
        guards = self._guards(list(self.engines.values()))
        kill_all([pid for pid in left if pid not in guards])
        if self.silent:
            self._end_the_silent()
        patience_ns = boottime_ns() + SAVE_NS
        while self._reap(last=last):
            spared = guards if boottime_ns() < patience_ns else set()
            kill_all([pid for pid in self._left(last=last) if pid not in spared])
            time.sleep(REAP_SECONDS)
        for engine in self.engines.values():
            forget_empty(engine)
        self._close()

    def _left(self, *, last: bool) -> list[int]:
        """Return the processes that have to be gone before this dead man is."""
        if last:
            return below(os.getpid())
        return [pid for engine in self.engines.values() for pid in self._members(engine)]

    def _reap(self, *, last: bool) -> bool:
        """Reap what has ended; say whether anything is left."""
        if last:
            return reap()
        for seat, engine in list(self.engines.items()):
            if os.waitpid(engine.pid, os.WNOHANG)[0]:
                forget_empty(self.engines.pop(seat))
        return bool(self.engines)

    def _close(self) -> None:
        """Close what this game had open: its link and its referee see that it is over."""
        for fd in (self.link_fd, self.referee.fileno()):
            self.listening.unwatch(fd)
        os.close(self.link_fd)
        self.referee.close()
        for fd in (self.link_pidfd, self.referee_pidfd, *self.descriptors):
            if fd >= 0:
                os.close(fd)

    def _guards(self, engines: list[Engine]) -> set[int]:
        """Return the processes of sandboxes that save scratches once their engines are dead."""
        started = {e.pid for e in engines if e.sandbox is not None and e.sandbox.started}
        return started.union(*map(children, started))

    def _end_the_silent(self) -> None:
        # A link that wakes up later must find itself dead, not its hall taken.
        for pidfd in (self.link_pidfd, self.referee_pidfd):
            with contextlib.suppress(OSError):  # gone, or -1: a referee that never said hello
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    # -- input -------------------------------------------------------------------------

    def patience_ms(self) -> float:
        """Return how long there is nothing to do if nothing comes, in ms."""
        now = boottime_ns()
        due = [self.fed_ns + self.limit_ns, *(self._due_ns(q) for q in self.questions)]
        return max(0.0, min(LOOK_SECONDS * 1e3, (min(due) - now) / 1e6 + 1))

    def _read_link(self) -> None:
        chunk = os.read(self.link_fd, READ_BYTES)
        if not chunk:
            self.listening.unwatch(self.link_fd)
            self.why = self.why or "link gone: its pipe is closed"
            return
        *lines, self.link_bytes = (self.link_bytes + chunk)[-READ_BYTES:].split(b"\n")
        for line in lines:
            self._obey_link(line.decode(errors="replace"))

    def _obey_link(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        if verb == "feed" and rest.isdigit():
            # Never later than now: a wrong stamp must not keep an engine alive.
            self.fed_ns = max(self.fed_ns, min(int(rest), boottime_ns()))
        elif verb == "kill":
            self.why = self.why or rest or "killed by the link"
        elif verb == "end":
            self.why = self.why or "end of the game"

    def _read_referee(self) -> None:
        try:
            space = socket.CMSG_SPACE(16 * 4) + socket.CMSG_SPACE(12)
            chunk, extra, _, _ = self.referee.recvmsg(READ_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            chunk, extra = b"", []
        if not chunk:
            self.listening.unwatch(self.referee.fileno())
            self.why = self.why or "referee gone: its socket is closed"
            return
        sender = self._take_extra(extra)
        *lines, self.referee_bytes = (self.referee_bytes + chunk).split(b"\n")
        self.referee_bytes = self.referee_bytes[-READ_BYTES:]
        for line in lines:
            self._obey_referee(line, sender)

    def _take_extra(self, extra: list[tuple[int, int, bytes]]) -> int:
        """Keep passed descriptors; return the sender's process id as the kernel tells it."""
        sender = -1
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                whole = len(data) // 4
                self.descriptors += struct.unpack(f"{whole}i", data[: whole * 4])
            elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                sender = struct.unpack("3i", data)[0]
        return sender

    def _obey_referee(self, line: bytes, sender: int) -> None:
        try:
            order = json.loads(line)
            self._do(order, order.get("id"), sender)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._send({"error": f"not understood: {error!r}", "id": _id_of(line)})

    def _do(self, order: dict[str, Any], request: Any, sender: int) -> None:
        op = order["op"]
        if op == "hello":
            self._hello(request, sender)
        elif op == "spawn":
            self._spawn(order, request)
        elif op == "ask":
            self._ask(order["seat"], request, int(order["wait_ms"]))
        elif op == "kill":
            self._kill(order["seat"], request, order.get("why", "end of the game"))
        else:
            raise ValueError(f"no such op: {op!r}")

    # -- verbs of the referee ------------------------------------------------------------

    def _hello(self, request: Any, sender: int) -> None:
        try:
            self.referee_pidfd = os.pidfd_open(sender)
        except OSError as error:
            self._send({"id": request, "error": f"no such process {sender}: {error}"})
        else:
            self._send({"id": request, "pid": os.getpid()})

    def _spawn(self, order: dict[str, Any], request: Any) -> None:
        fds, self.descriptors = self.descriptors[:3], self.descriptors[3:]
        try:
            if len(fds) != 3:
                raise ValueError("three descriptors have to come with spawn")
            if order["seat"] in self.engines:
                raise ValueError(f"seat {order['seat']} is taken")
            engine = start(order, fds, request, self.lock_fd)
        except OSError as error:
            self._send({"id": request, "error": str(error)})
        else:
            self.engines[engine.seat] = engine
            executed = self._executed if engine.sandbox is None else self._reported
            self.listening.watch(engine.exec_fd, lambda: executed(engine))
        finally:
            for fd in fds:
                os.close(fd)

    def _executed(self, engine: Engine) -> None:
        """Answer ``spawn``: the exec pipe tells the error, or closes because it worked."""
        problem = os.read(engine.exec_fd, READ_BYTES).decode(errors="replace")
        self._forget_start(engine)
        if problem:
            os.waitpid(engine.pid, 0)
            del self.engines[engine.seat]
            self._send({"id": engine.request, "error": problem})
        else:
            self._send({"id": engine.request, "pid": engine.pid})

    def _reported(self, engine: Engine) -> None:
        """Answer ``spawn`` when the sandbox tells that its engine runs, or why it does not."""
        assert engine.sandbox is not None
        engine.sandbox.read()
        refusal = engine.sandbox.refusal()
        if not engine.sandbox.started and refusal is None:
            return
        self._forget_start(engine)
        if refusal is None:
            engine.leader = leader_in(engine.pid)
            self._send({"id": engine.request, "pid": engine.pid})
            return
        problem, host = refusal
        kill_group(engine.pid)
        os.waitpid(engine.pid, 0)
        forget_empty(engine)
        del self.engines[engine.seat]
        self._send({"id": engine.request, "error": problem, "host": host})

    def _forget_start(self, engine: Engine) -> None:
        """Listen no more to how an engine's start goes; a sandbox's report is read on."""
        if engine.exec_fd >= 0:
            self.listening.unwatch(engine.exec_fd)
            if engine.sandbox is None:
                os.close(engine.exec_fd)
            engine.exec_fd = -1

    def _ask(self, seat: str, request: Any, wait_ms: int) -> None:
        if seat not in self.engines:
            self._send({"id": request, "error": f"no engine at seat {seat}"})
            return
        self.questions.append(Question(request, seat, boottime_ns() + wait_ms * 1_000_000))

    def _kill(self, seat: str, request: Any, why: str) -> None:
        engine = self.engines.get(seat)
        if engine is None:
            self._send({"id": request, "error": f"no engine at seat {seat}"})
            return
        left = self._members(engine)
        if left:
            self._write_down(why, [engine])
            engine.killed_for = why
            if engine.sandbox is None:
                kill_group(engine.pid)
            else:
                engine.sandbox.kill_ns = boottime_ns() + SAVE_NS
                left = sorted(set(left) - self._guards([engine]))
            kill_all(left)
        self.questions = [q for q in self.questions if q.seat != seat]
        self.questions.append(Question(request, seat, NEVER_NS, last=True))

    def _members(self, engine: Engine) -> list[int]:
        """Return the living processes of an engine.

        What an engine that has ended leaves behind becomes this process's child. Where there is
        none but its engines, nothing is left, and nobody has to read the whole process table: at
        the end of many games at a time each would read the processes of all.
        """
        if engine.status is None:
            look(engine)
        serving = self.listening.dead_men
        leaders = {each.pid for dead_man in serving for each in dead_man.engines.values()}
        if engine.status is not None and leaders.issuperset(children(os.getpid())):
            return []
        return members(engine.pid)

    # -- output --------------------------------------------------------------------------

    def _look_at_engines(self) -> None:
        for engine in self.engines.values():
            if engine.status is None and engine.exec_fd < 0:
                look(engine)
                if engine.sandbox and boottime_ns() > engine.sandbox.kill_ns:
                    kill_all(self._members(engine))

    def _due_ns(self, question: Question) -> int:
        engine = self.engines[question.seat]
        if engine.status is None:
            return question.deadline_ns
        return 0 if question.last else engine.ended_ns + SETTLE_NS

    def _answer(self) -> None:
        """Answer what is due; an end first settles, so that its true cause can show."""
        now = boottime_ns()
        due = [question for question in self.questions if self._due_ns(question) <= now]
        for question in due:
            self.questions.remove(question)
            self._send(answer(question.request, self.engines[question.seat]))
            if question.last:
                engine = self.engines.pop(question.seat)
                os.waitpid(engine.pid, 0)
                forget_empty(engine)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            self.referee.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            return  # it is gone or deaf: its end of the socket tells the loop

    def _write_down(self, why: str, engines: list[Engine]) -> None:
        line = json.dumps(
            {
                "event": "kill",
                "why": why,
                "at_ms": time.time_ns() // 1_000_000,
                "silence_ms": (boottime_ns() - self.fed_ns) // 1_000_000,
                "engines": {e.seat: {"pid": e.pid, "status": e.status} for e in engines},
            }
        )
        try:
            write_line(self.log, line)
        except OSError as error:
            # A full disk must not keep engines alive; systemd's journal has the line.
            sys.stderr.write(f"dead man: cannot write {self.log}: {error}: {line}\n")


def answer(request: Any, engine: Engine) -> dict[str, Any]:
    """Say how an engine is, or how it ended and who ended it."""
    reason = engine.killed_for if engine.status == "signal SIGKILL" else ""
    if engine.out_of_memory and not reason:
        reason = OUT_OF_MEMORY
    return {
        "id": request,
        "running": engine.status is None,
        "status": engine.status,
        "by": "farm" if reason else "engine",
        "reason": reason or engine.remark,
    }


# -- processes ---------------------------------------------------------------------------


def start(order: dict[str, Any], fds: list[int], request: Any, lock: int) -> Engine:
    """Fork an engine, or its sandbox; a pipe then tells whether the program runs.

    Without a sandbox the pipe closes when it does, or tells the error.
    """
    wrapped = order.get("sandbox")
    arguments = [str(word) for word in wrapped or order["argv"]]
    environment = {str(key): str(value) for key, value in order["env"].items()}
    keep = keep_directory(str(order["seat"])) if wrapped else ""
    group = make_group(str(order.get("groups", "")), str(order["seat"]))
    read, write = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = fork(group)
    if pid == 0:
        try:
            if wrapped:
                filtered = bytes.fromhex(order.get("filter", ""))
                lay_out_sandbox(fds, write, keep, lock, filtered)
                settle(parent, order.get("cpus"), None, {})
            else:
                lay_out(fds, write)
                settle(parent, order.get("cpus"), order.get("cwd"), order.get("limits", {}))
            os.execvpe(arguments[0], arguments, environment)  # noqa: S606 - no shell is wanted
        except BaseException as error:  # this copy must end here, whatever happened
            fail(error)
    os.close(write)
    engine = Engine(str(order["seat"]), pid, read, request)
    engine.group = group
    if wrapped:
        os.set_blocking(read, False)
        engine.sandbox = Sandbox(read, keep)
    return engine


def make_group(base: str, seat: str) -> str:
    """Make a control group for an engine below ``base``; return '' where there is none.

    The kernel that takes one of its processes for want of memory is to take them all: then an
    engine whose child was taken cannot pass its own end off as the kernel's doing.
    """
    if not base:
        return ""
    path = f"{base}/{GROUP}{os.getpid()}-{seat}-{time.monotonic_ns()}"
    try:
        os.mkdir(path)  # noqa: PTH102 - as read()
    except OSError:
        return ""
    write_if_there(f"{path}/memory.oom.group", b"1")
    return path


def fork(group: str) -> int:
    """Fork into a control group; what cannot be counted is not counted.

    The kernel makes the process there where it can (Linux 5.7, no filter of system calls that
    forbids it); one that moves there afterwards stands still for some 10 ms.
    """
    pid = fork_into(group) if group else -1
    if pid < 0:
        pid = os.fork()
        if pid == 0 and group:
            write_if_there(f"{group}/cgroup.procs", b"0")
    return pid


def fork_into(group: str) -> int:
    """Fork into a control group by clone3, as fork does otherwise; -1 where it is not possible.

    This process has one thread and the copy becomes another program, so nothing that
    ``os.fork`` does beside the system call is needed.
    """
    try:
        fd = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        # struct clone_args (linux/sched.h): flags, ..., exit_signal, ..., cgroup
        clone_args = struct.pack("11Q", CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, *[0] * 5, fd)
        call = ctypes.PyDLL(None).syscall  # it keeps Python's lock: the copy has no other thread
        return int(call(ctypes.c_long(CLONE3), clone_args, ctypes.c_size_t(len(clone_args))))
    finally:
        os.close(fd)


def write_if_there(path: str, content: bytes) -> None:
    """Write to a file of the kernel's, if it is there and lets us."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, content)
    except OSError:
        return
    finally:
        os.close(fd)


def leader_in(sandbox: int) -> int:
    """Return the engine's own process in a sandbox: the first that its first process started."""
    engines = [pid for init in children(sandbox) for pid in children(init)]
    return min(engines, key=started_at, default=sandbox)


def started_at(pid: int) -> int:
    """Return when a process was started, in the kernel's ticks."""
    try:
        return int(read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return NEVER_NS


def lay_out(fds: list[int], report: int) -> None:
    """Put an engine's pipes on 0, 1, 2 and the exec pipe on 3; close everything else."""
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, SAFE_FD) for fd in (*fds, report)]
    for target, fd in enumerate(moved):
        os.dup2(fd, target, inheritable=target < 3)
    os.closerange(4, MAX_FD)


def lay_out_sandbox(fds: list[int], report: int, keep: str, lock: int, filtered: bytes) -> None:
    """Lay out a sandbox's descriptors, as ``sandbox_init.py`` names them.

    The engine's pipes stand high, where bubblewrap closes its copies: else the end of an
    engine's output would not be seen. What bubblewrap complains of is a report, too.
    """
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    kept = os.open(keep, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    wanted = [null, null, report, report, kept, null if lock < 0 else lock, *fds]
    if filtered:  # bubblewrap reads it to its end, and closes it
        wanted.append(os.memfd_create("filter"))
        os.write(wanted[-1], filtered)
        os.lseek(wanted[-1], 0, os.SEEK_SET)
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, MAX_FD_OF_SANDBOX) for fd in wanted]
    for target, fd in enumerate(moved):
        os.dup2(fd, target)
    os.closerange(len(wanted), MAX_FD)


def keep_directory(seat: str) -> str:
    """Make the directory for what a sandbox's scratch held at the end; return its path."""
    path = os.path.realpath(f"{seat}-{os.getpid()}")
    os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103 - as read()
    return path


def forget_empty(engine: Engine) -> None:
    """Remove the kept directory of a sandbox that left nothing; close its report."""
    close_kernel_log(engine)
    if engine.sandbox is None:
        return
    os.close(engine.sandbox.report_fd)
    try:
        os.rmdir(engine.sandbox.keep)  # noqa: PTH106 - as read()
    except OSError:
        return  # there is something in it: evidence


def settle(
    parent: int, cpus: list[int] | None, directory: str | None, limits: dict[str, int]
) -> None:
    """Make this process an engine's: own session, tied to the dead man, its own cores."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    give_up_rights()
    if os.getppid() != parent:
        os._exit(127)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if cpus:
        os.sched_setaffinity(0, cpus)
    if directory:
        os.chdir(directory)
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(number)[1]
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(number, (bound, bound))


def give_up_rights() -> None:
    """Drop the engine's capabilities and keyring; make it the out-of-memory killer's first choice.

    The kernel that wants memory shall take an engine first, never the referee or a link.
    """
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    number = KEYCTL.get(os.uname().machine)
    if number is not None:  # a container may refuse it: then there is no keyring to leave
        ctypes.CDLL(None).syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, b"1000")
        os.close(fd)
    except OSError:
        return  # a kernel that knows no such order


def fail(error: BaseException) -> NoReturn:
    """Report why no engine runs, and end without running anything of the parent's."""
    try:
        os.write(3, f"{error}".encode()[:4096] or b"unknown error")
    finally:
        os._exit(127)


def look(engine: Engine) -> None:
    """Note an engine's end without reaping it, so that its group keeps its number."""
    ended = os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return
    engine.ended_ns = boottime_ns()
    if engine.sandbox is not None:
        engine.sandbox.read()
        if engine.sandbox.ended:  # else the sandbox itself was killed: its end is the engine's
            engine.status = engine.sandbox.ended
            note_memory(engine)
            return
    number = ended.si_status
    if ended.si_code == os.CLD_EXITED:
        engine.status = f"exit {number}"
        if engine.sandbox is None or number - SIGNALLED not in signal.valid_signals():
            return
        # Its first process was killed, from outside; bubblewrap says so in its own way.
        number -= SIGNALLED
    engine.status = f"signal {signal_name(number)}"
    note_memory(engine)


def signal_name(number: int) -> str:
    """Return a signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def note_memory(engine: Engine) -> None:
    """Note whether the kernel killed the engine for want of memory, and not for its own greed."""
    if engine.status != "signal SIGKILL" or engine.killed_for:
        return
    memory_report = group_memory(engine.group)
    if memory_report is not None:
        engine.out_of_memory, engine.remark = memory_report
    elif named_as_killed(engine):
        engine.out_of_memory = True
    elif oom_kills() > engine.oom_before:
        engine.remark = (
            "the kernel has killed a process for want of memory meanwhile; nothing proves that it"
            " was this engine"
        )


def group_memory(group: str) -> tuple[bool, str] | None:
    """Say from an engine's control group whether the host's lack of memory killed it, and why not.

    ``None`` where the group counts no memory: then it does not tell.
    """
    try:
        events = counters(f"{group}/memory.events.local")
        whole = read(f"{group}/memory.oom.group").strip() == b"1"
    except OSError:
        return None
    if not whole:
        return None
    if not events.get("oom_kill"):
        return False, ""
    if events.get("oom"):
        return False, "the kernel killed it at the limit of its own memory"
    try:
        peak, share = int(read(f"{group}/memory.peak")), memory_share(group)
    except (OSError, ValueError):
        return True, ""
    if peak > share:
        return False, f"the kernel killed it: it took {peak >> 20} MiB, its share is {share >> 20}"
    return True, ""


def memory_share(group: str) -> int:
    """Return half of the memory that the engines' groups may have, in bytes."""
    fields = read("/proc/meminfo").split()
    most = int(fields[1]) << 10
    ancestor = group
    while ancestor.count("/") > 1:
        ancestor = ancestor.rpartition("/")[0]
        try:
            most = min(most, int(read(f"{ancestor}/memory.max")))
        except (OSError, ValueError):
            continue  # no such limit
    return most // 2


def open_kernel_log() -> int:
    """Open the kernel's log at its end, -1 where this process may not read it."""
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return -1
    os.lseek(fd, 0, os.SEEK_END)
    return fd


def close_kernel_log(engine: Engine) -> None:
    """Close an engine's view of the kernel's log."""
    if engine.kernel_log >= 0:
        os.close(engine.kernel_log)
        engine.kernel_log = -1


def named_as_killed(engine: Engine) -> bool:
    """Say whether the kernel's log names the engine itself among what it killed for memory."""
    kernel_line = f"Killed process {engine.leader} ".encode()
    while engine.kernel_log >= 0:
        try:
            head, _, text = os.read(engine.kernel_log, READ_BYTES).partition(b";")
        except BrokenPipeError:
            continue  # records that were overwritten; the next read goes on behind them
        except OSError:
            return False
        kernels = head.partition(b",")[0].isdigit() and int(head.split(b",")[0]) < KERNEL_LEVELS
        if kernels and b"ut of memory" in text and kernel_line in text:
            return True
    return False


def counters(path: str) -> dict[str, int]:
    """Read a file of the kernel's with a name and a number in each line."""
    rows = (line.split() for line in read(path).decode().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def process_table() -> list[Process]:
    """Read the process table; processes that end meanwhile are left out."""
    table = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = read(f"{entry.path}/stat").rpartition(b")")[2].split()
        except OSError:
            continue
        state, (parent, group, session) = fields[0].decode(), map(int, fields[1:4])
        table.append(Process(int(entry.name), state, parent, group, session))
    return table


def children(pid: int) -> list[int]:
    """Return a process's children, dead ones that nobody has reaped included.

    By the kernel's own lists, which cost the same on a host of any number of processes; by the
    process table where it keeps none (CONFIG_PROC_CHILDREN). The list is complete where nobody
    reaps meanwhile, as this process does not while it reads its own; else it is read again later.
    """
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):  # noqa: PTH110 - as read()
        return [process.pid for process in process_table() if process.parent == pid]
    listed: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - as read()
    except OSError:
        return listed
    for task in tasks:
        try:
            listed += map(int, read_all(f"/proc/{pid}/task/{task}/children").split())
        except OSError:
            continue  # this thread has ended
    return listed


def below(root: int) -> list[int]:
    """Return the living processes below one; of a family that grows as fast, those first met."""
    met: list[int] = []
    unread = children(root)
    while unread and len(met) < MOST_PROCESSES:
        met.append(unread.pop())
        unread += children(met[-1])
    return [pid for pid in met if state(pid) not in (b"", b"Z")]


def state(pid: int) -> bytes:
    """Return the letter of a process's state, b'' where there is none."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""


def descendants(root: int, table: list[Process]) -> set[int]:
    """Return a process and all below it."""
    tree, more = {root}, {root}
    while more:
        more = {process.pid for process in table if process.parent in more} - tree
        tree |= more
    return tree


def members(leader: int) -> list[int]:
    """Return the living processes of an engine: its tree, its group and its session."""
    table = process_table()
    tree = descendants(leader, table)
    return [
        process.pid
        for process in table
        if process.state != "Z"
        and (process.pid in tree or leader in (process.group, process.session))
    ]


def kill_all(pids: list[int]) -> None:
    """Send SIGKILL to each of the processes; those already gone are fine."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def kill_group(leader: int) -> None:
    """Send SIGKILL to an engine's process group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def reap() -> bool:
    """Reap every child that has ended; say whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """Set a process attribute with prctl; raise ``OSError`` when the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def oom_kills() -> int:
    """Return how many processes the kernel has killed for want of memory.

    Those of the own control group (version 2) and all below it, where the kernel tells;
    else those of the whole host since its boot.
    """
    try:
        own_group = next(
            line for line in read("/proc/self/cgroup").splitlines() if line[:3] == b"0::"
        )
        events = read(f"/sys/fs/cgroup{own_group[3:].decode()}/memory.events").split()
        return int(events[events.index(b"oom_kill") + 1])
    except (OSError, ValueError, StopIteration):
        return host_oom_kills()


def host_oom_kills() -> int:
    """Return how many processes of this host the kernel has killed for want of memory."""
    try:
        counters = read("/proc/vmstat").split()
        return int(counters[counters.index(b"oom_kill") + 1])
    except (OSError, ValueError):
        return 0


def read(path: str) -> bytes:
    """Read a small file of the kernel's (pathlib would double the start-up time)."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, READ_BYTES)
    finally:
        os.close(fd)


def read_all(path: str) -> bytes:
    """Read a file of the kernel's that gives a page at a time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, READ_BYTES), b""))
    finally:
        os.close(fd)


def boottime_ns() -> int:
    """Return CLOCK_BOOTTIME: it runs on while the host sleeps, and is never set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def write_line(path: str, line: str) -> None:
    """Append a line to a file and wait until it is on the disk."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, line.encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)


def _id_of(line: bytes) -> Any:
    try:
        return json.loads(line).get("id")
    except (ValueError, AttributeError):
        return None


def main(arguments: list[str]) -> int:
    """Run the dead man: ``--link-fd N --referee-fd N --log PATH --limit-ms N``.

    The two descriptors again for each further game. ``--lock-fd N`` where a hall is locked;
    ``--link-pid N`` where the link is not the parent, and ``--directory PATH`` where it starts
    elsewhere than in its own.
    """
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    options = dict(pairs)
    links = [int(value) for name, value in pairs if name == "--link-fd"]
    referees = [int(value) for name, value in pairs if name == "--referee-fd"]
    os.chdir(options.get("--directory", "."))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    limit_ns = int(options["--limit-ms"]) * 1_000_000
    lock_fd = int(options.get("--lock-fd", "-1"))
    link_pid = int(options.get("--link-pid", os.getppid()))
    listening = Listening()
    for link_fd, referee_fd in zip(links, referees, strict=True):
        referee = socket.socket(fileno=referee_fd)
        DeadMan(listening, link_fd, referee, options["--log"], limit_ns, lock_fd, link_pid)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # a terminal's; the link's end decides
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only wakes the poll
    signal.signal(signal.SIGTERM, listening.terminate)
    listening.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
