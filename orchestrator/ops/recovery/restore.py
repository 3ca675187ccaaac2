"""Restore: from the copies that are left, Redis and archive are made whole again.

The order matters, so that a restore that is killed may simply be repeated: everything is
read and checked; the epoch is raised, which ends the rights of every attempt of before;
everything is read again, because a worker may have told a result until then; the archive
gets what only another copy has; Redis gets the entries it lacks and, made from the facts
alone, what stands beside them; an attempt that was in flight is ended.

Invariants: copies that part are refused, and nothing is written then; no token of an
older epoch is accepted afterwards.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.common import errors
from orchestrator.ledger import api, farm_journal, journal_mirror, restoring, store
from orchestrator.ops.recovery import games as archived_games
from orchestrator.ops.recovery import journal_copies, leftovers
from orchestrator.season import published
from orchestrator.season.fold import abandoning
from orchestrator.season.fold import state as season_state
from orchestrator.serve import archive as archives

CAUSE = "restored"  # of the end of an attempt that was in flight


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a restore would do with one season."""

    journal: journal_copies.Journal
    state: season_state.SeasonState
    lost: tuple[str, ...]  # finished games whose moves are in no copy
    spooled: tuple[str, ...]  # the same, but a hall has them: it keeps what was not archived
    waiting: tuple[contract.Entry, ...]  # of games and attempts that are not in the archive

    @property
    def running(self) -> season_state.Attempt | None:
        """Return the attempt in flight, as the journal tells."""
        return self.state.running


@dataclasses.dataclass(frozen=True)
class Sources:
    """Where a restore takes from: the archive, another copy, the halls' folders."""

    archive: pathlib.Path
    other: pathlib.Path | None = None
    halls: pathlib.Path | None = None

    @property
    def roots(self) -> list[pathlib.Path]:
        """Return the folders that hold journals, the archive first."""
        return [self.archive] if self.other is None else [self.archive, self.other]

    def leftovers(self, ledger: store.RedisLedger, season: str) -> leftovers.Leftovers:
        """Return where records and plies of a season may be."""
        return leftovers.Leftovers(ledger, [root / season for root in self.roots], self.halls)


def plan(
    ledger: store.RedisLedger, sources: Sources, refused: dict[str, str] | None = None
) -> tuple[list[journal_copies.Journal], list[Plan]]:
    """Read and check every copy; return all journals, and what is to be done by season.

    With ``refused`` a season whose copies part, or are damaged, is put there with the reason,
    and nothing of it is changed; where no season is left, it is raised all the same.

    Raises:
        RefusedError: there is no journal anywhere.
        LedgerDamagedError: two copies part, or one is damaged.
    """
    journals = journal_copies.survey(ledger, sources.roots, refused)
    if refused and not any(journal.is_season for journal in journals):
        raise errors.LedgerDamagedError(next(iter(refused.values())))
    if not journals:
        places = ", ".join(map(str, sources.roots))
        raise errors.RefusedError(f"no journal is in Redis or in {places}: nothing to restore")
    journals = [_with_spooled(ledger, sources, journal) for journal in journals]
    seasons = [journal for journal in journals if journal.is_season]
    return journals, [_plan(ledger, sources, journal) for journal in seasons]


def _with_spooled(
    ledger: store.RedisLedger, sources: Sources, journal: journal_copies.Journal
) -> journal_copies.Journal:
    """Return a journal with the result that the hall of its game in flight has on its disk.

    Redis went before it was recorded. It counts as it would have without that: no newer
    attempt was given the game.
    """
    running = journal_copies.fold(journal).running
    if running is None:
        return journal
    starts = [entry for entry in journal.entries if entry.kind == "attempt_started"]
    spooled = sources.leftovers(ledger, journal.name).spooled(starts[-1])
    if spooled is None:
        return journal
    last = journal.entries[-1]
    fact = contract.Entry(
        seq=last.seq + 1,
        at_ms=max(last.at_ms, ledger.now_ms()),
        kind="game_finished",
        by=running.worker,
        data=spooled[0].model_dump(mode="json"),
        token=starts[-1].token,
    )
    whole = restoring.Copy(f"{journal.whole.place} and a spool", [*journal.entries, fact])
    return dataclasses.replace(journal, whole=whole)


def _plan(ledger: store.RedisLedger, sources: Sources, journal: journal_copies.Journal) -> Plan:
    leftover = sources.leftovers(ledger, journal.name)
    lost: list[str] = []
    spooled: list[str] = []
    waiting: list[contract.Entry] = []
    for entry in journal.entries:
        if not _needs_archive(sources, journal.name, entry):
            continue
        waiting.append(entry)
        if entry.kind == "game_finished" and not entry.data.get("by_verdict"):
            finished = contract.GameFinished.model_validate(entry.data)
            if leftover.record(finished) is None:
                (spooled if entry.seq <= journal.on_disk else lost).append(finished.game)
    folded = journal_copies.fold(journal)
    return Plan(journal, folded, tuple(lost), tuple(spooled), tuple(waiting))


def _needs_archive(sources: Sources, season: str, entry: contract.Entry) -> bool:
    if entry.kind == "game_finished":
        name = pathlib.Path(entry.data["game"])
        return not any(_has(root / season / "games" / name) for root in sources.roots)
    if entry.kind == "attempt_ended":
        kept = pathlib.Path(entry.data["game"], "given-up", f"{entry.data['attempt']}.jsonl")
        return not any((root / season / "games" / kept).exists() for root in sources.roots)
    return False


def _has(folder: pathlib.Path) -> bool:
    """Say whether a game's folder is whole; a game played elsewhere has a PGN alone."""
    there = {path.name for path in folder.glob("*")}
    return there >= set(game_zip.MEMBERS) or (there & set(game_zip.MEMBERS)) == {"game.pgn"}


def apply(
    ledger: store.RedisLedger,
    sources: Sources,
    planned: Sequence[journal_copies.Journal],
    by: str,
    reason: str = "",
    refused: dict[str, str] | None = None,
    *,
    without_games: bool = False,
) -> tuple[int, list[journal_copies.Journal], list[Plan]]:
    """Carry out what was planned; return the new epoch, and the journals and plans as they came.

    The caller holds the archive's lock. ``refused`` is as in ``plan``; ``without_games`` says
    that nobody is to wait for the records that were not found.

    Raises:
        RefusedError: a journal grows although no attempt of before may write: an operator's
            command or a `farm serve` does.
        LedgerDamagedError: as in ``plan``.
    """
    wanted = restoring.next_epoch(
        ledger.present_epoch(), ledger.now_ms(), [journal.entries for journal in planned]
    )
    epoch = ledger.raise_epoch(wanted)
    journals, plans = plan(ledger, sources, refused)
    if sources.other is not None:
        for season_plan in plans:
            archived_games.copy(sources.other, sources.archive, season_plan.journal.name)
    for journal in journals:
        _write_mirror(sources.archive, journal)
        _load(ledger, journal)
    for season_plan in plans:
        _mark_lost(sources, season_plan, without_games=without_games)
        _write_events(sources.archive, season_plan)
        _give_back(ledger, sources, season_plan)
        _reindex(ledger, season_plan)
        _end_attempt(ledger, season_plan, by)
    _tell(ledger, epoch, journals, by, reason)
    return epoch, journals, plans


def _write_mirror(archive: pathlib.Path, journal: journal_copies.Journal) -> None:
    with journal_mirror.Mirror(archive / journal.name / journal_copies.FILE) as kept:
        rest = journal.entries[kept.last :]
        for start in range(0, len(rest), journal_copies.BATCH):
            kept.extend(rest[start : start + journal_copies.BATCH])


def _mark_lost(sources: Sources, season_plan: Plan, *, without_games: bool) -> None:
    kept = archives.SeasonArchive(sources.archive, season_plan.journal.name)
    for game in (*season_plan.lost, *(season_plan.spooled if without_games else ())):
        kept.mark_lost(game)


def _write_events(archive: pathlib.Path, season_plan: Plan) -> None:
    """Write the events' PGN of their games: an older copy's may hold one that was replayed."""
    kept = archives.SeasonArchive(archive, season_plan.journal.name)
    for event in season_plan.state.events.values():
        kept.rebuild_event(event.id, published.of_event(season_plan.state, event, kept.pgn))


def _load(ledger: store.RedisLedger, journal: journal_copies.Journal) -> None:
    if journal.parted:
        ledger.forget_journal(journal.name)
    rest = journal.entries[0 if journal.parted else journal.in_redis :]
    for start in range(0, len(rest), journal_copies.BATCH):
        reply = ledger.load(journal.name, rest[start : start + journal_copies.BATCH])
        _require_still(journal.name, reply)


def _require_still(journal: str, reply: api.Appended | api.Stale) -> None:
    if isinstance(reply, api.Stale):
        raise errors.RefusedError(
            f"journal {journal} has grown to entry {reply.last} in Redis meanwhile: something"
            " still writes there; stop `farm serve`, give no command, restore again"
        )


def _give_back(ledger: store.RedisLedger, sources: Sources, season_plan: Plan) -> None:
    leftover = sources.leftovers(ledger, season_plan.journal.name)
    for entry in season_plan.waiting:
        if entry.kind == "game_finished":
            finished = contract.GameFinished.model_validate(entry.data)
            ledger.give_back(finished.attempt, leftover.record(finished), ())
    unsettled = {(entry.data["game"], entry.data["attempt"]) for entry in _unsettled(season_plan)}
    for game, attempt in sorted(unsettled):
        ledger.give_back(attempt, None, leftover.plies(game, attempt))


def _unsettled(season_plan: Plan) -> list[contract.Entry]:
    """Return the entries of attempts whose plies may still be asked for."""
    ends = [entry for entry in season_plan.journal.entries if entry.kind == "attempt_ended"]
    running = season_plan.running
    starts = [
        entry
        for entry in season_plan.journal.entries
        if running is not None
        and entry.kind == "attempt_started"
        and entry.data["attempt"] == running.attempt
    ]
    unkept = [entry for entry in season_plan.waiting if entry.kind == "attempt_ended"]
    return [*unkept, *ends[-1:], *starts]


def _reindex(ledger: store.RedisLedger, season_plan: Plan) -> None:
    """Write what follows from the facts; the archive is looked at from the first gap on."""
    holds = {"pause": season_plan.state.paused, abandoning.HOLD: season_plan.state.abandoned}
    holds = {name: reason for name, reason in holds.items() if reason}
    first = season_plan.waiting[0].seq if season_plan.waiting else season_plan.state.seq + 1
    name = season_plan.journal.name
    ledger.reindex(restoring.index(name, season_plan.journal.entries, holds, first - 1))


def _end_attempt(ledger: store.RedisLedger, season_plan: Plan, by: str) -> None:
    running = season_plan.running
    if running is None:
        return
    plies = ledger.plies(running.attempt)
    last = contract.PlyRecord.decode(plies[-1][1]) if plies else None
    end = contract.AttemptEnded(
        game=running.game,
        attempt=running.attempt,
        hall=running.hall,
        lane=running.lane,
        host=running.host,
        cause=CAUSE,
        evidence="in flight when the ledger was restored; its token is of an older epoch",
        ply=last.ply if last else 0,
        white_clock_ns=last.white_clock_ns if last else None,
        black_clock_ns=last.black_clock_ns if last else None,
    )
    draft = contract.Draft.of("attempt_ended", end)
    reply = ledger.append(season_plan.journal.name, season_plan.state.seq, [draft], by)
    _require_still(season_plan.journal.name, reply)


def _tell(
    ledger: store.RedisLedger,
    epoch: int,
    journals: Sequence[journal_copies.Journal],
    by: str,
    reason: str,
) -> None:
    lengths = {journal.name: len(journal.entries) for journal in journals}
    fact = {"epoch": epoch, "journals": lengths, "reason": reason}
    farm_journal.append(ledger, contract.Draft("ledger_restored", fact), by)
