"""Draw a game that nobody plays: its result, its end and how long it takes.

Every draw is SHA-256 over (seed, attempt, k), as in ``season.lots``: the same seed draws
the same game, whatever was drawn before it. Rates are probabilities from 0 to below 1;
none reaches 1, so a match that must have a winner gets one. An engine's strength is its
rating; an engine without one counts as ``UNRATED``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import rmobility, verdict
from orchestrator.arbiter.adjudication import interruption
from orchestrator.common import errors
from orchestrator.rating import elo
from orchestrator.season.spec import seeded_random

UNRATED: Final = 3000  # Elo
MOST: Final = 0.95  # of any rate

_UNIT: Final = 1 << 53  # steps of a drawn fraction: whole numbers that a float holds exactly
_MOVES: Final = (30, 120)  # moves a side that a game may have
_CLOCKLESS_MOVE_MS: Final = 1_000
_DRAWN: Final = (
    verdict.threefold(),
    verdict.eval_draw(),
    verdict.tablebase(None),
    verdict.fifty_moves(),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Chances:
    """What may happen in a game.

    ``draw`` is the draw rate of equal engines, ``white_elo`` what the first move is worth.
    ``crash`` and ``time_loss`` are rates a game and engine, ``crashes`` and
    ``time_losses`` those of engines that differ; ``interruption`` is the rate at which
    the host is lost during an attempt. ``strength`` says how far ratings count (0: all are
    equal), ``goals`` how many r-mobilities a draw may have. Raise ``UsageError`` for what
    is no such rate.
    """

    draw: float = 0.55
    white_elo: float = 35.0
    crash: float = 0.002
    time_loss: float = 0.001
    interruption: float = 0.0
    strength: float = 1.0
    goals: int = 30  # so few that no share falls below the tally's unit
    crashes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    time_losses: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rates with which a season might never end."""
        rates = {
            "draw rate": self.draw,
            "crash rate": self.crash,
            "time-loss rate": self.time_loss,
            "interruption rate": self.interruption,
        }
        rates |= {f"crash rate of {engine}": rate for engine, rate in self.crashes.items()}
        rates |= {f"time-loss rate of {engine}": rate for engine, rate in self.time_losses.items()}
        for name, rate in rates.items():
            if not 0 <= rate <= MOST:
                raise errors.UsageError(f"{name}: found {rate:g}; allowed: 0 to {MOST}")
        if not abs(self.white_elo) <= UNRATED:
            raise errors.UsageError(
                f"white advantage: found {self.white_elo:g}; allowed: -{UNRATED} to {UNRATED} Elo"
            )

    def crash_of(self, engine: str) -> float:
        """Return how often an engine crashes in a game."""
        return self.crashes.get(engine, self.crash)

    def time_loss_of(self, engine: str) -> float:
        """Return how often an engine loses a game on time."""
        return self.time_losses.get(engine, self.time_loss)


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """An attempt at a game; ``interrupted`` is the ply at which the host was lost, or None."""

    outcome: contract.Outcome
    plies: int
    duration_ms: int
    white_points: float
    interrupted: int | None


def draw(
    chances: Chances,
    seed: str,
    attempt: str,
    white: contract.EngineSpec,
    black: contract.EngineSpec,
    control: contract.TimeControl,
) -> Drawn:
    """Draw an attempt at a game from the engines' ratings and rates."""
    numbers = seeded_random.numbers(seed, f"simulation:{attempt}")
    outcome = _fault(chances, numbers, white.id, black.id) or _result(
        chances, numbers, round(chances.strength * (_rating(white) - _rating(black)))
    )
    first, last = _MOVES
    plies = 2 * first + seeded_random.below(numbers, 2 * (last - first))
    duration_ms = _duration_ms(numbers, control, plies)
    points = _white_points(numbers, outcome.loser, chances.goals)
    lost = _fraction(numbers) < chances.interruption
    if not lost:
        return Drawn(outcome, plies, duration_ms, points, None)
    ply = seeded_random.below(numbers, plies)
    return Drawn(outcome, plies, duration_ms * ply // plies, points, ply)


def interrupted(seed: str, attempt: str, ply: int) -> interruption.Facts:
    """Draw where a game stood when its host was lost: evals that agree or not, and men.

    A third of all games each is level, decided for one side, or neither.
    """
    numbers = seeded_random.numbers(seed, f"simulation:{attempt}:interruption")
    kind, sign = seeded_random.below(numbers, 3), 1 - 2 * seeded_random.below(numbers, 2)
    near, far = (
        seeded_random.below(numbers, 31) - 15,
        sign * (900 + seeded_random.below(numbers, 400)),
    )
    centipawns = (near, far, sign * (16 + seeded_random.below(numbers, 884)))[kind]
    other = centipawns + seeded_random.below(numbers, 21) - 10
    return interruption.Facts(
        ply=ply,
        engine_plies=ply,
        men=3 + seeded_random.below(numbers, 30),
        white=contract.Score(cp=centipawns),
        black=contract.Score(cp=other),
    )


def without_rating(engines: Iterable[contract.EngineSpec]) -> list[str]:
    """Return the ids of engines that have no rating."""
    return [engine.id for engine in engines if engine.rating is None]


def unrated(engines: Iterable[contract.EngineSpec]) -> str:
    """Say which engines have no rating to be told apart by, '' where all have one."""
    everybody = list(engines)
    missing = without_rating(everybody)
    if len(missing) == len(everybody):
        return "no engine has a rating: all count as equal"
    return f"without a rating, and counted as {UNRATED}: {', '.join(missing)}" if missing else ""


def _fraction(numbers: Iterator[int]) -> float:
    return seeded_random.below(numbers, _UNIT) / _UNIT


def _rating(engine: contract.EngineSpec) -> int:
    return UNRATED if engine.rating is None else engine.rating


def _fault(
    chances: Chances, numbers: Iterator[int], white: str, black: str
) -> contract.Outcome | None:
    """Draw whether an engine breaks down; where both would, one of them is the first."""
    faults: list[contract.Outcome] = []
    sides: tuple[tuple[contract.Side, str], ...] = (("white", white), ("black", black))
    for side, engine in sides:
        crashed = _fraction(numbers) < chances.crash_of(engine)
        flagged = _fraction(numbers) < chances.time_loss_of(engine)
        if crashed:
            faults.append(verdict.disconnect(side))
        elif flagged:
            faults.append(verdict.time(side))
    return faults[seeded_random.below(numbers, len(faults))] if faults else None


def _result(chances: Chances, numbers: Iterator[int], lead: int) -> contract.Outcome:
    """Draw a result; the mean score is that of the ratings, draws thin out with the lead."""
    score = elo.expected(lead + chances.white_elo)
    drawn = min(4 * chances.draw * score * (1 - score), 2 * score, 2 * (1 - score))
    fallen = _fraction(numbers)
    if fallen < drawn:
        return _DRAWN[seeded_random.below(numbers, len(_DRAWN))]
    loser: contract.Side = "black" if fallen < score + drawn / 2 else "white"
    mated = seeded_random.below(numbers, 2)
    return verdict.checkmate(loser) if mated else verdict.eval_win(loser)


def _duration_ms(numbers: Iterator[int], control: contract.TimeControl, plies: int) -> int:
    """Draw how long both sides think: 40 to 95 of a hundred of the time they get."""
    if control.move_ms is not None or not control.clocked:
        return plies * (control.move_ms or _CLOCKLESS_MOVE_MS)
    moves = plies // 2
    periods = 1 if control.moves is None else 1 + moves // control.moves
    given_ms = 2 * (periods * control.base_ms + moves * control.increment_ms)
    return given_ms * (40 + seeded_random.below(numbers, 56)) // 100


def _white_points(numbers: Iterator[int], loser: contract.Side | None, goals: int) -> float:
    """Draw White's r-mobility points; a draw has one of so many values of G."""
    if loser is not None:
        return 1.0 if loser == "black" else 0.0
    share = rmobility.share(seeded_random.below(numbers, goals) / 2 + 0.5)
    return share if seeded_random.below(numbers, 2) else 1 - share
