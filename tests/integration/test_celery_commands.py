"""Celery's own commands and Flower, unmodified: they tell the truth about a farm that plays."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import harness
import kombu
import pytest

from orchestrator import celery
from orchestrator.contract import bells
from orchestrator.ledger import address
from orchestrator.ops import supervisor
from orchestrator.queues import broker, remote_control

PROXY = pathlib.Path(__file__).parents[1] / "chaos" / "lossy_proxy.py"


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Farm]:
    """Run a farm in the middle of a game that lasts as long as these tests."""
    with harness.running(tmp_path_factory.mktemp("celery")) as running:
        words = ("--delay-ms", "500")
        engines = [harness.scripted(running.life, strength, *words) for strength in (1, 2)]
        season = harness.league(running.root / "s.toml", engines, 20, control="600s+5s")
        running.launch(season, "s")
        running.wait(lambda: running.ledger.slot(harness.HALL) is not None, 60, "a game")
        yield running


def celery_(
    farm: harness.Farm, *words: str, user: str = harness.OPERATOR
) -> subprocess.CompletedProcess[str]:
    """Run Celery's program as somebody at a terminal does."""
    done = harness.celery(farm.environment(user), *words)
    assert "-password" not in done.stdout + done.stderr, "a password is nobody's business"
    return done


def answer(farm: harness.Farm, *words: str) -> str:
    """Ask the worker as the operator does, until it answers; return what is printed."""
    done = harness.answered(farm.environment(harness.OPERATOR), *words)
    assert "-password" not in done.stdout + done.stderr, "a password is nobody's business"
    return done.stdout


def test_status_and_inspect_name_the_hall_during_a_game(farm: harness.Farm) -> None:
    """The main process answers while its child plays, and says what the child does."""
    operator = farm.environment(harness.OPERATOR)
    assert f"{harness.HALL}@" in harness.answered(operator, "status", to=None).stdout
    for words in (("inspect", "ping"), ("inspect", "stats")):
        assert f"{harness.HALL}@" in answer(farm, *words)
    told = json.loads(answer(farm, "inspect", "active", "--json"))
    ((worker, tasks),) = told.items()
    assert worker.startswith(f"{harness.HALL}@")
    assert [task["name"] for task in tasks] in ([bells.PLAY], []), tasks
    told = json.loads(answer(farm, "inspect", "active_queues", "--json"))
    assert [queue["name"] for queue in told[worker]] == [bells.queue(harness.HALL)]
    for words in (("inspect", "conf"), ("inspect", "report")):
        assert answer(farm, *words)
    assert celery_(farm, "report").returncode == 0


def test_without_an_address_the_running_farm_is_found(farm: harness.Farm) -> None:
    """FARM_DATA, or the folder one stands in, is enough for Celery, as it is for `farm`."""
    environment = harness.without_farm() | {"FARM_DATA": str(farm.root)}
    assert f"{harness.HALL}@" in harness.answered(environment, "status").stdout


def test_events_are_shown(farm: harness.Farm) -> None:
    """`celery events --dump` prints heartbeats, and the rings that a hall hears."""
    command = [sys.executable, "-m", "celery", "-A", "orchestrator", "events", "--dump"]
    with subprocess.Popen(
        command, env=farm.environment(harness.OPERATOR), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        killer = threading.Timer(120, process.kill)
        killer.start()
        try:
            assert any("heartbeat" in line and harness.HALL in line for line in process.stdout)
        finally:
            killer.cancel()
            process.kill()


def test_a_call_reaches_a_hall_or_is_refused(farm: harness.Farm) -> None:
    """Without a queue nobody would hear it: it says what to type; with one it rings."""
    for words, reason in (
        ((bells.PLAY,), "--queue farm.play.hall-1"),
        ((bells.PLAY, "--queue", "celery"), "--queue farm.play.hall-1"),
        ((bells.PLAY, "--queue", bells.queue("x"), "--args", "[1]"), "takes no arguments"),
        (("os.system",), "there is no task os.system"),
    ):
        done = celery_(farm, "call", *words)
        assert done.returncode == 2, done.stdout
        assert reason in done.stderr
    done = celery_(farm, "call", bells.PLAY, "--queue", bells.queue("hall-9"))
    assert done.returncode == 0, done.stderr
    assert farm.ledger.server.client.llen(bells.KEYS + bells.queue("hall-9")) == 1


@pytest.mark.parametrize("order", [("pool_grow", "1"), ("time_limit", "farm.play", "1", "1")])
def test_orders_that_would_break_a_game_are_refused(
    farm: harness.Farm, order: tuple[str, ...]
) -> None:
    """The worker says why, and what to type instead; its child plays on."""
    child = harness.link_pid(farm)
    assert "is refused" in answer(farm, "control", *order)
    assert harness.link_pid(farm) == child


def test_every_order_that_is_refused_exists() -> None:
    """A new Celery that names them otherwise would take them again."""
    assert set(remote_control.REFUSED) <= set(remote_control.control.Panel.meta)


def test_only_operators_give_orders(farm: harness.Farm) -> None:
    """A worker's, exporter's or orchestrator's user that has been taken over ends no other."""
    farm.redis.need_users()
    for user in ("worker", "orchestrator", "exporter", "broadcast", "kibitzer"):
        done = celery_(farm, "control", "shutdown", user=user)
        assert done.returncode != 0, user
    assert farm.worker.running
    assert "pong" in answer(farm, "inspect", "ping")


def test_flower_shows_hall_and_game(farm: harness.Farm) -> None:
    """Flower's API names the worker, its queue and the ring that it plays by."""
    port = harness.free_port()
    command = [
        *(sys.executable, "-m", "celery", "-A", "orchestrator", "flower"),
        *("--address=127.0.0.1", f"--port={port}", "--inspect_timeout=20000"),
    ]
    environment = farm.environment(harness.OPERATOR) | {"FLOWER_UNAUTHENTICATED_API": "true"}
    flower = supervisor.Supervised(
        "flower", command, environment, farm.root / "logs" / "flower.log"
    )
    flower.start()
    try:
        found: dict[str, Any] = {}

        def shown() -> bool:
            with contextlib.suppress(OSError, ValueError):
                url = f"http://127.0.0.1:{port}/api/workers?refresh=1"
                found.update(json.load(urllib.request.urlopen(url, timeout=60)))
            return any(worker.get("active_queues") for worker in found.values())

        farm.wait(shown, 60, "the hall in Flower")
        ((name, worker),) = found.items()
        assert name.startswith(f"{harness.HALL}@")
        assert [queue["name"] for queue in worker["active_queues"]] == [bells.queue(harness.HALL)]
        assert "stats" in worker
        assert "-password" not in json.dumps(found)
    finally:
        flower.kill()


# -- a control channel that dies -------------------------------------------------------


def test_a_subscription_is_never_read_without_an_end(tmp_path: pathlib.Path) -> None:
    """A link that is made again within a read has nothing to read: the worker's loop goes on."""
    with harness.Redis(tmp_path / "redis") as server:
        url = address.broker(server.url_of("worker"))
        with celery.app.connection_for_read(url) as link:
            channel = link.default_channel
            listening = channel.subclient
            listening.psubscribe("/0.celery.pidbox")
            while listening.parse_response()[0] != b"psubscribe":
                pass
            listening.connection.disconnect()
            reader = threading.Thread(target=listening.parse_response, daemon=True)
            reader.start()
            reader.join(10 * broker.READ_SECONDS)
            assert not reader.is_alive(), "the read waits for ever"
            with kombu.Connection(address.broker(server.url)) as sender:
                sender.default_channel.client.publish(f"{bells.KEYS}/0.celery.pidbox", b"x")
            assert listening.subscribed


def test_a_hall_whose_control_channel_dies_hears_its_rings(tmp_path: pathlib.Path) -> None:
    """Replies lost, in silence and with the link, and a frozen link: it plays and answers after."""
    farm = harness.Farm(tmp_path, harness.CALM)
    farm.start()
    through = tmp_path / "proxy.sock"
    command = [sys.executable, str(PROXY), str(through), str(farm.redis.socket)]
    proxy = supervisor.Supervised("proxy", command, {}, tmp_path / "proxy.log")
    lose = pathlib.Path(f"{through}.lose")

    operator = farm.environment(harness.OPERATOR)
    ping = ("inspect", "ping")

    try:
        proxy.start()
        harness.wait(through.exists, "the proxy")
        farm.worker.stop(30)
        own = {"FARM_REDIS_URL": farm.redis.as_user(f"unix://{through}", "worker")}
        farm.worker.environment = dict(farm.worker.environment) | own
        farm.worker.start()
        farm.wait(lambda: harness.HALL in farm.ledger.halls(), 60, "the hall")
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        for number, way in enumerate(("silence", "close", "frozen")):
            with _broken(way, lose, proxy.pid):
                harness.celery(operator, *ping, "--timeout", harness.ANSWER_SECONDS)
            worker = farm.worker.pid
            path = farm.root / f"{number}.toml"
            season = harness.league(path, engines, final_games=2, adjudication="{ max_moves = 8 }")
            farm.launch(season, f"s{number}")
            farm.finish(f"s{number}")
            assert farm.worker.pid == worker
            assert "pong" in harness.answered(operator, *ping).stdout
    finally:
        farm.stop()
        proxy.kill()


@contextlib.contextmanager
def _broken(way: str, lose: pathlib.Path, proxy: int) -> Iterator[None]:
    """Break the worker's link for the length of a block."""
    if way == "frozen":
        with harness.frozen([proxy]):
            yield
        return
    lose.write_text(way)
    try:
        yield
    finally:
        lose.unlink()
