"""The page as browsers load it: few requests, few bytes, names that change with the content."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys

import httpx
import pytest
import theatre

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


def test_a_bundle_does_what_its_modules_do(tmp_path: pathlib.Path) -> None:
    """Names of one module are hidden from the others; the entry may wait at its top level."""
    node = pathlib.Path(sys.executable).with_name("node")  # of requirements-dev.lock
    made = tmp_path / "bundle.mjs"
    made.write_text(page_files.bundle(written(tmp_path, MODULES), "main.js"))
    ran = subprocess.run([node, made], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "4 a 6 ab \nimport no\na ± 2\n", ran.stderr
    assert "\n    return" not in made.read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("export default class {}\n", "main.js: 'export default class {}' is an import or export"),
        ('export * from "./b.js"\n', "main.js: 'export \\* from"),
        ('import { NAME } from "./main.js"\n', "main.js: imports itself"),
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
        assert len(named) == 3 + 3  # script, style, icon; pictures ahead of the script
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
    assert len(script) < 60_000  # all that stands between a phone and the first piece
    (other / "js" / "format.js").write_text((other / "js" / "format.js").read_text() + "\n;0\n")
    changed = page_files.PageFiles(other)
    assert changed.digest != digest
    assert changed.worker().body != worker.content
