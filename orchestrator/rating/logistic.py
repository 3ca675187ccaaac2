"""The curve of Ordo 1.2.6: what a difference of ratings says of a game's result.

White's expected score is 1 / (1 + exp(-beta d)) for d = rating of White + white advantage
- rating of Black; 202 points are 76 %, which is 0.88 % wider than logistic Elo. A draw is
half a point. How often games are drawn follows from the draw rate d0 of equal engines.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

BETA = math.log(0.76 / 0.24) / 202  # a point; Ordo's -z is 202
EVEN_DRAWS = 0.5  # Ordo's draw rate of equal engines when none is estimated
TINY = 1e-32  # least probability of a result, as in Ordo

_LARGEST = 700.0  # exponent beyond which exp overflows
_HALVINGS = 40  # 1e-12 of a draw rate


def expected(difference: Floats) -> Floats:
    """Return the expected score for a lead in points."""
    score: Floats = 1 / (1 + np.exp(np.clip(-BETA * difference, -_LARGEST, _LARGEST)))
    return score


def draws(score: Floats, even: float) -> Floats:
    """Return how often a game of that expected score is drawn; ``even`` is d0.

    The root of c + 2x + ax² with a = (1 - 2 d0) / d0² and c = 4(p² - p), written so that
    a = 0 is no special case.
    """
    if even <= 0:
        return np.zeros_like(score)
    spread = 4 * score * (1 - score)
    bend = (1 - 2 * even) / even**2
    drawn: Floats = spread / (1 + np.sqrt(np.maximum(0.0, 1 + bend * spread)))
    return drawn


def outcomes(difference: Floats, even: float) -> Floats:
    """Return the probabilities of win, draw and loss, one row a game."""
    score = expected(difference)
    drawn = draws(score, even)
    table = np.stack([score - drawn / 2, drawn, 1 - score - drawn / 2], axis=-1)
    kept: Floats = np.maximum(table, TINY)
    return kept


def draw_rate(scores: Floats, games: Floats, drawn: float) -> float:
    """Return the d0 for which as many draws are expected as there were."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(games @ draws(scores, middle)) < drawn:
            low = middle
        else:
            high = middle
    return (low + high) / 2
