"""One season that ``serve`` keeps: mirrored, folded, brought up to what the rules say, archived.

Invariants: no entry is acted on before it is in the mirror; a game is archived before its
hall may forget it; a journal that no longer ends as it did, or has become shorter than its
mirror, is not written to; the round of a large Swiss is paired beside the passes, which look at
leases, and the state does not change meanwhile.
"""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Iterable
from concurrent import futures

import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, journal_mirror, store
from orchestrator.season import decide, published
from orchestrator.season.fold import amendment_entries, entries, events, orders, pairing, state
from orchestrator.serve import archive, backoff, interruptions

log = structlog.get_logger()

SERVE = "serve"  # who journals what the rules decide
BATCH = 1_000  # entries read at once: bounds memory, not work
STEPS = 20  # decisions of one pass: a season that has many more lets the others have theirs
KEPT = 1_000  # archived games whose records may still be in Redis: more than one pass archives


_PAIRING = futures.ThreadPoolExecutor(1, "pairing")  # for all seasons: rounds are rare
ABOUT = ("game", "attempt")  # of a fact: what a line of the log is found by
RESTORE = "stop `farm serve`, run `farm restore`, start it again"


def lost_entries(season: str, last: int, mirrored: int) -> errors.LedgerDamagedError:
    """Return the error of a journal that Redis has lost the end of."""
    return errors.LedgerDamagedError(
        f"Redis holds {last} entries of {season}, its mirror {mirrored}: Redis has lost facts, or"
        f" is another one. Nothing of {season} is played until then: {RESTORE}"
    )


def unforeseen(season: str, error: Exception) -> errors.LedgerDamagedError:
    """Return the error of a season that cannot go on, for an unforeseen reason."""
    return errors.LedgerDamagedError(
        f"{season} cannot go on: {type(error).__name__}: {error}; the log of"
        " `farm serve` shows where. Report it; `farm fsck` checks journal and archive"
    )


def at_rest(ledger: store.RedisLedger, root: pathlib.Path, season: str, run_id: str) -> int:
    """Return the last entry of a season that is over and wholly archived, 0 for any other.

    Only the ends of journal and mirror are read: nothing of such a season has to be folded. Its
    journal may be written to from now on, as if all of it had been compared.
    """
    last = ledger.last(season)
    ends = ledger.read(season, max(0, last - 1), 1)
    if not ends or ends[0].kind not in entries.ENDS or ledger.mirrored(season) != last:
        return 0
    if archive.closed(root, season) != last or archive.last_line(root, season) != ends[0].line():
        return 0
    if not ledger.set_checked(season, run_id, over=last):
        raise errors.LedgerUnreachableError("Redis was restarted meanwhile; compare again")
    return last


class SeasonRunner:
    """One season: its state, its mirror, its archive.

    ``hall``, ``ready`` (the game to be played next) and ``deadline_ms`` are what the state says
    since the last ``advance``, ``busy`` that more is to be decided at once; ``missing`` are
    finished games whose record is to come.
    """

    def __init__(self, ledger: store.RedisLedger, root: pathlib.Path, season: str) -> None:
        self.season = season
        self.state = state.SeasonState(season)
        self.hall = ""
        self.ready: str | None = None
        self.busy = False
        self.deadline_ms: int | None = None
        self.missing: set[str] = set()
        self.bell = backoff.Bell()  # the hall's, for its spools
        self._checked = ""  # the server in which the journal was compared with its mirror
        self._end = ""  # the line of the last entry that was applied
        self._ledger = ledger
        self._archive = archive.SeasonArchive(root, season)
        self._archived, last = ledger.mirrored(season), ledger.last(season)
        # Its lock stays: Redis was asked first.
        self._mirror = journal_mirror.Mirror(self._archive.journal)
        if self._mirror.cut:
            log.warning("mirror.torn", season=season, bytes=len(self._mirror.cut))
        self._refuse_shorter_journal(last)
        self._to_archive: list[contract.Entry] = []
        self._appended: dict[str, tuple[str, int]] = {}  # last game of an event's PGN, its place
        self._kept: collections.deque[str] = collections.deque(maxlen=KEPT)
        # The state's entry and what is decided there, while a round is paired beside the passes.
        self._beside: tuple[int, futures.Future[list[contract.Draft]]] | None = None
        self._looked_at = False  # whether the events' PGN were compared with the games

    def close(self) -> None:
        """Close the mirror's file."""
        self._mirror.close()

    def _refuse_shorter_journal(self, last: int) -> None:
        """Raise ``LedgerDamagedError`` when Redis has lost entries that are in the mirror."""
        if last < self._mirror.last:
            self._mirror.close()
            raise lost_entries(self.season, last, self._mirror.last)

    def advance(self, now_ms: int, run_id: str) -> bool:
        """Catch up with the journal and append all that can be decided now.

        ``run_id`` names the server; say whether the journal was compared in it for the first
        time, so that halls may write to it from now on.
        """
        if self.pairing:
            return False
        self._catch_up()
        compared = run_id != self._checked
        if compared:
            if not self._ledger.set_checked(self.season, run_id):
                raise errors.LedgerUnreachableError("Redis was restarted meanwhile; compare again")
            self._checked = run_id
        self._decide(now_ms)
        self.hall, self.ready = self.state.hall, self.state.ready_game()
        self.deadline_ms = self.state.next_deadline_ms()
        return compared

    def miss_lease(self, hall: str, slot: api.Slot | None) -> None:
        """Give an attempt up whose lease is gone from its hall: nobody could renew or revoke it.

        ``slot`` was read after the journal. A lease comes and goes with an entry, so one that is
        gone while the journal still ends as it did was deleted, evicted, or freed while the
        season was suspended.
        """
        running = self.state.running
        held = slot is not None and running is not None and slot.attempt == running.attempt
        if running is None or running.hall != hall or held:
            return
        end = contract.AttemptEnded(
            game=running.game,
            attempt=running.attempt,
            hall=running.hall,
            lane=running.lane,
            host=running.host,
            cause="lease lost",
            evidence="its lease is gone from Redis, and no entry says why",
            ply=max((ply for ply, _ in self._ledger.plies(running.attempt)), default=0),
        )
        draft = contract.Draft.of("attempt_ended", end)
        if isinstance(
            self._ledger.append(self.season, self.state.seq, [draft], SERVE), api.Appended
        ):
            about = {"game": running.game, "attempt": running.attempt}
            log.error("lease.lost", season=self.season, hall=hall, **about)

    def alarm(self) -> str:
        """Say whose records are missing, and what to do."""
        games = ", ".join(sorted(self.missing)[:8])
        return (
            f"the records of {len(self.missing)} finished games of {self.season} ({games}) are"
            f" neither in Redis nor in the archive. Start the worker of {self.hall}: its spool has"
            " them; if that disk is lost, stop `farm serve` and run `farm restore --without-games`"
        )

    def order(self, game: str) -> str:
        """Return the order of a game, as halls read it."""
        return orders.game_order(self.state, game).encode()

    def _decide(self, now_ms: int) -> None:
        self.busy = True
        for _ in range(STEPS):
            drafts, effects = interruptions.verdict(self._ledger, self._archive, self.state)
            drafts = drafts or self._next_facts(now_ms)
            if not drafts:
                self.busy = False
                return
            effects = [*effects, *_holds(self.season, drafts)]
            reply = self._ledger.append(self.season, self.state.seq, drafts, SERVE, effects)
            if isinstance(reply, api.Appended):
                for draft in drafts:
                    about = {key: draft.data[key] for key in ABOUT if draft.data.get(key)}
                    log.info("fact.decided", season=self.season, kind=draft.kind, **about)
            self._catch_up()

    @property
    def pairing(self) -> bool:
        """Say whether a round is paired beside the passes: nothing else is done meanwhile."""
        return self._beside is not None and not self._beside[1].done()

    def _next_facts(self, now_ms: int) -> list[contract.Draft]:
        """Return what is decided at this entry, [] while it is computed beside the passes."""
        beside, self._beside = self._beside, None
        if beside is not None and beside[0] == self.state.seq:
            return beside[1].result()
        event = self.state.current
        if event is None or not pairing.takes_long(event):
            return decide.decide(self.state, now_ms)
        self._beside = self.state.seq, _PAIRING.submit(decide.decide, self.state, now_ms)
        return []

    def _catch_up(self) -> None:
        while new := self._new_entries():
            self._mirror_all(new)
            for entry in state.fold_each(self.state, new):
                if entry.seq > self._archived:
                    self._to_archive.append(entry)
                elif entry.kind == "game_finished":
                    self._kept.append(entry.data["attempt"])  # a kill may have left its record
            self._end = new[-1].line()

    def _new_entries(self) -> list[contract.Entry]:
        """Read what is new, with the last known entry: it must still be there as it was."""
        last_seq = self.state.seq
        entries_read = self._ledger.read(self.season, max(0, last_seq - 1), BATCH)
        if not last_seq:
            return entries_read
        if not entries_read:
            raise lost_entries(self.season, self._ledger.last(self.season), last_seq)
        if entries_read[0].line() != self._end:
            raise errors.LedgerDamagedError(
                f"{self.season}: entry {last_seq} differs between Redis and its mirror: Redis has"
                f" lost facts and others have been written since, or it is another one: {RESTORE}"
            )
        return entries_read[1:]

    def _mirror_all(self, new: list[contract.Entry]) -> None:
        mirrored = [entry for entry in new if entry.seq <= self._mirror.last]
        self._mirror.verify_against(mirrored)
        self._mirror.extend(new[len(mirrored) :])

    def keep_archive(self) -> bool:
        """Archive what the journal has told since the last call; say whether a game was."""
        if not self._looked_at:
            self._repair_events()
        for entry in self._to_archive:
            if entry.kind == "game_finished":
                self._keep_game(entry)
            elif entry.kind == "attempt_ended":
                self._keep_given_up(entry)
            elif entry.kind == "games_imported":
                self._keep_imported(entry)
        if any(entry.kind in published.CORRECTIONS for entry in self._to_archive):
            for event in self.state.events.values():
                self._rebuild_event(event)
        games = any(entry.kind == "game_finished" for entry in self._to_archive)
        self._to_archive = [
            entry
            for entry in self._to_archive
            if entry.kind == "game_finished" and entry.data["game"] in self.missing
        ]
        # Spools go when the mirror has passed their entry: not before all of them are archived.
        whole = self._to_archive[0].seq - 1 if self._to_archive else self.state.seq
        if whole > self._archived or self._kept:
            # In one step: a hall gives back a record that is missing before, and a kill behind
            # it would leave the records of a season that is over.
            self._ledger.set_mirrored(self.season, whole, self._kept)
            # Only now: what an outage cut off is told again.
            self._archived = max(whole, self._archived)
            self._kept.clear()
        return games

    @property
    def over(self) -> bool:
        """Say whether the season is over, and archived to its last entry."""
        waiting = self.missing or self._to_archive or self._kept or self.busy
        flying = self.state.running is not None or self.state.lost is not None
        return self.state.over and not waiting and not flying and self._archived == self.state.seq

    def rest(self) -> int:
        """Close a season that is over; return its last entry."""
        self._archive.close(self.state.seq)
        self._ledger.set_checked(self.season, self._checked, over=self.state.seq)
        self.close()
        return self.state.seq

    def _repair_events(self) -> None:
        """Write the events' PGN again where a process has ended amid writing them."""
        finished = (e.data["game"] for e in self._to_archive if e.kind == "game_finished")
        doubtful = {self.state.game(game).event for game in finished}
        for event in self.state.events.values():
            games = [self.state.game(game) for game in event.order]
            last = next(filter(None, map(self._published, reversed(games))), None)
            ends = self._archive.ends_with(event.id, last)
            corrected = any(published.corrected(self.state, game) for game in games)
            if event.id in doubtful or corrected or not ends:
                self._rebuild_event(event)
        self._looked_at = True

    def _rebuild_event(self, event: events.EventState) -> None:
        texts = list(published.of_event(self.state, event, self._archive.pgn))
        if not self._archive.holds(event.id, texts):
            self._archive.rebuild_event(event.id, texts)
        self._appended.pop(event.id, None)

    def _published(self, game: events.Game) -> bytes | None:
        """Return the PGN of a game as it is published."""
        if game.finished is None:
            return None
        return published.pgn(self.state, game, self._archive.pgn(game.id))

    def _keep_game(self, entry: contract.Entry) -> None:
        finished = contract.GameFinished.model_validate(entry.data)
        packed = self._ledger.record(finished.attempt)
        if packed is None and finished.by_verdict:
            packed = interruptions.packed(self.state, finished)
        if packed is None:
            self._miss(finished.game, finished.attempt)
            return
        if finished.game in self.missing:
            about = {"game": finished.game, "attempt": finished.attempt}
            log.info("record.found", season=self.season, **about)
            self.missing.discard(finished.game)
        filed_before = self._archive.pgn(finished.game) is not None
        self._archive.keep_game(finished.game, packed)
        if not filed_before:
            self._add_to_event(finished.game)
        self._kept.append(finished.attempt)

    def _miss(self, game: str, attempt: str) -> None:
        """Wait for a record that Redis has lost: its hall's spool has it.

        A restore that could not find it either has said so, and its result counts alone.
        """
        if self._archive.pgn(game) is not None or self._archive.is_lost(game):
            self.missing.discard(game)
        elif game not in self.missing:
            self.missing.add(game)
            self.bell.news()
            log.error("record.missing", season=self.season, game=game, attempt=attempt)

    def _add_to_event(self, game: str) -> None:
        """Add a game to its event's PGN: behind the others, or, played again, in its place."""
        event = self.state.events[self.state.game(game).event]
        index = self._place_behind(event, game)
        paired = self.state.game(game)
        text = self._published(paired)
        if index is None or text is None or published.corrected(self.state, paired):
            self._rebuild_event(event)  # a result that came late does not count, or stands there
        else:
            self._archive.extend_event(event.id, text)
            self._appended[event.id] = (game, index)

    def _place_behind(self, event: events.EventState, game: str) -> int | None:
        """Return a game's place in its event, None where one behind it has been played.

        The order of play is looked at from the game on that was added last.
        """
        last, index = self._appended.get(event.id, ("", 0))
        appended = bool(last) and event.order[index : index + 1] == [last]
        try:
            at = event.order.index(game, index + 1 if appended else 0)
        except ValueError:
            return None
        behind = not appended and any(
            self.state.game(game_id).finished for game_id in event.order[at + 1 :]
        )
        return None if behind else at

    def _keep_imported(self, entry: contract.Entry) -> None:
        for game in amendment_entries.GamesImported.model_validate(entry.data).games:
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
