"""What operators amend in a running season: books, gates, pauses, hosts that are away.

Each verb returns the fact to be journaled, or raises ``RefusedError`` where something is
built on what it would change: an opening that a game has been begun with, a gate that is
open. ``substitute`` gives an engine's seat to another one. Nothing here changes the state.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import operations, windows
from orchestrator.season.fold import amendment_entries, disqualification, events, openings
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import seeded_random


def mend_book(
    state: season_state.SeasonState,
    book: str,
    exits: Sequence[contract.Opening],
    file: tuple[str, str],
    games: Sequence[str],
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Replace the exits that no game has been begun with, or those of the named games.

    ``file`` is the new file's name and SHA-256. The new exits come in the order of the
    book: by lot from the season's seed, or as they stand; none that was played comes again.
    """
    _need(reason)
    disqualification.require_still(state)
    if book not in state.books:
        book_names = ", ".join(state.books) or "none"
        raise errors.RefusedError(f"no book {book!r} in this season; there are {book_names}")
    numbers = _undealt(state, book, games)
    fresh = _fresh(state, book, exits, numbers)
    if len(fresh) < len(numbers):
        raise errors.RefusedError(
            f"{len(numbers)} exits of {book} are not played yet; {file[0]} has {len(fresh)}"
            " others: give a file with more, or only the broken games (--game)"
        )
    fact = amendment_entries.BookMended(
        book=book,
        exits=dict(zip(numbers, fresh, strict=False)),
        source=file[0],
        sha256=file[1],
        reason=reason,
        name=name,
    )
    return [contract.Draft.of(amendment_entries.BOOK_MENDED, fact)]


def _undealt(state: season_state.SeasonState, book: str, games: Sequence[str]) -> list[int]:
    """Return the exits to be replaced; refuse games whose opening was played."""
    dealt = _dealt(state, book)
    if not games:
        left = [number for number in range(len(state.books[book])) if number not in dealt]
        if not left:
            raise errors.RefusedError(f"every exit of {book} has been played; replay such games")
        return left
    numbers = []
    for game in map(state.game, games):
        if openings.book_of(state, game) != book or game.opening is None:
            raise errors.RefusedError(f"{game.id} takes its opening from no exit of {book}")
        if game.opening in dealt:
            raise errors.RefusedError(
                f"the opening of {game.id} was played in {dealt[game.opening]}, and both games of"
                " a pair share it; void or replay that game first"
            )
        numbers.append(game.opening)
    return sorted(set(numbers))


def _dealt(state: season_state.SeasonState, book: str) -> dict[int, str]:
    """Return the exits of a book with which a game that counts was begun, and that game."""
    return {
        game.opening: game.id
        for game in state.games.values()
        if game.opening is not None and game.counts and openings.book_of(state, game) == book
    }


def _fresh(
    state: season_state.SeasonState,
    book: str,
    exits: Sequence[contract.Opening],
    replaced: Sequence[int],
) -> list[contract.Opening]:
    """Return the new exits in their order, without those that stay in the book."""
    numbered = enumerate(state.books[book])
    stay = {exit_.line for number, exit_ in numbered if number not in set(replaced)}
    different = {exit_.line: exit_ for exit_ in reversed(exits)}  # the first of its kind (S16-8a)
    fresh = [exit_ for line, exit_ in reversed(different.items()) if line not in stay]
    if state.launched.season.books[book].order == "sequential":
        return fresh
    lot = seeded_random.shuffle(state.launched.seed, f"book:{book}:mended:{state.seq}", len(fresh))
    return [fresh[number] for number in lot]


def move_gate(
    state: season_state.SeasonState,
    event_id: str,
    opens_at_ms: int,
    now_ms: int,
    name: str,
    reason: str,
) -> list[contract.Draft]:
    """Let the gate before an event open at another time, whether it is set yet or not."""
    _need(reason)
    state.require_unfinished()
    event = state.event(event_id)
    movable = event.status in {events.Status.WAITING, events.Status.GATE}
    gated = event.spec.gated or event.opens_at_ms is not None
    if not gated or not movable:
        raise errors.RefusedError(operations.why_no_gate(state, event))
    if opens_at_ms <= now_ms:
        raise errors.UsageError("that time is past; `farm season open-gate` opens a gate now")
    if opens_at_ms == (event.opens_at_ms or event.moved_to_ms):
        raise errors.RefusedError(f"the gate before {event_id} opens at that time already")
    windows.require_no_deadline_after(state, event, opens_at_ms)
    fact = amendment_entries.GateMoved(
        event=event_id,
        opens_at_ms=opens_at_ms,
        before_ms=event.opens_at_ms,
        reason=reason,
        name=name,
    )
    return [contract.Draft.of(amendment_entries.GATE_MOVED, fact)]


def plan_pause(
    state: season_state.SeasonState, at_ms: int, now_ms: int, name: str, reason: str
) -> list[contract.Draft]:
    """Let the season pause by itself at a time; a later plan takes the place of an earlier."""
    state.require_unfinished()
    if at_ms <= now_ms:
        raise errors.UsageError("that time is past; `farm season pause` without --at pauses now")
    if state.planned_pause is not None and state.planned_pause.at_ms == at_ms:
        raise errors.RefusedError("the season pauses at that time already")
    why = reason or f"planned by {name}"
    fact = amendment_entries.PausePlanned(at_ms=at_ms, reason=why, name=name)
    return [contract.Draft.of(amendment_entries.PAUSE_PLANNED, fact)]


def set_away_policy(
    state: season_state.SeasonState, policy: amendment_entries.AwayPolicy, name: str, reason: str
) -> list[contract.Draft]:
    """Say what the season does while a host is away."""
    if state.away_policy == policy:
        raise errors.RefusedError(f"the policy for a host that is away is {policy!r} already")
    fact = amendment_entries.AwayPolicySet(policy=policy, reason=reason, name=name)
    return [contract.Draft.of(amendment_entries.AWAY_POLICY_SET, fact)]


def host_away(
    state: season_state.SeasonState, host: str, engines: Sequence[str], name: str, reason: str
) -> list[contract.Draft]:
    """Tell the season that a host is away, and which engines with it."""
    if host in state.away:
        raise errors.RefusedError(f"{host} is away already ({state.away[host].reason})")
    unknown = [engine for engine in engines if engine not in state.engines]
    if unknown or not engines:
        roster_names = ", ".join(state.engines)
        named = ", ".join(unknown) or "nobody"
        raise errors.UsageError(
            f"--engine says who runs on {host}: found {named}; allowed: {roster_names}"
        )
    why = reason or f"told by {name}"
    fact = amendment_entries.HostAway(host=host, engines=tuple(engines), reason=why, name=name)
    return [contract.Draft.of(amendment_entries.HOST_AWAY, fact)]


def host_back(
    state: season_state.SeasonState, host: str, name: str, reason: str
) -> list[contract.Draft]:
    """Tell the season that a host is back: what waited for it is played next."""
    if host not in state.away:
        away_hosts = ", ".join(state.away) or "none"
        raise errors.RefusedError(f"{host!r} is not away; hosts that are: {away_hosts}")
    fact = amendment_entries.HostBack(host=host, reason=reason, name=name)
    return [contract.Draft.of(amendment_entries.HOST_BACK, fact)]


def _need(reason: str) -> None:
    if not reason:
        raise errors.UsageError("to amend a running season needs --reason")
