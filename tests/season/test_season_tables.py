"""Tables on terminals of any width."""

from __future__ import annotations

import io
from pathlib import Path

import chess
import driver
import pytest
import rich.console
import rich.panel

from orchestrator.commands import tables, watch
from orchestrator.season import views


def shown(folder: Path, width: int) -> list[str]:
    """Play a league of four; return its table as a terminal of that width shows it."""
    season = driver.Driver.launched(driver.load(folder, driver.season_text()), driver.by_name)
    return printed(tables.standings(views.standings(season.play().state, "league")), width)


def printed(table: rich.console.RenderableType, width: int) -> list[str]:
    """Return a table's lines on a terminal of that width."""
    told = io.StringIO()
    rich.console.Console(file=told, width=width).print(table)
    return told.getvalue().splitlines()


@pytest.mark.parametrize("width", [36, 50, 70, 80, 100, 200])
def test_no_figure_of_a_table_is_cut_short(tmp_path: Path, width: int) -> None:
    """Rank, points and counts are whole in every terminal; results are whole, or not there."""
    lines = shown(tmp_path, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    rows = [line.strip("│ ").split() for line in lines if line.startswith("│")]
    assert [row[0] for row in rows if row[0].isdigit()] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_schedule_tells_games_and_results_whole(tmp_path: Path, width: int) -> None:
    """A game's id can be typed again as every terminal shows it."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()), driver.by_name)
    rows = views.schedule(season.play().state, "league", 0)
    lines = printed(tables.games(rows, "Schedule"), width)
    assert max(map(len, lines)) <= width
    shown = [set(line.strip("│ ").split()) for line in lines]
    for row in rows:
        assert any({row["game"], row["result"]} <= cells for cells in shown)


@pytest.mark.parametrize(
    ("count", "allowed", "said"),
    [
        (1, 5, "excused in league: 1 loss of A, its host's fault (at most 5)"),
        (2, None, "excused in league: 2 losses of A, its host's fault (any number may be)"),
    ],
)
def test_a_season_tells_what_was_excused(
    tmp_path: Path, count: int, allowed: int | None, said: str
) -> None:
    """How many losses, whose, and how many may be: none of them is in the standings."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()), driver.by_name)
    view = views.season(season.state)
    view["events"][0] |= {"excused": {"A": count}, "excused_allowed": allowed}
    assert said in " ".join(printed(tables.season(view), 400))


def test_a_table_without_room_for_its_crosstable_says_so(tmp_path: Path) -> None:
    """The crosstable is there in as many columns as the sentence asks for, and not in one less."""
    told = next(line for line in shown(tmp_path, 75) if "crosstable" in line)
    needed = 75 + int(told.split("terminal ")[1].split()[0])
    wide, narrow = shown(tmp_path, needed), shown(tmp_path, needed - 1)
    assert not any("crosstable" in line for line in wide)
    assert any("crosstable" in line for line in narrow)
    assert sum("·" in line for line in wide) == 4
    assert max(map(len, wide)) == needed


@pytest.mark.parametrize("width", [40, 60, 73, 74, 120])
def test_a_watched_board_is_whole_in_every_terminal(tmp_path: Path, width: int) -> None:
    """Its event stands beside it, or below it where there is no room."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()), driver.by_name)
    table = tables.standings(views.standings(season.play().state, "league"))
    board = watch._draw(chess.STARTING_FEN, "", inked=False)
    panel = rich.panel.Panel(board, width=watch.BOARD_WIDTH + 6)
    lines = printed(watch._Beside(panel, table), width)
    assert max(map(len, lines)) <= width
    assert sum("♜   ♞   ♝   ♛   ♚   ♝   ♞   ♜" in line for line in lines) == 1
    assert sum("Engine 1" in line for line in lines) == 1
