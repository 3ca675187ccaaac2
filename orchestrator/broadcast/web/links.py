"""Absolute addresses of the page, for other programs.

They begin with the public base address that the operator has set. Without one they begin
with what the request calls this server, which is the client's word alone. Such an answer is no
shared cache's: many of them tell answers apart by their paths, and not by the Host header.
"""

from __future__ import annotations

import urllib.parse

from starlette import requests

from orchestrator.common import errors

ALLOWED = "an address such as https://chess.example.org, without ? and #"


def checked(public: str) -> str:
    """Return a public base address without its last slash; raise ``UsageError`` for none."""
    text = public.strip()
    try:
        parts = urllib.parse.urlsplit(text)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
        whole = whole and parts.port != 0 and parts.username is None
    except ValueError:  # a port that is no number, a bracket that is not closed
        whole = False
    printable = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\?#')
    if not whole or not printable:
        raise errors.UsageError(f"--public-url: found {public!r}; allowed: {ALLOWED}")
    return text.rstrip("/")


class Links:
    """Makes addresses; ``public`` is the base address, '' where none is set."""

    def __init__(self, public: str = "") -> None:
        """Begin every address with ``public``; raise ``UsageError`` for what is none."""
        self.public = checked(public) if public.strip() else ""

    def base(self, request: requests.Request) -> str:
        """Return the address of the page, without a slash at its end."""
        return self.public or str(request.base_url).rstrip("/")

    def cache(self, policy: str) -> str:
        """Return the Cache-Control of an answer that holds addresses; ``policy`` begins public."""
        return policy if self.public else policy.replace("public", "private", 1)

    def game(self, request: requests.Request, season: str, game: str) -> str:
        """Return the address of a game on the page."""
        return f"{self.base(request)}/#/{season}/game/{game}"
