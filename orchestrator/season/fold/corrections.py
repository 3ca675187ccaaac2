"""Results that the organizers set, void or have played again, and what hangs on a result.

A result may be changed freely while its event is being played. Once something was built on
it (the event is ranked, engines have gone on, games were played by them), the change is
refused with the list of what hangs on it, unless the operator names that whole list: then
the events are taken back first (``events_undone``). Each step needs a pause, because a
hall may otherwise begin the very game; each stands in the journal with who and why.

A crash stays a fact whatever becomes of its game's result (S16-12b, S16-15c, S16-15d; S17 alike),
unless the organizers take it back by naming the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import errors
from orchestrator.season.fold import disqualification, entries, events, pairing, tally
from orchestrator.season.fold import state as season_state


def adjudicate(
    state: season_state.SeasonState,
    game_id: str,
    result: contract.Result,
    name: str,
    reason: str,
    cascade: Sequence[str] = (),
    uncrashed: str = "",
) -> list[contract.Draft]:
    """Set the result of a game, played or not; raise ``RefusedError``, ``UsageError``.

    ``uncrashed`` names the engine whose crash in it is taken back, here as in the other verbs.
    """
    game = _correctable(state, game_id, reason)
    finished = _verdict(state, game, result, crash_stays=_crash_stays(game, uncrashed))
    if finished == game.finished and game.counts:
        raise errors.RefusedError(
            f"{game_id} is {result} by the organizers' decision already; nothing would change"
        )
    undone = _undo(state, game, name, reason, cascade)
    fact = entries.GameAdjudicated(
        game=game_id,
        finished=finished,
        before=None if game.finished is None else game.finished.result,
        reason=reason,
        name=name,
    )
    return [*undone, contract.Draft.of(entries.GAME_ADJUDICATED, fact)]


def replay(
    state: season_state.SeasonState,
    game_id: str,
    name: str,
    reason: str,
    cascade: Sequence[str] = (),
    uncrashed: str = "",
) -> list[contract.Draft]:
    """Have a finished game played again in its place, with the same opening and colours.

    It gets an id of its own (``league.7.replay1``), since a game keeps its one result.
    """
    game = _correctable(state, game_id, reason)
    if game.open:
        raise errors.RefusedError(f"{game_id} has not been played yet")
    stays = _crash_stays(game, uncrashed)
    undone = _undo(state, game, name, reason, cascade)
    fact = entries.GameVoided(
        game=game_id,
        replay=replay_id(state, game_id),
        reason=reason,
        name=name,
        crash_stays=stays,
    )
    return [*undone, contract.Draft.of(entries.GAME_VOIDED, fact)]


def replay_id(state: season_state.SeasonState, game_id: str) -> str:
    """Return the id under which a game is played again."""
    origin, _, _ = game_id.partition(".replay")
    number = sum(other.startswith(f"{origin}.replay") for other in state.games) + 1
    return f"{origin}.replay{number}"


def void(
    state: season_state.SeasonState,
    game_id: str,
    name: str,
    reason: str,
    cascade: Sequence[str] = (),
    uncrashed: str = "",
) -> list[contract.Draft]:
    """Let a game count for nobody and be played by nobody; its PGN stays.

    In a match of a fixed number of games it is played again in its place: all of them count, in
    pairs of one opening (S16-8a, S16-8b, S17-8a, S17-8b). Not in a Cup: the pairs of its matches
    would lose their colours and openings (CUP-3a).
    """
    game = _correctable(state, game_id, reason)
    if game.cancelled:
        raise errors.RefusedError(f"{game_id} does not count already")
    if state.events[game.event].spec.format.kind == "knockout":
        raise errors.RefusedError(
            f"{game_id} is of a Cup match, which is played in whole pairs (CUP-3a): have it"
            " played again (`farm game replay`), or set its result (`farm game adjudicate`)"
        )
    again = ""
    if state.events[game.event].spec.format.kind == "match":
        if game.open:
            raise errors.RefusedError(
                f"{game_id} is of a match, whose games are all played and count (S16-8a, S16-8b):"
                " set its result (`farm game adjudicate`), or let it be played"
            )
        again = replay_id(state, game_id)
    stays = _crash_stays(game, uncrashed)
    undone = _undo(state, game, name, reason, cascade)
    fact = entries.GameVoided(
        game=game_id, replay=again, reason=reason, name=name, crash_stays=stays
    )
    return [*undone, contract.Draft.of(entries.GAME_VOIDED, fact)]


def crasher(game: events.Game) -> str:
    """Return the engine that crashed in a game, '' where none did."""
    side = None if game.finished is None else tally.crashed(game.finished)
    white, black = game.players
    return {"white": white, "black": black, None: ""}[side]


def _crash_stays(game: events.Game, uncrashed: str) -> bool:
    """Say whether the crash in a game stays counted; raise ``RefusedError`` for one it has not."""
    crashed = crasher(game)
    if uncrashed and uncrashed != crashed:
        actual = f"{crashed} crashed in it" if crashed else "nobody crashed in it"
        raise errors.RefusedError(f"{game.id} has no crash of {uncrashed!r} to take back: {actual}")
    return bool(crashed) and not uncrashed


def hanging(state: season_state.SeasonState, event_id: str) -> list[str]:
    """Return the events built on an event's results: itself when ranked, then all it reached."""
    if state.events[event_id].status is not events.Status.RANKED:
        return []
    affected = {event_id}
    while True:  # a file may list an event before the one that leads to it
        new = {
            e.id
            for e in state.events.values()
            if not e.arrivals.keys().isdisjoint(affected)
            or (e.parts is not None and e.parts.event in affected)
        }
        if new <= affected:
            return [event_id, *(name for name in state.events if name in affected - {event_id})]
        affected |= new


def _correctable(state: season_state.SeasonState, game_id: str, reason: str) -> events.Game:
    if not reason:
        raise errors.UsageError("a correction needs --reason")
    disqualification.require_still(state)
    game = state.game(game_id)
    event = state.events[game.event]
    if event.parts is not None and event.status is not events.Status.RUNNING:
        raise errors.RefusedError(
            f"{game_id} is of a playoff that has decided a tie of {event.parts.event}: to change"
            f" that, correct a game of {event.parts.event} (`farm game adjudicate`, --cascade)"
        )
    if game_id not in event.order:
        raise errors.RefusedError(f"{game_id} was replaced or taken back; it counts no longer")
    if not event.tally.excluded.isdisjoint((game.white, game.black)):
        raise errors.RefusedError(f"{game_id} is annulled with all games of an excluded engine")
    if not {game.white, game.black} <= event.tally.scores.keys():
        raise errors.RefusedError(f"{game_id} is annulled with an engine that was replaced")
    if game.cancelled and event.spec.format.kind == "knockout":
        raise errors.RefusedError(f"{game_id} is not played: its match was decided before it")
    refuse_later_rounds(state, event, game)
    return game


def refuse_later_rounds(
    state: season_state.SeasonState, event: events.EventState, game: events.Game
) -> None:
    """Refuse to change a result by which later rounds of the same event were paired.

    In a match these are sets that follow a drawn one; its other pairs of games are drawn
    whatever the results are (S16-8b).
    """
    first = pairing.schedule(event).built_from(game.round_number)
    if first is None or game.open:
        return
    paired = {g.round_number for g in map(state.game, event.order)}
    built = sorted(number for number in paired if number >= first)
    if built:
        rounds = ", ".join(map(str, built))
        many, was = ("", "was") if len(built) == 1 else ("s", "were")
        raise errors.RefusedError(
            f"round{many} {rounds} of {event.id} {was} paired on the result of {game.id};"
            " adjudicate games of the latest round instead"
        )


def _undo(
    state: season_state.SeasonState,
    game: events.Game,
    name: str,
    reason: str,
    cascade: Sequence[str],
) -> list[contract.Draft]:
    built = hanging(state, game.event)
    if set(cascade) != set(built):
        raise errors.RefusedError(_what_hangs(state, game, built))
    if not built:
        return []
    fact = entries.EventsUndone(events=tuple(built), reason=reason, name=name)
    return [contract.Draft.of(entries.EVENTS_UNDONE, fact)]


def _what_hangs(state: season_state.SeasonState, game: events.Game, built: Sequence[str]) -> str:
    if not built:
        return f"nothing is built on {game.id}; leave --cascade out"
    lines = [f"on {game.id} hang:"]
    for event_id in built:
        event = state.events[event_id]
        lines.append(f"  {event_id} ({event.status.value}, {event.tally.games} games played)")
    named = ",".join(built)
    lines.append(f"to rank {built[0]} again and take the others back: --cascade {named}")
    return "\n".join(lines)


def _verdict(
    state: season_state.SeasonState,
    game: events.Game,
    result: contract.Result,
    *,
    crash_stays: bool,
) -> contract.GameFinished:
    """Return the organizers' result; what was played of the game stays in it."""
    outcome = verdict.organizers(result)
    nowhere = {"hall": state.hall, "started_ms": state.at_ms, "ended_ms": state.at_ms}
    played = game.finished or verdict.untold(outcome, game.id).model_copy(update=nowhere)
    changes = {name: getattr(outcome, name) for name in ("result", "ending", "loser", "details")}
    crashed = tally.crashed(played) if crash_stays else None
    return played.model_copy(
        update=changes | {"r_mobility": None, "crashed": crashed, "refused": False}
    )
