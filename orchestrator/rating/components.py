"""Which engines can be compared: those whom wins and draws connect both ways.

A win leads from loser to winner, a draw both ways. Ratings of two engines are finite
against each other only inside a strongly connected component of that graph (Tarjan).
Whether there is but one is asked first: a few steps over all pairs at a time say so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from orchestrator.rating import logistic, pairings


def connected(counted: pairings.Pairings) -> list[list[int]]:
    """Return the components, each with its engines in order of appearance."""
    if is_connected(counted):
        return [list(range(len(counted.engines)))]
    return [sorted(part) for part in _Search(_beaten_by(counted)).run()]


def is_connected(counted: pairings.Pairings) -> bool:
    """Say whether all engines lie in one component: the first one reaches all, and all it."""
    loser, winner = _wins(counted)
    size = len(counted.engines)
    return _reaches_all(loser, winner, size) and _reaches_all(winner, loser, size)


def _reaches_all(source: logistic.Ints, target: logistic.Ints, size: int) -> bool:
    reached = np.zeros(size, dtype=np.bool_)
    reached[:1] = True
    while True:
        new = target[reached[source] & ~reached[target]]
        if not len(new):
            return size > 0 and bool(reached.all())
        reached[new] = True


def _wins(counted: pairings.Pairings) -> tuple[logistic.Ints, logistic.Ints]:
    """Return from whom and to whom the wins and draws lead."""
    won, lost = counted.taken > 0, counted.taken < counted.games
    loser = np.concatenate([counted.black[won], counted.white[lost]])
    winner = np.concatenate([counted.white[won], counted.black[lost]])
    return loser, winner


def _beaten_by(counted: pairings.Pairings) -> list[list[int]]:
    """Return, for each engine, who has taken something from it."""
    edges: list[list[int]] = [[] for _ in counted.engines]
    for loser, winner in zip(*(ends.tolist() for ends in _wins(counted)), strict=True):
        edges[loser].append(winner)
    return edges


class _Search:
    """Tarjan's search without recursion: fields of thousands of engines are deep."""

    def __init__(self, edges: list[list[int]]) -> None:
        self._edges = edges
        self._index: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._stack: list[int] = []
        self._open: set[int] = set()

    def run(self) -> Iterator[list[int]]:
        """Yield the components."""
        for root in range(len(self._edges)):
            if root not in self._index:
                yield from self._from(root)

    def _from(self, root: int) -> Iterator[list[int]]:
        path = [(root, self._enter(root))]
        while path:
            node, nexts = path[-1]
            step = next(nexts, None)
            if step is None:
                path.pop()
                if path:
                    self._lower(path[-1][0], self._low[node])
                if self._low[node] == self._index[node]:
                    yield self._close(node)
            elif step not in self._index:
                path.append((step, self._enter(step)))
            elif step in self._open:
                self._lower(node, self._index[step])

    def _enter(self, node: int) -> Iterator[int]:
        self._index[node] = self._low[node] = len(self._index)
        self._stack.append(node)
        self._open.add(node)
        return iter(self._edges[node])

    def _lower(self, node: int, low: int) -> None:
        self._low[node] = min(self._low[node], low)

    def _close(self, node: int) -> list[int]:
        part = [self._stack.pop()]
        while part[-1] != node:
            part.append(self._stack.pop())
        self._open.difference_update(part)
        return part
