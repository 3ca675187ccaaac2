"""What is fuzzed: how an input is made, what reads it, and which errors it may end in.

An input is bytes, so that a find can be kept as a file and made smaller; ``run`` reads it as
the farm would. Any other exception than those that are ``allowed`` is a find; so is an input
that takes longer than ``run_fuzz.SECONDS_EACH`` of the processor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import logging
import pathlib
import random
import socket
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import driver
import mutations
import theatre

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import game_zip, openings
from orchestrator.audit import reading
from orchestrator.broadcast.content import variations
from orchestrator.common import errors
from orchestrator.contract import rings
from orchestrator.ledger import journal_mirror
from orchestrator.rating import headers
from orchestrator.season import decide, views
from orchestrator.season.file import load
from orchestrator.season.fold import orders
from orchestrator.season.fold import state as season_state
from worker_cpu.engines import agent_wire
from worker_cpu.hall import gpu_hosts
from worker_cpu.match import arguments
from worker_cpu.protocols import uci, xboard
from worker_cpu.wire import frames
from worker_gpu import agent

Make = Callable[[random.Random], bytes]
SEASONS = pathlib.Path(load.__file__).parents[2] / "seasons"


@dataclasses.dataclass(frozen=True)
class Target:
    """Something that reads what strangers write; ``weight`` is its share of the inputs."""

    name: str
    make: Make
    run: Callable[[bytes], None]
    allowed: tuple[type[Exception], ...] = ()
    weight: float = 1.0


def _split(text: str) -> list[str]:
    """Return the words of a language, for mutations."""
    return text.split()


# -- engines -----------------------------------------------------------------------------

UCI_WORDS = _split(r"""
    id name author option type spin check combo button string default min max var uciok readyok
    bestmove ponder info depth seldepth time nodes nps tbhits hashfull multipv score cp mate
    lowerbound upperbound pv wdl currmove currmovenumber string copyprotection registration e2e4
    e7e8q 0000 (none) O-O Nf3 a1a1
""")
UCI_TEXT = """id name Engine 1.0
id author A. Uthor
option name Hash type spin default 16 min 1 max 33554432
option name Style type combo default Solid var Solid var Risky
option name Clear Hash type button
option name SyzygyPath type string default <empty>
uciok
readyok
info depth 12 seldepth 20 multipv 1 score cp 31 wdl 300 600 100 nodes 123456 time 120 pv e2e4 e7e5
info nps 1000000 hashfull 12 tbhits 3
info depth 13 score mate -3 upperbound nodes 5 pv e1g1
info string hello there
bestmove e2e4 ponder e7e5
"""
XBOARD_WORDS = _split(r"""
    feature done=1 myname= ping=1 setboard=1 option= -spin -check -combo -button -string -file
    -path -slider pong move resign 1-0 0-1 1/2-1/2 offer draw Error Illegal tellusererror # e2e4
    O-O e7e8q
""")
XBOARD_TEXT = """feature done=0
feature ping=1 setboard=1 playother=0 san=0 usermove=1 time=1 draw=0 sigint=0 sigterm=0
feature reuse=1 analyze=0 myname="Engine 1.0" variants="normal,fischerandom" colors=0 ics=0
feature name=0 pause=0 nps=0 memory=1 smp=1 egt="syzygy"
feature option="Contempt -spin 0 -100 100" option="Style -combo Solid /// *Risky"
feature option="Clear -button"
feature done=1
pong 1
9 156 1084 48000 Nf3 Nc6 Nc3 Nf6
10. 25 1084 48000 12 500 3 Nf3 Nc6
Illegal move (not legal): e2e5
offer draw
move e2e4
1-0 {White mates}
"""


def _uci(data: bytes) -> None:
    for line in data.split(b"\n"):
        uci.identity(line)
        uci.option(line)
        uci.is_reply(line, b"readyok")
        if line.startswith(b"bestmove"):
            boards.variation(boards.chess.Board(), [uci.best_move(line).move])
    search = uci.last_search(data)
    variations.steps(boards.chess.Board(), search.pv)
    finder = uci.MoveFinder()
    for at in range(0, len(data), 97):
        finder.feed(data[at : at + 97])


def _xboard(data: bytes) -> None:
    for line in data.split(b"\n"):
        for name, value in xboard.features(line):
            if name == "option":
                xboard.option(value)
        xboard.reply(line)
        xboard.is_refusal(line)
        xboard.is_complaint(line)
        xboard.is_pong(line, 1)
    xboard.aside(data)
    variations.steps(boards.chess.Board(), xboard.last_search(data).pv)
    finder = xboard.AnswerFinder()
    for at in range(0, len(data), 97):
        finder.feed(data[at : at + 97])


# -- streams between our own processes ---------------------------------------------------


def _frames_made(rng: random.Random) -> bytes:
    whole = b"".join(
        frames.encode(
            rng.choice(list(frames.Kind)),
            frames.chunk(rng.choice(("w", "b")), rng.choice(("<", ">", "!")), 5, rng.randbytes(9)),
        )
        for _ in range(rng.choice((1, 2, 5)))
    )
    return mutations.of_bytes(rng, whole)


def _frames(data: bytes) -> None:
    parser = frames.Parser()
    for piece in mutations.cut(random.Random(len(data)), data):
        for frame in parser.feed(piece):
            frames.Chunk.decode(frame.payload)


def _records_made(rng: random.Random) -> bytes:
    kinds = ("go", "went", "out", "err", "gone", "ask", "join", "begin", "stop")
    whole = b"".join(
        agent_wire.Message(
            rng.choice(kinds), rng.randrange(9), 7, rng.randbytes(rng.randrange(9))
        ).encode()
        for _ in range(rng.choice((1, 3)))
    )
    return mutations.of_bytes(rng, whole)


def _records(data: bytes) -> None:
    parser = agent_wire.Parser()
    for piece in mutations.cut(random.Random(len(data)), data):
        parser.feed(piece)


def _agent(data: bytes) -> None:
    parser = agent.Parser()
    for piece in mutations.cut(random.Random(len(data)), data):
        parser.feed(piece)


# -- Redis -------------------------------------------------------------------------------


@functools.cache
def _journal() -> list[contract.Entry]:
    """Return the journal of a season with leagues, playoffs and a match."""
    return list(theatre.simulated("demo").journal)


def _line_made(rng: random.Random) -> bytes:
    line = rng.choice(_journal()).line()
    if rng.random() < 0.5:
        return mutations.of_bytes(rng, line.encode())
    tree = mutations.of_tree(rng, json.loads(line))
    return mutations.as_json(tree).encode(errors="surrogatepass")


def _line(data: bytes) -> None:
    entry = contract.Entry.from_line(data.decode(errors="replace"))
    assert contract.Entry.from_line(entry.line()) == entry


def _entry_made(rng: random.Random) -> bytes:
    """Make a valid envelope around a changed fact: how many entries come before it, its data."""
    journal = _journal()
    at = rng.randrange(1, len(journal))
    data = mutations.of_tree(rng, dict(journal[at].data))
    return mutations.as_json({"at": at, "kind": journal[at].kind, "data": data}).encode(
        errors="surrogatepass"
    )


def _entry(data: bytes) -> None:
    """Fold the entry into its season, and look at the season as everybody does.

    A season that is damaged is suspended by its own error. What stumbles over a fact that the
    fold has taken is guarded by whoever calls it (``serve``, the page): it must end, with any
    error of Python's own.
    """
    try:
        told = contract.loads(data)
        journal = _journal()[: int(told["at"])]
        entry = dataclasses.replace(
            _journal()[len(journal)], kind=told["kind"], data=contract.table(told["data"])
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    folded = season_state.fold(journal)
    folded.apply(entry)
    with contextlib.suppress(Exception):
        decide.decide(folded, entry.at_ms + 10**9)
        if ready := folded.ready_game():
            orders.game_order(folded, ready)
        views.season(folded)
    tape = theatre.Tape([*journal, entry])
    tape.shown = len(tape.journal)
    with tempfile.TemporaryDirectory(prefix="farm-fuzz-") as root:
        theatre.projected(tape, pathlib.Path(root)).projector.look()


def _mirror_made(rng: random.Random) -> bytes:
    whole = "".join(f"{entry.line()}\n" for entry in _journal()[: rng.randrange(1, 6)])
    return mutations.of_bytes(rng, whole.encode())


def _mirror(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(prefix="farm-fuzz-") as file:
        file.write(data)
        file.flush()
        journal_mirror.read(pathlib.Path(file.name))


RING = {
    "body": "W1tdLCB7fSwgeyJjYWxsYmFja3MiOiBudWxsLCAiZXJyYmFja3MiOiBudWxsfV0=",
    "content-encoding": "utf-8",
    "content-type": "application/json",
    "headers": {
        "lang": "py",
        "task": "farm.play",
        "id": "3881ff6f-5580-44ad-bfce-39780e9192f3",
        "eta": None,
        "expires": "2026-11-22T18:00:00+00:00",
        "timelimit": [None, None],
    },
    "properties": {
        "body_encoding": "base64",
        "delivery_tag": "7b2a8c2e",
        "delivery_info": {"exchange": "", "routing_key": "farm.play.hall-1"},
    },
}


def _ring_made(rng: random.Random) -> bytes:
    return mutations.as_json(mutations.of_tree(rng, RING)).encode(errors="surrogatepass")


def _ring(data: bytes) -> None:
    for plain in (rings.plain(data, "farm.play.hall-1"), rings.plain_message(data)):
        assert plain is None or json.loads(plain)["body"]


# -- files -------------------------------------------------------------------------------


@functools.cache
def _seasons() -> list[str]:
    return [path.read_text() for path in sorted(SEASONS.glob("*.toml"))] + [driver.season_text()]


TOML_WORDS = _split(r"""
    event engine roster id name format "league" "swiss" "knockout" "match" = [ ] [[event]]
    [[engine]] time_control rounds double_rounds book from top places true false 30+5 2s 0 1
    999999999 inf nan { } [roster] entrants seeding adjudication interruptions
""")


def _toml_made(rng: random.Random) -> bytes:
    text = rng.choice(_seasons())
    if rng.random() < 0.2:
        return mutations.of_bytes(rng, text.encode())
    return mutations.of_words(rng, text, TOML_WORDS).encode(errors="surrogatepass")


@functools.cache
def _short_book() -> str:
    return driver.book_text(32)


def _toml(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="farm-fuzz-") as root:
        (pathlib.Path(root) / "books").symlink_to(SEASONS / "books")
        (pathlib.Path(root) / "short.epd").write_text(_short_book())
        path = pathlib.Path(root) / "season.toml"
        path.write_bytes(data)
        load.load(path)


BOXES_TEXT = """[box.box-1]
address = "gpu.example"
user = "agent"
port = 22
key = "/etc/farm/ssh/id"
host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ"
grace_seconds = 30.0
"""


def _boxes(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(prefix="farm-fuzz-", suffix=".toml") as file:
        file.write(data)
        file.flush()
        gpu_hosts.load(pathlib.Path(file.name), 90.0)


PGN_TEXT = """[Event "E"]
[Site "?"]
[Date "2026.01.02"]
[Round "1.1"]
[White "A 1.0"]
[Black "B 2.0"]
[Result "1-0"]
[TimeControl "40/5400+30"]
[WhiteElo "3400"]

1. e4 {+0.31/12 1.2s} e5 {book, mb=+0+0+0+0+0,} 2. Nf3 $1 (2. f4 exf4) Nc6 3. Bb5 a6
{d=30, sd=40, mt=12345, tl=900000, s=100, n=1, pv=Ba4 Nf6, tb=0, wv=0.31,} 4. Ba4 1-0

[White "B"]
[Black "A"]
[Result "1/2-1/2"]
[SetUp "1"]
[FEN "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"]
[Variant "fischerandom"]

1. Nc3 1/2-1/2
"""
PGN_WORDS = _split(r"""
    [Event [FEN [SetUp [Variant [Result "*" "1-0" 1-0 0-1 1/2-1/2 * { } ( ) ; % $255 1. 1... e4
    O-O-O e8=Q Qxh7# -- Z0 [White [Black [WhiteElo [TimeControl
""")
EPD_TEXT = """rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - id "start"; bm e4;
r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - c0 "opening"; hmvc 0; fmvn 3;
"""
EPD_WORDS = _split(r"""
    w b KQkq - HAha id bm am hmvc fmvn c0 ; 8/8/8/8/8/8/8/8 k K p 9 /
""")


def _audit(data: bytes) -> None:
    text = data.decode(errors="replace")
    for _ in reading.games(text):
        pass


def _book(kind: Any, data: bytes) -> None:
    openings.parse(data.decode(errors="replace"), kind, 16, "book")


def _rating(data: bytes) -> None:
    headers.read(data)
    headers.read_controlled(data)


@functools.cache
def _order() -> Any:
    state = season_state.fold(_journal()[:6])
    ready = state.ready_game()
    assert ready is not None
    return json.loads(orders.game_order(state, ready).encode())


def _order_made(rng: random.Random) -> bytes:
    return mutations.as_json(mutations.of_tree(rng, _order())).encode(errors="surrogatepass")


def _game_order(data: bytes) -> None:
    order = contract.GameOrder.decode(data)
    boards.GameBoard(order.opening, order.variant)


@functools.cache
def _packed() -> bytes:
    made = io.BytesIO()
    with game_zip.zipfile.ZipFile(made, "w") as members:
        for name in game_zip.MEMBERS:
            members.writestr(name, b"content of " + name.encode() * 20)
    return made.getvalue()


def _record(data: bytes) -> None:
    game_zip.unpack(data)


MATCH_LINE = (
    "-engine name=a cmd=/bin/a option.Hash=16 -engine name=b cmd=/bin/b tc=40/60+0.6 -each"
    " tc=8+0.08 proto=uci timemargin=20 -rounds 10 -games 2 -repeat -concurrency 2"
    " -openings file=/dev/null format=epd order=random start=3 plies=8 -srand 5"
    " -sprt elo0=0 elo1=5 alpha=0.05 beta=0.05"
    " -draw movenumber=40 movecount=8 score=10 -resign movecount=3 score=400 -pgnout /dev/null"
)


def _match(data: bytes) -> None:
    arguments.read(data.decode(errors="replace").replace("\n", " ").split(" "))


# -- the live page -----------------------------------------------------------------------

PATHS = (
    *("/", "/healthz", "/docs/engines", "/api/v1/seasons", "/api/v1/live", "/tcec/live.json"),
    *("/pgn/demo.pgn", "/lichess/live.pgn", "/api/v1/seasons/demo/events/league/standings"),
    *("/socket.io/?EIO=3&transport=polling", "/api/v1/openapi.json", "/api/v1/seasons/demo/games"),
)
REQUEST = """GET / HTTP/1.1
Host: farm.example
Accept: */*
Accept-Encoding: gzip
If-None-Match: "abc"
Last-Event-ID: 1234-5
X-Forwarded-For: 192.0.2.1
Content-Length: 5
Connection: close

hello
"""
HTTP_WORDS = _split(r"""
    GET POST HEAD OPTIONS TRACE HTTP/1.1 HTTP/2 HTTP/0.9 Host: Range: bytes=0-1 chunked
    Transfer-Encoding: Upgrade: websocket h2c Expect: 100-continue Content-Length: 99999999999
    ?season=demo&event=x %00 %2e%2e/ //// * Cookie: Sec-WebSocket-Key: If-Modified-Since:
    """)
WEBSOCKET = (
    "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
SAID = ('42["refreshdata"]', '42["getusers"]', "2", "2probe", "5", "\0", '42["x",{}]', "é" * 9)
OPEN = contextlib.ExitStack()  # what the targets have started: whoever runs them closes it
ANSWER_SECONDS = 0.5  # s: a connection that is still open after that is closed by us
HANDSHAKE_SECONDS = 60.0  # s: an answer that always comes, however loaded the machine is


class Errors(logging.Handler):
    """What the server logs as an error while it answers."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(self.format(record))


@functools.cache
def _page() -> tuple[int, Errors]:
    """Serve a whole season until ``OPEN`` is closed; return the port and the log of errors."""
    root = OPEN.enter_context(tempfile.TemporaryDirectory(prefix="farm-fuzz-"))
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    url = OPEN.enter_context(theatre.served(tape, pathlib.Path(root)))
    heard = Errors()
    logging.getLogger().addHandler(heard)
    return int(url.rpartition(":")[2]), heard


def _converse(data: bytes, answer_to: bytes = b"") -> bytes:
    """Send bytes to the page, after a handshake if there is one; return all it answers."""
    port, heard = _page()
    heard.lines.clear()
    found = b""
    # Many addresses, so that nobody's limit of connections is met.
    source = (f"127.0.{len(data) % 200}.{data[0] if data else 9}", 0)
    with (
        socket.create_connection(("127.0.0.1", port), HANDSHAKE_SECONDS, source) as raw,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        if answer_to:
            raw.sendall(answer_to)
            found += raw.recv(4_096)
        raw.settimeout(ANSWER_SECONDS)
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while part := raw.recv(65_536):
            found += part
            if len(found) > 1 << 20:
                break
    assert not heard.lines, heard.lines[0]
    return found


def _http_made(rng: random.Random) -> bytes:
    text = REQUEST.replace(" / ", f" {rng.choice(PATHS)} ", 1)
    if rng.random() < 0.3:
        return mutations.of_bytes(rng, text.replace("\n", "\r\n").encode())
    changed = mutations.of_words(rng, text, HTTP_WORDS)
    return changed.replace("\n", "\r\n").encode(errors="surrogatepass")


def _http(data: bytes) -> None:
    answer = _converse(data)
    status = answer[9:12]
    assert not status.startswith(b"5") or status == b"503", answer[:300]


def _socket_made(rng: random.Random) -> bytes:
    """Make a path's number and frames for it: masked, as a browser's are."""
    frames_made = b""
    for _ in range(rng.choice((1, 2, 9))):
        said = rng.choice(SAID).encode() * rng.choice((1, 1, 60))
        kind = rng.choice((0x81, 0x81, 0x82, 0x89, 0x8A, 0x88, 0x01, 0x80, 0xC1, 0x8F))
        size = bytes([0x80 | len(said)]) if len(said) < 126 else b"\xfe" + len(said).to_bytes(2)
        frames_made += bytes([kind]) + size + b"\0\0\0\0" + said
    return bytes([rng.randrange(2)]) + mutations.of_bytes(rng, frames_made)


def _socket(data: bytes) -> None:
    path = ("/api/", "/socket.io/?EIO=3&transport=websocket")[(data or b"\0")[0] % 2]
    answer = _converse(data[1:], WEBSOCKET.format(path=path).encode())
    assert answer.startswith(b"HTTP/1.1 101"), answer[:300]


# -- all ---------------------------------------------------------------------------------


def _text(text: str, words: Sequence[str]) -> Make:
    """Make inputs from a text, mostly word by word, sometimes byte by byte."""

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.3:
            return mutations.of_bytes(rng, text.encode())
        return mutations.of_words(rng, text, words).encode(errors="surrogatepass")

    return make


TARGETS = (
    Target("uci", _text(UCI_TEXT, UCI_WORDS), _uci, weight=3),
    Target("xboard", _text(XBOARD_TEXT, XBOARD_WORDS), _xboard, weight=2),
    Target("frames", _frames_made, _frames, (frames.FrameError,), weight=5),
    Target("bridge", _records_made, _records, (agent_wire.StreamError,), weight=5),
    Target("agent", _records_made, _agent, (ValueError,), weight=5),
    Target("ring", _ring_made, _ring, weight=8),
    Target("journal-line", _line_made, _line, (errors.LedgerDamagedError,), weight=5),
    Target("journal-entry", _entry_made, _entry, (errors.LedgerDamagedError,), weight=8),
    Target("mirror", _mirror_made, _mirror, (errors.LedgerDamagedError,), weight=1),
    Target("order", _order_made, _game_order, (ValueError, errors.FarmError), weight=1),
    Target("season-file", _toml_made, _toml, (errors.UsageError,), weight=8),
    Target("boxes-file", _text(BOXES_TEXT, TOML_WORDS), _boxes, (errors.UsageError,), weight=1),
    Target("pgn", _text(PGN_TEXT, PGN_WORDS), _audit, (ValueError, errors.BookError), weight=3),
    Target(
        "book-pgn",
        _text(PGN_TEXT, PGN_WORDS),
        functools.partial(_book, "pgn"),
        (errors.BookError,),
        weight=3,
    ),
    Target(
        "book-epd",
        _text(EPD_TEXT, EPD_WORDS),
        functools.partial(_book, "epd"),
        (errors.BookError,),
    ),
    Target("rating", _text(PGN_TEXT, PGN_WORDS), _rating, (errors.UsageError,), weight=2),
    Target(
        "record",
        lambda rng: mutations.of_bytes(rng, _packed()),
        _record,
        (errors.HostError,),
        weight=2,
    ),
    Target("http", _http_made, _http, weight=3),
    Target("websocket", _socket_made, _socket, weight=3),
    Target("match-line", _text(MATCH_LINE, MATCH_LINE.split()), _match, (errors.UsageError,)),
)
BY_NAME = {target.name: target for target in TARGETS}
