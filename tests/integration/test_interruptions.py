"""Every scenario of an interruption, by really killing the hall.

Each season is a match of two games between scripted engines whose evals are given. The link
is killed with SIGKILL while game 1 is played; what happens then is read from journal and
archive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import checker
import chess
import chess.syzygy
import click.testing
import harness
import interrupted
import pytest

from orchestrator import commands, contract
from orchestrator.ledger import api
from orchestrator.season.fold import state
from worker_cpu.link import hold as link_hold

LONG = os.environ.get("FARM_LONG") == "1"
LEVEL = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
SEVEN = "4k3/pp6/8/8/8/8/PP6/R3K3 w - - 0 1"  # men on the board: 7
THREE = "8/8/8/3k4/8/8/8/KQ6 w - - 0 1"  # men, of which there are tables
TABLES = pathlib.Path(__file__).parents[1] / "data" / "syzygy"
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"


@dataclasses.dataclass(frozen=True)
class Scene:
    """A match, the ply after which its hall is killed, and the verdict that is due."""

    season: str
    interruptions: str
    verdict: str
    claim_cp: int = 100
    fen: str = LEVEL
    plies: int = 6
    extra: tuple[str, ...] = ()
    limits: str = ""


SCENES = [
    Scene("resumed", '"s16"', "resumed"),
    Scene("mated", '"s16"', "the last move had ended", fen=MATE_IN_ONE, plies=1,
          extra=("--fault", "ignore-quit")),
    Scene("won", '"s16"', "won", claim_cp=1001),
    Scene("drawn", '{ rules = "cup", draw_moves = 3 }', "drawn", claim_cp=15),
    Scene("asked", '"frc"', "the organizers", fen=SEVEN),
    Scene("probed", f'{{ rules = "frc", tablebase_men = 3, syzygy_path = "{TABLES}" }}',
          "decided by the tablebase", fen=THREE, plies=1),
    Scene("restarted", '"ntcec1"', "restarted", claim_cp=2000),
]  # fmt: skip


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Farm]:
    """Return one farm for all scenes."""
    with harness.running(tmp_path_factory.mktemp("farm")) as made:
        yield made


@contextlib.contextmanager
def played(farm: harness.Farm, scene: Scene) -> Iterator[str]:
    """Launch a scene's match and play it up to its ply, at which it stands for the block.

    The engines are quick and know their evals. Yields the attempt in play.
    """
    gate = farm.root / f"{scene.season}.gate"
    with harness.held(gate, scene.plies + 1) as hold:
        words = ("--claim-cp", str(scene.claim_cp), *hold, *scene.extra)
        rules = scene.interruptions
        interrupted.launch(farm, scene.season, *words, rules=rules, fen=scene.fen)
        yield interrupted.reached(farm, scene.season, scene.plies)


def judged(farm: harness.Farm, season: str) -> dict[str, Any]:
    """Wait for the verdict and return its entry."""

    def waiting_decisions() -> list[Any]:
        return [e.data for e in farm.ledger.read(season) if e.kind == "attempt_judged"]

    farm.wait(lambda: bool(waiting_decisions()), 30, f"the verdict of {season}")
    return dict(waiting_decisions()[0])


def begun(farm: harness.Farm, season: str) -> list[str]:
    """Return the games of all attempts so far, in their order."""
    starts = [e for e in farm.ledger.read(season) if e.kind == "attempt_started"]
    return [str(e.data["game"]) for e in starts]


def record(farm: harness.Farm, season: str, game: str) -> contract.GameRecord:
    """Read a game's record from the archive."""
    folder = farm.archive / season / "games" / game
    return contract.GameRecord.decode((folder / "record.json").read_bytes())


@pytest.mark.parametrize("scene", SCENES if LONG else SCENES[:3], ids=lambda scene: scene.season)
def test_a_killed_hall_leads_to_the_verdict_of_its_scenario(
    farm: harness.Farm, scene: Scene
) -> None:
    """The verdict is journaled with its evidence, and the season goes on to its end by it."""
    with played(farm, scene) as attempt:
        assert harness.kill(harness.link_pid(farm), signal.SIGKILL)
    fact = judged(farm, scene.season)
    assert fact["attempt"] == attempt
    assert fact["scenario"].startswith(scene.verdict), fact
    assert "evals of White" in fact["evidence"]
    if scene.season == "asked":
        farm.wait(lambda: "m.2" in begun(farm, scene.season), 30, "game 2, which does not wait")
        _decide(farm, scene.season, "m.1:interruption", "1/2-1/2")
    folded = farm.finish(scene.season)
    checker.check_season(farm.archive, scene.season)
    first = folded.game("m.1").finished
    assert first is not None
    CHECKS[scene.season](farm, folded, first)


def _resumed(farm: harness.Farm, _folded: state.SeasonState, first: contract.GameFinished) -> None:
    """One record with every ply; the engines got the whole history; both clocks gained."""
    made = record(farm, "resumed", "m.1")
    (one,) = made.interruptions
    assert (one.cause, one.ply >= 6) == ("worker lost", True)
    assert [ply.ply for ply in made.plies] == list(range(1, 13))
    assert first.ending is contract.Ending.MAX_MOVES
    before, after = made.plies[one.ply - 1], made.plies[one.ply]
    gained = after.margin_ns + after.think_ns
    kept = before.white_clock_ns if after.side == "white" else before.black_clock_ns
    own = one.white_compensation_ns if after.side == "white" else one.black_compensation_ns
    assert own > 0
    assert gained == kept + own
    folder = farm.archive / "resumed" / "games" / "m.1"
    said = gzip.decompress((folder / "protocol.log.gz").read_bytes()).decode()
    history = " ".join(ply.move for ply in made.plies[: one.ply])
    assert f"moves {history}\n" in said
    pgn = (folder / "game.pgn").read_text()
    assert '[Interruptions "1"]' in pgn
    assert "Interrupted: worker lost; resumed from" in " ".join(pgn.split())


def _mated(farm: harness.Farm, folded: state.SeasonState, first: contract.GameFinished) -> None:
    """The mate counts, nobody plays on, and the archive has the game."""
    assert (first.result, first.ending) == ("1-0", contract.Ending.CHECKMATE)
    assert len(record(farm, "mated", "m.1").plies) == 1
    assert begun(farm, "mated") == ["m.1", "m.2"]
    assert not any(score.crashes for score in folded.events["m"].tally.scores.values())


def _won(farm: harness.Farm, _: state.SeasonState, first: contract.GameFinished) -> None:
    """White is 10.01 ahead for both: the game is White's, in journal and PGN."""
    assert (first.result, first.ending) == ("1-0", contract.Ending.INTERRUPTED)
    pgn = (farm.archive / "won" / "games" / "m.1" / "game.pgn").read_text()
    assert '[TerminationDetails "Interruption rule"]' in pgn


def _drawn(_farm: harness.Farm, _: state.SeasonState, first: contract.GameFinished) -> None:
    """0.15 is inside the Cup's window, bound included."""
    assert (first.result, first.ending) == ("1/2-1/2", contract.Ending.INTERRUPTED)


def _asked(_farm: harness.Farm, folded: state.SeasonState, first: contract.GameFinished) -> None:
    """The organizers' word is the result; game 2 came before it, or was in flight."""
    assert first.ending is contract.Ending.ORGANIZERS
    assert sorted(folded.events["m"].order) == ["m.1", "m.2"]


def _probed(farm: harness.Farm, _: state.SeasonState, first: contract.GameFinished) -> None:
    """The table's word on the position where the hall was killed is the result."""
    assert first.ending is contract.Ending.SYZYGY
    with chess.syzygy.open_tablebase(str(TABLES)) as tables:
        board = chess.Board(record(farm, "probed", "m.1").final_fen)
        assert chess.popcount(board.occupied) == 3
        won = {2: "0-1", 0: "1/2-1/2", -2: "1-0"}[tables.probe_wdl(board)]  # Black is to move
    assert first.result == won


def _restarted(farm: harness.Farm, _: state.SeasonState, first: contract.GameFinished) -> None:
    """The game began again after its opening, and its record tells of the lock-up."""
    made = record(farm, "restarted", "m.1")
    assert [ply.ply for ply in made.plies] == list(range(1, 13))
    assert len(made.interruptions) == 1
    assert first.plies == 12


CHECKS = {
    "resumed": _resumed,
    "mated": _mated,
    "won": _won,
    "drawn": _drawn,
    "asked": _asked,
    "probed": _probed,
    "restarted": _restarted,
}


def test_a_host_that_reboots_makes_nobody_lose(farm: harness.Farm) -> None:
    """A shutdown reaches engines first and everybody in the end; the game is resumed."""
    with played(farm, Scene("reboot", '"s16"', "resumed", plies=4)):
        worker = farm.worker.pid
        dead_man = harness.game_process(farm, "engines/supervisor.py")
        engines = harness.descendants(dead_man)
        others = [pid for pid in harness.descendants(worker) if pid not in engines]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in (*engines, dead_man, *others, worker):
                harness.kill(pid, number)
            time.sleep(0.1)
    interrupted.unharmed(farm, "reboot")
    assert record(farm, "reboot", "m.1").interruptions


def test_a_sick_hall_is_held_until_the_operator_releases_it(
    farm: harness.Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hold stands in the farm's journal and status; releasing it twice is refused."""
    monkeypatch.setenv("FARM_REDIS_URL", farm.redis.url_of(harness.OPERATOR))
    claim = harness.claim("s", "g", "a")
    farm.wait(lambda: harness.HALL in farm.ledger.halls(), 20, "the hall")
    link_hold.hold_hall(farm.ledger, claim, "the farm's own engine fails here, too")
    runner = click.testing.CliRunner()
    status = json.loads(runner.invoke(commands.farm, ["status", "--json"]).output)
    assert "own engine fails" in status["halls"][0]["holds"]["sick"]
    words = ["release-hall", harness.HALL, "--by", "ann", "--reason", "new memory"]
    done = runner.invoke(commands.farm, words)
    assert (done.exit_code, "may play again" in done.output) == (0, True), done.output
    assert farm.ledger.holds(f"hall:{harness.HALL}") == {}
    assert runner.invoke(commands.farm, words).exit_code == 3
    kinds = [entry.kind for entry in farm.ledger.read(api.FARM)]
    assert kinds[-2:] == ["hall_held", "hall_released"]


def _decide(farm: harness.Farm, season: str, question: str, choice: str) -> None:
    words = ("decide", question, "--choose", choice, "--season", season)
    farm.operate(*words, "--reason", "7-men table")
