"""The operator's settings for rating list and forecast."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from orchestrator import contract

RUNS: Final = 200  # seasons a forecast: a chance of one half is right within 7 %, in seconds


@dataclasses.dataclass(frozen=True)
class Settings:
    """How much is computed, and how humbly.

    ``runs`` of 0 forecasts nothing. ``families`` names the family of a version (S16-14d).
    A ``humble`` process runs when nobody else wants the processor.
    """

    runs: int = RUNS
    families: Mapping[str, str] = dataclasses.field(default_factory=dict)
    humble: bool = True

    def encode(self) -> str:
        """Return the settings as text, for a process' command line."""
        return contract.dumps(
            {"runs": self.runs, "families": dict(self.families), "humble": self.humble}
        )

    @classmethod
    def decode(cls, text: str) -> Settings:
        """Read what ``encode`` wrote."""
        return cls(**contract.loads(text))
