"""Characters that nobody sees: refused in files, taken out of what strangers say."""

from __future__ import annotations

import json
import pathlib
import unicodedata

import click.testing
import driver
import pytest

from orchestrator import contract
from orchestrator.broadcast.content import documents
from orchestrator.broadcast.feeds import files
from orchestrator.common import errors, output, text

TURNED = "Stock\u202ehsif\u202c"  # shown as Stockfish by what obeys the marks
DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_every_mark_of_direction_is_known_and_no_letter_is() -> None:
    """All of Unicode's bidirectional controls, and no printable character, joiners apart."""
    assert set(DIRECTION) <= text.UNSEEN
    for code in range(0x110000):
        letter = chr(code)
        if unicodedata.category(letter)[0] in "LNPSM" and letter in text.UNSEEN:
            raise AssertionError(f"U+{code:04X} is a letter")
        if unicodedata.bidirectional(letter) in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "PDI"}:
            assert letter in text.UNSEEN, f"U+{code:04X}"


@pytest.mark.parametrize("mark", [*DIRECTION, "\u200b", "\ufeff", "\u2028", "\x1b", "\n"])
def test_a_season_file_with_an_unseen_character_in_a_name_is_refused(
    tmp_path: pathlib.Path, mark: str
) -> None:
    """The message says where and what is allowed."""
    name = json.dumps(f"A{mark}B")  # TOML escapes as JSON does
    wrong = driver.season_text().replace('name = "', f"name = {name} # ", 1)
    with pytest.raises(errors.UsageError, match="without invisible characters"):
        driver.load(tmp_path, wrong)


def test_what_an_engine_calls_itself_turns_no_words() -> None:
    """Its name and author are one line of what is seen."""
    report = contract.EngineReport(id_name=f" {TURNED}\n", id_author="A\u200bB")
    assert (report.id_name, report.id_author) == ("Stock hsif", "A B")


def test_nothing_public_and_no_terminal_shows_them() -> None:
    """Documents, feeds and tables leave them out; JSON for programs escapes them."""
    assert TURNED.encode() not in documents.of_json({"name": TURNED}).body
    assert b"Stockhsif" in files.encode({"name": TURNED})
    assert output.plain(TURNED) == "Stockhsif"

    @click.command()
    def show() -> None:
        output.print_json({"name": TURNED})

    printed = click.testing.CliRunner().invoke(show).output
    assert printed.isascii()
    assert json.loads(printed) == {"name": TURNED}


def test_letters_of_all_scripts_stay() -> None:
    """Joiners belong to words of Persian and Hindi, and to pictures of families."""
    persian = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    for word in ("Ælfric", persian, "क्\u200dष", "日本", "👩\u200d👧"):
        assert text.visible(word) == word == text.one_line(word)
        assert not text.has_unseen(word)
