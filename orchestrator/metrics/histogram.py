"""A histogram that counts in memory and is written out cumulatively."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from orchestrator.metrics import families


class Histogram:
    """Counts of values up to fixed bounds, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """Start without a value; ``bounds`` ascend."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """Return how many values were counted."""
        return sum(self._counts)

    def buckets(self) -> families.Buckets:
        """Return the count of values up to each bound, the last without one."""
        seen, cumulative = 0, []
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            seen += count
            cumulative.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(seen)))
        return cumulative
