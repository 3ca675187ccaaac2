"""Kibitzers in Redis: plain commands, no script, so that their user needs no right to run one.

Between two commands of ``take_desk`` another may come; the worst that follows is a desk
that two kibitzers believe to have until the next beat.
"""

from __future__ import annotations

from typing import Any, Final

from orchestrator.ledger import connection, keys, kibitzing, replies

_MARK: Final = "mark"


class RedisKibitzing:
    """The verbs of kibitzers, on one Redis server; any may raise ``LedgerUnreachableError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self._server = server
        self._keys = keys.Keys(prefix)

    def take_desk(self, desk: int, holder: str) -> str:
        """Sit down at a desk, or stay there; return who has it now."""
        name, client = self._keys.kibitz(str(desk)), self._server.client
        with self._server.asked():
            if client.set(name, holder, nx=True, px=kibitzing.HOLD_MS):
                client.delete(self._left(desk))
                return holder
            raw: Any = client.get(name)
            present = "" if raw is None else replies.text(raw)
            if present == holder:
                client.pexpire(name, kibitzing.HOLD_MS)
            return present

    def leave_desk(self, desk: int, holder: str) -> None:
        """Free a desk on purpose; no error where it is somebody else's."""
        name, client = self._keys.kibitz(str(desk)), self._server.client
        with self._server.asked():
            raw: Any = client.get(name)
            if raw is not None and replies.text(raw) == holder:
                client.set(self._left(desk), holder, px=kibitzing.LEFT_MS)
                client.delete(name)

    def left(self) -> frozenset[int]:
        """Return the desks that were freed on purpose, and that nobody has taken since."""
        desks = range(kibitzing.DESKS)
        with self._server.asked():
            raw: Any = self._server.client.mget([self._left(desk) for desk in desks])
        return frozenset(desk for desk, freed in zip(desks, raw, strict=True) if freed is not None)

    def kibitzers(self) -> dict[int, str]:
        """Return who sits at which desk."""
        names = [self._keys.kibitz(str(desk)) for desk in range(kibitzing.DESKS)]
        with self._server.asked():
            raw: Any = self._server.client.mget(names)
        return {desk: replies.text(sitter) for desk, sitter in enumerate(raw) if sitter is not None}

    def tell(self, desk: int, attempt: str, ply: int, payload: str) -> None:
        """Write what was found in a position, in place of what was found there before."""
        name = self._table(desk, attempt)
        with self._server.asked(), self._server.client.pipeline(transaction=True) as pipe:
            pipe.hset(name, str(ply), payload)
            pipe.hincrby(name, _MARK, 1)
            pipe.pexpire(name, kibitzing.KEPT_MS)
            pipe.execute()

    def marks(self, attempt: str) -> tuple[int, ...]:
        """Return for each desk how often it has told something of an attempt."""
        with self._server.asked(), self._server.client.pipeline(transaction=False) as pipe:
            for desk in range(kibitzing.DESKS):
                pipe.hget(self._table(desk, attempt), _MARK)
            return tuple(int(raw or 0) for raw in pipe.execute())

    def comments(self, desk: int, attempt: str) -> dict[int, str]:
        """Return what was told of an attempt: ply to payload."""
        with self._server.asked():
            raw: Any = self._server.client.hgetall(self._table(desk, attempt))
        payloads = {replies.text(name): replies.text(value) for name, value in raw.items()}
        return {int(name): value for name, value in payloads.items() if name.isdigit()}

    def _left(self, desk: int) -> str:
        return self._keys.kibitz(f"left:{desk}")

    def _table(self, desk: int, attempt: str) -> str:
        return self._keys.kibitz(f"{desk}:{attempt}")
