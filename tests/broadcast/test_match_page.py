"""The live page of ``farm match -live``: what it serves while games are played, and its end."""

from __future__ import annotations

import dataclasses
import io
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
from orchestrator.broadcast.web import match_page, site
from orchestrator.common import errors, files
from orchestrator.rating import sprt
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import arguments, live, schedule, stopping, switches
from worker_cpu.wire import frames

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
OF_SEASONS = {  # fields of a schedule's games that the journal of a match cannot tell
    *("estimated_start_ms", "eco", "opening", "white_eval", "black_eval", "final_fen"),
    "r_mobility",
}
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
    lacking = set(answers.ScheduledGame.model_fields) - OF_SEASONS - rows[0].keys()
    assert not lacking, "make it in match_view._row, or name it in OF_SEASONS"
    test = json.loads(told["seasons/match/test"])
    assert test["score"]["pentanomial"] == [0, 0, 0, 0, 2]
    assert test["history"]["games"] == [1, 2, 3, 4]
    assert math.isclose(test["history"]["llr"][-1], test["sprt"]["llr"])
    for game in journal:
        shown = json.loads(get(f"{api}seasons/match/games/{game['number']}"))
        assert (len(shown["plies"]), shown["result"]) == (game["plies"], game["result"])
        assert shown["recorded"]
    for none in (
        f"{api}seasons/match/games/{'9' * 5000}",
        f"{page}pgn/match/games/{'9' * 5000}.pgn",
    ):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(none)
    assert get(f"{page}pgn/match.pgn").count(b'[Result "') == len(journal)
    assert b"Tournament Farm" in get(page)


class Served:
    """A page's process that runs until this signal comes."""

    stdin = io.BytesIO()

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def wait(self, seconds: float | None = None) -> int:
        """Let the signal come unless only the end is waited for."""
        if seconds is None:
            signal.raise_signal(self._number)
        return 0


def unheard(number: int, _: object) -> None:
    """Stand where the signal would end this process."""
    raise AssertionError(f"signal {number} ends the match, and its folder stays")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_a_page_that_stays(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed terminal lets the match tidy up as Ctrl-C does."""
    page = live.Page(socket.create_server(("127.0.0.1", 0)), switches.Live(stays=True))
    monkeypatch.setattr(page, "_process", Served(number))
    before = {one: signal.signal(one, unheard) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        assert page.stay()
        assert signal.getsignal(signal.SIGHUP) is unheard
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def test_nohup_is_heeded() -> None:
    """A match that is to outlive its terminal does not hear it close."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = stopping.Stop()
    try:
        with stop.heard():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not stop.urgency


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


def test_a_game_played_again_shows_its_last_attempt(tmp_path: pathlib.Path) -> None:
    """The moves of an attempt that a host spoiled are nobody's, however late its files are read."""
    about = long_match(0).about
    head = {"about": about.model_dump(mode="json"), "boards": 1, "started_ms": 0, "pgn": None}
    (tmp_path / "match.json").write_text(contract.dumps(head))
    journal = tmp_path / "j.jsonl"
    journal.write_text('{"kind":"match","v":1,"arguments":[],"seed":1}\n')
    feed, watcher = live.Feed(tmp_path), match_page.Watcher(tmp_path, journal)
    (white, black), (result,) = about.engines, long_match(1).results.values()
    slot = schedule.Slot(1, 1, 0, 0, 1, 0, 0)
    for attempt, move in enumerate(("e2e4", "d2d4"), start=1):
        order = contract.GameOrder(
            season="s",
            season_name="",
            site="",
            event="e",
            event_name="",
            game=f"m-1-{attempt}",
            number=1,
            round="1",
            white=white,
            black=black,
            time_control=about.time_control,
        )
        watch = feed.begin(1, slot, order)
        assert watch is not None
        watcher.look()
        ply = contract.PlyRecord(
            ply=1,
            side="white",
            move=move,
            san=move[2:],
            think_ns=1,
            margin_ns=1,
            overhead_ns=1,
            white_clock_ns=1,
            black_clock_ns=1,
        )
        watch(frames.Frame(frames.Kind.PLY, ply.encode().encode()))
        feed.end(order)
        if attempt == 2:
            with journal.open("a") as file:
                file.write(contract.dumps(result.as_json()) + "\n")
        watcher.look()
    assert watcher.games.replay(result).document()["plies"][0]["uci"] == "d2d4"
    assert not list((tmp_path / "games").iterdir()), "files that nobody reads are gone"


def test_an_adaptive_match_has_one_list() -> None:
    """The page ranks as the terminal does: choices that rest on results widen the errors."""
    words = [
        word
        for name in "ABC"
        for word in ("-engine", f"cmd={sys.executable}", f"name={name}", "tc=1")
    ]
    settings = arguments.read([*words, "-tournament", "adaptive", "-games", "20"])
    about = live.about(settings, 20, files.Checksums())
    view, table_of = match_view.MatchView(about, 0), standings.Standings("ABC", adaptive=True)
    won = next(iter(long_match(1).results.values()))
    for number, (white, black) in enumerate(("AB", "BA", "BC", "CB"), start=1):
        slot = schedule.Slot(number, 1, 0, "ABC".index(white), "ABC".index(black), 0, number // 2)
        view.add(result := dataclasses.replace(won, number=number, white=white, black=black))
        table_of.add(slot, result)
    shown = [(one["name"], one["elo"], one["elo_error"]) for one in view.test()["engines"]]
    ranks = standings.ranks(table_of)
    assert shown == [("ABC"[one.engine], one.elo, one.error) for one in ranks]


@pytest.mark.parametrize(
    "wrong", [{"number": "../../evil"}, {"white": "C"}, {"result": "x"}, {"started_ms": None}]
)
def test_a_journal_that_was_edited_is_refused_in_words(
    wrong: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """What no match has written is named with its file, and nothing is written by it."""
    view = long_match(1)
    about = json.loads(contract.dumps(view.about.model_dump(mode="json")))
    head = {"kind": "match", "v": 1, "arguments": [], "seed": 1, "about": about}
    game = json.loads(contract.dumps(next(iter(view.results.values())).as_json())) | wrong
    journal = tmp_path / "j.jsonl"
    journal.write_text("".join(json.dumps(line) + "\n" for line in (head, game)))
    with pytest.raises(errors.UsageError, match=r"j\.jsonl: a game is none of this match's"):
        site.MatchSite(journal, None, tmp_path / "out")


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
    line = contract.dumps(next(iter(long_match(1).results.values())).as_json())
    head = '{"kind":"match","v":1,"arguments":[],"seed":1}\n'
    path.write_text(f"{head}{line}\n{head}{line}\n{line[:9]}")
    follower = match_journal.Follower(path)
    assert [one.number for one in follower.read()] == [1]
    with path.open("a") as file:
        file.write(f"{line[9:]}\n")
    assert [one.number for one in follower.read()] == [1]
    assert not follower.read()
