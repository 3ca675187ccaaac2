"""Orders for an event's rehearsal: each engine plays a few moves under the event's real settings.

The testing between events that S16-13d and S17-13d promise (no warranty for authors).
Threads, hash, tables, GPUs, time-outs and time control are the event's own; only a few moves
are played, from the start position, so that nobody learns of openings to come.
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.arbiter import chess960
from orchestrator.common import errors
from orchestrator.season.fold import orders, plan
from orchestrator.season.fold import state as season_state

START_960 = 518  # the number of the usual start position in Fischer random chess
MOVES = 3  # of each engine


def field(state: season_state.SeasonState, event_id: str) -> list[str]:
    """Return who plays an event, or may still come into it; raise ``RefusedError``."""
    event = state.event(event_id)
    if event.entrants:
        return list(event.entrants)
    roster = [engine.id for engine in state.launched.engines]
    entrants = [event.seat(name) for name in (*plan.listed(event.spec, roster), *event.added)]
    for source in plan.sources(state.launched.season, event_id):
        arrival = event.arrivals.get(source.event)
        coming = field(state, source.event) if arrival is None else arrival.engines
        entrants += map(event.seat, coming)
    return list(dict.fromkeys(entrants))


def game_orders(
    state: season_state.SeasonState, event_id: str, moves: int = MOVES
) -> list[contract.GameOrder]:
    """Return games in which every engine of an event plays once, neighbours against each other."""
    engines = field(state, event_id)
    if len(engines) < 2:
        raise errors.RefusedError(
            f"{event_id}: {len(engines)} engines; a rehearsal needs two or more"
        )
    if len(engines) % 2:
        engines.append(engines[0])
    pairs = list(zip(engines[::2], engines[1::2], strict=True))
    return [_order(state, event_id, at + 1, pair, moves) for at, pair in enumerate(pairs)]


def _order(
    state: season_state.SeasonState,
    event_id: str,
    number: int,
    pair: tuple[str, str],
    moves: int,
) -> contract.GameOrder:
    event = state.events[event_id]
    spec = event.spec
    shuffled = spec.variant == "fischerandom"
    white, black = (
        orders.engine_in(orders.pinned(state, event, engine), spec.id) for engine in pair
    )
    return contract.GameOrder(
        season=state.launched.id,
        season_name=state.launched.season.name,
        event=spec.id,
        event_name=f"{spec.name}, rehearsal",
        game=f"rehearsal-{event_id}-{number}",
        number=number,
        round=str(number),
        white=white,
        black=black,
        time_control=spec.time_control,
        time_margin_ms=spec.time_margin_ms,
        opening=chess960.opening(START_960) if shuffled else contract.Opening(),
        limits=spec.limits,
        timeouts=spec.timeouts,
        variant=spec.variant,
        adjudication=contract.Adjudication(max_moves=moves),
        journaled=False,
        sandbox=state.launched.season.sandbox,
        gpus=spec.gpus,
    )
