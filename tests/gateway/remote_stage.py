"""A gateway, a test match and remote workers, each a process of its own, for tests and attacks."""

from __future__ import annotations

import contextlib
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable

import harness

from orchestrator import contract
from orchestrator.ledger import batches, journal_mirror, keys, store

ENGINE = pathlib.Path(sys.executable).with_name("farm-engine")
ROSTER = """
schema = 1
[[engine]]
id = "dev"
name = "Dev"
command = ["{engine}"]
[[engine]]
id = "base"
name = "Base"
command = ["{engine}", "--name", "base"]
"""

# Three pairs decide, where all are won.
SPRT = ("--sprt", "elo0=0", "elo1=200", "alpha=0.25", "beta=0.25")
QUICK = ("--tc", "60+1", "--resign", "movecount=2,score=500", "--json", *SPRT)
TINY = pathlib.Path(__file__).parents[1] / "engines" / "tiny.c"
RECIPE = """
name = "Tiny"
repository = "tiny"
make = "make"
program = "tiny"
toolchain = ["make", "gcc"]
"""
MAKEFILE = "tiny: tiny.c\n\tgcc -O1 {flags} -o tiny tiny.c\n"


def repository(home: pathlib.Path) -> pathlib.Path:
    """Make a repository of an engine: a wrong sign on main, its fix, and a wrong bench.

    Return the engine's recipe.
    """
    (home / "tiny").mkdir()
    git = ("git", "-C", str(home / "tiny"), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run((*git, "init", "--quiet", "--initial-branch=main"), check=True)
    (home / "tiny" / "tiny.c").write_bytes(TINY.read_bytes())
    for branch, flags, bench in (("main", "-DWORST", 9324), ("fix", "", 9323), ("wrong", "", 7)):
        (home / "tiny" / "Makefile").write_text(MAKEFILE.format(flags=flags))
        if branch != "main":
            subprocess.run((*git, "checkout", "--quiet", "-b", branch), check=True)
        subprocess.run((*git, "add", "."), check=True)
        message = f"Play {branch}\n\nBench: {bench}"
        subprocess.run((*git, "commit", "--quiet", "--allow-empty", "-m", message), check=True)
    place = home / "tiny.toml"
    place.write_text(RECIPE)
    return place


class Stage:
    """A gateway, a test match and workers, each a process of its own."""

    def __init__(self, root: pathlib.Path, redis: harness.Redis) -> None:
        self.root, self.redis = root, redis
        self.ledger = store.connect(redis.url)
        self.batches = batches.RedisBatches(self.ledger.server)
        self.roster = root / "engines.toml"
        self.roster.write_text(ROSTER.format(engine=ENGINE))
        self.token = root / "anna.token"
        self.url, self.port = "", 0
        self.environment: dict[str, dict[str, str]] = {}  # of processes, by their logs, beside ours
        self.before: dict[str, list[str]] = {}  # words before commands, by their logs
        self.urls: dict[str, str] = {}  # of workers that come another way than the others
        self.patience_seconds = 300.0
        self._ended: list[subprocess.Popen[bytes]] = []

    def run(self, user: str, log: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of the farm; what it prints goes to a file."""
        environment = harness.without_farm() | {"FARM_DATA": str(self.root / log)}
        environment |= self.environment.get(log, {})
        if user:
            environment["FARM_REDIS_URL"] = self.redis.url_of(user)
        with (self.root / f"{log}.log").open("ab") as output:
            process = subprocess.Popen(
                [*self.before.get(log, ()), str(harness.PROGRAM), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._ended.append(process)
        return process

    def log(self, name: str) -> str:
        """Return what a process has printed."""
        return (self.root / f"{name}.log").read_text()

    def serve(self, lease_seconds: int = 600) -> subprocess.Popen[bytes]:
        """Start the gateway, where it was before; wait until it listens."""
        words = ("serve-gateway", "--port", str(self.port), "--lease-seconds", str(lease_seconds))
        before = len(re.findall("workers come to", self.log("gateway"))) if self.port else 0
        process = self.run("gateway", "gateway", *words)
        pattern = re.compile(r"workers come to (http://127\.0\.0\.1:(\d+))/")
        self.wait(lambda: len(pattern.findall(self.log("gateway"))) > before, "the gateway")
        self.url, port = pattern.findall(self.log("gateway"))[-1]
        self.port = int(port)
        return process

    def work(self, name: str, *words: str, engines: bool = True) -> subprocess.Popen[bytes]:
        """Start a worker that plays one game at a time, with the roster's engines or none."""
        place = ("--spool", str(self.root / name), "--concurrency", "1")
        known = ("--engines", str(self.roster), "--sandbox", "plain") if engines else ()
        source = (self.urls.get(name, self.url), "--token", str(self.token))
        return self.run("", name, "work", *source, *known, *place, *words)

    def match(self, games: int) -> subprocess.Popen[bytes]:
        """Make a token, and open match ``m``."""
        played = ("test", "dev", "--against", "base", "--file", str(self.roster), "--id", "m")
        told = (
            "--games",
            str(games),
            "--tc",
            "nodes=20",
            "--check-nodes",
            "20",
            "--remote",
            "--json",
        )
        return self.match_of(*played, *told)

    def one_host(self, *others: str) -> None:
        """Let the match's process and these have one FARM_DATA, as on one control host."""
        (self.root / "match").mkdir()
        for log in others:
            (self.root / log).symlink_to(self.root / "match")

    def revisions(self, recipe: pathlib.Path, *words: str) -> subprocess.Popen[bytes]:
        """Make a token, and open match ``m`` of two revisions of a recipe's engine."""
        test = ("test", "fix", "--against", "main", "--build", str(recipe), "--id", "m", "--remote")
        return self.match_of(*test, *words)

    def match_of(self, *words: str) -> subprocess.Popen[bytes]:
        """Make a token, and open the match of this command."""
        environment = {"FARM_REDIS_URL": self.redis.url_of(harness.OPERATOR)}
        created = ("worker-token", "create", "anna", "--out", str(self.token))
        harness.farm(*created, env=environment)
        return self.run(harness.OPERATOR, "match", *words)

    def journal(self) -> list[contract.Entry]:
        """Return what the match's keeper has on disk."""
        path = self.root / "match" / "tests" / "m" / "journal.jsonl"
        return list(journal_mirror.entries(path)) if path.exists() else []

    def leased(self) -> dict[str, list[int]]:
        """Return what is leased: batch to games without a result."""
        found = self.ledger.server.table(keys.Keys().batches())
        games = {name: contract.loads(one)["games"] for name, one in found.items()}
        return {name: list(map(int, told.split())) for name, told in games.items() if told}

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a fact."""
        deadline = time.monotonic() + self.patience_seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{path}:\n{path.read_text()}" for path in self.root.glob("*.log"))
                raise AssertionError(f"waited for {what}; logs:\n{logs}")
            time.sleep(0.02)

    def end(self) -> None:
        """End whatever still runs."""
        for process in self._ended:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        self.ledger.close()
