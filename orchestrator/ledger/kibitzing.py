"""Kibitzers in the ledger: who sits at which desk, and what they found in a game's positions.

A kibitzer is an engine on a host of its own that follows the game in flight and tells
spectators what it thinks (decision 026). Invariants:

* nothing of it is journaled and nothing is decided by it; all of it ends by time;
* a desk is one kibitzer's at a time; one that is gone frees it within ``HOLD_MS``;
* what was found is kept by attempt and ply: the last word on a position stands.
"""

from __future__ import annotations

from typing import Final, Protocol

DESKS: Final = 2  # liveeval.json and liveeval1.json: TCEC's viewers know no third
HOLD_MS: Final = 30_000  # ms: several of the kibitzer's beats
LEFT_MS: Final = 7 * 3600 * 1000  # ms: beyond the 6 h in which a kibitzer that is gone is missed
KEPT_MS: Final = 3 * 24 * 3600 * 1000  # ms: feeds can be made again for a long weekend


class Kibitzing(Protocol):
    """The verbs of kibitzers; any of them may raise ``LedgerUnreachableError``."""

    def take_desk(self, desk: int, holder: str) -> str:
        """Sit down at a desk, or stay there; return who has it now."""

    def leave_desk(self, desk: int, holder: str) -> None:
        """Free a desk on purpose; no error where it is somebody else's."""

    def left(self) -> frozenset[int]:
        """Return the desks that were freed on purpose, and that nobody has taken since."""

    def kibitzers(self) -> dict[int, str]:
        """Return who sits at which desk."""

    def tell(self, desk: int, attempt: str, ply: int, payload: str) -> None:
        """Write what was found in a position, in place of what was found there before."""

    def marks(self, attempt: str) -> tuple[int, ...]:
        """Return for each desk how often it has told something of an attempt."""

    def comments(self, desk: int, attempt: str) -> dict[int, str]:
        """Return what was told of an attempt: ply to payload."""
