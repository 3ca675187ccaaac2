"""Clients that harm: they lose their own place, and nobody else notices."""

from __future__ import annotations

import contextlib
import json
import pathlib
import resource
import select
import socket
import threading
from collections.abc import Iterator

import harness
import httpx
import pytest
import theatre
from websockets.sync import client as websocket

from orchestrator.broadcast.web import connection_limits, guard, sockets, streams
from orchestrator.common import errors
from orchestrator.ledger import store

STREAM = b"GET /api/v1/live HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 60  # s: how long a busy machine may take for what has to come
HARMFUL = "127.0.0.66"  # an address of loopback that is no proxy's


def port_of(url: str) -> int:
    """Return the port of an address."""
    return int(url.rpartition(":")[2])


def connect(port: int, source: str = HARMFUL) -> socket.socket:
    """Connect from an address."""
    return socket.create_connection(("127.0.0.1", port), SECONDS, source_address=(source, 0))


def said(raw: socket.socket) -> bytes:
    """Return all that a connection still says until it is closed; it must be closed."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := raw.recv(65_536):
            found += part
    return found


class Listener(threading.Thread):
    """A spectator who reads: all events that it was told, in a thread."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.told: list[theatre.Event] = []
        self._answer = httpx.stream("GET", f"{url}/api/v1/live", timeout=SECONDS)
        self.start()
        harness.wait(lambda: bool(self.told), "a snapshot")

    def run(self) -> None:
        """Read until the server ends."""
        with contextlib.suppress(httpx.TransportError), self._answer as answer:
            self.told.extend(theatre.events(answer))

    def hears_of(self, tape: theatre.Tape) -> None:
        """Play a little of a tape, and wait until it is told."""
        before = len(self.told)
        tape.shown = min(tape.shown + 2, len(tape.journal))
        harness.wait(lambda: len(self.told) > before, "an event")


@contextlib.contextmanager
def played(
    root: pathlib.Path, limits: connection_limits.ConnectionLimits | None = None
) -> Iterator[tuple[str, theatre.Tape]]:
    """Serve a season that is played as its tape is moved on."""
    tape = theatre.simulated("demo")
    tape.shown = 3
    with theatre.served(tape, root, limits=limits) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"] != "", "the season")
        yield url, tape


def test_who_never_reads_is_cut_and_everybody_else_is_told_all(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a deaf listener has not read is bounded; who reads misses no event of a season."""
    monkeypatch.setattr(streams, "KERNEL_BYTES", 4_096)
    monkeypatch.setattr(streams, "MOST", 2_000)
    with played(tmp_path) as (url, tape), socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect(("127.0.0.1", port_of(url)))
        deaf.sendall(STREAM)
        assert deaf.recv(12) == b"HTTP/1.1 200"
        good = Listener(url)
        while tape.shown < len(tape.journal):
            good.hears_of(tape)
        harness.wait(lambda: good_season(good)["status"] == "finished", "the end of the season")
        deaf.settimeout(SECONDS)
        heard = said(deaf)
        numbers = [int(event.id.rpartition("-")[2]) for event in good.told[1:] if event.id]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert f"id: {good.told[-1].id}\n".encode() not in heard
        assert Listener(url).told[0].data["season"] == good_season(good)


def good_season(listener: Listener) -> dict[str, object]:
    """Return the season as a listener knows it."""
    last = [event.data for event in listener.told if event.kind == "season"][-1]
    return {key: value for key, value in last.items() if key != "now_ms"}


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow loris is cut before its head is whole; a listener who is only silent is not."""
    monkeypatch.setattr(guard, "SILENT_SECONDS", 2.0)
    with played(tmp_path) as (url, tape), connect(port_of(url)) as loris:
        good = Listener(url)
        loris.settimeout(0.05)

        def cut() -> bool:
            try:
                loris.sendall(b"G")
                return not loris.recv(1)
            except TimeoutError:
                return False
            except OSError:
                return True

        harness.wait(cut, "the end of a head that is never whole")
        good.hears_of(tape)


def test_what_is_posted_is_short_and_comes_soon(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A viewer's POST that is long is refused before it has come, a slow one given up."""
    monkeypatch.setattr(sockets, "POST_SECONDS", 0.4)
    with played(tmp_path) as (url, _):
        polling = "/socket.io/?EIO=3&transport=polling"
        length, _, rest = httpx.get(url + polling).text.partition(":")
        place = f"{polling}&sid={json.loads(rest[1 : int(length)])['sid']}"
        for long, body, status in ((10_000_000, b"x" * 5_000, 413), (100, b"1:", 408)):
            with connect(port_of(url)) as raw:
                head = f"POST {place} HTTP/1.1\r\nHost: x\r\nContent-Length: {long}\r\n\r\n"
                raw.sendall(head.encode() + body)
                assert raw.recv(12) == f"HTTP/1.1 {status}".encode()


def test_one_address_takes_no_place_of_another(tmp_path: pathlib.Path) -> None:
    """An address gets so many places, a proxy more, all together so many; 503 says which."""
    limits = connection_limits.ConnectionLimits(proxies=("127.0.0.1",), most=9, each=3)
    with played(tmp_path, limits) as (url, tape), contextlib.ExitStack() as stack:
        port = port_of(url)
        good = Listener(url)
        harness.wait(lambda: limits.count == 1, "the first requests' end")

        def come(source: str = HARMFUL) -> socket.socket:
            return stack.enter_context(connect(port, source))

        listening = [come() for _ in range(3)]
        for raw in listening:
            raw.sendall(STREAM)
            assert raw.recv(12) == b"HTTP/1.1 200"
        refused = said(come())
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 30" in refused
        assert "your address" in json.loads(refused.split(b"\r\n\r\n")[1])["error"]
        for source in ("127.0.0.67", *["127.0.0.1"] * 4):
            other = come(source)
            other.sendall(STREAM)
            assert other.recv(12) == b"HTTP/1.1 200"
        assert limits.count == 9
        for source in ("127.0.0.68", "127.0.0.1"):
            assert b"too many spectators" in said(come(source))
        good.hears_of(tape)
        listening[0].close()
        harness.wait(lambda: limits.count == 8, "the place that was left")
        again = come()
        again.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert said(again).startswith(b"HTTP/1.1 200")


def test_viewers_by_websocket_give_their_places_back(tmp_path: pathlib.Path) -> None:
    """A WebSocket counts as its address' connection until it is closed."""
    limits = connection_limits.ConnectionLimits(proxies=(), most=9, each=2)
    with played(tmp_path, limits) as (url, _):
        harness.wait(lambda: limits.count == 0, "the first requests' end")
        for _ in range(4):
            raw = connect(port_of(url))
            with websocket.connect(f"ws://127.0.0.1:{port_of(url)}/api/", sock=raw) as viewer:
                assert json.loads(viewer.recv(SECONDS))[0] == 2
                assert limits.count == 1
            harness.wait(lambda: limits.count == 0, "its place")


def test_viewers_by_websocket_take_no_place_of_those_who_poll(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many have upgraded, so many may poll; the next one is told to come again."""
    monkeypatch.setattr(sockets, "SESSIONS", 1)
    with played(tmp_path) as (url, _):
        place = f"127.0.0.1:{port_of(url)}/socket.io/?EIO=3&transport="
        with websocket.connect(f"ws://{place}websocket") as viewer:
            while "users" not in str(viewer.recv(SECONDS)):
                pass
            statuses = [httpx.get(f"http://{place}polling").status_code for _ in range(2)]
            assert statuses == [200, 503]


@pytest.mark.parametrize(
    ("path", "frame"),
    [
        ("/socket.io/?EIO=3&transport=websocket", b'42["refreshdata"]'),
        ("/api/", b"\0"),
    ],
)
def test_a_flood_over_a_websocket_is_cut_before_it_is_parsed(
    tmp_path: pathlib.Path, path: str, frame: bytes
) -> None:
    """Half a megabyte of frames in one write ends the connection; spectators are told all."""
    kind = 0x82 if frame == b"\0" else 0x81
    masked = bytes([kind, 0x80 | len(frame), 0, 0, 0, 0]) + frame
    with played(tmp_path) as (url, tape), connect(port_of(url)) as raw:
        good = Listener(url)
        raw.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert raw.recv(12) == b"HTTP/1.1 101"
        with contextlib.suppress(ConnectionError):
            raw.sendall(masked * (500_000 // len(masked)))
        answered = said(raw).count(b"\0" if frame == b"\0" else b"pgn")
        assert answered <= sockets.MESSAGES_AT_ONCE
        good.hears_of(tape)


def test_one_address_does_not_take_all_polling_sessions(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next session is refused with the reason; another address gets one."""
    monkeypatch.setattr(sockets, "POLLING_EACH", 2)
    place = b"GET /socket.io/?EIO=3&transport=polling HTTP/1.1\r\nHost: x\r\n"
    with played(tmp_path) as (url, _):

        def poll(source: str) -> bytes:
            with connect(port_of(url), source) as raw:
                raw.sendall(place + b"Connection: close\r\n\r\n")
                return said(raw)

        assert [poll(HARMFUL)[:12] for _ in range(2)] == [b"HTTP/1.1 200"] * 2
        refused = poll(HARMFUL)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"your address" in refused
        assert poll("127.0.0.67").startswith(b"HTTP/1.1 200")


def test_whose_a_connection_is() -> None:
    """IPv6 counts by /64, IPv4 in IPv6's clothes by itself; a proxy is nobody's."""
    limits = connection_limits.ConnectionLimits(proxies=("10.0.0.0/8", "2001:db8:1::1"))
    assert limits.whose("2001:db8::1") == limits.whose("2001:db8::ffff:1") == "2001:db8::/64"
    assert limits.whose("2001:db8:0:1::1") == "2001:db8:0:1::/64"
    assert limits.whose("::ffff:192.0.2.7") == limits.whose("192.0.2.7") == "192.0.2.7"
    assert limits.whose("10.1.2.3") == limits.whose("::ffff:10.1.2.3") == ""
    assert limits.whose("2001:db8:1::1") == ""
    assert limits.whose("2001:db8:1::2") != ""
    with pytest.raises(errors.UsageError, match=r"--proxy: found '10\.0\.0\.1/8'"):
        connection_limits.ConnectionLimits(proxies=("10.0.0.1/8",))


def test_tricks_with_names_and_links_lead_nowhere(tmp_path: pathlib.Path) -> None:
    """No link, no zero byte, no second encoding opens a file outside; nothing breaks."""
    (tmp_path / "secret.txt").write_text("the secret")
    with played(tmp_path) as (url, _):
        feeds = tmp_path / "feeds"
        (feeds / "link.json").symlink_to(tmp_path / "secret.txt")
        (feeds / "folder").symlink_to(tmp_path)
        (feeds / ".hidden").write_text("the secret")
        for path in (
            *("/tcec/link.json", "/tcec/folder/secret.txt", "/tcec/.hidden", "/tcec/./.hidden"),
            *("/tcec/%00", "/tcec/live.pgn%00.txt", "/tcec/%ff%fe", "/tcec/%2e%2e/secret.txt"),
            *(
                "/tcec/%252e%252e/secret.txt",
                "/tcec/..%5c..%5csecret.txt",
                "/tcec/....//secret.txt",
            ),
            *(f"/tcec/{tmp_path}/secret.txt", f"/{tmp_path}/secret.txt", "/tcec/" + "a" * 5_000),
            *("http://elsewhere/tcec/../secret.txt", "/api/v1/seasons/%00", "/pgn/%00.pgn"),
            *("/lichess/%ff/games/%00.pgn", "/pgn/demo/games/%2e%2e%2f%2e%2e%2fsecret.txt.pgn"),
        ):
            with connect(port_of(url)) as raw:
                raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                answer = said(raw)
            assert answer.startswith(b"HTTP/1.1 4"), (path[:80], answer[:80])
            assert b"the secret" not in answer, path
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_huge_heads_and_bodies_to_no_purpose_are_refused(tmp_path: pathlib.Path) -> None:
    """A long line or header, a thousand headers, any body: 4xx, however much more would come.

    One piece of 50,000 chunks would keep all others waiting for seconds.
    """
    chunked = b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with played(tmp_path) as (url, _):
        for head in (
            b"GET /" + b"a" * 100_000,
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000,
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Y: z\r\n" * 10_000,
            b"GET /api/v1/live" + chunked + b"1\r\nx\r\n" * 10,
            b"POST /socket.io/?EIO=3&transport=polling" + chunked + b"1\r\nx\r\n" * 10,
            b"GET /api/v1/live HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        ):
            with connect(port_of(url)) as raw:
                with contextlib.suppress(ConnectionError):
                    raw.sendall(head)
                with contextlib.suppress(ConnectionResetError):
                    assert raw.recv(100).startswith(b"HTTP/1.1 4")
                said(raw)  # it is closed: else nothing comes within ``SECONDS``
        assert httpx.get(f"{url}/healthz").status_code == 200


# -- as processes ---------------------------------------------------------------------


@pytest.fixture
def web(tmp_path: pathlib.Path) -> Iterator[theatre.Web]:
    """Run Redis and the web server, as processes; seasons can be launched, nothing plays."""
    farm = harness.Farm(tmp_path)
    farm.redis.start()
    farm.ledger = store.connect(farm.redis.url)
    served = theatre.Web(farm)
    try:
        served.start()
        yield served
    finally:
        served.kill()
        farm.ledger.close()
        farm.redis.stop()


class Mob:
    """Connections of one address that ask for streams and read nothing but a refusal."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.poll = select.epoll()
        self.all: dict[int, socket.socket] = {}
        self.refused: set[int] = set()

    def grow(self, count: int) -> None:
        """Connect so many more; return when all but the address' places are refused."""
        for raw in [connect(self.port) for _ in range(count)]:
            self.all[raw.fileno()] = raw
            self.poll.register(raw, select.EPOLLIN | select.EPOLLONESHOT)
        while len(self.refused) < len(self.all) - connection_limits.EACH:
            told = self.poll.poll(SECONDS)
            assert told, f"only {len(self.refused)} of {len(self.all)} were refused"
            for number, _ in told:
                assert self.all[number].recv(100).startswith(b"HTTP/1.1 503")
                self.refused.add(number)

    def listen(self) -> None:
        """Let those who are inside ask for the stream, of which they read nothing."""
        for number in set(self.all) - self.refused:
            self.poll.unregister(number)
            self.all[number].sendall(STREAM)

    def end(self) -> None:
        """Leave."""
        self.poll.close()
        for raw in self.all.values():
            raw.close()


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """Let this process have as many open files as the host gives."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_ten_thousand_connections_of_one_address_harm_nobody(web: theatre.Web) -> None:
    """It gets its few places and 503 for all others; who listens is told on, who comes served."""
    theatre.season(web.farm)
    harness.wait(lambda: web.get("/healthz").json()["season"] == "stage", "the season")
    good = Listener(web.url)
    with many_files():
        mob = Mob(web.port)
        try:
            mob.grow(1_000)
            mob.listen()
            for _ in range(9):
                mob.grow(1_000)
                assert web.get("/healthz").status_code == 200
            assert len(mob.refused) == 10_000 - connection_limits.EACH
            web.farm.launch(web.farm.root / "season.toml", "second")
            harness.wait(
                lambda: any("second" in str(event.data) for event in good.told), "the news"
            )
        finally:
            mob.end()
    with httpx.Client(transport=httpx.HTTPTransport(local_address=HARMFUL)) as client:

        def welcome() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return client.get(f"{web.url}/healthz").status_code == 200
            return False

        harness.wait(welcome, "a place for the address that has left")
