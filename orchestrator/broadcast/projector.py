"""The projector: reads journal and plies, derives documents, feeds and messages.

Read only: of the ledger it knows nothing that writes. Every pass catches up with all
journals, then looks at the games in flight. Killed and started again, it derives the
same documents and files from the same journal; the season never waits for it (S16-15b i).
"""

from __future__ import annotations

import collections
import contextlib
import functools
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import structlog

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.broadcast import rendering as rendering_
from orchestrator.broadcast.content import (
    documents,
    game_store,
    games,
    messages,
    rank_odds,
    season_view,
    tables,
)
from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.feeds import kibitzing, live_game
from orchestrator.broadcast.feeds.tcec import index, names
from orchestrator.common import errors
from orchestrator.season import current, published
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.04  # s: between two looks at a game in flight; adds to every delay
BACKOFF_SECONDS: Final = 1.0  # s: while Redis is away
CLOCK_SECONDS: Final = 5.0  # s: between two comparisons of this host's clock with Redis'
PUSHED: Final = {  # TCEC's files that are pushed when they change, by their event's name
    "schedule.json": "schedule",
    "crosstable.json": "crosstable",
    "tournament.json": "tournament",
    "Eventcrosstable.json": "bracket",
    "crash.json": "crash",
}
_OVERVIEW: Final = ("season", "name", "status", "champion", "launched_ms", "games")


_Summary = tuple[season_state.SeasonState, int, dict[str, Any]]


class Projector:
    """Derives everything; ``publish`` takes the messages of each pass."""

    def __init__(
        self,
        source: season_view.Source,
        archive: pathlib.Path,
        shelf: documents.Library,
        directory: feeds_files.Directory,
        publish: Callable[[Sequence[messages.Message]], None],
        comments: season_view.Comments | None = None,
    ) -> None:
        """Read from ``source``, ``archive``, ``comments``; write to ``shelf``, ``directory``."""
        self.seasons: dict[str, season_view.Season] = {}
        self.looked = threading.Event()  # the first pass of ``run`` is over, well or not
        self.album = game_store.Album(archive, source)
        self._kibitzing = kibitzing.Kibitzing(comments or season_view.Silence(), directory)
        self._follower = live_game.Follower(source, self.album, shelf, directory, self._kibitzing)
        self._source, self._shelf, self._directory = source, shelf, directory
        self._publish = publish
        self._compared = float("-inf")
        self._renderings: dict[str, rendering_.Rendering] = {}  # of seasons that are played
        self._summaries: dict[str, _Summary] = {}
        self._index = index.Seasons()
        self._shown: dict[str, bytes] = {}  # files of the front, as they were written last
        self._due: set[str] = set()  # seasons to be looked at even if they are over

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop, whatever happens to Redis meanwhile."""
        while not stop.is_set():
            rest = BACKOFF_SECONDS
            try:
                self.look()
                rest = LOOK_SECONDS
            except errors.LedgerAwayError as error:
                log.warning("broadcast.ledger_away", error=str(error))
            except Exception:  # the top of the loop: the next pass tries again
                log.exception("broadcast.failed")
            self.looked.set()
            stop.wait(rest)

    def look(self) -> None:
        """Bring everything up to what ledger and archive say now.

        What is told is told at once: a move does not wait for the files of its game.
        """
        self._compare_clocks()
        looked = self._looked_at()
        for season in looked:
            with self._guarded(season):
                self._catch_up(season)
        shown = current.shown(self._folded())
        front = shown.launched.id if shown else ""
        if front != self._shelf.shown:
            looked = list(self.seasons.values())
            self._shelf.shown = front
            if front:
                with self._guarded(self.seasons[front]):
                    self._tell(self._front(self.seasons[front]))
        for season in looked:
            if season.state.launch is not None and not season.failed:
                with self._guarded(season, lasting=False):
                    for changes in self._follower.follow(season, front=season.state is shown):
                        self._tell(changes)
        for season in looked:
            if season.over:
                self._renderings.pop(season.id, None)
        self._due.clear()

    @contextlib.contextmanager
    def _guarded(self, season: season_view.Season, *, lasting: bool = True) -> Iterator[None]:
        """Let no season keep the others from being shown.

        One whose journal cannot be rendered stays as it was (``lasting``): it is looked at again
        when the page is started again, or Redis restored. What a hall says of a game in flight is
        other at the next pass. A full disk is the host's fault, not the season's: it is passed on.
        """
        try:
            yield
        except (errors.HostError, OSError):
            raise
        except Exception as error:
            if errors.is_outage(error):
                raise
            log.exception("broadcast.season_failed", season=season.id)
            season.failed = season.failed or lasting

    def _tell(self, changes: Sequence[messages.Message]) -> None:
        if changes:
            self._publish(changes)

    def _looked_at(self) -> list[season_view.Season]:
        """Return the seasons to be looked at: those that are over rest until they grow."""
        launched = self._source.seasons()
        for name in launched:
            if name not in self.seasons:
                self.seasons[name] = season_view.Season(name, self.album)
        known_seasons = [self.seasons[name] for name in launched]
        looked = [
            season
            for season in known_seasons
            if not season.failed and (not season.over or season.id in self._due)
        ]
        self._due.update(season.id for season in looked)  # again, if this pass fails
        return looked

    def _folded(self) -> list[season_state.SeasonState]:
        """Return the states of all seasons that have been launched, in that order."""
        states = (season.state for season in self.seasons.values() if not season.failed)
        return [state for state in states if state.launch is not None]

    def _compare_clocks(self) -> None:
        if time.monotonic() - self._compared < CLOCK_SECONDS:
            return
        self._compared = time.monotonic()
        self._shelf.offset_ms = self._source.now_ms() - time.time_ns() // 1_000_000
        self._kibitzing.catch_up()
        resting = self._source.resting()
        for season in list(self.seasons.values()):
            with self._guarded(season):
                self._compare(season, resting.get(season.id) or self._source.last(season.id))

    def _compare(self, season: season_view.Season, last: int) -> None:
        """Look at a season again that has grown, or whose journal is another one by now."""
        if last < season.state.seq:
            del self.seasons[season.id]  # Redis was restored
            self._renderings.pop(season.id, None)
        elif last > season.state.seq or season.bare or self._kibitzing.behind(season.id):
            self._due.add(season.id)

    def _catch_up(self, season: season_view.Season) -> None:
        """Fold what is new in a journal, tell it, render what it changes."""
        before = season.state.seq
        touched, results = self._fold(season)
        self._tell([*self._follower.drain(season), *results])  # the last move, then the result
        recorded = season.recorded()
        touched |= {game.event for game in recorded}
        if season.state.seq != before or recorded:
            self._keep_games(season, recorded)
            if season.changes.corrected:
                self._keep_corrected(season)
            self._tell(self._render(season, touched))

    def _fold(self, season: season_view.Season) -> tuple[set[str], list[messages.Message]]:
        """Return the events whose tables may have changed, and the results of games."""
        touched: set[str] = set()
        results: list[messages.Message] = []
        try:
            read = functools.partial(self._source.read, season.id)
            for entry, events_touched in () if season.damaged else season.follow(read):
                touched |= events_touched
                results += _results(season, entry)
        except errors.LedgerDamagedError:
            # By a newer farm, or damaged: it stands as it was, the others are shown on.
            log.exception("broadcast.season_unreadable", season=season.id)
            season.damaged = True
        return touched, results

    def _keep_games(self, season: season_view.Season, recorded: Sequence[events.Game]) -> None:
        """Write the PGN of finished games into TCEC's archive."""
        for game in recorded:
            event = season.state.events[game.event]
            if game.finished is None or game.id not in event.order:
                continue
            text = season.pgn(game)
            if text is not None:
                number = event.order.index(game.id) + 1
                stem = names.stem(season.state, event)
                self._directory.write({f"archive/{stem}_{number}.pgn": text})
                self._keep_comments(season.id, game.id, game.finished.attempt, stem)

    def _keep_corrected(self, season: season_view.Season) -> None:
        """Write games whose result counts otherwise by now again, withdraw those to be replayed."""
        paired = collections.Counter(game.event for game in season.state.games.values())
        for event in season.state.events.values():
            stem = names.stem(season.state, event)
            games_by_number = dict(enumerate(map(season.state.game, event.order), start=1))
            for number in range(1, paired[event.id] + 1):
                game, name = games_by_number.get(number), f"archive/{stem}_{number}.pgn"
                if game is None or game.finished is None:
                    self._directory.withdraw(name)
                elif published.corrected(season.state, game) and (text := season.pgn(game)):
                    self._directory.write({name: text})

    def _keep_comments(self, season: str, game: str, attempt: str, stem: str) -> None:
        """Write what kibitzers found in a finished game into TCEC's archive."""

        def line() -> games.GameLine | None:
            record = self.album.game(season, game, attempt)
            return None if record is None else games.of_record(record)

        self._kibitzing.keep(attempt, line, stem)

    def _render(self, season: season_view.Season, touched: set[str]) -> list[messages.Message]:
        """Render what has changed; return what is told of it."""
        deltas: list[messages.Message] = []
        summary = tables.season(season.state)
        self._summaries[season.id] = (season.state, season.state.seq, _summary(summary))
        if self._shelf.put({f"seasons/{season.id}": summary}):
            deltas.append(messages.Delta("season", summary))
        self._shelf.put({"seasons": [self._summary(state) for state in self._folded()]})
        deltas.append(messages.Delta("tables", {"season": season.id, "events": sorted(touched)}))
        self._shelf.offer(rank_odds.awaited(season.id))
        rendering = self._rendered(season)
        files = rendering.archived() | feeds_files.of_cup(season.state)
        return [*deltas, *self._write(season, files)]

    def _rendered(self, season: season_view.Season) -> rendering_.Rendering:
        """Return the kept parts of a season as they are now, its documents in their places."""
        changes, rendering = season.changed(), self._renderings.get(season.id)
        if rendering is None:
            rendering = self._renderings[season.id] = rendering_.Rendering(season)
        else:
            rendering.update(changes)
        for path, document in rendering.made():
            self._shelf.put_made(path, document)
        return rendering

    def _summary(self, state: season_state.SeasonState) -> dict[str, Any]:
        """Return a season's line in the list of all."""
        kept = self._summaries.get(state.launched.id)
        if kept is None or kept[0] is not state or kept[1] != state.seq:
            kept = (state, state.seq, _summary(tables.season(state)))
            self._summaries[state.launched.id] = kept
        return kept[2]

    def _front(self, season: season_view.Season) -> list[messages.Message]:
        """Write the files of the season that TCEC's viewers see."""
        self._rendered(season)
        return self._write(season, {})

    def _write(self, season: season_view.Season, files: dict[str, bytes]) -> list[messages.Message]:
        """Write files of a season, and those of the front if viewers see it."""
        folded = self._folded()
        front: dict[str, bytes] = {}
        if current.shown(folded) is season.state:
            self._index.update(folded)
            shown = self._renderings[season.id].shown()
            bracket = feeds_files.of_cup(season.state)
            front = feeds_files.front(season.state, shown, bracket, self._index)
        front = {name: own for name, own in front.items() if own is not self._shown.get(name)}
        changed = self._directory.write(files | front)
        self._shown |= front
        self._renderings[season.id].saved()
        return [
            messages.TcecFile(name, PUSHED[name], messages.Encoded(front[name]))
            for name in changed
            if name in PUSHED
        ]


def _results(season: season_view.Season, entry: contract.Entry) -> list[messages.Message]:
    if entry.kind != "game_finished":
        return []
    kept = ("game", "result", "details", "ending", "ended_ms", "plies")
    fields = {key: entry.data[key] for key in kept}
    fields["adjudicated"] = verdict.is_adjudicated(contract.Ending(entry.data["ending"]))
    return [messages.Delta("result", {"season": season.id} | fields)]


def _summary(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: summary[key] for key in _OVERVIEW}
