"""The kinds of entries that amend a running season, and what each carries.

They stand in the season's journal beside those of ``entries``, with name and reason, and
are facts as whole as these: which games change hands, which openings are replaced and by
what. ``book_mended`` tells coming openings, so no spectator may read it. ``apply_amendments``
applies them, ``amending`` and ``substitute`` decide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import pydantic

from orchestrator import contract

ENGINE_REPLACED: Final = "engine_replaced"
BOOK_MENDED: Final = "book_mended"
GATE_MOVED: Final = "gate_moved"
PAUSE_PLANNED: Final = "pause_planned"
AWAY_POLICY_SET: Final = "away_policy_set"
HOST_AWAY: Final = "host_away"
HOST_BACK: Final = "host_back"
GAMES_IMPORTED: Final = "games_imported"
ENGINE_FLAGGED: Final = "engine_flagged"
FLAG_DISMISSED: Final = "flag_dismissed"

Played: TypeAlias = Literal["keep", "annul", "replay"]
AwayPolicy: TypeAlias = Literal["wait", "others"]
ReplacementCause: TypeAlias = Literal["", "disqualification"]


class EngineReplaced(contract.DeferredMessage):
    """A substitute takes the seat of an engine in an event, with its seed and open games.

    ``played`` says what happens to the games that the engine has played: ``keep`` counts
    them for the substitute, ``annul`` for nobody, ``replay`` has the substitute play them
    (``replays``: the new id of each; who crashed in those of ``crashes`` has crashed). ``games``
    are those that change hands. ``cause`` says why it lost its seat, where the rules have a word
    for it (S16-16).
    """

    event: str
    engine: str
    substitute: contract.EngineSpec
    played: Played
    games: tuple[str, ...]
    annulled: tuple[str, ...] = ()
    replays: Mapping[str, str] = {}
    crashes: tuple[str, ...] = ()
    cause: ReplacementCause = ""
    reason: str
    name: str


class BookMended(contract.DeferredMessage):
    """Exits of a book that no game has been begun with are replaced, by number from 0."""

    book: str
    exits: Mapping[int, contract.Opening]
    source: str
    sha256: str
    reason: str
    name: str


class GateMoved(contract.DeferredMessage):
    """The gate before an event opens at another time; ``before_ms`` is None if not set yet."""

    event: str
    opens_at_ms: int
    before_ms: int | None
    reason: str
    name: str


class PausePlanned(contract.DeferredMessage):
    """The season pauses by itself at that time."""

    at_ms: int
    reason: str
    name: str


class AwayPolicySet(contract.DeferredMessage):
    """What a season does while a host is away: wait, or play what needs it not, and come back."""

    policy: AwayPolicy
    reason: str
    name: str


class HostAway(contract.DeferredMessage):
    """A host is away, and with it the engines that run there."""

    host: str
    engines: tuple[str, ...]
    reason: str
    name: str


class HostBack(contract.DeferredMessage):
    """A host that was away plays again."""

    host: str
    reason: str
    name: str


class Imported(contract.DeferredMessage):
    """A game that was played elsewhere; ``number`` is its place in the file, from 1.

    ``opening`` is what it began with, which its reverse game gets, too (S16-8a); None where its
    record does not say which moves were the book's, or the event has none.
    """

    game: str
    number: int
    opening: contract.Opening | None = None
    finished: contract.GameFinished
    pgn: str


class GamesImported(contract.DeferredMessage):
    """Games of a PGN file stand as results of the schedule; ``doubts`` were insisted on."""

    source: str
    sha256: str
    games: tuple[Imported, ...] = pydantic.Field(min_length=1)
    doubts: tuple[str, ...] = ()
    reason: str
    name: str


class EngineFlagged(contract.DeferredMessage):
    """An engine answered without a search out of the book, again and again (S16-16)."""

    event: str
    engine: str
    games: Mapping[str, int]  # by game, how many of its moves in a row


class FlagDismissed(contract.DeferredMessage):
    """The organizers have looked at a flagged engine and let it play on."""

    event: str
    engine: str
    reason: str
    name: str
