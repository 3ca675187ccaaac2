"""What a build writes beside the program: version, commit, and the files that hosts are made from.

``setup.py`` writes them into wheel and source distribution, ``scripts/make-source-archive`` the
first two into what hosts install; of a checkout they are asked of git and of the folders
themselves. This module imports the standard library alone: the build loads it.
"""

from __future__ import annotations

import gzip
import io
import pathlib
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from typing import Final

FOLDER: Final = "orchestrator/built"  # beside the program; no part of its checksum
COMMIT: Final = f"{FOLDER}/commit"
NUMBER: Final = f"{FOLDER}/version"
NEXT: Final = "0.2.0"  # the release that is being made, where no tag tells
FILES: Final = f"{FOLDER}/hosts.tar.gz"
# All that `docs/how-to/operate-hosts.md` needs, but for the packages, which are installed.
PARTS: Final = (
    "ansible",
    "deploy",
    "docs",
    "scripts/make-certificates",
    "scripts/make-source-archive",
    "pyproject.toml",
    "requirements.lock",
    "README.md",
    "LICENSE",
    ".dockerignore",  # without it the image would have the inventory's secrets
)
# What work leaves behind: inventories of somebody's own hosts among it, with their secrets.
_LEFT: Final = frozenset({"__pycache__", ".ansible", ".cache"})
_INVENTORY: Final = ("ansible", "inventory")
_COMPOSE_OWN: Final = frozenset({"secrets", "notify.toml"})  # of deploy/compose: make-secrets' work
_ASKED: Final = ("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=8")
_TAG: Final = ("describe", "--tags", "--long", "--match=v[0-9]*")
_BEHIND: Final = re.compile(
    r"v(.*?)(\d+)-(\d+)-g[0-9a-f]+"
)  # a tag, and how many commits ago it was


def version(root: pathlib.Path) -> str:
    """Return the version of a program below ``root`` (PEP 440).

    The commit with the tag ``v0.2.0`` is 0.2.0, the fifth after it 0.2.1.dev5; a checkout without
    tags counts its commits towards ``NEXT``. Without git it is what the build has written; where
    that is not there either, it is a development version of ``NEXT`` without a count.
    """
    if tagged := _BEHIND.fullmatch(_git(root, *_TAG)):
        head, last, behind = tagged[1], int(tagged[2]), int(tagged[3])
        return f"{head}{last + 1}.dev{behind}" if behind else f"{head}{last}"
    if commits := _git(root, "rev-list", "--count", "HEAD"):
        return f"{NEXT}.dev{commits}"
    return _written(root, NUMBER) or f"{NEXT}.dev0"


def __getattr__(name: str) -> str:
    """Compute ``VERSION`` for the build (pyproject.toml); no program that runs asks for it."""
    if name == "VERSION":
        return version(pathlib.Path(__file__).parents[2])
    raise AttributeError(name)


def commit(root: pathlib.Path) -> str:
    """Return the commit of a program below ``root``, a ``+`` behind it where files were changed.

    A checkout's is asked of git; otherwise it is what the build has written, '' where it knew none.
    """
    if (root / ".git").exists():
        return _git(root, *_ASKED)
    return _written(root, COMMIT)


def contents(root: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yield what says which program this is: each file's place below its root, and its content."""
    yield NUMBER, version(root).encode()
    yield COMMIT, commit(root).encode()


def _git(root: pathlib.Path, *words: str) -> str:
    """Return what git says of a checkout, '' where it is none or git refuses it."""
    if not (root / ".git").exists():
        return ""
    try:
        asked = ["git", "-C", str(root), *words]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _written(root: pathlib.Path, name: str) -> str:
    """Return what a build has written into a file, '' where it has not."""
    try:
        return (root / name).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def files(root: pathlib.Path) -> Iterator[pathlib.PurePosixPath]:
    """Yield the files below a checkout that hosts are made from, in their order."""
    for part in PARTS:
        part_path = root / part
        for path in sorted(part_path.rglob("*")) if part_path.is_dir() else [part_path]:
            name = path.relative_to(root)
            if path.is_file() and not _own(name.parts) and not _LEFT.intersection(name.parts):
                yield pathlib.PurePosixPath(name.as_posix())


def _own(parts: tuple[str, ...]) -> bool:
    """Say whether a file is somebody's: an inventory but for the example, a secret, a setting."""
    if parts[:2] == _INVENTORY:
        return parts[2:3] != ("example",)
    return parts[:2] == ("deploy", "compose") and parts[2] in _COMPOSE_OWN


def pack(root: pathlib.Path) -> bytes:
    """Return the files of a checkout as an archive: the same bytes for the same files."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for name in files(root):
            content = (root / name).read_bytes()
            item = tarfile.TarInfo(str(name))
            item.size = len(content)
            item.mode = 0o755 if (root / name).stat().st_mode & 0o100 else 0o644
            archive.addfile(item, io.BytesIO(content))
    return packed.getvalue()


def unpack(packed: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Yield name, content and mode of each file of an archive that ``pack`` has made."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        for item in archive:
            file = archive.extractfile(item)
            assert file is not None, f"{item.name} is no file"
            yield item.name, file.read(), item.mode


def main() -> None:
    """Write the facts of this program below a folder: ``python built.py FOLDER``."""
    for name, content in contents(pathlib.Path(__file__).parents[2]):
        path = pathlib.Path(sys.argv[1]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
