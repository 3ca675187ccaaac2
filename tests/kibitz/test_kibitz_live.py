"""A real engine kibitzes a real season: feeds, stream, crashes of each part, refusals."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import chess.pgn
import click.testing
import harness
import httpx
import jsonschema
import pytest
import theatre

from orchestrator import commands, contract
from orchestrator.common import errors
from orchestrator.ledger import keys, kibitz_store
from orchestrator.ops import supervisor

# The hall has one core, the kibitzer the others, as two hosts would have their own.
HALL = dict.fromkeys(("FARM_REFEREE_CPUS", "FARM_ENGINE_CPUS"), str(harness.CORES[0]))
ARCHIVED = "archive/test_season_stage_-_league_liveeval_*.json"


@pytest.fixture(scope="module")
def engine() -> str:
    """Return a real engine; the test needs a core beside the hall's."""
    if len(harness.CORES) == 1:
        pytest.skip("hardware: a second core")
    path = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")
    if path is None:
        pytest.skip("package stockfish is not installed")
    return path


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[theatre.Web]:
    """Run a farm whose hall is bound to one core; its season is slow enough to be watched."""
    with theatre.stage(tmp_path_factory.mktemp("kibitz"), HALL) as stage:
        theatre.season(stage.farm, delay_ms=200, strengths=(1, 2, 3))
        yield stage


class Kibitzer:
    """``farm kibitz`` beside a test farm, as the Redis user ``kibitzer``."""

    def __init__(self, farm: harness.Farm, engine: str, *words: str) -> None:
        self.environment = supervisor.environment(farm.redis.url, farm.root, harness.HALL)
        self.environment |= theatre.spectators_role(farm, "kibitzer")
        self.environment |= {"FARM_LOG": "json", "FARM_SANDBOX": "plain"}
        command = [sys.executable, "-m", "celery", "-A", "orchestrator", "farm", "kibitz"]
        self.command = [*command, "--engine", engine, "--hash", "16", *words]
        log = farm.root / "kibitz.log"
        self.process = supervisor.Supervised("kibitzer", self.command, self.environment, log)

    def once(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [*self.command, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )

    def another(self, farm: harness.Farm, than: int) -> int:
        """Return its engine's process, once that is another one."""
        found: list[int] = []

        def there() -> bool:
            children = harness.children(self.process.pid)
            found[:] = [pid for pid in children if pid != than and harness.alive(pid)]
            return bool(found)

        farm.wait(there, 60, "an engine of the kibitzer")
        return found[0]


def read(web: theatre.Web, name: str) -> Any:
    """Return a feed's content, None where there is none."""
    try:
        return json.loads((web.feeds / name).read_bytes())
    except FileNotFoundError:
        return None


def comments_counted(web: theatre.Web) -> int:
    """Return how often something was told at desk 0, of whatever game."""
    client = web.farm.ledger.server.client
    found = client.scan_iter(match=f"{keys.PREFIX}kibitz:0:*")
    return sum(int(client.hget(key, "mark") or 0) for key in found)  # type: ignore[arg-type]


def grows(web: theatre.Web, what: str) -> None:
    """Wait until something more is told."""
    before = comments_counted(web)
    web.farm.wait(lambda: comments_counted(web) > before, 60, what)


def reached(web: theatre.Web) -> tuple[str, int]:
    """Return the attempt in flight and its last ply."""
    slot = web.farm.ledger.slot(harness.HALL)
    plies = web.farm.ledger.plies(slot.attempt) if slot else []
    return (slot.attempt if slot else "", plies[-1][0] if plies else 0)


def test_a_season_is_kibitzed_whatever_becomes_of_the_kibitzer(
    web: theatre.Web, engine: str, tmp_path: pathlib.Path
) -> None:
    """Feeds as viewers read them, through crashes of engine and kibitzer; then the same bytes."""
    farm = web.farm
    kibitzer = Kibitzer(farm, engine, "--cpus", str(harness.CORES[1]), "--description", "one core")
    kibitzer.process.start()
    try:
        farm.wait(lambda: read(web, "data.json") is not None, 60, "the first word")
        assert heard(web)["engine"].startswith("Stockfish")
        first = kibitzer.another(farm, 0)
        assert os.sched_getaffinity(first) == {harness.CORES[1]}
        harness.kill(first, signal.SIGKILL)  # the engine alone
        second = kibitzer.another(farm, first)
        grows(web, "an engine that was started again")
        kibitzer.process.kill()
        farm.wait(lambda: not harness.alive(second), 20, "the engine's end with its kibitzer")
        played = reached(web)
        farm.wait(lambda: reached(web) != played, 60, "the season's going on")
        kibitzer.process.start()
        grows(web, "a kibitzer that came back")
        farm.wait(lambda: archived(web) is not None, 120, "the end of a kibitzed game")
    finally:
        kibitzer.process.stop(10)
    assert "NOPERM" not in kibitzer.process.log.read_text()
    file = archived(web)
    assert file is not None
    check_archive(json.loads(file.read_bytes()), record(web, file.stem.rpartition("_")[2]))
    rebuilt = Rebuilt(web, tmp_path)
    try:
        farm.wait(
            lambda: rebuilt.same(f"archive/{file.name}"),
            60,
            "the same bytes from another projector",
        )
    finally:
        rebuilt.end()


def archived(web: theatre.Web) -> pathlib.Path | None:
    """Return the archive's evaluations of a finished game, None before the first."""
    return next(iter(sorted(web.feeds.glob(ARCHIVED))), None)


def record(web: theatre.Web, played: str) -> contract.GameRecord:
    """Return the record of the league's game of a round."""
    for path in (web.farm.archive / "stage" / "games").glob("league.*/record.json"):
        found = contract.GameRecord.decode(path.read_bytes())
        if found.order.round == played:
            return found
    raise AssertionError(f"no game of round {played}")


def heard(web: theatre.Web) -> dict[str, Any]:
    """Return a kibitzer's card from the page's stream."""
    with httpx.stream("GET", f"{web.url}/api/v1/live", timeout=90) as answer:
        for event in theatre.events(answer):
            if event.kind == "kibitz" and event.data["kibitzers"]:
                card: dict[str, Any] = event.data["kibitzers"][0]
                assert event.id == ""
                assert card["line"]
                return card
    raise AssertionError("the stream ended")


def check_archive(told: dict[str, Any], record: contract.GameRecord) -> None:
    """Hold the archived evaluations against the game: each variation fits its position."""
    jsonschema.validate(told, SCHEMA)
    assert (told["desc"], told["round"]) == ("one core", float(record.order.round))
    board = chess.Board()
    moves = [*record.order.opening.moves, *(ply.move for ply in record.plies)]
    boards = {0: board.copy()}
    for number, move in enumerate(moves, start=1):
        board.push_uci(move)
        boards[number] = board.copy()
    assert told["moves"]
    for one in told["moves"]:
        number, _, rest = one["pv"].partition(".")
        at = boards[2 * (int(number) - 1) + rest.startswith("..")]
        text = f'[FEN "{at.fen()}"]\n[SetUp "1"]\n\n{one["pv"]} *\n'
        line = chess.pgn.read_game(io.StringIO(text))
        assert line is not None
        assert not line.errors, one["pv"]
        assert line.next() is not None


SCHEMA = {"type": "object", "required": ["engine", "desc", "round", "gameno", "moves"]}


class Rebuilt:
    """A second ``farm serve-web`` on the same farm, into a folder of its own."""

    def __init__(self, web: theatre.Web, root: pathlib.Path) -> None:
        self.web, self.feeds = web, root / "feeds"
        command = [*supervisor.web_command("127.0.0.1", 0), "--feeds", str(self.feeds)]
        environment = supervisor.environment(web.farm.redis.url, web.farm.root, harness.HALL)
        environment |= theatre.spectators_role(web.farm)
        log = root / "rebuilt.log"
        self.process = supervisor.Supervised("rebuilt", command, environment, log)
        self.process.start()

    def same(self, name: str) -> bool:
        """Say whether both have written the same file."""
        both = [root / name for root in (self.web.feeds, self.feeds)]
        return all(path.exists() for path in both) and len({p.read_bytes() for p in both}) == 1

    def end(self) -> None:
        """End it."""
        self.process.kill()


def test_on_the_halls_cores_it_does_not_start(web: theatre.Web, engine: str) -> None:
    """Exit code 5 with what to do on the hall's core; on the other one it says all is well."""
    kibitzer = Kibitzer(web.farm, engine)
    web.farm.wait(lambda: bool(web.farm.ledger.vitals()), 30, "the hall's first beat")
    done = kibitzer.once("--check")  # on all cores
    assert done.returncode == errors.HostError.exit_code, done.stderr
    assert "plays on this machine's cores 0" in done.stderr
    done = kibitzer.once("--cpus", "1", "--check", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["engine"].startswith("Stockfish")
    assert (told["cores"], told["threads"], told["hash_mb"]) == ([1], 1, 16)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--engine", "x", "--option", "Hash"], "--option: found 'Hash'"),
        (["--engine", "'"], "--engine: "),
        (["--engine", " "], "--engine: found nothing"),
        (["--engine", "x", "--cpus", "x"], "--cpus: found 'x'"),
        (["--engine", "x", "--cpus", "100000"], "--cpus: found 100000"),
    ],
)
def test_words_that_say_nothing_are_named(words: list[str], found: str) -> None:
    """What is wrong stands in the message, before anything is started or asked."""
    done = click.testing.CliRunner().invoke(commands.farm, ["kibitz", *words])
    assert done.exit_code in {errors.UsageError.exit_code, errors.HostError.exit_code}
    assert found in done.output


def test_wrong_words_and_a_desk_that_is_taken_are_refused(web: theatre.Web, engine: str) -> None:
    """Each by its exit code: 2 for the operator's words, 3 for what another kibitzer has."""
    kibitzer = Kibitzer(web.farm, engine, "--cpus", "1", "--desk", "1")
    done = kibitzer.once("--option", "Nonsense=1", "--check")
    assert done.returncode == errors.UsageError.exit_code
    assert "found Nonsense; Stockfish" in done.stderr
    desks = kibitz_store.RedisKibitzing(web.farm.ledger.server)
    assert desks.take_desk(1, "another-host") == "another-host"
    done = kibitzer.once()
    assert done.returncode == errors.RefusedError.exit_code, done.stderr
    assert "desk 1 is another-host's" in done.stderr
