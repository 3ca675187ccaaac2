"""Engines of a test match that are built from source: ``farm match test REVISION --build RECIPE``.

Each revision is built here first (``farm engine build``): its program is what the lanes of this
machine play, and its bench what every worker's own build must have.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from orchestrator import contract
from orchestrator.commands import common
from orchestrator.common import errors, files, output
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.testmatch import catalogue, orders

_BUILDER: Final = (
    "worker_cpu.remote.build_command"  # of the workers' package, which has the sandbox
)


def options(function: output.Function) -> output.Function:
    """Add ``--build`` and what belongs to it."""
    for decorate in reversed(
        (
            click.option(
                "--build",
                type=click.Path(path_type=pathlib.Path, dir_okay=False),
                help="Build the engines, git revisions or REPOSITORY#REVISION, by this recipe.",
            ),
            click.option("--bench", type=click.IntRange(1), help="Nodes of ENGINE's bench."),
            click.option(
                "--toolchain",
                "toolchains",
                multiple=True,
                help="A directory whose bin builds may use, outside of the system.",
            ),
            click.option("--options", "own", help="'Threads=1 Hash=16': ENGINE's options."),
        )
    ):
        function = decorate(function)
    return function


def options_against(function: output.Function) -> output.Function:
    """Add what is said of opponents."""
    bench = click.option("--bench-against", type=click.IntRange(1), help="Of the opponent.")
    return bench(
        click.option("--options-against", "theirs", help="The opponents' options.")(function)
    )


def built(
    names: Sequence[str], asked_for: dict[str, Any]
) -> tuple[list[contract.EngineSpec], tuple[remote.SourceBuild, ...], int]:
    """Build revisions here; return their engines, how workers build them, and the recipe's speed.

    Raise ``UsageError``, ``HostError``, and ``RefusedError`` with its log for a build that fails.
    """
    if asked_for["file"] is not None:
        raise errors.UsageError("--build: engines are its revisions; leave out --file")
    benches = [asked_for["bench"] or 0, *[asked_for["bench_against"] or 0] * (len(names) - 1)]
    reports = _build(asked_for["build"], names, benches, asked_for["toolchains"])
    made = [remote.SourceBuild.model_validate(item["source"]) for item in reports]
    specs = [
        _spec(item, source, at) for at, (item, source) in enumerate(zip(reports, made, strict=True))
    ]
    return with_options(specs, asked_for), tuple(made), reports[0]["nps"]


def _build(
    recipe: pathlib.Path, names: Sequence[str], benches: Sequence[int], toolchains: Sequence[str]
) -> list[dict[str, Any]]:
    arguments = [word for item in toolchains for word in ("--toolchain", item)]
    arguments += [word for item in benches for word in ("--bench", str(item))]
    done = subprocess.run(
        [sys.executable, "-m", _BUILDER, "--json", *arguments, "--", str(recipe), *names],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        kinds = {2: errors.UsageError, 3: errors.RefusedError}
        raise kinds.get(done.returncode, errors.HostError)(f"--build: {why}")
    reports: list[dict[str, Any]] = json.loads(done.stdout)
    return reports


def _spec(reports: dict[str, Any], source: remote.SourceBuild, at: int) -> contract.EngineSpec:
    program, sha256 = reports["built"]["program"], reports["built"]["sha256"]
    return contract.EngineSpec(
        id=f"base{at if at > 1 else ''}" if at else "dev",
        name=f"{source.name}{'' if at else ' (tested)'}",
        version=source.commit[:12],
        protocol=reports["protocol"],
        command=(program,),
        checksums={program: sha256},
        options=reports["options"],
    )


def require_kept(spec: orders.Spec) -> None:
    """Raise ``RefusedError`` where a match's sources or programs were deleted since it began."""
    store = sources.Store(common.data_directory() / "sources")
    for engine, build in zip(spec.engines, spec.builds, strict=False):
        if build is None:
            continue
        kept = [store.has(digest) for digest in build.needed]
        if orders.is_built_here(engine, build):
            kept.append(pathlib.Path(engine.command[0]).exists())
        if not all(kept):
            raise errors.RefusedError(
                f"{spec.id}: the source or the program of {engine.name} was deleted since"
                f" ({store.directory}): `farm engine build RECIPE {build.commit}`"
                " makes it again"
            )


@contextlib.contextmanager
def held(spec: orders.Spec) -> Iterator[None]:
    """Let nobody delete a match's sources and programs for want of room while it is open."""
    store = sources.Store(common.data_directory() / "sources")
    with contextlib.ExitStack() as holds:
        for engine, build in zip(spec.engines, spec.builds, strict=False):
            if build is not None:
                holds.enter_context(store.held(build.needed))
                if orders.is_built_here(engine, build):
                    holds.enter_context(files.held(pathlib.Path(engine.command[0]).parent))
        yield


def with_options(
    specs: list[contract.EngineSpec], asked_for: dict[str, Any]
) -> list[contract.EngineSpec]:
    """Return engines with the options that are asked for beside their own."""
    own, theirs = (
        catalogue.options_of(asked_for["own"] or "", "--options"),
        catalogue.options_of(asked_for["theirs"] or "", "--options-against"),
    )
    asked = [own, *[theirs] * (len(specs) - 1)]
    return [
        spec.model_copy(update={"options": {**spec.options, **more}})
        for spec, more in zip(specs, asked, strict=True)
    ]
