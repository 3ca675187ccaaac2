"""A test match: its games are numbers, and a number is all it takes to write an order.

One engine is tested against one other, or against several in turn (a gauntlet). Games
2p-1 and 2p are pair p: the same opponent and opening, colours swapped. Invariants: an
order is a function of specification and number alone, so any worker writes the same
one (of a tuning: of its iteration's values, too); consecutive pairs go to consecutive opponents,
and all opponents meet an opening before the next one is dealt.

Numbers above ``LAST_GAME`` are checks: short games of a fixed number of nodes a move, which never
count. The same builds play them alike on any machine, in processes of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pydantic

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.contract.remote import SourceBuild  # `remote` is a field's name here
from orchestrator.testmatch import openings as testmatch_openings
from orchestrator.testmatch import spsa

OVERHEAD_MB = 64  # MB: what an engine needs beside its hash
SCALE = (0.25, 4.0)  # of a clock: beyond, a machine is another kind of machine
HASH_OPTIONS = ("hash", "memory")
BUILDERS = "(builds-from-source)"  # where remote workers build: no box's name, so no lane has it
LAST_GAME = 10_000_000  # no match has more; scripts of the ledger know the number, too
CHECKS = 32  # checks of a match: enough that nobody's answers are soon known to all
CHECK_MOVES = 8  # of each side in a check, behind its book: a second's work shows the build


def is_check(game: int) -> bool:
    """Say whether a number is a check's: it shows a worker's builds, and is no game that counts."""
    return game > LAST_GAME


class Spec(contract.Message):
    """What is played: ``engines`` begins with the one that is tested."""

    schema_version: int = contract.SCHEMA
    id: str
    engines: tuple[contract.EngineSpec, ...] = pydantic.Field(min_length=2)
    time_control: contract.TimeControl
    games: int = pydantic.Field(ge=1, le=LAST_GAME)
    openings: tuple[contract.Opening, ...] = (contract.Opening(),)
    seed: str = ""
    limits: contract.Limits = contract.Limits(free=True)
    timeouts: contract.Timeouts = contract.Timeouts()
    variant: Literal["standard", "fischerandom"] = "standard"
    adjudication: contract.Adjudication = contract.Adjudication()
    reference_nps: int = pydantic.Field(default=0, ge=0)  # of ``base``; 0: clocks stay as they are
    remote: bool = False  # remote workers may play it, too: its engines' files are pinned
    builds: tuple[SourceBuild | None, ...] = ()  # of ``engines``, for workers to build
    check_nodes: int = pydantic.Field(default=0, ge=0)  # a move in checks; 0: there are none
    tuning: spsa.Tuning | None = None  # of the engine, which plays against itself

    @pydantic.model_validator(mode="after")
    def _tunes_one(self) -> Spec:
        if self.tuning is not None and (self.opponents, self.games) != (1, self.tuning.games):
            raise ValueError(f"a tuning has {self.tuning.games} games of an engine against itself")
        return self

    def copied(self, name: str, changes: Mapping[str, Any]) -> Spec:
        """Return the same match under another name, but for some fields; raise ``UsageError``."""
        try:
            return Spec.model_validate({**dict(self), **changes, "id": name})
        except pydantic.ValidationError as error:
            _, why = contract.first_wrong(error)
            why = why.removeprefix("Value error, ")
            raise errors.UsageError(f"{self.id}: {why}") from None

    @property
    def opponents(self) -> int:
        """Return how many engines the tested one meets."""
        return len(self.engines) - 1

    @property
    def base(self) -> str:
        """Return the SHA-256 of the first opponent's program, '' where none is pinned.

        How fast it searches on a machine is how fast that machine is (fishtest and OpenBench
        measure the same build for this).
        """
        return self.engines[1].checksums.get(self.engines[1].command[0], "")

    def scale(self, nps: int) -> float:
        """Return the factor of all clocks where ``base`` searches ``nps`` nodes a second.

        1 where either speed is not known.
        """
        if not nps or not self.reference_nps:
            return 1.0
        return min(SCALE[1], max(SCALE[0], self.reference_nps / nps))

    def for_workers(self) -> Spec:
        """Return the specification with engines that workers build pinned by what is built."""
        builds = (*self.builds, *[None] * len(self.engines))
        engines = [
            engine if build is None else built_elsewhere(engine, build)
            for engine, build in zip(self.engines, builds, strict=False)
        ]
        return self.model_copy(update={"engines": tuple(engines)})

    @property
    def checks(self) -> int:
        """Return how many checks there are: none where engines do not repeat their moves."""
        repeats = self.threads == 1 and all(engine.protocol == "uci" for engine in self.engines)
        return CHECKS if self.check_nodes and repeats else 0

    def is_check(self, game: int) -> bool:
        """Say whether a game's number is that of a check."""
        return is_check(game)

    def has(self, game: int) -> bool:
        """Say whether there is such a game, or such a check."""
        return 1 <= game <= self.games or LAST_GAME < game <= LAST_GAME + self.checks

    @property
    def threads(self) -> int:
        """Return the cores a game needs: one side thinks at a time, elsewhere on cores there."""
        here = [engine for engine in self.engines if not engine.box]
        return max((_number(engine, ("threads", "cores")) or 1 for engine in here), default=1)

    @property
    def memory_mb(self) -> int:
        """Return the memory a game needs, by the engines' hashes; a box has its own."""
        each = [
            (0 if engine.box else _number(engine, HASH_OPTIONS) or 16) + OVERHEAD_MB
            for engine in self.engines
        ]
        return each[0] + max(each[1:])

    @property
    def boxes(self) -> tuple[str, ...]:
        """Return the other machines on which engines play.

        One whose engines nobody has built here is for those that build them: lanes have none.
        """
        boxes = {engine.box for engine in self.engines if engine.box}
        built = zip(self.engines, self.builds, strict=False)
        if any(build is not None and not is_built_here(engine, build) for engine, build in built):
            boxes.add(BUILDERS)
        return tuple(sorted(boxes))

    def opponent(self, game: int) -> int:
        """Return the position in ``engines`` of a game's opponent."""
        return 1 + (game - 1) // 2 % self.opponents

    def white_is_tested(self, game: int) -> bool:
        """Say who has White: the tested engine begins each pair."""
        return game % 2 == 1

    @property
    def lots(self) -> str:
        """Return what a tuning's lots are drawn from."""
        return self.seed or self.id

    def order(
        self, game: int, nps: int = 0, values: Sequence[float] | None = None
    ) -> contract.GameOrder:
        """Write the order of a game, from 1 to ``games``, on a machine of this speed.

        ``values`` are those that a tuning's iteration is dealt with; without them the first ones.
        """
        if not self.has(game):
            raise ValueError(f"{self.id}: there is no game {game} of {self.games}")
        if self.is_check(game):
            return self._check(game)
        pair = self._sides(game, values)
        factor = self.scale(nps)
        paced = [_paced(engine, factor) for engine in pair]
        white, black = paced if self.white_is_tested(game) else paced[::-1]
        return contract.GameOrder(
            season="test",
            season_name="Test match",
            event=self.id,
            event_name=self.id,
            game=f"{self.id}-{game}",
            number=game,
            round=str(game),
            white=white,
            black=black,
            time_control=self.time_control.scaled(factor),
            opening=self._opening((game - 1) // 2 // self.opponents),
            limits=self.limits,
            timeouts=self.timeouts,
            variant=self.variant,
            adjudication=self.adjudication,
            journaled=False,  # a test match keeps games, not plies: Redis carries results only
        )

    def _sides(
        self, game: int, values: Sequence[float] | None
    ) -> tuple[contract.EngineSpec, contract.EngineSpec]:
        """Return the tested engine and its opponent in a game."""
        pair = self.engines[0], self.engines[self.opponent(game)]
        if self.tuning is None:
            return pair
        iteration = self.tuning.iteration(game)
        sides = self.tuning.sides(values or self.tuning.start, self.lots, iteration)
        first, second = (
            engine.model_copy(update={"options": {**engine.options, **options}})
            for engine, options in zip(pair, sides, strict=True)
        )
        return first, second

    def _check(self, game: int) -> contract.GameOrder:
        """Write the order of a check: as of a game, on nodes, by engines that know nothing yet."""
        number = game - LAST_GAME
        nodes = {"time_control": contract.TimeControl(nodes=self.check_nodes)}
        engines = tuple(engine.model_copy(update=nodes) for engine in self.engines)
        same = {"engines": engines, "games": CHECKS, "tuning": None, **nodes}
        order = self.model_copy(update=same).order(number)
        moves = CHECK_MOVES + len(order.opening.moves) // 2
        own = {
            # An event of its own makes processes of its own: what was kept of games is not used.
            "event": f"{self.id}-check-{number}",
            "game": f"{self.id}-{game}",
            "number": game,
            "adjudication": contract.Adjudication(max_moves=moves),
        }
        return order.model_copy(update=own)

    def _opening(self, turn: int) -> contract.Opening:
        """Deal openings round by round, each round in an order of its own."""
        rounds, at = divmod(turn, len(self.openings))
        if not self.seed:
            return self.openings[at]
        # Fisher and Yates for one index at a time would cost a book a game: a seeded
        # step that shares no divisor with the length visits each opening once as well.
        count = len(self.openings)
        start, step = (
            testmatch_openings.draw(f"{self.seed}/{rounds}/{what}") for what in ("start", "step")
        )
        return self.openings[(start + at * _coprime(step, count)) % count]


def is_built_here(engine: contract.EngineSpec, build: SourceBuild) -> bool:
    """Say whether an engine's program is on the machine where its match was made."""
    return engine.checksums.get(engine.command[0]) != build.id


def built_elsewhere(engine: contract.EngineSpec, build: SourceBuild) -> contract.EngineSpec:
    """Return an engine whose program is pinned by its build: compilers differ."""
    pinned = {"command": (build.program,), "checksums": {build.program: build.id}}
    return engine.model_copy(update={**pinned, "directory": None})


def _paced(engine: contract.EngineSpec, factor: float) -> contract.EngineSpec:
    if engine.time_control is None:
        return engine
    return engine.model_copy(update={"time_control": engine.time_control.scaled(factor)})


def _coprime(step: int, count: int) -> int:
    """Return the first number from ``step`` on, below ``count``, that visits all indices."""
    for offset in range(count):
        wanted = (step + offset) % count
        if wanted and math.gcd(wanted, count) == 1:
            return wanted
    return 1


def _number(engine: contract.EngineSpec, names: tuple[str, ...]) -> int:
    """Return the value of the first option of these names, 0 without one."""
    for name, value in engine.options.items():
        if name.lower() in names and str(value).isdigit():
            return int(value)
    return 0
