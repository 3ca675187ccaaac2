"""The crosstable of an event as data: one line an engine, one cell a pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator.season.fold import events, pairing, standings, tally
from orchestrator.season.fold import state as season_state

_SIGNS: Final = ("0", "=", "1")  # by half points taken


@dataclasses.dataclass(frozen=True)
class Cell:
    """All games of one engine against another, in their order of play."""

    games: tuple[str, ...]
    half_points: tuple[int, ...]
    pairs: tuple[int, int, int, int, int] | None = None
    """Pairs of games with one opening and both colours, by the half points taken of their four
    (pentanomial); None where no pair is complete."""

    @property
    def text(self) -> str:
        """Write the results from the line's side, such as ``1=0``."""
        return "".join(_SIGNS[taken] for taken in self.half_points)


@dataclasses.dataclass(frozen=True)
class Line:
    """One engine: its row of the table, and a cell for each opponent in table order."""

    row: standings.Row
    cells: tuple[Cell | None, ...]


def crosstable(state: season_state.SeasonState, event_id: str) -> tuple[Line, ...]:
    """Return the lines of an event, best first; a cell is None on the diagonal."""
    event = state.events[event_id]
    played = _played(state, event)
    rows = pairing.table(state, event)
    return tuple(Line(row, tuple(_cells(row.engine, rows, played))) for row in rows)


def cell(engine: str, games: Iterable[events.Game]) -> Cell:
    """Return the results of an engine in all its games against one opponent, in that order."""
    finished = [game for game in games if game.finished is not None and not game.cancelled]
    taken = [_taken(engine, game) for game in finished]
    return Cell(tuple(game.id for game in finished), tuple(taken), _pairs(finished, taken))


def _taken(engine: str, game: events.Game) -> int:
    assert game.finished is not None
    white, black = tally.halves(game.finished.result)
    return white if game.white == engine else black


def _pairs(
    games: Sequence[events.Game], taken: Sequence[int]
) -> tuple[int, int, int, int, int] | None:
    """Count pairs by the half points taken; a game whose counterpart is not played is none yet."""
    single: dict[tuple[str | None, int | None, int | None, str], int] = {}
    counts = [0] * 5
    for game, half_points in zip(games, taken, strict=True):
        opening = (game.book, game.opening, game.start)
        if opening[1:] == (None, None):
            continue
        first = single.pop((*opening, game.black), None)  # by who had White in it
        if first is None:
            single[*opening, game.white] = half_points
        else:
            counts[first + half_points] += 1
    return (counts[0], counts[1], counts[2], counts[3], counts[4]) if any(counts) else None


_Played = dict[tuple[str, str], list[events.Game]]


def _played(state: season_state.SeasonState, event: events.EventState) -> _Played:
    played: _Played = {}
    for game in map(state.game, event.order):
        played.setdefault((game.white, game.black), []).append(game)
        played.setdefault((game.black, game.white), []).append(game)
    return played


def _cells(engine: str, rows: Sequence[standings.Row], played: _Played) -> list[Cell | None]:
    return [
        None if row.engine == engine else cell(engine, played.get((engine, row.engine), ()))
        for row in rows
    ]
