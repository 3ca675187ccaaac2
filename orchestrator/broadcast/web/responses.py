"""Answers made of documents: validators, packing, errors that say what and where."""

from __future__ import annotations

from typing import Final

from starlette import requests, responses

from orchestrator.broadcast.content import documents

FRESH: Final = "public, max-age=0, must-revalidate"  # asked for again, answered by 304


def of_document(
    request: requests.Request, document: documents.Document, cache: str = FRESH
) -> responses.Response:
    """Return a document, packed if the client takes it; 304 to one that has it already."""
    headers = {"ETag": document.etag, "Cache-Control": cache, "Vary": "Accept-Encoding"}
    if _has(request, document.etag):
        return responses.Response(status_code=304, headers=headers)
    if takes_gzip(request) and document.packed is not None:
        headers["Content-Encoding"] = "gzip"
        return responses.Response(document.packed, 200, headers, document.media_type)
    return responses.Response(document.body, 200, headers, document.media_type)


def takes_gzip(request: requests.Request) -> bool:
    """Say whether a client takes packed answers."""
    return "gzip" in request.headers.get("accept-encoding", "")


def _has(request: requests.Request, etag: str) -> bool:
    etags = request.headers.get("if-none-match", "")
    return etag in {listed.strip().removeprefix("W/") for listed in etags.split(",")}


def of_text(text: str | bytes, media_type: str) -> documents.Document:
    """Return text as a document."""
    body = text.encode() if isinstance(text, str) else text
    return documents.Document(body, f"{media_type}; charset=utf-8")


def missing(what: str) -> responses.Response:
    """Answer that something is not there."""
    return responses.JSONResponse({"error": f"there is no {what}"}, 404)


def wrong(what: str) -> responses.Response:
    """Answer that a question is not understood."""
    return responses.JSONResponse({"error": what}, 400)


def full(what: str) -> responses.Response:
    """Answer that there is no room at this moment."""
    return responses.JSONResponse({"error": what}, 503, headers={"Retry-After": "30"})
