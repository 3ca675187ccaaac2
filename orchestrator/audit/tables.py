"""Standings with every tiebreak number, from results and ends alone.

An engine that crashed as often as the rules allow at most is annulled (S16-15c), and so
is one that is named as withdrawn; both rank last. ``direct_encounter`` counts the games among
the engines that are level when the chain comes to it (S16-12c); None for one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import chess

from orchestrator import contract
from orchestrator.arbiter import rmobility, verdict
from orchestrator.audit import reading, reasons
from orchestrator.season.fold import standings, tally, tiebreaks
from orchestrator.season.spec import model

_C = model.Criterion


def engines(games: Iterable[reading.Game]) -> tuple[str, ...]:
    """Return all engines in the order in which they first played."""
    return tuple(dict.fromkeys(name for game in games for name in (game.white, game.black)))


def standing(
    games: Sequence[reading.Game],
    seeds: Sequence[str],
    chain: Sequence[model.Criterion],
    crashes: int = 0,
    exclude: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Return the table, best first; ``crashes`` annul an engine's results, 0 never."""
    out = set(exclude)
    results = [(game, fact) for game in games if (fact := finished(game)) is not None]
    annulled = [(game, fact) for game in games if (fact := _crash_of_annulled(game)) is not None]
    counted = _count(results, annulled, seeds, out)
    if crashes:
        out |= {engine for engine, number in counted.crashed.items() if number >= crashes}
        counted = _count(results, annulled, seeds, out)
    return [_row(row, counted) for row in standings.rank(counted, chain)]


def _count(
    results: Iterable[tuple[reading.Game, contract.GameFinished]],
    annulled: Iterable[tuple[reading.Game, contract.GameFinished]],
    seeds: Sequence[str],
    out: Iterable[str],
) -> tally.Tally:
    counted = tally.Tally(tuple(seeds), out)
    for game, fact in results:
        counted.add(game.white, game.black, fact)
    for game, fact in annulled:
        counted.add_annulled(game.white, game.black, fact)
    return counted


def _crash_of_annulled(game: reading.Game) -> contract.GameFinished | None:
    """Return the crash in a game that counts for nobody: it stays counted (S16-15d)."""
    ending = reasons.ending(game)
    if not reasons.annulled(game) or ending not in tally.CRASHES:
        return None
    details = game.tags.get("TerminationDetails", "")
    loser: contract.Side = "white" if "White" in details else "black"
    outcome = contract.Outcome(
        result=verdict.loss_of(loser), ending=ending, loser=loser, details=""
    )
    return verdict.untold(outcome, str(game.number))


def finished(game: reading.Game) -> contract.GameFinished | None:
    """Return a recorded game as the season knows it, None for one that was not finished."""
    if game.result is None:
        return None
    loser = verdict.loser_of(game.result)
    moves = (chess.Move.from_uci(ply.move) for ply in game.plies)
    outcome = contract.Outcome(
        result=game.result, ending=reasons.ending(game), loser=loser, details=""
    )
    mobility = rmobility.of_game(game.start(), moves, loser).white_points
    update = {"plies": len(game.plies), "r_mobility": mobility}
    return verdict.untold(outcome, str(game.number)).model_copy(update=update)


def _row(row: standings.Row, counted: tally.Tally) -> dict[str, Any]:
    def number(criterion: model.Criterion) -> float:
        return tiebreaks.points(criterion, row.tiebreaks.get(criterion, 0))

    score, compared = counted.scores[row.engine], _C.DIRECT_ENCOUNTER in row.tiebreaks
    return {
        "rank": row.rank,
        "engine": row.engine,
        "points": row.points,
        "played": row.games,
        "wins": row.wins,
        "black_games": score.black_games,
        "black_wins": score.black_wins,
        "crashes": score.crashes,
        "direct_encounter": number(_C.DIRECT_ENCOUNTER) if compared else None,
        "sonneborn_berger": number(_C.SONNEBORN_BERGER),
        "r_mobility": number(_C.R_MOBILITY),
        "opponents_score": number(_C.OPPONENTS_SCORE),
        "decided_by": row.decided_by,
    }
