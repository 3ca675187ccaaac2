"""The gateway's web application: workers' and authors' requests to the desk, and its pages.

Whose a request is and how much it may ask is decided at the doors (``doors``). What is refused is
answered with the reason, as JSON (``{"error": …}``), on a page in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar

import pydantic
import structlog
from starlette import applications, concurrency, requests, responses, routing

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.gateway import desk, doors, pages
from orchestrator.ledger import worker_tokens

log = structlog.get_logger()

LAPSE_SECONDS: Final = 2.0  # s: between two looks for leases that have run out
FILES_A_SECOND: Final = float(16 << 20)  # bytes of sources, of one token
FILES_AT_ONCE: Final = float(1 << 30)
BUILDS_A_SECOND: Final = 0.05  # builds told, of one token: each stays in its match's journal
BUILDS_AT_ONCE: Final = 200
# Playing games again takes the interpreter, which threads hand on every 5 ms: while all forty play
# what came at once, after a standstill, loop and claims wait. Two: one plays while the other waits
# for Redis.
RESULTS_AT_A_TIME: Final = 2
TURN_SECONDS: Final = 20.0  # s: results wait so long; their worker waits 30 for an answer
TURN_RETRY_SECONDS: Final = 10

Message = TypeVar("Message", bound=contract.Message)
Work: TypeAlias = Callable[[worker_tokens.WorkerToken, Any], Any]
Endpoint: TypeAlias = Callable[[requests.Request], Awaitable[responses.Response]]


class Gateway:
    """The endpoints."""

    def __init__(
        self,
        dealer: desk.Desk,
        at_the_door: doors.Doors,
        store: sources.Store,
        for_browsers: pages.Pages,
    ) -> None:
        self._desk, self._doors, self._store = dealer, at_the_door, store
        self._pages = for_browsers
        self._fetched = doors.Limits(FILES_A_SECOND, FILES_AT_ONCE)
        self._built = doors.Limits(BUILDS_A_SECOND, BUILDS_AT_ONCE)
        self._checking = asyncio.Semaphore(RESULTS_AT_A_TIME)

    def app(self) -> applications.Starlette:
        """Return the application."""
        verbs: dict[str, tuple[type[contract.Message], Work]] = {
            "claim": (remote.BatchWanted, self._desk.claim),
            "results": (remote.GamesTold, self._desk.hear),
            "show": (remote.GameShown, self._desk.show),
            "renew": (remote.BatchNamed, self._desk.renew),
            "return": (remote.BatchNamed, self._give_back),
            "built": (remote.BuildTold, self._hear_build),
            "steer": (remote.Steered, self._desk.steer),
            "copy": (remote.Copied, self._desk.copy),
            "submit": (remote.Proposed, self._desk.propose),
            "continue": (remote.Agreed, self._desk.go_on),
            "approve": (remote.Agreed, self._desk.approve),
            "refuse": (remote.Refused, self._desk.refuse),
        }
        routes = [
            routing.Route(f"/work/v1/{name}", self._endpoint(kind, work), methods=["POST"])
            for name, (kind, work) in verbs.items()
        ]
        routes.append(routing.Route("/work/v1/token", self._endpoint(None, self._describe_token)))
        routes.append(routing.Route("/work/v1/files/{digest}", self._file))
        routes.append(routing.Route("/healthz", _healthy))
        routes += self._pages.routes()
        return applications.Starlette(routes=routes, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: applications.Starlette) -> AsyncIterator[None]:
        lapsing = asyncio.create_task(self._lapse())
        try:
            yield
        finally:
            lapsing.cancel()
            self._pages.close()

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
        turn = self._turn if kind is remote.GamesTold else contextlib.nullcontext

        async def endpoint(request: requests.Request) -> responses.Response:
            try:
                token = await self._doors.by_token(request)
                with self._doors.share(token.id):
                    body = await self._doors.body(request, token) if kind else b""
                    async with turn():
                        message = _read(kind, body) if kind else None
                        answer = await concurrency.run_in_threadpool(work, token, message)
            except doors.AnsweredError as refused:
                return refused.answer
            except desk.RefusedBatchError as error:
                return doors.as_json({"error": str(error)}, 409)
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
                why = "the farm's ledger cannot be reached at this moment; try again"
                return doors.AnsweredError(503, why, doors.REDIS_RETRY_SECONDS).answer
            headers = {}
            if isinstance(answer, remote.GamesHeard):
                headers[remote.FARM_TIME] = str(answer.at_ms)
            plain = (
                answer.model_dump(mode="json") if isinstance(answer, pydantic.BaseModel) else answer
            )
            return doors.as_json(plain, headers=headers)

        return endpoint

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until few others' results are played again; raise ``AnsweredError`` at last."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._checking.acquire()
        except TimeoutError:
            why = "the gateway has more results to look at than it can; keep them and try again"
            raise doors.AnsweredError(503, why, TURN_RETRY_SECONDS) from None
        try:
            yield
        finally:
            self._checking.release()

    async def _file(self, request: requests.Request) -> responses.Response:
        """Serve a source, or a file of one, by its SHA-256."""
        try:
            token = await self._doors.by_token(request)
            with self._doors.share(token.id):
                digest = request.path_params["digest"]
                path = await concurrency.run_in_threadpool(self._wanted_file, token, digest)
        except doors.AnsweredError as refused:
            return refused.answer
        except errors.LedgerAwayError as error:
            log.warning("redis.away", error=str(error))
            return doors.AnsweredError(
                503, "the ledger cannot be reached", doors.REDIS_RETRY_SECONDS
            ).answer
        return responses.FileResponse(
            path, headers=doors.SAFE, media_type="application/octet-stream"
        )

    def _wanted_file(self, token: worker_tokens.WorkerToken, digest: str) -> pathlib.Path:
        """Return a file that a token's workers need; raise ``doors.AnsweredError``."""
        size = self._store.size(digest) if self._desk.serves(token, digest) else None
        path = self._store.path(digest)
        if size is None:
            raise doors.AnsweredError(404, "no open match of this token needs such a file")
        if not self._fetched.take(token.id, size):
            raise doors.AnsweredError(429, "too many bytes of sources with this token", 30)
        return path

    def _hear_build(
        self, token: worker_tokens.WorkerToken, told: remote.BuildTold
    ) -> dict[str, bool]:
        if not self._built.take(token.id):
            raise doors.AnsweredError(429, "too many builds told with this token", 60)
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


def _read(kind: type[Message], body: bytes) -> Message:
    try:
        return kind.model_validate(contract.loads(body))
    except pydantic.ValidationError as error:
        where, what = contract.first_wrong(error)
        raise doors.AnsweredError(422, f"{kind.__name__}: {where}: {what}") from None
    except ValueError as error:
        raise doors.AnsweredError(422, f"the body is no JSON: {error}") from None


async def _healthy(_: requests.Request) -> responses.Response:
    return doors.as_json({"ok": True})
