"""Which engines may enter an event by two ways at once, before anything is played.

An engine takes one place of a ranking, so promotions of different places exclude each
other (N1 stages 2a and 2b both come from stage 1 and meet in stage 3). The promotions
must form no circle.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.season.fold import plan
from orchestrator.season.spec import model


class Clash(NamedTuple):
    """An engine that could enter an event twice, the second time from ``source``."""

    engine: str
    source: str


class _Way(NamedTuple):
    """One way into an event: listed (no source), or from some places of a source."""

    source: str | None
    places: frozenset[int] = frozenset()


class Routes:
    """The ways into the events of a season."""

    def __init__(self, season: model.Season, engines: Sequence[str]) -> None:
        """Prepare to answer for a roster."""
        self._season, self._engines = season, engines

    def clash(self, event_id: str) -> Clash | None:
        """Return an engine with two ways into an event at once, None where nobody has."""
        ways = self._ways(event_id)
        for number, second in enumerate(ways):
            for first in ways[:number]:
                both = self._by_both(event_id, first, event_id, second)
                if both:
                    return Clash(min(both), second.source or event_id)
        return None

    def _ways(self, event_id: str) -> list[_Way]:
        promoting = [
            _Way(event.id, frozenset(promotion.places))
            for event in self._season.events
            for promotion in event.promote
            if promotion.to == event_id
        ]
        return [_Way(None), *promoting]

    @functools.cache  # noqa: B019 - the object lives as long as one check of a file
    def possible(self, event_id: str) -> frozenset[str]:
        """Return everybody who might play an event."""
        own = plan.listed(self._season.event(event_id), self._engines)
        sources = (way.source for way in self._ways(event_id) if way.source is not None)
        return frozenset(own).union(*map(self.possible, sources))

    @functools.cache  # noqa: B019 - as above
    def _in_both(self, event: str, other: str) -> frozenset[str]:
        """Return who might play two different events."""
        return frozenset().union(*self._pairs_of_ways(event, other))

    def _pairs_of_ways(self, event: str, other: str) -> Iterator[frozenset[str]]:
        for first in self._ways(event):
            for second in self._ways(other):
                yield self._by_both(event, first, other, second)

    def _by_both(self, event: str, first: _Way, other: str, second: _Way) -> frozenset[str]:
        """Return who might enter one event by a way and the other event by another way."""
        if first.source is None and second.source is None:
            return self._listed(event) & self._listed(other)
        if first.source == second.source:
            return self.possible(first.source or event) if first.places & second.places else _NOBODY
        if first.source is None or second.source is None:
            listed, way = (event, second) if first.source is None else (other, first)
            return self._listed(listed) & self.possible(way.source or listed)
        if first.source == other or second.source == event:
            return self.possible(first.source if first.source == other else second.source)
        return self._in_both(*sorted((first.source, second.source)))

    def _listed(self, event_id: str) -> frozenset[str]:
        return frozenset(plan.listed(self._season.event(event_id), self._engines))


_NOBODY: frozenset[str] = frozenset()
