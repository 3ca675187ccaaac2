"""Engines by the names that their programs usually have: what to look for on a machine."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Sequence
from typing import Final

from orchestrator import contract

# By strength, as the rating lists have them, Debian's among them; XBOARD speak only that protocol.
UCI: Final = (
    *("stockfish", "obsidian", "plentychess", "berserk", "caissa", "lc0", "viridithas"),
    *("stormphrax", "clover", "ethereal-chess", "ethereal", "rubichess", "koivisto", "seer"),
    *("minic", "rofchade", "weiss", "fairy-stockfish", "xiphos", "toga2", "glaurung", "gnuchessu"),
)
XBOARD: Final = ("crafty", "phalanx", "hoichess", "gnuchess", "sjeng", "sjaakii", "fairymax")


def protocol(program: str) -> contract.ProtocolName:
    """Return the protocol of a program of that name: UCI where nothing else is known."""
    return "xboard" if program in XBOARD else "uci"


def wants_xboard(command: Sequence[str], given: str) -> bool:
    """Say whether an engine is to be started as UCI, and its program's name speaks XBoard.

    A program with arguments may have been told to speak UCI by them.
    """
    program, *arguments = command
    likely = protocol(pathlib.PurePath(program).name)
    return likely == "xboard" and given == "uci" and not arguments


def installed(places: Sequence[str | None]) -> list[str]:
    """Return the names that are programs in one of the search paths (``None``: PATH)."""
    every = (*UCI, *XBOARD)
    return [
        name
        for name in every
        if any(shutil.which(name, path=search_path) for search_path in places)
    ]
