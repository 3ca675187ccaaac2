"""Tiebreak numbers, as exact whole numbers.

A tie is a group of engines level on points; every criterion orders only those who are still
level after the one before (``standings``). Direct encounter depends on who they are, so it is
computed there (S16-12c, S17-12c: "between the tied engines"); all other numbers are an engine's
own. Units: direct encounter and opponents' score in half points, Sonneborn-Berger in quarter
points, r-mobility in 2⁻⁴⁰ points, all others are counts; ``seed`` counts from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orchestrator.season.fold import tally
from orchestrator.season.spec import model

_LESS_IS_BETTER: Final = frozenset({model.Criterion.CRASHES, model.Criterion.SEED})
_UNITS: Final = {  # of each number: how many of it are a point; 1 for a count
    model.Criterion.CRASHES: 1,
    model.Criterion.DIRECT_ENCOUNTER: 2,
    model.Criterion.WINS: 1,
    model.Criterion.SONNEBORN_BERGER: 4,
    model.Criterion.OPPONENTS_SCORE: 2,
    model.Criterion.BLACK_GAMES: 1,
    model.Criterion.BLACK_WINS: 1,
    model.Criterion.R_MOBILITY: tally.R_MOBILITY_UNIT,
    model.Criterion.SEED: 1,
}


def direct_encounter(played: tally.Tally, engine: str, tied: Iterable[str]) -> int:
    """Return the half points taken in the games among the engines that are still level."""
    return sum(played.taken(engine, other) for other in tied if other != engine)


def sonneborn_berger(played: tally.Tally, engine: str) -> int:
    """Return, in quarter points, the sum over games of own score times opponent's points.

    A bye counts as a win against an opponent of the engine's own points (FIDE C.07).
    """
    return _of_opponents(played, engine)[0]


def opponents_score(played: tally.Tally, engine: str) -> int:
    """Return the sum over games of the opponent's half points (plain Buchholz).

    A bye counts as a game against an opponent of the engine's own points (FIDE C.07).
    """
    return _of_opponents(played, engine)[1]


def _of_opponents(played: tally.Tally, engine: str) -> tuple[int, int]:
    """Return Sonneborn-Berger and opponents' score: a table takes both, of all its pairs."""
    scores, own = played.scores, played.scores[engine]
    weighted, met = 2 * own.byes * own.half_points, own.byes * own.half_points
    for opponent, (taken, games) in played.opponents(engine).items():
        half_points = scores[opponent].half_points
        weighted += taken * half_points
        met += games * half_points
    return weighted, met


def numbers(played: tally.Tally, engine: str, seed: int) -> dict[model.Criterion, int]:
    """Return every tiebreak number that an engine has of its own: all but direct encounter.

    r-mobility is there when a game of the event has told it: earlier journals hold none.
    """
    score = played.scores[engine]
    weighted, met = _of_opponents(played, engine)
    counted = {
        model.Criterion.CRASHES: score.crashes,
        model.Criterion.WINS: score.wins,
        model.Criterion.SONNEBORN_BERGER: weighted,
        model.Criterion.OPPONENTS_SCORE: met,
        model.Criterion.BLACK_GAMES: score.black_games,
        model.Criterion.BLACK_WINS: score.black_wins,
        model.Criterion.SEED: seed,
    }
    return counted | (
        {model.Criterion.R_MOBILITY: score.r_mobility} if played.tells_mobility else {}
    )


def merit(criterion: model.Criterion, value: int) -> int:
    """Turn a number of a criterion so that more is better."""
    return -value if criterion in _LESS_IS_BETTER else value


def points(criterion: model.Criterion, value: int) -> float:
    """Return the number as people write it, in points or as a count (always exact)."""
    return value / _UNITS[criterion]
