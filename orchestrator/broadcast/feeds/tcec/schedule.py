"""``schedule.json`` and ``crosstable.json`` of an event, as TCEC's viewers read them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orchestrator.broadcast.content import event_rows, tables
from orchestrator.broadcast.feeds.tcec import names
from orchestrator.common import text
from orchestrator.rating import elo, live
from orchestrator.season import published, views
from orchestrator.season.fold import crosstable, events, standings, tiebreaks
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model as season_model

State = season_state.SeasonState
_KINDS: Final = {"round-robin": "round-robin", "swiss": "swiss", "knockout": "cup"}
_POINTS: Final = (0, 0.5, 1)  # by half points
_WINNERS: Final = ("Black", "None", "White")  # by White's half points


def encode(value: Any) -> bytes:
    """Return a feed's JSON; keys stay in the order that viewers show them in."""
    return text.visible(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


class Schedule:
    """The games of an event in their order of play, each encoded once and when it changes."""

    def __init__(self, state: State, event: events.EventState, briefs: tables.Briefs) -> None:
        """Encode all games."""
        self._briefs = briefs
        self._places = {game: index for index, game in enumerate(event.order)}
        self._rows = [self._row(state, game) for game in event.order]

    def update(self, state: State, games: Iterable[str]) -> None:
        """Encode games again."""
        for game in games:
            if game in self._places:
                self._rows[self._places[game]] = self._row(state, game)

    def _row(self, state: State, game: str) -> bytes:
        number = self._places[game] + 1
        return encode(_game(state, number, state.games[game], self._briefs))

    def content(self) -> bytes:
        """Return the file."""
        return b"[" + b",".join(self._rows) + b"]\n"


def _game(state: State, number: int, game: events.Game, briefs: tables.Briefs) -> dict[str, Any]:
    row: dict[str, Any] = {
        "Game": number,
        "White": views.name(state, game.white, game.event),
        "Black": views.name(state, game.black, game.event),
    }
    if game.finished is not None:
        return row | _finished(state, game, briefs)
    if state.dropped(game):
        return row | {"Termination": "Canceled"}
    running = state.running
    if running is not None and running.game == game.id:
        start = _start(running.started_ms)
        return row | {"Start": start, "Result": "*", "Termination": "in progress"}
    return row


def _finished(state: State, game: events.Game, briefs: tables.Briefs) -> dict[str, Any]:
    played = game.finished
    assert played is not None
    row: dict[str, Any] = {
        "Start": _start(played.started_ms),
        "Result": played.result,
        "Termination": published.details(state, game),
        "Duration": duration(played.ended_ms - played.started_ms),
        "Moves": (played.plies + 1) // 2,
    }
    if published.annulled(state, game):
        del row["Result"]  # none counts, and ``*`` is a running game's
    brief = briefs(game)
    if brief is None:
        return row
    opening, _, variation = brief.opening.partition(": ")
    optional = {
        "WhiteEv": brief.white_eval,
        "BlackEv": brief.black_eval,
        "ECO": brief.eco,
        "Opening": ", ".join(filter(None, (opening, variation))),
        "FinalFen": brief.final_fen,
        "RMobilityResult": brief.r_mobility,
    }
    return row | {key: value for key, value in optional.items() if value}


def _start(at_ms: int) -> str:
    moment = dt.datetime.fromtimestamp(at_ms // 1000, dt.UTC)
    return f"{moment:%H:%M:%S} on {moment:%Y.%m.%d}"


def duration(elapsed_ms: int) -> str:
    """Write a duration as ``02:01:46``."""
    seconds = max(0, elapsed_ms) // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


class Table:
    """The crosstable of an event, best first: what its games do not change stays encoded."""

    def __init__(self, state: State, event: events.EventState, cells: event_rows.Cells) -> None:
        """Take results from ``cells``; encode nothing yet."""
        self._event, self._results = event.id, cells
        self._places = {game: number for number, game in enumerate(event.order, start=1)}
        self._cells: dict[str, dict[str, bytes]] = {engine: {} for engine in event.entrants}
        self._gains: dict[str, float] = {}
        self._short: dict[str, str] = {}  # in the order of the table, which few results change
        self._names = {
            engine: encode(views.name(state, engine, event.id)) for engine in event.entrants
        }

    def update(self, state: State, games: Iterable[str]) -> None:
        """Forget what depends on games."""
        for game in map(state.games.__getitem__, games):
            for pair in ((game.white, game.black), (game.black, game.white)):
                self._cells[pair[0]].pop(pair[1], None)
                self._gains.pop(pair[0], None)

    def content(self, state: State, rows: Sequence[standings.Row]) -> bytes:
        """Return the file."""
        event = state.events[self._event]
        order = [row.engine for row in rows]
        shown = [views.name(state, engine, event.id) for engine in order]
        if list(self._short) != shown:
            self._short = names.abbreviations(shown)
        short = self._short
        head = {
            "Event": names.title(state, event),
            "Type": _KINDS.get(event.spec.format.kind, "round-robin"),
            "Order": shown,
        }
        lines = [
            self._names[row.engine] + b":" + self._line(state, event, row, order, short[name])
            for row, name in zip(rows, shown, strict=True)
        ]
        return encode(head)[:-1] + b',"Table":{' + b",".join(lines) + b"}}\n"

    def _line(
        self,
        state: State,
        event: events.EventState,
        row: standings.Row,
        order: list[str],
        short: str,
    ) -> bytes:
        if row.engine not in self._gains:
            self._gains[row.engine] = _gain(state, event, row.engine)
        head = _head(state, event, row, short) | {"Elo": self._gains[row.engine]}
        others = [engine for engine in order if engine != row.engine]
        cells = self._cells[row.engine]
        for other in others if len(cells) < len(others) else ():
            if other not in cells:
                cells[other] = self._cell(state, row.engine, other)
        results = b",".join(map(cells.__getitem__, others))
        tail = _tail(row)
        if len(others) == 1:
            tail["Opponent"] = views.name(state, others[0], event.id)
        end = b"," + encode(tail)[1:] if tail else b"}"
        return encode(head)[:-1] + b',"Results":{' + results + b"}" + end

    def _cell(self, state: State, engine: str, other: str) -> bytes:
        cell = self._results.cell(state, engine, other)
        return self._names[other] + b":" + encode(_cell(state, self._places, engine, cell))


def _head(state: State, event: events.EventState, row: standings.Row, short: str) -> dict[str, Any]:
    score, numbers = event.tally.scores[row.engine], row.tiebreaks
    return {
        "Rank": row.rank,
        "Abbreviation": short,
        "Rating": state.engines[row.engine].rating or 0,
        "Elo": 0.0,
        "Score": row.points,
        "Games": row.games,
        "GamesAsWhite": score.white_games,
        "GamesAsBlack": score.black_games,
        "WinsAsWhite": row.wins - score.black_wins,
        "WinsAsBlack": score.black_wins,
        "LossAsWhite": score.losses - score.black_losses,
        "LossAsBlack": score.black_losses,
        "Neustadtl": tiebreaks.points(
            season_model.Criterion.SONNEBORN_BERGER,
            numbers.get(season_model.Criterion.SONNEBORN_BERGER, 0),
        ),
        "Performance": round(100 * row.points / row.games, 2) if row.games else 0,
        "Strikes": score.crashes,
    }


def _tail(row: standings.Row) -> dict[str, Any]:
    mobility = row.tiebreaks.get(season_model.Criterion.R_MOBILITY)
    if mobility is None:
        return {}
    points = tiebreaks.points(season_model.Criterion.R_MOBILITY, mobility)
    return {"RMobilityScore": round(points, 2)}


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
    out = any(published.annulled(state, state.games[game]) for game in cell.games)
    taken = 0 if out else sum(cell.half_points)  # all of a cell are annulled, or none
    return {"H2h": taken / 2, "Text": cell.text, "Scores": scores}


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
