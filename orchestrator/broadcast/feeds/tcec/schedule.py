"""``schedule.json`` and ``crosstable.json`` of an event, as TCEC's viewers read them."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from orchestrator.broadcast.content import tables
from orchestrator.broadcast.feeds.tcec import names
from orchestrator.rating import elo, live
from orchestrator.season import views
from orchestrator.season.fold import crosstable, events, tiebreaks
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model as season_model

State = season_state.SeasonState
_KINDS: Final = {"round-robin": "round-robin", "swiss": "swiss", "knockout": "cup"}
_POINTS: Final = (0, 0.5, 1)  # by half points
_WINNERS: Final = ("Black", "None", "White")  # by White's half points


def schedule(state: State, event: events.EventState, briefs: tables.Briefs) -> list[dict[str, Any]]:
    """Return the games of an event in their order of play."""
    return [
        _game(state, number, state.games[game], briefs)
        for number, game in enumerate(event.order, start=1)
    ]


def _game(state: State, number: int, game: events.Game, briefs: tables.Briefs) -> dict[str, Any]:
    row: dict[str, Any] = {
        "Game": number,
        "White": views.name(state, game.white, game.event),
        "Black": views.name(state, game.black, game.event),
    }
    if state.dropped(game):
        return row | {"Termination": "Canceled"}
    if game.finished is not None:
        return row | _finished(game, briefs)
    running = state.running
    if running is not None and running.game == game.id:
        start = _start(running.started_ms)
        return row | {"Start": start, "Result": "*", "Termination": "in progress"}
    return row


def _finished(game: events.Game, briefs: tables.Briefs) -> dict[str, Any]:
    played = game.finished
    assert played is not None
    row: dict[str, Any] = {
        "Start": _start(played.started_ms),
        "Result": played.result,
        "Termination": played.details,
        "Duration": duration(played.ended_ms - played.started_ms),
        "Moves": (played.plies + 1) // 2,
    }
    brief = briefs(game)
    if brief is None:
        return row
    opening, _, variation = brief.opening.partition(": ")
    told = {
        "WhiteEv": brief.white_eval,
        "BlackEv": brief.black_eval,
        "ECO": brief.eco,
        "Opening": ", ".join(filter(None, (opening, variation))),
        "FinalFen": brief.final_fen,
        "RMobilityResult": brief.r_mobility,
    }
    return row | {key: value for key, value in told.items() if value}


def _start(at_ms: int) -> str:
    moment = dt.datetime.fromtimestamp(at_ms // 1000, dt.UTC)
    return f"{moment:%H:%M:%S} on {moment:%Y.%m.%d}"


def duration(elapsed_ms: int) -> str:
    """Write a duration as ``02:01:46``."""
    seconds = max(0, elapsed_ms) // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def table(state: State, event: events.EventState) -> dict[str, Any]:
    """Return an event's crosstable, best first."""
    lines = crosstable.crosstable(state, event.id)
    order = [line.row.engine for line in lines]
    short = names.abbreviations(views.name(state, engine, event.id) for engine in order)
    places = {game: place for place, game in enumerate(event.order, start=1)}
    return {
        "Event": names.title(state, event),
        "Type": _KINDS.get(event.spec.format.kind, "round-robin"),
        "Order": [views.name(state, engine, event.id) for engine in order],
        "Table": {
            views.name(state, line.row.engine, event.id): _line(
                state, event, line, order, short, places
            )
            for line in lines
        },
    }


def _line(
    state: State,
    event: events.EventState,
    line: crosstable.Line,
    order: list[str],
    short: dict[str, str],
    places: dict[str, int],
) -> dict[str, Any]:
    row, score = line.row, event.tally.scores[line.row.engine]
    name = views.name(state, row.engine, event.id)
    results = {
        views.name(state, other, event.id): _cell(state, places, row.engine, cell)
        for other, cell in zip(order, line.cells, strict=True)
        if cell is not None
    }
    numbers = row.tiebreaks
    told: dict[str, Any] = {
        "Rank": row.rank,
        "Abbreviation": short[name],
        "Rating": state.engines[row.engine].rating or 0,
        "Elo": _gain(state, event, row.engine),
        "Score": row.points,
        "Games": row.games,
        "GamesAsWhite": score.white_games,
        "GamesAsBlack": score.black_games,
        "WinsAsWhite": row.wins - score.black_wins,
        "WinsAsBlack": score.black_wins,
        **_losses(state, event, row.engine),
        "Neustadtl": tiebreaks.points(
            season_model.Criterion.SONNEBORN_BERGER,
            numbers.get(season_model.Criterion.SONNEBORN_BERGER, 0),
        ),
        "Performance": round(100 * row.points / row.games, 2) if row.games else 0,
        "Strikes": score.crashes,
        "Results": results,
    }
    if season_model.Criterion.R_MOBILITY in numbers:
        mobility = numbers[season_model.Criterion.R_MOBILITY]
        points = tiebreaks.points(season_model.Criterion.R_MOBILITY, mobility)
        told["RMobilityScore"] = round(points, 2)
    if len(results) == 1:
        told["Opponent"] = next(iter(results))
    return told


def _cell(
    state: State, places: dict[str, int], engine: str, cell: crosstable.Cell
) -> dict[str, Any]:
    scores = []
    for game_id, halves in zip(cell.games, cell.half_points, strict=True):
        game = state.games[game_id]
        white = halves if game.white == engine else 2 - halves
        scores.append(
            {
                "Game": places[game_id],
                "Result": _POINTS[halves],
                "Winner": _WINNERS[white],
            }
        )
    return {"H2h": sum(cell.half_points) / 2, "Text": cell.text, "Scores": scores}


def _losses(state: State, event: events.EventState, engine: str) -> dict[str, int]:
    white = black = 0
    for result, game in ((state.games[g].finished, state.games[g]) for g in event.order):
        if result is None or game.cancelled:
            continue
        if not event.tally.excluded.isdisjoint((game.white, game.black)):
            continue
        white += game.white == engine and result.result == "0-1"
        black += game.black == engine and result.result == "1-0"
    return {"LossAsWhite": white, "LossAsBlack": black}


def _gain(state: State, event: events.EventState, engine: str) -> float:
    """Return what the engine's rating gains by the event's games (Elo, K of ``rating.live``)."""
    return round(sum(_changes(state, event, engine)), 1)


def _changes(state: State, event: events.EventState, engine: str) -> list[float]:
    own, gained = state.engines[engine].rating, []
    for opponent, (halves, games) in event.tally.opponents(engine).items():
        other = state.engines[opponent].rating
        if own is not None and other is not None:
            surprise = halves / 2 - games * elo.expected(own - other)
            gained.append(live.measured_k(own) * surprise)
    return gained
