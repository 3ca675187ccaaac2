"""One season that ``serve`` keeps: mirrored, folded, brought up to what the rules say, archived.

Invariants: no entry is acted on before it is in the mirror; a game is archived before its
hall may forget it; a journal that has become shorter than its mirror is not written to.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

import structlog

from orchestrator import archive, contract, errors, interrupted_games
from orchestrator.ledger import api, mirror
from orchestrator.season import amendments, decide, state

log = structlog.get_logger()

SERVE = "serve"  # who journals what the rules decide
BATCH = 1_000  # entries read at once: bounds memory, not work
REARRANGING = frozenset(  # the event's PGN is written anew
    {"game_voided", "events_undone", "engine_replaced", "games_imported"}
)


class SeasonRunner:
    """One season: its state, its mirror, its archive."""

    def __init__(self, ledger: api.Ledger, root: pathlib.Path, season: str) -> None:
        self.season = season
        self.state = state.SeasonState()
        self._ledger = ledger
        self._archive = archive.SeasonArchive(root, season)
        self._archived, last = ledger.mirrored(season), ledger.last(season)
        self._mirror = mirror.Mirror(self._archive.journal)  # its lock stays: Redis was asked first
        if self._mirror.cut:
            log.warning("mirror.torn", season=season, bytes=len(self._mirror.cut))
        self._refuse_shorter_journal(last)
        self._to_archive: list[contract.Entry] = []
        self._rebuilt = False

    def close(self) -> None:
        """Close the mirror's file."""
        self._mirror.close()

    def _refuse_shorter_journal(self, last: int) -> None:
        """Raise ``LedgerDamagedError`` when Redis has lost entries that are in the mirror."""
        if last < self._mirror.last:
            self._mirror.close()
            raise errors.LedgerDamagedError(
                f"Redis holds {last} entries of {self.season}, its mirror {self._mirror.last}:"
                " Redis has lost facts; nothing is written until `farm restore`"
            )

    def advance(self, now_ms: int) -> None:
        """Catch up with the journal and append all that can be decided now."""
        self._catch_up()
        while True:
            drafts, effects = interrupted_games.verdict(self._ledger, self._archive, self.state)
            drafts = drafts or decide.decide(self.state, now_ms)
            if not drafts:
                return
            effects = [*effects, *_holds(self.season, drafts)]
            reply = self._ledger.append(self.season, self.state.seq, drafts, SERVE, effects)
            if isinstance(reply, api.Appended):
                for draft in drafts:
                    log.info("fact.decided", season=self.season, kind=draft.kind)
            self._catch_up()

    def _catch_up(self) -> None:
        while entries := self._ledger.read(self.season, self.state.seq, BATCH):
            self._mirror_all(entries)
            for entry in entries:
                self.state.apply(entry)
                if entry.seq > self._archived:
                    self._to_archive.append(entry)

    def _mirror_all(self, entries: list[contract.Entry]) -> None:
        known = [entry for entry in entries if entry.seq <= self._mirror.last]
        self._mirror.verify_against(known)
        self._mirror.extend(entries[len(known) :])

    def keep_archive(self) -> bool:
        """Archive what the journal has told since the last call; say whether a game was."""
        if not self._rebuilt:
            self._rebuild_events()
        for entry in self._to_archive:
            if entry.kind == "game_finished":
                self._keep_game(entry)
            elif entry.kind == "attempt_ended":
                self._keep_given_up(entry)
            elif entry.kind == "games_imported":
                self._keep_imported(entry)
        if any(entry.kind in REARRANGING for entry in self._to_archive):
            self._rebuild_events()
        games = any(entry.kind == "game_finished" for entry in self._to_archive)
        self._to_archive.clear()
        if self.state.seq > self._archived:
            self._ledger.set_mirrored(self.season, self.state.seq)
            self._archived = self.state.seq  # only now: what an outage cut off is told again
        return games

    def _rebuild_events(self) -> None:
        for event in self.state.events.values():
            played = (game for game in event.order if self.state.game(game).finished)
            self._archive.rebuild_event(event.id, played)
        self._rebuilt = True

    def _keep_game(self, entry: contract.Entry) -> None:
        finished = contract.GameFinished.model_validate(entry.data)
        packed = self._ledger.record(finished.attempt)
        if packed is None and finished.by_verdict:
            packed = interrupted_games.packed(self.state, finished)
        if packed is None:
            if self._archive.pgn(finished.game) is None:
                log.error("record.missing", season=self.season, game=finished.game)
            return
        known = self._archive.pgn(finished.game) is not None
        self._archive.keep_game(finished.game, packed)
        if not known:
            self._add_to_event(finished.game)
        self._ledger.archived(finished.attempt)

    def _add_to_event(self, game: str) -> None:
        """Add a game to its event's PGN: behind the others, or, played again, in its place."""
        event = self.state.events[self.state.game(game).event]
        played = [one for one in event.order if self.state.game(one).finished]
        if played[-1:] == [game]:
            self._archive.extend_event(event.id, game)
        else:
            self._archive.rebuild_event(event.id, played)

    def _keep_imported(self, entry: contract.Entry) -> None:
        for game in amendments.GamesImported.model_validate(entry.data).games:
            self._archive.keep_pgn(game.game, game.pgn)

    def _keep_given_up(self, entry: contract.Entry) -> None:
        ended = contract.AttemptEnded.model_validate(entry.data)
        plies = self._ledger.plies(ended.attempt)
        self._archive.keep_given_up(ended.game, ended.attempt, plies)
        # Not its record: a hall that was late may have told its result since, in this very pass.
        self._ledger.plies_archived(ended.attempt)


def _holds(season: str, drafts: Iterable[contract.Draft]) -> Iterable[api.Effect]:
    """Yield what must change with the facts at once: a planned pause forbids claims."""
    for draft in drafts:
        if draft.kind == "paused":
            yield api.Hold(season, "pause", draft.data["reason"])
