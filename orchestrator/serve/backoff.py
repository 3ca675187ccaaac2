"""When ``serve`` rings a hall: at once for news, then with growing waits until a game is claimed.

A ring may be lost or heard twice without harm, so the last wait is repeated without end.
``doorbell`` rings; what the hall does then is in
``worker_cpu.worker.hall_worker``.
"""

from __future__ import annotations

import dataclasses

# Waits for a claim, in seconds: the last one goes on, as rings may be lost. The first are short: a
# ring is lost, too, when the worker's child was still busy with what was before it.
RING_SECONDS = (0.1, 0.3, 1.0, 2.0, 5.0)


@dataclasses.dataclass
class Bell:
    """One hall's bell, as far as it has been rung since there was something new."""

    rung: float = 0.0  # monotonic second of the last ring
    rings: int = 0  # since there has been something new to ring for

    def news(self) -> None:
        """Ring at once: there is something new."""
        self.rings = 0

    def rings_at(self, now: float) -> bool:
        """Say whether to ring at monotonic second ``now``, and count the ring."""
        if self.wait(now) > 0:
            return False
        self.rung, self.rings = now, self.rings + 1
        return True

    def wait(self, now: float) -> float:
        """Return the seconds until the next ring, as long as there is something to ring for."""
        if not self.rings:
            return 0.0
        pause = RING_SECONDS[min(self.rings, len(RING_SECONDS)) - 1]
        return max(0.0, self.rung + pause - now)
