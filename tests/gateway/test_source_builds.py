"""Engines as git revisions: built in the sandbox, held to their bench, played to a decision."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator

import harness
import pytest
import remote_stage

from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.engines import sources
from worker_cpu.engines import source_build
from worker_cpu.remote import builder, gateway


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Make a repository of two revisions: a wrong sign on main, and its fix."""
    return remote_stage.repository(tmp_path_factory.mktemp("author"))


def test_two_revisions_are_built_and_played_to_a_decision(
    stage: remote_stage.Stage, recipe: pathlib.Path
) -> None:
    """A worker without an engine builds both from source, and plays them until SPRT has decided."""
    stage.one_host("gateway")
    stage.serve()
    match = stage.revisions(recipe, *remote_stage.QUICK)
    stage.wait(lambda: stage.batches.open_matches() or match.poll() is not None, "the match")
    stage.work("worker", "--build", engines=False)
    stage.wait(lambda: match.poll() is not None, "the decision")
    log = stage.log("match")
    facts = json.loads(log[log.index("{") :])
    assert (match.returncode, facts["verdict"], facts["failed_builds"]) == (0, "H1", [])
    assert "built from source" in stage.log("worker")
    shown = json.loads(
        harness.farm("match", "show", "m", "--json", env={"FARM_DATA": str(stage.root / "match")})
    )
    assert [one["bench"] for one in shown["builds"]] == [9323, 9324]
    assert {one["id"] for one in shown["sources"]} == {one["build"] for one in shown["builds"]}
    assert sum(shown["by_host"].values()) == facts["games"]
    environment = {"FARM_DATA": str(stage.root / "match")}
    refused = harness.farm("engine", "build", str(recipe), "wrong", code=3, env=environment)
    assert "its bench has 9323 nodes, where 7 are expected" in refused


def test_no_compiler_is_named_that_a_recipe_does_not_ask_for(
    recipe: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """What make runs by itself nobody knows."""
    text = recipe.read_text()
    recipe.write_text(text.replace('["make", "gcc"]', '["make"]'))
    try:
        built = harness.farm(
            "engine", "build", str(recipe), "fix", env={"FARM_DATA": str(tmp_path)}
        )
    finally:
        recipe.write_text(text)
    assert " s\n" in built
    assert " by " not in built


# -- a source that is hostile ------------------------------------------------------------------


def _tar(**entries: object) -> bytes:
    """Pack a source of one file, or of what its header says."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as file:
        entry = tarfile.TarInfo(str(entries.pop("name", "readme")))
        for field, value in entries.items():
            setattr(entry, field, value)
        file.addfile(entry)
    return raw.getvalue()


HOSTILE: dict[str, tuple[dict[str, object], str, str]] = {
    "up": ({"name": "../../etc/evil"}, "true", "cannot be unpacked"),
    "link": (
        {"name": "engine", "type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        "true",
        "leads out of the source",
    ),
    "fifo": ({"name": "engine", "type": tarfile.FIFOTYPE}, "true", "is no file"),
    "nothing": ({}, "true", "has left no engine"),
    "fork": ({}, "b() { b | b & }; b; exit 3", "ended with"),
    "memory": (  # each tail keeps what it was given, and prints it only when its input ends
        {},
        "b() { (head -c 40000000 /dev/zero; sleep 60) | tail; }; b & b & sleep 60",
        "MiB together, where 64 are allowed",
    ),
    "network": ({}, "exec 3<>/dev/tcp/127.0.0.1/22 || exit 4", "ended with"),
    "time": ({}, "sleep 60", "took more than"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_source_harms_nobody(case: str, tmp_path: pathlib.Path) -> None:
    """It is refused with the reason; nothing of it runs on, or lies outside of its sandbox."""
    header, make, why = HOSTILE[case]
    store = sources.Store(tmp_path / "sources")
    archive = store.add(iter([_tar(**header)]))
    build = remote.SourceBuild(
        name=case,
        commit="",
        archive=archive,
        make=make,
        program="engine",
        seconds=1 if case == "time" else 600,
        memory_mb=64 if case == "memory" else 1_024,  # as many shells as are let have 100 MiB
        bench=1,
    )
    cache = source_build.Cache(tmp_path / "builds")
    built = source_build.make(build, {archive: store.path(archive)}, cache)
    assert why in built.why, built
    assert cache.get(build.id) == built, "it is not tried again at once"
    assert {path.name for path in (tmp_path / "builds").iterdir()} == {build.id, "lock"}


def test_an_interpreter_that_the_sandbox_does_not_see_is_named(tmp_path: pathlib.Path) -> None:
    """The built script is there, what runs it lies where the sandbox shows nothing."""
    hidden = tmp_path / "venv" / "python"
    hidden.parent.mkdir()
    shutil.copy("/bin/sh", hidden)
    store = sources.Store(tmp_path / "sources")
    archive = store.add(iter([_tar()]))

    def why(interpreter: str) -> str:
        build = remote.SourceBuild(
            name="Pebble",
            commit="",
            archive=archive,
            make=f"mkdir -p bin && printf '#!{interpreter}\\n' > bin/pebble && chmod +x bin/pebble",
            program="bin/pebble",
            bench=1,
        )
        cache = source_build.Cache(tmp_path / "builds")
        built = source_build.make(build, {archive: store.path(archive)}, cache)
        assert "No such file" not in built.log
        return built.why

    unseen = f"'bin/pebble', or its interpreter '{hidden}', cannot be seen in the sandbox"
    assert why(str(hidden)) == unseen
    missing = f"'bin/pebble' is there, but its interpreter '{tmp_path}/none' is missing"
    assert why(f"{tmp_path}/none") == missing
    called = "its bench (bin/pebble bench) tells no nodes"
    assert why("/bin/sh") == f"{called}: it has to print a line such as `1460 nodes`"


@pytest.mark.parametrize(
    ("said", "nodes"),
    [
        ("4321 nodes 1000 nps", 4321),
        ("Nodes searched  : 2030154\nNodes/second    : 1234567", 2030154),
        ("info depth 9 nodes 77 nps 9 pv e2e4\nbestmove e2e4", 77),
        ("Bench: done\n1000000 nodes/second", None),
        ("nodes: 12\nnodes: 13", 13),
        ("", None),
    ],
)
def test_the_nodes_of_a_bench_are_read(said: str, nodes: int | None) -> None:
    """As OpenBench's clients find them in engines' words."""
    assert source_build.nodes(said) == nodes


def test_sources_that_are_used_or_held_stay(tmp_path: pathlib.Path) -> None:
    """What is served or added again was used; what an open match holds is never deleted."""
    store = sources.Store(tmp_path, most_bytes=400)

    def add(content: bytes) -> str:
        digest = store.add(iter([content * 100]))
        os.utime(tmp_path / digest, (1, 1))
        return digest

    held, served, added, unused = map(add, (b"1", b"2", b"3", b"4"))
    assert store.size(served) == 100
    assert store.add(iter([b"3" * 100])) == added
    with store.held([held, "0" * 64]):
        new = store.add(iter([b"5" * 100]))
    assert [store.has(one) for one in (held, served, added, unused, new)] == [
        *[True] * 3,
        False,
        True,
    ]


def test_a_local_repository_runs_nothing_here(tmp_path: pathlib.Path) -> None:
    """Its configuration names a filter and its commit asks for it: the source is as committed."""
    home = tmp_path / "local repository"
    git = ("git", "-C", str(home), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(("git", "init", "--quiet", "--initial-branch=main", str(home)), check=True)
    (home / ".gitattributes").write_text("engine filter=evil\n")
    (home / "engine").write_text("as committed")
    subprocess.run((*git, "add", "."), check=True)
    subprocess.run((*git, "commit", "--quiet", "-m", "one\n\nBench: 7"), check=True)
    ran = tmp_path / "ran"
    evil = (*git, "config", "filter.evil.smudge", f"touch {ran}; echo evil")
    subprocess.run(evil, check=True)
    store = sources.Store(tmp_path / "sources")
    found = {name: sources.look_up(store, str(home), name) for name in ("main", "HEAD")}
    assert {(one.bench, len(one.commit)) for one in found.values()} == {(7, 40)}
    with tarfile.open(store.path(found["main"].archive)) as packed:
        file = packed.extractfile("engine")
        assert file is not None
        assert file.read() == b"as committed"
    assert not ran.exists()


class Lacking:
    """A gateway that gives another file than is wanted, or none."""

    def __init__(self, given: bytes | None) -> None:
        self.given = given
        self.told: list[remote.BuildTold] = []

    def fetch(self, _: str) -> Iterator[bytes]:
        """Give a source."""
        if self.given is None:
            raise gateway.BatchOverError("no such file")
        yield self.given

    def built(self, told: remote.BuildTold) -> None:
        """Hear of a build."""
        self.told.append(told)


@pytest.mark.parametrize(("given", "why"), [(None, "is not there"), (b"x", "came as")])
def test_a_source_that_cannot_be_had_is_declined(
    tmp_path: pathlib.Path, given: bytes | None, why: str
) -> None:
    """The gateway is told, and asks for something else: the worker is free to play."""
    source = remote.SourceBuild(
        name="e", commit="", archive="a" * 64, make="true", program="e", bench=1
    )
    there, made = Lacking(given), builder.Builder(tmp_path, ())
    made.want("m", (source,))
    said = made.begin(there)  # type: ignore[arg-type]
    made.tell(there, "box")  # type: ignore[arg-type]
    assert why in said[0]
    assert [(one.build, why in one.why) for one in there.told] == [(source.id, True)]
    assert (made.declined(), made.busy) == ((source.id,), False)


def test_a_program_that_has_changed_is_built_again(tmp_path: pathlib.Path) -> None:
    """The cache gives what it was given, keeps to its bound, and drops what was used least."""
    cache = source_build.Cache(tmp_path, most_bytes=4_000)
    for name in ("a" * 64, "b" * 64):
        program = tmp_path / "new"
        program.write_bytes(name.encode() * 20)
        sha256 = source_build.files.Checksums().of(program)
        cache.put(source_build.Built(name, "", sha256, 1, 0.0, "", "", ""), program)
        os.utime(tmp_path / name / "built.json", (1, 1))
    assert [built.build[0] for built in cache.all()] == ["a", "b"], "none of them is used by it"
    known = cache.get("b" * 64)
    assert known is not None
    program = tmp_path / "big"
    program.write_bytes(b"x" * 2_000)
    cache.put(source_build.Built("c" * 64, "", "", 1, 0.0, "", "", ""), program)
    assert cache.get("a" * 64) is None, "used longest ago"
    program.write_bytes(b"x" * 4_000)
    with cache.held(["b" * 64]):
        cache.put(source_build.Built("d" * 64, "", "", 1, 0.0, "", "", ""), program)
    assert cache.get("b" * 64) == known, "it is played"
    pathlib.Path(known.program).write_bytes(b"changed")
    assert cache.get("b" * 64) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('program = "../engine"\nmake = "make"', "below the source tree"),
        ('program = "engine"', "either make, or binaries"),
        ('program = "engine"\nbinaries = { z80 = "e" }', "found z80"),
        ('program = "engine"\nmake = "make"\ncompiler = "gcc"', "compiler"),
    ],
)
def test_a_recipe_that_is_wrong_is_refused(tmp_path: pathlib.Path, text: str, why: str) -> None:
    """By its key, with what is allowed."""
    place = tmp_path / "recipe.toml"
    place.write_text(text)
    with pytest.raises(errors.UsageError, match=why):
        sources.Recipe.read(place)


def test_a_revision_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    """Git's own words for it name nothing."""
    remote_stage.repository(tmp_path)
    with pytest.raises(errors.UsageError, match="tiny: has no branch, tag or commit 'mian'"):
        sources.look_up(sources.Store(tmp_path / "store"), str(tmp_path / "tiny"), "mian")


@pytest.mark.parametrize("name", ["-x", "--upload-pack=x", "a..b", "a:b", ""])
def test_a_revision_is_no_option_of_git(tmp_path: pathlib.Path, name: str) -> None:
    """What git would take for anything but one revision is refused before git hears of it."""
    with pytest.raises(errors.UsageError, match="a branch, a tag or a commit"):
        sources.look_up(sources.Store(tmp_path), str(tmp_path), name)
