"""The web application: page, API, streams, downloads and TCEC's files behind one guard."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette import applications, exceptions, requests, responses, routing, staticfiles, types

from orchestrator.broadcast import projector
from orchestrator.broadcast.content import documents, messages, season_view
from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.forecast import settings, worker
from orchestrator.broadcast.web import (
    api,
    docs_pages,
    downloads,
    guard,
    hub,
    links,
    page_files,
    preview,
    sockets,
    subscriptions,
    tlcs_server,
)
from orchestrator.broadcast.web import responses as web_responses

PAGE: Final = pathlib.Path(__file__).parent.parent / "page"
_BEGINNING_SECONDS: Final = 10.0  # s: how long who comes waits for the first pass
_ENDING_SECONDS: Final = 5.0  # s: how long a thread may take to end its pass


class Files(staticfiles.StaticFiles):
    """Static files; names that begin with a dot are being written and not served."""

    def lookup_path(self, path: str) -> tuple[str, object]:  # type: ignore[override]
        """Find a file below the directory, links and hidden names excluded."""
        if any(part.startswith(".") for part in pathlib.PurePosixPath(path).parts if part != "."):
            return "", None
        return super().lookup_path(path)

    async def get_response(self, path: str, scope: types.Scope) -> responses.Response:
        """Return a file; a slash behind a name is a folder's, and only the first one is a page."""
        if scope["path"].endswith("/") and path != ".":
            raise exceptions.HTTPException(404)
        return await super().get_response(path, scope)

    def file_response(self, *args: object, **kwargs: object) -> responses.Response:
        """Return a file that is asked for again each time, and answered by 304 mostly."""
        answer = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        answer.headers.setdefault("Cache-Control", web_responses.FRESH)
        return answer


def create(
    source: season_view.Source,
    archive: pathlib.Path,
    directory: pathlib.Path,
    computed: settings.Settings | None = None,
    comments: season_view.Comments | None = None,
    public: str = "",
    tlcs: socket.socket | None = None,
) -> types.ASGIApp:
    """Return the application; it reads ``source`` and ``archive``, writes into ``directory``.

    Without ``computed`` it tells no ratings and no forecast, without ``comments`` nothing
    of kibitzers. ``public`` is the page's public base address; raise ``UsageError`` for none.
    ``tlcs`` is a UDP socket for viewers of TLCS.
    """
    addresses = links.Links(public)
    shelf = documents.Library()
    center = hub.Hub(shelf)
    loop: list[asyncio.AbstractEventLoop] = []

    lines = tlcs_server.TlcsServer(shelf)

    def take(told: Sequence[messages.Message]) -> None:
        center.take(told)
        lines.take(told)

    def publish(told: Sequence[messages.Message]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop[0].call_soon_threadsafe(take, told)

    files = feeds_files.Directory(directory)
    told = projector.Projector(source, archive, shelf, files, publish, comments)
    beside = None
    if computed is not None:
        beside = worker.Keeper(source, told, shelf, publish, computed)

    @contextlib.asynccontextmanager
    async def lifespan(_: applications.Starlette) -> AsyncIterator[None]:
        loop.append(asyncio.get_running_loop())
        stop = threading.Event()
        threads = [
            threading.Thread(target=one.run, args=(stop,), name=type(one).__name__, daemon=True)
            for one in (told, beside)
            if one is not None
        ]
        for thread in threads:
            thread.start()
        # Who comes back after a restart finds what is played, not a page without a season.
        await asyncio.to_thread(told.looked.wait, _BEGINNING_SECONDS)
        beat = asyncio.create_task(center.beat())
        try:
            async with lines.serving(tlcs):
                yield
        finally:
            stop.set()
            beat.cancel()
            if beside is not None:
                beside.close()
            for thread in threads:
                await asyncio.to_thread(thread.join, _ENDING_SECONDS)

    socket_io = sockets.SocketIo(center)
    routes: list[routing.BaseRoute] = [
        *api.Api(shelf, told, center, addresses.public).routes(),
        *downloads.Downloads(told, shelf, addresses).routes(),
        *subscriptions.Subscriptions(shelf, addresses).routes(),
        *docs_pages.Manual(docs_pages.directory()).routes(),
        routing.WebSocketRoute("/api/", sockets.Plain(center).socket),
        routing.WebSocketRoute("/socket.io/", socket_io.socket),
        routing.Route("/socket.io/", socket_io.poll, methods=["GET", "POST"]),
        routing.Route("/healthz", _health(shelf)),
        routing.Mount("/tcec", Files(directory=directory)),
        *page_files.PageFiles(PAGE, addresses.public).routes(),
        *preview.Preview(shelf, PAGE).routes(),
        routing.Mount("/", Files(directory=PAGE, html=True)),
    ]
    served = applications.Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={hub.FullError: _full}
    )
    return guard.Guard(served)


def _health(shelf: documents.Library) -> types.ASGIApp:
    async def health(_: requests.Request) -> responses.Response:
        """Say that documents are served, and how many."""
        return responses.JSONResponse({"documents": len(shelf.places()), "season": shelf.shown})

    return health  # type: ignore[return-value]


async def _full(_: requests.Request, error: Exception) -> responses.Response:
    return web_responses.full(str(error))
