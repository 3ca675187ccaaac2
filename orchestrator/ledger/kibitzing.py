"""Kibitzers in the ledger: who sits at which desk, and what they found in a game's positions.

A kibitzer is an engine on a host of its own that follows the game in flight and tells
spectators what it thinks (decision 026). Invariants:

* nothing of it is journaled and nothing is decided by it; all of it ends by time;
* a desk is one kibitzer's at a time; one that is gone frees it within ``HOLD_MS``;
* what was found is kept by attempt and ply: the last word on a position stands.
"""

from __future__ import annotations

from typing import Final

DESKS: Final = 2  # liveeval.json and liveeval1.json: TCEC's viewers know no third
HOLD_MS: Final = 30_000  # ms: several of the kibitzer's beats
LEFT_MS: Final = 7 * 3600 * 1000  # ms: beyond the 6 h in which a kibitzer that is gone is missed
KEPT_MS: Final = 3 * 24 * 3600 * 1000  # ms: feeds can be made again for a long weekend
