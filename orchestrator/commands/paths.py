"""Where the farm's files are: the same options for every command that reads or writes them.

Each gives a command the folder that was named, else the one in the data directory.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Final

import click

from orchestrator.commands import common

FOLDER: Final = click.Path(path_type=pathlib.Path, file_okay=False)


def _option(name: str, what: str) -> Callable[[common.Function], common.Function]:
    return click.option(
        f"--{name}",
        type=FOLDER,
        default=lambda: common.data_directory() / name,
        help=f"{what}; default: {name}/ in the data directory.",
    )


archive = _option("archive", "The archive directory")
halls = _option("halls", "Folders of halls (spools, ply logs)")
feeds = _option("feeds", "Where TCEC's files are written")
tests = _option("tests", "Where test matches are kept")
