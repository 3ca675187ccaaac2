"""Kibitzers in memory: the twin of ``kibitz_store``, on a ``MemoryLedger``'s clock."""

from __future__ import annotations

from collections import defaultdict

from twins import memory

from orchestrator.ledger import kibitzing


class MemoryKibitzing:
    """The verbs of ``kibitz_store.RedisKibitzing``, in memory; what was said never expires."""

    def __init__(self, ledger: memory.MemoryLedger) -> None:
        self._ledger = ledger
        self._desks: dict[int, tuple[str, int]] = {}
        self._left: dict[int, int] = {}
        self._told: defaultdict[tuple[int, str], dict[int, str]] = defaultdict(dict)
        self._marks: defaultdict[tuple[int, str], int] = defaultdict(int)

    def take_desk(self, desk: int, holder: str) -> str:
        """Sit down at a desk, or stay there; return who has it now."""
        present = self.kibitzers().get(desk, holder)
        if present == holder:
            self._left.pop(desk, None)
            self._desks[desk] = holder, self._ledger.now_ms() + kibitzing.HOLD_MS
        return present

    def leave_desk(self, desk: int, holder: str) -> None:
        """Free a desk on purpose; no error where it is somebody else's."""
        if self.kibitzers().get(desk) == holder:
            del self._desks[desk]
            self._left[desk] = self._ledger.now_ms() + kibitzing.LEFT_MS

    def left(self) -> frozenset[int]:
        """Return the desks that were freed on purpose, and that nobody has taken since."""
        now_ms = self._ledger.now_ms()
        return frozenset(desk for desk, until in self._left.items() if now_ms < until)

    def kibitzers(self) -> dict[int, str]:
        """Return who sits at which desk."""
        now_ms = self._ledger.now_ms()
        return {desk: holder for desk, (holder, until) in self._desks.items() if now_ms < until}

    def tell(self, desk: int, attempt: str, ply: int, payload: str) -> None:
        """Write what was found in a position, in place of what was found there before."""
        self._told[desk, attempt][ply] = payload
        self._marks[desk, attempt] += 1

    def marks(self, attempt: str) -> tuple[int, ...]:
        """Return for each desk how often it has told something of an attempt."""
        return tuple(self._marks[desk, attempt] for desk in range(kibitzing.DESKS))

    def comments(self, desk: int, attempt: str) -> dict[int, str]:
        """Return what was told of an attempt: ply to payload."""
        return dict(self._told[desk, attempt])
