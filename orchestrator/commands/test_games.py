"""What commands share that play games which count nowhere: a season that waits, clock, book.

The openings are those of the demo book: a test tells nobody what the season's games will
begin with.
"""

from __future__ import annotations

from typing import Final

from orchestrator import contract
from orchestrator.commands import launch
from orchestrator.common import errors
from orchestrator.season.fold import state

DEMO_BOOK: Final = launch.SEASONS / "books" / "demo.pgn"
TIME_CONTROL: Final = (
    "seconds+seconds such as 8+0.08, or with units: 2m+500ms; the time above 0, at most 10 days"
)
PLIES: Final = 8  # of the demo book's lines, as in the demo season


def require_waiting(season: state.SeasonState, what: str) -> None:
    """Raise ``RefusedError`` while a season plays: ``what`` is done when no game waits."""
    if season.running is not None or season.ready_game() is not None:
        raise errors.RefusedError(
            f"{season.launched.id} plays; {what} while it is at a gate, paused or held"
        )


def control(text: str) -> contract.TimeControl:
    """Read ``--tc``: seconds, as engine authors write it; raise ``UsageError``."""
    try:
        return contract.TimeControl.parse(text, "s")
    except ValueError:
        raise errors.UsageError(f"--tc: found {text!r}; allowed: {TIME_CONTROL}") from None
