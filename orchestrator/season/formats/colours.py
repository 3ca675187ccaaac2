"""Which colour is due to a player of a Swiss, and what else of it a pairing rests on.

Article numbers are those of FIDE Handbook C.04.3 (2026).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Final

ABSOLUTE, STRONG, _MILD, _NO_PREFERENCE = 3, 2, 1, 0  # how strongly a colour is due
DOWN: Final = "down"
UP: Final = "up"


@dataclasses.dataclass(frozen=True)
class Player:
    """What a pairing rests on.

    ``number`` is the start number from 0; ``colours`` has w, b, or - for a bye, a round
    each; ``floats`` likewise ``down``, ``up`` or ''. Scores are half points.
    """

    number: int
    score: int = 0
    opponents: frozenset[int] = frozenset()
    colours: str = ""
    floats: tuple[str, ...] = ()
    had_bye: bool = False

    @functools.cached_property
    def played(self) -> str:
        """Return the colours of the games that were played."""
        return self.colours.replace("-", "")

    @functools.cached_property
    def difference(self) -> int:
        """Return games with White less games with Black."""
        return self.colours.count("w") - self.colours.count("b")

    @functools.cached_property
    def preference(self) -> str:
        """Return the colour that is due, '' before the first game (1.7)."""
        played = self.played
        if self.difference and (abs(self.difference) > 1 or played[-2:] not in {"ww", "bb"}):
            return "b" if self.difference > 0 else "w"
        return {"w": "b", "b": "w"}.get(played[-1:], "")

    @functools.cached_property
    def strength(self) -> int:
        """Return how strongly that colour is due."""
        played = self.played
        if abs(self.difference) > 1 or played[-2:] in {"ww", "bb"}:
            return ABSOLUTE
        if self.difference:
            return STRONG
        return _MILD if played else _NO_PREFERENCE

    def floated(self, way: str, ago: int) -> bool:
        """Say whether the player floated that way so many rounds ago."""
        return len(self.floats) >= ago and self.floats[-ago] == way


def white_is_first(higher: Player, lower: Player) -> bool:
    """Say whether the higher ranked of two players has White (5.2)."""
    wish, other = higher.preference, lower.preference
    if not wish and not other:
        return higher.number % 2 == 0  # 5.2.5: odd start numbers have White in round 1
    if wish != other:
        return wish == "w" if wish else other == "b"
    if _eager(higher) != _eager(lower):
        return (wish == "w") == (_eager(higher) > _eager(lower))
    for mine, theirs in zip(reversed(higher.played), reversed(lower.played), strict=False):
        if mine != theirs:
            return mine == "b"
    return wish == "w"


def _eager(player: Player) -> tuple[int, int]:
    absolute = player.strength == ABSOLUTE
    return player.strength, abs(player.difference) if absolute else 0
