"""Give an engine's seat in an event to a substitute, by the director's word.

S16-16: where a hidden book is proven, or an engine cannot go on, the director names
the replacement and what happens to the games played. The substitute has the seed and all
open games. Refused is what the schedule has built upon: an event that is ranked, results
by which later rounds were paired, a match that would be left without a winner. Invariant:
no engine enters an event twice, so nobody takes a seat that leads where it may come anyhow.
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.engines import limits
from orchestrator.season.amend import engine_update
from orchestrator.season.file import checks
from orchestrator.season.fold import (
    amendment_entries,
    corrections,
    disqualification,
    events,
    orders,
    plan,
)
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model

# Formats whose tables do without a game; in matches somebody has to win.
_MAY_ANNUL = frozenset({"round-robin", "swiss", "gauntlet", "encounters"})


def replace(
    state: season_state.SeasonState,
    event_id: str,
    engine: str,
    substitute: contract.EngineSpec,
    played: amendment_entries.Played,
    name: str,
    reason: str,
    cause: amendment_entries.ReplacementCause = "",
) -> list[contract.Draft]:
    """Return the fact that a substitute plays; raise ``RefusedError``, ``UsageError``.

    A proven hidden book disqualifies (S16-16): the same, by that ``cause``.
    """
    if not reason:
        raise errors.UsageError("to replace an engine needs --reason")
    event = _event(state, event_id)
    _check_substitute(state, event, substitute)
    if event.status is not events.Status.RUNNING:
        _require_coming(state, event, engine)
        return [_fact(event, engine, substitute, "keep", name, reason, cause=cause)]
    disqualification.require_still(state)
    if engine not in event.entrants:
        field = ", ".join(event.entrants)
        raise errors.RefusedError(f"{engine!r} does not play {event_id}; its field: {field}")
    if engine in event.excluded:
        raise errors.RefusedError(f"{engine} has left {event_id}; its games are annulled already")
    games = _games_of(state, event, engine, played)
    return [_fact(event, engine, substitute, played, name, reason, cause=cause, **games)]


def _event(state: season_state.SeasonState, event_id: str) -> events.EventState:
    state.require_unfinished()
    event = state.event(event_id)
    if event.status is events.Status.RANKED:
        later = ", ".join(event.promoted) or "none"
        raise errors.RefusedError(
            f"{event_id} is ranked, its table is final; events that its engines go on to: {later}"
        )
    return event


def _check_substitute(
    state: season_state.SeasonState, event: events.EventState, substitute: contract.EngineSpec
) -> None:
    registered = state.engines.get(substitute.id)
    if registered is not None and registered != substitute:
        raise errors.RefusedError(
            f"{substitute.id} is in the season with other settings: give the new entry another id,"
            " or leave --entry out to have it play by its old one"
        )
    if substitute.id in {*event.entrants, *event.substitutes.values()}:
        raise errors.RefusedError(f"{substitute.id} plays {event.id} already")
    _require_one_way(state, event, substitute.id)
    entry = engine_update.entries_of(state).get(substitute.id)
    if entry is not None:
        require_competition(event.spec, entry)
    options = orders.engine_in(substitute, event.id).options
    for breach in limits.breaches(options, event.spec.limits):
        raise errors.RefusedError(
            f"{substitute.id}: option {breach.name} is {breach.value} in {event.id};"
            f" allowed: {breach.limit} ({checks.limits_clause(event.spec)})"
        )


def require_competition(spec: model.Event, entry: model.EngineEntry) -> None:
    """Raise ``RefusedError`` for an engine of the other competition (S17-2b)."""
    if spec.competition not in {None, entry.competition}:
        name = entry.name or entry.id
        text = f"{name} is of the {entry.competition} competition, but {spec.id} is for"
        raise errors.RefusedError(f"{text} {spec.competition} (S17-2)")


def require_seat(
    state: season_state.SeasonState, event: events.EventState, engine: str, *, besides: str
) -> None:
    """Raise ``RefusedError`` for an engine that cannot come into an event from another.

    ``besides`` is the event that it would come from: ways through it are not asked about.
    """
    entry = engine_update.entries_of(state).get(engine)
    if entry is not None:
        require_competition(event.spec, entry)
    season = state.launched.season
    for name in _reached(season, event.id):
        own = set(
            plan.listed(season.event(name), [entrant.id for entrant in state.launched.engines])
        )
        coming = _coming(state, name, without=besides) if name == event.id else own
        if engine in coming:
            raise errors.RefusedError(
                f"{engine} may come into {name} by another way, and no engine enters an event twice"
            )


def _require_coming(state: season_state.SeasonState, event: events.EventState, engine: str) -> None:
    if engine not in state.engines:
        raise errors.RefusedError(
            f"no engine {engine!r} in this season; there are {', '.join(state.engines)}"
        )
    coming = _coming(state, event.id, without=event.id)
    if engine not in coming:
        raise errors.RefusedError(
            f"{engine} has no seat in {event.id}, nor does it play for one; who has, or may"
            f" come: {', '.join(sorted(coming))}"
        )


def _require_one_way(
    state: season_state.SeasonState, event: events.EventState, engine: str
) -> None:
    """Raise ``RefusedError`` where an engine would enter this event or a later one twice."""
    for name in _reached(state.launched.season, event.id):
        seats = state.events[name].substitutes
        given = name != event.id and engine in seats  # its own seat there is another's
        coming = _coming(state, name, without=event.id)
        if given or engine in {*seats.values(), *coming}:
            raise errors.RefusedError(
                f"{engine} may come into {name} without this seat, and no engine enters an event"
                " twice: take another one, or wait until it can no longer get there"
            )


def _reached(season: model.Season, event_id: str) -> list[str]:
    """Return an event, and those that engines may go on to from it."""
    reached, asked = [event_id], [event_id]
    while asked:
        new = [p.to for p in season.event(asked.pop()).promote if p.to not in reached]
        reached += new
        asked += new
    return reached


def _coming(state: season_state.SeasonState, event_id: str, *, without: str) -> set[str]:
    """Return who enters an event, or may; ways through the event ``without`` are left out."""
    event = state.events[event_id]
    if event.entrants:
        return set(event.entrants)
    roster = [engine.id for engine in state.launched.engines]
    possible = {*plan.listed(event.spec, roster), *event.added}
    for source in plan.sources(state.launched.season, event_id):
        arrival = event.arrivals.get(source.event)
        if arrival is not None:
            possible.update(arrival.engines)
        elif source.event != without:
            possible |= _coming(state, source.event, without=without)
    return set(map(event.seat, possible))


def _games_of(
    state: season_state.SeasonState,
    event: events.EventState,
    engine: str,
    played: amendment_entries.Played,
) -> dict[str, object]:
    """Return what becomes of the engine's games in a running event: the fact's fields."""
    games = [state.game(game) for game in event.order]
    own = [game for game in games if engine in (game.white, game.black) and not game.cancelled]
    done = [game for game in own if not game.open]
    _refuse_what_is_built_on(state, event, done, played)
    kept = own if played == "keep" else [game for game in own if game.open]
    replayed = done if played == "replay" else ()
    return {
        "games": tuple(game.id for game in kept),
        "annulled": tuple(game.id for game in done) if played == "annul" else (),
        "replays": {game.id: corrections.replay_id(state, game.id) for game in replayed},
        "crashes": tuple(game.id for game in replayed if corrections.crasher(game)),
    }


def _refuse_what_is_built_on(
    state: season_state.SeasonState,
    event: events.EventState,
    done: list[events.Game],
    played: amendment_entries.Played,
) -> None:
    if played == "annul" and done and event.spec.format.kind not in _MAY_ANNUL:
        raise errors.RefusedError(
            f"{event.id} is played in matches: annulling {len(done)} games would leave no winner;"
            " keep them for the substitute, or let it play them again (--played keep|replay)"
        )
    if played == "replay":
        for game in done:
            corrections.refuse_later_rounds(state, event, game)


def _fact(
    event: events.EventState,
    engine: str,
    substitute: contract.EngineSpec,
    played: amendment_entries.Played,
    name: str,
    reason: str,
    **more: object,
) -> contract.Draft:
    fact = amendment_entries.EngineReplaced.model_validate(
        {
            "event": event.id,
            "engine": engine,
            "substitute": substitute,
            "played": played,
            "games": (),
            "reason": reason,
            "name": name,
        }
        | more
    )
    return contract.Draft.of(amendment_entries.ENGINE_REPLACED, fact)
