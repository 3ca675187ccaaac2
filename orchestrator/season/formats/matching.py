"""Perfect matching of greatest weight in a general graph (Edmonds 1965, primal-dual).

Weights are whole numbers of any size, so that a whole list of criteria fits into one.
Time grows with the cube of the vertices. Trees grow from all free vertices at once; odd
circles of tight edges become blossoms, which take part as one node until their own
potential is used up. Potentials may become negative: every vertex must be matched.
"""

from __future__ import annotations

from collections.abc import Sequence

_FREE, _EVEN, _ODD = -1, 0, 1
_NONE = -1
Weights = Sequence[Sequence[int | None]]


def perfect(weights: Weights) -> list[int] | None:
    """Return the partner of each vertex, or None where no perfect matching exists.

    ``weights`` is symmetric; None means that two vertices cannot be matched.
    """
    if not weights:
        return []
    if len(weights) % 2:
        return None
    search = _Search(weights)
    while search.free():
        if not search.grow():
            return None
    return search.partners()


class _Search:
    """One search; nodes below ``n`` are vertices, the others blossoms.

    ``edge[x][y]`` is the tightest edge (vertex in x, vertex in y) between two nodes,
    ``match[x]`` the vertex outside that node x is matched to, ``parent[x]`` the vertex by
    which the tree reached an odd node, ``slack[x]`` the even vertex nearest to a node.
    """

    def __init__(self, weights: Weights) -> None:
        self.n = n = len(weights)
        self.size = size = 2 * n
        self.weights = weights
        self.near = [[v for v, w in enumerate(row) if w is not None] for row in weights]
        self.edge: list[list[tuple[int, int] | None]] = [[None] * size for _ in range(size)]
        for u, row in enumerate(weights):
            for v, weight in enumerate(row):
                if u != v and weight is not None:
                    self.edge[u][v] = (u, v)
        self.match: list[int] = [_NONE] * size
        self.top: list[int] = [*range(n), *[_NONE] * n]
        self.inside: list[list[int]] = [[] for _ in range(size)]
        self.holder = [[u if u == x else _NONE for u in range(n)] for x in range(size)]
        self.parent: list[int] = [_NONE] * size
        self.slack = [_NONE] * size
        self.gap = [0] * size  # of the tightest edge from ``slack[x]`` to x
        self.kind = [_FREE] * size
        self.queue: list[int] = []
        self.dual = [*self._potentials(), *[0] * n]
        self._begin()

    def _potentials(self) -> list[int]:
        """Return potentials that no edge exceeds, with a tight edge at most vertices.

        All are even: the steps of the search divide gaps between even vertices by two.
        """
        dual = [0] * self.n
        for u in reversed(range(self.n)):
            row = self.weights[u]
            later = (2 * (row[v] or 0) - dual[v] for v in self.near[u] if v > u)
            dual[u] = max(later, default=0)
        return dual

    def _begin(self) -> None:
        """Match what is tight from the start: the search goes on with who is left."""
        match, dual = self.match, self.dual
        for u in range(self.n):
            if match[u] != _NONE:
                continue
            row = self.weights[u]
            for v in self.near[u]:
                if match[v] == _NONE and dual[u] + dual[v] == 2 * (row[v] or 0):
                    match[u], match[v] = v, u
                    break

    def free(self) -> bool:
        """Say whether a vertex is not matched yet."""
        return _NONE in self.match[: self.n]

    def partners(self) -> list[int]:
        """Return the matched vertex of each vertex."""
        return self.match[: self.n]

    def grow(self) -> bool:
        """Grow trees until a path between two free nodes is found and turned."""
        self.kind, self.slack = [_FREE] * self.size, [_NONE] * self.size
        self.queue = []
        for x in self._tops():
            if self.match[x] == _NONE:
                self.parent[x], self.kind[x] = _NONE, _EVEN
                self._push(x)
        while True:
            if self._scan():
                return True
            step = self._step()
            if step is None:
                return False
            self._move_duals(step)
            if self._follow_tight():
                return True

    # -- growing ---------------------------------------------------------------------

    def _tops(self) -> list[int]:
        return [x for x in range(self.size) if self.top[x] == x]

    def _reduced(self, u: int, v: int) -> int:
        return self.dual[u] + self.dual[v] - 2 * (self.weights[u][v] or 0)

    def _scan(self) -> bool:
        """Look at the edges of even vertices: follow those that are tight, note the others."""
        queue, top, kind, dual = self.queue, self.top, self.kind, self.dual
        slack, gaps = self.slack, self.gap
        while queue:
            u = queue.pop()
            x = top[u]
            if kind[x] == _ODD:
                continue
            row = self.weights[u]
            for v in self.near[u]:
                y = top[v]
                if y == x or kind[y] == _ODD:
                    continue
                gap = dual[u] + dual[v] - 2 * (row[v] or 0)
                if gap == 0:
                    if self._use(u, v):
                        return True
                    x = top[u]
                elif slack[y] == _NONE or gap < gaps[y]:
                    slack[y], gaps[y] = u, gap
        return False

    def _find_near(self, x: int) -> None:
        self.slack[x] = _NONE
        for u in range(self.n):
            edge = self.edge[u][x]
            if edge is None or self.top[u] == x or self.kind[self.top[u]] != _EVEN:
                continue
            gap = self._reduced(*edge)
            if self.slack[x] == _NONE or gap < self.gap[x]:
                self.slack[x], self.gap[x] = u, gap

    def _step(self) -> int | None:
        """Return by how much potentials can move before something becomes tight."""
        steps = []
        for x in self._tops():
            if x >= self.n and self.kind[x] == _ODD:
                steps.append(self.dual[x] // 2)
            if self.slack[x] != _NONE and self.kind[x] != _ODD:
                steps.append(self.gap[x] if self.kind[x] == _FREE else self.gap[x] // 2)
        return min(steps, default=None)

    def _move_duals(self, step: int) -> None:
        sign = {_EVEN: -step, _ODD: step, _FREE: 0}
        for u in range(self.n):
            self.dual[u] += sign[self.kind[self.top[u]]]
        for b in range(self.n, self.size):
            if self.top[b] == b:
                self.dual[b] -= 2 * sign[self.kind[b]]
        shrinks = {_EVEN: 2 * step, _ODD: 0, _FREE: step}
        for x in self._tops():
            self.gap[x] -= shrinks[self.kind[x]]

    def _follow_tight(self) -> bool:
        self.queue = []
        for x in self._tops():
            u = self.slack[x]
            if self.top[x] != x or u == _NONE or self.top[u] == x:
                continue
            if self.gap[x] != 0 or self.kind[x] == _ODD:
                continue
            edge = self.edge[u][x]
            if edge is not None and self._use(*edge):
                return True
        for b in range(self.n, self.size):
            if self.top[b] == b and self.kind[b] == _ODD and self.dual[b] == 0:
                self._expand(b)
        return False

    def _use(self, u: int, v: int) -> bool:
        """Follow a tight edge; say whether it closed a path between two free nodes."""
        x, y = self.top[u], self.top[v]
        if self.kind[y] == _FREE:
            self.parent[y], self.kind[y] = u, _ODD
            mate = self.top[self.match[y]]
            self.slack[y] = self.slack[mate] = _NONE
            self.kind[mate] = _EVEN
            self._push(mate)
        elif self.kind[y] == _EVEN:
            joint = self._common(x, y)
            if joint == _NONE:
                self._turn(x, y)
                self._turn(y, x)
                return True
            self._shrink(x, joint, y)
        return False

    def _push(self, x: int) -> None:
        if x < self.n:
            self.queue.append(x)
        else:
            for part in self.inside[x]:
                self._push(part)

    def _common(self, x: int, y: int) -> int:
        """Return where the ways of two even nodes to their roots meet, _NONE if nowhere."""
        seen: set[int] = set()
        while x != _NONE or y != _NONE:
            if x != _NONE:
                if x in seen:
                    return x
                seen.add(x)
                x = self._up(x)
            x, y = y, x
        return _NONE

    def _up(self, x: int) -> int:
        if self.match[x] == _NONE:
            return _NONE
        return self.top[self.parent[self.top[self.match[x]]]]

    # -- turning a path --------------------------------------------------------------

    def _turn(self, x: int, y: int) -> None:
        """Match x with y, and turn the way from x to its root."""
        while True:
            mate = _NONE if self.match[x] == _NONE else self.top[self.match[x]]
            self._set_match(x, y)
            if mate == _NONE:
                return
            above = self.top[self.parent[mate]]
            self._set_match(mate, above)
            x, y = above, mate

    def _set_match(self, x: int, y: int) -> None:
        self.match[x] = self._end(y, x)
        if x < self.n:
            return
        part = self.holder[x][self._end(x, y)]
        at = self._even_place(x, part)
        for i in range(0, at, 2):
            self._set_match(self.inside[x][i], self.inside[x][i + 1])
            self._set_match(self.inside[x][i + 1], self.inside[x][i])
        self._set_match(part, y)
        self.inside[x] = self.inside[x][at:] + self.inside[x][:at]

    def _even_place(self, b: int, part: int) -> int:
        """Return the place of a part, counted round the circle so that it is even."""
        at = self.inside[b].index(part)
        if at % 2 == 0:
            return at
        self.inside[b][1:] = reversed(self.inside[b][1:])
        return len(self.inside[b]) - at

    # -- blossoms --------------------------------------------------------------------

    def _shrink(self, x: int, joint: int, y: int) -> None:
        b = next(b for b in range(self.n, self.size) if self.top[b] == _NONE)
        self.dual[b], self.kind[b], self.match[b] = 0, _EVEN, self.match[joint]
        self.parent[b] = self.parent[joint]
        circle = [joint, *reversed(self._way(x, joint)), *self._way(y, joint)]
        self.inside[b] = circle
        self._join_edges(b)
        self._set_top(b, b)
        self._find_near(b)

    def _way(self, x: int, joint: int) -> list[int]:
        way = []
        while x != joint:
            mate = self.top[self.match[x]]
            self._push(mate)
            way += [x, mate]
            x = self.top[self.parent[mate]]
        return way

    def _set_top(self, x: int, b: int) -> None:
        self.top[x] = b
        if x >= self.n:
            for part in self.inside[x]:
                self._set_top(part, b)

    def _join_edges(self, b: int) -> None:
        holder = self.holder[b] = [_NONE] * self.n
        best: list[tuple[int, int] | None] = [None] * self.size
        gaps: list[int | None] = [None] * self.size
        dual, weights = self.dual, self.weights
        others = [y for y in range(self.size) if y < self.n or self.top[y] != _NONE]
        for part in self.inside[b]:
            edges = self.edge[part]
            for y in others:
                edge = edges[y]
                if edge is None:
                    continue
                u, v = edge
                gap, old = dual[u] + dual[v] - 2 * (weights[u][v] or 0), gaps[y]
                if old is None or gap < old:
                    best[y], gaps[y] = edge, gap
            for u, inner in enumerate(self.holder[part]):
                if inner != _NONE:
                    holder[u] = part
        self.edge[b] = best
        for y, edge in enumerate(best):
            self.edge[y][b] = None if edge is None else (edge[1], edge[0])

    def _expand(self, b: int) -> None:
        """Open an odd blossom: one way round it stays in the tree, the rest goes free."""
        for part in self.inside[b]:
            self._set_top(part, part)
        entry = self.holder[b][self._end(b, self.parent[b])]
        at = self._even_place(b, entry)
        circle = self.inside[b]
        for i in range(0, at, 2):
            odd, even = circle[i], circle[i + 1]
            self.kind[odd], self.kind[even] = _ODD, _EVEN
            self.parent[odd] = self._end(even, odd)
            self.slack[odd] = _NONE
            self._find_near(even)
            self._push(even)
        self.kind[entry], self.parent[entry] = _ODD, self.parent[b]
        self.slack[entry] = _NONE
        for part in circle[at + 1 :]:
            self.kind[part] = _FREE
            self._find_near(part)
        self.top[b] = _NONE

    def _end(self, x: int, y: int) -> int:
        """Return the vertex in x of the tightest edge to y."""
        edge = self.edge[x][y]
        if edge is None:
            raise ValueError("no edge where the search has one")
        return edge[0]
