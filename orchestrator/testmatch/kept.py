"""Which test matches of a folder are to be kept: ``kept.json`` beside each one's journal.

``farm match keep`` writes it, and ``farm serve`` looks at it to know whether to start that.
"""

from __future__ import annotations

import pathlib
from typing import Final

from orchestrator import contract
from orchestrator.common import bounds, files

FILE: Final = "kept.json"
OPEN: Final = "open"  # to be kept, whatever dies meanwhile
ENDED: Final = "ended"


def open_matches(root: pathlib.Path) -> list[str]:
    """Return the matches below a folder that are to be kept."""
    return [path.parent.name for path in sorted(root.glob(f"*/{FILE}")) if _state(path) == OPEN]


def write(directory: pathlib.Path, state: str, why: str = "", submission: str = "") -> None:
    """Write down whether a match is to be kept, why not, and as which submission it came."""
    facts = {"state": state, "why": why, "submission": submission}
    files.write(directory / FILE, contract.dumps(facts).encode())


def submission(directory: pathlib.Path) -> str:
    """Return as which submission a match came, '' where that is not known."""
    return _fact(directory / FILE, "submission")


def _state(path: pathlib.Path) -> str:
    return _fact(path, "state")


def _fact(path: pathlib.Path, name: str) -> str:
    try:
        return str(contract.loads(bounds.content(path, bounds.SETTINGS_BYTES))[name])
    except (*bounds.DAMAGED, LookupError, TypeError):
        return ""
