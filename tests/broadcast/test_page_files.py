"""The page as browsers load it: few requests, few bytes, names that change with the content."""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import shutil
import subprocess
import sys

import httpx
import pytest
import theatre
from starlette import applications

from orchestrator.broadcast.web import app, page_files

MODULES = {
    "main.js": 'import { twice as double, NAME } from "./lib/a.js"\n'
    'import * as all from "./lib/a.js"\nimport whole from "./b.js"\n'
    "export async function unused() { return await 1 }\n"
    "console.log(await Promise.resolve(double(2)), NAME, all.twice(3), whole, `\nimport no`)\n"
    "console.log(`${NAME}${NAME ? ` ± ${double(1)}` : ''}`)\n",
    "lib/a.js": "// no comment\n/*\nexport const GHOST = 1\n*/\nexport const NAME = 'a'\n"
    "const local = 2\nexport function twice(n) {\n    return n * local\n}\n",
    "b.js": 'import { NAME } from "./lib/a.js"\nconst local = `${NAME}b`\n'
    "export { local as default, local };\n",
}


def written(root: pathlib.Path, modules: dict[str, str]) -> pathlib.Path:
    """Write modules below a directory."""
    for name, text in modules.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


LATE = {
    "main.js": 'import { bump } from "./lib/count.js"\n'
    'export const load = () => import("./later.js")\n'
    "bump()\nconst [one, other] = await Promise.all([load(), load()])\n"
    "console.log(one.twice(), one === other, bump())\n",
    "lib/count.js": "let n = 0\nexport const bump = () => { n += 1; return n }\n",
    "lib/only.js": 'import { bump } from "./count.js"\nexport const twice = () => 2 * bump()\n',
    "later.js": 'import { twice } from "./lib/only.js"\nexport { twice }\n',
}


def run(root: pathlib.Path, modules: dict[str, str]) -> str:
    """Bundle modules and run what was made in node; return what it prints."""
    node = pathlib.Path(sys.executable).with_name("node")  # of requirements-dev.lock
    first, later = page_files.bundle(written(root / "page", modules), "main.js")
    (root / "package.json").write_text('{"type": "module"}')
    written(root, {"bundle.js": first, **later})
    command = [node, root / "bundle.js"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not ran.stderr
    return ran.stdout


def test_a_bundle_does_what_its_modules_do(tmp_path: pathlib.Path) -> None:
    """Names of one module are hidden from the others; the entry may wait at its top level."""
    assert run(tmp_path, MODULES) == "4 a 6 ab \nimport no\na ± 2\n"
    assert "\n    return" not in (tmp_path / "bundle.js").read_text()


def test_what_comes_later_shares_the_modules_that_are_there(tmp_path: pathlib.Path) -> None:
    """It is a script of its own with what only it imports, made once however often it is asked."""
    assert run(tmp_path, LATE) == "4 true 3\n"
    assert "2 * bump()" not in (tmp_path / "bundle.js").read_text()
    assert "n += 1" not in (tmp_path / "later.js").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("export default class {}\n", "main.js: 'export default class {}' is an import or export"),
        ('export * from "./b.js"\n', "main.js: 'export \\* from"),
        ('import { NAME } from "./main.js"\n', "main.js: imports itself"),
        ('import("./b.js")\nimport("./lib/a.js")\n', "main.js: one module may come later"),
    ],
)
def test_what_no_bundle_can_be_made_of_is_named(
    tmp_path: pathlib.Path, text: str, told: str
) -> None:
    """A form of import that is not understood is refused, not left to fail in a browser."""
    with pytest.raises(ValueError, match=told):
        page_files.bundle(written(tmp_path, MODULES | {"main.js": text}), "main.js")


def test_the_page_comes_in_few_requests_that_are_kept(tmp_path: pathlib.Path) -> None:
    """Each file is compressed, and kept for good under a name that changes with any content."""
    with (
        theatre.served(theatre.simulated("demo"), tmp_path) as url,
        httpx.Client(base_url=url) as client,
    ):
        page = client.get("/")
        named = sorted({*re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)})
        assert len(named) == 3 + 1  # script, style, icon; texts ahead of the script
        assert '<link rel="preload" href="api/v1/snapshot"' in page.text
        for drawing in (app.PAGE / "vendor/cm-chessboard/assets").rglob("*.svg"):
            for name in re.findall(r'<g id="([^"]+)"', drawing.read_text()):
                assert f'<g id="{name}"' in page.text, drawing  # no request before the first piece
        for name in named:
            answer = client.get(f"/{name}")
            assert answer.status_code == 200, name
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert len(answer.content) < 1_000 or answer.headers["content-encoding"] == "gzip"
        assert '<link rel="manifest" href="manifest.webmanifest">' in page.text
        manifest = client.get("/manifest.webmanifest")
        assert manifest.headers["content-type"].startswith("application/manifest+json")
        assert manifest.json()["start_url"] == manifest.json()["scope"] == "./"
        assert client.get(f"/{manifest.json()['icons'][0]['src']}").status_code == 200
        assert "manifest" not in client.get("/embed/board").text
        worker = client.get(f"/{page_files.WORKER}")
        assert worker.headers["content-type"].startswith("text/javascript")
        for place in json.loads(re.findall("^const SHELL = (.*)$", worker.text, re.MULTILINE)[0]):
            assert client.get(f"/{place}").status_code == 200, place
        again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert again.status_code == 304
        digest = named[0].split("/")[1]
        assert client.get(f"/{named[0].replace(digest, '0' * 16)}").status_code == 404
        assert client.get(f"/static/{digest}/../api.html").status_code == 404
        for address in ("/", "/api.html", "/?overlay=board", "/embed/nothing"):
            policy = client.get(address).headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy, address
        for part in page_files.PARTS:
            policy = client.get(f"/embed/{part}").headers["content-security-policy"]
            assert policy.endswith("frame-ancestors *")
            assert "script-src 'self'; style-src 'self'" in policy
    other = tmp_path / "page"
    shutil.copytree(app.PAGE, other)
    same = page_files.PageFiles(other)
    assert (same.digest, same.worker().body) == (digest, worker.content)
    script = same.static_files()[f"static/{digest}/index.js"].packed
    assert script is not None
    assert len(script) < 40_000  # all that stands between a phone and the first piece
    plots = same.static_files()[f"static/{digest}/vendor/uplot/uPlot.iife.min.js"].packed
    assert plots is not None
    assert len(script) + len(plots) < 60_000  # a large screen's first view: with graphs
    (other / "js" / "format.js").write_text((other / "js" / "format.js").read_text() + "\n;0\n")
    changed = page_files.PageFiles(other)
    assert changed.digest != digest
    assert changed.worker().body != worker.content


@pytest.mark.parametrize(
    ("address", "wishes", "language"),
    [
        ("/", "de-AT,de;q=0.9,en;q=0.8", "de"),
        ("/", "fr-CA, es;q=0.5", "es"),
        ("/", "fr", "en"),
        ("/", "", "en"),
        ("/?lang=es", "de", "es"),
        ("/embed/board?lang=xx", "de", "de"),
    ],
)
def test_the_texts_that_the_script_will_ask_for_are_asked_for_ahead(
    address: str, wishes: str, language: str
) -> None:
    """As far as a server knows the reader's language; caches that others share are told."""
    served = applications.Starlette(routes=page_files.PageFiles(app.PAGE).routes())

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(served)
        async with httpx.AsyncClient(transport=transport, base_url="http://farm") as client:
            return await client.get(address, headers={"Accept-Language": wishes})

    answer = asyncio.run(ask())
    ahead = re.findall(r'<link rel="preload" href="([^"]+)"', answer.text)
    assert [place.rpartition("/")[2] for place in ahead] == ["snapshot", f"{language}.json"]
    assert "Accept-Language" in answer.headers["vary"]
