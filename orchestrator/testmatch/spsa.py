"""SPSA: numbers of one engine tuned by games of the engine against itself.

Simultaneous perturbation stochastic approximation (Spall 1998), by the conventions of fishtest and
OpenBench. In iteration k every parameter is moved by ``c(k)`` up or down, by lot; the engine with
these values plays some pairs of games against the engine with the opposite ones; then each
parameter goes ``R(k) * c(k) * (wins - losses)`` in the direction in which it had been moved.

Invariants: what both sides of a game are set to is a function of tuning, seed, iteration and the
values of that iteration alone, so any worker writes the same order; both sides are mirrored at
these values, up to the parameter's bounds; where tuning stands is a function of results and of the
order in which iterations were finished, so a journal gives it again; an iteration counts when all
its games have a result, and no longer when one of them is set aside.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import pydantic

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.testmatch import openings

ALPHA: Final = 0.602  # by how the step falls, and how far a parameter is moved: Spall's choice
GAMMA: Final = 0.101
A_RATIO: Final = 0.1  # of the iterations: so long the first steps are held back
LEAST_MOVE: Final = 0.5  # of a whole number: below, both sides would often have the same value
VALUES: Final = 2_000  # sets of values that are dealt in a tuning at most: bounds what Redis keeps
MOST: Final = 1_000  # parameters
RESERVED: Final = frozenset({"threads", "cores", "hash", "memory", "ponder"})  # of a lane's needs
LINE: Final = "NAME, int|float, START, MIN, MAX, C_END, R_END"
_DRAWN: Final = 1 << 63  # of a drawn number: one bit is the direction, the others the rounding
_Finite = Annotated[float, pydantic.Field(allow_inf_nan=False)]


class Parameter(contract.Message):
    """An option of the engine: where it begins, its bounds, and by how much it is moved at last.

    ``c_end`` and ``r_end`` are ``c`` and ``R`` of the last iteration.
    """

    name: str = pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")
    whole: bool
    start: _Finite
    least: _Finite
    most: _Finite
    c_end: _Finite = pydantic.Field(gt=0)
    r_end: _Finite = pydantic.Field(gt=0)

    @pydantic.model_validator(mode="after")
    def _within(self) -> Parameter:
        if self.name.lower() in RESERVED:
            raise ValueError(f"{self.name}: lanes are chosen by it; give it with --options")
        if not self.least <= self.start <= self.most or self.least == self.most:
            raise ValueError(f"{self.name}: found {self.start:g}; allowed: MIN <= START <= MAX")
        numbers = (self.start, self.least, self.most)
        if self.whole and not all(number.is_integer() for number in numbers):
            raise ValueError(f"{self.name}: an int has a whole START, MIN and MAX")
        return self

    def clip(self, value: float) -> float:
        """Return the value within the parameter's bounds."""
        return min(self.most, max(self.least, value))

    def said(self, value: float) -> str:
        """Return a value as the engine is told it."""
        return str(round(value)) if self.whole else f"{value:.6g}"


class Tuning(contract.Message):
    """What is tuned, and how: ``pairs`` of games in each of the ``iterations``."""

    parameters: tuple[Parameter, ...] = pydantic.Field(min_length=1, max_length=MOST)
    iterations: int = pydantic.Field(ge=1)
    pairs: int = pydantic.Field(default=1, ge=1)
    a_ratio: _Finite = pydantic.Field(default=A_RATIO, ge=0)
    alpha: _Finite = pydantic.Field(default=ALPHA, ge=0)
    gamma: _Finite = pydantic.Field(default=GAMMA, ge=0)

    @pydantic.model_validator(mode="after")
    def _once(self) -> Tuning:
        names = [parameter.name.lower() for parameter in self.parameters]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice}: it is tuned twice")
        return self

    @property
    def games(self) -> int:
        """Return how many games are played."""
        return 2 * self.pairs * self.iterations

    @property
    def start(self) -> tuple[float, ...]:
        """Return the values at the beginning."""
        return tuple(parameter.start for parameter in self.parameters)

    def iteration(self, game: int) -> int:
        """Return the iteration of a game; both count from 1."""
        return (game - 1) // (2 * self.pairs) + 1

    def games_of(self, iteration: int) -> range:
        """Return the games of an iteration."""
        first = 2 * self.pairs * (iteration - 1) + 1
        return range(first, first + 2 * self.pairs)

    def move(self, parameter: Parameter, iteration: int) -> float:
        """Return c(k): how far a parameter is moved in an iteration."""
        c = float(parameter.c_end * (self.iterations / iteration) ** self.gamma)
        return max(c, LEAST_MOVE) if parameter.whole else c

    def rate(self, parameter: Parameter, iteration: int) -> float:
        """Return R(k): which part of a move the parameter goes for a game that was won."""
        held_back = self.a_ratio * self.iterations
        fall = (held_back + self.iterations) / (held_back + iteration)
        a = parameter.r_end * parameter.c_end**2 * fall**self.alpha
        return float(a / self.move(parameter, iteration) ** 2)

    def sides(
        self, values: Sequence[float], seed: str, iteration: int
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the options of the tested engine and of its opponent, around these values.

        Whole numbers are rounded by lot, both sides' by the same one, so that on average each side
        has the value that it should have (fishtest, OpenBench).
        """
        tested: dict[str, str] = {}
        other: dict[str, str] = {}
        for parameter, value in zip(self.parameters, values, strict=True):
            drawn = _drawn(seed, iteration, parameter)
            moved = drawn.direction * self.move(parameter, iteration)
            for options, wanted in ((tested, value + moved), (other, value - moved)):
                rounded = math.floor(wanted + drawn.rounding) if parameter.whole else wanted
                options[parameter.name] = parameter.said(parameter.clip(rounded))
        return tested, other

    def unmet(self, options: Iterable[tuple[str, str]]) -> str:
        """Say which parameter an engine did not take as it was told; '' where it took all.

        ``options`` are names, and what was remarked of each.
        """
        names = {parameter.name.lower() for parameter in self.parameters}
        wrong = (f"{name}: {why}" for name, why in options if why and name.lower() in names)
        return next(wrong, "")

    def stepped(
        self, values: Sequence[float], seed: str, iteration: int, score: float
    ) -> tuple[float, ...]:
        """Return the values after an iteration with so many wins more than losses."""
        gone = []
        for parameter, value in zip(self.parameters, values, strict=True):
            by = self.rate(parameter, iteration) * self.move(parameter, iteration) * score
            direction = _drawn(seed, iteration, parameter).direction
            gone.append(parameter.clip(value + direction * by))
        return tuple(gone)


class _Drawn(NamedTuple):
    direction: int  # 1 or -1
    rounding: float  # from 0, below 1


def _drawn(seed: str, iteration: int, parameter: Parameter) -> _Drawn:
    """Draw the direction of a parameter in an iteration, and how it is rounded."""
    number = openings.draw(f"{seed}/{iteration}/{parameter.name}")
    return _Drawn(1 if number >= _DRAWN else -1, number % _DRAWN / _DRAWN)


@dataclasses.dataclass(frozen=True)
class Dealt:
    """Values that games are dealt with from iteration ``first`` on; ``done`` were finished then."""

    first: int
    done: int
    values: tuple[float, ...]


class Course:
    """Where a tuning stands, folded from results; ``points`` are a game's, None without one."""

    def __init__(self, tuning: Tuning, seed: str, points: Callable[[int], float | None]) -> None:
        """Start at the beginning."""
        self.values = tuning.start
        self.dealt: list[Dealt] = []  # in the order of their first iteration
        self._tuning, self._seed, self._points = tuning, seed, points
        self._scores: dict[int, float] = {}  # by finished iteration, in the order of their ends
        self._left: dict[int, int] = {}  # games without a result, of iterations that have begun

    @property
    def done(self) -> int:
        """Return how many iterations are finished."""
        return len(self._scores)

    @property
    def due(self) -> bool:
        """Say whether later games should be dealt with the present values."""
        done_at_deal = self.dealt[-1].done if self.dealt else 0
        every = math.ceil(self._tuning.iterations / VALUES)
        return abs(self.done - done_at_deal) >= every and self.done < self._tuning.iterations

    def add(self, game: int) -> None:
        """Take a game that has got a result."""
        iteration = self._tuning.iteration(game)
        games = self._tuning.games_of(iteration)
        left = self._left.get(iteration, len(games)) - 1
        self._left[iteration] = left
        if left:
            return
        del self._left[iteration]
        score = sum(2 * (self._points(each) or 0.0) - 1 for each in games)
        self._scores[iteration] = score
        self.values = self._tuning.stepped(self.values, self._seed, iteration, score)

    def aside(self, games: Iterable[int]) -> None:
        """Take back games that had results: what came of their iterations, too."""
        again = False
        for game in games:
            iteration = self._tuning.iteration(game)
            again |= self._scores.pop(iteration, None) is not None
            # of a finished iteration no number is kept: none of its games is left
            self._left[iteration] = self._left.get(iteration, 0) + 1
            if self._left[iteration] == len(self._tuning.games_of(iteration)):
                del self._left[iteration]
        if again:
            self.values = self._tuning.start
            for iteration, score in self._scores.items():
                self.values = self._tuning.stepped(self.values, self._seed, iteration, score)

    def take(self, data: Mapping[str, Any]) -> None:
        """Take values that are dealt from now on."""
        dealt = Dealt(data["first"], data["done"], tuple(data["values"]))
        while self.dealt and self.dealt[-1].first >= dealt.first:
            self.dealt.pop()  # no game that counts was dealt with them
        self.dealt.append(dealt)

    def kept(self) -> Iterator[tuple[int, str]]:
        """Yield what games are dealt with, by first iteration, as the ledger keeps it."""
        for dealt in self.dealt:
            facts = {"first": dealt.first, "done": dealt.done, "values": list(dealt.values)}
            yield dealt.first, contract.dumps(facts)

    def rows(self) -> Iterator[Row]:
        """Yield where each parameter stands."""
        at = min(self.done + 1, self._tuning.iterations)
        for parameter, value in zip(self._tuning.parameters, self.values, strict=True):
            c, rate = self._tuning.move(parameter, at), self._tuning.rate(parameter, at)
            yield Row(parameter, value, c, rate)

    def as_json(self, most: int = VALUES) -> dict[str, Any]:
        """Return where tuning stands, for programs, with the way that it has gone.

        The way has about so many points at most.
        """
        every = math.ceil(len(self.dealt) / most) or 1
        way = self.dealt[every - 1 :: every]
        return {
            "iterations": self._tuning.iterations,
            "done": self.done,
            "pairs": self._tuning.pairs,
            "parameters": [row.as_json() for row in self.rows()],
            "course": {
                "done": [0, *(dealt.done for dealt in way), self.done],
                "values": [self._tuning.start, *(dealt.values for dealt in way), self.values],
            },
        }

    def options(self) -> str:
        """Return the values as ``--options`` takes them."""
        return " ".join(f"{row.parameter.name}={row.said}" for row in self.rows())


@dataclasses.dataclass(frozen=True)
class Row:
    """A parameter, its value now, and c and R of the next iteration."""

    parameter: Parameter
    value: float
    c: float
    rate: float

    @property
    def said(self) -> str:
        """Return the value as the engine would be told it."""
        return self.parameter.said(self.value)

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        parameter = self.parameter
        return {
            "name": parameter.name,
            "value": self.value,
            "said": self.said,
            "start": parameter.start,
            "min": parameter.least,
            "max": parameter.most,
            "c": self.c,
            "c_end": parameter.c_end,
            "r": self.rate,
            "r_end": parameter.r_end,
        }


def values(text: str | None) -> tuple[float, ...] | None:
    """Read what the ledger keeps of dealt values, None for a tuning's first ones."""
    return None if text is None else tuple(contract.loads(text)["values"])


def parameters(text: str, where: str) -> tuple[Parameter, ...]:
    """Read a parameter a line, in OpenBench's words or in fishtest's (without a type: int).

    Raise ``UsageError``, which names the line.
    """
    listed = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0]
        if words.strip():
            try:
                listed.append(_parameter(words))
            except ValueError as error:
                raise errors.UsageError(f"{where}: line {number}: {why(error)}") from None
    if not listed:
        raise errors.UsageError(f"{where}: found no parameter; allowed, one a line: {LINE}")
    return tuple(listed)


def _parameter(line: str) -> Parameter:
    words = [word.strip() for word in line.strip().rstrip(",").split(",")]
    if len(words) == 6:
        words.insert(1, "int")
    if len(words) != 7 or words[1] not in {"int", "float"}:
        raise ValueError(f"found {line.strip()!r}; allowed: {LINE}")
    fields = ("start", "least", "most", "c_end", "r_end")
    numbers = dict(zip(fields, map(float, words[2:]), strict=True))
    return Parameter(name=words[0], whole=words[1] == "int", **numbers)


def why(error: ValueError) -> str:
    """Return what is wrong with a parameter or a tuning."""
    if not isinstance(error, pydantic.ValidationError):
        return str(error)
    return ": ".join(filter(None, contract.first_wrong(error)))
