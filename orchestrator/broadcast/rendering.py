"""What is rendered of one season, and kept: an entry changes little of it.

A game that begins or ends changes its rows, two cells and some counts; nothing else is encoded
again, however many games the season has. Any other entry is rare, and renders all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.broadcast.content import documents, event_rows, season_view, statistics
from orchestrator.broadcast.feeds import files
from orchestrator.season import graph
from orchestrator.season.fold import events, pairing
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


class _Event:
    """One event: its schedule, its table, and its files."""

    def __init__(self, season: season_view.Season, event: events.EventState) -> None:
        state = season.state
        self.schedule = event_rows.Schedule(state, event.id, season.brief)
        self.table = event_rows.Table(state, event.id)
        self.files = files.Event(state, event, self.table.cells, season.brief)
        self.new_rows = self.new_table = True

    def update(self, state: season_state.SeasonState, games: set[str], results: set[str]) -> None:
        """Take note of games that have changed, and of those that were finished."""
        self.schedule.update(state, games)
        self.table.update(state, results)
        self.files.update(state, games, results)
        self.new_rows = True
        self.new_table |= bool(results)


class Rendering:
    """The kept parts of a season's documents and files."""

    def __init__(self, season: season_view.Season) -> None:
        """Encode all of a season."""
        self._season = season
        self.log = b""
        self._lines = 0
        self.rebuild()

    def rebuild(self) -> None:
        """Encode everything again."""
        state = self._season.state
        self._events = {name: _Event(self._season, event) for name, event in state.events.items()}
        self._results = statistics.of_season(state)
        self._rounds = graph.Rounds(state)

    def update(self, changes: season_view.Changes) -> None:
        """Encode again what has changed."""
        state = self._season.state
        if changes.whole:
            self.rebuild()
            return
        for name in changes.paired:
            self._events[name] = _Event(self._season, state.events[name])
        if changes.paired:
            self._rounds = graph.Rounds(state)
        self._rounds.see(state, changes.games)
        by_event: dict[str, set[str]] = {}
        for game in changes.games:
            by_event.setdefault(state.games[game].event, set()).add(game)
        for name, games in by_event.items():
            self._events[name].update(state, games, games & changes.results)
            if isinstance(state.events[name].spec.format, model.Knockout):
                self._events[name].new_table = True  # its bracket shows which match is played
        for result in map(state.games.__getitem__, changes.results):
            if result.finished is not None and statistics.counts(state, result):
                self._results.count(result.finished)

    def made(self) -> Iterator[tuple[str, documents.Document]]:
        """Yield the documents that have changed, by their places; make the files that have."""
        state, base = self._season.state, f"seasons/{self._season.id}"
        drawn = graph.build(state, by_round=True, rounds=self._rounds)
        yield f"{base}/graph", documents.of_json(drawn.data())
        yield f"{base}/statistics", documents.of_json(self._results.as_json())
        yield f"{base}/log", self._log()
        paces = event_rows.paces(state)
        for name, event in self._events.items():
            there = f"{base}/events/{name}"
            rows = None
            if event.new_table:
                rows = pairing.table(state, state.events[name])
                yield there, event.table.document(state, rows)
            if event.new_rows or event.schedule.awaits:
                yield f"{there}/schedule", event.schedule.document(paces[name])
            event.files.render(state, self._season.log, rows)
            event.new_rows = event.new_table = False

    def _log(self) -> documents.Document:
        """Return the log; of its lines only new ones are encoded."""
        lines = self._season.log.lines
        new = [event_rows.encoded(line) for line in lines[self._lines :]]
        self.log = b",".join(filter(None, (self.log, *new)))
        self._lines = len(lines)
        return documents.Document(b"[" + self.log + b"]")

    def archived(self) -> dict[str, bytes]:
        """Return the archive's files that have changed, of events that have begun."""
        state, changed_files = self._season.state, dict[str, bytes]()
        for name, event in self._events.items():
            if state.events[name].entrants:
                changed_files |= event.files.archived()
        return changed_files

    def saved(self) -> None:
        """Take note that the archive's files have been written."""
        for name, event in self._events.items():
            if self._season.state.events[name].entrants:
                event.files.unsaved.clear()

    def shown(self) -> files.Event | None:
        """Return the files of the event that viewers see, None before the first one."""
        event = files.shown_event(self._season.state)
        return None if event is None else self._events[event.id].files
