"""Sessions of browsers at the gateway: a secret that stands for an access token, for some hours.

A browser keeps the secret of its session, never the token itself. Redis has a SHA-256 of it, so who
may read there cannot make one. A session ends with its time, by its owner's wish, or as soon as its
token is refused: that is looked up at each request (``worker_tokens``).
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

from orchestrator import contract
from orchestrator.ledger import connection, keys, replies, worker_tokens

SECRET_BYTES: Final = 32
LASTING_MS: Final = 12 * 3_600_000  # ms: a day's work
MOST: Final = 8  # sessions of a token; one more ends the oldest


class RedisSessions:
    """The sessions of one Redis server. Any verb may raise ``LedgerAwayError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self._server = server
        self._table = keys.Keys(prefix).batches("sessions")

    def begin(self, token: worker_tokens.WorkerToken) -> str:
        """Begin a session of a valid token's owner; return its secret, which is shown once."""
        now_ms = self._server.now_ms()
        kept = []
        for digest, raw in self._server.table(self._table).items():
            session = contract.loads(raw)
            if session["until_ms"] <= now_ms:
                self._delete(digest)
            elif session["token"] == token.id:
                kept.append((session["until_ms"], digest))
        for _, digest in sorted(kept)[: max(0, len(kept) + 1 - MOST)]:
            self._delete(digest)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        facts = {"token": token.id, "until_ms": min(token.until_ms, now_ms + LASTING_MS)}
        with self._server.asked():
            self._server.client.hset(self._table, _hash(secret), contract.dumps(facts))
        return secret

    def token(self, secret: str) -> str:
        """Return the id of the token that a session stands for, '' for none."""
        if not secret:
            return ""
        with self._server.asked():
            raw: Any = self._server.client.hget(self._table, _hash(secret))
        if raw is None:
            return ""
        session = contract.loads(replies.text(raw))
        return str(session["token"]) if self._server.now_ms() < session["until_ms"] else ""

    def end(self, secret: str) -> None:
        """End a session."""
        self._delete(_hash(secret))

    def _delete(self, digest: str) -> None:
        with self._server.asked():
            self._server.client.hdel(self._table, digest)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
