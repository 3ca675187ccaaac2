"""Engines that leave an event: disqualified after crashes, or withdrawn by the organizers.

S16-15c, S17-15c: an engine that crashes so many times in one event is disqualified there;
all its results are annulled, for its opponents too, and its remaining games are cancelled.
Its games stay in the PGN and its crashes stay counted (S16-15d, S17-15d), until the
event ends (S16-15e, S17-15e). Withdrawal does the same. Which games are annulled and
cancelled stands in the entry.
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.fold import entries, events, pairing
from orchestrator.season.fold import state as season_state
from orchestrator.season.formats import knockout


def disqualified(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the fact of the first engine that has crashed too often, [] without one.

    Also in an event that is passed over: the game that it waits for may be that engine's.
    """
    for event in state.events.values():
        if event.status is events.Status.RUNNING and event.spec.disqualify_after:
            for engine, crashes in event.tally.crashed.items():
                if crashes >= event.spec.disqualify_after and engine not in event.tally.excluded:
                    reason = f"{crashes} crashes in {event.spec.name}"
                    return [_excluded(state, event, engine, "crashes", reason)]
    return []


def refused(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the fact of an engine whose handshake says that it cannot play an event (FRC-1c).

    It has not crashed: it should not have been entered. In a match it loses its games, since
    somebody has to win.
    """
    for event in state.events.values():
        if event.status is events.Status.RUNNING and event.spec.format.kind != "match":
            for engine, why in event.tally.refused.items():
                if engine not in event.tally.excluded and _may_leave(event, engine):
                    return [_excluded(state, event, engine, "refusal", f"it {why}")]
    return []


def _may_leave(event: events.EventState, engine: str) -> bool:
    return event.spec.format.kind != "knockout" or bool(_rival(event, engine))


def carried(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the fact of an engine that comes into a Cup's match from a round that it has left.

    Losers go on to the bronze match (CUP-2e): its rival wins that without a game.
    """
    running = (event for event in state.events.values() if event.status is events.Status.RUNNING)
    for event in running:
        if event.spec.format.kind == "knockout" and not event.order:
            for left in _left_before(state, event):
                if left.engine not in event.excluded and _rival(event, left.engine):
                    reason = f"it left {left.event}: {left.reason}"
                    return [_excluded(state, event, left.engine, left.cause, reason, left.name)]
    return []


def _left_before(
    state: season_state.SeasonState, event: events.EventState
) -> list[entries.EngineExcluded]:
    """Return how those entrants of a Cup's round left the round that they come from."""
    before = [state.events[name] for name in event.arrivals]
    rounds = [source for source in before if source.spec.format.kind == "knockout"]
    out = [left for source in rounds for left in source.excluded.values()]
    return [left for left in out if left.engine in event.entrants]


def overdue(state: season_state.SeasonState, event: events.EventState) -> list[contract.Draft]:
    """Cancel games that were paired for an engine after it had left the event."""
    if event.all_played or not event.tally.excluded:
        return []
    if not _concerns(state.game(event.order[event.cursor]), event.tally.excluded):
        return []
    left = event.order[event.cursor :]
    games = [game for game in left if _waits(state.game(game), event.tally.excluded)]
    fact = entries.GamesCancelled(event=event.id, games=tuple(games), reason="excluded engine")
    return [contract.Draft.of(entries.GAMES_CANCELLED, fact)]


def withdraw(
    state: season_state.SeasonState,
    event_id: str,
    engine: str,
    name: str,
    reason: str,
    cause: entries.ExclusionCause = "withdrawal",
) -> list[contract.Draft]:
    """Take an engine out of a running event; raise ``RefusedError``, ``UsageError``.

    A proven hidden book disqualifies (S16-16): the same, by another cause.
    """
    if not reason:
        raise errors.UsageError(f"a {cause} needs --reason")
    state.require_unfinished()
    event = state.events.get(event_id)
    if event is None or event.status is not events.Status.RUNNING:
        raise errors.RefusedError(_why_nobody_leaves(state, event_id, engine, cause))
    require_still(state)
    if engine not in event.tally.scores:
        field = ", ".join(event.entrants)
        raise errors.RefusedError(f"{engine!r} does not play {event_id}; its field: {field}")
    if engine in event.tally.excluded:
        raise errors.RefusedError(f"{engine} has left {event_id} already")
    if event.spec.format.kind == "match":
        raise errors.RefusedError(
            f"{event_id} is a match: annulling its games would leave no winner; adjudicate the"
            " remaining games (`farm game adjudicate`)"
        )
    _require_winner(event, engine)
    return [_excluded(state, event, engine, cause, reason, name)]


def _require_winner(event: events.EventState, engine: str) -> None:
    """Refuse to leave a Cup match, or a bye, without anybody who goes on (CUP-2e)."""
    if event.spec.format.kind == "knockout" and not _rival(event, engine):
        raise errors.RefusedError(
            f"{engine} has no rival left in {event.id}, so it goes on: give its seat to another"
            " engine (`farm season amend engine`), or withdraw it from the next round"
        )


def _rival(event: events.EventState, engine: str) -> str:
    """Return whom an engine meets in a Cup's round, '' where it has a bye or that has left."""
    format_ = pairing.schedule(event)
    assert isinstance(format_, knockout.Knockout)  # the callers look first
    rival = format_.rival(event.entrants.index(engine))
    name = "" if rival is None else event.entrants[rival]
    return "" if name in event.excluded else name


def _why_nobody_leaves(
    state: season_state.SeasonState, event_id: str, engine: str, cause: entries.ExclusionCause
) -> str:
    """Say why no engine leaves an event that is over or to come, and what to do instead."""
    event = state.events.get(event_id)
    if event is None:
        return f"no event {event_id!r} in this season; there are {', '.join(state.events)}"
    command = "engine disqualify" if cause == "disqualification" else "season amend engine"
    if event.rows:
        over = f"event {event_id!r} is over and not being played; nobody can leave it any more"
        coming = [e.id for e in state.events.values() if not e.entrants and engine in _arrived(e)]
        return "; ".join([over, *(_replace(command, engine, event) for event in coming)])
    return (
        f"event {event_id!r} is not being played yet, so nobody can leave it; before it begins"
        f" {_replace(command, engine, event_id)}{_next(state, event, engine)}{_later(event)}"
    )


def _replace(command: str, engine: str, event_id: str) -> str:
    way = f"`farm {command} {engine} --event {event_id} --with SUBSTITUTE`"
    return f"another engine may take its seat in {event_id} ({way})"


def _next(state: season_state.SeasonState, event: events.EventState, engine: str) -> str:
    """Name who is next in the event that an engine comes from, and goes nowhere else (CUP-1c)."""
    gone = {arrived for other in state.events.values() for arrived in _arrived(other)}
    for source, arrival in event.arrivals.items():
        before = state.events[source]
        left = (row.engine for row in before.rows if row.engine not in before.tally.excluded)
        following = next((candidate for candidate in left if candidate not in gone), None)
        if engine in arrival.engines and following is not None:
            return f"; next in {source} is {following}"
    return ""


def _arrived(event: events.EventState) -> set[str]:
    came = {engine for arrival in event.arrivals.values() for engine in arrival.engines}
    return came | set(event.substitutes.values())


def _later(event: events.EventState) -> str:
    """Say how an engine leaves once the event is played, where its format allows that."""
    if event.spec.format.kind == "match":
        return ""
    shut = event.status is events.Status.GATE
    begin = f"let it begin (`farm season open-gate {event.id}`)" if shut else "let it begin"
    return f". Without a substitute {begin}, `farm season pause`, and give this command again"


def require_still(state: season_state.SeasonState) -> None:
    """Raise ``NotStillError`` unless no game is in flight and none can be begun.

    A hall may claim the offered game at any moment; only a pause, or a hold of the farm,
    keeps it from that.
    """
    state.require_unfinished()
    if not state.paused and not state.held:
        raise errors.NotStillError(
            "pause the season first (`farm season pause`): a game may begin any time"
        )
    if state.running is not None:
        raise errors.NotStillError(
            f"{state.running.game} is in flight; let it end, or `farm game abort` it first"
        )


def _excluded(
    state: season_state.SeasonState,
    event: events.EventState,
    engine: str,
    cause: entries.ExclusionCause,
    reason: str,
    name: str = "",
) -> contract.Draft:
    concerned = [game for game in event.order if _concerns(state.game(game), {engine})]
    fact = entries.EngineExcluded(
        event=event.id,
        engine=engine,
        cause=cause,
        crashes=event.tally.scores[engine].crashes,
        annulled=tuple(game for game in concerned if state.game(game).finished is not None),
        cancelled=tuple(game for game in concerned if state.game(game).open),
        reason=reason,
        name=name,
    )
    return contract.Draft.of(entries.ENGINE_EXCLUDED, fact)


def _concerns(game: events.Game, engines: frozenset[str] | set[str]) -> bool:
    return not game.cancelled and not engines.isdisjoint((game.white, game.black))


def _waits(game: events.Game, engines: frozenset[str]) -> bool:
    return game.open and _concerns(game, engines)
