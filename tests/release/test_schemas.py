"""The JSON Schemas for editors: the committed ones are current, right and strict."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib
from typing import Any

import jsonschema
import pytest
from click import testing

from orchestrator import commands
from orchestrator.common import errors
from orchestrator.season.file import load, schema

ROOT = pathlib.Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SEASONS = sorted((ROOT / "orchestrator" / "seasons").glob("*.toml"))
HEREDOC = re.compile(r"cat > (?P<file>\S+) <<'TOML'\n(?P<text>.*?)\nTOML\n", re.DOTALL)
WRITTEN = [
    pytest.param(found["file"], found["text"], id=f"{path.stem}:{found['file']}")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    for found in HEREDOC.finditer(path.read_text(encoding="utf-8"))
]
VALID = """
schema = 1
id = "one"
name = "One"
[roster]
engine = [{ id = "a", command = ["a"] }, { id = "b", command = ["b"] }]
[[event]]
id = "match"
name = "Match"
format = { kind = "match", games = 2 }
entrants = "roster"
time_control = "1s+10ms"
break = "2h"
adjudication = { rules = "cup", syzygy = { men = 5, path = "/tables" }, few_pieces_draw = false }
interruptions = { rules = "s16", win_cp = false }
"""
WRONG = [
    ("schema = 1", "schema = 2"),
    ('name = "One"', 'title = "One"'),
    ('id = "one"', 'id = "Season One"'),
    ('command = ["b"]', 'command = "b"'),
    ('command = ["b"]', "command = []"),
    ('command = ["b"]', 'command = { avx3 = ["b"] }'),
    ('command = ["b"]', 'command = ["b"], checksums = { b = "9f86" }'),
    ('kind = "match"', 'kind = "marathon"'),
    ("games = 2", "games = 3"),
    ("games = 2", "gamse = 2"),
    ("games = 2", 'games = "2"'),
    ('"roster"\n', '"all"\n'),
    ('time_control = "1s+10ms"', "time_control = 60"),
    ('break = "2h"', 'break = "two hours"'),
    ('rules = "cup"', 'rules = "season99"'),
    ("men = 5", "men = 9"),
    ("men = 5", "men = 5, kings = 2"),
    ('adjudication = { rules = "cup"', 'adjudication = { rules = "cup", eval_draw = true'),
    ("win_cp = false", "when = false"),
    ('break = "2h"', 'tiebreaks = ["luck"]'),
]


def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return the validator of a committed schema."""
    told: dict[str, Any] = json.loads((REFERENCE / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(told)
    return jsonschema.Draft202012Validator(told)


@pytest.mark.parametrize("name", ["season", "roster"])
def test_the_committed_schema_is_what_the_program_prints(name: str) -> None:
    """Writing it again changes nothing."""
    done = testing.CliRunner().invoke(commands.farm, ["schema", name])
    path = REFERENCE / f"{name}.schema.json"
    again = f"farm season schema {name} > {path.relative_to(ROOT)}"
    assert done.output == path.read_text(encoding="utf-8"), f"the models have changed: {again}"


def test_roster_files_have_one_schema_by_two_names() -> None:
    """`engines` stays what it was."""
    done = testing.CliRunner().invoke(commands.farm, ["schema", "engines"])
    assert json.loads(done.output) == schema.roster()


@pytest.mark.parametrize("path", SEASONS, ids=lambda path: path.stem)
def test_every_season_of_the_repository_is_valid(path: pathlib.Path) -> None:
    """An editor marks nothing in the bundled seasons."""
    validator("season").validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("name", "text"), WRITTEN)
def test_every_file_that_a_document_writes_is_valid(name: str, text: str) -> None:
    """Nor in the season files and roster files of the tutorial and the how-tos."""
    raw = tomllib.loads(text)
    if raw.get("schema") == 1:
        validator("season" if "event" in raw else "roster").validate(raw)


def test_documents_write_files() -> None:
    """The test above has something to hold."""
    assert any("event" in tomllib.loads(found.values[1]) for found in WRITTEN)


@pytest.mark.parametrize(("old", "new"), [("One", "Two"), *WRONG])
def test_the_schema_refuses_what_the_program_refuses(
    tmp_path: pathlib.Path, old: str, new: str
) -> None:
    """A wrong key, word, type or number is marked, and refused by `farm check` as well."""
    assert old in VALID
    text = VALID.replace(old, new, 1)
    path = tmp_path / "season.toml"
    path.write_text(text, encoding="utf-8")
    valid = validator("season").is_valid(tomllib.loads(text))
    try:
        load.load(path)
    except errors.SeasonFileError:
        accepted = False
    else:
        accepted = True
    assert (valid, accepted) == ((old, new) == ("One", "Two"),) * 2
