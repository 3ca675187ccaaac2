"""The tree as it is released: a copy without what work leaves in it."""

from __future__ import annotations

import pathlib
import shutil

from orchestrator.common import built

ROOT = pathlib.Path(__file__).parents[2]
LEFT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "node_modules")
HIDDEN = {".dockerignore"}  # hidden, and released


def copy(folder: pathlib.Path) -> pathlib.Path:
    """Copy the tree below ``folder``; return its root."""
    tree = folder / "farm"
    shutil.copytree(ROOT, tree, ignore=lambda at, names: LEFT(at, names) - HIDDEN)
    # An unpacked source distribution says there what it was built from; the copy is not that.
    shutil.rmtree(tree / built.FOLDER, ignore_errors=True)
    return tree
