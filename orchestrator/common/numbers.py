"""Numbers on command lines: click takes ``nan`` and ``inf`` for numbers, and no command does.

Behind such a word a list of ratings would be one of ``nan``, and a simulation would not end.
"""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.types.FloatParamType):
    """Any number, whole or not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number that a word is; refuse one that nothing can be counted with."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number that can be counted with.", param, ctx)
        return number


class NumberRange(Number, click.FloatRange):
    """A number within bounds, as ``click.FloatRange`` has them."""
