"""Follows the games in flight: messages for every ply, and TCEC's files of the shown one.

When no game is in flight, one that was interrupted and goes on next is shown as it was left,
else the game that was finished last, from its record. No clock runs then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.arbiter import record as pgn_record
from orchestrator.broadcast.content import (
    documents,
    game_store,
    games,
    inflight,
    messages,
    replays,
    season_view,
)
from orchestrator.broadcast.feeds import files, kibitzing
from orchestrator.broadcast.feeds.tcec import live as tcec_live
from orchestrator.broadcast.feeds.tcec import pgn as tcec_pgn
from orchestrator.season import published
from orchestrator.season.fold import events, orders


class Follower:
    """Follows the game of each season; ``front`` says whose TCEC's viewers see."""

    def __init__(
        self,
        source: season_view.Source,
        kept: game_store.Album,
        shelf: documents.Library,
        directory: files.Directory,
        kibitzers: kibitzing.Kibitzing,
    ) -> None:
        """Read from ``source`` and ``kept``; write to ``shelf`` and ``directory``."""
        self._source, self._album = source, kept
        self._shelf, self._directory = shelf, directory
        self._kibitzers = kibitzers
        self._last_shown: dict[str, str] = {}
        self._last_lines: dict[str, tuple[str, games.GameLine]] = {}  # by season, with the attempt

    def drain(self, season: season_view.Season) -> list[messages.Message]:
        """Return the last plies of a game that is over: the ledger's, else those of its record."""
        game, running = season.game, season.state.running
        if game is None or (running is not None and running.attempt == game.attempt):
            return []
        new = self._read(game)
        finished = season.state.game(game.order.game).finished
        if finished and finished.attempt == game.attempt and finished.plies > game.line.last:
            record = self._album.game(season.id, game.order.game, game.attempt)
            plies = () if record is None else record.plies
            now_ms = self._shelf.now_ms()
            new += [game.push(ply, now_ms) for ply in plies if ply.ply > game.line.last]
        head = {"season": season.id, "game": game.order.game}
        return [_ply(head, game, shown) for shown in new]

    def follow(
        self, season: season_view.Season, *, front: bool
    ) -> Iterator[Sequence[messages.Message]]:
        """Bring a season's game up to its last ply and its latest picture.

        Yield what is told of it: deltas first, TCEC's messages once their files are written.
        """
        running = season.state.running
        if running is None:
            yield self._stop(season)
            yield self._show_last(season, front=front)
            if season.id in self._last_lines:
                attempt, line = self._last_lines[season.id]
                heard = self._kibitzers.hear(season.id, attempt, line, front=front, over=True)
                yield heard.told
            return
        game, begun = season.game, False
        if game is not None and game.attempt != running.attempt:
            yield self._show_end(season, game, front=front)
        self._last_lines.pop(season.id, None)
        if game is None or game.attempt != running.attempt:
            order = orders.game_order(season.state, running.game)
            # The stream holds all plies, those before an interruption included.
            order = order.model_copy(update={"progress": None})
            game, begun = (
                inflight.InFlight(order, running.attempt, running.started_ms, running.hall),
                True,
            )
            season.game = game
        yield from self._grow(season, game, begun=begun, front=front)

    def _grow(
        self, season: season_view.Season, game: inflight.InFlight, *, begun: bool, front: bool
    ) -> Iterator[Sequence[messages.Message]]:
        before, searched, options = game.clock(), game.search(), game.options("white")
        new = self._read(game)
        whole = begun or game.options("white") != options
        changed = whole or bool(new)
        if changed:
            self._shelf.put({_path(season): game.document()})
        head = {"season": season.id, "game": game.order.game}
        changes: list[messages.Message] = []
        if whole:
            changes.append(messages.Delta("game", game.document()))  # with the new plies, if any
        else:
            changes += [_ply(head, game, shown) for shown in new]
        if game.clock() != before:
            changes.append(messages.Delta("clock", head | game.clock()))
        said = game.search()
        if said is not None and said != searched:
            changes.append(messages.Delta("search", head | said))
        yield changes
        if front and changed:
            yield self._files(game, new, begun=begun)
        heard = self._kibitzers.hear(season.id, game.attempt, game.line, front=front)
        game.kibitzers, game.kibitzed = heard.cards, heard.remarks.evals
        yield heard.told

    def _read(self, game: inflight.InFlight) -> list[games.Shown]:
        """Read plies and picture; return the new plies."""
        now_ms = self._shelf.now_ms()
        new = [
            game.push(contract.PlyRecord.decode(payload), now_ms)
            for _, payload in self._source.plies(game.attempt, game.line.last)
        ]
        picture = self._source.live(game.hall)
        game.see(contract.loads(picture) if picture else None)
        return new

    def _files(
        self, game: inflight.InFlight, new: Sequence[games.Shown], *, begun: bool
    ) -> list[messages.Message]:
        """Write ``live.pgn`` and ``live.json``; return what is pushed of them."""
        options = [game.options(side) for side in inflight.SIDES]
        options_text = [
            tcec_pgn.options(game.order.engine(side).protocol, settings)
            for side, settings in zip(inflight.SIDES, options, strict=True)
        ]
        tags = tcec_pgn.tags(game.line, game.started_ms, game.hall)
        text = tcec_pgn.running(game.line, tags, options_text)
        whole = tcec_live.document(game.line.shown, tags, options, changed=True)
        self._write(text.encode(), whole, game.last_move_ms)
        if begun or not new:
            return [messages.TcecMoves(text, whole)]
        last = game.line.shown[-max(tcec_live.SENT, len(new)) :]
        part = tcec_live.document(last, tags, options, changed=False)
        part["lastMoveLoaded"] = game.line.last
        return [messages.TcecMoves(tcec_pgn.slice_of(new), part)]

    def _write(self, text: bytes, data: dict[str, Any], at_ms: int) -> None:
        self._directory.write({"live.pgn": text, "live.json": files.encode(data)}, at_ms)

    # -- between two games -------------------------------------------------------------

    def _stop(self, season: season_view.Season) -> list[messages.Message]:
        """Stop the clocks of a game that was in flight, where it waits for a verdict."""
        game, season.game = season.game, None
        if game is None:
            return []
        self._last_shown.pop(season.id, None)  # it may be no later one that is to be shown
        return [] if season.state.lost is None else self._put(season, game.interrupted())

    def _put(self, season: season_view.Season, document: dict[str, Any]) -> list[messages.Message]:
        self._shelf.put({_path(season): document})
        return [messages.Delta("game", document)]

    def _show_left(
        self, season: season_view.Season, *, front: bool
    ) -> list[messages.Message] | None:
        """Show the next game as it was left, where it goes on after an interruption."""
        name = season.state.next_game()
        left = None if name is None else season.state.games[name].progress
        if name is None or left is None or not left.plies:
            return None
        key = f"{name} left {len(left.interruptions)} {front}"
        if self._last_shown.get(season.id) == key:
            return []
        self._last_shown[season.id] = key
        order = orders.game_order(season.state, name).model_copy(update={"progress": None})
        game = inflight.InFlight(order, key, left.started_ms, season.state.hall)
        for ply in left.plies:
            game.push(ply, season.state.at_ms)
        changes = self._put(season, game.interrupted())
        return [*changes, *self._files(game, (), begun=True)] if front else changes

    def _show_nothing(self, season: season_view.Season) -> list[messages.Message]:
        """Take away a game that was given up before any other was finished."""
        if not self._shelf.drop(_path(season)):
            return []
        return [messages.Delta("game", {"season": season.id, "game": ""})]

    def _show_last(self, season: season_view.Season, *, front: bool) -> list[messages.Message]:
        """Show the game that goes on, else the one finished last, once its record is there."""
        if season.state.lost is not None and self._shelf.get(_path(season)) is not None:
            return []  # its verdict is on its way
        left = self._show_left(season, front=front)
        if left is not None:
            return left
        last = season.last_finished()
        if last is None or last.finished is None:
            return self._show_nothing(season)
        return self._show_finished(season, last, last.finished, front=front)

    def _show_end(
        self, season: season_view.Season, game: inflight.InFlight, *, front: bool
    ) -> list[messages.Message]:
        """Show how a game ended, before the next one that has begun already takes its place."""
        ended = season.state.game(game.order.game)
        if ended.finished is None:
            return []
        return self._show_finished(season, ended, ended.finished, front=front)

    def _show_finished(
        self,
        season: season_view.Season,
        last: events.Game,
        finished: contract.GameFinished,
        *,
        front: bool,
    ) -> list[messages.Message]:
        """Show a finished game once, as soon as its record is there."""
        attempt, version = finished.attempt, published.version(season.state, last)
        if self._last_shown.get(season.id) == f"{version} {front}":
            return []
        text = season.pgn(last) if finished.record_sha256 else b""
        replay = None if text is None else replays.of_game(season.state, last, self._album)
        if replay is None or (text and not replay.recorded):
            return []  # its record is on its way
        self._last_shown[season.id] = f"{version} {front}"
        whole, line = replay.record, replay.line
        self._last_lines[season.id] = attempt, line
        # Whole, as the ledger may have forgotten its last plies before they were read.
        shown = self._put(season, replay.document())
        if not front:
            return shown
        tags = published.tags(season.state, last, pgn_record.tags(whole))
        if not text:
            played = pgn_record.pgn(whole).encode()
            text = published.pgn(season.state, last, played) or played
        options = [games.reported(whole.white), games.reported(whole.black)]
        data = tcec_live.document(line.shown, tags, options, changed=True)
        self._write(text, data, finished.ended_ms)
        return [*shown, messages.TcecMoves(text.decode(), data)]


def _path(season: season_view.Season) -> str:
    """Return the place of a season's game in the library."""
    return f"seasons/{season.id}/live"


def _ply(head: dict[str, Any], game: inflight.InFlight, shown: games.Shown) -> messages.Message:
    named = game.line.opening()
    fields = {
        "ply": shown.full(),
        "opening": {"eco": named.eco, "name": named.name},
        "clock": game.clock(),
    }
    return messages.Delta("ply", head | fields)
