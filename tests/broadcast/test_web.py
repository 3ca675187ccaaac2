"""The web application beside a really running farm: streams, API, downloads, viewers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import chess.pgn
import described
import httpx
import jsonschema
import pytest
import redis
import schemas
import theatre
from click import testing
from redis import exceptions
from websockets.sync import client as websocket

from orchestrator import commands, contract
from orchestrator.broadcast.content import games as broadcast_games
from orchestrator.broadcast.feeds.tcec import pgn as tcec_pgn
from orchestrator.ledger import address, keys, store

SECONDS = 60  # s: how long a busy machine may take to answer


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[theatre.Web]:
    """Run a farm that plays a league of three and its final."""
    with theatre.stage(tmp_path_factory.mktemp("stage")) as stage:
        theatre.season(stage.farm)
        yield stage


def listen(web: theatre.Web, last: str = "") -> contextlib.AbstractContextManager[httpx.Response]:
    """Open the stream."""
    headers = httpx.Headers({"Last-Event-ID": last} if last else {}, encoding="latin-1")
    return httpx.stream("GET", f"{web.url}/api/v1/live", headers=headers, timeout=SECONDS)


def record(web: theatre.Web, game: str) -> contract.GameRecord:
    """Return a game's record once it is archived."""
    path = web.farm.archive / "stage" / "games" / game / "record.json"
    web.farm.wait(path.exists, 60, f"the record of {game}")
    return contract.GameRecord.decode(path.read_bytes())


@dataclasses.dataclass(frozen=True)
class Heard:
    """What a listener was told, and others at once who came back from so many events before."""

    told: list[theatre.Event]
    back: dict[int, list[theatre.Event]]


@pytest.fixture(scope="module")
def heard(web: theatre.Web) -> Heard:
    """Listen from the beginning to the end of a game; come back before it is forgotten."""
    told = _whole_game(web)
    numbered = [event for event in told if event.id]
    return Heard(told, {back: _missed(web, numbered, back) for back in (1, 4, 12)})


def _whole_game(web: theatre.Web) -> list[theatre.Event]:
    told: list[theatre.Event] = []
    begun: set[str] = set()
    with listen(web) as answer:
        for event in theatre.events(answer):
            told.append(event)
            if event.kind == "game" and event.data["status"] == "running":
                begun.add(event.data["game"])
            elif event.kind == "game" and event.data["game"] in begun:
                return told
            assert event.kind != "season" or event.data["status"] != "finished"
    raise AssertionError("the stream ended")


def _missed(web: theatre.Web, numbered: list[theatre.Event], back: int) -> list[theatre.Event]:
    """Come back as one who has heard all but the last events; return as many as are told."""
    missed: list[theatre.Event] = []
    with listen(web, numbered[-1 - back].id) as answer:
        for event in theatre.events(answer):
            assert event.kind != "snapshot"
            missed += [event] if event.id else []
            if len(missed) == back:
                return missed
    raise AssertionError("the stream ended")


def test_who_names_no_event_is_told_where_things_stand(web: theatre.Web, heard: Heard) -> None:
    """A number of thousands of digits, or one that is none to Python, is not one of ours."""
    boot = next(event.id for event in heard.told if event.id).partition("-")[0]
    for number in ("9" * 5_000, "\u00b2", "", "-1"):
        with listen(web, f"{boot}-{number}") as answer:
            assert next(theatre.events(answer)).kind == "snapshot", number[:10]


def test_the_stream_tells_every_ply_of_a_game_as_it_was_recorded(
    web: theatre.Web, heard: Heard
) -> None:
    """A snapshot, then deltas: together the plies, evals and clocks of the record."""
    assert heard.told[0].kind == "snapshot"
    ended = next(
        event.data
        for event in heard.told
        if event.kind == "result" and event.data["game"] == heard.told[-1].data["game"]
    )
    plies: dict[int, dict[str, object]] = {}
    for event in heard.told:
        if event.kind == "game" and event.data["game"] == ended["game"]:
            plies |= {ply["n"]: ply for ply in event.data["plies"]}
        elif event.kind == "ply" and event.data["game"] == ended["game"]:
            plies[event.data["ply"]["n"]] = event.data["ply"]
    assert {"ply", "clock"} <= {event.kind for event in heard.told}
    for event in heard.told:
        described.check_event(event.kind, event.data)
    played = record(web, ended["game"])
    told = [plies[n] for n in sorted(plies)]
    engine = [ply for ply in told if not ply["book"]]
    assert [ply["uci"] for ply in engine] == [ply.move for ply in played.plies]
    assert [ply["san"] for ply in engine] == [ply.san for ply in played.plies]
    clocks = [ply["white_clock_ms"] for ply in engine]
    assert clocks == [ply.white_clock_ns // 1_000_000 for ply in played.plies]
    evals = [ply["cp"] for ply in engine]
    assert evals == [_white_view(ply) for ply in played.plies]
    assert ended["result"] == played.outcome.result
    assert told[-1]["fen"] == played.final_fen


def _white_view(ply: contract.PlyRecord) -> int | None:
    if ply.score is None or ply.score.cp is None:
        return None
    return ply.score.cp if ply.side == "white" else -ply.score.cp


def test_who_comes_back_misses_nothing(heard: Heard) -> None:
    """Whoever resumes from any event is told exactly the events that came after it."""
    numbered = [event for event in heard.told if event.id]
    for back, missed in heard.back.items():
        assert missed == numbered[-back:]
    numbers = [int(event.id.rpartition("-")[2]) for event in numbered]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_stranger_to_this_server_gets_a_snapshot(web: theatre.Web) -> None:
    """An event id of another boot, or nonsense, is answered by a snapshot."""
    for last in ("0badf00d-3", "nonsense", "-", "0-99999999999999999999"):
        with listen(web, last) as answer:
            assert next(theatre.events(answer)).kind == "snapshot", last


def test_a_page_that_has_a_snapshot_is_not_sent_another(web: theatre.Web) -> None:
    """It says by the snapshot's id what it knows: the stream goes on from there."""
    told = web.json("snapshot?season=stage")
    described.check_event("snapshot", told)
    assert told["season"]["season"] == "stage"
    for after, fresh in ((told["id"], False), ("0badf00d-3", True)):
        ask = {"season": "stage", "after": after}
        head = {"Accept-Encoding": "identity"}
        address = f"{web.url}/api/v1/live"
        with httpx.stream("GET", address, params=ask, headers=head, timeout=60) as answer:
            assert ("event: snapshot" in next(answer.iter_text())) is fresh
    assert httpx.get(f"{web.url}/api/v1/snapshot?season=none", timeout=60).status_code == 404


def test_every_path_of_the_description_answers(web: theatre.Web) -> None:
    """OpenAPI's paths give what it says, with validator, CORS and no place for scripts."""
    played = record(web, "league.1")
    web.farm.wait(lambda: web.get("/pgn/stage/games/league.1.pgn").status_code == 200, 30, "PGN")
    values = {"season": "stage", "event": "league", "game": "league.1", "ply": "12", "round": "1"}
    for path, operations in web.json("openapi.json")["paths"].items():
        if path == "/api/v1/live" or path.endswith("/test"):
            continue  # a stream; of a match, which test_match_page asks
        asked = path.format(**values)
        answer = web.get(asked)
        assert answer.status_code == 200, asked
        wanted = next(iter(operations["get"]["responses"]["200"]["content"]))
        assert answer.headers["content-type"].startswith(wanted), asked
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["etag"]
        if wanted == "application/json":
            place = asked.removeprefix("/api/v1/")
            described.check(described.typed(place), answer.content, asked)
    again = web.get("/api/v1/seasons/stage/games/league.1")
    assert (
        web.get(
            "/api/v1/seasons/stage/games/league.1", **{"If-None-Match": again.headers["etag"]}
        ).status_code
        == 304
    )
    assert [ply["san"] for ply in again.json()["plies"]][-1] == played.plies[-1].san
    assert again.json()["white"]["country"] in {"NOR", "GER", "USA"}
    line = web.json("seasons/stage/games/league.1/plies/12")["line"]
    assert all(chess.Board(step["fen"]).is_valid() for step in line)


def test_the_page_is_whole_without_any_other_server(web: theatre.Web) -> None:
    """Every file that the page names is here, and none of them names another server."""
    index = web.get("/")
    assert index.headers["content-security-policy"]
    asked = {*re.findall(r'(?:href|src)="([\w./-]+\.(?:js|css|svg))"', index.text)}
    assert asked
    asked |= {"js/app.js", "style.css"}  # of which the script and the style sheet are made
    seen: set[str] = set()
    while asked:
        name = asked.pop()
        seen.add(name)
        answer = web.get(f"/{name}")
        assert answer.status_code == 200, name
        if name.endswith(".js"):
            base = pathlib.PurePosixPath(name).parent
            found = re.findall(r'from "(\.[^"]+)"', answer.text)
            asked |= {os.path.normpath(base / one) for one in found} - seen
        if not {"vendor", "static"} & {*pathlib.PurePosixPath(name).parts} and "svg" not in name:
            assert "http://" not in answer.text.replace("http://www.w3.org", ""), name
            assert "https://" not in answer.text.replace("https://lichess.org/analysis", ""), name


def test_downloads_hold_the_games_that_were_asked_for(web: theatre.Web) -> None:
    """Season, event and filters give whole PGN of exactly those games."""
    web.farm.finish("stage", 120)
    web.farm.wait(lambda: games(web, "/pgn/stage.pgn") == 8, 30, "all games in the download")
    assert games(web, "/pgn/stage/league.pgn") == 6
    assert games(web, "/pgn/stage/final.pgn") == 2
    results = [web.get(f"/pgn/stage.pgn?result={r}") for r in ("1-0", "0-1", "1/2-1/2")]
    assert sum(len(all_games(answer.text)) for answer in results) == 8
    white = all_games(web.get("/pgn/stage.pgn?event=league&white=scripted 3").text)
    assert len(white) == 2
    assert {game.headers["White"] for game in white} == {"Scripted 3"}
    assert web.get("/pgn/stage.pgn?colour=red").status_code == 400
    assert web.get("/pgn/stage/nowhere.pgn").status_code == 404
    assert web.get("/pgn/other.pgn").status_code == 404


def test_a_filter_takes_ids_and_names_nothing_in_silence(web: theatre.Web) -> None:
    """An engine's id gives its games; what the season does not have is told, with what it has."""
    web.farm.finish("stage", 120)
    web.farm.wait(lambda: games(web, "/pgn/stage.pgn") == 8, 30, "all games in the download")
    row = web.json("seasons/stage/events/league")["rows"][0]
    assert row["engine"] != row["name"].lower()
    for filtered in ("engine", "white", "black"):
        by_id = web.get(f"/pgn/stage.pgn?{filtered}={row['engine'].upper()}").text
        assert by_id
        assert by_id == web.get(f"/pgn/stage.pgn?{filtered}={row['name']}").text
        lost = web.get(f"/pgn/stage.pgn?{filtered}=nobody")
        assert (lost.status_code, row["name"] in lost.json()["error"]) == (404, True)
    for words, code, known in (
        ("event=nowhere", 404, "league"),
        ("ending=by magic", 404, "endings: "),
        ("result=won", 400, "1/2-1/2"),
        ("eco=F1", 400, "A00"),
    ):
        answer = web.get(f"/pgn/stage.pgn?{words}")
        assert (answer.status_code, known in answer.json()["error"]) == (code, True), words
    assert web.get("/pgn/stage.pgn?eco=e99&result=0-1").status_code == 200


def games(web: theatre.Web, path: str) -> int:
    """Return how many games a download holds."""
    return len(all_games(web.get(path).text))


def all_games(text: str) -> list[chess.pgn.Game]:
    """Read games without an error."""
    stream, found = io.StringIO(text), []
    while game := chess.pgn.read_game(stream):
        assert not game.errors
        found.append(game)
    return found


def test_the_rating_list_is_what_the_command_prints(web: theatre.Web) -> None:
    """A process beside the server makes it from the same journals by the same code."""
    web.farm.finish("stage", 120)
    web.farm.wait(lambda: web.json("ratings").get("games") == 8, 120, "the rating list")
    told = web.json("ratings")
    words = [
        "ratings",
        "--white-advantage",
        "--draw-rate",
        "--errors",
        "100",
        "--json",
        "--average",
    ]
    environment = {"FARM_REDIS_URL": web.farm.redis.url_of("broadcast")}
    words.append(str(told["average"]))
    result = testing.CliRunner().invoke(commands.farm, words, env=environment)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    rows = [
        {key: value for key, value in row.items() if key != "percent"} for row in told["ratings"]
    ]
    assert {key: told[key] for key in printed} | {"ratings": rows} == printed
    assert {row["provisional"] for row in rows} == {False}
    over = "The season is over."
    forecast = "seasons/stage/forecast"
    web.farm.wait(lambda: web.json(forecast)["absent"] == over, 120, "a forecast")


def test_lichess_reads_clocks_and_evals(web: theatre.Web) -> None:
    """Every engine ply of the feed carries the clock and the eval of the record."""
    web.farm.finish("stage", 120)
    played = record(web, "league.1")
    (game,) = all_games(web.get("/lichess/stage/games/league.1.pgn").text)
    assert game.headers["GameURL"].endswith("/#/stage/game/league.1")
    nodes = [node for node in game.mainline() if node.clock() is not None]
    assert len(nodes) == len(played.plies)
    for node, ply in zip(nodes, played.plies, strict=True):
        left = ply.white_clock_ns if ply.side == "white" else ply.black_clock_ns
        assert node.clock() == left // 1_000_000_000
        told = node.eval()
        if ply.score is not None and ply.score.cp is not None:
            assert told is not None
            assert told.pov(node.board().turn ^ True).score() == ply.score.cp
    rounds = {
        node.headers["Round"] for node in all_games(web.get("/lichess/stage/league/1.pgn").text)
    }
    assert rounds
    assert all(one.startswith("1.") for one in rounds)


def test_live_files_show_the_last_game_at_the_time_of_its_end(web: theatre.Web) -> None:
    """live.pgn is the archive's text, its time the game's end, live.json fits its schema."""
    over = web.farm.finish("stage", 120)
    last = max(filter(None, (g.finished for g in over.games.values())), key=lambda f: f.ended_ms)
    kept = web.farm.archive / "stage" / "games" / last.game / "game.pgn"
    live = web.feeds / "live.pgn"
    web.farm.wait(lambda: live.read_bytes() == kept.read_bytes(), 30, "the last game's PGN")
    assert abs(live.stat().st_mtime * 1000 - last.ended_ms) < 1
    answer = web.get("/tcec/live.pgn")
    assert answer.headers["last-modified"]
    assert answer.headers["date"]
    told = json.loads((web.feeds / "live.json").read_bytes())
    jsonschema.validate(told, schemas.LIVE)
    whole = record(web, last.game)
    assert [move["m"] for move in told["Moves"] if not move["book"]] == [
        ply.san for ply in whole.plies
    ]


def test_a_game_in_flight_is_written_as_it_is_in_the_archive(web: theatre.Web) -> None:
    """The comments of live.pgn's moves are those of the finished game's PGN."""
    played = record(web, "league.1")
    (kept,) = all_games((web.farm.archive / "stage/games/league.1/game.pgn").read_text())
    line = broadcast_games.of_record(played)
    tags = tcec_pgn.tags(line, played.started_ms, played.hall)
    text = tcec_pgn.running(line, tags, [tcec_pgn.options("uci", [("Hash", "16")])] * 2)
    (live,) = all_games(text)
    assert live.headers["Result"] == "*"
    assert live.headers["Termination"] == "unterminated"
    words = [" ".join(node.comment.split()) for node in live.mainline()]
    wanted = [" ".join(node.comment.split()) for node in kept.mainline()]
    assert words[:-1] == wanted[:-1]
    assert wanted[-1].startswith(words[-1])


def test_farm_up_shows_the_season_and_ends_the_page_with_it(tmp_path: pathlib.Path) -> None:
    """`farm up` prints the page's address; the page is there, and gone after SIGTERM."""
    environment = {key: text for key, text in os.environ.items() if not key.startswith("FARM_")}
    command = [sys.executable, "-m", "celery", "-A", "orchestrator", "farm", "up"]
    process = subprocess.Popen(
        [*command, "--data", str(tmp_path), "--web", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = next(line for line in process.stdout if "live page" in line)
    address = told.split()[-1].rstrip("/")
    # Who comes while the page is started waits at its socket.
    assert "Tournament Farm" in httpx.get(address, timeout=120).text
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    with pytest.raises(httpx.TransportError):
        httpx.get(address, timeout=SECONDS)


def test_tcecs_viewers_are_spoken_to_in_both_protocols(web: theatre.Web) -> None:
    """socket.io 2 shakes hands, upgrades, answers; the plain WebSocket keeps alive."""
    web.farm.finish("stage", 120)
    there = {"Origin": "https://viewer.example"}  # a page elsewhere, which polls with credentials
    answer = web.get("/socket.io/?EIO=3&transport=polling", **there)
    assert answer.headers["access-control-allow-origin"] == there["Origin"]
    assert answer.headers["access-control-allow-credentials"] == "true"
    polling = web.get("/socket.io/?EIO=3&transport=polling").text
    length, _, rest = polling.partition(":")
    hello = json.loads(rest[1 : int(length)])
    assert rest[int(length) :].startswith("2:40")
    address = web.url.replace("http", "ws")
    with websocket.connect(
        f"{address}/socket.io/?EIO=3&transport=websocket&sid={hello['sid']}"
    ) as socket_io:
        socket_io.send("2probe")
        assert socket_io.recv(SECONDS) == "3probe"
        socket_io.send("5")
        socket_io.send("2")
        awaited(socket_io, lambda said: said == "3")
        socket_io.send('42["refreshdata"]')
        event = awaited(socket_io, lambda said: str(said).startswith('42["pgn"'))
        jsonschema.validate(json.loads(str(event)[2:])[1], schemas.LIVE)
    with websocket.connect(f"{address}/api/") as plain:
        assert json.loads(plain.recv(SECONDS))[0] == 2
        plain.send(b"\0")
        awaited(plain, lambda said: said == b"\0")


def awaited(
    viewer: websocket.ClientConnection, wanted: Callable[[str | bytes], bool]
) -> str | bytes:
    """Return what is wanted of what a viewer is told; the spectators' number may come before."""
    while not wanted(said := viewer.recv(SECONDS)):
        assert re.search(r"users|\[2, ?\d+\]", str(said)), said
    return said


def test_tricks_with_paths_and_methods_lead_nowhere(web: theatre.Web) -> None:
    """Nothing outside page, feeds and documents is served, nothing is written."""
    secret = b"journal"
    for path in (
        *("/tcec/../archive/stage/journal.jsonl", "/tcec/%2e%2e/archive/stage/journal.jsonl"),
        *("/..%2f..%2fetc/passwd", "/tcec//etc/passwd", "/vendor/../../../serve.py"),
        *("/api/v1/seasons/..%2f..%2fx", "/pgn/stage/games/..%2f..%2fjournal.jsonl.pgn"),
        *("/api/v1/seasons/stage/games/..", "/pgn/..%2f.pgn", "/tcec/.live.pgn.new", "/%00"),
        *(f"/api/v1/seasons/stage/games/league.1/plies/{n}" for n in ("9" * 5_000, "%C2%B2", "-1")),
    ):
        with socket.create_connection(("127.0.0.1", web.port), SECONDS) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: raw.recv(65_536), b""))
        assert re.match(rb"HTTP/1.1 4\d\d", answer), (path, answer[:80])
        assert secret not in answer.replace(b"journal.jsonl", b""), path
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = httpx.request(method, f"{web.url}/api/v1/seasons", timeout=SECONDS)
        assert answer.status_code == 405


def test_harmful_clients_harm_nobody(web: theatre.Web) -> None:
    """Silent connections, streams never read and huge heads leave everybody else served."""
    web.farm.finish("stage", 120)
    held = [socket.create_connection(("127.0.0.1", web.port), SECONDS) for _ in range(400)]
    try:
        for raw in held[:200]:
            raw.sendall(b"GET /api/v1/live HTTP/1.1\r\nHost: x\r\n\r\n")
        with (
            socket.create_connection(("127.0.0.1", web.port), SECONDS) as raw,
            contextlib.suppress(ConnectionError),  # what comes behind the refusal is not read
        ):
            raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000)
            assert re.match(rb"HTTP/1.1 4\d\d", raw.recv(100))
        assert web.get("/api/v1/seasons/stage").status_code == 200
        assert web.get("/").status_code == 200
        with listen(web) as answer:
            assert next(theatre.events(answer)).kind == "snapshot"
    finally:
        for raw in held:
            raw.close()


def test_its_redis_user_reads_and_cannot_write(web: theatre.Web) -> None:
    """All of this module is served under the role ``broadcast``, which no writing verb is given."""
    with redis.Redis.from_url(web.farm.redis.url) as client:
        names = [one["user"] for one in client.client_list()]
        assert theatre.ROLE in names
        writing = {
            name.decode()
            for kind in ("write", "admin", "scripting", "pubsub")
            for name in client.execute_command("ACL", "CAT", kind)
        }
        assert len(writing) > 100
        rules = client.acl_getuser(theatre.ROLE)
    allowed = {word[1:] for word in rules["commands"] if word.startswith("+")}
    assert {"get", "xrange"} <= allowed
    assert allowed & writing == set()
    assert rules["keys"]
    assert all(pattern.startswith("%R~") for pattern in rules["keys"])
    assert not rules["channels"]
    environment = {"FARM_REDIS_URL": web.farm.redis.url, **theatre.spectators_role(web.farm)}
    with (
        store.connect(address.url(environment)) as ledger,
        pytest.raises(exceptions.NoPermissionError),
    ):
        ledger.server.client.set(keys.Keys().epoch, "9")


def test_killed_and_started_again_it_derives_the_same(web: theatre.Web) -> None:
    """After kill -9 and without its files, the server writes the same files again."""
    web.farm.finish("stage", 120)
    web.farm.wait(lambda: games(web, "/pgn/stage.pgn") == 8, 30, "all games in the download")
    stem = web.feeds / "archive" / "Test_Season_stage_-_Final_2.pgn"
    web.farm.wait(stem.exists, 30, "the last game in TCEC's archive")
    assert web.get(f"/tcec/archive/json/{stem.name}").content == stem.read_bytes()
    before = settled(web)
    documents = web.json("seasons/stage/events/league"), web.json("seasons/stage/log")
    web.kill()
    for path in sorted(web.feeds.rglob("*.*")):
        path.unlink()
    web.start()
    web.farm.wait(lambda: web.get("/healthz").json()["season"] == "stage", 30, "documents")
    web.farm.wait(lambda: theatre.tree(web.feeds).keys() == before.keys(), 30, "all files")
    assert settled(web) == before
    assert documents == (web.json("seasons/stage/events/league"), web.json("seasons/stage/log"))


def settled(web: theatre.Web) -> dict[str, bytes]:
    """Return the feeds of a season that is over, once a second brings nothing new."""
    seen: dict[str, bytes] = {}

    def still() -> bool:
        nonlocal seen
        seen, before = theatre.tree(web.feeds), seen
        if seen != before:
            time.sleep(1)
        return seen == before

    web.farm.wait(still, 60, "feeds that stand still")
    return seen
