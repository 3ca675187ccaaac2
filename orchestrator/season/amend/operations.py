"""What operators do to a season: launch, pause, resume, open a gate, abort a game.

Each returns the drafts to be journaled, or raises ``RefusedError`` with why the present
state does not allow it and what to do instead. Nothing here changes the state.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import windows
from orchestrator.season.file import load
from orchestrator.season.fold import entries, events, plan
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model, seeded_random

_SEASON_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def launch(
    loaded: load.Loaded,
    season_id: str,
    seed: str,
    hall: str,
    version: str,
    reason: str = "",
) -> list[contract.Draft]:
    """Return the first entry of a season's journal; the seed stays sealed until its end.

    Raise ``UsageError`` for an id that is no season id, or an empty seed.
    """
    if _SEASON_ID.fullmatch(season_id) is None or season_id == "farm":
        allowed = "small letters, digits and hyphens, and not 'farm'"
        raise errors.UsageError(f"season id {season_id!r}: allowed are {allowed}")
    if hall and not contract.is_name(hall):
        raise errors.UsageError(f"--hall {hall[:80]!r}: allowed: {contract.ids.ALLOWED}")
    if not seed or not hall:
        raise errors.UsageError("a season needs a random seed and a hall to be launched")
    needed = _exits_needed(loaded)
    fact = entries.Launched(
        id=season_id,
        season=loaded.season,
        engines=loaded.engines,
        books={
            name: _exits(loaded.season.books[name], name, exits, needed[name], seed)
            for name, exits in loaded.books.items()
        },
        seed=seed,
        seed_sha256=seeded_random.commitment(seed),
        hall=hall,
        version=version,
        reason=reason,
        logos={name: base64.b64encode(png).decode() for name, png in loaded.logos.items()},
    )
    return [contract.Draft.of(entries.LAUNCHED, fact)]


def _exits_needed(loaded: load.Loaded) -> dict[str, int]:
    """Return how many exits of each book are journaled: all where an event may go on."""
    roster = len(loaded.engines)
    whole = plan.open_ended_books(loaded.season, roster)
    return {
        book: len(loaded.books[book]) if book in whole else needed
        for book, needed in plan.openings_needed(loaded.season, roster).items()
    }


def _exits(
    book: model.Book, name: str, exits: tuple[contract.Opening, ...], needed: int, seed: str
) -> tuple[contract.Opening, ...]:
    """Return the exits a season will use, in the order in which it takes them."""
    if book.order == "sequential":
        first = (book.start - 1) % len(exits)
        return (*exits[first:], *exits[:first])[:needed]
    return tuple(
        exits[index] for index in seeded_random.shuffle(seed, f"book:{name}", len(exits))[:needed]
    )


def pause(state: season_state.SeasonState, name: str, reason: str) -> list[contract.Draft]:
    """Begin no new game; the game in flight goes on."""
    state.require_unfinished()
    if state.paused:
        raise errors.RefusedError(f"the season is paused already ({state.paused})")
    return [contract.Draft.of(entries.PAUSED, entries.Paused(reason=reason, name=name))]


def resume(state: season_state.SeasonState, name: str, reason: str) -> list[contract.Draft]:
    """End a pause, and a hold of the farm; take a planned pause back where there is neither."""
    state.require_unfinished()
    if not state.paused and not state.held and state.planned_pause is None:
        raise errors.RefusedError("the season is neither paused nor held; nothing to resume")
    return [contract.Draft.of(entries.RESUMED, entries.Resumed(reason=reason, name=name))]


def open_gate(
    state: season_state.SeasonState,
    event_id: str,
    name: str,
    reason: str,
    now_ms: int | None = None,
) -> list[contract.Draft]:
    """Open the gate before an event ahead of its time, but of no deadline that was promised."""
    state.require_unfinished()
    event = state.event(event_id)
    if event.status is not events.Status.GATE:
        raise errors.RefusedError(why_no_gate(state, event))
    windows.require_no_deadline_after(state, event, state.at_ms if now_ms is None else now_ms)
    fact = entries.GateOpened(event=event_id, cause="operator", reason=reason, name=name)
    return [contract.Draft.of(entries.GATE_OPENED, fact)]


def why_no_gate(state: season_state.SeasonState, event: events.EventState) -> str:
    """Say why no gate before an event is shut."""
    if not event.spec.gated:
        return f"event {event.id!r} has no gate before it"
    if event.status is not events.Status.WAITING:
        return f"the gate before {event.id!r} is open already"
    awaited = ", ".join(plan.awaited(state.launched.season, event.id))
    return (
        f"the gate before {event.id!r} is not set yet: it waits for {awaited or 'the launch'};"
        f" `farm season amend gate {event.id} --at TIME` sets when it opens by itself"
    )


def abort(
    state: season_state.SeasonState, name: str, reason: str, then: entries.Then = ""
) -> list[contract.Draft]:
    """Wish that the game in flight ends as an interruption; ``then`` says how it goes on."""
    state.require_unfinished()
    if state.running is None:
        raise errors.RefusedError("no game is in flight; pause keeps the next one from starting")
    if state.running.abort:
        raise errors.RefusedError(f"the abort is on its way already ({state.running.abort})")
    fact = entries.AbortWished(attempt=state.running.attempt, reason=reason, name=name, then=then)
    return [contract.Draft.of(entries.ABORT_WISHED, fact)]


def require_unsealed(state: season_state.SeasonState) -> None:
    """Raise ``RefusedError`` while a season's seed is still sealed."""
    if not state.over:
        raise errors.RefusedError("the season is not over; its seed is sealed until then")
