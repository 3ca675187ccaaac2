"""The documents of the installed version, as they were written: runbooks for whoever is woken.

The farm's own alerts link here (``/docs/runbooks/NAME/``), so that a runbook is at hand on
a network that reaches nothing else, and is the one of the version that runs. Invariant: only
Markdown below the one directory is served; no link leads out of it.
"""

from __future__ import annotations

import os
import pathlib
import re
import sys
from typing import Final

from starlette import concurrency, requests, responses, routing

from orchestrator.broadcast import library
from orchestrator.broadcast.web import answers

_PLACE: Final = re.compile(r"(?:[\w-]+/)*[\w-]+")  # no dot: nothing hidden, nothing above


def directory() -> pathlib.Path:
    """Return where the documents lie: ``FARM_DOCS``, else beside the virtual environment.

    That is so in a checkout and below the prefix of the install script.
    """
    told = os.environ.get("FARM_DOCS")
    return pathlib.Path(told) if told else pathlib.Path(sys.prefix).parent / "docs"


class Manual:
    """The answers below ``/docs``."""

    def __init__(self, root: pathlib.Path) -> None:
        """Answer from a directory of Markdown; it may be missing."""
        self._root = root.resolve()

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes."""
        return [routing.Route("/docs", self.page), routing.Route("/docs/{place:path}", self.page)]

    async def page(self, request: requests.Request) -> responses.Response:
        """Return a document as text, by the address that the built site gives it as well."""
        place = request.path_params.get("place", "").removesuffix(".md").strip("/") or "index"
        found = await concurrency.run_in_threadpool(self._read, place)
        if found is None:
            return answers.missing(f"document {place!r}; FARM_DOCS says where documents lie")
        return answers.of_document(request, found)

    def _read(self, place: str) -> library.Document | None:
        if not _PLACE.fullmatch(place):
            return None
        for name in (f"{place}.md", f"{place}/index.md"):
            path = self._root / name
            if path.is_file() and path.resolve().is_relative_to(self._root):
                return answers.of_text(path.read_bytes(), "text/plain")
        return None
