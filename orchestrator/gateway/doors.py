"""The gateway's doors: whose a request is, by a token or a browser's session, and how much it may.

Each request is checked against its address' and its token's allowance of requests before its body
is read, and the body against a bound in bytes and seconds; once it is read, its size is taken from
the token's allowance of bytes. A token is never in an address, an answer or a log.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from starlette import concurrency, requests, responses

from orchestrator import contract
from orchestrator.common import allowance, text
from orchestrator.ledger import sessions, worker_tokens

BODY_BYTES: Final = 8 << 20  # of one request: 64 games of 200 plies have 4 MB
BODY_SECONDS: Final = 60.0  # s: a body that takes longer is given up
REDIS_RETRY_SECONDS: Final = 5  # s: told to workers while Redis is away
A_SECOND: Final = 5.0  # requests of one token; a worker of 64 cores sends one in two seconds
AT_ONCE: Final = 40
BYTES_A_SECOND: Final = float(1 << 20)  # of one token: each takes the loop some time to read
BYTES_AT_ONCE: Final = float(4 * BODY_BYTES)  # what a worker kept while the gateway was away
AT_WORK: Final = 8  # requests of one token that are answered at once: there are 40 threads
ADDRESS_A_SECOND: Final = 20.0  # requests of one address: a university's workers may share it
ADDRESS_AT_ONCE: Final = 200
WRONG_A_SECOND: Final = 0.1  # tokens that nobody was given, of one address
WRONG_AT_ONCE: Final = 10
KNOWN: Final = 10_000  # addresses and tokens remembered; beyond, the one unseen longest goes
COOKIE: Final = "farm_session"
BEARER: Final = "bearer "
SAFE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Limits:
    """Allowances that fill up again with time, one for each key that was seen lately.

    Some are asked by the loop, some by the threads that answer requests.
    """

    def __init__(self, a_second: float, at_once: float) -> None:
        self._rate, self._lock = (a_second, at_once), threading.Lock()
        self._known: collections.OrderedDict[str, allowance.Allowance] = collections.OrderedDict()

    def take(self, key: str, amount: float = 1.0) -> bool:
        """Use some of a key's allowance; return whether it had so much."""
        with self._lock:
            return self._of(key).take(amount)

    def spent(self, key: str) -> bool:
        """Say whether a key has nothing left, without using any of it."""
        with self._lock:
            return key in self._known and self._of(key).spent()

    def _of(self, key: str) -> allowance.Allowance:
        left = self._known.pop(key, None) or allowance.Allowance(*self._rate)
        self._known[key] = left
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return left


class AnsweredError(Exception):
    """A request ends here, with this answer."""

    def __init__(self, status: int, why: str, retry_after: int | None = None) -> None:
        super().__init__(why)
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        self.answer = as_json({"error": why}, status, headers)


class Doors:
    """Who comes in."""

    def __init__(self, tokens: worker_tokens.RedisTokens, browsers: sessions.RedisSessions) -> None:
        self._tokens, self._sessions = tokens, browsers
        self._addresses = Limits(ADDRESS_A_SECOND, ADDRESS_AT_ONCE)
        self._wrong = Limits(WRONG_A_SECOND, WRONG_AT_ONCE)
        self._owners = Limits(A_SECOND, AT_ONCE)
        self._sent = Limits(BYTES_A_SECOND, BYTES_AT_ONCE)
        self._at_work: collections.Counter[str] = collections.Counter()

    async def by_token(self, request: requests.Request) -> worker_tokens.WorkerToken:
        """Return the token that a request shows; raise ``AnsweredError`` without a valid one."""
        address = self.come_in(request)
        credentials = request.headers.get("Authorization", "")
        if not credentials.lower().startswith(BEARER):
            raise AnsweredError(401, "no access token: send `Authorization: Bearer TOKEN`")
        return await self._check(address, credentials[len(BEARER) :].strip())

    def come_in(self, request: requests.Request) -> str:
        """Return whose a request is, before it has shown anything; raise ``AnsweredError``."""
        address = allowance.site_of(request.client.host if request.client else "")
        if self._wrong.spent(address):
            raise AnsweredError(429, "too many wrong tokens from this address", 60)
        if not self._addresses.take(address):
            raise AnsweredError(429, "too many requests from this address", 5)
        return address

    async def _check(self, address: str, presented: str) -> worker_tokens.WorkerToken:
        token, why = await concurrency.run_in_threadpool(self._tokens.check, presented)
        if token is None:
            self._wrong.take(address)
            raise AnsweredError(401, "this token is not known; ask the operator for one")
        if why:
            raise AnsweredError(401, f"{why}; ask the operator for a new one")
        self._take(token)
        return token

    def _take(self, token: worker_tokens.WorkerToken) -> None:
        if not self._owners.take(token.id):
            raise AnsweredError(429, "too many requests with this token", 5)

    async def by_session(self, request: requests.Request) -> worker_tokens.WorkerToken | None:
        """Return the token by which a browser was let in, ``None`` where it was not.

        Raise ``AnsweredError`` for one that asks too often.
        """
        self.come_in(request)
        secret = request.cookies.get(COOKIE, "")
        identity = await concurrency.run_in_threadpool(self._sessions.token, secret)
        token, why = await concurrency.run_in_threadpool(self._tokens.valid, identity)
        if token is None or why:
            return None
        self._take(token)
        return token

    async def begin_session(
        self, request: requests.Request, presented: str
    ) -> tuple[worker_tokens.WorkerToken, str]:
        """Let a browser in by a token; return it with the session's secret.

        Raise ``AnsweredError`` as for any request with a token.
        """
        token = await self._check(self.come_in(request), presented)
        return token, await concurrency.run_in_threadpool(self._sessions.begin, token)

    async def end_session(self, request: requests.Request) -> None:
        """Let a browser in no longer."""
        secret = request.cookies.get(COOKIE, "")
        await concurrency.run_in_threadpool(self._sessions.end, secret)

    @contextlib.contextmanager
    def share(self, token: str) -> Iterator[None]:
        """Answer a request of a token, beside few others: it has its share of the threads."""
        if self._at_work[token] >= AT_WORK:
            raise AnsweredError(429, "too many requests at once with this token", 5)
        self._at_work[token] += 1
        try:
            yield
        finally:
            self._at_work[token] -= 1
            if not self._at_work[token]:
                del self._at_work[token]

    async def body(self, request: requests.Request, token: worker_tokens.WorkerToken) -> bytes:
        """Return the body of a token's request; raise ``AnsweredError``."""
        body = await read_body(request)
        if not self._sent.take(token.id, len(body)):
            raise AnsweredError(429, "too many bytes with this token", 10)
        return body


async def read_body(request: requests.Request, most: int = BODY_BYTES) -> bytes:
    """Read a body within its bounds; raise ``AnsweredError``."""
    too_large = AnsweredError(413, f"a request has at most {most} bytes; send fewer games")
    length = text.whole(request.headers.get("Content-Length", "0"))
    if length is None or length > most:
        raise too_large
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise too_large
                pieces.append(piece)
    except TimeoutError:
        raise AnsweredError(408, f"the body took more than {BODY_SECONDS:g} s") from None
    except requests.ClientDisconnect:
        raise AnsweredError(400, "the connection ended within the body") from None
    return b"".join(pieces)


def as_json(
    value: Any, status: int = 200, headers: dict[str, str] | None = None
) -> responses.Response:
    """Return an answer for programs."""
    body = contract.dumps(value).encode(errors="replace")
    return responses.Response(body, status, SAFE | (headers or {}), "application/json")
