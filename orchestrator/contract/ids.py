"""How the names are written that hosts choose: halls, lanes, hosts, workers, attempts, games.

They come from other machines, and become names of files, keys and queues. Invariant: what
passes here is one plain name of a file: no path, no ``..``, no wildcard, no control letter.
A worker is such names joined by ``/``, and never the name of a file.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

import pydantic

LENGTH: Final = 120  # characters: with what is added to it, below a file name's 255 bytes
ALLOWED: Final = f"letters, digits and . _ - in 1 to {LENGTH} characters, the first no dot or dash"
_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}"
_WHOLE: Final = re.compile(_NAME)

Name: TypeAlias = Annotated[str, pydantic.Field(pattern=rf"^{_NAME}\z")]
NameOrNone: TypeAlias = Annotated[str, pydantic.Field(pattern=rf"^({_NAME})?\z")]
Worker: TypeAlias = Annotated[str, pydantic.Field(pattern=rf"^{_NAME}(/{_NAME}){{0,3}}\z")]


def is_name(text: str) -> bool:
    """Say whether a text may be the name of a hall, a lane, a host, an attempt or a game."""
    return _WHOLE.fullmatch(text) is not None
