"""The season as its director writes it: a frozen model of the season file.

The same model is journaled at launch, so an edited file never changes a season that
runs. Every key of the file is a field here (``schema``, ``event``, ``engine`` and
``break`` by alias); what several tables must agree on is checked in ``checks``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.season import adjudications

TIME_CONTROL: Final = "minutes+seconds such as 30+5, or with units: 2s+50ms"
DURATION: Final = "a number with a unit (ms, s, m, h or d) such as 2s or 1.5h"
ENTRANTS: Final = '"roster", or a list of engine ids'
OPTION: Final = "text, a whole number, true or false"

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _time_control(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return contract.TimeControl.parse(value)
    except ValueError:
        raise ValueError(TIME_CONTROL) from None


def duration_ms(text: str) -> int:
    """Read a duration such as ``2s`` or ``1.5h``; raise ``ValueError``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(DURATION)
    return round(float(match[1]) * _UNIT_MS[match[2]])


def _duration(value: str) -> str:
    duration_ms(value)
    return value


def _entrants(value: Any) -> Any:
    listed = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if value != "roster" and not listed:
        raise ValueError(ENTRANTS)
    return tuple(value) if listed else value


def _option(value: Any) -> Any:
    if not isinstance(value, str | int):
        raise ValueError(OPTION)  # noqa: TRY004 - pydantic reports ValueError, not TypeError
    return value


Id: TypeAlias = Annotated[str, pydantic.Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
Text: TypeAlias = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
Control: TypeAlias = Annotated[contract.TimeControl, pydantic.BeforeValidator(_time_control)]
Duration: TypeAlias = Annotated[str, pydantic.AfterValidator(_duration)]
OptionValue: TypeAlias = Annotated[str | int | bool, pydantic.BeforeValidator(_option)]
Entrants: TypeAlias = Annotated[
    Literal["roster"] | tuple[str, ...], pydantic.BeforeValidator(_entrants)
]


class Criterion(enum.StrEnum):
    """A tiebreak criterion; RULEBOOK §4 defines each, ``tiebreaks`` computes it."""

    CRASHES = "crashes"
    DIRECT_ENCOUNTER = "direct-encounter"
    WINS = "wins"
    SONNEBORN_BERGER = "sonneborn-berger"
    OPPONENTS_SCORE = "opponents-score"
    BLACK_GAMES = "black-games"
    BLACK_WINS = "black-wins"
    SEED = "seed"


class EngineEntry(contract.Message):
    """An engine of the roster; ``id`` follows from the name where it is not given."""

    id: Id | None = None
    name: Text | None = None
    author: str = ""
    protocol: contract.ProtocolName = "uci"
    command: tuple[Text, ...] = pydantic.Field(min_length=1)
    directory: str | None = None
    options: Mapping[str, OptionValue] = {}
    rating: int | None = None
    settings: Mapping[str, Mapping[str, OptionValue]] = {}  # by event, before ``options``
    init: tuple[str, ...] = ()  # lines sent right after the handshake
    white_pov: bool = False  # it reports scores from White's side


class Roster(contract.Message):
    """Who may play: listed engines, then found ones, then fillers, up to ``size``."""

    size: int | None = pydantic.Field(default=None, ge=2)
    find: tuple[Text, ...] = ()
    fill: tuple[EngineEntry, ...] = ()
    engines: tuple[EngineEntry, ...] = pydantic.Field(default=(), alias="engine")


class Book(contract.Message):
    """An opening book; its exits are put in order once, then taken one after the other.

    No exit repeats inside an event unless ``repeat`` allows the book to start again.
    """

    file: Text
    kind: Literal["pgn", "epd"] | None = None  # None: as the file's name ends
    plies: int | None = pydantic.Field(default=None, ge=0)
    order: Literal["random", "sequential"] = "random"
    start: int = pydantic.Field(default=1, ge=1)  # first exit of a sequential book, from 1
    repeat: bool = False


class RoundRobin(contract.Message):
    """Everybody meets everybody, ``double_rounds`` times with each colour."""

    kind: Literal["round-robin"]
    double_rounds: int = pydantic.Field(default=1, ge=1)
    table: Literal["berger", "circle"] = "berger"


class Match(contract.Message):
    """Two engines play ``games`` games, the reverse game always at once (S16-8a)."""

    kind: Literal["match"]
    games: int = pydantic.Field(ge=2, multiple_of=2)
    first_white: Literal["higher-seed", "lower-seed"] = "higher-seed"


Format: TypeAlias = RoundRobin | Match


class Promotion(contract.Message):
    """The first ``top`` of the ranking go on to the event ``to``."""

    top: int = pydantic.Field(ge=1)
    to: Id


DEFAULT_TIEBREAKS: Final = (
    Criterion.CRASHES,
    Criterion.DIRECT_ENCOUNTER,
    Criterion.WINS,
    Criterion.SONNEBORN_BERGER,
    Criterion.SEED,
)


class Event(contract.Message):
    """One event of a season. Listed entrants come first, then the promoted, by rank."""

    id: Id
    name: Text
    format: Format = pydantic.Field(discriminator="kind")
    entrants: Entrants = ()
    time_control: Control
    time_margin_ms: int = pydantic.Field(default=0, ge=0)
    book: str | None = None
    variant: Literal["standard", "fischerandom"] = "standard"
    limits: contract.Limits = contract.Limits()
    timeouts: contract.Timeouts = contract.Timeouts()
    adjudication: adjudications.Adjudication = contract.Adjudication()
    tiebreaks: tuple[Criterion, ...] = DEFAULT_TIEBREAKS
    promote: tuple[Promotion, ...] = ()
    break_: Duration | None = pydantic.Field(default=None, alias="break")

    @property
    def break_ms(self) -> int | None:
        """Return how long the gate before this event stays shut, None without a gate."""
        return None if self.break_ is None else duration_ms(self.break_)


class Season(contract.Message):
    """A whole season; events are played in the order of the file."""

    schema_version: Literal[1] = pydantic.Field(alias="schema")
    id: Id
    name: Text
    site: str = ""
    hold_after_attempts: int = pydantic.Field(default=3, ge=1)
    roster: Roster
    books: Mapping[str, Book] = {}
    events: tuple[Event, ...] = pydantic.Field(alias="event", min_length=1)

    def event(self, event_id: str) -> Event:
        """Return an event by its id; raise ``KeyError``."""
        for event in self.events:
            if event.id == event_id:
                return event
        raise KeyError(event_id)
