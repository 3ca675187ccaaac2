"""The logos of engines, under the names of their checksums: browsers keep them for good."""

from __future__ import annotations

from typing import Final

from starlette import requests, responses, routing

from orchestrator.broadcast import projector
from orchestrator.broadcast.content import badges
from orchestrator.broadcast.web import responses as web_responses

_FOREVER: Final = "public, max-age=31536000, immutable"


class Logos:
    """The pictures that the seasons' journals hold."""

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
                    headers = {"Cache-Control": _FOREVER}
                    return responses.Response(badges.png(logo), 200, headers, "image/png")
        return web_responses.missing(f"logo {request.path_params['name']!r}")
