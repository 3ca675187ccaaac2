"""A finished game to be replayed, wherever its moves lie: in its record, in a PGN, or nowhere.

A game that was imported has its moves in the PGN that it came with; of one that was
simulated, or set by the organizers, only the journal tells, which holds no moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from orchestrator import contract
from orchestrator.audit import reading, remarks
from orchestrator.broadcast.content import game_store, games
from orchestrator.common import errors, text
from orchestrator.season import published
from orchestrator.season.fold import events, orders
from orchestrator.season.fold import state as season_state

# cutechess and fastchess: +0.12/20 1.5s; Lichess: [%clk 0:58:19].
_SEARCH: Final = re.compile(r"(?:\([^)]*\) ?)?[+-]?[M#]?[\d.]+/(\d+)(?: (\d+(?:\.\d+)?) ?s)?")
_CLOCK: Final = re.compile(r"\[%clk (\d+:\d+:\d+)")
_UNTIMED: Final = dict.fromkeys(("move_ms", "white_clock_ms", "black_clock_ms"))


class Replay(NamedTuple):
    """A finished game; ``recorded`` says whether its moves are known, ``timed`` its clocks.

    An ``annulled`` one counts for nobody.
    """

    record: contract.GameRecord
    line: games.GameLine
    recorded: bool = True
    timed: bool = True
    annulled: bool = False

    def document(self) -> dict[str, Any]:
        """Return all of the game."""
        document = games.finished(
            self.record, self.line, recorded=self.recorded, annulled=self.annulled
        )
        return (
            document
            if self.timed
            else document | {"plies": [self._shown_ply(p) for p in document["plies"]]}
        )

    def ply(self, number: int) -> dict[str, Any]:
        """Return one ply with the positions of its variation."""
        return self._shown_ply(self.line.shown[number - 1].full())

    def _shown_ply(self, ply: dict[str, Any]) -> dict[str, Any]:
        return ply if self.timed or ply["book"] else ply | _UNTIMED


def of_game(
    state: season_state.SeasonState, game: events.Game, album: game_store.Album
) -> Replay | None:
    """Return a game as far as it is known, None for one that is not finished."""
    finished = game.finished
    if finished is None:
        return None
    if not finished.imported:
        record = album.game(state.launched.id, game.id, finished.attempt)
        if record is None or published.unplayed(game):
            return _bare(state, game, finished)
        return _corrected(state, game, Replay(record, games.of_record(record)))
    pgn = album.pgn(state.launched.id, game.id, finished.attempt)
    try:
        replay = None if pgn is None else _imported(state, game, finished, pgn.decode())
    except (ValueError, errors.BookError):
        replay = None  # it does not fit what its event plays now
    return replay or _bare(state, game, finished)


def _corrected(state: season_state.SeasonState, game: events.Game, replay: Replay) -> Replay:
    """Return a replay with the result that counts."""
    record = published.record(state, game, replay.record)
    return replay._replace(record=record, annulled=published.annulled(state, game))


def _bare(
    state: season_state.SeasonState, game: events.Game, finished: contract.GameFinished
) -> Replay:
    """Return what the journal alone tells of a game."""
    order = orders.game_order(state, game.id).model_copy(update={"progress": None})
    if finished.imported or published.unplayed(game):
        # its drawn opening is still to come, or never comes
        order = order.model_copy(update={"opening": contract.Opening()})
    record, line = record_of(order, finished, ())
    return _corrected(state, game, Replay(record, line, recorded=False))


def _imported(
    state: season_state.SeasonState,
    game: events.Game,
    finished: contract.GameFinished,
    pgn: str,
) -> Replay | None:
    """Read an imported game; raise ``ValueError`` or ``BookError`` where it cannot be."""
    read = next(reading.games(pgn), None)
    if read is None:
        return None
    update = {"progress": None, "opening": read.opening, "variant": read.variant}
    order = orders.game_order(state, game.id).model_copy(update=update)
    plies = tuple(plies_of(order, read))
    record, line = record_of(order, finished, plies)
    return _corrected(state, game, Replay(record, line, timed=has_clocks(read)))


def plies_of(order: contract.GameOrder, read: reading.Game) -> Iterator[contract.PlyRecord]:
    """Yield the plies behind the book's, with what their remarks say."""
    board = read.start()
    clocks: dict[contract.Side, int] = {
        "white": order.control("white").start_ms,
        "black": order.control("black").start_ms,
    }
    for number, shown in enumerate(read.plies, start=1):
        move = board.parse_uci(shown.move)
        san = board.san(move)
        board.push(move)
        if shown.book:
            continue
        fields, search = shown.fields, _SEARCH.match(" ".join(shown.remark.split()))
        clocks[shown.mover] = _left(shown) or clocks[shown.mover]
        spent_ms = _ms(fields.get("mt", ""))
        if spent_ms is None and search and search[2]:
            spent_ms = round(1000 * float(search[2]))
        yield contract.PlyRecord(
            ply=number,
            side=shown.mover,
            move=shown.move,
            san=san,
            think_ns=(spent_ms or 0) * 1_000_000,
            margin_ns=0,
            overhead_ns=0,
            white_clock_ns=clocks["white"] * 1_000_000,
            black_clock_ns=clocks["black"] * 1_000_000,
            score=remarks.score(remarks.told_eval(fields), shown.mover),
            depth=_count(fields, "d") or (int(search[1]) if search else None),
            seldepth=_count(fields, "sd"),
            nodes=_count(fields, "n"),
            nps=_count(fields, "s"),
            tbhits=_count(fields, "tb"),
            pv=tuple(fields.get("pv", "").split()),
        )


def has_clocks(read: reading.Game) -> bool:
    """Say whether a PGN tells of the clocks."""
    return any(_left(ply) is not None for ply in read.plies)


def _left(ply: reading.Told) -> int | None:
    """Return the mover's clock behind a move in ms, None where it is not told."""
    clock = _CLOCK.search(ply.remark)
    return _ms(clock[1] if clock else ply.fields.get("tl", ""))


def _ms(word: str) -> int | None:
    """Read a time: milliseconds, or hours, minutes and seconds."""
    seconds, parts = 0, word.strip().split(":")
    for part in parts:
        number = text.whole(part)
        if number is None:
            return None
        seconds = 60 * seconds + number
    return seconds if len(parts) == 1 else 1000 * seconds


def _count(fields: Mapping[str, str], name: str) -> int | None:
    return text.whole(fields.get(name, "").strip())


def record_of(
    order: contract.GameOrder,
    finished: contract.GameFinished,
    plies: tuple[contract.PlyRecord, ...],
) -> tuple[contract.GameRecord, games.GameLine]:
    """Return a record of what is known, and its plies; its end is the journal's."""
    empty = contract.GameRecord(
        order=order,
        attempt=finished.attempt,
        hall=finished.hall,
        started_ms=finished.started_ms,
        ended_ms=finished.ended_ms,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=plies,
        outcome=contract.Outcome(
            result=finished.result,
            ending=finished.ending,
            loser=finished.loser,
            details=finished.details,
        ),
        final_fen="",
    )
    line = games.of_record(empty)
    named = line.opening()
    end = {"final_fen": line.fen, "eco": named.eco, "opening": named.name}
    return empty.model_copy(update=end), line
