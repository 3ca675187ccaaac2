"""The web application: page, API, streams, downloads and TCEC's files behind one guard."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from starlette import applications, exceptions, requests, responses, routing, staticfiles, types

from orchestrator.broadcast import projector, test_matches
from orchestrator.broadcast.content import badges, documents, messages, season_view
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
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
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


class _Listeners:
    """Who is told what happens; who watches a test match is told nothing of a season's games."""

    def __init__(self, shelf: documents.Library) -> None:
        self._shelf = shelf
        self.seasons, self.tests = hub.Hub(shelf), hub.Hub(shelf)
        self.lines = tlcs_server.TlcsServer(shelf)
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def hubs(self) -> tuple[hub.Hub, hub.Hub]:
        """Return both hubs."""
        return self.seasons, self.tests

    def publish(self, batch: Sequence[messages.Message]) -> None:
        """Tell of seasons, from any thread."""
        self._call(self._take, batch)

    def publish_tests(self, batch: Sequence[messages.Message]) -> None:
        """Tell of test matches, from any thread."""
        self._call(self._take_tests, batch)

    def _call(
        self,
        take: Callable[[Sequence[messages.Message]], None],
        batch: Sequence[messages.Message],
    ) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            if self.loop is not None:
                self.loop.call_soon_threadsafe(take, batch)

    def _take(self, batch: Sequence[messages.Message]) -> None:
        self.seasons.take(batch)
        self.lines.take(batch)
        if launches := _launches(batch):  # where nothing but test matches was, a season begins
            self.tests.take(launches)

    def _take_tests(self, batch: Sequence[messages.Message]) -> None:
        self.tests.take(batch)
        if not self._shelf.shown:
            self.seasons.take(_launches(batch))


def create(
    source: season_view.Source,
    archive: pathlib.Path,
    directory: pathlib.Path,
    computed: settings.Settings | None = None,
    comments: season_view.Comments | None = None,
    public: str = "",
    tlcs: socket.socket | None = None,
    tests: test_matches.Place | None = None,
) -> types.ASGIApp:
    """Return the application; it reads ``source`` and ``archive``, writes into ``directory``.

    Without ``computed`` it tells no ratings and no forecast, without ``comments`` nothing
    of kibitzers. ``public`` is the page's public base address; raise ``UsageError`` for none.
    ``tlcs`` is a UDP socket for viewers of TLCS; without ``tests`` no test match is shown.
    """
    addresses = links.Links(public)
    shelf = documents.Library()
    shelf.put({test_matches.LIST: []})
    listeners = _Listeners(shelf)
    center, publish = listeners.seasons, listeners.publish
    files = feeds_files.Directory(directory)
    shown_projector = projector.Projector(source, archive, shelf, files, publish, comments)
    beside = None
    if computed is not None:
        beside = worker.Keeper(source, shown_projector, shelf, publish, computed)
    matches = None
    if tests is not None:
        matches = test_matches.TestMatches(tests, shelf, listeners.publish_tests)
    passes = [
        background.run
        for background in (shown_projector, beside, matches)
        if background is not None
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: applications.Starlette) -> AsyncIterator[None]:
        listeners.loop = asyncio.get_running_loop()
        stop = threading.Event()
        threads = [
            threading.Thread(target=work, args=(stop,), name=work.__qualname__, daemon=True)
            for work in passes
        ]
        for thread in threads:
            thread.start()
        # Who comes back after a restart finds what is played, not a page without a season.
        await asyncio.to_thread(shown_projector.looked.wait, _BEGINNING_SECONDS)
        beats = [asyncio.create_task(listener_hub.beat()) for listener_hub in listeners.hubs]
        try:
            async with listeners.lines.serving(tlcs):
                yield
        finally:
            stop.set()
            for beat in beats:
                beat.cancel()
            if beside is not None:
                beside.close()
            for thread in threads:
                await asyncio.to_thread(thread.join, _ENDING_SECONDS)

    sources: list[api.Source] = [api.Seasons(shelf, shown_projector, center)]
    of_matches: list[routing.BaseRoute] = []
    if matches is not None:
        shown = api.Matches(shelf, matches, listeners.tests)
        sources.insert(0, shown)
        of_matches = downloads.MatchDownloads(shown, test_matches.PREFIX).routes()
    socket_io = sockets.SocketIo(center)
    routes: list[routing.BaseRoute] = [
        *of_matches,
        *api.Api(sources, addresses.public).routes(),
        *downloads.Downloads(shown_projector, shelf, addresses).routes(),
        *subscriptions.Subscriptions(shelf, addresses).routes(),
        *docs_pages.Manual(docs_pages.directory()).routes(),
        routing.WebSocketRoute("/api/", sockets.Plain(center).socket),
        routing.WebSocketRoute("/socket.io/", socket_io.socket),
        routing.Route("/socket.io/", socket_io.poll, methods=["GET", "POST"]),
        routing.Route("/healthz", _health(shelf)),
        # As on TCEC's own host; Chess Tournament Viewer asks for archived games there.
        routing.Mount(
            "/tcec/archive/json", Files(directory=directory / "archive", check_dir=False)
        ),
        routing.Mount("/tcec", Files(directory=directory)),
        *page_files.PageFiles(PAGE, addresses.public).routes(),
        *Logos(shown_projector).routes(),
        *preview.Preview(shelf, PAGE).routes(),
        routing.Mount("/", Files(directory=PAGE, html=True)),
    ]
    served = applications.Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={hub.FullError: _full}
    )
    return guard.Guard(served)


class Logos:
    """The engines' logos that the seasons' journals hold, under the names of their checksums.

    Browsers keep them for good.
    """

    def __init__(self, source: projector.Projector) -> None:
        """Serve what the seasons that are shown were launched with."""
        self._source = source

    def routes(self) -> list[routing.BaseRoute]:
        """Return the route of the pictures."""
        return [routing.Route("/logos/{name}", self.picture)]

    async def picture(self, request: requests.Request) -> responses.Response:
        """Return a logo: it was checked at the launch, and is a PNG whatever it is named."""
        path = f"logos/{request.path_params['name']}"
        for season in list(self._source.seasons.values()):
            launched = season.state.launched if season.state.seq else None
            for logo in launched.logos.values() if launched else ():
                if badges.path(logo) == path:
                    headers = {"Cache-Control": _FOR_GOOD}
                    return responses.Response(badges.png(logo), 200, headers, "image/png")
        return web_responses.missing(f"logo {request.path_params['name']!r}")


def _launches(batch: Sequence[messages.Message]) -> list[messages.Message]:
    """Return what a page that shows nothing of a season needs, to go on to it."""
    return [
        message
        for message in batch
        if isinstance(message, messages.Delta) and message.kind == "season"
    ]


def _health(shelf: documents.Library) -> types.ASGIApp:
    async def health(_: requests.Request) -> responses.Response:
        """Say that documents are served, and how many."""
        return responses.JSONResponse({"documents": len(shelf.places()), "season": shelf.shown})

    return health  # type: ignore[return-value]


async def _full(_: requests.Request, error: Exception) -> responses.Response:
    return web_responses.full(str(error))
