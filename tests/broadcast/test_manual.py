"""The documents that the web application serves: what alerts link to, and nothing else."""

from __future__ import annotations

import asyncio
import html.parser
import pathlib
import re
import urllib.parse

import httpx
import pytest
from starlette import applications

from orchestrator.broadcast.web import docs_pages
from orchestrator.common import built

ROOT = pathlib.Path(__file__).parents[2]
RULES = (ROOT / "deploy" / "prometheus" / "rules" / "alerts.yml").read_text()
LINKS = re.findall(r"runbook_url: '\{\{ \$externalLabels\.farm_docs \}\}(\S+)'", RULES)


class Client:
    """A client of an application that serves a directory's documents."""

    def __init__(self, root: pathlib.Path, *packed: pathlib.Path) -> None:
        self._app = applications.Starlette(routes=docs_pages.Manual(root, *packed).routes())

    def get(self, path: str, address: str = "127.0.0.1", **headers: str) -> httpx.Response:
        """Return the answer to one question from an address."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://farm") as asked:
                return await asked.get(path, headers=headers)

        return asyncio.run(ask())


class Page(html.parser.HTMLParser):
    """What a browser finds in a page: links, pictures, anchors, words."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.kinds: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an element leads to, and its anchor."""
        self.kinds.append(tag)
        for name, value in attrs:
            if name in {"href", "src"}:
                self.links.append(value or "")
            elif name == "id":
                self.anchors.add(value or "")

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        self.words += data


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_follows_every_link_of_the_documents() -> None:
    """From any form of an address: to pages as HTML, pictures and schemas, and to their anchors."""
    asked, page_folder = Client(ROOT / "docs"), ROOT / "orchestrator" / "broadcast" / "page"
    pages: dict[str, Page] = {}
    wanted = ["/docs", "/docs/", "/docs/index.md", "/docs/runbooks/", "/docs/rules"]
    anchors: set[tuple[str, str]] = set()
    while wanted:
        place = wanted.pop()
        if place in pages:
            continue
        if not place.startswith("/docs"):
            assert place == "/" or (page_folder / place.lstrip("/")).is_file(), place
            continue
        answer = asked.get(place, **BROWSER)
        assert answer.status_code == 200, place
        is_page = answer.headers["content-type"] == "text/html; charset=utf-8"
        assert is_page or place.endswith((".svg", ".png", ".json", ".toml")), place
        pages[place] = page = Page(answer.text if is_page else "")
        for link in page.links:
            whole = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://farm{place}", link))
            if whole.netloc == "farm":
                wanted.append(whole.path)
                anchors.add((whole.path, whole.fragment))
    assert len(pages) > 100
    assert {"/docs/reference/season.schema.json", "/docs/pictures/structure.svg"} <= set(pages)
    for place, anchor in anchors:
        assert not anchor or anchor in pages[place].anchors, (place, anchor)


def test_a_document_is_a_page_for_a_browser_and_text_for_all_others() -> None:
    """Tables and code as HTML, what looks like HTML as words, comments not at all."""
    asked = Client(ROOT / "docs")
    page = asked.get("/docs/how-to/move-from-a-spreadsheet", **BROWSER)
    assert page.headers["vary"] == "Accept, Accept-Encoding"
    shown = Page(page.text)
    assert {"table", "pre", "nav", "title", "h1"} <= set(shown.kinds)
    assert "farm season import played.pgn" in shown.words
    assert "background" not in shown.words, "a mark for the tests of documents"
    assert Page(asked.get("/docs/match", **BROWSER).text).kinds.count("sup") == 1
    outside = Page(asked.get("/docs/engines", "8.8.8.8", **BROWSER).text)
    assert "All documents" in shown.words
    assert "All documents" not in outside.words, "they are for operators"
    assert asked.get("/docs/reference/season.schema.json", "8.8.8.8").json()["title"]
    assert asked.get("/docs/pictures/watch.svg").headers["content-type"] == "image/svg+xml"
    assert asked.get("/docs/reference/clauses.toml").status_code == 200
    text = asked.get("/docs/match")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.text == (ROOT / "docs" / "match.md").read_text()


def test_what_a_document_says_cannot_become_a_script(tmp_path: pathlib.Path) -> None:
    """Elements are shown as words, and links that would run something are none."""
    (tmp_path / "bad.md").write_text(
        "# <script>1</script>\n\n<script>2</script>\n\n<b onclick=3>x</b> [y](javascript:4)"
        ' ![z](data:text/html,5 "t") `<i>`\n\n<!-- gone --> <script>6</script>\n'
    )
    answer = Client(tmp_path).get("/docs/bad", **BROWSER)
    assert answer.status_code == 200
    shown = Page(answer.text)
    assert {"script", "b", "i"}.isdisjoint(shown.kinds)
    assert not [link for link in shown.links if ":" in link]
    assert "gone" not in shown.words


def test_every_alerts_link_leads_to_its_runbook() -> None:
    """Below /docs, from the documents that lie beside the virtual environment."""
    asked = Client(ROOT / "docs")
    assert len(LINKS) > 30
    for link in LINKS:
        answer = asked.get(f"/docs{link}")
        assert answer.status_code == 200, link
        assert answer.text.startswith(f"# {link.strip('/').rpartition('/')[2]}\n")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_document_has_the_addresses_of_the_built_site_and_of_its_file() -> None:
    """The index, a folder's index, with slash, without, and by file name."""
    asked = Client(ROOT / "docs")
    index = (ROOT / "docs" / "index.md").read_text()
    assert [asked.get(path).text for path in ("/docs", "/docs/")] == [index, index]
    told = (ROOT / "docs" / "runbooks" / "index.md").read_text()
    for path in ("/docs/runbooks", "/docs/runbooks/", "/docs/runbooks/index.md"):
        assert asked.get(path).text == told, path


def test_runbooks_are_for_private_networks_only() -> None:
    """The world reads what spectators and authors need; operators' pages it does not get."""
    asked = Client(ROOT / "docs")
    for path in ("/docs/runbooks/FarmRedisDown/", "/docs", "/docs/security", "/docs/operating.md"):
        for inside in ("127.0.0.1", "10.1.2.3", "192.168.7.7", "::1", "fd00::1", "::ffff:10.0.0.1"):
            assert asked.get(path, inside).status_code == 200, (path, inside)
        for outside in ("192.0.2.7", "8.8.8.8", "2001:db8::1", "172.32.0.1"):
            answer = asked.get(path, outside)
            assert answer.status_code == 403, (path, outside)
            assert "operators" in answer.text
        through_a_stranger = asked.get(path, "10.0.0.5", **{"X-Forwarded-For": "8.8.8.8"})
        assert through_a_stranger.status_code == 403, "a proxy that nobody trusts, in our network"
    for name in docs_pages.PUBLIC:
        there = ROOT / "docs" / name
        page = there.with_suffix(".md")
        assert there.exists() or page.is_file() or name == "rules/", name
    assert asked.get("/docs/engines", "8.8.8.8").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *("secret", "..%2Fsecret", "%2e%2e/secret", ".hidden", "inner/.hidden", "link", "inner"),
        *("..%2Fsecret.json", "%2e%2e/secret.svg", ".hidden.json", "link.svg", "link.json/", ""),
    ],
)
def test_nothing_else_is_served(tmp_path: pathlib.Path, path: str) -> None:
    """No file above, none that is hidden, none that a link leads to, none that is no document."""
    docs = tmp_path / "docs"
    (docs / "inner").mkdir(parents=True)
    for place in (tmp_path / "secret.md", docs / ".hidden.md", docs / "inner" / ".hidden.md"):
        place.write_text("secret")
    (docs / "secret").write_text("secret")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    for place in (tmp_path / "secret.json", tmp_path / "secret.svg", docs / ".hidden.json"):
        place.write_text("secret")
    for name in ("link.svg", "link.json"):
        (docs / name).symlink_to(tmp_path / "secret.json")
    answer = Client(docs).get(f"/docs/{path}")
    assert answer.status_code == 404
    assert "secret\n" not in answer.text
    assert answer.text == "no documents are here: FARM_DOCS names the folder where they lie\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    (docs / "index.md").write_text("# Index\n")
    if path:
        told = Client(docs).get(f"/docs/{path}", **BROWSER).text
        assert told.startswith("there is no document '"), told
        assert told.endswith("/docs names all that there are\n")


def test_a_wheel_serves_the_documents_that_it_carries(tmp_path: pathlib.Path) -> None:
    """Where no folder of documents lies, those for hosts are served, with what they link to."""
    packed = tmp_path / "hosts.tar.gz"
    packed.write_bytes(built.pack(ROOT))
    asked = Client(tmp_path / "nowhere", packed)
    for place, path in (
        ("tutorial", "tutorial.md"),
        ("", "index.md"),
        ("rules/", "rules/index.md"),
    ):
        assert asked.get(f"/docs/{place}").text == (ROOT / "docs" / path).read_text(), place
    assert asked.get("/docs/pictures/structure.svg").status_code == 200
    assert asked.get("/docs/reference/season.schema.json").json()["title"]
    for outside in ("..%2FREADME", "../README", "reference/season.schema", "nothing"):
        assert asked.get(f"/docs/{outside}").status_code == 404, outside
    assert asked.get("/docs/operating", "8.8.8.8").status_code == 403
    assert Client(tmp_path / "nowhere", tmp_path / "none").get("/docs/tutorial").status_code == 404


def test_documents_lie_beside_the_environment_or_where_one_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FARM_DOCS wins; else PREFIX/docs beside PREFIX/venv, as the install script has it."""
    monkeypatch.setenv("FARM_DOCS", "/srv/docs")
    assert docs_pages.directory() == pathlib.Path("/srv/docs")
    monkeypatch.delenv("FARM_DOCS")
    monkeypatch.setattr("sys.prefix", "/opt/farm/venv")
    assert docs_pages.directory() == pathlib.Path("/opt/farm/docs")
