"""The one JSON codec for messages, and what every message is."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import pydantic

SCHEMA = 1  # version of every message and journal entry written by this code
Side: TypeAlias = Literal["white", "black"]
ProtocolName: TypeAlias = Literal["uci", "xboard"]
Result: TypeAlias = Literal["1-0", "0-1", "1/2-1/2"]
LATEST_MS: Final = (
    253_402_214_400_000  # the last day of the year 9999, after which no calendar goes
)
_EARLIEST_MS: Final = -62_135_510_400_000  # the second day of the year 1, in any time zone
# A time since 1970 in milliseconds that can be shown; whoever writes another has written none.
Moment: TypeAlias = Annotated[int, pydantic.Field(ge=_EARLIEST_MS, le=LATEST_MS)]


# Made once: making it again for every message costs the referee a tenth of its encoding.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def dumps(value: Any) -> str:
    """Encode plain data as compact JSON, the same bytes for the same value."""
    return _ENCODER.encode(value)


def loads(text: str | bytes) -> Any:
    """Decode JSON in UTF-8; raise ``ValueError`` when it is none, or could not be written again."""
    plain = text if isinstance(text, str) else text.decode()
    try:
        value = json.loads(plain)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if "\\u" in plain:
        dumps(value).encode()  # half a character (a lone surrogate) ends here, not on its way out
    return value


def first_wrong(error: pydantic.ValidationError) -> tuple[str, str]:
    """Return where the first fault of a message lies, as ``games.0.moves``, and what it is."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(map(str, wrong["loc"])), wrong["msg"]


class Message(pydantic.BaseModel):
    """A frozen value that crosses a process border."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    def encode(self) -> str:
        """Return the JSON text of this message."""
        return dumps(self.model_dump(mode="json"))

    @classmethod
    def decode(cls, text: str | bytes) -> Self:
        """Read the JSON text of this message; raise ``pydantic.ValidationError``."""
        return cls.model_validate_json(text)


class DeferredMessage(Message):
    """A message whose validator is built when the first one is read or made, not at its import.

    For the many kinds of which a process reads few. Never for what a referee, a lane or the agent
    of a GPU box uses: the first use takes milliseconds, and a clock may run by then.
    """

    model_config = pydantic.ConfigDict(defer_build=True)
