"""``farm up``: everything on one machine, started, kept alive, ended, started again."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import harness
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.commands import common, serve_web
from orchestrator.common import errors
from orchestrator.ledger import embedded_redis, store

FARM = (str(harness.PROGRAM),)
CELERY = (sys.executable, "-m", "celery", "-A", "orchestrator", "farm")
PATIENCE = 600.0  # s: how long a busy machine may take for anything here


def up(
    root: pathlib.Path,
    *words: str,
    web: bool = False,
    program: tuple[str, ...] = FARM,
    sandbox: str = "plain",
) -> subprocess.Popen[str]:
    """Start ``farm up`` on a data directory.

    A sandbox keeps a gate that its host has taken away: a held engine would lose by a stall.
    """
    environment = harness.without_farm() | {"FARM_SANDBOX": sandbox}
    return subprocess.Popen(
        [
            # As from a terminal, also where the tests themselves run under nohup.
            *("env", "--default-signal=HUP", *program, "up", "--data", str(root), "--json"),
            *(() if web else ("--no-web",)),
            *words,
        ],
        env=environment | harness.CALM,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def season(root: pathlib.Path, *extra: str) -> str:
    """Write a season of two scripted engines: a league of two games, and a final of two."""
    engines = [harness.scripted(root / "life.jsonl", strength, *extra) for strength in (0, 3)]
    return str(harness.league(root / "season.toml", engines, final_games=2))


def left(root: pathlib.Path) -> list[int]:
    """Return the processes that still know the data directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            text = harness.command(int(entry.name))
            if str(root) in text and harness.alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def gone(root: pathlib.Path) -> bool:
    """Wait for the last process; a dead man may need a moment."""
    deadline = time.monotonic() + PATIENCE
    while left(root) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left(root)


def thinking(root: pathlib.Path) -> bool:
    """Say whether both engines of a game are ready.

    A game holds the hall before that: an end that comes so early finds no engine to wait for.
    """
    url = embedded_redis.running_url(root / common.REDIS)
    if url is None:
        return False
    with contextlib.suppress(errors.LedgerAwayError), store.connect(url) as ledger:
        live = ledger.live(harness.HALL)
        return live is not None and "options" in json.loads(live)["white"]
    return False


def wait_for_game(root: pathlib.Path) -> None:
    """Wait until the engines of a game think."""
    harness.wait(lambda: thinking(root), "a game whose engines are ready")


def test_a_season_is_played_to_its_end_and_everything_stopped(tmp_path: pathlib.Path) -> None:
    """Exit code 0, the table on standard output, the files where it says, no process left."""
    words = ("--launch", season(tmp_path), "--until-finished", "--by", "ann")
    process = up(tmp_path, *words, program=CELERY, sandbox="auto")
    output, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    facts = json.loads(output)
    assert facts["season"]["status"] == "finished"
    launched = pathlib.Path(facts["journal"]).read_text().partition("\n")[0]
    assert contract.Entry.from_line(launched).by.startswith("ann@")
    assert all(pathlib.Path(path).is_file() for path in facts["pgn"])
    assert "league.2 (2 of 2)  " in told
    assert gone(tmp_path)


def test_a_farm_that_was_told_to_end_goes_on_next_time(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM in mid-game, even twice, leaves no process; the next start plays on to the end.

    Nor does it leave anything among the temporary files of this machine.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # an impatient supervisor's
        _, told = process.communicate(timeout=PATIENCE)
    assert "league.1 is given up: next time it goes on from its last move" in told
    assert "everything is stopped" in told
    assert gone(tmp_path)
    assert list(temporary.iterdir()) == []
    again = up(tmp_path)
    try:
        harness.wait(lambda: _finished(tmp_path), "the season's end", PATIENCE / harness.BUSY)
    finally:
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=PATIENCE)
    assert gone(tmp_path)


def ask_to_end(
    process: subprocess.Popen[str], folder: pathlib.Path, number: signal.Signals = signal.SIGINT
) -> None:
    """Press Ctrl-C once, and wait until the worker knows of it."""
    process.send_signal(number)
    log = folder / "logs" / f"worker-{harness.HALL}.log"
    harness.wait(lambda: "Warm shutdown" in log.read_text(), "the worker to be asked to end")


def test_ctrl_c_waits_for_the_game_and_tells_its_result(tmp_path: pathlib.Path) -> None:
    """One Ctrl-C in mid-game: the game is played to its end, and what came of it is said."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        ask_to_end(process, tmp_path)
    _, told = process.communicate(timeout=PATIENCE)
    assert "league.1 (1 of 2)  " in told
    assert "given up" not in told.replace("Ctrl-C again gives it up", "")
    assert gone(tmp_path)


def test_a_terminal_that_goes_with_ctrl_c_is_as_ctrl_c_alone(tmp_path: pathlib.Path) -> None:
    """As with ``| tee LOG``, which dies of the same key: the game is played to its end."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        ask_to_end(process, tmp_path)
        process.send_signal(signal.SIGHUP)
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "archive" / "test" / "games" / "league.1" / "record.json").exists()
    assert gone(tmp_path)


def test_a_closed_terminal_alone_ends_the_farm_after_its_game(tmp_path: pathlib.Path) -> None:
    """Nobody has typed anything: a connection broke."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        ask_to_end(process, tmp_path, signal.SIGHUP)
    _, told = process.communicate(timeout=PATIENCE)
    assert "league.1 (1 of 2)  " in told
    assert process.returncode == 0
    assert gone(tmp_path)


def test_a_demo_says_how_it_is_watched_and_how_it_is_seen_again(tmp_path: pathlib.Path) -> None:
    """In a second terminal of the same folder, and afterwards, what is printed is typed."""
    data = tmp_path / ".farm" / "demo-20260101-000000"
    data.mkdir(parents=True)
    environment = harness.without_farm() | {"FARM_SANDBOX": "plain"} | harness.CALM

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        path = f"{harness.PROGRAM.parent}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    with harness.held(tmp_path / "gate") as hold:
        words = ("--launch", season(data, *hold), "--until-finished", "--no-web", "--quiet")
        process = subprocess.Popen(
            [*FARM, "up", "--data", str(data), *words],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_for_game(data)
        refused = typed("farm status")
        prefix = f"FARM_DATA={data} "
        seen = typed(f"{prefix}farm status --json")
        second = typed(f"farm up --data {data} --no-web")
    told, _ = process.communicate(timeout=PATIENCE)
    assert refused.returncode != 0
    assert f"`{prefix}farm ...`" in refused.stderr
    assert json.loads(seen.stdout)["seasons"][0]["season"] == "test"
    assert second.returncode == errors.HostError.exit_code
    assert f"already: `{prefix}farm season launch FILE` launches a season there" in second.stderr
    assert f"in another terminal: `{prefix}farm watch`" in told
    assert f"again:    `{prefix}farm up` shows page and games" in told
    assert "`farm season new FILE`" in told


def test_a_second_ctrl_c_gives_the_game_up_and_says_what_becomes_of_it(
    tmp_path: pathlib.Path,
) -> None:
    """The first one waits for the game; the second leaves no process, and an exit code of 0."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        ask_to_end(process, tmp_path)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert "league.1 is given up: next time it goes on from its last move" in told
    assert process.returncode == 0
    assert gone(tmp_path)


def test_what_dies_is_started_again(tmp_path: pathlib.Path) -> None:
    """A SIGKILL of Redis, serve and worker in turn does not stop the season."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold), "--until-finished")
        wait_for_game(tmp_path)
        try:
            for program in (r"(redis|valkey)-server", "farm serve", "orchestrator worker"):
                killed = _running(process.pid, program)[0]
                os.kill(killed, signal.SIGKILL)
                another = functools.partial(_another, process.pid, program, killed)
                harness.wait(another, f"another {program}")
        except AssertionError:
            process.terminate()
            process.communicate(timeout=PATIENCE)
            raise
    output, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    for name, log in (("Redis", "redis.log"), ("serve", "serve.log"), ("worker", "worker-")):
        lines = [line for line in told.splitlines() if f": {name} had ended" in line]
        assert len(lines) == 1, told
        assert "was started again; its log: " in lines[0]
        assert log in lines[0]
    assert json.loads(output)["season"]["status"] == "finished"
    assert gone(tmp_path)


def test_a_farm_that_was_killed_goes_on_next_time(tmp_path: pathlib.Path) -> None:
    """Its serve ends with it, its worker after its game: nobody is in the next one's way."""
    with harness.held(tmp_path / "gate") as hold:
        process = up(tmp_path, "--launch", season(tmp_path, *hold))
        wait_for_game(tmp_path)
        orphans = [_running(process.pid, name)[0] for name in ("farm serve", "orchestrator worker")]
        process.kill()
        process.communicate(timeout=PATIENCE)
        harness.wait(lambda: not harness.alive(orphans[0]), "serve to end")
        again = up(tmp_path, "--until-finished")  # of the season that goes on
        _running(again.pid, "farm serve")
    output, told = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, told
    assert json.loads(output)["season"]["status"] == "finished"
    harness.wait(lambda: not any(map(harness.alive, orphans)), "the first worker to end")
    assert gone(tmp_path)


def test_nobody_else_gets_the_port_of_the_page(tmp_path: pathlib.Path) -> None:
    """It is another one than a taken 8080, and is held while a page that died is started again."""
    with contextlib.ExitStack() as stack:
        ours = False
        with contextlib.suppress(errors.HostError):  # then it is taken already, who knows how long
            stack.enter_context(serve_web.listen("127.0.0.1", serve_web.PORT))
            ours = True
        process = up(tmp_path, web=True)
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "live page is at" in line)
            address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            assert address is not None, line
            assert not ours or f"port {serve_web.PORT} is taken" in line
            assert _status(address[0]) == 200
            (page,) = [p for p in harness.children(process.pid) if "--fd" in harness.command(p)]
            os.kill(page, signal.SIGKILL)
            with pytest.raises(errors.HostError):
                serve_web.listen("127.0.0.1", int(address[1]))
            assert _status(address[0]) == 200
        finally:
            process.terminate()
            _, told = process.communicate(timeout=PATIENCE)
    assert "given up" not in told
    assert gone(tmp_path)


def _status(address: str) -> int:
    """Ask for the page; who comes while it is started waits at the socket."""
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return int(answer.status)


def _running(pid: int, program: str) -> list[int]:
    """Return the processes below one that run a program, as soon as there are any."""
    found: list[int] = []

    def there() -> bool:
        family = harness.descendants(pid)
        found[:] = [one for one in family if re.search(program, harness.command(one))]
        return bool(found)

    harness.wait(there, program)
    return found


def _another(pid: int, program: str, killed: int) -> bool:
    """Say whether a program runs again, by another process."""
    return killed not in _running(pid, program)


def _finished(root: pathlib.Path) -> bool:
    url = embedded_redis.running_url(root / common.REDIS)
    if url is None:
        return False
    with contextlib.suppress(errors.LedgerAwayError), store.connect(url) as ledger:
        return any(e.kind == "season_finished" for e in ledger.read("test", 0, 10_000))
    return False


def test_a_port_that_is_taken_is_told_with_the_option_that_chose_it(
    tmp_path: pathlib.Path,
) -> None:
    """`farm up` has no --port: the refusal names --web."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("up", "--web", port, "--data", str(tmp_path / "farm"))
        done = harness.celery_farm(harness.without_farm(), *words)
    assert done.returncode == 5
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "choose another --web" in done.stderr


@pytest.mark.parametrize(
    ("lane", "said"),
    [
        ("a=0,4000", "--lane a: found cores 0,4000; allowed: those of this machine, "),
        ("a=0-4000:64", "--lane a: found cores 0-4000; allowed: those of this machine, "),
        ("a=1-0", "--lane a: found cores 1-0; allowed: a list such as 0-3,8"),
        ("a=0--1", "--lane a: found cores 0--1; allowed: a list such as 0-3,8"),
    ],
)
def test_a_lane_of_cores_that_are_not_here_starts_no_farm(
    tmp_path: pathlib.Path, lane: str, said: str
) -> None:
    """It was started again and again, and took the whole farm with it."""
    done = testing.CliRunner().invoke(
        commands.farm, ["up", "--data", str(tmp_path), "--lane", lane]
    )
    assert done.exit_code == 2
    assert said in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("host", "others"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_page_for_all_computers_says_its_address_for_others(host: str, *, others: bool) -> None:
    """127.0.0.1 leads nobody else anywhere; a page of this computer alone promises nothing."""
    with serve_web.listen(host, 0) as listening:
        port = listening.getsockname()[1]
        assert serve_web.url(listening) == f"http://127.0.0.1:{port}/"
        elsewhere = serve_web.from_others(listening)
    assert (f"http://{socket.gethostname()}:{port}/" in elsewhere) is others
