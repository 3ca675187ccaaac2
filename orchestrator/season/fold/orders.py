"""Write the order by which a hall plays a game: all that it needs, from journaled facts."""

from __future__ import annotations

from orchestrator import contract
from orchestrator.engines import limits
from orchestrator.season.fold import events, openings
from orchestrator.season.fold import state as season_state


def game_order(state: season_state.SeasonState, game_id: str) -> contract.GameOrder:
    """Return the order of a paired game; raise ``RefusedError`` for an unknown one."""
    game = state.game(game_id)
    launched, event = state.launched, state.events[game.event]
    spec = event.spec
    return contract.GameOrder(
        season=launched.id,
        season_name=launched.season.name,
        site=launched.season.site,
        event=spec.id,
        event_name=spec.name,
        game=game.id,
        number=game.number,
        round=game.round,
        white=_seated(state, event, game, game.white),
        black=_seated(state, event, game, game.black),
        time_control=game.time_control or spec.time_control,
        time_margin_ms=spec.time_margin_ms,
        opening=openings.of_game(state, game),
        limits=spec.limits,
        timeouts=spec.timeouts,
        variant=spec.variant,
        tell_opponent=spec.tell_opponent,
        agreed_draws=spec.agreed_draws,
        adjudication=spec.adjudication,
        progress=game.progress,
        sandbox=launched.season.sandbox,
        gpus=spec.gpus,
        excuses=_excuses(event, game),
    )


def _excuses(event: events.EventState, game: events.Game) -> dict[contract.Side, int]:
    """Return how many more losses of each engine a stall of its host may excuse."""
    allowed = event.spec.interruptions.excused_flags
    if allowed is None:
        return {}
    sides: dict[contract.Side, str] = {"white": game.white, "black": game.black}
    return {side: max(0, allowed - event.excused.get(sides[side], 0)) for side in sides}


def _seated(
    state: season_state.SeasonState, event: events.EventState, game: events.Game, engine: str
) -> contract.EngineSpec:
    """Return an engine as it plays a game, with the odds that the event gives it.

    A set of a match with a time control of its own is played without odds.
    """
    entrant = engine_in(pinned(state, event, engine), event.id)
    control = event.spec.odds.get(engine) if game.time_control is None else None
    return entrant if control is None else entrant.model_copy(update={"time_control": control})


def pinned(
    state: season_state.SeasonState, event: events.EventState, engine: str
) -> contract.EngineSpec:
    """Return an engine as the event's start pinned it; a later substitute is as it joined."""
    return event.pinned.get(engine, state.engines[engine])


def engine_in(spec: contract.EngineSpec, event: str) -> contract.EngineSpec:
    """Return an engine as it plays an event: its author's settings for it are options now."""
    options = limits.merged(spec.options, spec.settings.get(event, {}))
    return spec.model_copy(update={"options": options, "settings": {}})
