"""``/feeds/``: a season's results for feed readers, its schedule for calendars.

Each is made of the library's documents and made again when one of them has changed.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Final

from starlette import concurrency, requests, responses, routing

from orchestrator import contract
from orchestrator.broadcast.content import documents
from orchestrator.broadcast.subscriptions import ics, listing, rss
from orchestrator.broadcast.web import links
from orchestrator.broadcast.web import responses as web_responses

_KEPT: Final = 32  # feeds: one for each season, kind and name that this server is called by
_CACHE: Final = "public, max-age=60"
_Make = Callable[[listing.Listing, str], bytes]


class Subscriptions:
    """The answers that people subscribe to."""

    def __init__(self, shelf: documents.Library, addresses: links.Links) -> None:
        """Answer from the library; ``addresses`` are our page's."""
        self._shelf, self._links = shelf, addresses
        self._made: collections.OrderedDict[
            tuple[str, str], tuple[tuple[documents.Document, ...], documents.Document]
        ] = collections.OrderedDict()

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes; without a season they follow the one that is shown."""
        return [
            routing.Route(f"/feeds/{season}{name}", answer)
            for season in ("", "{season}/")
            for name, answer in (("results.rss", self.results), ("schedule.ics", self.schedule))
        ]

    async def results(self, request: requests.Request) -> responses.Response:
        """Return the results as RSS."""
        return await self._answer(request, rss.MEDIA_TYPE, rss.feed)

    async def schedule(self, request: requests.Request) -> responses.Response:
        """Return the schedule as a calendar."""
        return await self._answer(request, ics.MEDIA_TYPE, lambda listed, _: ics.calendar(listed))

    async def _answer(
        self, request: requests.Request, media_type: str, make: _Make
    ) -> responses.Response:
        season = request.path_params.get("season", self._shelf.shown)
        parts = self._parts(season)
        if not parts:
            return web_responses.missing(f"season {season!r}" if season else "season yet")
        base = self._links.base(request)
        address = f"{base}{request.url.path}"
        made = self._made.get((address, season))
        if made is None or made[0] != parts:
            listed_of = concurrency.run_in_threadpool(_listing, parts, base)
            body = await concurrency.run_in_threadpool(make, await listed_of, address)
            made = parts, web_responses.of_text(body, media_type)
            self._made[address, season] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return web_responses.of_document(request, made[1], self._links.cache(_CACHE))

    def _parts(self, season: str) -> tuple[documents.Document, ...]:
        """Return the documents of a season: its own, then the schedules of its events."""
        base = f"seasons/{season}"
        whole = self._shelf.get(base)
        if whole is None:
            return ()
        events = contract.loads(whole.body)["events"]
        schedules = (
            self._shelf.get(f"{base}/events/{event['event']}/schedule") for event in events
        )
        return (whole, *(schedule for schedule in schedules if schedule is not None))


def _listing(parts: tuple[documents.Document, ...], base: str) -> listing.Listing:
    season, *schedules = (contract.loads(part.body) for part in parts)
    return listing.Listing(season, schedules, base)
