"""The sequential probability ratio test of a match: stop when the question is answered.

H0 says that the difference is ``elo0``, H1 that it is ``elo1``. The test walks with the
log-likelihood ratio (LLR) of the two: at ``log((1 - beta) / alpha)`` H1 is accepted, at
``log(beta / (1 - alpha))`` H0. The LLR is the generalized one: each hypothesis takes the
likeliest distribution of scores that fulfils it (Van den Bergh, "A practical
introduction to the GSPRT"). ``logistic`` bounds speak of the mean score, ``normalized``
ones of the mean in standard deviations of a game.

Invariants: scores never seen count as ``PRIOR``, so that the ratio is finite; the
reference values of ``sprt_pentanomial_llr.csv`` are met to 1e-3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from orchestrator.common import errors
from orchestrator.rating import elo, results

Model: TypeAlias = Literal["normalized", "logistic"]
MODELS: tuple[str, ...] = get_args(Model)
Verdict: TypeAlias = Literal["H0", "H1"]

PRIOR = 1e-3  # observations put into a score that was never seen
STEPS = 60  # halvings of an interval: below the precision of a double
TURNS = 50  # times the deviation under a hypothesis is fitted; 5 to 10 are enough
WIDEST = {"normalized": 200, "logistic": 2000}  # Elo; beyond, some counts have no fit
SMALL = 1e-12  # change of a probability that ends the fit


@dataclasses.dataclass(frozen=True)
class Test:
    """The question: difference at least ``elo1``, or not more than ``elo0``?

    Raise ``UsageError`` for bounds that cannot be told apart, or are too wide.
    """

    __test__ = False  # this is no test class of pytest's

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05
    model: Model = "normalized"

    def __post_init__(self) -> None:
        """Refuse bounds that have no answer."""
        if not self.elo0 < self.elo1:
            actual = f"elo0={self.elo0:g} elo1={self.elo1:g}"
            raise errors.UsageError(f"-sprt: found {actual}; allowed: elo0 below elo1")
        widest = WIDEST[self.model]
        if max(abs(self.elo0), abs(self.elo1)) > widest:
            actual = f"elo0={self.elo0:g} elo1={self.elo1:g} model={self.model}"
            raise errors.UsageError(f"-sprt: found {actual}; allowed: -{widest} to {widest}")
        if not (0 < self.alpha < 1 and 0 < self.beta < 1 and self.alpha + self.beta < 1):
            actual = f"alpha={self.alpha:g} beta={self.beta:g}"
            raise errors.UsageError(f"-sprt: found {actual}; allowed: above 0, together below 1")

    @property
    def spoken(self) -> str:
        """Return the test in the words of a command line."""
        return (
            f"elo0={self.elo0:g} elo1={self.elo1:g} alpha={self.alpha:g} beta={self.beta:g}"
            f" model={self.model}"
        )

    @property
    def lower(self) -> float:
        """Return the LLR at which H0 is accepted."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """Return the LLR at which H1 is accepted."""
        return math.log((1 - self.beta) / self.alpha)

    def llr(self, counts: results.Counts) -> float:
        """Return the log-likelihood ratio of results, 0 when nothing was played.

        Pairs and games that belong to none are independent, so their ratios add up.
        """
        parts = counts.observed().parts
        return sum(ratio(part, self.elo0, self.elo1, self.model) for part in parts)

    def verdict(self, counts: results.Counts) -> Verdict | None:
        """Return the accepted hypothesis, ``None`` while the match has to go on."""
        llr = self.llr(counts)
        if llr >= self.upper:
            return "H1"
        return "H0" if llr <= self.lower else None


def ratio(seen: results.Distribution, elo0: float, elo1: float, model: Model) -> float:
    """Return the LLR of ``elo1`` against ``elo0`` for observed counts."""
    counts = [count or PRIOR for count in seen.counts]
    total = sum(counts)
    shares = [count / total for count in counts]
    if model == "logistic":
        under = [
            _with_mean(seen.values, shares, elo.expected(hypothesis)) for hypothesis in (elo0, elo1)
        ]
    else:
        scale = seen.scale / elo.NORMALIZED
        under = [_with_t(seen.values, shares, hypothesis * scale) for hypothesis in (elo0, elo1)]
    each = zip(shares, under[0], under[1], strict=True)
    return total * sum(share * math.log(high / low) for share, low, high in each)


def _with_mean(values: Sequence[float], shares: Sequence[float], mean: float) -> list[float]:
    """Return the likeliest probabilities whose mean is given."""
    return _tilted([value - mean for value in values], shares)


def _with_t(values: Sequence[float], shares: Sequence[float], t: float) -> list[float]:
    """Return the likeliest probabilities with (mean - ½) / deviation = ``t``.

    The condition is not linear in the probabilities; it is made so around the last
    guess, until the guess stands still.
    """
    probabilities = [1 / len(values)] * len(values)
    for _ in range(TURNS):
        mean = sum(p * value for p, value in zip(probabilities, values, strict=True))
        variance = sum(
            p * (value - mean) ** 2 for p, value in zip(probabilities, values, strict=True)
        )
        deviation = math.sqrt(variance)
        gaps = [
            value - 0.5 - t * deviation * (1 + ((mean - value) / deviation) ** 2) / 2
            for value in values
        ]
        before, probabilities = probabilities, _tilted(gaps, shares)
        if max(abs(a - b) for a, b in zip(before, probabilities, strict=True)) < SMALL:
            break
    return probabilities


def _tilted(gaps: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Tilt shares so that the mean of ``gaps`` is 0, at the least cost in likelihood.

    By Lagrange p = share / (1 + x gap), with the one x between the poles for which the
    mean is 0; the mean falls with x, so halving finds it.
    """
    low, high = -1 / max(gaps), -1 / min(gaps)
    for _ in range(STEPS):
        x = (low + high) / 2
        if sum(share * gap / (1 + x * gap) for share, gap in zip(shares, gaps, strict=True)) > 0:
            low = x
        else:
            high = x
    return [share / (1 + x * gap) for share, gap in zip(shares, gaps, strict=True)]
