"""Serve the documents of the installed version, runbooks among them.

The farm's own alerts link here (``/docs/runbooks/NAME/``), so that a runbook is at hand on
a network that reaches nothing else, and is the one of the version that runs. Invariants: only
Markdown below the one directory is served; no link leads out of it; what is for operators is
served to private networks only (``INSIDE``), and to the world nothing but ``PUBLIC``.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import pathlib
import re
import sys
from typing import Final

from starlette import concurrency, requests, responses, routing

from orchestrator.broadcast.content import documents
from orchestrator.broadcast.web import responses as web_responses
from orchestrator.common import built

# Pages for spectators and engine authors; a name with a slash is a folder.
PUBLIC: Final = (
    *("broadcast", "engines", "match", "ratings", "season-file", "test-matches", "tutorial"),
    *("explanation/", "rules/", "reference/archives", "reference/clauses", "how-to/run-a-cup"),
    *("how-to/add-an-engine", "how-to/decide-a-tie", "how-to/look-into-a-game"),
)
# Loopback, private networks (RFC 1918, RFC 4193) and link-local addresses.
INSIDE: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
            *("::1/128", "fc00::/7", "fe80::/10"),
        ),
    )
)
PACKED: Final = pathlib.Path(__file__).parents[3] / built.FILES
_PLACE: Final = re.compile(r"(?:[\w-]+/)*[\w-]+")  # no dot: nothing hidden, nothing above


def directory() -> pathlib.Path:
    """Return where the documents lie: ``FARM_DOCS``, else beside the virtual environment.

    That is so in a checkout and below the prefix of the install script. What was installed from a
    wheel has them packed (``PACKED``), for ``farm deploy export``.
    """
    configured = os.environ.get("FARM_DOCS")
    return pathlib.Path(configured) if configured else pathlib.Path(sys.prefix).parent / "docs"


class Manual:
    """The answers below ``/docs``."""

    def __init__(self, root: pathlib.Path, packed: pathlib.Path = PACKED) -> None:
        """Answer from a directory of Markdown, where it is missing from what a build has packed."""
        self._root, self._packed = root.resolve(), packed

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes."""
        return [routing.Route("/docs", self.page), routing.Route("/docs/{place:path}", self.page)]

    async def page(self, request: requests.Request) -> responses.Response:
        """Return a document as text, by the address that the built site gives it as well."""
        path = request.path_params.get("place", "").removesuffix(".md").strip("/") or "index"
        if not path.startswith(PUBLIC) and not _from_inside(request):
            return responses.PlainTextResponse(
                "this page is for the farm's operators; it is served to private networks only\n",
                403,
            )
        document = await concurrency.run_in_threadpool(self._read, path)
        if document is None:
            return web_responses.missing(f"document {path!r}; FARM_DOCS says where documents lie")
        return web_responses.of_document(request, document)

    def _read(self, address: str) -> documents.Document | None:
        if not _PLACE.fullmatch(address):
            return None
        names = (f"{address}.md", f"{address}/index.md")
        if not self._root.is_dir():
            found = filter(None, map(_carried(self._packed).get, names))
            return next((web_responses.of_text(text, "text/plain") for text in found), None)
        for name in names:
            path = self._root / name
            if path.is_file() and path.resolve().is_relative_to(self._root):
                return web_responses.of_text(path.read_bytes(), "text/plain")
        return None


@functools.cache
def _carried(packed: pathlib.Path) -> dict[str, bytes]:
    """Return the documents that a wheel carries, by their paths below docs; none in a checkout."""
    try:
        files = list(built.unpack(packed.read_bytes()))
    except OSError:
        return {}
    return {
        name.removeprefix("docs/"): content
        for name, content, _ in files
        if name.startswith("docs/") and name.endswith(".md")
    }


def _from_inside(request: requests.HTTPConnection) -> bool:
    """Say whether a request comes from a private network, and through no proxy from elsewhere.

    The server takes a trusted proxy's word for whose a request is, and removes nothing: where
    the client is still a proxy that speaks for somebody, that proxy is not trusted.
    """
    if request.client is None:  # a unix socket
        return False
    try:
        address = ipaddress.ip_address(request.client.host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    spoken_for = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    if spoken_for and spoken_for != request.client.host:
        return False
    return any(address in network for network in INSIDE)
