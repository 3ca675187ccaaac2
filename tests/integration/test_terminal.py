"""What strangers may write onto an operator's terminal: letters, and nothing that it obeys."""

from __future__ import annotations

import io
import json
import pathlib

import click.testing
import pytest
import rich.table

from orchestrator import commands
from orchestrator.common import output

NASTY = "a\x1b[31mred\x1b]0;title\x07\x9b2Jb\x7f\x08c"
LEFT = "a[31mred]0;title2Jbc"


@pytest.mark.parametrize("colours", [True, False])
def test_tables_hold_only_the_farms_own_colours(colours: bool) -> None:
    """A name in a table or a line moves no cursor, sets no colour and no title."""
    made = output.console()
    made.file = io.StringIO()
    made._force_terminal = colours
    made.no_color = not colours
    table = rich.table.Table("name", "place")
    table.add_row(NASTY, "there")
    made.print(table)
    made.print(NASTY, NASTY)
    told = made.file.getvalue()
    assert LEFT in told
    assert not {"\x07", "\x08", "\x7f", "\x9b"} & set(told)
    assert "\x1b[31m" not in told
    assert "\x1b]" not in told


def test_lines_of_tables_stay_aligned() -> None:
    """What is left out takes no room."""
    made = output.console()
    made.file = io.StringIO()
    table = rich.table.Table("name", "place")
    table.add_row(NASTY, "there")
    table.add_row(LEFT, "there")
    made.print(table)
    rows = [line for line in made.file.getvalue().splitlines() if "there" in line]
    assert rows[0] == rows[1]


def test_sentences_and_json_hold_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence loses them, JSON escapes them and is the same value."""
    output.report(False, {}, NASTY)
    assert capsys.readouterr().out == f"{LEFT}\n"
    output.report(True, {"name": NASTY}, "")
    told = capsys.readouterr().out
    assert json.loads(told) == {"name": NASTY}
    assert not {"\x07", "\x1b", "\x7f", "\x9b"} & set(told)


def test_errors_hold_none(tmp_path: pathlib.Path) -> None:
    """A file's name in an error is written without them, too."""
    wanted = str(tmp_path / "none" / NASTY)
    done = click.testing.CliRunner().invoke(commands.farm, ("check", wanted))
    assert done.exit_code != 0
    assert not {"\x07", "\x1b", "\x9b"} & set(done.output)


@pytest.mark.parametrize("words", [("audit", "--rules", "cup"), ("rate",), ("rate", "--csv")])
def test_names_of_other_peoples_games_hold_none(
    tmp_path: pathlib.Path, words: tuple[str, ...]
) -> None:
    """What a PGN calls its players reaches the terminal in letters alone."""
    path = tmp_path / "games.pgn"
    tags = f'[White "{NASTY}"]\n[Black "b"]\n[Result "1-0"]\n'
    path.write_text(f"{tags}\n1. e4 f5 2. d4 g5 3. Qh5# 1-0\n")
    done = click.testing.CliRunner().invoke(commands.farm, [*words, str(path)])
    assert done.exit_code == 0
    assert LEFT in done.output
    assert not {"\x07", "\x08", "\x1b", "\x7f", "\x9b"} & set(done.output)
