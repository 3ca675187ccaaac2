"""Season files: the good one loads, each bad one is refused by file, place and reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import driver
import pytest

import orchestrator
from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import operations
from orchestrator.season.file import describe, load, roster
from orchestrator.season.fold import plan
from orchestrator.season.spec import known_keys, model

DEMO = Path(orchestrator.__file__).parent / "seasons" / "demo.toml"
CONTROL = 'time_control = "30+5"'

BAD = [
    # what is replaced, by what, the place, what was found, what is allowed
    (CONTROL, 'time_control = "abc"', "[event league] time_control", "'abc'", "30+5"),
    (CONTROL, "time_control = 30", "[event league] time_control", "30", "30+5"),
    (CONTROL, f"{CONTROL}\ntc = 30", "[event league] tc", "unknown key", "mean time_control?"),
    (CONTROL, "", "[event league] time_control", "nothing", "required"),
    (CONTROL, f"{CONTROL}\ntime_contrl = 1", "[event league] time_contrl", "unknown key", "mean"),
    ("schema = 1", "schema = 2", "schema", "2", "1"),
    ("schema = 1", "schema = 1\nrooster = 1", "rooster", "unknown key", "did you mean roster"),
    ('id = "test"', 'id = "A b"', "id", "'A b'", "small letters"),
    ('command = ["engine-2"]', "", "[roster.engine e2] command", "nothing", "required"),
    ('command = ["engine-2"]', "command = []", "[roster.engine e2] command", "[]", "at least one"),
    (
        'command = ["engine-2"]',
        'command = ["x"]\noptions = {Hash = 1.5}',
        "[roster.engine e2] options.Hash",
        "1.5",
        "a whole number",
    ),
    ('id = "e2"', 'id = "e1"', "[roster.engine e1] id", "two engines", "one id"),
    ('name = "Engine 2"', 'name = "Engine 1"', "name", "two engines", "one name"),
    ("double_rounds = 1", 'double_rounds = "1"', "format.double_rounds", "'1'", "whole number"),
    ("double_rounds = 1", "double_rounds = 0", "format.double_rounds", "0", "1 or more"),
    (
        "round-robin",
        "robin",
        "[event league] format",
        "robin",
        "'round-robin', 'swiss', 'knockout', 'match'",
    ),
    ('kind = "round-robin", ', "", "[event league] format.kind", "nothing", "'round-robin'"),
    ("games = 4", "games = 3", "[event final] format.games", "3", "a multiple of 2"),
    ("games = 4", "games = 4, rounds = 2", "[event final] format.rounds", "unknown key", "games"),
    ('to = "final"', 'to = "finals"', "[event league] promote.to", "'finals'", "final"),
    ('to = "final"', 'to = "league"', "[event league] promote.to", "'league'", "final"),
    ("top = 2", "top = 5", "[event league] promote.top", "top = 5 in a field of 4", "4 or less"),
    ("top = 2", "top = 3", "[event final] entrants", "a field of 3", "exactly 2"),
    ('entrants = "roster"\n', "", "[event league] entrants", "nobody", '"roster", a list'),
    ("top = 2", "top = true", "[event league] promote[1].top", "True", "whole number"),
    ('id = "final"', 'id = "league"', "[event league] id", "2 events", "one id"),
    ('break = "10m"', 'break = "soon"', "[event final] break", "'soon'", "1.5h"),
    ('break = "10m"', 'entrants = ["e9"]', "[event final] entrants", "'e9'", "e1, e2, e3, e4"),
    ('break = "10m"', 'entrants = ["e1"]', "[event final] entrants", "a field of 3", "exactly 2"),
    ('break = "10m"', "entrants = 4", "[event final] entrants", "4", '"roster"'),
    (
        'break = "10m"',
        'promote = [{ top = 1, to = "league" }]',
        "promote",
        "a circle: ",
        "never lead back",
    ),
    ('break = "10m"', 'tiebreaks = ["wins"]', "[event final] tiebreaks", "'wins'", '"seed"'),
    ('break = "10m"', 'tiebreaks = ["luck"]', "[event final] tiebreaks[1]", "'luck'", "'wins'"),
    ('break = "10m"', "limits = {threads = 0}", "[event final] limits.threads", "0", "1 or more"),
    ('book = "short"', 'book = "long"', "[event league] book", "'long'", "short"),
    ('"short.epd"', '"none.epd"', "[books.short] file", "No such file", "PGN or EPD"),
    ('"short.epd"', '"season.toml"', "[books.short] file", "'season.toml'", ".pgn or .epd"),
    ('"short.epd"', '"season.toml"\nkind = "x"', "[books.short] kind", "'x'", "'pgn' or 'epd'"),
    ('"short.epd"', '"short.epd"\nplies = 0', "[books.short] plies", "0", "1 or more"),
    ('"short.epd"', '"short.epd"\nstart = 99', "[books.short] start", "99", "1 to "),
    (CONTROL, 'time_control = "0+1"', "[event league] time_control", "'0+1'", "above 0"),
    (CONTROL, 'time_control = "20000+1"', "[event league] time_control", "'20000+1'", "10 days"),
    ('name = "Engine 2"', r'name = "a\nb"', "[roster.engine e2] name", r"'a\nb'", "one line"),
    ('name = "Engine 2"', 'name = " "', "[roster.engine e2] name", "' '", "not blank"),
    (
        'command = ["engine-2"]',
        'command = ["x"]\noptions = {Book = "x\\nquit"}',
        "[roster.engine e2] options.Book",
        "quit",
        "a line of text",
    ),
    ("[roster]", "[roster]\nsize = 5", "[roster] size", "only 4 engines", "more engines"),
    ("[roster]", "[roster]\nsize = 3", "[roster] size", "4 engines are listed", "4 or more"),
    (
        "[roster]",
        '[roster]\nfill = [{ id = "x", command = ["x"] }]',
        "[roster] fill",
        "no size",
        "",
    ),
]


MISPLACED = [
    # what is replaced, by what, the place, where the key belongs
    ('id = "test"', 'id = "test"\ntime_control = "1+0"', "time_control", "belongs in [[event]]"),
    ('id = "test"', 'id = "test"\nrounds = 3', "rounds", "belongs in format of [[event]]"),
    ("[roster]", "[roster]\nthreads = 2", "[roster] threads", "belongs in limits of [[event]]"),
    (CONTROL, f"{CONTROL}\nsize = 4", "[event league] size", "belongs in [roster]"),
    (CONTROL, f'{CONTROL}\nsite = "x"', "[event league] site", "top of the file, before any"),
    (CONTROL, f'{CONTROL}\norder = "random"', "[event league] order", "belongs in [books.NAME]"),
    ('"short.epd"', '"short.epd"\nrelegate = 1', "[books.short] relegate", "in [[event]])"),
    ('break = "10m"', "limits = { min_ply = 9 }", "[event final] limits.min_ply", "or in adj"),
    ("double_rounds", "rounds", "format.rounds", "double_rounds? rounds belongs to kind swiss)"),
    ("double_rounds", "hubs", "[event league] format.hubs", "(hubs belongs to kind gauntlet)"),
    ("[roster]", "[roster]\ntime_contrl = 1", "time_contrl", "mean time_control? It belongs in [["),
]


@pytest.mark.parametrize(("old", "new", "where", "belongs"), MISPLACED)
def test_a_key_in_the_wrong_table_is_told_its_place(
    tmp_path: Path, old: str, new: str, where: str, belongs: str
) -> None:
    """A key that another table knows is no slip of the pen: the message says where it goes."""
    text = driver.season_text()
    assert old in text
    with pytest.raises(errors.SeasonFileError) as caught:
        driver.load(tmp_path, text.replace(old, new, 1))
    assert (caught.value.where.endswith(where), caught.value.found) == (True, "an unknown key")
    assert belongs in caught.value.allowed


@pytest.mark.parametrize(
    ("file", "tables"),
    [(model.Season, known_keys.SEASON), (model.EnginesFile, known_keys.ROSTER)],
)
def test_misplaced_keys_are_looked_for_in_every_table(
    file: type[contract.Message], tables: known_keys.Tables
) -> None:
    """A table that is added to the model is known, or is a value that is no table's key."""
    defined = file.model_json_schema()["$defs"]
    found = {name for name, table in defined.items() if "properties" in table}
    known = {table.__name__ for table in tables.values()}
    assert found - {"Share", "TimeControl"} <= known


@pytest.mark.parametrize(("old", "new", "where", "found", "allowed"), BAD)
def test_a_bad_file_is_refused_by_place(
    tmp_path: Path, old: str, new: str, where: str, found: str, allowed: str
) -> None:
    """The error names the file, the table and key, what was found and what is allowed."""
    text = driver.season_text()
    assert old in text
    with pytest.raises(errors.SeasonFileError) as caught:
        driver.load(tmp_path, text.replace(old, new, 1))
    error = caught.value
    assert error.file == str(tmp_path / "season.toml")
    assert where in error.where
    assert found in error.found
    assert allowed in error.allowed
    assert str(error).startswith(f"{error.file}: {error.where}: found ")


def test_all_problems_come_in_one_message(tmp_path: Path) -> None:
    """Two mistakes are told at once."""
    text = (
        driver.season_text()
        .replace(CONTROL, 'time_control = "abc"')
        .replace("games = 4", "gmes = 4")
    )
    with pytest.raises(errors.SeasonFileError) as caught:
        driver.load(tmp_path, text.replace("top = 2", "topp = 2"))
    message = str(caught.value)
    assert "[event league] time_control" in message
    assert "[event final] format.games" in message
    assert "[event league] promote[1].topp" in message
    assert "did you mean top?" in message
    assert len(message.splitlines()) == 4
    assert all(line.startswith(str(tmp_path)) for line in message.splitlines())


def test_nobody_enters_an_event_twice(tmp_path: Path) -> None:
    """An engine that is listed and may be promoted as well is refused."""
    text = driver.season_text().replace("top = 2", "top = 1")
    with pytest.raises(errors.SeasonFileError, match=r"'e1', who may also come from league"):
        driver.load(tmp_path, text.replace('break = "10m"', 'entrants = ["e1"]'))


def test_three_engines_cannot_promote_four(tmp_path: Path) -> None:
    """A league of three whose top four go on is refused."""
    with pytest.raises(errors.SeasonFileError, match=r"top = 4 in a field of 3"):
        driver.load(tmp_path, driver.season_text(engines=3).replace("top = 2", "top = 4"))


@pytest.mark.parametrize("lines", [0, 5])
def test_a_book_must_last_for_an_event(tmp_path: Path, lines: int) -> None:
    """A league with 6 pairs of games needs 6 lines; 5 are refused, unless they may repeat."""
    with pytest.raises((errors.SeasonFileError, errors.BookError), match=r"short\.epd"):
        driver.load(tmp_path, driver.season_text(), lines)
    if lines:
        repeat = driver.season_text().replace('"short.epd"', '"short.epd"\nrepeat = true')
        assert len(driver.load(tmp_path, repeat, lines).books["short"]) == lines


def test_a_missing_file_and_a_broken_one_are_refused(tmp_path: Path) -> None:
    """What cannot be read at all is a season file error as well."""
    with pytest.raises(errors.SeasonFileError, match="No such file"):
        load.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(errors.SeasonFileError, match=r"not UTF-8 \(byte 9\); allowed: TOML, saved"):
        load.load(tmp_path / "latin.toml")


def test_a_file_may_bear_the_mark_of_utf_8(tmp_path: Path) -> None:
    """Editors of Windows write it before the first key."""
    loaded = driver.load(tmp_path, driver.season_text())
    assert driver.load(tmp_path, "\ufeff" + driver.season_text()) == loaded


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("schema = 1", "schema = = 1", "not TOML: Invalid value (line 2, column 10): schema = = 1"),
        ('id = "test"', "id = test", "(line 3, column 6): id = test (text stands in quotes)"),
        ('"short"', '"short', "not TOML: Illegal character '\\n' (line"),
        ('[books.short]\nfile = "short.epd"', "[books.short", "not TOML: Expected ']' at the end"),
    ],
)
def test_what_is_no_toml_is_told_as_such(tmp_path: Path, old: str, new: str, told: str) -> None:
    """The line says that the file cannot be read as TOML, why, and at which line and column."""
    with pytest.raises(errors.SeasonFileError) as caught:
        driver.load(tmp_path, driver.season_text().replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'season.toml'}: not TOML: ")
    assert told in str(caught.value)


def test_files_of_another_kind_are_told_by_what_is_wanted(tmp_path: Path) -> None:
    """One line each for a season file where a roster file is wanted, and the reverse."""
    driver.load(tmp_path, driver.season_text())
    roster_file = tmp_path / "engines.toml"
    roster_file.write_text('schema = 1\n[[engine]]\nid = "e1"\nname = "E"\ncommand = ["x"]\n')
    with pytest.raises(errors.WrongFileError) as caught:
        load.load_engines(tmp_path / "season.toml")
    wanted = "a roster file is wanted (schema = 1, then [[engine]] tables alone)"
    assert str(caught.value) == f"{tmp_path / 'season.toml'}: this is a season file; {wanted}"
    with pytest.raises(errors.WrongFileError, match="this is a roster file; a season file"):
        load.load(roster_file)
    assert len(load.load_engines(roster_file)) == 1


def finder(there: Sequence[str]) -> roster.Finder:
    """Return a search that finds exactly the engines named."""

    def find(names: Sequence[str]) -> list[contract.EngineSpec]:
        return [
            contract.EngineSpec(id=name, name=name, command=(f"/bin/{name}",))
            for name in names
            if name in there
        ]

    return find


def test_demo_fills_its_roster() -> None:
    """The demo takes the engines it finds, in its order, then the farm's own engine."""
    loaded = load.load(DEMO, find=finder(["toga2", "stockfish"]))
    assert [engine.id for engine in loaded.engines] == [
        "stockfish",
        "toga2",
        "farm-engine-1200",
        "farm-engine-400",
    ]
    alone = load.load(DEMO, find=finder([]))
    assert [engine.command[0] for engine in alone.engines] == ["farm-engine"] * 4
    assert len({engine.command for engine in alone.engines}) == 4


def test_demo_book_is_sound() -> None:
    """The demo book has more than enough named, different lines of 8 plies."""
    book = load.load(DEMO, find=finder([])).books["short"]
    assert len(book) >= 24
    assert len({opening.moves for opening in book}) == len(book)
    assert all(len(opening.moves) == 8 and opening.name and opening.eco for opening in book)


def test_installed_engines_are_found_by_absolute_path() -> None:
    """The search on this machine returns absolute paths and leaves out what is missing."""
    found = roster.find_installed(["sh", "no-such-engine-anywhere"])
    assert [engine.id for engine in found] == ["sh"]
    assert Path(found[0].command[0]).is_absolute()


def test_a_listed_engine_is_not_found_twice(tmp_path: Path) -> None:
    """A found engine of the same id gives way to the listed one."""
    driver.load(tmp_path, driver.season_text())
    text = driver.season_text().replace("[roster]", '[roster]\nfind = ["e1", "toga2"]')
    (tmp_path / "season.toml").write_text(text)
    loaded = load.load(tmp_path / "season.toml", find=finder(["e1", "toga2"]))
    assert [engine.id for engine in loaded.engines] == ["e1", "e2", "e3", "e4", "toga2"]


@pytest.mark.parametrize("season_id", ["", "A", "a b", "../a", "farm", "x" * 41])
def test_a_bad_season_id_is_refused(tmp_path: Path, season_id: str) -> None:
    """An id that cannot name a journal is wrong usage."""
    loaded = driver.load(tmp_path, driver.season_text())
    with pytest.raises(errors.UsageError):
        operations.launch(loaded, season_id, "seed", "hall", "0")


# -- sizes of fields (S16-3b, S17-3c, S17-5f, FRC-1c) ---------------------------------------


def grown(season: str, event: str, more: int) -> load.Loaded:
    """Return a bundled season with more engines, in one event where it lists its field."""
    loaded = driver.shipped(season)
    new = [loaded.engines[0].model_copy(update={"id": f"more-{n}"}) for n in range(more)]
    events = [
        one.model_copy(update={"entrants": (*one.entrants, *(engine.id for engine in new))})
        if one.id == event and isinstance(one.entrants, tuple)
        else one
        for one in loaded.season.events
    ]
    changed = loaded.season.model_copy(update={"events": tuple(events)})
    return dataclasses.replace(loaded, season=changed, engines=(*loaded.engines, *new))


@pytest.mark.parametrize(
    ("season", "event"), [("season16", "ql"), ("season17", "ql"), ("season17", "l1-gpu")]
)
def test_a_field_beyond_the_texts_is_warned_of(tmp_path: Path, season: str, event: str) -> None:
    """S16-3b, S17-3c, S17-5f: "up to 16 engines"."""
    usual = plan.fields(driver.shipped(season).season, 60)[event]
    told = describe.explain(grown(season, event, 18 - usual))["warnings"]
    assert f"[event {event}] has 18 engines; max_engines = 16" in told
    assert not any(
        "max_engines" in one for one in describe.explain(driver.shipped(season))["warnings"]
    )


def test_an_odd_number_of_engines_is_warned_of() -> None:
    """FRC-1c: one more may be invited "to complete an even number"."""
    odd = len(driver.shipped("frc").engines) % 2 == 0
    told = describe.explain(grown("frc", "league-a", 1 if odd else 2))["warnings"]
    assert any("odd number" in one for one in told)
