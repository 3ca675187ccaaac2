"""Build engines from source for a remote worker, beside no game, and report them.

The worker's own process fetches the sources, since it has the token; a child builds them, since
builds take minutes in which leases are renewed. The child ends with the worker, and with it the
sandbox of the build.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.engines import sources
from worker_cpu.engines import source_build, supervisor
from worker_cpu.remote import engines, gateway

SOURCES_BYTES: Final = 2 << 30  # of all sources that are kept here
OFFERED: Final = 400  # builds told in a claim, those used last
ABSENT_SECONDS: Final = 3_600.0  # s: so long a build is not asked for whose source was not there


class Builder:
    """What this worker has built, builds, and is to tell."""

    def __init__(self, directory: pathlib.Path, toolchains: Sequence[str]) -> None:
        self._directory, self._toolchains = directory, tuple(toolchains)
        self._cache = source_build.Cache(directory / "builds")
        self._store = sources.Store(directory / "sources", SOURCES_BYTES)
        self._match = ""
        self._wanted: tuple[remote.SourceBuild, ...] = ()
        self._untold: list[source_build.Built] = []
        self._absent: dict[str, float] = {}  # builds without a source, until when (monotonic)
        self._played = contextlib.ExitStack()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """Say whether there is something to build or to tell."""
        return bool(self._wanted or self._untold)

    @property
    def wanted(self) -> bool:
        """Say whether there is something to build."""
        return bool(self._wanted)

    def engines(self) -> list[engines.Engine]:
        """Return the engines that were built, each known by its build."""
        built = [made for made in self._cache.all() if not made.why][-OFFERED:]
        return [
            engines.Engine(
                made.build,
                (made.program,),
                str(pathlib.Path(made.program).parent),
                {made.build: made.program},
            )
            for made in built
        ]

    def declined(self) -> tuple[str, ...]:
        """Return the builds that have failed here, or whose source could not be had lately."""
        absent = [build for build, until in self._absent.items() if time.monotonic() < until]
        failed = [failed.build for failed in self._cache.all() if failed.why]
        return tuple(dict.fromkeys([*failed, *absent]))[-OFFERED:]

    def play(self, builds: Iterable[str]) -> None:
        """Keep the programs of these builds, which are played now, and no others of before."""
        played = sorted(build for build in builds if self._cache.get(build) is not None)
        held = self._cache.held(played)
        self._played.close()
        self._played = held

    def want(self, match: str, builds: tuple[remote.SourceBuild, ...]) -> None:
        """Take up what the gateway asks for."""
        self._match, self._wanted = match, builds

    def begin(self, there: gateway.Gateway) -> list[str]:
        """Fetch the sources and start to build; raise ``AwayError``.

        Where a source cannot be had nothing is built: return what to say of it.
        """
        for build in self._wanted:
            for digest in source_build.needed(build):
                if why := self._fetched(there, digest):
                    self._absent[build.id] = time.monotonic() + ABSENT_SECONDS
                    self._untold.append(
                        source_build.Built(build.id, "", "", None, 0.0, "", why, "")
                    )
                    self._wanted = ()
                    return [f"{self._match}: {build.name}: not built: {why}"]
        wanted = contract.dumps([build.model_dump(mode="json") for build in self._wanted])
        arguments = (str(os.getpid()), str(self._directory), wanted, *self._toolchains)
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *arguments],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return []

    def _fetched(self, there: gateway.Gateway, digest: str) -> str:
        """Have a source here; return why it cannot be had. Raise ``AwayError``."""
        if self._store.has(digest):
            return ""
        try:
            actual = self._store.add(there.fetch(digest))
        except gateway.BatchOverError as error:
            return f"its source {digest[:12]} is not there: {error}"
        except ValueError as error:
            return f"its source {digest[:12]} {error}"
        return "" if actual == digest else f"its source {digest[:12]} came as {actual[:12]}"

    def ended(self) -> list[str]:
        """Look at a child that has ended; return what to say of each build."""
        assert self.process is not None
        code = self.process.wait()
        self.process = None
        said = []
        for build in self._wanted:
            built = self._cache.get(build.id)
            if built is None:
                why = f"the process that builds ended with code {code}"
                built = source_build.Built(build.id, "", "", None, 0.0, "", why, "")
                built = self._cache.put(built, None)
            self._untold.append(built)
            made = f"built in {built.seconds:.1f} s, {built.bench} nodes"
            said.append(f"{self._match}: {build.name}: {built.why or made}")
        self._wanted = ()
        return said

    def tell(self, there: gateway.Gateway, host: str) -> None:
        """Tell the gateway of builds that have ended; raise ``AwayError``."""
        while self._untold:
            try:
                there.built(self._untold[0].report(self._match, host))
            except gateway.BatchOverError:
                for build in self._untold:  # its match is over: nobody waits for the news
                    self._absent.pop(build.build, None)
                self._untold.clear()
            else:
                self._untold.pop(0)

    def stop(self) -> None:
        """End a build that runs, and forget it."""
        if self.process is not None:
            self.process.kill()  # the sandbox's first process ends with it
            self.process.wait()
            self.process = None
        self._wanted = ()


def main() -> int:
    """Build for the worker that started this process."""
    supervisor.prctl(supervisor.PR_SET_PDEATHSIG, signal.SIGKILL)
    worker, folder, builds_wanted, *toolchains = sys.argv[1:]
    if os.getppid() != int(worker):
        return 1  # it died before the kernel knew of the wish
    directory = pathlib.Path(folder)
    cache = source_build.Cache(directory / "builds")
    store = sources.Store(directory / "sources", SOURCES_BYTES)
    try:
        for raw in contract.loads(builds_wanted):
            build = remote.SourceBuild.model_validate(raw)
            there = {digest: store.path(digest) for digest in source_build.needed(build)}
            source_build.make(build, there, cache, toolchains)
    except errors.FarmError as error:
        print(f"farm: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
