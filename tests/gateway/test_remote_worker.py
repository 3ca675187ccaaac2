"""Real workers over HTTP: a match that outlives a worker, its gateway and their leases."""

from __future__ import annotations

import collections
import json
import pathlib
import re
import signal
import subprocess
import typing

import harness
import pytest
import remote_stage
import told

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.gateway import desk
from orchestrator.ledger import keys, lane_store, lanes, live_games
from orchestrator.ops import supervisor
from orchestrator.testmatch import orders
from worker_cpu.remote import command, engines, gateway, player, spool

GAMES = 4
MANY = 40  # games: beyond the first, a lane takes several at once


def test_people_see_a_game_while_it_is_played(stage: remote_stage.Stage) -> None:
    """What a real worker tells of it; its engines take their time."""
    text = stage.roster.read_text().replace(
        f'{remote_stage.ENGINE}"', f'{remote_stage.ENGINE}", "--nodes", "0"'
    )
    stage.roster.write_text(text)
    played = ("test", "dev", "--against", "base", "--file", str(stage.roster), "--id", "m")
    stage.match_of(*played, "--games", "2", "--tc", "30s+1s", "--check-nodes", "0", "--remote")
    stage.serve()
    stage.work("first")
    live = live_games.RedisLiveGames(stage.ledger.server)
    stage.wait(lambda: live.all(stage.ledger.now_ms()), "a live game")
    (game,) = live.all(stage.ledger.now_ms())
    assert (game.match, game.number, game.worker.partition("/")[0]) == ("m", 1, "anna")
    assert game.plies


def test_a_match_is_played_through_a_killed_worker_and_gateway(stage: remote_stage.Stage) -> None:
    """Each game is counted once. Ctrl-C gives games back, those of a killed worker are dealt again.

    The first worker is stopped by Ctrl-C, the second killed, the third finds no gateway at first.
    """
    match = stage.match(GAMES)
    serving = stage.serve()
    stopped = stage.work("stopped")
    stage.wait(lambda: stage.leased() or match.poll() is not None, "a lease of a worker")
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait() == 130, stage.log("stopped")
    assert stage.leased() == {}, "what was not played is given back"
    first = stage.work("first")
    stage.wait(lambda: stage.leased() or match.poll() is not None, "a lease of the first worker")
    while True:  # it may have told its games before it is killed: then it gets others
        lost = stage.leased()
        first.kill()
        first.wait()
        lost = {name: games for name, games in stage.leased().items() if name in lost}
        if lost:
            break
        first = stage.work("first")
        stage.wait(stage.leased, "a lease of the first worker")
    (batch, games) = next(iter(lost.items()))
    serving.kill()
    serving.wait()
    last = stage.work("last")
    stage.wait(lambda: "is away" in stage.log("last"), "a worker without a gateway")
    stage.serve()
    # Ten minutes later, as Redis sees it: the lease of the worker that was killed has ended.
    stage.ledger.server.client.zadd(keys.Keys().batches("due"), {batch: 1})
    stage.wait(lambda: match.poll() is not None, "the end of the match")
    facts = json.loads(stage.log("match")[stage.log("match").index("{") :])
    assert (match.returncode, facts["games"]) == (0, GAMES)
    journal = stage.journal()
    played = [one.data for one in journal if one.kind == "test_game"]
    checks = [(one["game"], one["attempt"]) for one in played if one["game"] > orders.LAST_GAME]
    assert checks, "a first game showed the builds"
    # The same check may be drawn again, or be asked again of whoever told it as its gateway died.
    assert len(checks) == len(set(checks)), "a batch tells a check once"
    results = collections.Counter(one["game"] for one in played)
    counted = {game: times for game, times in results.items() if game <= orders.LAST_GAME}
    assert counted == dict.fromkeys(range(1, GAMES + 1), 1)
    replayed = {one.data["game"] for one in journal if one.data.get("attempt") not in (None, batch)}
    assert set(games) <= replayed
    assert stage.batches.lapse() == 0
    last.send_signal(signal.SIGINT)
    assert last.wait() == 130, stage.log("last")
    assert "counted" in stage.log("last")
    assert list((stage.root / "last" / "batches").iterdir()) == []


def test_a_lane_beside_remote_workers_plays_their_checks_and_then_the_next_match(
    tmp_path: pathlib.Path,
) -> None:
    """Also one that finds what an earlier version has left: a lease without games."""
    with harness.running(tmp_path / "farm") as farm:
        stage = remote_stage.Stage(tmp_path, farm.redis)
        lane = supervisor.lane("a=0", farm.worker, harness.HALL)
        known = lane_store.RedisLanes(stage.ledger.server)
        try:
            lane.start()
            farm.wait(lambda: bool(known.lanes_of(harness.HALL)), 60, "the lane")
            lane.kill()  # it is known, so that checks are dealt to it, and claims nothing yet
            stage.match(MANY)
            stage.serve()
            worker = stage.work("worker")
            stage.wait(lambda: _kinds(stage) & {lanes.CHECKED}, "a check for the lane")
            worker.send_signal(signal.SIGINT)
            assert worker.wait() == 130, stage.log("worker")
            _lease_nothing(stage, known.lanes_of(harness.HALL)[0])
            lane.start()
            stage.wait(lambda: "m" not in known.matches(), "the end of the match")
            next_words = ("test", "dev", "--against", "base", "--file", str(stage.roster))
            quick = ("--id", "n", "--games", "4", "--tc", "nodes=20", "--json")
            following = stage.run(harness.OPERATOR, "next", *next_words, *quick)
            stage.wait(lambda: following.poll() is not None, "the end of the next match")
            assert following.returncode == 0, stage.log("next")
            listed = farm.operate("lanes", "--json")
            assert [one["game"] for one in json.loads(listed)["lanes"]] == [0]
        finally:
            lane.kill()
            stage.end()
    played = [entry.data for entry in stage.journal() if entry.kind == lanes.GAME]
    checks = [data for data in played if data["game"] > orders.LAST_GAME and data["lane"] == "a"]
    assert checks, "the lane has played what shows the workers' builds"
    answered = [data["game"] > orders.LAST_GAME for data in played if not data["lane"]]
    counts = re.search(
        r"stopped; (\d+) games? counted, (\d+) checks? answered", stage.log("worker")
    )
    assert counts is not None, stage.log("worker")
    assert tuple(map(int, counts.groups())) == (answered.count(False), answered.count(True))
    assert "m: dealt 1 check" in stage.log("worker")
    assert {int(number) for number in re.findall("m check ([0-9]+) ", stage.log("worker"))} <= {
        *range(1, orders.CHECKS + 1)
    }
    assert not re.search("game [0-9]{5}", stage.log("worker")), "a check is called a check"


def _kinds(stage: remote_stage.Stage) -> set[str]:
    return {entry.kind for entry in stage.journal()}


def _lease_nothing(stage: remote_stage.Stage, lane: lanes.Lane) -> None:
    """Leave what a lane's claim left that took pairs where checks alone were to be dealt."""
    facts = {"match": "over", "run": "1.1", "token": "1.9", "worker": "w", "host": lane.host}
    facts |= {"attempt": "old", "games": "", "ttl": "30000", "deadline": "1"}
    names, client = keys.Keys(), stage.ledger.server.client
    client.hset(names.leases(lane.hall), lane.name, contract.dumps(facts))
    client.zadd(names.due(lane.hall), {lane.name: 1})


# -- what needs no process -----------------------------------------------------------------


def _engines_known(tmp_path: pathlib.Path) -> tuple[list[engines.Engine], str]:
    program = tmp_path / "dev"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "net.nn").write_text("net")
    roster = tmp_path / "engines.toml"
    roster.write_text(
        'schema = 1\n[[engine]]\nid = "d"\ncommand = ["./dev", "--fast"]\nnetwork = "net.nn"\n'
    )
    known = engines.read(roster)
    by_path = {path: digest for digest, path in known[0].files.items()}
    return known, by_path[str(tmp_path / "dev")]


def _order(digest: str, **other: object) -> contract.GameOrder:
    words = {"id": "dev", "name": "Dev", "command": ("bin/dev", "--fast")}
    engine = {**words, "checksums": {"bin/dev": digest}, **other}
    spec = orders.Spec.model_validate(
        {
            "id": "m",
            "engines": [engine, engine],
            "time_control": {"nodes": 1},
            "games": 2,
        }
    )
    return spec.order(1)


def test_an_order_is_played_with_ones_own_files(tmp_path: pathlib.Path) -> None:
    """Program and directory are the roster's; a pinned file in an option is that file here."""
    known, digest = _engines_known(tmp_path)
    (net,) = (one for one, path in known[0].files.items() if path.endswith("net.nn"))
    pins = {"bin/dev": digest, "nets/a.nn": net}
    order = _order(digest, checksums=pins, options={"EvalFile": "nets/a.nn", "Hash": 16})
    played = engines.localized(order, known).white
    assert played.command == (str(tmp_path / "dev"), "--fast")
    assert played.options == {"EvalFile": str(tmp_path / "net.nn"), "Hash": 16}
    assert (played.directory, played.checksums) == (str(tmp_path), {})
    greedy = order.model_copy(update={"hand_on": True, "sandbox": "bubblewrap", "journaled": True})
    assert engines.localized(greedy, known) == engines.localized(order, known)


@pytest.mark.parametrize(
    "wrong",
    [
        {"checksums": {"bin/dev": "0" * 64}},
        {"checksums": {}},
        {"command": ("bin/dev", "--other")},
        {"options": {"Debug Log File": "/home/anna/.profile"}},
        {"options": {"SyzygyPath": "../tables"}},
        {"options": {"Style": "a\nquit"}},
        {"init": ("setoption name Debug Log File value /home/anna/.profile",)},
        {"init": ("isready\nquit",)},
    ],
    ids=str,
)
def test_nothing_is_started_that_ones_roster_has_not(
    tmp_path: pathlib.Path, wrong: dict[str, object]
) -> None:
    """Another file, other arguments, a path in an option or a line: refused before the game."""
    known, digest = _engines_known(tmp_path)
    with pytest.raises(engines.UnplayableError):
        engines.localized(_order(digest, **wrong), known)


def test_a_match_for_workers_has_its_engines_here_and_pinned(tmp_path: pathlib.Path) -> None:
    """``farm test --remote`` refuses what no worker could be held to: exit code 2, by name."""
    environment = {"FARM_REDIS_URL": f"unix://{tmp_path}/none.sock", "FARM_DATA": str(tmp_path)}
    words = ("test", "dev", "--against", "base", "--remote")
    assert "--file" in harness.farm(*words, code=2, env=environment)
    roster = tmp_path / "engines.toml"
    roster.write_text(remote_stage.ROSTER.format(engine=tmp_path / "nowhere"))
    refused = harness.farm(*words, "--file", str(roster), code=2, env=environment)
    assert "nowhere is not on this machine" in refused


def _worker(tmp_path: pathlib.Path, there: object = None) -> command.Worker:
    options = player.Options(tmp_path, 1, 1, frozenset(), "plain")
    kept = spool.Spool(tmp_path)
    return command.Worker(there, kept, [], options, None, until_idle=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "done"),
    [
        (remote.NOTHING, True),
        (f"{remote.NOTHING}; dev-1 wants Dev's dev with SHA-256 ab12…", True),
        (desk.CHECKING, False),
    ],
)
def test_a_worker_that_is_told_to_wait_does_not_end(
    tmp_path: pathlib.Path, why: str, *, done: bool
) -> None:
    """``--until-idle`` ends it where there is nothing to play, not while another one is checked."""

    class Waiting:
        def claim(self, _: remote.BatchWanted) -> remote.BatchDealt:
            return remote.BatchDealt(why=why)

    worker = _worker(tmp_path, Waiting())
    worker._claim()
    assert worker._done() is done


def test_a_worker_that_plays_does_not_say_that_it_waits(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so when it has nothing to play any more, and once."""

    class Waiting:
        def claim(self, _: remote.BatchWanted) -> remote.BatchDealt:
            return remote.BatchDealt(why=remote.NOTHING)

    worker = _worker(tmp_path, Waiting())
    worker._player = typing.cast("subprocess.Popen[bytes]", object())
    worker._claim()
    assert capsys.readouterr().out == ""
    worker._player = None
    for _ in range(2):
        worker._claim_at = 0.0
        worker._claim()
    assert capsys.readouterr().out == f"waiting: {remote.NOTHING}\n"


@pytest.mark.parametrize(
    ("away", "renewed"),
    [(gateway.AwayError("keep them and try again", 10.0), ["b"]), (gateway.AwayError("cut"), [])],
)
def test_a_batch_whose_results_are_put_off_is_renewed(
    tmp_path: pathlib.Path, away: gateway.AwayError, renewed: list[str]
) -> None:
    """A gateway that asks to wait is there; one that cannot be reached is not asked twice."""
    asked: list[str] = []

    class Overloaded:
        url = "http://127.0.0.1"

        def results(self, *_: object) -> remote.GamesHeard:
            raise away

        def renew(self, batch: str, _: str) -> remote.BatchRenewed:
            asked.append(batch)
            return remote.BatchRenewed()

    worker = _worker(tmp_path, Overloaded())
    worker._greeted = True
    order = told.spec(games=1).order(1)
    batch = spool.Batch("b", Overloaded.url, "1.1", "m", 600_000, (order,))
    worker._spool.keep(batch)
    worker._spool.write("b", told.game(order))
    worker._read_spool()
    worker._ask()
    assert (asked, worker._failures) == (renewed, 1)
    assert worker._spool.unsent(batch)


def test_a_worker_counts_one_game_as_one(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says nothing of games of before where only results are left."""

    class There:
        url = "http://127.0.0.1"

        def token(self) -> dict[str, object]:
            return {"name": "anna", "until_ms": 0, "matches": ["*"]}

    worker = _worker(tmp_path, There())
    worker._greet()
    assert ": 1 game at a time, " in capsys.readouterr().out
    order = told.spec(games=1).order(1)
    batch = spool.Batch("b", There.url, "1.1", "m", 600_000, (order,))
    worker._spool.keep(batch)
    worker._read_spool()
    assert capsys.readouterr().out == "going on with 1 game of before\n"
    worker._spool.write("b", told.game(order))
    worker._read_spool()
    assert "0 game" not in capsys.readouterr().out


def test_a_worker_whose_machine_is_too_busy_to_play_gives_back_rests_and_goes_on(
    tmp_path: pathlib.Path,
) -> None:
    """Its games are dealt to others at once; only a machine that never plays one ends it."""
    given_back: list[str] = []

    class Taking:
        url = "http://127.0.0.1"

        def give_back(self, batch: str, _: str) -> None:
            given_back.append(batch)

        def results(self, *_: object) -> remote.GamesHeard:
            return remote.GamesHeard(recorded=(1,))

    worker = _worker(tmp_path, Taking())
    orders_dealt = tuple(map(told.spec(games=2).order, (1, 2)))

    def fail(turn: int, *, played: bool = False) -> None:
        batch = spool.Batch(f"b{turn}", Taking.url, "1.1", "m", 600_000, orders_dealt)
        worker._spool.keep(batch)
        worker._batches[batch.name], worker._renew_at[batch.name] = batch, 0.0
        if played:
            worker._spool.write(batch.name, told.game(orders_dealt[0], number=1))
        worker._judge(errors.HostError.exit_code)
        assert (given_back[-1], worker._batches) == (batch.name, {})

    fail(0)
    fail(1, played=True)
    assert worker._counted == 1, "a game that was played before counts, and ends the row"
    for turn in range(command.SETBACKS):
        fail(2 + turn)
        assert not worker._done()
        worker._claim()  # nothing is asked for while it rests
    with pytest.raises(errors.HostError, match="ended with code 5"):
        fail(99)


def test_ctrl_c_before_the_player_is_ready_is_no_error(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes while modules are imported: the player ends without a word."""
    worker = _worker(tmp_path)
    worker._start_player()
    process = worker._player
    assert process is not None
    process.send_signal(signal.SIGINT)
    assert process.wait() == player.STOPPED
    assert capfd.readouterr().err == ""


def test_results_that_wait_go_in_portions(tmp_path: pathlib.Path) -> None:
    """As many games as a request takes, by number and by bytes, and always one."""
    kept = spool.Spool(tmp_path)
    batch = spool.Batch(
        "b", "http://127.0.0.1", "1.1", "m", 1, tuple(map(told.spec(games=50).order, range(1, 51)))
    )
    kept.keep(batch)
    small = told.game(batch.orders[0], number=1)
    for number in range(1, 41):
        kept.write("b", small.model_copy(update={"number": number}))
    unsent = kept.unsent(batch)
    assert [number for number, _ in unsent] == list(range(1, 41))
    assert len(command._portion(unsent)) == command.SENT_AT_ONCE
    large = [(number, b"x" * (command.SENT_BYTES // 2)) for number in range(5)]
    assert len(command._portion(large)) == 2
    assert len(command._portion([(1, b"x" * 2 * command.SENT_BYTES), *large])) == 1
    kept.sent(batch, 7)
    assert 7 not in [number for number, _ in kept.unsent(batch)]
    assert kept.missing(batch) == list(range(41, 51))


@pytest.mark.parametrize(
    "url", ["http://farm.example.org", "ftp://x", "farm", "https://a:b@c", "https://", "http://[::"]
)
def test_a_token_goes_by_https_alone(url: str) -> None:
    """Plain HTTP is for this machine; no other scheme, no password in the address."""
    with pytest.raises(errors.UsageError, match="allowed: https://"):
        gateway.Gateway(url, "t")
    assert gateway.Gateway("http://127.0.0.1:1/", "t").url == "http://127.0.0.1:1"
