"""``farm rate`` as people and programs meet it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pathlib
import subprocess
import sys

import pytest
from click import testing

from orchestrator import commands

GAMES = (
    ("Alpha 1", "Beta", "1-0"),
    ("Beta", "Alpha 2", "1/2-1/2"),
    ("Gamma", "Beta", "0-1"),
    ("Beta", "Gamma", "1/2-1/2"),
    ("Alpha 2", "Gamma", "0-1"),
    ("Gamma", "Alpha 1", "*"),
    ("Alone", "Alone too", "1/2-1/2"),
)


@pytest.fixture
def archive(tmp_path: pathlib.Path) -> pathlib.Path:
    """Write a small archive, packed."""
    text = "".join(
        f'[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n\n{result}\n\n'
        for white, black, result in GAMES
    )
    path = tmp_path / "games.pgn.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


@pytest.fixture
def families(tmp_path: pathlib.Path) -> pathlib.Path:
    """Write down that both Alphas are one engine."""
    path = tmp_path / "families.toml"
    path.write_text('Alpha = ["Alpha 1", "Alpha 2"]\n')
    return path


def rate(*words: object, code: int = 0) -> str:
    """Run ``farm rate``."""
    result = testing.CliRunner().invoke(commands.farm, ["rate", "--errors", "50", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def test_json_has_the_keys_that_programs_read(
    archive: pathlib.Path, families: pathlib.Path
) -> None:
    """Ranks, ratings around the average, points, games, provisional engines without numbers."""
    words = ("--white-advantage", "--draw-rate", archive, "--families", families, "--json")
    facts = json.loads(rate(*words))
    assert list(facts) == ["ratings", "white_advantage", "draw_rate", "unfinished"]
    assert all(
        list(row)
        == ["rank", "engine", "rating", "error", "points", "played", "provisional", "bound"]
        for row in facts["ratings"]
    )
    rated = [row for row in facts["ratings"] if not row["provisional"]]
    assert [row["rank"] for row in rated] == [1, 2, 3]
    assert sum(row["rating"] for row in rated) == pytest.approx(3 * 2300, abs=0.001)
    assert all(row["error"] > 0 for row in rated)
    others = [row for row in facts["ratings"] if row["provisional"]]
    assert {row["engine"] for row in others} == {"Alone", "Alone too"}
    assert {row["rating"] for row in others} == {None}


def test_a_folder_with_copies_counts_each_game_once(tmp_path: pathlib.Path) -> None:
    """A season's archive, an exported site, a packed copy; files that are named are read."""
    text = '[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1-0\n\n'
    text += '[White "B"]\n[Black "A"]\n[Result "1-0"]\n\n1-0\n\n'
    for name in (
        *("archive/cup/main.pgn", "archive/cup/games/main.1/game.pgn", "archive/other.pgn"),
        *("site/pgn/cup.pgn", "site/pgn/cup/main.pgn", "site/pgn/cup/games/main.1.pgn"),
        "lone/games/1.pgn",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "archive/other.pgn.gz").write_bytes(gzip.compress(text.encode()))

    def games(*archives: str) -> int:
        words = [str(tmp_path / name) for name in archives]
        done = testing.CliRunner().invoke(commands.farm, ["rate", *words, "--json"])
        assert ("left out, for their games stand in another file" in done.stderr) == copies
        return sum(int(row["played"]) for row in json.loads(done.stdout)["ratings"]) // 2

    copies = True
    assert games("archive") == 4
    assert games("site") == games("site/pgn") == 2
    copies = False
    assert games("lone") == games("archive/cup/games") == 2
    assert games("archive/other.pgn", "archive/other.pgn", "archive/other.pgn.gz") == 4


def test_a_bound_is_explained_below_its_table(tmp_path: pathlib.Path) -> None:
    """Who won all has no rating; a list without bounds has no such line."""
    path = tmp_path / "games.pgn"
    drawn = '[White "B"]\n[Black "C"]\n[Result "1/2-1/2"]\n\n1/2-1/2\n\n'
    path.write_text(drawn)
    assert "won all" not in rate(path)
    path.write_text(f'{drawn}[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1-0\n\n')
    assert "> won all, < lost all: a bound" in rate(path)


def test_a_missing_rating_is_explained_below_its_table(tmp_path: pathlib.Path) -> None:
    """Whose games tell no distance to the rest has none; a list of one part has no such line."""
    path = tmp_path / "games.pgn"
    games = [("A", "B", "1/2-1/2"), ("B", "C", "1/2-1/2"), ("A", "C", "1/2-1/2")]
    parted = [("X", "Y", "1/2-1/2"), ("X", "A", "1-0")]

    def said(listed: list[tuple[str, str, str]]) -> str:
        path.write_text(
            "".join(
                f'[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n\n{result}\n\n'
                for white, black, result in listed
            )
        )
        return " ".join(rate(path).split())

    assert "provisional" not in said(games)
    why = "no chain of wins and draws leads from it to the rest and back"
    assert f"provisional, without a rating: {why}" in said([*games, *parted])
    assert "provisional, with a rating" not in said([*games, *parted])


def test_an_anchor_keeps_its_rating(archive: pathlib.Path, families: pathlib.Path) -> None:
    """--anchor --at moves all ratings, and the anchor has no error."""
    words = (archive, "--families", families, "--anchor", "Alpha 1", "--at", 3158, "--json")
    rows = {row["engine"]: row for row in json.loads(rate(*words))["ratings"]}
    assert rows["Alpha"]["rating"] == 3158
    assert rows["Alpha"]["error"] == 0


def test_json_says_which_ratings_are_bounds(tmp_path: pathlib.Path) -> None:
    """Who won or lost every game is above or below its rating, in JSON as in CSV."""
    games = (
        ("Middle", "Equal", "1/2-1/2"),
        ("Winner", "Middle", "1-0"),
        ("Equal", "Loser", "1-0"),
        ("Alone", "Alone too", "1-0"),
    )
    archive = tmp_path / "games.pgn"
    archive.write_text(
        "".join(
            f'[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n\n{result}\n\n'
            for white, black, result in games
        )
    )
    bounds = {row["engine"]: row["bound"] for row in json.loads(rate(archive, "--json"))["ratings"]}
    rated = {"Winner": ">", "Middle": "", "Equal": "", "Loser": "<"}
    assert bounds == rated | {"Alone": "", "Alone too": ""}
    table = csv.DictReader(io.StringIO(rate(archive, "--csv")))
    assert {row["PLAYER"]: row["MARK"] for row in table} == bounds


def test_csv_and_text_hold_the_same_list(archive: pathlib.Path, families: pathlib.Path) -> None:
    """Whatever the layout, engines and ratings are those of the JSON."""
    facts = json.loads(rate(archive, "--families", families, "--json"))["ratings"]
    table = list(csv.DictReader(io.StringIO(rate(archive, "--families", families, "--csv"))))
    assert [row["PLAYER"] for row in table] == [row["engine"] for row in facts]
    assert float(table[0]["RATING"]) == facts[0]["rating"]
    text = rate(archive, "--families", families, "--ordo")
    assert f"{facts[0]['rating']:.1f}" in text
    assert "White advantage = 0.00" in text
    shown = rate(archive, "--families", families, "--los")
    assert "1 games without a result left out" in shown
    assert "Likelihood of superiority" in shown


def test_json_has_who_is_stronger_when_asked(archive: pathlib.Path) -> None:
    """A row and a column an engine, in the order of the list; and the games that count not."""
    plain = json.loads(rate(archive, "--json"))
    asked = json.loads(rate(archive, "--json", "--los"))
    matrix = asked.pop("superiority")
    assert asked == plain
    assert plain["unfinished"] == 1
    names = [row["engine"] for row in plain["ratings"]]
    beta, gamma = names.index("Beta"), names.index("Gamma")
    assert [len(row) for row in matrix] == [len(names)] * len(names)
    assert matrix[beta][beta] is None
    assert matrix[beta][gamma] == pytest.approx(1 - matrix[gamma][beta])
    assert (matrix[beta][gamma] > 0.5) == (beta < gamma), "the list has the stronger one first"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("missing.pgn",), "no such PGN file"),
        (("--anchor", "Beta"), "--at"),
        (("--anchor", "Nobody", "--at", "1"), "no game of it"),
        (("--white-advantage", "--white-value", "30"), "not both"),
        (("--families", "missing.toml"), "--families"),
        (("--json", "--ordo"), "--json and --ordo: a list has one form"),
        (("--csv", "--los"), "--los and --csv: allowed: --los alone, or with --json"),
        (("--ordo", "--los"), "--los and --ordo"),
    ],
)
def test_what_is_wrong_is_said(archive: pathlib.Path, words: tuple[str, ...], told: str) -> None:
    """Wrong input ends with exit code 2 and names itself."""
    assert told in rate(archive, *words, code=2)


def test_what_a_list_as_json_does_not_need_is_not_loaded(archive: pathlib.Path) -> None:
    """Neither Redis' client nor the farm's messages nor the terminal: they start slower than it."""
    script = """if True:
        import sys
        from orchestrator import commands
        commands.farm(sys.argv[1:], standalone_mode=False)
        print(sorted({"chess", "pydantic", "redis", "rich"} & set(sys.modules)))
    """
    words = [sys.executable, "-c", script, "rate", str(archive), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
