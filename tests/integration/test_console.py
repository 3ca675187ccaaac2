"""``farm console`` as a director meets it: in a terminal, with keys; each act tried first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import harness
import pytest
from prompt_toolkit import completion, document

from orchestrator import contract
from orchestrator.commands import console
from orchestrator.common import errors
from orchestrator.ledger import store
from orchestrator.season import decide
from orchestrator.season.fold import state

PATIENCE = 60.0  # s
ROWS, COLUMNS = 40, 140
GATE = ["season", "amend", "gate", "final", "--at", "+1h"]


class Terminal:
    """A terminal in which ``farm console`` runs: what it has shown, and its keys."""

    def __init__(
        self, environment: dict[str, str], *words: str, size: tuple[int, int] = (ROWS, COLUMNS)
    ) -> None:
        self._hall, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        command = [sys.executable, "-c", "from orchestrator.commands import main; main()"]
        self.process = subprocess.Popen(
            [*command, "console", *words],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=environment | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(inner)
        self._shown = b""

    def shows(self, *words: str) -> None:
        """Wait until words have been drawn; after a second without them all is drawn anew.

        What stays on the screen is not drawn again, and may be a part of the words.
        """
        found = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\s)*".join(map(re.escape, words)).encode())
        deadline = time.monotonic() + PATIENCE
        drawn = time.monotonic()
        while not found.search(self._shown):
            if time.monotonic() > drawn + 1:
                drawn = time.monotonic()
                os.kill(self.process.pid, signal.SIGWINCH)
            assert time.monotonic() < deadline, f"never seen: {words} in {self._shown[-4000:]!r}"
            if select.select([self._hall], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):  # it has ended
                    self._shown += os.read(self._hall, 65536)

    def press(self, keys: str) -> None:
        """Type keys, and forget what was shown before."""
        self._shown = b""
        os.write(self._hall, keys.encode())

    def close(self) -> int:
        """End what still runs; return its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self._hall)
        return self.process.wait()


@pytest.fixture
def url(tmp_path: pathlib.Path) -> Iterator[str]:
    """Run a Redis with a season that nobody plays."""
    engines = [harness.scripted(tmp_path / "life", strength) for strength in range(4)]
    file = harness.league(tmp_path / "season.toml", engines)
    with harness.Redis(tmp_path / "redis") as server:
        made = server.url_of(harness.OPERATOR)
        done = harness.run_farm(environment(made), "launch", str(file), "--by", "anna")
        assert done.returncode == 0, done.stderr
        yield made


def environment(url: str) -> dict[str, str]:
    """Return the environment of the director's terminal."""
    return harness.without_farm() | {"FARM_DATA": "nowhere", "FARM_REDIS_URL": url}


def journal_entries(url: str) -> list[contract.Entry]:
    """Return what the season's journal has beyond its launch."""
    with store.connect(url) as ledger:
        return ledger.read("test", 1)


def begin(url: str) -> None:
    """Journal all that ``farm serve`` would decide: the league's games are paired."""
    with store.connect(url) as ledger:
        now = state.fold(ledger.read("test"))
        while drafts := decide.decide(now, ledger.now_ms()):
            ledger.append("test", now.seq, drafts, "serve")
            now = state.fold(ledger.read("test"))


def test_an_act_is_tried_then_done_by_keys_alone(url: str) -> None:
    """What it will change is said first; no changes nothing, yes is journaled with who and why."""
    terminal = Terminal(environment(url), "--by", "berta")
    try:
        terminal.shows("WAITS", "FOR", "YOU")
        terminal.shows("of", "16")
        terminal.press("p" + "power work\r")
        terminal.shows("farm", "season", "pause", "--season")
        terminal.shows("Do", "it?")
        assert journal_entries(url) == [], "it was only tried"
        terminal.press("n")
        terminal.shows("nothing", "was")
        assert journal_entries(url) == []
        terminal.press("p" + "power work\r")
        terminal.shows("Do", "it?")
        terminal.press("y")
        terminal.shows("paused:", "power", "work")
        (paused,) = journal_entries(url)
        assert paused.kind == "paused"
        assert paused.by.startswith("berta@")
        terminal.press("1" + "\r")  # what waits is answered by its number
        terminal.shows("Do", "it?")
        terminal.press("y")
        terminal.shows("berta", "resumed")  # the trial has said "goes on" in the same place
        assert [entry.kind for entry in journal_entries(url)] == ["paused", "resumed"]
        terminal.press(":serve\r")
        terminal.shows("has", "no", "--dry-run")
        terminal.press("q")
        assert terminal.process.wait(PATIENCE) == 0
    finally:
        terminal.close()


def test_an_answer_is_checked_when_it_is_given(url: str) -> None:
    """By the words of the command, before the reason is asked; a prefix of one candidate is meant.

    What an act is refused for is said before its reason, too.
    """
    begin(url)
    terminal = Terminal(environment(url), "--by", "berta")
    try:
        terminal.shows("of", "16")
        terminal.press("b")
        terminal.shows("no", "game", "is", "in", "flight;")
        terminal.press("\x1b")
        terminal.press("g")
        terminal.shows("no", "gate", "is", "shut")
        terminal.press("a")
        terminal.shows("Game:")
        terminal.press("league.99\r")
        terminal.shows("no", "game", "'league.99'", "is", "paired")
        terminal.press("league.2\r")
        terminal.shows("Result")
        terminal.press("0:1\r")
        terminal.shows("found", "'0:1';", "there", "are:", "1-0,", "0-1,")
        terminal.press("0\r")
        terminal.shows("Why")
        terminal.shows("will", "be", "0-1")
        terminal.press("\x1b")
        terminal.press("q")
        assert terminal.process.wait(PATIENCE) == 0
    finally:
        terminal.close()
    assert all(
        entry.by == "serve" or entry.by.startswith("serve@") for entry in journal_entries(url)
    )


def test_what_was_done_is_said_until_others_act(url: str) -> None:
    """It may not be so any more: another terminal has changed it."""
    terminal = Terminal(environment(url), "--by", "berta")
    try:
        terminal.shows("of", "16")
        terminal.press("p" + "lunch\r")
        terminal.shows("Do", "it?")
        terminal.press("y")
        terminal.shows("done:", "farm")
        done = harness.run_farm(environment(url), "resume", "--by", "carl")
        assert done.returncode == 0, done.stderr
        terminal.shows("Press", "a", "key")
        terminal.press("q")
        assert terminal.process.wait(PATIENCE) == 0
    finally:
        terminal.close()


def test_any_command_acts_under_the_directors_name(url: str) -> None:
    """``:`` is no way around ``--by``: the journal names who sits at the console."""
    terminal = Terminal(environment(url), "--by", "berta")
    try:
        terminal.shows("of", "16")
        terminal.press(":pause --reason lunch\r")
        terminal.shows("farm", "season", "pause", "--reason")
        terminal.shows("Do", "it?")
        terminal.press("y")
        terminal.shows("paused:", "lunch")
        (paused,) = journal_entries(url)
        assert paused.by.startswith("berta@")
        assert paused.data["name"] == "berta"
    finally:
        terminal.close()


def test_a_correction_says_at_once_that_it_needs_a_pause(url: str) -> None:
    """Before any answer; then it shows what it would change, asks nothing and does nothing.

    Empty answers go nowhere, and Tab shows who there is.
    """
    terminal = Terminal(environment(url), "--by", "berta")
    try:
        terminal.shows("of", "16")
        begin(url)
        terminal.shows("league.1")
        terminal.press("w")
        terminal.shows("the", "season", "first")
        terminal.press("\r")
        terminal.shows("Tab")
        terminal.press("\t")
        terminal.shows("scripted-0")
        terminal.shows("scripted-1")
        terminal.press("\x15scripted-1\rleague\rits author asked\r")
        terminal.shows("will", "leave", "league")
        terminal.press("y")
        assert {entry.kind for entry in journal_entries(url)} == {"event_started", "games_paired"}
    finally:
        terminal.close()


def test_a_small_terminal_shows_all_that_an_act_changes(url: str) -> None:
    """The last line of it, which says that there is no way back, is not cut off."""
    begin(url)
    assert harness.run_farm(environment(url), "pause", "--by", "anna").returncode == 0
    terminal = Terminal(environment(url), "--by", "berta", size=(24, 80))
    try:
        terminal.shows("of", "16")
        terminal.press("wscripted-1\rleague\rits author asked\r")
        terminal.shows("cannot", "be", "taken", "back")
        terminal.shows("Do", "it?")
    finally:
        terminal.close()


def test_a_small_terminal_shows_the_refusal_and_the_latest_acts(url: str) -> None:
    """They stand before what a correction would change, and before what was done long ago."""
    begin(url)
    for reason in ("lunch " * 20, "tea " * 20, "the last one"):
        for act in ("pause", "resume"):
            words = [act, "--by", "anna", *(["--reason", reason] if act == "pause" else [])]
            assert harness.run_farm(environment(url), *words).returncode == 0
    terminal = Terminal(environment(url), "--by", "berta", size=(24, 80))
    try:
        terminal.shows("latest", "first")
        terminal.shows("paused:", "the", "last", "one")
        terminal.press("wscripted-1\rleague\r")
        terminal.shows("refused:", "pause", "the", "season", "first")
        terminal.press("its author asked\r")
        terminal.shows("refused:", "pause", "the", "season", "first")
        terminal.shows("scripted-1", "will", "leave", "league")
    finally:
        terminal.close()


def test_without_a_terminal_it_says_what_to_do(url: str) -> None:
    """A pipe gets an error; ``--once`` prints what the screen shows."""
    done = harness.run_farm(environment(url), "console")
    assert done.returncode == errors.UsageError.exit_code
    assert "--once" in done.stderr
    shown = harness.run_farm(environment(url), "console", "--once").stdout
    assert "0 of 16 games" in shown
    assert "launched" in shown


def test_what_waits_names_the_act_that_ends_it(url: str) -> None:
    """Alarm, sick hall and pause are listed, the most urgent first."""
    assert harness.run_farm(environment(url), "pause", "--by", "anna").returncode == 0
    with store.connect(url) as ledger:
        now = state.fold(ledger.read("test"))
    alarm, hall, pause = console.waiting(now, {"sick": "memory"}, "lost")
    assert alarm == console.Waiting("ALARM: lost")
    assert hall.act is not None
    assert hall.act.words == ("host", "release", now.hall)
    assert pause.act == console.BY_TITLE["resume"]


def test_each_key_has_one_meaning_and_stands_whole() -> None:
    """No act has a key that answers or leaves; no line of keys breaks inside one."""
    keys = [*console.BY_KEY, console.COMMAND.key, console.YES, console.NO, "q"]
    assert len(set(keys)) == len(console.ACTS) + 4
    for columns in (40, 80, 140):
        shown = console.key_lines(columns).split("\n")
        assert max(map(len, shown)) <= columns
        for act in console.ACTS:
            assert any(f"{act.key} {act.title}" in line for line in shown)


def test_a_decision_offers_its_own_candidates() -> None:
    """Only those that are level, each once; behind a comma the ones that are left."""
    offers = console.Candidates({"e1": "", "e2": "", "other": ""}, several=True)

    def offered(typed: str) -> list[str]:
        event = completion.CompleteEvent(completion_requested=True)
        return [each.text for each in offers.get_completions(document.Document(typed), event)]

    assert offered("e") == ["e1", "e2"]
    assert offered("e1,") == ["e2", "other"]
    assert offered("e1, e") == ["e2"]


@pytest.mark.parametrize(
    ("line", "signed"),
    [
        ("pause", ["pause", "--by", "berta"]),
        (" ".join(GATE), [*GATE, "--by", "berta"]),
        ("pause --by anna", ["pause", "--by", "anna"]),
        ("pause --by=anna", ["pause", "--by=anna"]),
        ("season standings", ["season", "standings"]),
    ],
)
def test_a_change_is_signed(line: str, signed: list[str]) -> None:
    """By who sits at the console, unless the line itself names somebody."""
    assert console.signed(line.split(), "berta") == signed


@pytest.mark.parametrize(
    ("line", "tried"),
    [
        ("pause --reason a", ["pause", "--reason", "a", "--dry-run"]),
        ("engine update x", ["engine", "update", "x", "--dry-run"]),
        ("pause --dry-run", None),
        ("season standings", None),
        ("host list", None),
    ],
)
def test_only_what_can_be_tried_is_run(line: str, tried: list[str] | None) -> None:
    """A change gets ``--dry-run``, a look runs as it is."""
    assert console.dry(line.split()) == tried


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serve", "--dry-run"),
        ("nonsense", "no command"),
        ("host lanes --close a.b", "--dry-run"),
        ("", "--dry-run"),
    ],
)
def test_what_cannot_be_tried_is_refused(line: str, said: str) -> None:
    """Nothing is begun from the console that neither ends nor says what it would do."""
    with pytest.raises(errors.UsageError, match=said):
        console.dry(line.split())
