"""The rating list for people and programs: rows, CSV, JSON, text as Ordo writes it.

The best engine is first; provisional engines stand last, by name, without a number.
In the text ``>`` and ``<`` mark who won or lost everything: the rating is a bound.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

from orchestrator.rating import error_bars, ordo

DECIMALS = 4  # of ratings for programs
FEW = 30  # games, below which they say nothing of White's advantage and of draws
UNSURE = 100.0  # points: a white advantage whose 95 % interval is wider than twice this is none


@dataclasses.dataclass(frozen=True)
class Row:
    """One engine; rank, rating and error are None where they cannot be told."""

    rank: int | None
    engine: str
    rating: float | None
    error: float | None
    points: float
    played: int
    provisional: bool
    mark: str = ""

    @property
    def percent(self) -> float:
        """Return the score in percent."""
        return 100 * self.points / self.played if self.played else 0.0


def white_advantage(spread: error_bars.Spread) -> float | None:
    """Return White's advantage in points, None where too few games tell it.

    An error that nobody has asked for does not count.
    """
    rated, error = spread.rated, spread.white_error
    if rated.settings.white is not None:
        return rated.white
    sure = abs(rated.white) < error_bars.LARGE and (
        error is None or error_bars.NAUGHT <= error <= UNSURE
    )
    return rated.white if sure and _enough(rated) else None


def draw_rate(spread: error_bars.Spread) -> float | None:
    """Return the draw rate of equal engines, 0 to 1, None where too few games tell it."""
    rated = spread.rated
    given = rated.settings.draws is not None
    return rated.draws if given or _enough(rated) else None


def _enough(rated: ordo.Rated) -> bool:
    return float(rated.games.games.sum()) >= FEW


def rows(spread: error_bars.Spread) -> tuple[Row, ...]:
    """Return the list, best first; an upper bound is no claim to a place before others."""
    rated = spread.rated
    points, played = rated.counted.points(), rated.counted.played()
    listed = [
        Row(
            rank=None,
            engine=name,
            rating=rated.ratings.get(engine),
            error=spread.error(engine),
            points=float(points[engine]),
            played=int(played[engine]),
            provisional=engine not in rated.ratings,
            mark=_mark(rated, engine),
        )
        for engine, name in enumerate(rated.counted.engines)
        if played[engine]
    ]
    listed.sort(key=lambda r: (r.provisional, r.mark == "<", -(r.rating or 0.0), r.engine))
    return tuple(
        row if row.provisional else dataclasses.replace(row, rank=rank)
        for rank, row in enumerate(listed, start=1)
    )


def _mark(rated: ordo.Rated, engine: int) -> str:
    if engine not in rated.perfect or engine not in rated.ratings:
        return ""
    return ">" if rated.perfect[engine] else "<"


def superiority(spread: error_bars.Spread, listed: Sequence[Row]) -> list[list[float | None]]:
    """Return for each engine of the list how likely it is stronger than each other one."""
    numbers = {name: at for at, name in enumerate(spread.rated.counted.engines)}
    order = [numbers[row.engine] for row in listed]
    return [[None if a == b else spread.superiority(a, b) for b in order] for a in order]


def as_json(spread: error_bars.Spread, listed: Sequence[Row] | None = None) -> dict[str, Any]:
    """Return the list for programs; None stands for what too few games tell."""
    draws = draw_rate(spread)
    return {
        "ratings": [
            {
                "rank": row.rank,
                "engine": row.engine,
                "rating": _rounded(row.rating),
                "error": _rounded(row.error),
                "points": row.points,
                "played": row.played,
                "provisional": row.provisional,
                "bound": row.mark,
            }
            for row in (rows(spread) if listed is None else listed)
        ],
        "white_advantage": _rounded(white_advantage(spread)),
        "draw_rate": None if draws is None else round(draws, DECIMALS + 2),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DECIMALS)


def as_csv(listed: Sequence[Row]) -> str:
    """Write the list as CSV, with the columns of Ordo's and one more: PROVISIONAL."""
    out = io.StringIO()
    table = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    table.writerow(
        ["#", "PLAYER", "RATING", "ERROR", "POINTS", "PLAYED", "(%)", "MARK", "PROVISIONAL"]
    )
    for row in listed:
        rating, error = _rounded(row.rating), _rounded(row.error)
        table.writerow(
            [
                "-" if row.rank is None else row.rank,
                row.engine,
                "-" if rating is None else rating,
                "-" if error is None else error,
                row.points,
                row.played,
                round(row.percent, 2),
                row.mark,
                int(row.provisional),
            ]
        )
    return out.getvalue()


def as_ordo(spread: error_bars.Spread, given: Sequence[Row] | None = None) -> str:
    """Write the list as the text of Ordo, its figures after it; provisional engines last."""
    listed = rows(spread) if given is None else given
    width = max([len(row.engine) for row in listed] + [len("PLAYER")])
    head = f"{'#':>4} {'PLAYER':<{width}}   :  RATING  ERROR  POINTS  PLAYED   (%)"
    lines = ["", head, *(_line(row, width) for row in listed), ""]
    sure = (
        ""
        if spread.white_error is None
        else f" +/- {spread.white_error / error_bars.CONFIDENCE:.2f}"
    )
    lines.append(f"White advantage = {spread.rated.white:.2f}{sure}")
    lines.append(f"Draw rate (equal opponents) = {100 * spread.rated.draws:.2f} %")
    return "\n".join([*lines, ""])


def _line(row: Row, width: int) -> str:
    rank = "-" if row.rank is None else str(row.rank)
    rating = "----" if row.rating is None else f"{row.rating:.1f}"
    error = "----" if row.error is None else f"{row.error:.1f}"
    return (
        f"{rank:>4} {row.engine:<{width}} {row.mark:1} :{rating:>8}{error:>7}"
        f"{row.points:>8.1f}{row.played:>8}{row.percent:>6.1f}"
    )
