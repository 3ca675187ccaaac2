"""The answer to who asks for the stream: a head, and then whatever happens."""

from __future__ import annotations

from typing import Final

from starlette import requests, responses, types

from orchestrator.broadcast.web import guard, hub, streams

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
TYPE: Final = "text/event-stream"


class Live(responses.Response):
    """The stream: a snapshot, then typed deltas, for as long as the client reads.

    Its task sleeps until the client leaves; the hub writes to the connection.
    """

    media_type = TYPE

    def __init__(self, center: hub.Hub, request: requests.Request, season: str) -> None:
        """Tell of a season, or of the one that is shown."""
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]  # it has no end
        self._hub, self._season = center, season
        self._last_event_id = request.headers.get("last-event-id", "")

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Send the head, listen until the client has gone."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        chunked = scope["http_version"] != "1.0"
        stream = streams.Stream(guard.transport(scope), chunked=chunked)
        self._hub.open_page(stream, self._last_event_id, self._season)
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._hub.close_page(stream)
