"""The time an engine has, as rule texts and PGN write it."""

from __future__ import annotations

import re
from typing import Self

import pydantic

from orchestrator.contract import codec

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_LONGEST_MS = 10 * 86_400_000  # ms: the kernel waits for an answer at most 24 days
_LIMIT_WORDS = frozenset({"nodes", "depth"})


class TimeControl(codec.Message):
    """The time an engine has, in milliseconds; and its search limits, for tests.

    Either a clock (``base_ms``, plus ``increment_ms`` a move, and ``base_ms`` again after
    each ``moves`` moves), or a fixed time a move (``move_ms``), or no clock at all; a
    limit by ``depth`` or ``nodes`` may stand beside each, and has to where no clock is.
    """

    base_ms: int = pydantic.Field(default=0, ge=0, le=_LONGEST_MS)
    increment_ms: int = pydantic.Field(default=0, ge=0, le=_LONGEST_MS)
    moves: int | None = pydantic.Field(default=None, ge=1)
    move_ms: int | None = pydantic.Field(default=None, ge=1, le=_LONGEST_MS)
    depth: int | None = pydantic.Field(default=None, ge=1)
    nodes: int | None = pydantic.Field(default=None, ge=1)

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.move_ms is not None and (self.base_ms or self.increment_ms or self.moves):
            raise ValueError("a fixed time a move has no base time, increment or period")
        if self.move_ms is not None or self.base_ms:
            return self
        if self.increment_ms or self.moves:
            raise ValueError("give a base time above 0")
        if self.depth is None and self.nodes is None:
            raise ValueError("give a clock, or a limit by depth or nodes")
        return self

    @classmethod
    def parse(cls, text: str, unit: str = "m") -> TimeControl:
        """Read ``30+5``: minutes plus seconds, as the rule texts write it.

        With ``unit="s"`` it is seconds plus seconds, as engine authors write it. Units may be
        given (``2s+50ms``, ``1.5m+1s``). ``40/60+0.5`` is 40 moves in 60 minutes, ``5s/move`` a
        fixed time, ``inf`` no clock; ``nodes=N`` and ``depth=N`` may follow behind a space, or
        stand alone. Raise ``ValueError``.
        """
        *parts, last = ["", *text.replace("+ ", "+").replace(" +", "+").split()]
        limits: dict[str, int] = {}
        while (key := last.partition("=")[0]) in _LIMIT_WORDS and key not in limits:
            limits[key] = int(last.partition("=")[2])
            last = parts.pop() if parts else ""
        if any(parts):
            raise ValueError(f"not a time control: {text!r}")
        try:
            return cls.model_validate(_clock(last, unit) | limits)
        except pydantic.ValidationError as error:  # its own words are a page for programmers
            raise ValueError(codec.first_wrong(error)[1].removeprefix("Value error, ")) from None

    @property
    def clocked(self) -> bool:
        """Say whether an engine's thinking time is limited at all."""
        return bool(self.base_ms or self.move_ms)

    @property
    def start_ms(self) -> int:
        """Return what the clock shows before the first move, 0 without a clock."""
        return self.move_ms or self.base_ms

    def nominal_ms(self, moves: int) -> int:
        """Return the time that one side has for so many moves, 0 without a clock."""
        if self.move_ms is not None:
            return moves * self.move_ms
        periods = max(1.0, moves / self.moves) if self.moves else 1.0
        return round(self.base_ms * periods) + moves * self.increment_ms

    def scaled(self, factor: float) -> TimeControl:
        """Return the control with all its times multiplied; search limits stay."""
        times = {"base_ms": self.base_ms, "increment_ms": self.increment_ms}
        changes: dict[str, int] = {name: round(ms * factor) for name, ms in times.items()}
        if self.base_ms:
            changes["base_ms"] = max(1, changes["base_ms"])
        if self.move_ms is not None:
            changes["move_ms"] = max(1, round(self.move_ms * factor))
        return self.model_copy(update=changes)

    @property
    def spoken(self) -> str:
        """Say the control with its units: ``30 min + 5 s``, ``40 moves in 90 s``."""
        parts = []
        if self.move_ms is not None:
            parts.append(f"{_span(self.move_ms)} a move")
        elif self.base_ms:
            period = f"{self.moves} moves in " if self.moves else ""
            increment = f" + {_span(self.increment_ms)}" if self.increment_ms else ""
            parts.append(f"{period}{_span(self.base_ms)}{increment}")
        parts += [f"{self.nodes} nodes a move"] if self.nodes else []
        parts += [f"depth {self.depth}"] if self.depth else []
        return ", ".join(parts)

    def __str__(self) -> str:
        """Write the control as PGN's TimeControl tag does: ``40/3600+0.5``, ``5/move``.

        Seconds; ``-`` stands for no clock, search limits follow behind a space.
        """
        period = f"{self.moves}/" if self.moves else ""
        clock = f"{period}{self.base_ms / 1000:.12g}+{self.increment_ms / 1000:.12g}"
        if self.move_ms is not None:
            clock = f"{self.move_ms / 1000:.12g}/move"
        elif not self.base_ms:
            clock = "-"
        limits = {"nodes": self.nodes, "depth": self.depth}
        limit_texts = [f"{name}={limit}" for name, limit in limits.items() if limit is not None]
        return " ".join([clock, *limit_texts])


def _clock(text: str, unit: str) -> dict[str, int]:
    if text in ("", "inf", "-"):
        return {}
    if text.endswith("/move"):
        return {"move_ms": _duration_ms(text.removesuffix("/move"), "s")}
    moves, slash, rest = text.rpartition("/")
    base, plus, increment = rest.partition("+")
    clock = {
        "base_ms": _duration_ms(base, unit),
        "increment_ms": _duration_ms(increment, "s") if plus else 0,
    }
    return clock | ({"moves": int(moves)} if slash else {})


def _duration_ms(text: str, unit: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}")
    return round(float(match[1]) * _UNIT_MS[match[2] or unit])


def _span(ms: int) -> str:
    return f"{ms / 1000:.12g} s" if ms % 60_000 or not ms else f"{ms // 60_000} min"
