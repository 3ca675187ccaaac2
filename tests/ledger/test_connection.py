"""The link to Redis: lost replies, absent servers, strangers, and what is said of them."""

from __future__ import annotations

import contextlib
import pathlib
import selectors
import socket
import ssl
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import scene

from orchestrator.common import errors
from orchestrator.ledger import address, api, connection, embedded_redis, store


class Proxy:
    """A proxy that can swallow the reply of one script and break the link instead."""

    def __init__(self, upstream: pathlib.Path) -> None:
        self._upstream = str(upstream)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self.swallowed = 0
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def swallow(self) -> None:
        """Swallow the reply of the next script that is carried out."""
        self._armed.set()

    def close(self) -> None:
        """Break all links and end."""
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._upstream)
                thread = threading.Thread(target=self._carry, args=(client, server))
                self._threads.append(thread)
                thread.start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        is_script = False
        with selectors.DefaultSelector() as waiting, contextlib.suppress(OSError):
            waiting.register(client, selectors.EVENT_READ, server)
            waiting.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in waiting.select():
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if key.fileobj is client:
                        is_script = b"EVALSHA" in data
                    elif is_script and self._armed.is_set() and not data.startswith(b"-NOSCRIPT"):
                        self._armed.clear()
                        self.swallowed += 1
                        data = b""
                    if not data:
                        client.shutdown(socket.SHUT_RDWR)
                        server.shutdown(socket.SHUT_RDWR)
                        return
                    key.data.sendall(data)


@pytest.fixture
def proxy(server: embedded_redis.EmbeddedRedis) -> Iterator[Proxy]:
    """Put a proxy before the real server."""
    running = Proxy(server.socket)
    yield running
    running.close()


@pytest.fixture
def lossy(proxy: Proxy, redis_ledger: store.RedisLedger) -> Iterator[store.RedisLedger]:
    """Reach the (empty) ledger through the proxy."""
    assert redis_ledger.seasons() == ()
    with store.connect(proxy.url) as ledger:
        yield ledger


def lost(ledger: store.RedisLedger, proxy: Proxy, verb: str, *args: object) -> object:
    """Call a verb whose reply gets lost, then repeat it; return what the repeat says."""
    before = proxy.swallowed
    proxy.swallow()
    with pytest.raises(errors.LedgerUnreachableError, match="safe to repeat"):
        getattr(ledger, verb)(*args)
    assert proxy.swallowed == before + 1
    return getattr(ledger, verb)(*args)


def test_a_whole_game_survives_the_loss_of_every_reply(
    lossy: store.RedisLedger, proxy: Proxy
) -> None:
    """Each verb is carried out, its reply lost, and repeated: each fact is in once."""
    drafts = [scene.draft("launch"), scene.draft("pair")]
    hold = [api.Hold("s2", "pause", "x")]
    assert lost(lossy, proxy, "append", "s1", 0, drafts, "op", hold) == api.Appended(2)
    assert lossy.seasons() == ("s1",)
    assert lost(lossy, proxy, "open_hall", "main", "h1", "w1") == api.Opened()
    assert lost(lossy, proxy, "offer", "main", "s1", "g1", "order", 2) == api.Offered()
    first = lost(lossy, proxy, "claim", scene.a_claim())
    assert isinstance(first, api.Claimed)
    end = scene.ended()
    assert lost(lossy, proxy, "give_up", "main", first.token, "s1", end) == api.Recorded(4)
    assert lost(lossy, proxy, "offer", "main", "s1", "g1", "order", 4) == api.Offered()
    second = lost(lossy, proxy, "claim", scene.a_claim("a2"))
    assert isinstance(second, api.Claimed)
    held = ("main", second.token)
    assert lost(lossy, proxy, "write_ply", *held, "a2", 1, "e4") == api.Written()
    assert lost(lossy, proxy, "renew", *held, "a2", 1, 5) == api.Renewed()
    done = scene.finished("a2")
    assert lost(lossy, proxy, "complete", *held, "s1", done, b"r") == api.Recorded(6)
    assert [entry.seq for entry in lossy.read("s1")] == [1, 2, 3, 4, 5, 6]
    assert scene.kinds(lossy)[2:] == [
        "attempt_started",
        "attempt_ended",
        "attempt_started",
        "game_finished",
    ]


def test_a_lost_revocation_is_one_revocation(lossy: store.RedisLedger, proxy: Proxy) -> None:
    """Suspect and revoke, each with its reply lost, end the attempt once."""
    token = scene.playing(lossy, ttl_ms=scene.SHORT)
    scene.lapse()
    assert lost(lossy, proxy, "suspect", "main", token, "look") == api.Suspected()
    reply = lost(lossy, proxy, "revoke", "main", token, "look", scene.ended())
    assert reply == api.Recorded(3)
    assert scene.kinds(lossy).count("attempt_ended") == 1


def test_an_absent_server_is_unreachable(tmp_path: pathlib.Path) -> None:
    """Every kind of call says which server does not answer and what to do."""
    with store.connect(f"unix://{tmp_path}/none.sock") as ledger:
        for call in (
            ledger.now_ms,
            ledger.seasons,
            ledger.whoami,
            ledger.check_durability,
            lambda: ledger.slot("main"),
            lambda: ledger.wait({"s1": 0}, 10),
            lambda: ledger.append("s1", 0, [scene.draft()], "op"),
        ):
            with pytest.raises(
                errors.LedgerUnreachableError, match=r"none\.sock.*`farm up`.*FARM_REDIS_URL"
            ):
                call()


def test_a_host_that_is_not_found_is_told_by_its_name() -> None:
    """A mistyped host is no server that has to be started."""
    with (
        store.connect("redis://contrl.invalid:6379/0") as ledger,
        pytest.raises(errors.LedgerUnreachableError) as told,
    ):
        ledger.now_ms()
    text = str(told.value)
    assert "contrl.invalid" in text
    assert "cannot be found" in text
    assert "start it" not in text


def test_a_certificate_of_an_unknown_ca_names_the_setting(tmp_path: pathlib.Path) -> None:
    """Who has forgotten FARM_REDIS_CA is told of it, and not to start a server that runs."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words, *files], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def answer(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            link, _ = server.accept()
            with link, context.wrap_socket(link, server_side=True):
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer, args=(server,))
        answering.start()
        url = f"rediss://localhost:{server.getsockname()[1]}/0"
        with (
            store.connect(url) as ledger,
            pytest.raises(errors.LedgerUnreachableError) as told,
        ):
            ledger.now_ms()
        answering.join()
    assert "FARM_REDIS_CA" in str(told.value)
    assert "start it" not in str(told.value)


def test_a_silent_server_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes the link and never answers runs into the socket time-out."""
    monkeypatch.setattr(connection, "SOCKET_TIMEOUT", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        store.connect(f"redis://127.0.0.1:{silent.getsockname()[1]}/0") as ledger,
        pytest.raises(errors.LedgerUnreachableError),
    ):
        ledger.now_ms()


def test_a_ledger_works_again_after_a_restart(tmp_path: pathlib.Path) -> None:
    """The same object, over a server that was stopped and has forgotten its scripts, goes on."""
    own = embedded_redis.EmbeddedRedis(tmp_path)
    with own, store.connect(own.url) as ledger:
        scene.launch(ledger)
        own.stop()
        with pytest.raises(errors.LedgerUnreachableError):
            ledger.append("s1", 1, [scene.draft()], by="op")
        own.start()
        with pytest.raises(errors.LedgerUncheckedError, match="farm serve"):
            ledger.append("s1", 1, [scene.draft()], by="op")
        assert ledger.set_checked("s1", ledger.run_id())
        assert ledger.append("s1", 1, [scene.draft()], by="op") == api.Appended(2)
        ledger.server.client.script_flush()
        assert ledger.append("s1", 2, [scene.draft()], by="op") == api.Appended(3)


UNESCAPED = [
    "redis://farm:s3cret#x@host:6379/0",
    "redis://farm:s3#cret@host",
    "redis://farm:s3/cret@h",
    "redis://:s3?cret@h:6379",
    "redis://farm:73#cret@h",  # what stands before could be a port
    "rediss://farm:s3cret]#x@host:6379/0",
    "redis://farm:[s3cret@host",
]


@pytest.mark.parametrize("url", UNESCAPED)
@pytest.mark.parametrize("by", ["environment", "hand"])
def test_no_part_of_a_password_is_shown(url: str, by: str) -> None:
    """A password with an unescaped letter ends in an error that shows how to write it."""
    given = url if by == "hand" else {"FARM_REDIS_URL": url}
    opened: Callable[[Any], object] = store.connect if by == "hand" else address.url
    with pytest.raises(errors.UsageError) as raised:
        opened(given)
    told = "".join(traceback.format_exception(raised.value))
    assert "%23" in told
    assert not [part for part in ("s3", "cret", "73") if part in told.replace(url, "")]


@pytest.mark.parametrize("url", ["http://here", "", "redis://host:port", "ftp:///x"])
def test_a_bad_url_is_a_usage_error(url: str) -> None:
    """What is no Redis URL is refused before anything is sent, with the allowed forms."""
    with pytest.raises(errors.UsageError, match="redis://host"):
        store.connect(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:s3cret@host:1/0", "redis://:***@host:1/0"),
        ("rediss://anna:s3cret@host/0", "rediss://anna:***@host/0"),
        ("unix:///run/r.sock?db=1&password=s3cret", "unix:///run/r.sock?db=1&password=***"),
        ("unix://anna@/run/r.sock", "unix://anna@/run/r.sock"),
        ("redis://anna:s3#c/r@host:1/0", "redis://anna:***@host:1/0"),
        ("anna:s3cret@host", "(no scheme)"),
        ("redis://anna:s3:cr@et@host:1/0", "redis://anna:***@host:1/0"),
    ],
)
def test_no_password_is_ever_shown(url: str, shown: str) -> None:
    """The password is masked wherever in the URL it stands."""
    assert address.masked(url) == shown


@pytest.fixture
def worker_url(
    server: embedded_redis.EmbeddedRedis, redis_ledger: store.RedisLedger
) -> Iterator[str]:
    """Make a Redis user with a worker's rights; return its URL."""
    client = redis_ledger.server.client
    rights = (
        "resetkeys ~farm:ledger:* +@read +@write +@scripting +@connection +@transaction "
        "-@admin -@dangerous +info +time"
    )
    client.execute_command("ACL", "SETUSER", "walter", "reset", "on", ">s3cret", *rights.split())
    yield f"unix://walter@{server.socket}?password=s3cret"
    client.execute_command("ACL", "DELUSER", "walter")


def test_a_worker_needs_few_rights(worker_url: str) -> None:
    """All verbs work for a user without CONFIG and admin rights, under its own name."""
    with store.connect(worker_url) as ledger:
        token = scene.playing(ledger)
        assert ledger.whoami() == "walter"
        assert ledger.write_ply("main", token, "a1", 1, "p") == api.Written()
        assert ledger.wait({"s1": 0}, 100)
        assert ledger.slot("main") is not None
        ledger.set_live("main", "x", 1000)
        done = ledger.complete("main", token, "s1", scene.finished(), b"r")
        assert isinstance(done, api.Recorded)
        ledger.archived("a1")


def test_durability_is_judged_without_config_rights(worker_url: str) -> None:
    """Where CONFIG GET is forbidden, what cannot be seen is said, what can be is judged."""
    with store.connect(worker_url) as ledger:
        assert ledger.check_durability() == [
            "appendfsync cannot be seen (CONFIG GET is forbidden); it should be always",
            f"default-user cannot be seen (ACL DRYRUN is forbidden), {connection.RELOADING}",
        ]


def test_a_careless_server_is_complained_of(redis_ledger: store.RedisLedger) -> None:
    """Each setting that could lose a write is named with what it should be."""
    client = redis_ledger.server.client
    assert redis_ledger.check_durability() == []
    client.config_set("appendfsync", "everysec")
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert redis_ledger.check_durability() == [
            "appendfsync is everysec, and should be always",
            "maxmemory-policy is allkeys-lru, and should be noeviction",
        ]
    finally:
        client.config_set("appendfsync", "always")
        client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize(
    ("rules", "forbidden"),
    [
        (("-@all", "resetkeys"), "multi"),  # what the farm's own ACL file once said
        (("+@all", "resetkeys"), "set"),
        (("+@all", "~farm:[a-b]*"), "set"),
        (("+@all", "~*", "-xadd"), "xadd"),
        (("+@all", "~*", "-zadd"), "zadd"),
    ],
)
def test_a_server_that_loses_transactions_at_a_restart_is_complained_of(
    redis_ledger: store.RedisLedger, rules: tuple[str, ...], forbidden: str
) -> None:
    """Redis replays its file as the default user, who must be allowed all that is in it."""
    client = redis_ledger.server.client
    client.execute_command("ACL", "SETUSER", "root", "on", ">x", "~*", "&*", "+@all")
    asked = client.client()  # type: ignore[no-untyped-call] # one link, whose user stays
    try:
        asked.execute_command("AUTH", "root", "x")
        assert connection.check_durability(asked) == []
        asked.execute_command("ACL", "SETUSER", "default", "resetkeys", *rules)
        assert connection.check_durability(asked) == [
            f"default-user may not run {forbidden}, {connection.RELOADING}"
        ]
    finally:
        asked.execute_command("ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all")
        asked.execute_command("ACL", "DELUSER", "root")
        asked.close()


def test_strangers_and_forbidden_keys_are_told_apart(
    server: embedded_redis.EmbeddedRedis, worker_url: str
) -> None:
    """A wrong password is unreachable, a key without rights is refused; no secret is shown."""
    wrong = worker_url.replace("s3cret", "wr0ng")
    with store.connect(wrong) as ledger:
        with pytest.raises(errors.LedgerUnreachableError, match="refused user or password") as told:
            ledger.now_ms()
        assert "wr0ng" not in str(told.value)
    with (
        store.connect(worker_url, prefix="other:") as ledger,
        pytest.raises(errors.LedgerRefusedError, match=r"refused a command"),
    ):
        ledger.append("s1", 0, [scene.draft()], "op")


def test_prefixes_are_ledgers_apart(
    server: embedded_redis.EmbeddedRedis, redis_ledger: store.RedisLedger
) -> None:
    """Two ledgers on one server under two prefixes know nothing of each other."""
    with store.connect(server.url, prefix="test:") as other:
        scene.launch(other)
        assert redis_ledger.seasons() == ()
        keys = redis_ledger.server.client.keys("*")
        assert keys
        assert all(key.startswith(b"test:") for key in keys)


def test_our_clients_never_retry(redis_ledger: store.RedisLedger) -> None:
    """Both clients give up after one try: a silent repeat would hide a lost reply."""
    for client in (redis_ledger.server.client, redis_ledger.server.blocking):
        assert isinstance(client, redis.Redis)
        assert client.get_retry()._retries == 0


def test_a_foreign_entry_is_damage(redis_ledger: store.RedisLedger) -> None:
    """An entry that somebody else put into a journal is named, not folded."""
    scene.launch(redis_ledger)
    redis_ledger.server.client.xadd("farm:ledger:journal:s1", {"by": "hand"}, id="2-0")
    with pytest.raises(errors.LedgerDamagedError, match="entry 2-0"):
        redis_ledger.read("s1")
