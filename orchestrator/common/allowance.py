"""How much one client may send: an allowance that fills up again with time (token bucket)."""

from __future__ import annotations

import time


class Allowance:
    """So much a second, and so much at once after a silence; messages or bytes alike."""

    def __init__(self, a_second: float, at_once: float) -> None:
        """Begin with all of ``at_once``."""
        self._a_second, self._at_once = a_second, at_once
        self._left, self._filled = at_once, time.monotonic()

    def spent(self) -> bool:
        """Say whether not one is left."""
        self._fill()
        return self._left < 1

    def take(self, amount: float = 1.0) -> bool:
        """Use some of it; return whether there was enough. What is refused costs nothing."""
        self._fill()
        if self._left < amount:
            return False
        self._left -= amount
        return True

    def _fill(self) -> None:
        now = time.monotonic()
        self._left = min(self._at_once, self._left + (now - self._filled) * self._a_second)
        self._filled = now
