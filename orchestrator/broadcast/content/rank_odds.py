"""The paths of rating list and forecasts in the library, and what precedes the first ones."""

from __future__ import annotations

from typing import Any, Final

RATINGS: Final = "ratings"


def forecast(season: str) -> str:
    """Return where a season's forecast stands."""
    return f"seasons/{season}/forecast"


def awaited(season: str) -> dict[str, dict[str, Any]]:
    """Return what is told until the first ones are made."""
    return {
        RATINGS: {"absent": "The rating list has not been made yet.", "ratings": []},
        forecast(season): {"absent": "The forecast has not been made yet.", "runs": 0},
    }
