"""Serve the documents of the installed version, runbooks among them.

The farm's own alerts link here (``/docs/runbooks/NAME/``), so that a runbook is at hand on
a network that reaches nothing else, and is the one of the version that runs. Browsers get HTML,
all others the Markdown as it is written. Invariants: only Markdown below the one directory is
served, with the pictures and schemas that it links to; no link leads out of it; what is for
operators is served to private networks only (``INSIDE``), and to the world nothing but ``PUBLIC``.
"""

from __future__ import annotations

import collections
import functools
import html
import ipaddress
import itertools
import os
import pathlib
import posixpath
import re
import sys
import unicodedata
import urllib.parse
from collections.abc import Sequence
from typing import Any, Final

import markdown_it
from markdown_it import token as markdown_token
from starlette import concurrency, requests, responses, routing

from orchestrator.broadcast.content import documents
from orchestrator.broadcast.web import responses as web_responses
from orchestrator.common import built

# Pages for spectators and engine authors; a name with a slash is a folder.
PUBLIC: Final = (
    *("broadcast", "engines", "match", "ratings", "season-file", "test-matches", "tutorial"),
    *("explanation/", "rules/", "reference/archives", "reference/clauses", "how-to/run-a-cup"),
    *("how-to/add-an-engine", "how-to/decide-a-tie", "how-to/look-into-a-game"),
    *("pictures/", "reference/season.schema.json", "reference/roster.schema.json"),
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
# What documents link to beside each other, with its type.
_FILES: Final = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".json": documents.JSON,
    ".toml": "text/plain; charset=utf-8",
}
_FILE: Final = re.compile(rf"{_PLACE.pattern}(?:\.[\w-]+)*(?:{'|'.join(map(re.escape, _FILES))})")
# A picture that is opened by itself may style itself, and do nothing else.
_DRAWN: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
_MARKDOWN: Final = markdown_it.MarkdownIt("commonmark").enable("table")
_OWN_HTML: Final = re.compile(r"</?sup>")
_COMMENT: Final = re.compile(r"<!--.*?-->\s*", re.DOTALL)  # marks for the tests of documents


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
        """Return a document, by the address that the built site gives it as well."""
        place = request.path_params.get("place")
        path = (place or "").removesuffix("/").removesuffix(".md") or "index"
        if not path.startswith(PUBLIC) and not _from_inside(request):
            return responses.PlainTextResponse(
                "this page is for the farm's operators; it is served to private networks only\n",
                403,
            )
        return await concurrency.run_in_threadpool(self._answer, request, path, place)

    def _answer(
        self, request: requests.Request, path: str, place: str | None
    ) -> responses.Response:
        if _FILE.fullmatch(path) and (content := self._read(path)) is not None:
            suffix = pathlib.PurePosixPath(path).suffix
            answer = web_responses.of_document(request, documents.Document(content, _FILES[suffix]))
            answer.headers.update(_DRAWN if suffix == ".svg" else {})
            return answer
        names = (f"{path}.md", f"{path}/index.md") if _PLACE.fullmatch(path) else ()
        for name in names:
            if (content := self._read(name)) is not None:
                return _of_markdown(request, name, content, _above(place))
        if self._read("index.md") is None:
            missing = "no documents are here: FARM_DOCS names the folder where they lie\n"
        else:
            missing = f"there is no document {path!r}; /docs names all that there are\n"
        return responses.PlainTextResponse(missing, 404)

    def _read(self, name: str) -> bytes | None:
        """Return a file's bytes by its path below docs, None where it is not there."""
        if not self._root.is_dir():
            return _carried(self._packed).get(name)
        path = self._root / name
        if path.is_file() and path.resolve().is_relative_to(self._root):
            return path.read_bytes()
        return None


def _of_markdown(
    request: requests.Request, name: str, content: bytes, above: str
) -> responses.Response:
    """Return a document as HTML to who takes that, such as a browser, else as it is written."""
    if "text/html" in request.headers.get("accept", ""):
        title, body = _rendered(name, content, above)
        page = _page(title, body, above, inside=_from_inside(request))
        document = web_responses.of_text(page, "text/html")
    else:
        document = web_responses.of_text(content, "text/plain")
    answer = web_responses.of_document(request, document)
    answer.headers["Vary"] = "Accept, Accept-Encoding"
    return answer


def _above(place: str | None) -> str:
    """Return the way from an address to the first document's folder; None is /docs itself."""
    return "docs/" if place is None else "../" * place.count("/")


def _page(title: str, body: str, above: str, *, inside: bool) -> str:
    """Return a document's HTML as a page; the list of all is for operators, as ``PUBLIC`` says."""
    more = f' · <a href="{above}index">All documents</a>' if inside else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)} · Tournament Farm</title>\n"
        f'<link rel="icon" href="{above}../icon.svg">\n'
        f'<link rel="stylesheet" href="{above}../documents.css">\n</head>\n<body>\n'
        f'<nav><a href="{above}../">Live page</a>{more}</nav>\n<main>\n{body}</main>\n'
        "</body>\n</html>\n"
    )


@functools.lru_cache(maxsize=256)
def _rendered(name: str, content: bytes, above: str) -> tuple[str, str]:
    """Return the title and the HTML of a document whose path below docs is ``name``."""
    tokens = _MARKDOWN.parse(content.decode())
    taken: collections.Counter[str] = collections.Counter()
    title = ""
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            heading = "".join(child.content for child in inline.children or ())
            title = title or heading
            opening.attrSet("id", _anchor(heading, taken))
    for token in tokens:
        for child in token.children or ():
            for attribute in {"link_open": ("href",), "image": ("src",)}.get(child.type, ()):
                link = str(child.attrGet(attribute))
                child.attrSet(attribute, _address(link, name, above))
    return title or name, str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _anchor(words: str, taken: collections.Counter[str]) -> str:
    """Return a heading's anchor, which is the built site's, too (Python-Markdown's ``slugify``)."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
    taken[anchor] += 1
    return anchor if taken[anchor] == 1 else f"{anchor}_{taken[anchor] - 1}"


def _address(link: str, name: str, above: str) -> str:
    """Return where a link of a document leads from the address by which that was asked for."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), parts.path))
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return above + path.removesuffix(".md") + fragment


def _html(_: Any, tokens: Sequence[markdown_token.Token], index: int, *_unused: Any) -> str:
    """Return what a document says in HTML: without comments, and escaped but for exponents."""
    rendered = _COMMENT.sub("", tokens[index].content)
    return rendered if _OWN_HTML.fullmatch(rendered) else html.escape(rendered)


for _kind in ("html_block", "html_inline"):
    _MARKDOWN.add_render_rule(_kind, _html)


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
        if name.startswith("docs/") and name.endswith((".md", *_FILES))
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
