"""The live page of ``farm match -live``: what it serves while games are played, and its end."""

from __future__ import annotations

import json
import math
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

import described
import pytest
import table

from orchestrator import contract
from orchestrator.broadcast.content import answers, match_view
from orchestrator.rating import sprt
from orchestrator.testmatch import match_journal
from worker_cpu.match import arguments, switches

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
PLACES = (
    *("seasons", "seasons/match", "seasons/match-2", "seasons/match/test"),
    *("seasons/match/events/match", "seasons/match-2/events/match"),
    *("seasons/match/events/match/schedule", "seasons/match/statistics", "seasons/match/games/1"),
    *("seasons/match/games/4/plies/1", "seasons/match/live", "seasons/match-2/live"),
)


def get(url: str) -> bytes:
    """Return what the page answers."""
    with urllib.request.urlopen(url, timeout=table.PATIENCE) as answer:
        body: bytes = answer.read()
        return body


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """Return the next line with these words."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"the match has ended without {words!r}")


def snapshot(url: str) -> dict[str, Any]:
    """Return what the stream says first."""
    with urllib.request.urlopen(url, timeout=table.PATIENCE) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                told: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                return told
    raise AssertionError("the stream says nothing")


def test_a_match_is_shown_while_and_after_it_is_played(tmp_path: pathlib.Path) -> None:
    """Who comes late sees all games, tables and the test; the page stays until Ctrl-C."""
    words = ("-games", "2", "-repeat", "-rounds", "2", "-concurrency", "2", "-force-concurrency")
    test = ("-sprt", "elo0=0", "elo1=5", "-live", "0", "stay")
    process = table.start(tmp_path, *table.good_and_bad(*words, *test))
    try:
        page = line_with(process, "Live page: ").split()[-1]
        running = snapshot(f"{page}api/v1/live")
        described.check_event("snapshot", running)
        assert running["season"]["boards"][1]["season"] == "match-2"
        line_with(process, f"stays at {page} until Ctrl-C")
        check_documents(page, tmp_path)
        process.send_signal(signal.SIGINT)
        assert process.wait(table.PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
    assert not table.survivors(tmp_path)
    port = int(page.rstrip("/").rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def fetched(api: str, place: str) -> bytes:
    """Return a document; a missing one is named."""
    try:
        return get(api + place)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{place}: {error}") from error


def check_documents(page: str, folder: pathlib.Path) -> None:
    """Hold what is served against its types, and against the match's journal."""
    api = f"{page}api/v1/"
    while json.loads(get(f"{api}seasons/match"))["status"] != "finished":
        time.sleep(0.05)
    told = {place: fetched(api, place) for place in PLACES}
    for place, body in told.items():
        described.check(described.typed(place.replace("match-2/live", "match/live")), body, place)
    journal = table.games(folder / "farm-match.jsonl")
    rows = json.loads(told["seasons/match/events/match/schedule"])
    assert [row["number"] for row in rows] == [game["number"] for game in journal]
    test = json.loads(told["seasons/match/test"])
    assert test["score"]["pentanomial"] == [0, 0, 0, 0, 2]
    assert test["history"]["games"] == [1, 2, 3, 4]
    assert math.isclose(test["history"]["llr"][-1], test["sprt"]["llr"])
    for game in journal:
        shown = json.loads(get(f"{api}seasons/match/games/{game['number']}"))
        assert (len(shown["plies"]), shown["result"]) == (game["plies"], game["result"])
        assert shown["recorded"]
    assert get(f"{page}pgn/match.pgn").count(b'[Result "') == len(journal)
    assert b"Tournament Farm" in get(page)


def test_a_port_that_is_taken_is_refused_before_any_game(tmp_path: pathlib.Path) -> None:
    """The refusal says what to do, and nothing is written."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = table.play(tmp_path, *table.good_and_bad("-live", str(port)), code=2)
    assert f"-live: the live page cannot have port {port} of 127.0.0.1" in done.stderr
    assert "name another port (-live" in done.stderr
    assert not (tmp_path / "farm-match.jsonl").exists()


def test_the_manuals_examples_are_read() -> None:
    """Each line with -live in docs/match.md is a command line, and says where the page is."""
    text = DOCS.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in re.findall(r"^farm match .*", text, re.MULTILINE) if "-live" in line]
    here = "cmd=" + sys.executable
    words = [re.sub(r"cmd=\S+", here, line) for line in lines]
    places = [arguments.read(shlex.split(line, comments=True)[2:]).live for line in words]
    assert switches.Live("127.0.0.1", 8080) in places
    assert switches.Live("0.0.0.0", 8080, stays=True) in places


@pytest.mark.parametrize(
    ("place", "host", "port"),
    [("8080", "127.0.0.1", 8080), ("[::1]:9000", "::1", 9000), ("box:80", "box", 80)],
)
def test_the_page_is_on_loopback_unless_a_host_is_named(place: str, host: str, port: int) -> None:
    """-live PORT and -live HOST:PORT; what others reach is said."""
    engines = [f"cmd={sys.executable}", "name=A"], [f"cmd={sys.executable}", "name=B"]
    both = [word for one in engines for word in ("-engine", *one, "tc=1")]
    read = arguments.read([*both, "-live", place])
    assert read.live == switches.Live(host, port)
    assert any("no password" in one for one in read.remarks) == (host == "box")


def long_match(games: int) -> match_view.MatchView:
    """Return a match of two after many games."""
    engines = tuple(contract.EngineSpec(id=name, name=name, command=("x",)) for name in "AB")
    about = match_journal.About(
        event="Long",
        site="",
        engines=engines,
        time_control=contract.TimeControl(base_ms=1000),
        clocks="1 s",
        games=games,
        test=sprt.Test(0, 5),
    )
    view = match_view.MatchView(about, 0)
    for number in range(1, games + 1):
        white, black = "AB" if number % 2 else "BA"
        result: contract.Result = "1-0" if number % 3 else "1/2-1/2"
        view.add(
            match_journal.Result(
                number=number,
                round=number,
                white=white,
                black=black,
                opening=number,
                result=result,
                ending=contract.Ending.CHECKMATE,
                loser=None,
                details="",
                note="",
                plies=1,
                started_ms=number,
                ended_ms=number + 1,
                pair=(number - 1) // 2,
            )
        )
    return view


def test_a_long_match_stays_light() -> None:
    """Thousands of games: graph, crosstable and schedule keep their bounds, counts are whole."""
    view = long_match(6_001)
    told = view.test()
    described.check(answers.MatchTest, json.dumps(told), "test")
    assert match_view.POINTS <= len(told["history"]["games"]) < 2 * match_view.POINTS
    assert (told["games"], told["score"]["games"]) == (6_001, 6_001)
    made = view.made(7_000)
    assert len(json.loads(made["seasons/match/events/match/schedule"].body)) == match_view.ROWS
    (cell,) = filter(None, json.loads(made["seasons/match/events/match"].body)["rows"][0]["cells"])
    assert len(cell["text"]) == len(cell["games"]) == match_view.CELL


def test_a_journal_is_followed_line_by_line(tmp_path: pathlib.Path) -> None:
    """A line that is being written waits; an older match in the same file is not this one's."""
    path = tmp_path / "j.jsonl"
    line = contract.dumps(next(iter(long_match(1).results.values())).facts())
    head = '{"kind":"match","v":1,"arguments":[],"seed":1}\n'
    path.write_text(f"{head}{line}\n{head}{line}\n{line[:9]}")
    follower = match_journal.Follower(path)
    assert [one.number for one in follower.read()] == [1]
    with path.open("a") as file:
        file.write(f"{line[9:]}\n")
    assert [one.number for one in follower.read()] == [1]
    assert not follower.read()
