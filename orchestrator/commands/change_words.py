"""What an act changes in a season, in words: the same before it (will be) and after it (is).

What they say is computed (``season.consequences``). Lists are cut after ``LISTED``; ``--json`` has
them whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from orchestrator.commands import tables
from orchestrator.common import output
from orchestrator.season import consequences
from orchestrator.season.fold import entries, state

LISTED: Final = 8  # of a kind, in one line
UNCHANGED: Final = " (nothing was changed)"  # behind what a dry run says
_RESULTS: Final = frozenset({"1-0", "0-1", "1/2-1/2"})
_NOT_PLAYED: Final = frozenset({consequences.TO_PLAY, consequences.CANCELLED, consequences.NO_GAME})


def tense(future: str, past: str, *, dry_run: bool) -> str:
    """Return how it is said: what an act will do, or what it has done."""
    return future if dry_run else past


def unchanged(*, dry_run: bool) -> str:
    """Return what stands behind all that a dry run says, '' in earnest."""
    return UNCHANGED if dry_run else ""


def until_resumed(now: state.SeasonState) -> str:
    """Say that nothing begins in a season that is paused or held, '' in another one."""
    if not now.paused and not now.held:
        return ""
    still = f"held: {now.held}" if now.held else f"paused: {now.paused}"
    return f"; no game begins before `farm season resume` ({still})"


def lines(change: consequences.Consequences, *, dry_run: bool, about: str = "") -> Iterator[str]:
    """Yield what an act changes, what follows from it, and whether it can be taken back.

    The new result of the game that it is ``about`` has been said already.
    """
    others = (game for game in change.games if game.game != about or game.before == game.after)
    yield from _results(others, dry_run=dry_run)
    yield from _groups(change.games, dry_run=dry_run)
    if change.scores:
        yield f"points: {_listed(map(_score, change.scores))}"
    for event in change.events:
        will = tense("will be", "is now", dry_run=dry_run)
        yield f"event {event.event} {will} {event.after}, it was {event.before}"
    for gate in change.gates:
        gone = tense("will be dropped", "is dropped", dry_run=dry_run)
        yield (
            f"the time set for the gate before {gate.event}, {tables.moment(gate.opens_at_ms)},"
            f" {gone}; `farm season amend gate {gate.event}` sets it again"
        )
    if change.follows:
        yield f"what follows: {'; '.join(map(_follow, _joined(change.follows)))}"
    if change.next_game:
        yield f"the next game {tense('will be', 'is', dry_run=dry_run)} {change.next_game}"
    if change.taken_back_by:
        yield f"it can be taken back: {change.taken_back_by}"
    else:
        yield "it cannot be taken back"


# -- games ---------------------------------------------------------------------------


def _results(games: Iterable[consequences.GameChange], *, dry_run: bool) -> Iterator[str]:
    """Yield a line for each game that gets a result, or another one."""
    for game in games:
        if game.after not in _RESULTS or _hands(game):
            continue
        will = tense("will be", "is now", dry_run=dry_run)
        if game.before == game.after:
            how = f"{game.after} by {game.ended}, it was by {game.was_ended}"
        elif game.before in _RESULTS:
            how = f"{game.after}, it was {game.before}"
        elif game.before == consequences.ANNULLED:
            how = f"{game.after}, it was annulled"
        elif game.before in _NOT_PLAYED:
            will = tense(
                "has not been played; it will be", "was not played; it is now", dry_run=dry_run
            )
            how = game.after
        else:
            how = f"{game.after}, it was {game.before}"
        yield f"{_named(game)} {will} {how}"


def _groups(games: Sequence[consequences.GameChange], *, dry_run: bool) -> Iterator[str]:
    """Yield a line for all games of which the same becomes."""
    becomes: tuple[tuple[Callable[[consequences.GameChange], bool], str, str], ...] = (
        (_is_annulled, "will be annulled", "annulled"),
        (_loses_its_result, "will lose the result that was set", "lost the result that was set"),
        (lambda game: game.after == consequences.CANCELLED, "will be cancelled", "cancelled"),
        (lambda game: game.before == consequences.NO_GAME, "will be played", "to be played"),
        (_hands, "will change hands", "changed hands"),
        (_goes_on, "will be played on", "to be played on"),
        (_begins_again, "will begin again", "to begin again"),
    )
    for concerns, future, past in becomes:
        concerned = [game for game in games if concerns(game)]
        if concerned:
            what = tense(future, past, dry_run=dry_run)
            count = output.some(len(concerned), "game")
            yield f"{count} {what}: {_listed(map(_with_result, concerned))}"


def _is_annulled(game: consequences.GameChange) -> bool:
    return game.after == consequences.ANNULLED != game.before and game.played


def _loses_its_result(game: consequences.GameChange) -> bool:
    return game.after == consequences.ANNULLED != game.before and not game.played


def _hands(game: consequences.GameChange) -> bool:
    return game.before == game.after and game.ended == game.was_ended


def _goes_on(game: consequences.GameChange) -> bool:
    return game.before == consequences.ASKS and game.after == consequences.INTERRUPTED


def _begins_again(game: consequences.GameChange) -> bool:
    begun = {consequences.ASKS, consequences.INTERRUPTED, consequences.RUNNING}
    return game.before in begun and game.after == consequences.TO_PLAY


def _named(game: consequences.GameChange) -> str:
    return f"{game.game} ({game.white} - {game.black})"


def _with_result(game: consequences.GameChange) -> str:
    players = f"{game.white} - {game.black}"
    return f"{game.game} ({players}{f', {game.before}' if game.before in _RESULTS else ''})"


# -- tables and what follows ----------------------------------------------------------


def _score(score: consequences.ScoreChange) -> str:
    text = f"{score.engine} {_number(score.points_before)}"
    if score.points_before != score.points_after:
        text += f" to {_number(score.points_after)}"
    if score.place_before != score.place_after and score.place_after and score.place_before:
        text += f" (place {score.place_before} to {score.place_after})"
    return text


def _number(points: float | None) -> str:
    return "no seat" if points is None else f"{points:g}"


def _joined(follows: Iterable[consequences.Follow]) -> Iterable[consequences.Follow]:
    """Count games that the same becomes of together: an event's rounds are paired one by one."""
    joined: dict[tuple[object, ...], consequences.Follow] = {}
    for number, fact in enumerate(follows):
        key = (fact.kind, fact.event) if fact.games else (number,)
        games = joined[key].games if key in joined else 0
        joined[key] = dataclasses.replace(fact, games=games + fact.games)
    return joined.values()


def _follow(fact: consequences.Follow) -> str:
    """Say a fact that the farm decides next."""
    event, engines = fact.event, ", ".join(fact.engines)
    if fact.kind == entries.GATE_SET:
        opens = tables.moment(fact.opens_at_ms)
        waits = f"waits for you (`farm season open-gate {event}`)"
        return f"the gate before {event} {f'opens {opens}' if opens else waits}"
    games = f"{output.some(fact.games, 'game')} of {event} {'is' if fact.games == 1 else 'are'}"
    said = {
        entries.EVENT_RANKED: f"{event} is ranked: {engines}",
        entries.PROMOTED: f"{engines} {'go' if len(fact.engines) > 1 else 'goes'} on to {fact.to}",
        entries.DECISION_NEEDED: f"the organizers are asked {fact.to} (`farm season decisions`)",
        entries.EVENT_ADDED: f"playoff {event} is added",
        entries.GAMES_CANCELLED: f"{games} cancelled",
        entries.ENGINE_EXCLUDED: f"{engines} leaves {event}",
        entries.GATE_OPENED: f"the gate before {event} opens",
        entries.EVENT_STARTED: f"{event} begins",
        entries.GAMES_PAIRED: f"{games} paired",
        entries.SEASON_FINISHED: f"the season is over, its champion is {engines}",
    }
    return said.get(fact.kind, f"{fact.kind.replace('_', ' ')} {event}".strip())


def _listed(texts: Iterable[str]) -> str:
    whole = list(texts)
    more = f" and {len(whole) - LISTED} more (--json names all)" if len(whole) > LISTED else ""
    return ", ".join(whole[:LISTED]) + more
