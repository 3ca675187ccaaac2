"""Access tokens of remote workers: made, listed, revoked, and checked at each request.

A token is ``farm_ID_SECRET``. Redis keeps a SHA-256 of the secret, which is random and long
enough for a fast hash. The gateway's user may read this table and not write it; it reads it at
each request, so that a token which was revoked is refused at once.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any, Final

from orchestrator import contract
from orchestrator.ledger import connection, keys, replies

PREFIX: Final = "farm"
ID_BYTES: Final = 5  # of an id: told in lists and logs, no secret
SECRET_BYTES: Final = 32
SPEEDS: Final = 256  # machines and builds of a token whose speed is remembered
LEARNING: Final = 0.25  # of what is new: one result may come from a moment of other load
BATCHES: Final = 64  # batches that the workers of one token may hold at once


@dataclasses.dataclass(frozen=True)
class WorkerToken:
    """What is known of a token: whose it is, which matches it may play, and until when.

    ``matches`` are patterns as of a shell; ``revoked_ms`` is 0 while it is valid. ``condemned``
    says why its workers' results are not believed, '' where they are.
    """

    id: str
    name: str
    sha256: str
    matches: tuple[str, ...]
    created_ms: int
    until_ms: int
    by: str
    batches: int = BATCHES
    revoked_ms: int = 0
    condemned: str = ""
    author: bool = False  # its owner may stop and change these matches

    def state(self, now_ms: int) -> str:
        """Say in a word how the token is: valid, ended, revoked or condemned."""
        if self.condemned:
            return "condemned"
        if self.revoked_ms:
            return "revoked"
        return "ended" if now_ms >= self.until_ms else "valid"

    def invalid(self, now_ms: int) -> str:
        """Say why the token is refused at a time, '' where it is not."""
        if self.condemned:
            return f"the token was stopped, and its games are played again: {self.condemned}"
        if self.revoked_ms:
            return "the token was revoked"
        return "the token has ended" if now_ms >= self.until_ms else ""

    @property
    def scope(self) -> str:
        """Say which names of matches the token is for."""
        return " or ".join(self.matches)

    def allows(self, match: str) -> bool:
        """Say whether games of a match may be given to the token's workers."""
        return any(fnmatch.fnmatchcase(match, pattern) for pattern in self.matches)


@dataclasses.dataclass(frozen=True)
class Use:
    """What the workers of a token have done."""

    games: int
    refused: int
    batches: int
    seen: dict[str, Any]


def make(
    name: str, matches: tuple[str, ...], now_ms: int, until_ms: int, by: str, batches: int
) -> tuple[WorkerToken, str]:
    """Return a new token's facts, and the whole token, which is shown once."""
    identity, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    made = WorkerToken(identity, name, _hash(secret), matches, now_ms, until_ms, by, batches)
    return made, f"{PREFIX}_{identity}_{secret}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class RedisTokens:
    """The tokens of one Redis server. Any verb may raise ``LedgerAwayError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self.server = server
        self._keys = keys.Keys(prefix)

    def write(self, token: WorkerToken) -> None:
        """Write a token down, new or changed. One that was revoked meanwhile stays so."""
        self._change(
            token.id,
            lambda known: dataclasses.replace(
                token, revoked_ms=token.revoked_ms or (known.revoked_ms if known else 0)
            ),
        )

    def revoke(self, identity: str, now_ms: int) -> None:
        """Refuse a token from now on; whatever else is written down of it stays."""
        self._change(
            identity,
            lambda known: (
                known and dataclasses.replace(known, revoked_ms=known.revoked_ms or now_ms)
            ),
        )

    def _change(
        self, identity: str, change: Callable[[WorkerToken | None], WorkerToken | None]
    ) -> None:
        """Write what becomes of a token; where another one writes at once, look again."""
        while True:
            before = self._raw(identity)
            token = change(None if before is None else _read(before))
            if token is None:
                return
            payload = contract.dumps(dataclasses.asdict(token))
            arguments = (identity, before or "", payload)
            raw = self.server.run("write_token", [self._keys.workers], *arguments)
            if replies.word(raw) == "written":
                return

    def all(self) -> list[WorkerToken]:
        """Return all tokens, the oldest first, those included that have ended."""
        tokens = replies.each(self.server.table(self._keys.workers), lambda _, raw: _token(raw))
        return sorted(tokens, key=lambda token: (token.created_ms, token.id))

    def find(self, identity: str) -> WorkerToken | None:
        """Return a token by its id."""
        raw = self._raw(identity)
        return None if raw is None else _read(raw)

    def _raw(self, identity: str) -> str | None:
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.workers, identity)
        return None if raw is None else replies.text(raw)

    def check(self, presented: str) -> tuple[WorkerToken | None, str]:
        """Return the token that somebody has shown, and why it is refused now, '' if it is not.

        The token is ``None`` for one that nobody was given. It ends by Redis' clock, by which it
        was made: the gateway's host may have another one than the operator's.
        """
        prefix, _, rest = presented.partition("_")
        identity, _, secret = rest.partition("_")
        if prefix != PREFIX or not identity or not secret:
            return None, ""
        token, why = self.valid(identity)
        if token is None or not hmac.compare_digest(token.sha256, _hash(secret)):
            return None, ""
        return token, why

    def valid(self, identity: str) -> tuple[WorkerToken | None, str]:
        """Return a token by its id, and why it is refused now, as ``check`` does."""
        with self.server.asked(), self.server.client.pipeline(transaction=False) as pipe:
            pipe.hget(self._keys.workers, identity)
            pipe.time()
            raw, (seconds, micros) = pipe.execute()
        token = None if raw is None else _read(replies.text(raw))
        if token is None:
            return None, ""
        return token, token.invalid(seconds * 1000 + micros // 1000)

    def see(self, identity: str, report: dict[str, object]) -> None:
        """Note the last report of a token's worker."""
        with self.server.asked():
            self.server.client.hset(self._keys.batches("seen"), identity, contract.dumps(report))

    def speeds(self, identity: str) -> dict[str, int]:
        """Return nodes a second, by machine and build, on the machines of a token."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.batches("speeds"), identity)
        return {} if raw is None else dict(contract.loads(raw))

    def learn(self, identity: str, machine: str, nps: int) -> None:
        """Note how fast a build was on a machine; of too many the one learnt first is forgotten."""
        speeds = self.speeds(identity)
        before = speeds.pop(machine, nps)
        speeds[machine] = round(before + (nps - before) * LEARNING)
        kept = dict(list(speeds.items())[-SPEEDS:])
        with self.server.asked():
            self.server.client.hset(self._keys.batches("speeds"), identity, contract.dumps(kept))

    def uses(self) -> dict[str, Use]:
        """Return what was done under each token that was used."""
        counted, refused, held, seen = (
            self.server.table(self._keys.batches(what))
            for what in ("counted", "refused", "held", "seen")
        )
        return {
            name: Use(
                int(counted.get(name, 0)),
                int(refused.get(name, 0)),
                int(held.get(name, 0)),
                contract.loads(seen.get(name, "{}")),
            )
            for name in {*counted, *refused, *held, *seen}
        }


def _read(text: str) -> WorkerToken:
    return _token(contract.loads(text))


def _token(raw: dict[str, Any]) -> WorkerToken:
    return WorkerToken(**{**raw, "matches": tuple(raw["matches"])})
