"""Faults of old: put back into the clone, each must turn the laboratory red at the step named.

``make lab UNDO=3`` puts back what point 3 took away. An edit whose text is not there any more
fails at once, so that this list is kept.
"""

from __future__ import annotations

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Edit:
    """A text of a file that is replaced; in all files that match, where it stands."""

    files: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Fault:
    """What was wrong, how it is put back, which form of the laboratory finds it, and where."""

    words: str
    edits: tuple[Edit, ...]
    form: str
    red_at: str


ACCESS = "orchestrator/access.py"
SANDBOX = "worker_cpu/seats/sandbox.py"
HALL = "deploy/systemd/farm-hall@.service"

FAULTS = {
    "1": Fault(
        "the default user may do nothing, so Redis drops transactions when it loads them",
        (Edit(ACCESS, "{' '.join(DEFAULT)}", "off resetkeys resetchannels -@all"),),
        "short",
        "a season is launched",
    ),
    "2": Fault(
        "the sandbox asks for a name of its own, which the hall's unit forbids",
        (
            Edit(
                SANDBOX,
                "        *_rights(),\n",
                '        *_rights(),\n        "--hostname", "x",\n',
            ),
        ),
        "short",
        "a game is played",
    ),
    "3": Fault(
        "the hall's unit does not find the farm's own engine",
        (Edit(HALL, "PATH=/opt/farm/venv/bin:", "PATH="),),
        "short",
        "a game is played",
    ),
}


def put_back(clone: pathlib.Path, fault: Fault) -> None:
    """Edit the files of a clone; fail where the text of an edit is not found."""
    for edit in fault.edits:
        found = [path for path in clone.glob(edit.files) if edit.old in path.read_text()]
        if not found:
            raise LookupError(f"{edit.files}: {edit.old!r} is not there: bring undo.py up to date")
        for path in found:
            path.write_text(path.read_text().replace(edit.old, edit.new))
