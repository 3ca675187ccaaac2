"""The documents that the web application serves: what alerts link to, and nothing else."""

from __future__ import annotations

import asyncio
import pathlib
import re

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
        assert there.is_dir() or there.with_suffix(".md").is_file() or name == "rules/", name
    assert asked.get("/docs/engines", "8.8.8.8").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["secret", "..%2Fsecret", "%2e%2e/secret", ".hidden", "inner/.hidden", "link", "", "inner"],
)
def test_nothing_else_is_served(tmp_path: pathlib.Path, path: str) -> None:
    """No file above, none that is hidden, none that a link leads to, none that is no document."""
    docs = tmp_path / "docs"
    (docs / "inner").mkdir(parents=True)
    for place in (tmp_path / "secret.md", docs / ".hidden.md", docs / "inner" / ".hidden.md"):
        place.write_text("secret")
    (docs / "secret").write_text("secret")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    answer = Client(docs).get(f"/docs/{path}")
    assert answer.status_code == 404
    assert "secret\n" not in answer.text
    assert answer.json()["error"].startswith("there is no document")


def test_a_wheel_serves_the_documents_that_it_carries(tmp_path: pathlib.Path) -> None:
    """Where no folder of documents lies, those for hosts are served: Markdown alone."""
    packed = tmp_path / "hosts.tar.gz"
    packed.write_bytes(built.pack(ROOT))
    asked = Client(tmp_path / "nowhere", packed)
    for place, path in (
        ("tutorial", "tutorial.md"),
        ("", "index.md"),
        ("rules/", "rules/index.md"),
    ):
        assert asked.get(f"/docs/{place}").text == (ROOT / "docs" / path).read_text(), place
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
