"""The documents that the web application serves: rendered once, shared by all who read.

Written by the projector's thread, read by the web's: a document is frozen, and putting
one into the library is a single assignment.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.common import text

JSON: Final = "application/json"
_WORTH_PACKING: Final = 1_000  # bytes: below, packing makes answers longer


class Document:
    """Bytes to be served, with their type and what tells them from other versions.

    Its bytes may be made when they are asked for first, from parts that do not change.
    """

    def __init__(self, body: bytes | Callable[[], bytes], media_type: str = JSON) -> None:
        """Hold bytes, or what makes them."""
        self._make = body
        self.media_type = media_type

    def __eq__(self, other: object) -> bool:
        """Compare by content."""
        if not isinstance(other, Document):
            return NotImplemented
        return (self.body, self.media_type) == (other.body, other.media_type)

    def __hash__(self) -> int:
        """Return the content's hash."""
        return hash((self.body, self.media_type))

    @functools.cached_property
    def body(self) -> bytes:
        """Return the bytes."""
        return self._make() if callable(self._make) else self._make

    @functools.cached_property
    def etag(self) -> str:
        """Return the strong validator of the content."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:24]}"'

    @functools.cached_property
    def packed(self) -> bytes | None:
        """Return the content gzipped, None where that is not worth it."""
        if len(self.body) < _WORTH_PACKING:
            return None
        return gzip.compress(self.body, compresslevel=6, mtime=0)


def of_json(value: Any) -> Document:
    """Return plain data as a document, without characters that turn the words around them."""
    return Document(text.visible(contract.dumps(value)).encode())


class Library:
    """All documents by their place, such as ``seasons/demo/events/league``."""

    def __init__(self) -> None:
        """Start without a document."""
        self._documents: dict[str, Document] = {}
        self.offset_ms = 0  # Redis' time of day less this host's
        self.shown = ""  # the season that is shown to who names none
        self.tests = 0  # test matches that are listed

    def now_ms(self) -> int:
        """Return the time of day by Redis' clock."""
        return self.offset_ms + time.time_ns() // 1_000_000

    def put(self, documents: Mapping[str, Any]) -> list[str]:
        """Render and keep documents; return the places of those that have changed."""
        changed = []
        for path, value in documents.items():
            document = of_json(value)
            kept = self._documents.get(path)
            if kept is None or kept.body != document.body:
                self._documents[path] = document
                changed.append(path)
        return changed

    def put_made(self, path: str, document: Document) -> None:
        """Keep a document that is made already."""
        self._documents[path] = document

    def offer(self, documents: Mapping[str, Any]) -> None:
        """Keep documents at places that are still empty."""
        for path, value in documents.items():
            if path not in self._documents:
                self._documents.setdefault(path, of_json(value))

    def drop(self, path: str) -> bool:
        """Take the document at a place away; say whether there was one."""
        return self._documents.pop(path, None) is not None

    def get(self, path: str) -> Document | None:
        """Return the document at a place, None where there is none."""
        return self._documents.get(path)

    def places(self) -> list[str]:
        """Return all places, sorted."""
        return sorted(self._documents)
