"""A season, a hall and the messages of one game, for the tests of the ledger."""

from __future__ import annotations

import time
from typing import TypeAlias

from twins import memory

from orchestrator import contract
from orchestrator.ledger import api, store

Twin: TypeAlias = memory.MemoryLedger | store.RedisLedger

LONG = 1_000_000_000  # ms: a lease that never runs out in a test
SHORT = 1  # ms: a lease that has run out after ``lapse``


def draft(text: str = "x") -> contract.Draft:
    """Make a fact that means nothing."""
    return contract.Draft("noted", {"text": text})


def launch(ledger: Twin, season: str = "s1") -> int:
    """Launch a season; return its journal's last number."""
    reply = ledger.append(season, 0, [contract.Draft("launched", {"name": season})], by="op")
    assert isinstance(reply, api.Appended)
    return reply.last


def offer(ledger: Twin, game: str = "g1", season: str = "s1", hall: str = "main") -> None:
    """Make a game the ready one."""
    reply = ledger.offer(hall, season, game, f'{{"game":"{game}"}}', ledger.last(season))
    assert reply == api.Offered()


def a_claim(attempt: str = "a1", game: str = "g1", **other: str | int) -> api.Claim:
    """Make a claim of worker w1 on host h1."""
    fields: dict[str, str | int] = {
        "hall": "main",
        "season": "s1",
        "game": game,
        "attempt": attempt,
        "worker": "w1",
        "host": "h1",
        "lane": "",
        "ttl_ms": LONG,
        **other,
    }
    return api.Claim(**fields)  # type: ignore[arg-type]


def claimed(
    ledger: Twin, attempt: str = "a1", game: str = "g1", **other: str | int
) -> contract.Token:
    """Claim, and return the token that was given."""
    reply = ledger.claim(a_claim(attempt, game, **other))
    assert isinstance(reply, api.Claimed), reply
    return reply.token


def again(ledger: Twin, attempt: str) -> contract.Token:
    """Offer game g1 once more, as after a verdict, and claim it; return the token."""
    offer(ledger)
    return claimed(ledger, attempt)


def playing(ledger: Twin, ttl_ms: int = LONG) -> contract.Token:
    """Launch, offer and claim game g1 as attempt a1; return the token."""
    launch(ledger)
    ledger.open_hall("main", "h1", "w1")
    offer(ledger)
    return claimed(ledger, ttl_ms=ttl_ms)


def finished(attempt: str = "a1", game: str = "g1") -> contract.GameFinished:
    """Make the result that ``complete`` journals."""
    return contract.GameFinished(
        game=game,
        attempt=attempt,
        hall="main",
        lane="",
        host="h1",
        result="1-0",
        ending=contract.Ending.CHECKMATE,
        details="White mates",
        plies=3,
        white_clock_ns=1,
        black_clock_ns=2,
        started_ms=1,
        ended_ms=2,
        record_sha256="0" * 64,
    )


def ended(attempt: str = "a1", game: str = "g1", cause: str = "test") -> contract.AttemptEnded:
    """Make the end that ``give_up`` and ``revoke`` journal."""
    return contract.AttemptEnded(
        game=game, attempt=attempt, hall="main", lane="", host="h1", cause=cause
    )


def kinds(ledger: Twin, journal: str = "s1") -> list[str]:
    """Return the kinds of a journal's entries, in order."""
    return [entry.kind for entry in ledger.read(journal)]


def raise_epoch(ledger: Twin, epoch: int) -> None:
    """Do to the epoch what a restore does."""
    if isinstance(ledger, memory.MemoryLedger):
        ledger.epoch = epoch
    else:
        ledger.server.client.set("farm:ledger:epoch", epoch)


def restart(ledger: Twin) -> None:
    """Let the server be another one than that in which journals were compared."""
    if isinstance(ledger, memory.MemoryLedger):
        ledger.server_run = "another"
    else:
        ledger.server.client.hset("farm:ledger:checked", "s1", "another")


def lapse() -> None:
    """Let every ``SHORT`` lease run out."""
    time.sleep(0.003)
