"""``host=`` in ``farm match``: engines on another machine, a real sshd, the agent's clock."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest.mock
from collections.abc import Iterator

import bed
import pytest

from orchestrator.common import errors
from worker_cpu.engines import ssh
from worker_cpu.match import command, engines, hosts

ENGINES = pathlib.Path(__file__).parents[1] / "engines"
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
FARM = (sys.executable, "-c", "from orchestrator.commands import main; main()")
NAMED = "far"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bed.Box]:
    """A machine that lets in, and nothing of the farm's on it."""
    with bed.loopback(tmp_path_factory.mktemp("host")) as box:
        yield box


def boxes(box: bed.Box, directory: pathlib.Path, key: str = "login", **more: str) -> pathlib.Path:
    """Write the file of ``-boxes``."""
    words = {"address": box.address, "user": bed.user(), "key": str(box.root / key)}
    words |= {"host_key": box.host_key} | more
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in words.items()]
    path = directory / "boxes.toml"
    path.write_text(f"[box.{NAMED}]\nport = {box.port}\n{''.join(lines)}")
    return path


def play(directory: pathlib.Path, *words: str, code: int = 0) -> str:
    """Play a match; return all that it printed."""
    done = subprocess.run(
        [*FARM, "match", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=bed.PATIENCE * 3,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def dancer(name: str, mode: str, *words: str) -> list[str]:
    """Return ``-engine`` and its words."""
    program = [f"arg={word}" for word in ("-I", "-S", str(ENGINES / "dancer.py"), mode)]
    return ["-engine", f"cmd={sys.executable}", f"name={name}", *program, *words]


def test_an_engine_elsewhere_plays_ponders_and_leaves_nothing(
    box: bed.Box, tmp_path: pathlib.Path
) -> None:
    """Two games in one process there, hits charged by the agent; it sees the GPUs it was given."""
    far = dancer("Far", "able", "arg=3:a7a6", f"host={NAMED}", "ponder", "gpus=1,3")
    words = [*far, *dancer("Near", "none"), "-each", "tc=20+0.1", "-games", "2", "-repeat"]
    words += ["-boxes", str(boxes(box, tmp_path)), "-pgnout", "g.pgn", "-log", "file=log.txt"]
    out = play(tmp_path, *words)
    assert "Finished game 2" in out
    assert "disconnect" not in out
    log = (tmp_path / "log.txt").read_text()
    lines = [line.split()[2:] for line in log.splitlines()]
    assert lines.count(["Far", ">", "uci"]) == 1
    assert lines.count(["Far", ">", "ponderhit"]) > 1
    assert ["Far", ">", "stop"] in lines
    assert ["Far", "<", "info", "string", "cuda", "1,3"] in lines
    pgn = " ".join((tmp_path / "g.pgn").read_text().split())
    assert len(re.findall(r"ponder=\d+", pgn)) == lines.count(["Far", ">", "ponderhit"])
    left = [path.name for path in (box.home / hosts.ROOT).rglob("*")]
    assert sorted(left) == sorted(["orders", "run", "seats", hosts.agent_file()])
    assert bed.gone(box.root)


@pytest.mark.parametrize("said", ["42", "[]", "Welcome!", ""])
def test_a_shell_that_talks_is_no_answer(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a login there says instead of Python's answer is shown, JSON or not."""
    channel = unittest.mock.MagicMock()
    channel.recv.side_effect = [said.encode(), b""]
    channel.recv_stderr.return_value = b""
    transport = unittest.mock.MagicMock()
    transport.return_value.__enter__.return_value.open_session.return_value = channel
    monkeypatch.setattr(ssh, "transport", transport)
    far = engines.wishes("engine", [f"host={NAMED}", "cmd=far", "tc=9"])
    known = hosts.gpu_hosts.BoxAddress(address="far", key="key", host_key=OTHER_KEY)
    monkeypatch.setattr(hosts, "address", lambda _: known)
    with pytest.raises(errors.HostError, match=f"no answer of python3 .*: {re.escape(said)}"):
        hosts.Hosts(engines.engines(engines.Wishes(), [far]), None, "match-a").__enter__()


OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("words", "key", "more", "said"),
    [
        ([], "login", {}, f"host={NAMED}: Far: there is no program /no/such/engine there"),
        (["dir=/none"], "login", {}, "there is no directory /none there"),
        ([], "play", {}, "needs a key that logs in"),
        ([], "host", {}, "cannot log in: .*ssh-copy-id"),
        ([], "locked", {}, "locked is no private key .* without a passphrase: .*ssh-copy-id"),
        ([], "login.pub", {}, r"login\.pub is no private key that can be used"),
        ([], "login", {"host_key": OTHER_KEY}, "the host key is not the pinned one"),
        ([], "login", {"address": "127.0.0.1.invalid"}, "is not reached: .*; try `ssh -p"),
    ],
)
def test_what_is_missing_there_is_said_before_the_first_game(
    box: bed.Box,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    key: str,
    more: dict[str, str],
    said: str,
) -> None:
    """Each with what to do; no file of a match is made, here or there."""
    monkeypatch.chdir(tmp_path)
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "word", "-f", str(box.root / "locked")]
    if key == "locked":
        subprocess.run(keygen, check=True)
    good = dancer("Good", "none", f"host={NAMED}")
    engine = ["-engine", f"host={NAMED}", "name=Far", "cmd=/no/such/engine", *words]
    places = ["-boxes", str(boxes(box, tmp_path, key, **more))]
    with pytest.raises(errors.FarmError, match=f"(?s){said}"):
        command.play([*good, *engine, "-each", "tc=9", *places])
    assert not (tmp_path / "farm-match.jsonl").exists()
    assert not [*(box.home / hosts.ROOT / "orders").glob("*")]


def test_matches_that_share_a_machine_do_not_meet(tmp_path: pathlib.Path) -> None:
    """What another match puts there or takes away meanwhile stops none."""
    run = tmp_path / hosts.ROOT / "run"
    run.mkdir(parents=True)
    (run / "match-b-1").symlink_to(run / "taken-away")  # listed, and not there when it is asked
    (run.parent / "agent-x.py.part").mkdir()
    told = {"root": hosts.ROOT, "agent_file": "agent-x.py", "agent": "#", "engines": []}
    told |= {"match": "match-a", "over": False, "stale_days": hosts.STALE_DAYS}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-"],
        input=f"import json\ntold = json.loads({json.dumps(told)!r})\n{hosts.PREPARE}",
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout or "{}") == {"root": str(run.parent)}, done.stderr
    assert (run.parent / "agent-x.py").read_text() == "#"


def test_a_machine_is_found_as_ssh_finds_it(box: bed.Box, tmp_path: pathlib.Path) -> None:
    """Names, users, ports, keys and known hosts are those of ~/.ssh; what lacks is named."""
    place = tmp_path / ".ssh"
    place.mkdir()
    with pytest.raises(errors.UsageError, match=r"no private key in .*ssh-copy-id somebody@here"):
        hosts.address("somebody@here", tmp_path)
    (place / "id_ed25519").write_text("key")
    with pytest.raises(errors.UsageError, match=r"no key of here in .*known_hosts.*once"):
        hosts.address("somebody@here", tmp_path)
    known = f"[{box.address}]:{box.port} {box.host_key}\nhere {box.host_key}\n"
    (place / "known_hosts").write_text(known)
    config = f"Host lab\n HostName {box.address}\n Port {box.port}\n User me\n"
    (place / "config").write_text(config + f" IdentityFile {box.root / 'login'}\n")
    found = hosts.address("lab", tmp_path)
    assert (found.address, found.port, found.user) == (box.address, box.port, "me")
    assert (found.key, found.host_key) == (str(box.root / "login"), box.host_key)
    plain = hosts.address("somebody@here", tmp_path)
    assert (plain.port, plain.user, plain.key) == (22, "somebody", str(place / "id_ed25519"))


def test_the_manuals_lines_are_read(box: bed.Box, tmp_path: pathlib.Path) -> None:
    """The example of docs/match.md, with a machine that is there."""
    (line,) = re.findall(r"^farm match (.* host=.*)$", DOCS.read_text(), re.MULTILINE)
    line = re.sub(r"host=\S+", f"host={NAMED}", line)
    line = re.sub(r"cmd=(\S+)", f"cmd={sys.executable}", line)
    (box.home / "lc0").mkdir()
    words = [*shlex.split(line), "-each", f"arg={ENGINES / 'dancer.py'}", "arg=plain", "tc=20"]
    words += ["-rounds", "1", "-repeat", "-boxes", str(boxes(box, tmp_path)), "-force-concurrency"]
    assert "Finished game 2" in play(tmp_path, *words)
