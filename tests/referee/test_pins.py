"""The hall holds engines against their pins, and chooses the build for its processor."""

from __future__ import annotations

import hashlib
import os
import pathlib
import types
from typing import Any

import made
import pytest

from orchestrator import contract
from orchestrator.common import errors, files
from worker_cpu.hall import checksums


def spec(folder: pathlib.Path, **more: Any) -> contract.EngineSpec:
    """Return an engine in a folder, with a program and a network."""
    (folder / "engine").write_bytes(b"program")
    (folder / "net.nn").write_bytes(b"weights")
    told = {"id": "a", "name": "Engine A", "command": ("./engine",), "directory": str(folder)}
    return contract.EngineSpec.model_validate(told | {"network": "net.nn"} | more)


def order(white: contract.EngineSpec) -> contract.GameOrder:
    """Return the order of a game against an engine that is not there."""
    black = contract.EngineSpec(id="b", name="Engine B", command=("no-such-engine",))
    return made.order(white, black)


def sha(content: bytes) -> str:
    """Return a checksum as the roster writes it."""
    return hashlib.sha256(content).hexdigest()


def test_files_that_nobody_pinned_are_told(tmp_path: pathlib.Path) -> None:
    """Program and network are found and pinned; a program that is missing has no checksum."""
    verified = checksums.FileChecksums(frozenset()).verify(order(spec(tmp_path)))
    found = {"./engine": sha(b"program"), "net.nn": sha(b"weights")}
    assert verified.found == {"white": found, "black": {}}
    assert verified.order.white.checksums == found


@pytest.mark.parametrize("name", ["engine", "net.nn"])
def test_a_swapped_file_is_found(tmp_path: pathlib.Path, name: str) -> None:
    """Another file of the same size and time of change is no way around the pin."""
    checked = checksums.FileChecksums(frozenset())
    pinned = checked.verify(order(spec(tmp_path))).order
    path = tmp_path / name
    before, wanted = path.stat(), sha(path.read_bytes())
    swapped = path.read_bytes()[::-1]
    path.write_bytes(swapped)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(errors.HostError) as refused:
        checked.verify(pinned)
    for told in ("Engine A", str(path), wanted, sha(swapped), "farm season resume"):
        assert told in str(refused.value)


def test_a_pinned_file_that_is_gone_is_found(tmp_path: pathlib.Path) -> None:
    """A host without the pinned file must not play; the engine has not crashed."""
    engine = spec(tmp_path, checksums={"./engine": sha(b"program"), "book.bin": sha(b"x")})
    with pytest.raises(errors.HostError, match=r"book.bin.*found no file that can be read"):
        checksums.FileChecksums(frozenset()).verify(order(engine))


def test_the_build_for_this_processor_is_pinned_alone(tmp_path: pathlib.Path) -> None:
    """Other builds' files need not be on this host; the record names the build."""
    (tmp_path / "engine-avx2").write_bytes(b"fast")
    engine = spec(
        tmp_path,
        builds={"avx512": ("./none",), "avx2": ("./engine-avx2", "-q"), "cpu": ("./engine",)},
        checksums={"./none": sha(b"?"), "./engine-avx2": sha(b"fast")},
    )
    chosen = (
        checksums.FileChecksums(frozenset({"avx2", "popcnt"})).verify(order(engine)).order.white
    )
    assert (chosen.build, chosen.command) == ("avx2", ("./engine-avx2", "-q"))
    assert checksums.FileChecksums(frozenset()).verify(order(engine)).order.white.build == "cpu"


def test_a_file_is_read_once_while_it_stays(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A big network is not read before every game, only when the file has changed."""
    engine, checked, sums = spec(tmp_path), checksums.FileChecksums(frozenset()), [0]

    def counted() -> object:
        sums[0] += 1
        return hashlib.sha256()

    monkeypatch.setattr(files, "hashlib", types.SimpleNamespace(sha256=counted))
    checked.verify(order(engine))
    first = sums[0]
    assert first > 1
    checked.verify(order(engine))
    assert sums[0] == first
    (tmp_path / "net.nn").write_bytes(b"weights!")
    checked.verify(order(engine))
    assert sums[0] == first + 1


def test_this_host_has_a_processor() -> None:
    """Its flags choose a 64-bit build at least."""
    chosen = contract.EngineSpec(
        id="a", name="A", command=("x",), builds={"x86-64": ("y",), "arm64": ("y",)}
    )
    assert checksums.FileChecksums().verify(order(chosen)).order.white.build in {"x86-64", "arm64"}


@pytest.mark.parametrize("problem", ["is not there", "cannot be executed"])
def test_a_program_that_cannot_be_started_here_is_the_hosts_fault(
    tmp_path: pathlib.Path, problem: str
) -> None:
    """Missing, or not executable: the refusal names engine, program and place (S16-15b)."""
    engine = spec(tmp_path)
    program = tmp_path / "engine"
    program.chmod(0o755)
    checksums.require_programs(made.order(engine, engine))
    if problem == "is not there":
        program.unlink()
    else:
        program.chmod(0o644)
    with pytest.raises(errors.HostError) as refused:
        checksums.require_programs(made.order(engine, engine))
    for told in ("Engine A", "./engine", str(program), problem, "farm season resume"):
        assert told in str(refused.value)


def test_a_program_is_looked_for_in_path_and_on_boxes_not_at_all(tmp_path: pathlib.Path) -> None:
    """A bare name is one of the PATH; a directory is no program; a box has its own files."""
    there = contract.EngineSpec(id="a", name="A", command=("sh",))
    boxed = contract.EngineSpec(id="b", name="B", command=("./lc0",), box="gpu-1")
    checksums.require_programs(made.order(there, boxed))
    for command in ("no-such-engine", str(tmp_path)):
        with pytest.raises(errors.HostError, match=command):
            checksums.require_programs(
                made.order(there, there.model_copy(update={"command": (command,)}))
            )
