"""What is pushed to spectators: typed deltas for our page, TCEC's messages for its viewers."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

Kind = Literal["game", "ply", "clock", "search", "result", "season", "tables", "outlook", "kibitz"]


@dataclasses.dataclass(frozen=True)
class Delta:
    """One change for our page; ``volatile`` ones need not be told to who comes back."""

    kind: Kind
    data: dict[str, Any]

    @property
    def volatile(self) -> bool:
        """Say whether the next one of its kind makes it worthless."""
        return self.kind in {"clock", "search", "kibitz"}


class Encoded(bytes):
    """JSON as a file holds it: it is not read to be sent on."""


@dataclasses.dataclass(frozen=True)
class TcecFile:
    """One of TCEC's files has changed; ``event`` is its name in the socket.io protocol.

    A ``volatile`` one need not be told to who is behind: the next one comes soon.
    """

    name: str
    event: str
    data: Any
    volatile: bool = False


@dataclasses.dataclass(frozen=True)
class TcecMoves:
    """New plies: ``text`` as PGN for one protocol, ``data`` as JSON for the other."""

    text: str
    data: dict[str, Any]


Message = Delta | TcecFile | TcecMoves
