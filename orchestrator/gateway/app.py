"""The gateway's web application: who asks, how much, and in which words; then the desk.

Each request is checked against its address' and its token's allowance of requests before its body
is read, and the body against a bound in bytes and seconds; once it is read, its size is taken from
the token's allowance of bytes. What is refused is answered with the reason, as
JSON (``{"error": …}``); a token is never in an address, an answer or a log.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ipaddress
import pathlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

import pydantic
import structlog
from starlette import applications, concurrency, requests, responses, routing

from orchestrator import contract
from orchestrator.common import allowance, errors, text
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.gateway import desk
from orchestrator.ledger import worker_tokens

log = structlog.get_logger()

BODY_BYTES: Final = 8 << 20  # of one request: 64 games of 200 plies have 4 MB
BODY_SECONDS: Final = 60.0  # s: a body that takes longer is given up
LAPSE_SECONDS: Final = 2.0  # s: between two looks for leases that have run out
REDIS_RETRY_SECONDS: Final = 5  # s: told to workers while Redis is away
A_SECOND: Final = 5.0  # requests of one token; a worker of 64 cores sends one in two seconds
AT_ONCE: Final = 40
BYTES_A_SECOND: Final = float(1 << 20)  # of one token: each takes the loop some time to read
BYTES_AT_ONCE: Final = float(4 * BODY_BYTES)  # what a worker kept while the gateway was away
AT_WORK: Final = 8  # requests of one token that are answered at once: there are 40 threads
ADDRESS_A_SECOND: Final = 20.0  # requests of one address: a university's workers may share it
ADDRESS_AT_ONCE: Final = 200
FILES_A_SECOND: Final = float(16 << 20)  # bytes of sources, of one token
FILES_AT_ONCE: Final = float(1 << 30)
BUILDS_A_SECOND: Final = 0.05  # builds told, of one token: each stays in its match's journal
BUILDS_AT_ONCE: Final = 200
WRONG_A_SECOND: Final = 0.1  # tokens that nobody was given, of one address
WRONG_AT_ONCE: Final = 10
KNOWN: Final = 10_000  # addresses and tokens remembered; beyond, the one unseen longest goes
_SITE_BITS: Final = 64  # of an IPv6 address: who has one of a network has all of it
BEARER: Final = "bearer "
SAFE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Message = TypeVar("Message", bound=contract.Message)
Work: TypeAlias = Callable[[worker_tokens.WorkerToken, Any], Any]
Endpoint: TypeAlias = Callable[[requests.Request], Awaitable[responses.Response]]


class _Limits:
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
        self.answer = _json({"error": why}, status, headers)


class Gateway:
    """The endpoints."""

    def __init__(
        self, dealer: desk.Desk, tokens: worker_tokens.RedisTokens, store: sources.Store
    ) -> None:
        self._desk, self._tokens, self._store = dealer, tokens, store
        self._addresses = _Limits(ADDRESS_A_SECOND, ADDRESS_AT_ONCE)
        self._wrong = _Limits(WRONG_A_SECOND, WRONG_AT_ONCE)
        self._owners = _Limits(A_SECOND, AT_ONCE)
        self._sent = _Limits(BYTES_A_SECOND, BYTES_AT_ONCE)
        self._fetched = _Limits(FILES_A_SECOND, FILES_AT_ONCE)
        self._built = _Limits(BUILDS_A_SECOND, BUILDS_AT_ONCE)
        self._at_work: collections.Counter[str] = collections.Counter()

    def app(self) -> applications.Starlette:
        """Return the application."""
        verbs: dict[str, tuple[type[contract.Message], Work]] = {
            "claim": (remote.BatchWanted, self._desk.claim),
            "results": (remote.GamesTold, self._desk.hear),
            "renew": (remote.BatchNamed, self._desk.renew),
            "return": (remote.BatchNamed, self._give_back),
            "built": (remote.BuildTold, self._hear_build),
            "steer": (remote.Steered, self._desk.steer),
            "copy": (remote.Copied, self._desk.copy),
            "approve": (remote.Agreed, self._desk.approve),
        }
        routes = [
            routing.Route(f"/work/v1/{name}", self._endpoint(kind, work), methods=["POST"])
            for name, (kind, work) in verbs.items()
        ]
        routes.append(routing.Route("/work/v1/token", self._endpoint(None, self._describe_token)))
        routes.append(routing.Route("/work/v1/files/{digest}", self._file))
        routes.append(routing.Route("/healthz", _healthy))
        return applications.Starlette(routes=routes, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: applications.Starlette) -> AsyncIterator[None]:
        lapsing = asyncio.create_task(self._lapse())
        try:
            yield
        finally:
            lapsing.cancel()

    async def _lapse(self) -> None:
        while True:
            try:
                await concurrency.run_in_threadpool(self._desk.lapse)
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
            except Exception:  # the top of the loop: nobody else would end leases
                log.exception("lapse.failed")
            await asyncio.sleep(LAPSE_SECONDS)

    def _endpoint(self, kind: type[contract.Message] | None, work: Work) -> Endpoint:
        async def endpoint(request: requests.Request) -> responses.Response:
            try:
                token = await self._authenticated(request)
                with self._share(token.id):
                    message = (
                        None if kind is None else _read(kind, await self._body(request, token))
                    )
                    answer = await concurrency.run_in_threadpool(work, token, message)
            except AnsweredError as refused:
                return refused.answer
            except desk.RefusedBatchError as error:
                return _json({"error": str(error)}, 409)
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
                why = "the farm's ledger cannot be reached at this moment; try again"
                return AnsweredError(503, why, REDIS_RETRY_SECONDS).answer
            plain = (
                answer.model_dump(mode="json") if isinstance(answer, pydantic.BaseModel) else answer
            )
            return _json(plain)

        return endpoint

    async def _authenticated(self, request: requests.Request) -> worker_tokens.WorkerToken:
        """Return the token of a request; raise ``AnsweredError`` without a valid one."""
        address = _site(request.client.host if request.client else "")
        if self._wrong.spent(address):
            raise AnsweredError(429, "too many wrong tokens from this address", 60)
        if not self._addresses.take(address):
            raise AnsweredError(429, "too many requests from this address", 5)
        credentials = request.headers.get("Authorization", "")
        if not credentials.lower().startswith(BEARER):
            raise AnsweredError(401, "no access token: send `Authorization: Bearer TOKEN`")
        presented = credentials[len(BEARER) :].strip()
        token, why = await concurrency.run_in_threadpool(self._tokens.check, presented)
        if token is None:
            self._wrong.take(address)
            raise AnsweredError(401, "this token is not known; ask the operator for one")
        if why:
            raise AnsweredError(401, f"{why}; ask the operator for a new one")
        if not self._owners.take(token.id):
            raise AnsweredError(429, "too many requests with this token", 5)
        return token

    @contextlib.contextmanager
    def _share(self, token: str) -> Iterator[None]:
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

    async def _body(self, request: requests.Request, token: worker_tokens.WorkerToken) -> bytes:
        body = await _body(request)
        if not self._sent.take(token.id, len(body)):
            raise AnsweredError(429, "too many bytes with this token", 10)
        return body

    async def _file(self, request: requests.Request) -> responses.Response:
        """Serve a source, or a file of one, by its SHA-256."""
        try:
            token = await self._authenticated(request)
            with self._share(token.id):
                digest = request.path_params["digest"]
                path = await concurrency.run_in_threadpool(self._wanted_file, token, digest)
        except AnsweredError as refused:
            return refused.answer
        except errors.LedgerAwayError as error:
            log.warning("redis.away", error=str(error))
            return AnsweredError(503, "the ledger cannot be reached", REDIS_RETRY_SECONDS).answer
        return responses.FileResponse(path, headers=SAFE, media_type="application/octet-stream")

    def _wanted_file(self, token: worker_tokens.WorkerToken, digest: str) -> pathlib.Path:
        """Return a file that a token's workers need; raise ``AnsweredError``."""
        size = self._store.size(digest) if self._desk.serves(token, digest) else None
        path = self._store.path(digest)
        if size is None:
            raise AnsweredError(404, "no open match of this token needs such a file")
        if not self._fetched.take(token.id, size):
            raise AnsweredError(429, "too many bytes of sources with this token", 30)
        return path

    def _hear_build(
        self, token: worker_tokens.WorkerToken, told: remote.BuildTold
    ) -> dict[str, bool]:
        if not self._built.take(token.id):
            raise AnsweredError(429, "too many builds told with this token", 60)
        return self._desk.built(token, told)

    def _give_back(
        self, token: worker_tokens.WorkerToken, named: remote.BatchNamed
    ) -> dict[str, int]:
        return {"dealt_again": self._desk.give_back(token, named)}

    @staticmethod
    def _describe_token(token: worker_tokens.WorkerToken, _: None) -> dict[str, object]:
        """Return what a token's holder may know of it."""
        return {
            "id": token.id,
            "name": token.name,
            "matches": list(token.matches),
            "until_ms": token.until_ms,
        }


def _site(host: str) -> str:
    """Return whose an address is: itself, or its IPv6 /64."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((address, _SITE_BITS), strict=False))
        return str(address.ipv4_mapped)
    return host


async def _body(request: requests.Request) -> bytes:
    """Read a body within its bounds; raise ``AnsweredError``."""
    too_large = AnsweredError(413, f"a request has at most {BODY_BYTES} bytes; send fewer games")
    length = text.whole(request.headers.get("Content-Length", "0"))
    if length is None or length > BODY_BYTES:
        raise too_large
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size > BODY_BYTES:
                    raise too_large
                pieces.append(piece)
    except TimeoutError:
        raise AnsweredError(408, f"the body took more than {BODY_SECONDS:g} s") from None
    except requests.ClientDisconnect:
        raise AnsweredError(400, "the connection ended within the body") from None
    return b"".join(pieces)


def _read(kind: type[Message], body: bytes) -> Message:
    try:
        return kind.model_validate(contract.loads(body))
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        field = ".".join(map(str, wrong[0]["loc"]))
        raise AnsweredError(422, f"{kind.__name__}: {field}: {wrong[0]['msg']}") from None
    except ValueError as error:
        raise AnsweredError(422, f"the body is no JSON: {error}") from None


async def _healthy(_: requests.Request) -> responses.Response:
    return _json({"ok": True})


def _json(
    value: Any, status: int = 200, headers: dict[str, str] | None = None
) -> responses.Response:
    body = contract.dumps(value).encode(errors="replace")
    return responses.Response(body, status, SAFE | (headers or {}), "application/json")
