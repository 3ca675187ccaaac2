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
from orchestrator.season.spec import parsers

DEMO_BOOK: Final = launch.SEASONS / "books" / "demo.pgn"
PLIES: Final = 8  # of the demo book's lines, as in the demo season


def require_waiting(season: state.SeasonState, what: str) -> None:
    """Raise ``RefusedError`` while a season plays: ``what`` is done when no game waits."""
    if season.running is not None or season.ready_game() is not None:
        raise errors.RefusedError(
            f"{season.launched.id} plays; {what} while it is at a gate, paused or held"
        )


def control(text: str) -> contract.TimeControl:
    """Read ``--tc``; raise ``UsageError``."""
    try:
        return contract.TimeControl.parse(text)
    except ValueError:
        found = f"--tc: found {text!r}; allowed: {parsers.TIME_CONTROL}"
        raise errors.UsageError(found) from None
