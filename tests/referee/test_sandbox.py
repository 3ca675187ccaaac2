"""The sandbox: a hostile engine tries each thing, reaches nothing, and the game is judged.

The same deeds in a plain process group tell what that holds, and what it does not.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import hall
import harness
import hostile_hall as hostile
import pytest

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu import settings
from worker_cpu.engines import mounts, sandbox


def test_an_engine_has_no_rights_and_nothing_of_the_farm(
    boxed: Callable[..., hall.Played],
) -> None:
    """No capability, no privilege to gain, three descriptors, no user or secret of the farm's."""
    played = boxed("look")
    seen = hostile.engine_output(played)
    assert played.outcome.ending == hostile.MATED
    assert played.report("white").sandbox == "bubblewrap"
    assert {seen[name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert seen["NoNewPrivs"] == "1"
    assert set(seen["Uid"].split()) != {"0"}
    assert set(seen["fds"]) <= {"0", "1", "2", "3"}  # the fourth lists them
    assert not [name for name in seen["environment"] if name.startswith(("FARM_R", "FARM_D"))]


def test_a_swarm_is_bounded_and_dies_with_its_game(boxed: Callable[..., hall.Played]) -> None:
    """An engine that forks is refused at the limit; its game goes on, its swarm is reaped."""
    played = boxed("swarm")
    assert 0 < hostile.engine_output(played)["born"] < hostile.LIMITS["processes"]
    assert played.outcome.ending == hostile.MATED


def test_a_full_disk_is_the_engines_own(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """All an engine can write is its scratch, up to its limit; nothing else takes a byte."""
    others = [str(place.root / "hostile"), str(place.hall), "/", "/usr", "/dev"]
    written = hostile.engine_output(boxed("disk", "/scratch", "/tmp", "/dev/shm", *others))
    bound = hostile.LIMITS["scratch_mb"] << 20
    assert 0 < written["/scratch"] <= bound
    assert max(written["/tmp"], written["/dev/shm"]) <= bound
    assert {written[path] for path in others} == {0}


def test_memory_is_bounded(boxed: Callable[..., hall.Played]) -> None:
    """An engine that eats memory is refused at its limit, and plays on."""
    played = boxed("memory")
    assert hostile.engine_output(played) == {
        "mb": pytest.approx(hostile.LIMITS["memory_mb"], rel=0.5),
        "refused": True,
    }
    assert played.outcome.ending == hostile.MATED


def test_no_socket_leads_out(place: hostile.Place, boxed: Callable[..., hall.Played]) -> None:
    """Neither unix sockets (Redis'), with a path or without, nor ports, nor a network."""
    with (
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket() as port,
    ):
        name = f"farm-test-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        unix.bind(str(place.hall / "redis.sock"))
        unix.listen()
        port.bind(("127.0.0.1", 0))
        port.listen()
        number = str(port.getsockname()[1])
        reached = hostile.engine_output(
            boxed("sockets", str(place.hall / "redis.sock"), name, number)
        )
    assert reached.pop("interfaces") in ([], ["lo"])
    assert not any(reached.values())


def test_only_its_own_files_are_readable(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """It reads its network; not the opponent's, not the hall, not homes, not accounts."""
    own = str(place.root / "hostile" / "secret.nn")
    foreign = [
        str(place.root / "mating" / "secret.nn"),
        str(place.root / "mating" / "mating.py"),
        str(place.hall / "redis.password"),
        *(str(pathlib.Path.home() / ".profile"), "/etc/passwd", "/proc/1/environ"),
        "/var/lib/dpkg/status",  # "/var" itself is there, and empty, where the clone lies below it
    ]
    found = hostile.engine_output(boxed("read", own, *foreign))
    assert found.pop(own) is True
    assert not any(found[path] for path in foreign)


def test_opponents_within_an_own_directory_are_covered(
    place: hostile.Place, boxed: Callable[..., hall.Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine whose directory holds the hall and the opponent still sees neither."""
    spec = place.spec

    def wide(name: str, *arguments: str) -> contract.EngineSpec:
        made = spec(name, *arguments)
        return made.model_copy(update={"directory": str(place.root)}) if arguments[1:] else made

    monkeypatch.setattr(place, "spec", wide)
    place.root.chmod(0o755)  # root's engines are no user's: what they run, all may read
    own, other = (str(place.root / name / "secret.nn") for name in ("hostile", "mating"))
    hidden = str(place.hall / "redis.password")
    found = hostile.engine_output(boxed("read", own, other, str(place.hall), hidden))
    assert found == {own: True, other: False, str(place.hall): False, hidden: False}


class SharedFolder:
    """A person's folder: an engine's program beside the farm's data, a season file and books.

    The hall's confinement is made from its environment, as `farm up` gives it.
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        root.chmod(0o755)
        data = root / ".farm"
        self.private = [
            self._write(".farm/redis/appendonlydir/farm.aof"),
            self._write(".farm/archive/s/journal.jsonl"),
            self._write(".farm/halls/hall-1/spool/x"),
            self._write("old-farm/archive/s/journal.jsonl"),
            self._write("season.toml", 'id = "s"\n\n[[event]]\nid = "league"\n'),
            self._write("lists/roster.toml", '[[engine]]\nid = "a"\n'),
            self._write("book.pgn"),
            self._write("openings/final.EPD.gz"),
            self._write(".git/HEAD"),
        ]
        (root / "link.txt").symlink_to(root / "book.pgn")
        self.private.append(root / "link.txt")
        self.network = self._write("hostile.nnue")
        self.program = root / "hostile.py"
        source = (hostile.ENGINES / "hostile.py").read_text()
        self.program.write_text(f"#!{mounts.interpreter()} -ISu\n{source}")
        self.program.chmod(0o755)
        self.socket = data / "redis" / "redis.sock"
        self.confinement = settings.from_environment(
            {"FARM_DATA": str(data), "FARM_REDIS_URL": f"unix://{self.socket}"}
        ).confinement()

    def _write(self, name: str, text: str = "secret") -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def play(self, directory: str | None, *deed: str) -> dict[str, Any]:
        """Let the engine do a deed in a game; return what came of it."""
        spec = contract.EngineSpec(
            id="hostile", name="hostile", command=(str(self.program), *deed), directory=directory
        )
        mating = str(hostile.ENGINES / "mating.py")
        other = contract.EngineSpec(
            id="mating", name="mating", command=(sys.executable, "-ISu", mating, "bad")
        )
        with hall.opened(self.root / "hall", confinement=self.confinement) as opened:
            return hostile.engine_output(opened.play(hall.order(spec, other)))


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("named", [False, True], ids=["program", "directory"])
def test_the_farms_files_are_hidden_beside_an_engine(
    tmp_path: pathlib.Path, *, named: bool
) -> None:
    """`farm up` in the folder of an engine: it sees its program and network, nothing of the farm's.

    Neither Redis' socket, journals, season files nor books, whether its folder is granted for
    its program or by its entry's `directory`.
    """
    folder = SharedFolder(tmp_path)
    (tmp_path / "hall").mkdir()
    directory = str(tmp_path) if named else None
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder.socket))
        unix.listen()
        reached = folder.play(directory, "sockets", f"@{folder.socket}", "none", "1")
    assert not reached["unix"]
    own = [folder.program, folder.network]
    seen = folder.play(directory, "read", *(f"@{path}" for path in [*own, *folder.private]))
    assert {path for path in own if not seen[str(path)]} == set()
    assert {path for path in folder.private if seen[str(path)]} == set()


def test_a_hall_without_redis_hides_no_folder_for_its_socket(tmp_path: pathlib.Path) -> None:
    """The address of no Redis names no file, and so not the folder that one stands in."""
    places = mounts.farm_places({}, tmp_path, "unix://")
    assert str(pathlib.Path.cwd()) not in places
    assert str(tmp_path / "archive") in places


def test_a_folder_with_nothing_private_is_granted_whole(tmp_path: pathlib.Path) -> None:
    """Files that an engine makes or loads later are seen there, as before."""
    program = tmp_path / "engine"
    program.touch(0o755)
    (tmp_path / "nets").mkdir()
    (tmp_path / "engine.toml").write_text("[engine]\nthreads = 4\n[search]\ndepth = 3\n")
    spec = contract.EngineSpec(id="a", name="a", command=(str(program),))
    other = contract.EngineSpec(id="b", name="b", command=("/nowhere/b",))
    assert str(tmp_path) in mounts.grants(spec, other, "")
    (tmp_path / "games.pgn").touch()
    assert mounts.grants(spec, other, "") == [str(program)]


def test_what_is_written_beside_an_engine_is_none_of_its_files(tmp_path: pathlib.Path) -> None:
    """The other names under which the farm writes files come and go: no sandbox is made of them."""
    names = ("g.pgn", "g.pgn.jsonl", "g.pgn.jsonl.last", "g.pgn.jsonl.last.tmp", "net.nnue.tmp")
    for name in ("engine", *names):
        (tmp_path / name).touch(0o755)
    spec = contract.EngineSpec(id="a", name="a", command=("./engine",), directory=str(tmp_path))
    other = contract.EngineSpec(id="b", name="b", command=("/nowhere/b",))
    granted = {pathlib.Path(path).name for path in mounts.grants(spec, other, "")}
    assert granted == {"engine", "g.pgn.jsonl"}
    (tmp_path / "g.pgn").unlink()
    assert str(tmp_path) in mounts.grants(spec, other, ""), "nor do they divide a folder"


@pytest.mark.parametrize("kind", ["file", "folder", "season"])
def test_what_vanishes_while_a_folder_is_looked_through_ends_no_start(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Others write there, too: what is gone when it is looked at is as if it had not been there."""
    (tmp_path / "engine").touch(0o755)
    gone = tmp_path / ("gone.toml" if kind == "season" else "gone")
    listed = os.scandir

    def scandir(folder: str) -> list[os.DirEntry[str]]:
        if folder != str(tmp_path):
            return list(listed(folder))
        if kind == "folder":
            gone.mkdir()
        else:
            gone.touch()
        entries = list(listed(folder))
        gone.rmdir() if kind == "folder" else gone.unlink()
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    spec = contract.EngineSpec(id="a", name="a", command=("./engine",), directory=str(tmp_path))
    granted = mounts.grants(spec, spec, "")
    assert str(tmp_path) in granted
    assert not [path for path in granted if "gone" in path]


@pytest.mark.usefixtures("bubblewrap")
def test_what_vanishes_before_the_sandbox_is_made_ends_no_start(tmp_path: pathlib.Path) -> None:
    """It is found while the folder is looked through, and gone when the program is started."""
    (tmp_path / "there").touch()
    own = [str(tmp_path / "gone"), str(tmp_path / "there")]
    made = sandbox.wrapper(sandbox.describe().program, sandbox.Confinement("bubblewrap"), own, [])
    done = subprocess.run(
        [*made, "/bin/ls", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr


@pytest.mark.parametrize("link", ["data", "folder", "around"])
def test_the_farms_data_is_hidden_by_whatever_way_it_is_reached(
    tmp_path: pathlib.Path, link: str
) -> None:
    """Data below an engine's folder, where either is named by a link, or by one above both."""
    home = tmp_path / "home"
    data = home / "engines" / "mine" / "stored"
    for name in ("archive/s/games/g", "redis/appendonlydir", "halls/main/attempts", "logs"):
        (data / name).mkdir(parents=True)
    attempt = data / "halls" / "main" / "attempts" / "a.plies.jsonl"
    aof = data / "redis" / "appendonlydir" / "appendonly.aof.1.incr.aof"
    for path in (attempt, aof, data / "notify.toml"):
        path.write_text("x")
    program = home / "engines" / "mine" / "engine"
    program.touch(0o755)
    (program.parent / "net.nnue").touch()
    named, folder = data, program.parent
    if link == "data":
        named = tmp_path / "farm-data"
        named.symlink_to(data)
    elif link == "folder":
        folder = tmp_path / "engine"
        folder.symlink_to(program.parent)
    else:
        (tmp_path / "other").symlink_to(home)
        folder = tmp_path / "other" / "engines" / "mine"
    spec = contract.EngineSpec(id="a", name="a", command=("./engine",), directory=str(folder))
    other = contract.EngineSpec(id="b", name="b", command=("/nowhere/b",))
    hidden = (*mounts.farm_places({}, named, ""), str(named))
    granted = [os.path.realpath(path) for path in mounts.grants(spec, other, "", hidden)]
    assert str(program) in granted
    assert str(program.parent / "net.nnue") in granted
    seen = [
        path for path in granted if mounts.within(str(data), path) or mounts.within(path, str(data))
    ]
    assert not seen


def test_a_book_that_the_entry_names_is_the_engines_own(tmp_path: pathlib.Path) -> None:
    """What an option or argument names is granted, whatever it looks like; its neighbour is not."""
    for name in ("engine", "own.pgn", "other.pgn"):
        (tmp_path / name).touch(0o755)
    spec = contract.EngineSpec(
        id="a",
        name="a",
        command=(str(tmp_path / "engine"),),
        directory=str(tmp_path),
        options={"Book File": str(tmp_path / "own.pgn")},
    )
    other = contract.EngineSpec(id="b", name="b", command=("/nowhere/b",))
    assert set(mounts.grants(spec, other, "")) == {
        str(tmp_path / "engine"),
        str(tmp_path / "own.pgn"),
    }


def test_a_directory_with_too_much_in_it_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not looked through for ever; the message names it and says what to do."""
    monkeypatch.setattr(mounts, "ENTRIES", 10)
    for number in range(11):
        (tmp_path / f"file-{number}").touch()
    spec = contract.EngineSpec(id="a", name="a", command=("./x",), directory=str(tmp_path))
    with pytest.raises(errors.HostError, match=f"{tmp_path} holds more than 10 files"):
        mounts.grants(spec, spec, "")


def test_nothing_that_runs_can_be_written_to(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """Its own program, its interpreter and its network are read-only."""
    assert not any(
        hostile.engine_output(boxed("write", str(place.root / "hostile" / "secret.nn"))).values()
    )


def test_signals_reach_nobody(boxed: Callable[..., hall.Played]) -> None:
    """Dead man, referee and this test have no number in the sandbox; process 1 is immune."""

    def processes(opened: hall.Hall) -> tuple[str, ...]:
        return tuple(map(str, (opened.dead_man.pid, opened.referee.pid, os.getpid())))

    played = boxed("signals", on_open=processes)
    seen = hostile.engine_output(played)
    assert not any(seen["reached"].values())
    assert len(seen["seen"]) == 2
    assert played.outcome.ending == hostile.MATED


def test_nobody_can_be_traced(boxed: Callable[..., hall.Played]) -> None:
    """The sandbox's first process shows neither memory nor descriptors (the hall's lock)."""
    seen = hostile.engine_output(boxed("trace", "2"))
    assert seen["1"] == []
    assert seen["2"], "it may look into itself: what was tried works"


@pytest.mark.parametrize(
    ("deed", "ending"),
    [(["survive"], hostile.MATED), (["survive", "1"], "disconnect"), (["leave"], hostile.MATED)],
)
def test_nobody_outlives_the_game(
    boxed: Callable[..., hall.Played], deed: list[str], ending: str
) -> None:
    """Orphans of another session or group end with their engine, however it ends."""
    assert boxed(*deed).outcome.ending == ending


def test_a_flood_costs_nothing(boxed: Callable[..., hall.Played]) -> None:
    """60 MB of output hold neither the referee nor the game up."""
    played = boxed("flood")
    assert hostile.engine_output(played) == {"flooded": True}
    assert played.outcome.ending == hostile.MATED


def test_closed_pipes_are_seen_at_once(boxed: Callable[..., hall.Played]) -> None:
    """No process of the sandbox holds an engine's pipe open for it."""
    outcome = boxed("close").outcome
    assert (outcome.ending, outcome.note) == ("disconnect", "closed its pipes but runs on")


@pytest.mark.parametrize("how", ["137", "SIGSEGV", "SIGKILL"])
def test_exit_status_and_signal_are_exact(boxed: Callable[..., hall.Played], how: str) -> None:
    """An exit with 137 is no SIGKILL, and the other way round."""
    played = boxed("end", how)
    status = f"exit {how}" if how.isdigit() else f"signal {how}"
    assert played.outcome.note == status
    assert played.report("white").exit == status


def test_a_scratch_is_kept_after_a_fault(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """Plain files are saved, for this user only; pipes and links are not."""
    boxed("litter")
    assert place.kept() == ["note.txt"]
    (note,) = place.hall.glob("white-*/note.txt")
    assert note.read_text() == "what the engine wrote last"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600


def test_holes_in_a_scratch_fill_no_disk(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """A thousand files of nothing that say to be 8 MB each: what is saved of them is bounded."""
    boxed("holes")
    kept = [path.stat() for path in place.hall.glob("white-*/*")]
    limit = hostile.LIMITS["scratch_mb"] << 20
    assert sum(one.st_size for one in kept) <= 2 * limit
    assert sum(one.st_blocks for one in kept) * 512 <= 2 * limit


def test_a_clean_engine_leaves_nothing(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """Where nothing was written, not even a directory is left."""
    boxed("look")
    assert list(place.hall.glob("white-*")) == []


def test_a_stall_is_ended_with_its_scratch_saved(
    place: hostile.Place, boxed: Callable[..., hall.Played]
) -> None:
    """The farm's own kill ends the engine first and lets its sandbox save the scratch."""
    played = boxed("litter", "SIGSTOP", base_ms=2_000)
    assert played.outcome.ending in {"stall", "time"}
    assert place.kept() == ["note.txt"]


@pytest.mark.usefixtures("bubblewrap")
def test_a_killed_dead_man_takes_sandboxes_with_it(place: hostile.Place) -> None:
    """Without the dead man no process of a sandbox lives on; the game is interrupted."""
    with hall.opened(place.hall, confinement=place.confinement("bubblewrap")) as opened:
        order = place.order("litter", "SIGSTOP")

        def kill(frame: Any) -> None:
            if frame.kind.name == "THINK":
                opened.dead_man.kill()

        played = opened.play(order, kill)
    assert played.interrupted is not None
    assert played.interrupted["cause"] == "engines' supervisor lost"
    # The kernel kills them one after the other.
    harness.wait(lambda: not hall.survivors(order.game), "the end of every process")


@pytest.mark.usefixtures("bubblewrap")
def test_a_sandbox_that_fails_is_the_hosts_fault(place: hostile.Place) -> None:
    """An order that needs a sandbox is not played without one; nobody loses by it."""
    with hall.opened(place.hall, confinement=place.confinement("plain")) as opened:
        played = opened.play(place.order("look", sandbox="bubblewrap"))
    assert played.finished is None
    assert played.interrupted is not None
    assert played.interrupted["cause"] == "no sandbox"


def test_files_that_only_root_reads_are_the_hosts_fault(tmp_path: pathlib.Path) -> None:
    """What root's engines, who are nobody, could not read is refused with what to do."""
    tmp_path.chmod(0o755)
    sandbox._check_readable([str(tmp_path)])
    tmp_path.chmod(0o700)
    with pytest.raises(sandbox.UnreadableError, match=r"chmod -R a\+rX"):
        sandbox._check_readable([str(tmp_path)])


def test_a_program_that_is_not_there_loses_its_game(
    place: hostile.Place, boxed: Callable[..., hall.Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be started inside is told by its own error, as without a sandbox."""
    broken = contract.EngineSpec(id="x", name="X", command=("/usr/games/no-such-engine",))
    monkeypatch.setattr(place, "spec", lambda *_, **__: broken)
    outcome = boxed("look").outcome
    assert outcome.ending == "disconnect"
    assert "No such file" in outcome.note


def test_an_interpreter_that_cannot_be_seen_inside_is_named(
    place: hostile.Place,
    boxed: Callable[..., hall.Played],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The script is there, its interpreter lies where the sandbox shows nothing."""
    hidden = tmp_path_factory.mktemp("hidden") / "sh"
    shutil.copy("/bin/sh", hidden)
    script = tmp_path_factory.mktemp("seen") / "engine"
    script.write_text(f"#!{hidden}\n")
    script.chmod(0o755)
    script.parent.chmod(0o755)
    broken = contract.EngineSpec(id="x", name="X", command=(str(script),))
    monkeypatch.setattr(place, "spec", lambda *_, **__: broken)
    note = boxed("look").outcome.note
    assert f"'{script}', or its interpreter '{hidden}', cannot be seen in the sandbox" in note


@pytest.mark.usefixtures("bubblewrap")
def test_a_real_engine_plays_in_its_sandbox(place: hostile.Place) -> None:
    """An installed engine finds its libraries; a whole game is played by both."""
    spec = hall.installed("stockfish")
    order = hall.order(
        spec.model_copy(update={"options": {"Hash": 16}}),
        place.spec("mating", "bad"),
        time_control=contract.TimeControl(base_ms=1_000, increment_ms=100),
        time_margin_ms=20_000,
    )
    with hall.opened(place.hall, confinement=sandbox.Confinement("bubblewrap")) as opened:
        played = opened.play(order)
    assert len(played.plies) >= 4
    assert played.report("white").exit == "exit 0"


@pytest.mark.usefixtures("bubblewrap")
def test_a_match_is_played_in_sandboxes_on_demand(tmp_path: pathlib.Path) -> None:
    """``farm match -sandbox bubblewrap`` plays its pair, both engines sandboxed."""
    program = f"cmd={sys.executable} arg={hostile.ENGINES / 'mating.py'} arg="
    words = [f"-engine name=A {program}good", f"-engine name=B {program}bad"]
    words += ["-each proto=uci tc=10", "-games 2 -rounds 1 -sandbox bubblewrap -journal j.jsonl"]
    text = "from orchestrator.commands import main; main()"
    tmp_path.chmod(0o755)  # root's engines are no user's: what they run in, all may read
    done = subprocess.run(
        [sys.executable, "-c", text, "match", *" ".join(words).split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "j.jsonl").read_text().count('"ending":"checkmate"') == 2, done.stdout


# -- choosing --------------------------------------------------------------------------


def test_where_bubblewrap_fails_it_is_plain_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without a working sandbox says why; one that must have it refuses."""
    sandbox.describe.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/bin/false")
    try:
        assert sandbox.describe().kind == "plain"
        assert sandbox.choose("auto") == "plain"
        with pytest.raises(errors.HostError, match="no bubblewrap sandbox works"):
            sandbox.choose("bubblewrap")
    finally:
        sandbox.describe.cache_clear()


# A process that may not name its host, as systemd's ProtectHostname= and @system-service have it.
PROTECTED = """
import ctypes, struct, sys
from worker_cpu import settings
from worker_cpu.engines import mounts, sandbox
one = lambda code, value, yes=0, no=0: struct.pack("=HBBI", code, yes, no, value)
refusal = 0x00050001  # SECCOMP_RET_ERRNO, EPERM
told = one(0x20, 0) + one(0x15, int(sys.argv[1]), 0, 1) + one(0x06, refusal) + one(0x06, 0x7FFF0000)
code = ctypes.create_string_buffer(told, len(told))
program = struct.pack("HxxxxxxP", len(told) // 8, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, a filter
print(sandbox.describe())
"""
SETHOSTNAME = {"x86_64": 170, "aarch64": 161}


def test_the_sandbox_works_where_nobody_may_name_the_host() -> None:
    """The units protect the host's name (``ProtectHostname=``): a sandbox needs none of its own."""
    number = SETHOSTNAME.get(os.uname().machine)
    if number is None or sandbox.describe().kind != "bubblewrap":
        pytest.skip("hardware: no sandbox or no filter on this machine")
    words = [sys.executable, "-c", PROTECTED, str(number)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "kind='bubblewrap'" in done.stdout, done.stdout + done.stderr


def test_a_confinement_travels_as_one_word() -> None:
    """Encoded and decoded it is the same, spaces in paths included."""
    made = sandbox.Confinement("plain", 7, 8, 9, ("/a b", "/c"))
    assert sandbox.Confinement.decode(made.encode()) == made
    assert len(made.encode().split()) == 1


# -- plain ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "ending"),
    [
        (["swarm", "200"], hostile.MATED),
        (["survive"], hostile.MATED),
        (["survive", "1"], "disconnect"),
        (["leave"], hostile.MATED),
        (["flood"], hostile.MATED),
        (["close"], "disconnect"),
        (["end", "137"], "disconnect"),
    ],
)
def test_a_plain_group_leaves_nobody_behind(
    place: hostile.Place, deed: list[str], ending: str
) -> None:
    """Swarms, orphans and floods end with their game in a plain process group, too."""
    played = place.play("plain", *deed)
    assert played.outcome.ending == ending
    assert played.report("white").sandbox == "plain"


def test_a_plain_engine_is_bounded_in_memory_and_files(place: hostile.Place) -> None:
    """Resource limits hold without a sandbox: memory a process, bytes a file."""
    assert hostile.engine_output(place.play("plain", "memory"))["refused"] is True
    scratch = place.root / "out"
    scratch.mkdir()
    place.play("plain", "disk", str(scratch))
    assert (
        max(file.stat().st_size for file in scratch.iterdir()) == hostile.LIMITS["scratch_mb"] << 20
    )
    shutil.rmtree(scratch)


def test_a_plain_engine_reads_what_its_user_reads(place: hostile.Place) -> None:
    """What plain does not hold: files and sockets of its user. Official seasons may refuse it."""
    secret = str(place.hall / "redis.password")
    assert hostile.engine_output(place.play("plain", "read", secret)) == {secret: True}


def test_an_own_engine_that_a_link_leads_to_sees_its_environment(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An install's ``venv`` is a link to the release: engines get both, whatever names them."""
    release = tmp_path / "releases/1/venv"
    (release / "bin").mkdir(parents=True)
    (release / "bin/farm-engine").touch(mode=0o755)
    (tmp_path / "venv").symlink_to(release)
    monkeypatch.setattr(sys, "prefix", str(release))
    spec = contract.EngineSpec(id="own", name="own", command=("farm-engine",))
    for search in (release / "bin", tmp_path / "venv/bin"):
        granted = mounts.grants(spec, spec, str(search))
        assert {str(release), str(search.parent)} <= set(granted), search
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv/bin'}:/usr/bin")
    mounts.prefer_own_programs()
    assert shutil.which("farm-engine") == str(release / "bin/farm-engine")
