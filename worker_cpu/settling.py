"""Settle what a hall's past left on this host: spools go to the ledger, a dead attempt is given up.

Called under the hall's lock, so that nothing of an earlier attempt is alive (DESIGN §3.6, §3.7).
Invariants: a spool is deleted only when the journal's mirror has passed its entry; one that the
ledger refuses, or that nobody can read, is kept aside for the operator.
"""

from __future__ import annotations

import pathlib

import structlog

from orchestrator import errors
from orchestrator.ledger import api, attempts
from worker_cpu import hall, settings

log = structlog.get_logger()


def settle(
    configured: settings.HallSettings, directory: hall.HallDirectory, ledger: api.Ledger
) -> None:
    """Bring this host's past in order: submit its spools, give up its dead attempt.

    The caller holds the hall's lock, so no link and no dead man of an earlier attempt
    is alive. Raises ``LedgerUnreachableError``; may be repeated at any time.
    """
    for path in directory.spooled():
        _submit(path, directory, ledger)
    slot = ledger.slot(configured.hall)
    if slot is None or slot.host != configured.host:
        return
    end = attempts.ended(slot, ledger, "worker lost", _last_words(directory, slot.attempt))
    ledger.give_up(configured.hall, slot.token, slot.season, end)
    log.warning("attempt.given_up", game=slot.game, attempt=slot.attempt, ply=end.ply)


def _submit(path: pathlib.Path, directory: hall.HallDirectory, ledger: api.Ledger) -> None:
    try:
        spooled = hall.Spooled.decode(path.read_bytes())
    except errors.HostError as error:
        directory.set_aside(path, str(error))
        log.exception("spool.unreadable", path=path.name)
        return
    reply = ledger.complete(
        spooled.hall, spooled.token, spooled.season, spooled.finished, spooled.record
    )
    if isinstance(reply, api.Refused):
        directory.set_aside(path, reply.reason)
        log.error("spool.refused", path=path.name, reason=reply.reason)
    elif ledger.mirrored(spooled.season) >= reply.seq:
        path.unlink()
        directory.forget_attempt(spooled.finished.attempt)


def _last_words(directory: hall.HallDirectory, attempt: str) -> str:
    """Return what the dead man of an attempt wrote down last, '' if it wrote nothing."""
    try:
        lines = directory.dead_man_log(attempt).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return lines[-1] if lines else ""
