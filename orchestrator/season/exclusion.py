"""Engines that leave an event: disqualified after crashes, or withdrawn by the organizers.

S16-15c, S17-15c: an engine that crashes so many times in one event is disqualified there;
all its results are annulled, for its opponents too, and its remaining games are cancelled.
Its games stay in the PGN and its crashes stay counted (S16-15d, S17-15d), until the
event ends (S16-15e, S17-15e). Withdrawal does the same. Which games are annulled and
cancelled stands in the entry.
"""

from __future__ import annotations

from orchestrator import contract, errors
from orchestrator.season import entries, events
from orchestrator.season import state as season_state


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

    A proven hidden book disqualifies (S16-16, RULEBOOK §5): the same, by another cause.
    """
    if not reason:
        raise errors.UsageError(f"a {cause} needs --reason")
    state.require_unfinished()
    event = state.events.get(event_id)
    if event is None or event.status is not events.Status.RUNNING:
        raise errors.RefusedError(_why_nobody_leaves(state, event_id))
    require_paused(state)
    if engine not in event.tally.scores:
        field = ", ".join(event.entrants)
        raise errors.RefusedError(f"{engine!r} does not play {event_id}; its field: {field}")
    if engine in event.tally.excluded:
        raise errors.RefusedError(f"{engine} has left {event_id} already")
    if event.spec.format.kind == "match":
        raise errors.RefusedError(
            f"{event_id} is a match: annulling its games would leave no winner; adjudicate the"
            " remaining games (`farm adjudicate`)"
        )
    return [_excluded(state, event, engine, cause, reason, name)]


def _why_nobody_leaves(state: season_state.SeasonState, event_id: str) -> str:
    event = state.events.get(event_id)
    if event is None:
        return f"no event {event_id!r} in this season; there are {', '.join(state.events)}"
    if event.rows:
        return f"event {event_id!r} is over and not being played; nobody can leave it any more"
    return (
        f"event {event_id!r} is not being played yet; nobody can leave it. Before it begins"
        " another engine may take the seat (`farm amend engine`)"
    )


def require_paused(state: season_state.SeasonState) -> None:
    """Raise ``RefusedError`` unless no game is in flight and none can be begun.

    A hall may claim the offered game at any moment; only a pause keeps it from that.
    """
    state.require_unfinished()
    if not state.paused:
        raise errors.RefusedError(
            "pause the season first (`farm pause`): a game may begin any time"
        )
    if state.running is not None:
        raise errors.RefusedError(
            f"{state.running.game} is in flight; let it end, or `farm abort` it first"
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
