"""What the projector knows of one season, and what it may read of the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from orchestrator import contract
from orchestrator.broadcast.content import audit_log, game_store, inflight
from orchestrator.season import published
from orchestrator.season.fold import entries, events
from orchestrator.season.fold import state as season_state

SOON: Final = 512  # looks: a record that is not there by then comes late, or never


class Source(Protocol):
    """What is read of the ledger; it has more, and none of it is wanted here."""

    def now_ms(self) -> int:
        """Return Redis' time of day."""

    def seasons(self) -> tuple[str, ...]:
        """Return the ids of all seasons in the order of their launch."""

    def resting(self) -> Mapping[str, int]:
        """Return the seasons that are over and archived, each with its last entry."""

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return a journal's entries after a number."""

    def last(self, journal: str) -> int:
        """Return the last number of a journal."""

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return an attempt's plies after a number."""

    def live(self, hall: str) -> str | None:
        """Return what a hall shows now."""

    def record(self, attempt: str) -> bytes | None:
        """Return a finished game's packed record, before it is archived."""


class Comments(Protocol):
    """What kibitzers have found, by desk and attempt; it changes nothing else that is shown."""

    def marks(self, attempt: str) -> tuple[int, ...]:
        """Return for each desk how often it has told something of an attempt."""

    def comments(self, desk: int, attempt: str) -> dict[int, str]:
        """Return what was told of an attempt: ply to payload."""


class Silence:
    """The comments where nobody kibitzes."""

    def marks(self, attempt: str) -> tuple[int, ...]:  # noqa: ARG002 - the protocol's signature
        """Return that no desk has told anything."""
        return (0, 0)

    def comments(self, desk: int, attempt: str) -> dict[int, str]:  # noqa: ARG002 - as above
        """Return nothing."""
        return {}


_OF_A_GAME: Final = frozenset({entries.ATTEMPT_STARTED, entries.ATTEMPT_ENDED})


@dataclasses.dataclass
class Changes:
    """What entries have changed since it was rendered: as little as can be told of each kind."""

    whole: bool = False  # anything
    games: set[str] = dataclasses.field(default_factory=set)
    results: set[str] = dataclasses.field(default_factory=set)  # those that have been finished
    paired: set[str] = dataclasses.field(default_factory=set)  # events with new games
    corrected: bool = False  # games that were published are published otherwise

    def note(self, entry: contract.Entry) -> None:
        """Take note of an entry."""
        if entry.kind in _OF_A_GAME:
            self.games.add(str(entry.data["game"]))
        elif entry.kind == entries.GAME_FINISHED:
            self.games.add(str(entry.data["game"]))
            self.results.add(str(entry.data["game"]))
        elif entry.kind == entries.GAMES_PAIRED:
            self.paired.add(str(entry.data["event"]))
        else:
            self.whole = True
            self.corrected |= entry.kind in published.CORRECTIONS


class Season:
    """One season: its fold, its log, its game in flight.

    ``bare`` are finished games whose records have not been seen yet, with the looks they had:
    ever fewer, as a record comes soon or not at all. ``damaged`` says that its journal cannot
    be read by this farm; ``failed`` that it cannot be shown, for a reason nobody foresaw.
    """

    def __init__(self, season: str, kept: game_store.Album) -> None:
        """Start before its launch."""
        self.id = season
        self.state = season_state.SeasonState(season)
        self.log = audit_log.Chronicle()
        self.game: inflight.InFlight | None = None
        self.bare: dict[str, int] = {}
        self.damaged = False
        self.failed = False
        self.changes = Changes()
        self._album = kept
        self._last: str | None = None  # the game finished last, "" when it must be looked for

    @property
    def over(self) -> bool:
        """Say whether nothing more is to be expected: no game, and no record of one."""
        awaited = any(looks < SOON for looks in self.bare.values())
        return self.state.over and self.game is None and not awaited

    def follow(
        self, read: Callable[[int], Sequence[contract.Entry]]
    ) -> Iterator[tuple[contract.Entry, set[str]]]:
        """Fold what ``read`` has behind the state; yield each entry as soon as it is folded.

        With it come the events whose tables it may change. Raise ``LedgerDamagedError``.
        """
        for entry in season_state.follow(self.state, read):
            yield entry, self._note(entry)

    def _note(self, entry: contract.Entry) -> set[str]:
        self.log.note(entry, self.state)
        self.changes.note(entry)
        self._note_last(entry)
        if entry.kind == entries.GAME_FINISHED:
            self.bare[str(entry.data["game"])] = 0
        return self._touched(entry)

    def _touched(self, entry: contract.Entry) -> set[str]:
        named = entry.data.get("event")
        game = entry.data.get("game")
        if named is None and isinstance(game, str) and game in self.state.games:
            named = self.state.games[game].event
        return {named} if named in self.state.events else set(self.state.events)

    def brief(self, game: events.Game) -> game_store.Brief | None:
        """Return the little that tables need of a finished game, None without its record."""
        if game.finished is None or game.finished.imported:
            return None
        brief = self._album.brief(self.id, game.id, game.finished)
        if brief is None or not published.corrected(self.state, game):
            return brief
        return dataclasses.replace(brief, r_mobility="")

    def pgn(self, game: events.Game) -> bytes | None:
        """Return the PGN of a finished game as it is published, None where there is none (yet)."""
        if game.finished is None:
            return None
        played = self._album.pgn(self.id, game.id, game.finished.attempt)
        return published.pgn(self.state, game, played)

    def changed(self) -> Changes:
        """Return what has changed since the last call."""
        changes, self.changes = self.changes, Changes()
        return changes

    def recorded(self) -> list[events.Game]:
        """Return the finished games whose records have come since the last call."""
        complete = []
        for name in sorted(self.bare):
            self.bare[name] += 1
            if self.bare[name].bit_count() > 1:
                continue  # looked for at looks 1, 2, 4, 8 …
            game = self.state.games[name]
            unkept = game.finished is None or not game.finished.record_sha256
            if unkept or self.brief(game) is not None:
                del self.bare[name]
                self.changes.games.add(name)
                complete.append(game)
        return complete

    def last_finished(self) -> events.Game | None:
        """Return the game that was finished last, None before the first."""
        if self._last == "":
            paired = list(self.state.games.values())  # read by the web's thread, too
            done = [game for game in paired if game.finished is not None]
            last = max(done, key=_ended, default=None)
            self._last = None if last is None else last.id
        return None if self._last is None else self.state.games[self._last]

    def _note_last(self, entry: contract.Entry) -> None:
        if entry.kind == entries.GAME_FINISHED:
            latest, game = self.last_finished(), self.state.games[str(entry.data["game"])]
            if game.finished is not None and (latest is None or _ended(latest) < _ended(game)):
                self._last = game.id
        elif entry.kind not in _OF_A_GAME and entry.kind != entries.GAMES_PAIRED:
            self._last = ""


def _ended(game: events.Game) -> tuple[int, int]:
    return (game.finished.ended_ms if game.finished else 0, game.number)
