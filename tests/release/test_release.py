"""The distributions: the wheel is built from the source distribution and lives by itself.

The short form needs no index: the empty environment is given links to exactly those
distributions of the present one that the wheel asks for, and the installer resolves the
wheel with its extra against them, offline. In the long form (`make release`) everything is
downloaded by the lock.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator

import pytest
import released
from packaging import requirements, utils

from orchestrator.common import built as built_module
from orchestrator.common import version

ROOT = released.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
ADDED = {f"orchestrator/built/{name}" for name in ("version", "commit", "hosts.tar.gz")}
OWN = (  # what work with a checkout leaves in it, and nobody else may have
    "ansible/inventory/production/hosts.yml",
    "deploy/compose/secrets/exporter.password",
    "deploy/compose/notify.toml",
)
DATA = (".lua", ".toml", ".pgn", ".tsv", ".html", ".css", ".js", ".svg", "py.typed")
UV = pathlib.Path(sysconfig.get_path("scripts")) / "uv"
ALIVE = """
import importlib.resources as resources, pathlib, sys, tempfile
import orchestrator, worker_cpu, worker_gpu
from orchestrator.ledger import embedded_redis, store
for package in (orchestrator, worker_cpu, worker_gpu):
    place = pathlib.Path(package.__file__)
    assert place.is_relative_to(sys.prefix), place
    assert (place.parent / "py.typed").exists(), place
page = resources.files("orchestrator.broadcast") / "page"
assert (page / "index.html").is_file() and (page / "vendor" / "uplot" / "LICENSE").is_file()
binary = embedded_redis.wheel_server()
assert binary is not None and binary.is_relative_to(sys.prefix), binary
with tempfile.TemporaryDirectory() as folder:
    with embedded_redis.EmbeddedRedis(pathlib.Path(folder), binary) as redis:
        with store.connect(redis.url) as ledger:
            assert ledger.seasons() == () and ledger.now_ms() > 0
            assert ledger.slot("hall-1") is None
"""
DOCUMENTS = """
import asyncio
from starlette import applications
from orchestrator.broadcast.web import docs_pages
page = applications.Starlette(routes=docs_pages.Manual(docs_pages.directory()).routes())
asked = {"type": "http", "method": "GET", "path": "/docs/season-file", "headers": []}
asked |= {"query_string": b"", "client": ("127.0.0.1", 1)}
async def receive(): return {"type": "http.request"}
async def send(message): print(message.get("body", b"").decode(), end="")
asyncio.run(page(asked, receive, send))
"""


@dataclasses.dataclass(frozen=True)
class Built:
    """The two distributions, and the tree they are built from."""

    tree: pathlib.Path
    wheel: pathlib.Path
    sdist: pathlib.Path

    @property
    def wheel_names(self) -> set[str]:
        """Return the wheel's files."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    @property
    def sdist_names(self) -> set[str]:
        """Return the source distribution's files, without its folder."""
        with tarfile.open(self.sdist) as archive:
            return {item.name.partition("/")[2] for item in archive if item.isfile()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build both, the wheel from the source distribution, in a copy of this tree."""
    tree = released.copy(tmp_path_factory.mktemp("tree"))
    for name in OWN:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("secret: sesame\n")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")):
        call(["git", *words], tree)
    out = tmp_path_factory.mktemp("out")
    build = ["build", "--offline", "--no-build-isolation", "--python", sys.executable]
    call([str(UV), *build, "--out-dir", str(out)], tree)
    return Built(tree, next(out.glob("*.whl")), next(out.glob("*.tar.gz")))


def call(command: list[str], folder: pathlib.Path, **extra: str) -> str:
    """Run a command as a stranger would: nothing of this environment leads into the tree."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "FARM_REDIS_URL", "FARM_DATA"}
    env = {name: value for name, value in os.environ.items() if name not in hidden} | extra
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def sources(tree: pathlib.Path) -> Iterator[str]:
    """Yield the files of the packages that belong into a wheel."""
    for package in PACKAGES:
        for path in (tree / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(tree))


def test_the_wheel_holds_the_packages_whole_and_nothing_else(built: Built) -> None:
    """Modules, Lua, seasons, books, page and py.typed are in; tests and documents are not."""
    inside = {name for name in built.wheel_names if ".dist-info/" not in name}
    assert inside == {*sources(built.tree), *ADDED}
    for ending in DATA:
        assert any(name.endswith(ending) for name in inside)


def test_the_wheel_carries_every_licence(built: Built) -> None:
    """The farm's own licence and those of what is vendored stand in its metadata."""
    told = {name.partition("licenses/")[2] for name in built.wheel_names if "licenses/" in name}
    vendored = built.tree.glob("orchestrator/broadcast/page/vendor/*/LICENSE")
    assert told == {"LICENSE", *(str(path.relative_to(built.tree)) for path in vendored)}


def test_the_sdist_holds_what_make_test_needs(built: Built) -> None:
    """All that the repository has is in; nothing of a work folder is, and nobody's secrets."""
    names = built.sdist_names
    tracked = set(call(["git", "ls-files"], built.tree).splitlines())
    assert {"Makefile", "bench/RESULTS.md", "tests/conftest.py", "docs/index.md"} < tracked
    assert ".dockerignore" in tracked, "an image that is built from it holds what lies beside it"
    assert tracked - set(OWN) <= names
    assert not names.intersection(OWN)
    assert not any(name.startswith((".venv", ".farm", "build/")) for name in names)
    assert "orchestrator/built/commit" in names, "`farm --version` of its wheel names the commit"


# -- an environment with nothing but the wheel and what it asks for ------------------


def wanted(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """Return the names of all distributions that one asks for with its extras, its own too."""
    one = (utils.canonicalize_name(name), extras)
    if one in seen:
        return set()
    seen.add(one)
    names = {one[0]}
    for text in importlib.metadata.requires(name) or ():
        need = requirements.Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras | {""}):
            names |= wanted(need.name, frozenset(need.extras), seen)
    return names


def link(name: str, site: pathlib.Path) -> None:
    """Link a distribution's files into another environment; installers want its facts real."""
    found = importlib.metadata.distribution(name)
    tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    for top in tops:
        source = pathlib.Path(str(found.locate_file(top))).resolve()
        if source.suffix == ".dist-info":
            shutil.copytree(source, site / top)
        elif not (site / top).exists():
            (site / top).symlink_to(source)


def empty(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Make an empty environment; return its Python and its packages' folder."""
    venv.create(folder, symlinks=True, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "bin" / "python", folder / "lib" / version / "site-packages"


@pytest.fixture(scope="module")
def python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Install the wheel with its extra where only that is which it asks for."""
    python, site = empty(tmp_path_factory.mktemp("empty"))
    needed = wanted(PROJECT["name"], frozenset({"embedded"}), set())
    for name in sorted(needed - {PROJECT["name"]}):
        link(name, site)
    offline = ["pip", "install", "--offline", "--no-index", "--python", str(python)]
    call([str(UV), *offline, f"{PROJECT['name']}[embedded] @ {built.wheel.as_uri()}"], site)
    call([str(UV), "pip", "check", "--python", str(python)], site)
    return python


def test_what_the_wheel_asks_for_is_enough(
    built: Built, python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Program, seasons, scripts, page and the embedded Redis work with nothing else there."""
    farm = str(python.parent / "farm")
    told = call([farm, "--version"], tmp_path)
    commit = call(["git", "rev-parse", "--short=8", "HEAD"], built.tree).strip()
    files = version.checksum(built.tree)
    assert told == f"farm, version {built_module.NEXT}.dev1 (files {files}, commit {commit})\n"
    assert "round" in call([farm, "check", "cup"], tmp_path)
    assert "position" in call([farm, "match", "--help"], tmp_path)
    assert call([farm, "simulate", "demo", "--seed", "1"], tmp_path)
    call([str(python), "-c", ALIVE], tmp_path)


def test_the_wheel_writes_the_files_of_hosts_out(
    built: Built, python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Without a checkout: what the playbooks read and install is there, and nobody's secrets."""
    farm = str(python.parent / "farm")
    assert "operate-hosts.md" in call([farm, "deploy", "export", "hosts"], tmp_path)
    hosts = tmp_path / "hosts"
    for part in ("deploy", "ansible", "docs", *PACKAGES):
        for path in (built.tree / part).rglob("*"):
            name = path.relative_to(built.tree)
            if path.is_file() and "__pycache__" not in path.parts and str(name) not in OWN:
                assert (hosts / name).read_bytes() == path.read_bytes(), name
    assert not any((hosts / name).exists() for name in OWN)
    kept_out = (ROOT / ".dockerignore").read_text()
    assert (hosts / ".dockerignore").read_text() == kept_out, "an image would hold the secrets"
    call(["scripts/make-source-archive", "build/farm.tar.gz"], hosts)
    with tarfile.open(hosts / "build/farm.tar.gz") as archive:
        assert {"pyproject.toml", "deploy/install/install-farm"} <= set(archive.getnames())
        number = archive.extractfile("orchestrator/built/version")
        assert number is not None
        assert number.read().decode() == f"{built_module.NEXT}.dev1"
    (hosts / "LICENSE").write_text("another")
    again = subprocess.run(
        [farm, "deploy", "export", "hosts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 3
    assert "other versions of LICENSE: nothing was written" in again.stderr
    call([farm, "deploy", "export", "hosts", "--overwrite"], tmp_path)
    assert (hosts / "LICENSE").read_bytes() == (built.tree / "LICENSE").read_bytes()


def test_what_the_wheel_installs_serves_the_documents(
    built: Built, python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The page of a farm without a checkout has what its texts name, as that version has it."""
    told = call([str(python), "-c", DOCUMENTS], tmp_path).strip()
    assert told == (built.tree / "docs" / "season-file.md").read_text().strip()


def test_every_module_of_the_wheel_can_be_imported(
    built: Built, python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """No module needs a package that only developers have."""
    names = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in sources(built.tree)
        if name.endswith(".py") and not name.endswith("__main__.py")
    ]
    text = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    call([str(python), "-c", text], tmp_path)


@pytest.mark.long
def test_the_wheel_installs_from_an_index(built: Built, tmp_path: pathlib.Path) -> None:
    """Pip downloads what the wheel asks for into an empty environment, which plays the demo."""
    venv.create(tmp_path / "empty", symlinks=True, with_pip=True)
    programs = tmp_path / "empty" / "bin"
    wheel = f"{PROJECT['name']}[embedded] @ {built.wheel.as_uri()}"
    call([str(programs / "pip"), "install", "-q", wheel], tmp_path)
    call([str(programs / "python"), "-c", ALIVE], tmp_path)
    path = f"{programs}:{os.environ['PATH']}"
    told = call([str(programs / "farm"), "demo", "--no-web"], tmp_path, PATH=path)
    assert "champion" in told.lower()
    assert list(tmp_path.glob(".farm/demo-*/archive/demo")), "it can be played again"
