"""Why the farm holds a season: one sentence for operators, and what the public reads of it.

A season is held when attempts at one game end one after the other without a ply. What the
hall said of the last one tells of its files and accounts: operators need it, nobody else
gets it. The journal keeps the whole sentence.
"""

from __future__ import annotations

from typing import Final

_ADVICE: Final = "; look at the hall, then resume"


def reason(attempts: int, game: str, evidence: str) -> str:
    """Return why a season is held; ``evidence`` is what the hall said of the last attempt."""
    last = f" (the last one: {evidence})" if evidence else ""
    return f"{attempts} attempts at {game} in a row ended without a journaled ply{_ADVICE}{last}"


def in_public(reason: str) -> str:
    """Return what the public reads of it: what happened, and nothing that a host has said."""
    return reason.partition(_ADVICE)[0]
