"""What a build adds to what pyproject.toml says: version, commit, and the files of hosts."""

from __future__ import annotations

import pathlib
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = pathlib.Path(__file__).parent
sys.path.insert(0, str(ROOT))  # a build that is isolated knows no folder of ours

from orchestrator.common import built  # noqa: E402 - found by the line above


def write(folder: str, name: str, content: bytes) -> str:
    """Write a file below a folder that is built; return its path."""
    path = pathlib.Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # it may be linked to the tree's
    path.write_bytes(content)
    return str(path)


class BuildPy(build_py):
    """Build the packages; a wheel knows its commit and carries what hosts are made from."""

    def run(self) -> None:
        """Write both beside the packages; an editable install has them in its checkout."""
        super().run()
        if not self.editable_mode:
            self.added = [
                *(write(self.build_lib, *fact) for fact in built.contents(ROOT)),
                write(self.build_lib, built.FILES, built.pack(ROOT)),
            ]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - setuptools' signature
        """Return what was written."""
        return [*super().get_outputs(include_bytecode), *getattr(self, "added", [])]


class Sdist(sdist):
    """Pack the source; it knows the version and the commit that it was packed from."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Write both beside the source."""
        super().make_release_tree(base_dir, files)
        for fact in built.contents(ROOT):
            write(base_dir, *fact)


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
