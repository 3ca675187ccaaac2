"""A stage for tests of the broadcast: journals as sources, a farm with its web server."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import secrets
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import driver
import harness
import httpx
import redis

from orchestrator import contract
from orchestrator.broadcast import projector, test_matches
from orchestrator.broadcast.content import documents, messages
from orchestrator.broadcast.feeds import files
from orchestrator.broadcast.forecast import settings
from orchestrator.broadcast.web import app, connection_limits, server
from orchestrator.commands import launch, serve_web
from orchestrator.forecast import game_model, season_simulation
from orchestrator.ops import acl, supervisor
from orchestrator.season.file import load
from orchestrator.season.fold import events as season_events
from orchestrator.season.fold import state as season_state

ROLE = "broadcast"
SEED = "5eed5eed5eed5eed5eed5eed5eed5eed"


class Tape:
    """A journal as far as it has been played: what the projector reads of a ledger."""

    def __init__(self, journal: Sequence[contract.Entry]) -> None:
        self.journal = journal
        self.shown = 0
        self.season = str(journal[0].data["id"])

    def folded(self) -> season_state.SeasonState:
        """Fold the journal as far as it is shown."""
        return season_state.fold(self.journal[: self.shown])

    def now_ms(self) -> int:
        """Return the time of the last entry."""
        return self.journal[self.shown - 1].at_ms

    def seasons(self) -> tuple[str, ...]:
        """Return the one season."""
        return (self.season,) if self.shown else ()

    def resting(self) -> dict[str, int]:
        """Return none: nothing is archived."""
        return {}

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return entries that have been played."""
        return list(self.journal[after : min(self.shown, after + limit)])

    def last(self, journal: str) -> int:
        """Return the number of the last entry played."""
        return self.shown

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return nothing: simulated games have no plies."""
        return []

    def live(self, hall: str) -> str | None:
        """Return nothing: nobody plays."""
        return None

    def record(self, attempt: str) -> bytes | None:
        """Return nothing: nobody kept simulated games."""
        return None


class Kept(Tape):
    """A tape whose games have records, by their attempts."""

    def __init__(self, journal: Sequence[contract.Entry]) -> None:
        super().__init__(journal)
        self.records: dict[str, bytes] = {}

    def record(self, attempt: str) -> bytes | None:
        """Return the record of an attempt."""
        return self.records.get(attempt)


def simulated(name: str, seed: int = 7, luck: game_model.Chances | None = None) -> Tape:
    """Return the whole journal of a simulated season."""
    return of_file(launch.season_file(name), seed, luck)


def of_file(file: pathlib.Path, seed: int = 7, luck: game_model.Chances | None = None) -> Tape:
    """Return the whole journal of a season file's simulated season."""
    loaded = load.load(file)
    return Tape(season_simulation.Simulation.launched(loaded, seed, luck).run().journal)


def round_robin(root: pathlib.Path, engines: int, double_rounds: int = 1) -> Tape:
    """Return the journal of a simulated round robin of so many engines, and its final."""
    rows = [
        {"id": f"e{n:03}", "name": f"Engine {n:03}", "command": ["true"], "rating": 3000 + n}
        for n in range(engines)
    ]
    return of_file(harness.league(root / f"{engines}.toml", rows, double_rounds))


def one_out(root: pathlib.Path, after: int = 2, games: int = 1_000_000) -> Tape:
    """Return the journal of a season whose league has lost Engine 1: it crashed so often."""
    text = driver.season_text().replace("promote =", f"disqualify_after = {after}\npromote =", 1)

    def verdict(game: season_events.Game) -> driver.Verdict:
        crash = ("0-1", contract.Ending.DISCONNECT)
        return crash if game.white == "e1" else driver.drawn(game)

    return Tape(driver.Driver.launched(driver.load(root, text), verdict).play(games).journal)


@dataclasses.dataclass
class Projected:
    """A projector with what it has made."""

    projector: projector.Projector
    shelf: documents.Library
    told: list[messages.Message]


def projected(tape: Tape, root: pathlib.Path) -> Projected:
    """Return a projector of a tape that writes below ``root``."""
    shelf, told = documents.Library(), list[messages.Message]()
    made = projector.Projector(
        tape, root / "archive", shelf, files.Directory(root / "feeds"), told.extend
    )
    return Projected(made, shelf, told)


@contextlib.contextmanager
def served(
    tape: Tape,
    root: pathlib.Path,
    computed: settings.Settings | None = None,
    limits: connection_limits.ConnectionLimits | None = None,
    public: str = "",
    tests: test_matches.Place | None = None,
) -> Iterator[str]:
    """Serve a tape's broadcast from a thread; the address of its page."""
    made = app.create(tape, root / "archive", root / "feeds", computed, public=public, tests=tests)
    with serve_web.listen("127.0.0.1", 0) as listening:
        running = server.make(made, "127.0.0.1", 0, limits)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield serve_web.url(listening).rstrip("/")
        finally:
            running.should_exit = True
            thread.join()


def tree(root: pathlib.Path) -> dict[str, bytes]:
    """Return all files below a directory, but those that are still being written."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            with contextlib.suppress(FileNotFoundError):  # withdrawn at this moment
                found[str(path.relative_to(root))] = path.read_bytes()
    return found


# -- a real farm with its web server --------------------------------------------------


def spectators_role(farm: harness.Farm, role: str = ROLE) -> dict[str, str]:
    """Make the Redis user of a role; return what a process of it is given."""
    if farm.redis.users:
        return {"FARM_REDIS_URL": farm.redis.url_of(role)}
    file = farm.root / f"{role}.password"
    if not file.exists():
        file.write_text(secrets.token_hex(16))
    user = acl.User(role, acl.roles()[role], (acl.sha256(file.read_text()),))
    with redis.Redis.from_url(farm.redis.url) as client:
        client.execute_command("ACL", "SETUSER", user.name, *user.rules())
    return {"FARM_REDIS_USER": role, "FARM_REDIS_PASSWORD_FILE": str(file)}


class Web:
    """``farm serve-web`` beside a test farm, as the Redis user ``broadcast``."""

    def __init__(self, farm: harness.Farm) -> None:
        self.farm = farm
        self.feeds = farm.root / "feeds"
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, on the port that it had before."""
        environment = supervisor.environment(self.farm.redis.url, self.farm.root, harness.HALL)
        environment |= spectators_role(self.farm)
        command = [*supervisor.web_command("127.0.0.1", self.port), "--eager", "--forecast", "20"]
        log = (self.farm.root / "web.log").open("a")
        self.process = subprocess.Popen(
            command,
            env=environment | {"FARM_LOG": "json", "PYTHONWARNINGS": "default"},
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
        )
        log.close()
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "live page is at" in line, line + self.process.stderr.read()
        self.port = int(line.rstrip().rstrip("/").rpartition(":")[2])
        self._drain()

    def finished(self, season: str, game: str) -> contract.GameRecord:
        """Return a game's record, once the page no longer tells of it as the one that is played.

        The archive is quicker: whoever follows the game's address until then follows the season.
        """
        path = self.farm.archive / season / "games" / game / "record.json"

        def over() -> bool:
            live = httpx.get(f"{self.url}/api/v1/seasons/{season}/live", timeout=60).json()
            return path.exists() and (live["game"], live["status"]) != (game, "running")

        self.farm.wait(over, 60, f"the end of {game} on the page")
        return contract.GameRecord.decode(path.read_bytes())

    def _drain(self) -> None:
        """Let the server's log go to a file, so that it is never blocked by us."""
        assert self.process is not None
        assert self.process.stderr is not None
        descriptor = self.process.stderr.fileno()
        self._cat = subprocess.Popen(
            ["tee", "-a", str(self.farm.root / "web.log")],
            stdin=descriptor,
            stdout=subprocess.DEVNULL,
        )

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._cat.wait()

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask for a path."""
        return httpx.get(self.url + path, headers=headers, timeout=60)

    def json(self, path: str) -> Any:
        """Return a document of the API."""
        answer = self.get(f"/api/v1/{path}")
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()


@contextlib.contextmanager
def stage(root: pathlib.Path, extra: dict[str, str] | None = None) -> Iterator[Web]:
    """Run a farm with its web server; nothing is launched yet."""
    with harness.running(root, extra) as farm:
        web = Web(farm)
        web.start()
        try:
            yield web
        finally:
            web.kill()
        assert "NOPERM" not in (root / "web.log").read_text()


def season(
    farm: harness.Farm,
    delay_ms: int = 4,
    strengths: Sequence[int] = (1, 2, 3),
    adjudication: str = "",
    control: str = "60s+1s",
    words: Sequence[str] = (),
) -> str:
    """Launch a league and its final between engines that take their time; ``words`` are theirs."""
    extra = ("--delay-ms", str(delay_ms), *words)
    rows = [harness.scripted(farm.life, strength, *extra) for strength in strengths]
    for row, country in zip(rows, ("NOR", "GER", "USA", "FRA"), strict=False):
        row |= {"author": "The Author", "country": country, "version": "1.0", "rating": 3000}
    file = harness.league(
        farm.root / "season.toml",
        rows,
        control=control,
        final_games=2,
        adjudication=adjudication,
    )
    farm.launch(file, "stage", seed=SEED)
    return "stage"


@dataclasses.dataclass(frozen=True)
class Event:
    """One server-sent event."""

    id: str
    kind: str
    data: Any


def events(answer: httpx.Response) -> Iterator[Event]:
    """Read a stream's events."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}
