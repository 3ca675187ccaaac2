"""TLCS: whole games in order over a link that loses packets, for viewers that are behind too."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
import time
import types
from collections.abc import Iterator
from typing import Any, Self

import harness
import httpx
import pytest
import theatre
from test_between_games import MOVES, Scene

from orchestrator.broadcast.content import documents, messages
from orchestrator.broadcast.feeds import tlcs
from orchestrator.broadcast.web import app, server, tlcs_server
from orchestrator.commands import serve_web
from orchestrator.common import errors
from orchestrator.season.fold import orders

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq"
SECONDS = 60.0  # s: how long a busy machine may take


class Viewer:
    """A viewer as TLCV and node-tlcv are: it acknowledges, and takes lower numbers for old ones."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(SECONDS)
        self.server = ("127.0.0.1", port)
        self.last = 0
        self.said: list[str] = []
        self.say("LOGONv15:viewer")

    def __enter__(self) -> Self:
        """Watch."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave."""
        self.socket.close()

    def say(self, text: str) -> None:
        """Send a packet."""
        self.socket.sendto(text.encode(), self.server)

    def hear(self, *, answer: bool = True) -> str:
        """Take a packet; return its line, '' for one that was there before."""
        text = self.socket.recv(65_536).decode()
        number, _, line = text.removeprefix("< ").partition(">")
        if not text.startswith("<"):
            self.said.append(text)
            return text
        if answer:
            self.say(f"ACK: {number}")
            if int(number) > self.last:  # numbered one by one, from the greeting's secret on
                assert int(number) == self.last + 1 or self.last == 1
                self.last = int(number)
                self.said.append(line)
                return line
        return ""

    def until(self, wanted: str) -> None:
        """Hear until a line comes."""
        while self.hear() != wanted:
            pass

    def lasting(self) -> list[str]:
        """Return what it was told but clocks, variations, tables and what stands before a game."""
        passing = ("LOGON", "FEATURE", "WTIME", "BTIME", "WPV", "BPV", "CT", "FMR", "PONG")
        return [line for line in self.said if not line.startswith(passing)]


@contextlib.contextmanager
def served(tape: theatre.Tape, root: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Serve page and TLCS; the page's address and the UDP port."""
    with serve_web.listen("127.0.0.1", 0) as listening, serve_web.datagrams("127.0.0.1", 0) as udp:
        port = udp.getsockname()[1]
        made = app.create(tape, root / "archive", root / "feeds", tlcs=udp)
        running = server.make(made, "127.0.0.1", 0)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        url = serve_web.url(listening).rstrip("/")
        try:
            harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
            yield url, port
        finally:
            running.should_exit = True
            thread.join()


def lines_of(moves: list[str], white: str, black: str) -> list[str]:
    """Return what a viewer is told of a game's beginning, positions left out."""
    words = [f"{'WB'[n % 2]}MOVE: {n // 2 + 1}. {san}" for n, san in enumerate(moves)]
    return ["SITE: League 1800+5", f"WPLAYER: {white}", f"BPLAYER: {black}", *words]


def test_a_season_is_watched_over_a_socket(tmp_path: pathlib.Path) -> None:
    """A viewer that was behind when a game ended and the next began is told the end first."""
    scene = Scene(tmp_path)
    sans = [san for _, san in MOVES]
    game, attempt = scene.begin(moves=False)
    order = orders.game_order(scene.season.state, game)
    plies = [(ply.ply, ply.encode()) for ply in scene.plies()]
    scene.reel.written[attempt] = plies[:1]
    with served(scene.reel, tmp_path / "web") as (_, port), Viewer(port) as viewer:
        viewer.until("FMR: 1")
        scene.reel.written[attempt] = []  # the ledger has forgotten them: the record has them
        scene.end(game, attempt, order)
        scene.season.settle()
        following = str(scene.season.state.ready_game())
        second = orders.game_order(scene.season.state, following)
        begun = scene.season.start(following)
        scene.reel.written[begun] = plies
        scene.reel.shown = len(scene.season.journal)  # both in one look
        viewer.until(f"WMOVE: 2. {sans[2]}")  # the first game's
        viewer.until("result: 1-0")
        viewer.until(f"WMOVE: 2. {sans[2]}")  # the second one's
        viewer.until("FMR: 3")
        with Viewer(port) as late:
            late.until("FMR: 3")
        viewer.say("RESULTTABLE")
        if "CTRESET" not in viewer.said:
            viewer.until("CTRESET")
    told = [line for line in viewer.lasting() if not line.startswith("FEN")]
    first = lines_of(sans, order.white.name, order.black.name)
    then = lines_of(sans, second.white.name, second.black.name)
    assert told == [*first, "result: 1-0", *then]
    assert viewer.said.count(f"FEN: {START}") == 2
    assert [line for line in late.lasting() if not line.startswith("FEN")] == then
    assert viewer.said.index("CTRESET") > viewer.said.index("result: 1-0")


class Post:
    """What a server sends, without a network."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def sendto(self, data: bytes, address: Any) -> None:
        """Keep a packet."""
        self.sent.append(data.decode())

    def is_closing(self) -> bool:
        """Say that it is open."""
        return False


def opened() -> tuple[tlcs_server.TlcsServer, Post]:
    """Return a server that shows no season."""
    made, post = tlcs_server.TlcsServer(documents.Library()), Post()
    made._transport = post  # type: ignore[assignment]
    return made, post


def greeted(made: tlcs_server.TlcsServer, post: Post, address: tuple[str, int]) -> int:
    """Log a viewer on that is where it says; return its last number, and forget what was sent."""
    made.datagram_received(b"LOGONv15:me", address)
    made.datagram_received(b"ACK:  1", address)
    number = int(post.sent[-1].removeprefix("< ").partition(">")[0])
    made.datagram_received(f"ACK: {number}".encode(), address)
    assert made.viewers[address].known
    post.sent.clear()
    return number


def test_a_line_is_sent_again_until_it_is_acknowledged() -> None:
    """One at a time, and nothing overtakes it."""
    made, post = opened()
    address = ("192.0.2.1", 1)
    last = greeted(made, post, address)
    viewer = made.viewers[address]
    made._tell(address, viewer, tlcs.Lines(["SITE: a", "SITE: b"], ["WTIME: 1 otim 2"]))
    made.datagram_received(b"PING", address)  # it is behind: it hears nothing else
    made.look_once(viewer.sent)
    made.look_once(viewer.sent + tlcs_server.AGAIN_SECONDS)
    assert post.sent == [f"< {last + 1}>SITE: a"] * 2
    for number in (1, 1, 2):  # the second is of the second copy
        made.datagram_received(f"ACK: {last + number}".encode(), address)
    made.datagram_received(b"PING", address)
    assert post.sent[2:] == [f"< {last + 2}>SITE: b", f"< {last + 3}>PONG"]
    made.datagram_received(b"LOGOFF", address)
    assert not made.viewers


def test_a_fast_viewer_is_told_a_long_game_without_a_copy() -> None:
    """However many lines it acknowledges at once: a move that comes twice would be taken twice."""
    made, post = opened()
    address = ("192.0.2.1", 1)
    last = greeted(made, post, address)
    moves = [f"WMOVE: {number}. Nf3" for number in range(1, 1_001)]
    made._tell(address, made.viewers[address], tlcs.Lines(moves, []))
    for number in range(1, len(moves) + 1):
        made.datagram_received(f"ACK: {last + number}".encode(), address)
    made.look_once(made.viewers[address].heard + tlcs_server.AGAIN_SECONDS)
    assert post.sent == [f"< {last + number}>{move}" for number, move in enumerate(moves, start=1)]


def silence(made: tlcs_server.TlcsServer) -> None:
    """Let time go by until every viewer that acknowledges nothing is forgotten."""
    while made.viewers:
        made.look_once(max(one.sent for one in made.viewers.values()) + tlcs_server.AGAIN_SECONDS)


def test_who_falls_silent_is_forgotten() -> None:
    """After a minute, or after so many copies of a line that it does not acknowledge."""
    made, post = opened()
    address = ("192.0.2.1", 1)
    greeted(made, post, address)
    viewer = made.viewers[address]
    made.look_once(viewer.heard + tlcs_server.SILENT_SECONDS)
    assert made.viewers
    made.look_once(viewer.heard + tlcs_server.SILENT_SECONDS + 1)
    assert not made.viewers
    last = greeted(made, post, address)
    made._tell(address, made.viewers[address], tlcs.Lines(["SITE: a"], []))
    silence(made)
    assert post.sent == [f"< {last + 1}>SITE: a"] * tlcs_server.TRIES


def test_an_address_that_never_answers_is_sent_a_few_datagrams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often a forger asks in its name, and acknowledges numbers that he has not seen."""
    made, post = opened()
    made._told = types.SimpleNamespace(whole=lambda: tlcs.Lines(["SITE: a"] * 999, ["x"] * 999))  # type: ignore[assignment]
    for port in range(100):
        address = ("192.0.2.1", port)
        for said in (b"LOGONv15:me", b"LOGONv15:me", b"RESULTTABLE", b"PING"):
            made.datagram_received(said, address)
        for number in range(1, 1_000):
            made.datagram_received(f"ACK: {number}".encode(), address)
        silence(made)
    assert len(post.sent) <= tlcs_server.STRANGERS * (1 + 2 * tlcs_server.GREETINGS)
    assert {line.partition(">")[2] or line for line in post.sent} == {
        "LOGON SUCCESSFUL",
        tlcs_server.GREETING,
    }
    assert len("".join(post.sent)) < 1_000
    other = ("192.0.2.2", 1)  # nobody else waits for that, and a viewer comes again as it likes
    for _ in range(2 * tlcs_server.STRANGERS):
        greeted(made, post, other)
    later = time.monotonic() + tlcs_server.SHUNNED_SECONDS + 1
    monkeypatch.setattr(tlcs_server.time, "monotonic", lambda: later)
    greeted(made, post, ("192.0.2.1", 1))


def test_strangers_get_little_and_no_more_than_their_places() -> None:
    """Nothing is answered but a log-on, once, and only so many places are given."""
    made, post = opened()
    for junk in (b"", b"PING", b"ACK: 1", b"RESULTTABLE", b"\xff\xfe", b"LOGONv15:" + b"x" * 9_999):
        made.datagram_received(junk, ("192.0.2.1", 1))
    assert not post.sent
    for port in range(3 * tlcs_server.EACH):
        with contextlib.suppress(IndexError):  # no place is left, and nothing is said
            greeted(made, post, ("192.0.2.1", port))
    assert len(made.viewers) == tlcs_server.EACH
    for host in range(tlcs_server.VIEWERS):
        made.datagram_received(b"LOGONv15:me", (f"198.51.100.{host}", 1))
    assert len(made.viewers) == tlcs_server.VIEWERS
    address = ("192.0.2.1", 0)
    viewer = made.viewers[address]
    made._tell(address, viewer, tlcs.Lines(["x"] * (tlcs_server.BEHIND + 1), []))
    assert address not in made.viewers


def test_searches_are_whites_view_and_names_break_no_line() -> None:
    """A mate is a large number; a name with line ends and spaces is one line."""
    told = tlcs.Told(lambda: "s", lambda _: None)
    engine = {"name": "An  Engine\n< 9>result: 0-1"}
    game = {
        "season": "s",
        "game": "e.1",
        "event_name": "E",
        "status": "running",
        "plies": [],
        "start_fen": f"{START} - 0 1",
        "white": engine,
        "black": engine,
        "clock": None,
        "time_control": {"white": "60+1"},
    }
    lines = told.take(messages.Delta("game", game)).lasting
    assert lines[1] == "WPLAYER: An Engine < 9>result: 0-1"
    assert not any("\n" in line for line in lines)
    step = {"san": "e4", "uci": "e2e4", "fen": ""}
    said = {"season": "s", "game": "e.1", "side": "black", "depth": 9, "nodes": 200, "nps": 100}
    for score, cp in (({"cp": -31, "mate": None}, -31), ({"cp": None, "mate": -3}, -99_997)):
        search = messages.Delta("search", said | score | {"line": [step]})
        assert told.take(search).passing == [f"BPV: 9 {cp} 200 200 e2e4"]
    silent = messages.Delta("search", said | {"cp": None, "mate": None, "line": [step]})
    assert told.take(silent) == tlcs.Lines([], [])
    assert told.take(messages.Delta("game", game | {"season": "other"})) == tlcs.Lines([], [])


@pytest.mark.parametrize("name", ["demo", "frc"])
def test_the_table_has_its_columns_under_their_heads(name: str, tmp_path: pathlib.Path) -> None:
    """Each number stands where its head begins; the games come latest first."""
    tape = theatre.simulated(name)
    tape.shown = len(tape.journal)
    stage = theatre.projected(tape, tmp_path)
    stage.projector.look()
    shown = {}
    event = next(iter(tape.folded().events))
    for part in ("", "/schedule"):
        found = stage.shelf.get(f"seasons/{tape.season}/events/{event}{part}")
        assert found is not None
        shown[part] = httpx.Response(200, content=found.body).json()
    reset, *lines = tlcs.table(shown[""], shown["/schedule"])
    assert reset == "CTRESET"
    plain = [line.removeprefix("CT: ").removeprefix("CT:") for line in lines]
    head, _, *rest = plain
    for row, line in zip(shown[""]["rows"], rest, strict=False):
        assert line.startswith(f"{row['rank']}.")
        assert line[head.index("GAMES") :].split()[:2] == [str(row["games"]), str(row["points"])]
        first = head.index(" 1", head.index("POINTS")) + 1
        width = head.index("2", first) - first
        cells = [
            line[first + n * width : first + (n + 1) * width] for n in range(len(row["cells"]))
        ]
        wanted = [cell["text"] if cell else None for cell in row["cells"]]
        for cell, text in zip(cells, wanted, strict=True):
            assert cell.strip() in ({text} if text else {"***", ".", ""})
    games = [line for line in rest if line.endswith(("1-0", "0-1", "1/2-1/2"))]
    numbers = [int(line.split()[0]) for line in games]
    assert numbers == sorted(numbers, reverse=True)
    assert len(games) == min(tlcs.GAMES, len(shown["/schedule"]))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("16061", ("127.0.0.1", 16_061)),
        ("0.0.0.0:16061", ("0.0.0.0", 16_061)),
        ("[::]:1", ("::", 1)),
        ("here:", None),
        ("0", None),
        ("65536", None),
        ("16061:", None),
    ],
)
def test_a_udp_address_is_a_port_and_perhaps_a_host(text: str, at: tuple[str, int] | None) -> None:
    """Without a host it is the page's; what is neither is refused with what is allowed."""
    if at is not None:
        assert serve_web.udp_address(text, "127.0.0.1") == at
        return
    with pytest.raises(errors.UsageError, match="ADDRESS:PORT"):
        serve_web.udp_address(text, "127.0.0.1")
