"""The rows and cells of one event's documents, kept as JSON: an entry changes a few of them.

A schedule is a list of rows, a crosstable one of cells. Both grow with the games played, an entry
concerns one game: so each row and each cell is encoded once, and again when its game changes.
What a document looks like is decided in ``tables``; tests compare the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.broadcast.content import documents, statistics, tables
from orchestrator.common import text
from orchestrator.season.fold import crosstable, events, progress, standings
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState
_EMPTY: Final = crosstable.Cell((), ())


def encoded(value: Any) -> bytes:
    """Return plain data as the JSON of our documents."""
    return text.visible(contract.dumps(value)).encode()


@dataclasses.dataclass(frozen=True)
class Pace:
    """When the next game of an event is expected to start, and how long one lasts."""

    starts_ms: float
    mean_ms: float


def paces(state: State) -> dict[str, Pace]:
    """Return the pace of each event: events follow each other in their order."""
    starts_ms = tables.base_ms(state)
    by_event, earlier = {}, 0.0
    for event_id, part in progress.of_events(state, starts_ms).items():
        begins_ms = starts_ms + round(earlier * 1000)
        by_event[event_id] = Pace(begins_ms, part.mean_seconds * 1000)
        earlier += part.remaining_seconds
    return by_event


class Schedule:
    """The games of an event in their order of play."""

    def __init__(self, state: State, event_id: str, briefs: tables.Briefs) -> None:
        """Encode all rows."""
        self._event, self._briefs = event_id, briefs
        order = state.events[event_id].order
        self._places = {game: index for index, game in enumerate(order)}
        self._rows = [self._row(state, game) for game in order]
        self._open = {
            index: running
            for index, game in enumerate(order)
            if (running := self._waits(state, game)) is not None
        }

    @property
    def awaits(self) -> bool:
        """Say whether games have no result yet, so that their starts are estimated."""
        return bool(self._open)

    def update(self, state: State, games: Iterable[str]) -> None:
        """Encode the rows of games again."""
        for game in games:
            index = self._places.get(game)
            if index is None:
                continue
            self._rows[index] = self._row(state, game)
            running = self._waits(state, game)
            if running is None:
                self._open.pop(index, None)
            else:
                self._open[index] = running

    def _row(self, state: State, game: str) -> bytes:
        return encoded(tables.schedule_row(state, game, self._briefs))

    @staticmethod
    def _waits(state: State, game: str) -> bool | None:
        """Return whether an open game runs; None for one that is not open."""
        if state.over or not state.games[game].open:
            return None
        return state.running is not None and state.running.game == game

    def document(self, pace: Pace) -> documents.Document:
        """Return the document of this moment; its bytes are joined when somebody asks for it."""
        rows, waiting = tuple(self._rows), dict(self._open)
        if not waiting:
            return documents.Document(b"[" + b",".join(rows) + b"]")

        def body() -> bytes:
            starts_ms, joined = pace.starts_ms, list(rows)
            for index in sorted(waiting):
                estimated = "null" if waiting[index] else round(starts_ms)
                head = f'{{"estimated_start_ms":{estimated},'.encode()
                joined[index] = head + rows[index][1:]
                starts_ms += pace.mean_ms
            return b"[" + b",".join(joined) + b"]"

        return documents.Document(body)


class Cells:
    """The cells of an event's crosstable, by engine and opponent."""

    def __init__(self, state: State, event: events.EventState) -> None:
        """Sort the event's games by their pairs; encode nothing yet."""
        self._games: dict[frozenset[str], list[str]] = {}
        for name in event.order:
            game = state.games[name]
            self._games.setdefault(frozenset((game.white, game.black)), []).append(name)
        self._cells: dict[str, dict[str, bytes]] = {engine: {} for engine in event.entrants}

    def update(self, state: State, games: Iterable[str]) -> None:
        """Forget the cells of games, so that they are encoded again."""
        for game in map(state.games.__getitem__, games):
            self._cells[game.white].pop(game.black, None)
            self._cells[game.black].pop(game.white, None)

    def cell(self, state: State, engine: str, opponent: str) -> crosstable.Cell:
        """Return the results of one engine against another."""
        games = self._games.get(frozenset((engine, opponent)))
        if games is None:
            return _EMPTY
        return crosstable.cell(engine, map(state.games.__getitem__, games))

    def line(self, state: State, engine: str, order: Sequence[str]) -> bytes:
        """Return the cells of an engine against all in the order of the table."""
        cells = self._cells[engine]
        for other in order if len(cells) < len(order) else ():
            if other not in cells:
                cell = None if engine == other else self.cell(state, engine, other)
                cells[other] = encoded(tables.cell(cell))
        return b",".join(map(cells.__getitem__, order))


class Table:
    """The standings of an event with its crosstable and its statistics."""

    def __init__(self, state: State, event_id: str) -> None:
        """Sort and count the event's games once."""
        self._event = event_id
        self.cells = Cells(state, state.events[event_id])
        self._last = tables.last(state, state.events[event_id].order)
        self._counts = statistics.EventCounts()
        for game in statistics.counted(state, state.events[event_id]):
            self._counts.add(game)

    def update(self, state: State, games: Iterable[str]) -> None:
        """Count games that have been finished."""
        games = list(games)
        self.cells.update(state, games)
        self._last = tables.last(state, {*self._last, *games})
        for game in map(state.games.__getitem__, games):
            if statistics.counts(state, game):
                self._counts.add(game)

    def document(self, state: State, rows: Sequence[standings.Row]) -> documents.Document:
        """Return the document of this moment."""
        table = tables.event_table(state, self._event, rows)
        table["last"] = self._last
        table["statistics"] = self._counts.data(state, state.events[self._event])
        order = [row.engine for row in rows]
        lines = [
            _with(row, "cells", self.cells.line(state, row["engine"], order))
            for row in table.pop("rows")
        ]
        return documents.Document(_with(table, "rows", b",".join(lines)))


def _with(value: dict[str, Any], key: str, items: bytes) -> bytes:
    """Return an object as JSON, with a list that is encoded already."""
    return encoded(value)[:-1] + f',"{key}":['.encode() + items + b"]}"
