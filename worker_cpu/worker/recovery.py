"""Recover what earlier attempts left on this host: submit spools, give up a dead attempt.

A Redis that has lost its last writes gets back from here what only this host still has: the
record of a game whose result it knows, and the last plies of the dead attempt.

Called under the hall's lock, so that nothing of an earlier attempt is alive.
Invariants: a spool is deleted only when the journal's mirror has passed its entry; one that the
ledger refuses, or that nobody can read, is kept aside for the operator.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import structlog

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.ledger import api, attempts, store
from worker_cpu import settings
from worker_cpu.hall import directory as hall_directory
from worker_cpu.link import spools

log = structlog.get_logger()


def settle(
    configured: settings.HallSettings,
    directory: hall_directory.HallDirectory,
    ledger: store.RedisLedger,
) -> tuple[spools.Waiting, ...]:
    """Bring this host's past in order: submit its spools, give up its dead attempt.

    Return the spools that only wait for the archive.

    The caller holds the hall's lock, so no link and no dead man of an earlier attempt
    is alive. What is of a season whose journal nobody has compared since Redis was started waits:
    ``serve`` rings when it has. It is compared within a second or has lost entries, and other
    seasons are played meanwhile. Raises ``LedgerUnreachableError``; may be repeated at any time.
    """
    waiting: list[spools.Waiting] = []
    for path in directory.spooled():
        try:
            waiting += _submit(path, directory, ledger)
        except errors.LedgerUncheckedError:
            log.warning("spool.waits", path=path.name)
    slot = ledger.slot(configured.hall)
    if slot is not None and slot.host == configured.host:
        _give_up(slot, configured, directory, ledger)
    return tuple(waiting)


def _give_up(
    slot: api.Slot,
    configured: settings.HallSettings,
    directory: hall_directory.HallDirectory,
    ledger: store.RedisLedger,
) -> None:
    """Give this host's dead attempt up, with the plies that only its own log has."""
    _give_back_plies(slot, directory, ledger)
    end = attempts.ended(slot, ledger, "worker lost", _last_words(directory, slot.attempt))
    about = {"season": slot.season, "game": slot.game, "attempt": slot.attempt}
    try:
        ledger.give_up(configured.hall, slot.token, slot.season, end)
    except errors.LedgerUncheckedError:
        log.warning("attempt.waits", **about)
        return
    log.warning("attempt.given_up", **about, ply=end.ply)


def _submit(
    path: pathlib.Path, directory: hall_directory.HallDirectory, ledger: store.RedisLedger
) -> Iterator[spools.Waiting]:
    """Tell the ledger a finished game; yield it where it is recorded, but not archived yet."""
    try:
        spooled = hall_directory.Spooled.decode(path.read_bytes())
    except errors.HostError as error:
        directory.set_aside(path, str(error))
        log.exception("spool.unreadable", path=path.name, attempt=path.stem)
        return
    reply = ledger.complete(
        spooled.hall, spooled.token, spooled.season, spooled.finished, spooled.record
    )
    if isinstance(reply, api.Refused):
        directory.set_aside(path, reply.reason)
        finished = spooled.finished
        about = {"season": spooled.season, "game": finished.game, "attempt": finished.attempt}
        log.error("spool.refused", path=path.name, reason=reply.reason, **about)
        return
    recorded = spools.Waiting(path, spooled.season, spooled.finished.attempt, reply.seq)
    waiting = spools.forget([recorded], directory, ledger)
    if waiting and ledger.record(recorded.attempt) is None:
        _give_back_record(spooled, reply.seq, ledger)
    yield from waiting


def _give_back_record(spooled: hall_directory.Spooled, seq: int, ledger: store.RedisLedger) -> None:
    """Let the archive have the record that Redis has lost, unless it was archived just now."""
    attempt = spooled.finished.attempt
    ledger.give_back(attempt, spooled.record, ())
    about = {"season": spooled.season, "game": spooled.finished.game, "attempt": attempt}
    log.warning("record.given_back", **about)
    if ledger.mirrored(spooled.season) >= seq:
        ledger.archived(attempt)


def _give_back_plies(
    slot: api.Slot, directory: hall_directory.HallDirectory, ledger: store.RedisLedger
) -> None:
    """Write what the hall's own log has of the dead attempt's plies beyond those in Redis."""
    try:
        lines = files.lines(directory.ply_log(slot.attempt))
    except FileNotFoundError:
        return
    journaled = ledger.plies(slot.attempt)
    last = journaled[-1][0] if journaled else 0
    for line in lines:
        try:
            ply = contract.PlyRecord.decode(line).ply
        except ValueError:
            return  # the end of a log that was torn
        if ply <= last:
            continue
        reply = ledger.write_ply(slot.hall, slot.token, slot.attempt, ply, line)
        if not isinstance(reply, api.Written):
            return
        about = {"season": slot.season, "game": slot.game, "attempt": slot.attempt}
        log.warning("ply.given_back", **about, ply=ply)


def _last_words(directory: hall_directory.HallDirectory, attempt: str) -> str:
    """Return what the dead man of an attempt wrote down last, '' if it wrote nothing."""
    try:
        lines = directory.dead_man_log(attempt).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return lines[-1] if lines else ""
