"""The live page as browsers load it: one script, one style sheet, hashed names, compressed.

The page is written as ES modules, one style sheet a package, and is served so, too, for who reads
it. A browser would ask for forty files of it, and for each again at every visit. So the pages
refer to what is made here at the start: all modules of a page in one script, in the order of
their imports, all style sheets in one. They lie below ``static/DIGEST/``, where
a browser keeps them for good, since another content has another digest. The live page carries the
pieces in itself, and asks in its head for what its script will ask for: where things stand, and
the texts of the browser's language.

What a module may say is what ours and the bundled packages say: ``import {a, b as c} from``,
``import * as a from``, ``import a from``, ``export`` before a declaration, ``export {a, b as c}``,
and ``import("place")`` for a module that comes later, as a script of its own with all that only it
imports. Anything else is a ``ValueError`` at the start, and a test's failure before.
"""

from __future__ import annotations

import hashlib
import pathlib
import posixpath
import re
import types
from collections.abc import Mapping
from typing import Final

from starlette import requests, responses, routing

from orchestrator import contract
from orchestrator.broadcast.content import documents
from orchestrator.broadcast.web import guard, preview
from orchestrator.broadcast.web import responses as web_responses

PAGES: Final = ("index.html", "api.html")
WORKER: Final = "service-worker.js"
PARTS: Final = ("game", "board", "clocks", "standings")
SNAPSHOT: Final = "api/v1/snapshot"
_AHEAD: Final = '<link rel="preload" href="{}" as="fetch" crossorigin="anonymous">'
_DRAWN: Final = {  # by the id under which the board looks for them before it fetches them
    "cm-chessboard-sprite": "pieces/standard",
    "cm-chessboard-markers": "extensions/markers/markers",
    "cm-chessboard-arrows": "extensions/arrows/arrows",
}
_DRAWINGS: Final = "vendor/cm-chessboard/assets"
_HEAD_OF_SVG: Final = re.compile(r"<\?xml[^>]*\?>\s*")
LANGUAGE: Final = "en"  # where a browser asks for none that the page has
_STANDS_FOR: Final = {  # what no page of ours needs: nobody moves a piece on it
    "vendor/cm-chessboard/src/view/VisualMoveInput.js": "js/no-move-input.js"
}
_UNVERSIONED: Final = ("icon.svg", "manifest.webmanifest", "favicon.ico")
_OF_API: Final = re.compile(r"/api\.(?:js|css)$")
_FOREVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    ".svg": "image/svg+xml",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
}

_IMPORT: Final = re.compile(
    r"^import\s+(?:(?P<default>\w+)|\{(?P<names>[^}]*)\}|\*\s*as\s+(?P<all>\w+))"
    r'\s+from\s+["\'](?P<place>[^"\']+)["\'];?[ \t]*$',
    re.MULTILINE,
)
_LATER: Final = re.compile(r'\bimport\("(?P<place>[^"]+)"\)')
_DECLARATION: Final = re.compile(
    r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const)\s+(?P<name>\w+))", re.MULTILINE
)
_LIST: Final = re.compile(r"^export\s*\{(?P<names>[^}]*)\};?[ \t]*$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*\n", re.MULTILINE | re.DOTALL)
_LINE_COMMENT: Final = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)
# Not what a literal inside another one begins with.
_INDENT: Final = re.compile(r"(?<=\n)[ \t]+|\n(?=\n)")
_CAST: Final = re.compile(r"/\*\* @type \{[^*]*\} \*/ ")  # before a value
_REMARK: Final = re.compile(r"(?<=[\s;,{}()])//[^\n\"'`]*$", re.MULTILINE)  # behind code
_LEFT: Final = re.compile(r"^(?:import|export)\b(?!\()[^\n]*", re.MULTILINE)
_SHEET: Final = re.compile(r'^[ \t]*<link rel="stylesheet" href="([^"]+)">\n', re.MULTILINE)
_APP: Final = re.compile(r'^[ \t]*<link rel="manifest" [^>]*>\n', re.MULTILINE)
_SCRIPT: Final = re.compile(r'<script type="module" src="([^"]+)"></script>')


class PageFiles:
    """The documents of the page, made of a directory once."""

    def __init__(self, root: pathlib.Path, public: str = "") -> None:
        """Read all files; raise ``ValueError`` for a module that says what is not understood.

        ``public`` is the page's public base address, which links' previews need.
        """
        self._root, self._public = root, public
        pages = {name: (root / name).read_text(encoding="utf-8") for name in PAGES}
        kept = [root / "icon.svg", *root.glob("texts/*.json"), *root.rglob("*.min.js")]
        made = {str(path.relative_to(root)): path.read_bytes() for path in sorted(kept)}
        self._languages = [path.stem for path in sorted(root.glob("texts/*.json"))]
        for name, text in pages.items():
            stem = name.removesuffix(".html")
            sheets = [(root / sheet).read_text(encoding="utf-8") for sheet in _SHEET.findall(text)]
            made[f"{stem}.css"] = "\n".join(sheets).encode()
            (entry,) = _SCRIPT.findall(text)
            first, later = bundle(root, entry)
            made[f"{stem}.js"] = first.encode()
            made |= {path: script.encode() for path, script in later.items()}
        self.digest = _digest(made)
        self._static = {
            path: documents.Document(body, _TYPES[pathlib.PurePosixPath(path).suffix])
            for path, body in made.items()
        }
        self._pages = {
            (name, language): _of_html(self._refer(name, text, language))
            for name, text in pages.items()
            for language in self._languages
        }
        self._worker = self.worker()
        whole = _APP.sub("", pages[PAGES[0]])  # a part of it is no app
        self._parts = {
            (part, language): _of_html(
                self._refer(PAGES[0], whole, language, above="../").replace(
                    "<html ", f'<html data-root="../" data-part="{part}" ', 1
                )
            )
            for part in PARTS
            for language in self._languages
        }

    def _refer(self, name: str, text: str, language: str, above: str = "") -> str:
        """Let a page refer to what was made for it, which may lie above its own address."""
        base = f"{above}static/{self.digest}/"
        stem = base + name.removesuffix(".html")
        text = _SHEET.sub("", text).replace(
            "</head>", f'  <link rel="stylesheet" href="{stem}.css">\n</head>'
        )
        text = _SCRIPT.sub(f'<script type="module" src="{stem}.js"></script>', text)
        if name == PAGES[0]:  # asked for beside the script, not one way to and fro after it
            needed = (f"{above}{SNAPSHOT}", f"{base}texts/{language}.json")
            ahead = "".join(f"  {_AHEAD.format(place)}\n" for place in needed)
            text = text.replace("</head>", f"{ahead}</head>")
            text = text.replace("</body>", f"{_drawings(self._root)}</body>")
        if self._public:
            text = text.replace(f'"{preview.PLACE}"', f'"{self._public}/{preview.PLACE}"')
        text = text.replace('"icon.svg"', f'"{base}icon.svg"')
        return text.replace("<html ", f'<html data-static="{base}" ')

    def worker(self, index: str = "", *more: str) -> documents.Document:
        """Return the service worker of a page: ``index``, else the server's, and ``more`` files."""
        shell = ["./", *_UNVERSIONED, *more]
        shell += [path for path in self.static_files() if not _OF_API.search(path)]
        version = _digest({"index": (index or self.index).encode(), "shell": repr(shell).encode()})
        text = (self._root / WORKER).read_text(encoding="utf-8")
        head = f"const VERSION = {contract.dumps(version)}\nconst SHELL = {contract.dumps(shell)}\n"
        return documents.Document((head + text).encode(), "text/javascript; charset=utf-8")

    @property
    def index(self) -> str:
        """Return the live page for a host that knows no reader's language."""
        return self._pages[PAGES[0], LANGUAGE].body.decode()

    def static_files(self) -> dict[str, documents.Document]:
        """Return what the pages refer to, by its address."""
        return {f"static/{self.digest}/{path}": document for path, document in self._static.items()}

    def routes(self) -> list[routing.BaseRoute]:
        """Return the routes of the pages and of what they refer to."""
        return [
            routing.Route("/", self.page),
            *(routing.Route(f"/{name}", self.page) for name in PAGES),
            routing.Route(f"/{WORKER}", self.service_worker),
            routing.Route("/embed/{part}", self.part),
            routing.Route("/static/{digest}/{place:path}", self.static),
        ]

    async def page(self, request: requests.Request) -> responses.Response:
        """Return a page, which is asked for again each time."""
        name = request.url.path.rpartition("/")[2] or PAGES[0]
        return self._in_language(request, self._pages[name, self._language(request)])

    def _language(self, request: requests.Request) -> str:
        """Return the language that the page's script will choose, as far as a server can know it.

        (``js/texts.js``: that of the address, else the browser's first that the page has.)
        """
        wishes = [request.query_params.get("lang", "")]
        wishes += request.headers.get("accept-language", "").split(",")
        named = (wish.partition(";")[0].strip().lower().partition("-")[0] for wish in wishes)
        return next((language for language in named if language in self._languages), LANGUAGE)

    @staticmethod
    def _in_language(request: requests.Request, page: documents.Document) -> responses.Response:
        answer = web_responses.of_document(request, page)
        answer.headers["Vary"] = "Accept-Encoding, Accept-Language"
        return answer

    async def service_worker(self, request: requests.Request) -> responses.Response:
        """Return what keeps the page in a browser; another one makes it fetch the page again."""
        return web_responses.of_document(request, self._worker)

    async def part(self, request: requests.Request) -> responses.Response:
        """Return a part of the page, which any site may show in a frame."""
        part = request.path_params["part"]
        page = self._parts.get((part, self._language(request)))
        if page is None:
            return web_responses.missing(f"part {part!r} of the page: {', '.join(PARTS)}")
        answer = self._in_language(request, page)
        answer.headers.update(guard.FRAMED)
        return answer

    async def static(self, request: requests.Request) -> responses.Response:
        """Return what a page refers to; of another version there is nothing."""
        path = request.path_params["place"]
        file = self._static.get(path) if request.path_params["digest"] == self.digest else None
        if file is None:
            return web_responses.missing(f"static file {path!r} of this version")
        return web_responses.of_document(request, file, _FOREVER)


def _digest(made: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for path, body in sorted(made.items()):
        whole.update(f"{path} {len(body)}\n".encode() + body)
    return whole.hexdigest()[:16]


def _of_html(text: str) -> documents.Document:
    return documents.Document(text.encode(), "text/html; charset=utf-8")


def _drawings(root: pathlib.Path) -> str:
    """Return what the board refers to: pieces, markers and arrows."""
    texts = {
        name: (root / _DRAWINGS / f"{path}.svg").read_text(encoding="utf-8")
        for name, path in _DRAWN.items()
    }
    return "".join(
        f'  <div id="{name}" class="drawings" aria-hidden="true">'
        f"{_without_indents(_HEAD_OF_SVG.sub('', text))}</div>\n"
        for name, text in texts.items()
    )


def bundle(root: pathlib.Path, entry: str) -> tuple[str, dict[str, str]]:
    """Return a module with all that it imports as one, and by its path the one that comes later.

    Raise ``ValueError`` by file and line.
    """
    first = _Modules(root)
    body, _ = first.add(entry)
    shared, scripts = ", ".join(first.names.values()), {}
    for path in first.later:
        rest = _Modules(root, first.names)
        own, exported = rest.add(path)
        if len(first.later) > 1 or rest.later:
            raise ValueError(f"{entry}: one module may come later, not {first.later + rest.later}")
        scripts[path] = "\n".join(
            [
                "let made",
                f"export const make = ([{shared}]) => made ??= (() => {{",
                *rest.parts,
                own,
                f"return {{ {', '.join(exported)} }}",
                "})()\n",
            ]
        )
    # The entry stands as it is: it may wait at its top level.
    parts = [*first.parts, f"const modules = () => [{shared}]\n" if scripts else "", body]
    return "\n".join(filter(None, parts)), scripts


class _Modules:
    """Modules in the order of their imports, each as a value that those behind it refer to."""

    def __init__(self, root: pathlib.Path, before: Mapping[str, str] = types.MappingProxyType({})):
        """Refer to modules that are there before by their names."""
        self._root, self.names = root, dict(before)
        self.parts: list[str] = []
        self.later: list[str] = []  # modules that are imported when they are needed

    def add(self, path: str, above: tuple[str, ...] = ()) -> tuple[str, list[str]]:
        """Add all that a module imports; return its own text, and what it exports."""
        if path in above:
            raise ValueError(f"{path}: imports itself by {' and '.join(above)}")
        text = (self._root / path).read_text(encoding="utf-8")
        for statement in _IMPORT.finditer(text):
            wanted = _resolve(path, statement["place"])
            if wanted not in self.names:
                self._add_named(wanted, (*above, path))
        return _translate(path, text, self.names, self.later)

    def _add_named(self, path: str, above: tuple[str, ...]) -> None:
        body, exported = self.add(path, above)
        self.names[path] = name = f"module{len(self.names)}"
        self.parts.append(
            f"const {name} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }}\n}})()\n"
        )


def _resolve(path: str, named: str) -> str:
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
    return _STANDS_FOR.get(place, place)


def _translate(
    path: str, text: str, names: Mapping[str, str], later: list[str]
) -> tuple[str, list[str]]:
    """Return a module's text without imports and exports, and what it exports.

    What it imports when that is needed is added to ``later``.
    """
    exported: list[str] = []

    def imported(statement: re.Match[str]) -> str:
        module = names[_resolve(path, statement["place"])]
        if statement["all"]:
            return f"const {statement['all']} = {module}"
        if statement["default"]:
            return f"const {statement['default']} = {module}.default"
        wanted = [name.split() for name in statement["names"].split(",") if name.strip()]
        return f"const {{ {', '.join(': '.join(name[::2]) for name in wanted)} }} = {module}"

    def declared(export: re.Match[str]) -> str:
        exported.append(export["name"])
        return ""

    def listed(statement: re.Match[str]) -> str:
        for name_text in statement["names"].split(","):
            name, *renamed = name_text.split()
            exported.append(f"{renamed[-1]}: {name}" if renamed else name)
        return ""

    def awaited(named: re.Match[str]) -> str:
        place = _resolve(path, named["place"])
        if place not in later:
            later.append(place)
        return f'import("./{place}").then(({{ make }}) => make(modules()))'

    bare = _CAST.sub("", _REMARK.sub("", _LINE_COMMENT.sub("", _COMMENT.sub(_if_legal, text))))
    body = _LIST.sub(listed, _DECLARATION.sub(declared, _IMPORT.sub(imported, bare)))
    body = _LATER.sub(awaited, body)
    left = _LEFT.search(_without_templates(body))
    if left:
        raise ValueError(f"{path}: {left.group()!r} is an import or export not understood here")
    return _without_indents(body), exported


def _if_legal(comment: re.Match[str]) -> str:
    """Keep a comment that says whose work it is."""
    return (
        comment.group() if re.search("copyright|licen[cs]e", comment.group(), re.IGNORECASE) else ""
    )


def _without_indents(text: str) -> str:
    """Leave out what stands before lines, but in template literals."""
    return "".join(
        part if part.startswith("`") else _INDENT.sub("", part)
        for part in re.split(r"(`(?:[^`\\]|\\.)*`)", text, flags=re.DOTALL)
    )


def _without_templates(text: str) -> str:
    """Leave out template literals, where lines begin with any word."""
    return re.sub(r"`(?:[^`\\]|\\.)*`", "", text, flags=re.DOTALL)
