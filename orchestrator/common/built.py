"""What a build writes beside the program: the commit, and the files that hosts are made from.

``setup.py`` writes them into wheel and source distribution; of a checkout they are asked of git and
of the folders themselves. This module imports the standard library alone: the build loads it.
"""

from __future__ import annotations

import gzip
import io
import pathlib
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Final

FOLDER: Final = "orchestrator/built"  # beside the program; no part of its checksum
COMMIT: Final = f"{FOLDER}/commit"
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
)
# What work leaves behind: inventories of somebody's own hosts among it, with their secrets.
_LEFT: Final = frozenset({"__pycache__", ".ansible", ".cache"})
_INVENTORY: Final = ("ansible", "inventory")
_ASKED: Final = ("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=8")


def commit(root: pathlib.Path) -> str:
    """Return the commit of a program below ``root``, a ``+`` behind it where files were changed.

    A checkout's is asked of git; otherwise it is what the build has written, '' where it knew none.
    """
    if (root / ".git").exists():
        try:
            asked = ["git", "-C", str(root), *_ASKED]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""
    try:
        return (root / COMMIT).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def files(root: pathlib.Path) -> Iterator[pathlib.PurePosixPath]:
    """Yield the files below a checkout that hosts are made from, in their order."""
    for part in PARTS:
        part_path = root / part
        for path in sorted(part_path.rglob("*")) if part_path.is_dir() else [part_path]:
            name = path.relative_to(root)
            own = name.parts[:2] == _INVENTORY and name.parts[2:3] != ("example",)
            if path.is_file() and not own and not _LEFT.intersection(name.parts):
                yield pathlib.PurePosixPath(name.as_posix())


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
