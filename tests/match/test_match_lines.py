"""Command lines of real scripts: read as they are, or refused with what to write instead."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import subprocess
import zlib

import pytest
import table

from orchestrator import commands, contract
from orchestrator.common import errors
from worker_cpu.match import arguments, engines, programs

LINES = pathlib.Path(__file__).parent / "data" / "lines.txt"
REFUSALS = 0.05  # of all lines, at most


@dataclasses.dataclass(frozen=True)
class Line:
    """One line: where it stands, its words, why it is refused."""

    source: str
    words: tuple[str, ...]
    reason: str = ""


def read_lines() -> list[Line]:
    """Read the lines that the repository keeps."""
    found, source, reason = [], "", ""
    for line in LINES.read_text().splitlines():
        if line.startswith("# "):
            source = line.removeprefix("# ")
        elif line.startswith("! "):
            reason = line.removeprefix("! ")
        elif line:
            found.append(Line(source, tuple(shlex.split(line)), reason))
            reason = ""
    return found


ALL = read_lines()


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines of the lines are not here."""
    monkeypatch.setattr(programs, "command", lambda text, *_, **__: [text])
    monkeypatch.setattr(programs, "directory", lambda text, *_: pathlib.Path(text))
    monkeypatch.setattr(
        engines, "configured", lambda name: engines.Wishes({"cmd": name, "name": name})
    )


def read(line: Line) -> arguments.Settings:
    """Read a line as the program that it names does."""
    return arguments.read(commands.linked(list(line.words))[1:])


@pytest.mark.parametrize("line", ALL, ids=lambda line: line.source[:60])
def test_every_line_is_read_or_refused_with_a_way_out(line: Line) -> None:
    """A line that is refused says what to write; no other is refused."""
    if line.reason:
        with pytest.raises(errors.UsageError, match=r"allowed|not supported: \w+"):
            read(line)
    else:
        assert len(read(line).engines) >= 2


def test_few_lines_are_refused() -> None:
    """At most one in twenty, each with its reason."""
    assert sum(bool(line.reason) for line in ALL) <= REFUSALS * len(ALL)


def test_openbench_means_what_it_means_there() -> None:
    """Its worker's line, word for word: pairs, book, clock, rules and names."""
    settings = read(next(line for line in ALL if "OpenBench" in line.source))
    plan, openings = settings.plan, settings.openings
    assert (plan.rounds, plan.games, plan.repeat, settings.concurrency) == (32, 2, 2, 4)
    assert openings is not None
    assert (openings.kind, openings.order, openings.start) == ("epd", "random", 17)
    assert (settings.seed, settings.dialect, settings.output) == (1337, "fastchess", "fastchess")
    one, two = settings.engines
    assert [one.spec.name, two.spec.name] == ["Ethereal-dev", "Ethereal-base"]
    assert one.control == contract.TimeControl(base_ms=8_320, increment_ms=80)
    assert (one.margin_ms, one.spec.options["SyzygyPath"]) == (250, "/syzygy")
    rules = settings.adjudication
    assert rules.resign == contract.MovesResign(move_count=3, score_cp=400)
    assert rules.draw == contract.MovesDraw(move_number=40, move_count=8, score_cp=10)
    assert rules.syzygy == contract.Syzygy(men=6, path="/syzygy")
    assert not settings.remarks
    assert settings.test_env
    assert len(settings.match_lines) == 1


def test_fishtest_means_what_it_means_there() -> None:
    """Its worker's line, word for word."""
    settings = read(next(line for line in ALL if "fishtest" in line.source))
    plan, openings = settings.plan, settings.openings
    assert (plan.rounds, plan.games, plan.repeat, settings.concurrency) == (240, 2, 2, 7)
    assert openings is not None
    assert (openings.order, openings.start, settings.seed) == (
        "random",
        241,
        16_045_690_984_833_335_023,
    )
    assert (settings.rating_interval, settings.outcome_interval) == (1, 1)
    assert (settings.penta, settings.crc32, settings.append) == (True, True, False)
    assert settings.event == "Batch 0: new vs master"
    assert settings.engines[0].spec.options == {"Hash": "16", "Threads": "1"}


def test_a_link_of_a_peers_name_is_farm_match_in_its_dialect(tmp_path: pathlib.Path) -> None:
    """The program's name chooses; scripts that ask for the version find the peer's first."""
    program = tmp_path / "fastchess-ob"
    program.write_text(f"#!{table.FARM[0]}\n{table.FARM[2]}\n")
    program.chmod(0o755)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("fastchess 1.8.2, spoken by farm match ")
    assert commands.linked(["/bin/cutechess-cli", "-x"]) == ["match", "-dialect", "cutechess", "-x"]
    assert commands.linked(["/bin/farm", "status"]) == ["status"]
    out = subprocess.run(
        [
            program,
            *table.good_and_bad("-rounds", "1", "-pgnout", "file=g.pgn", "-crc32", "pgn=true"),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert "Finished game 2 (Bad vs Good): 0-1 {" in out
    sums = re.findall(r"File g.pgn has CRC32: (0x\w+)", out)
    assert len(sums) == 2
    assert int(sums[-1], 16) == zlib.crc32((tmp_path / "g.pgn").read_bytes())
