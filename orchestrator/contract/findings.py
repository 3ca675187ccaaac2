"""What must hold before a season."""

from __future__ import annotations

from typing import Literal

from orchestrator.contract import codec


class Finding(codec.Message):
    """One thing that was looked at before a season.

    ``why`` is the rule's clause or the reason it must hold, ``do`` what to do where it
    does not. ``unknown`` could not be looked at from here; it stops nothing.
    """

    area: str
    name: str
    status: Literal["ok", "warning", "failed", "unknown"]
    found: str
    why: str
    do: str = ""
