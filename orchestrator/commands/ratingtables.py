"""Rating lists for people: the list, and who is stronger than whom."""

from __future__ import annotations

import rich.table

from orchestrator.common import output
from orchestrator.rating import error_bars, lists


def show(
    spread: error_bars.Spread, unread: int = 0, rows: tuple[lists.Row, ...] | None = None
) -> None:
    """Print the list with its figures; ``unread`` games had no result."""
    console = output.console()
    listed = lists.rows(spread) if rows is None else rows
    console.print(table(listed))
    if any(row.mark for row in listed):
        console.print(
            "> won all, < lost all: a bound, at which such a score has a chance of one half"
        )
    if any(row.rating is None for row in listed):
        console.print(
            "provisional, without a rating: no chain of wins and draws leads from it to the rest"
            " and back, so the games do not say how far apart they are"
        )
    if any(row.provisional and row.rating is not None for row in listed):
        console.print("provisional, with a rating: it has not finished an event yet")
    dropped = f", {unread} games without a result left out" if unread else ""
    console.print(f"{_figures(spread)}, {spread.rated.counted.games.sum():.0f} games{dropped}")


def _figures(spread: error_bars.Spread) -> str:
    """Return White's advantage and the draw rate in words, where enough games tell them."""
    white, draws = lists.white_advantage(spread), lists.draw_rate(spread)
    if white is None and draws is None:
        return "White advantage and draw rate: too few games to tell"
    asked, given = spread.rated.settings, " (given)"
    sure = "" if spread.white_error is None else f" ± {spread.white_error:.1f}"
    sure = sure if asked.white is None else given
    advantage = "too uncertain to tell" if white is None else f"{white:.1f}{sure}"
    rate = "too few games to tell" if draws is None else f"{100 * draws:.1f} %"
    rate += "" if asked.draws is None else given
    return f"White advantage {advantage}, draw rate of equal engines {rate}"


def table(listed: tuple[lists.Row, ...]) -> rich.table.Table:
    """Return the list as a table."""
    made = rich.table.Table()
    for head in ("#", "Engine", "Rating", "±", "Points", "Games", "%", ""):
        made.add_column(head, justify="left" if head in {"Engine", ""} else "right")
    for row in listed:
        made.add_row(
            "" if row.rank is None else str(row.rank),
            row.engine,
            "-" if row.rating is None else f"{row.rating:.1f}",
            f"{row.error:.1f}" if row.error else "-",
            f"{row.points:g}",
            str(row.played),
            f"{row.percent:.1f}",
            "provisional" if row.provisional else row.mark,
        )
    return made


def show_superiority(spread: error_bars.Spread) -> None:
    """Print how likely each engine is stronger than each other one, in percent."""
    listed = lists.rows(spread)
    made = rich.table.Table(title="Likelihood of superiority, %")
    made.add_column("Engine")
    for number, _ in enumerate(listed, start=1):
        made.add_column(str(number), justify="right")
    for row, cells in zip(listed, lists.superiority(spread, listed), strict=True):
        made.add_row(row.engine, *("" if c is None else f"{100 * c:.0f}" for c in cells))
    output.console().print(made)
