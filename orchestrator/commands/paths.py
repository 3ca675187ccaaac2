"""Where the farm's files are: the same options for every command that reads or writes them.

Each gives a command the folder that was named, else the one in the data directory.
"""

from __future__ import annotations

import os
import pathlib
import urllib.parse
from collections.abc import Callable
from typing import Final

import click

from orchestrator.commands import common
from orchestrator.common import errors
from orchestrator.ledger import address

FOLDER: Final = click.Path(path_type=pathlib.Path, file_okay=False)


def _option(name: str, what: str) -> Callable[[common.Function], common.Function]:
    return click.option(
        f"--{name}",
        type=FOLDER,
        default=lambda: common.data_directory() / name,
        help=f"{what}; default: {name}/ in the data directory.",
    )


def at_desk() -> bool:
    """Say whether farm and halls are on other machines: Redis is, and no archive is here."""
    host = urllib.parse.urlsplit(address.url()).hostname or ""
    local = host in {"", "localhost"} or host.startswith("127.") or host == "::1"
    return not local and is_elsewhere(common.data_directory() / "archive")


def is_elsewhere(folder: pathlib.Path) -> bool:
    """Say whether a folder is missing because this is a desk: its farm's data are elsewhere."""
    return bool(address.url()) and "FARM_DATA" not in os.environ and not folder.exists()


def require_here(folder: pathlib.Path, what: str) -> None:
    """Raise ``RefusedError`` at a desk, which has not the folder that the farm keeps."""
    if is_elsewhere(folder):
        raise errors.RefusedError(elsewhere(folder, what))


def elsewhere(folder: pathlib.Path, what: str) -> str:
    """Say that something is not on this machine, and where it is."""
    return (
        f"{what} not on this machine ({folder} does not exist): FARM_REDIS_URL names a farm whose"
        " data are elsewhere. Type this where `farm serve` runs, with its FARM_DATA (on hosts made"
        " by ansible /var/lib/farm, as user farm)"
    )


archive = _option("archive", "The archive directory")
halls = _option("halls", "Folders of halls (spools, ply logs)")
feeds = _option("feeds", "Where TCEC's files are written")
tests = _option("tests", "Where test matches are kept")


def journal_file(named: str) -> pathlib.Path | None:
    """Return the journal that is named by its path; None where a season is named by its id.

    A file without an ending may be a season's that has the id's name. Raise ``UsageError`` for
    another file that is no journal, ``OSError`` for one that cannot be read.
    """
    path = pathlib.Path(named)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        if file.read(1) in (b"{", b"") or path.suffix == ".jsonl":  # a damaged one is named so
            return path
    if path.name != named or path.suffix:
        raise errors.UsageError(
            f"{named} is no journal: name the journal.jsonl of a season, the .jsonl of a match"
            " (beside its PGN), or a season by its id"
        )
    return None
