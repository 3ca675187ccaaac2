"""A match of ``farm match`` as viewers see it: the documents of a season with one event.

Pure: made of what the journal says. A match may have tens of thousands of games, so a result
changes counts and adds one row; lists that grow are joined when somebody asks for them, and
those that a browser has to lay out hold the newest games alone.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.arbiter import redact
from orchestrator.broadcast.content import documents, statistics
from orchestrator.common import text
from orchestrator.rating import elo, sprt
from orchestrator.testmatch import match_journal, standings

SEASON: Final = "match"  # the id of the page's only season
EVENT: Final = "match"  # and of its event
ROWS: Final = 5_000  # games in the schedule: the newest
CELL: Final = 40  # results in a cell of the crosstable: the newest
POINTS: Final = 600  # of the graph; of twice as many every other one goes


def board_id(board: int, season: str = SEASON) -> str:
    """Return the season's id as the page of a board asks for it; boards count from 1."""
    return season if board == 1 else f"{season}-{board}"


def places(season: str) -> tuple[str, ...]:
    """Return where the documents of a match are, the game that is shown included."""
    base = f"seasons/{season}"
    event = f"{base}/events/{EVENT}"
    return (
        base,
        f"{base}/statistics",
        f"{base}/test",
        event,
        f"{event}/schedule",
        f"{base}/live",
    )


def result_told(result: match_journal.Result, plies: int = 0) -> contract.GameFinished:
    """Return a game of the journal as pages know finished games."""
    return contract.GameFinished(
        game=str(result.number),
        attempt=str(result.number),
        hall="",
        lane="",
        host="",
        result=result.result,
        ending=result.ending,
        loser=result.loser,
        details=result.details,
        plies=result.plies or plies,
        white_clock_ns=0,
        black_clock_ns=0,
        started_ms=result.started_ms,
        ended_ms=result.ended_ms,
        record_sha256="",
        note=result.note,
    )


@dataclasses.dataclass(frozen=True)
class _Slot:
    white: int
    black: int
    pair: int | None

    @property
    def engines(self) -> tuple[int, int]:
        return min(self.white, self.black), max(self.white, self.black)


@dataclasses.dataclass(frozen=True)
class Running:
    """A game that is played: its number, round, board, players and its beginning."""

    number: int
    round: str
    board: int
    white: str
    black: str
    started_ms: int
    place: str = ""  # where it is played, of a match in lanes


class Graph:
    """How LLR, or Elo with its error, went over the games; bounded, however many there are."""

    def __init__(self, test: sprt.Test | None) -> None:
        self._test = test
        self._every = 1
        self._points: list[tuple[int, float | None, float | None, float | None]] = []

    def add(self, table: standings.Standings) -> None:
        """Take a point after a game of two engines."""
        if table.played % self._every:
            return
        counts = table.between(0, 1)
        estimate = elo.logistic(counts)
        llr = None if self._test is None else self._test.llr(counts)
        elo_figures = (standings.finite(estimate.elo), standings.finite(estimate.error))
        self._points.append((table.played, llr, *elo_figures))
        if len(self._points) >= 2 * POINTS:
            self._points = self._points[1::2]
            self._every *= 2

    def data(self) -> dict[str, Any]:
        """Return the columns of the graph."""
        names = ("games", "llr", "elo", "error")
        columns = list(zip(*self._points, strict=True)) or [()] * len(names)
        return {name: list(column) for name, column in zip(names, columns, strict=True)}


class MatchView:
    """The results of a match so far, and the documents that show them."""

    def __init__(
        self,
        about: match_journal.About,
        launched_ms: int,
        boards: int = 1,
        season: str = SEASON,
    ) -> None:
        """Begin; ``boards`` have pages of their own, ``season`` is the id of the first one's."""
        self.about, self._launched_ms, self._boards = about, launched_ms, boards
        self._season = season
        self.names = tuple(engine.name for engine in about.engines)
        self.reason: str | None = None  # why it is over; None while it is played
        self.running: dict[int, Running] = {}  # by board
        self.tuning: Callable[[], dict[str, Any] | None] = lambda: None  # where one stands
        self._begin()

    def _begin(self) -> None:
        about = self.about
        self.results: dict[int, match_journal.Result] = {}
        self._table = standings.Standings(self.names, adaptive=about.adaptive)
        self._counts = statistics.Counts()
        self._rows: deque[bytes] = deque(maxlen=ROWS)
        self._cells: dict[tuple[str, str], deque[tuple[int, float]]] = defaultdict(
            lambda: deque(maxlen=CELL)
        )
        self._graph = Graph(about.test)

    @property
    def total(self) -> int:
        """Return how many games there are to be."""
        return max(self.about.games, len(self.results))

    def add(self, result: match_journal.Result) -> None:
        """Count a finished game; one that was told before changes nothing."""
        if result.number in self.results:
            return
        self.results[result.number] = result
        white, black = self.names.index(result.white), self.names.index(result.black)
        self._table.add(_Slot(white, black, result.pair), result)
        self._counts.count(result_told(result))
        self._rows.append(_encoded(_row(result)))
        half = standings.HALF_POINTS[result.result]
        self._cells[result.white, result.black].append((result.number, half / 2))
        self._cells[result.black, result.white].append((result.number, 1 - half / 2))
        if len(self.names) == 2:
            self._graph.add(self._table)

    def set_aside(self, numbers: Collection[int]) -> None:
        """Take results back: everything is counted again without them."""
        rest = [result for number, result in self.results.items() if number not in numbers]
        self._begin()
        for result in rest:
            self.add(result)

    # -- documents -----------------------------------------------------------------------

    def made(self, now_ms: int) -> dict[str, documents.Document]:
        """Return all documents but the games, by their place."""
        base = f"seasons/{self._season}"
        whole = {
            base: self.season(1, now_ms),
            f"{base}/statistics": self._counts.as_json(),
            f"{base}/test": self.test(),
            f"{base}/events/{EVENT}": self._event(),
        }
        made = {where: documents.of_json(value) for where, value in whole.items()}
        for board in range(2, self._boards + 1):
            alike = self.season(board, now_ms)
            made[f"seasons/{board_id(board, self._season)}"] = documents.of_json(alike)
        made[f"{base}/events/{EVENT}/schedule"] = self._schedule()
        return made

    def overview(self, now_ms: int) -> dict[str, Any]:
        """Return the match's line in the list of all seasons."""
        season = self.season(1, now_ms)
        kept = ("season", "name", "status", "champion", "launched_ms", "games")
        return {key: season[key] for key in kept}

    def season(self, board: int, now_ms: int) -> dict[str, Any]:
        """Return where the match stands, as the page of a board asks for it."""
        mine, about = self.running.get(board), self.about
        over = self.reason is not None
        progress = {"played": len(self.results), "total": self.total}
        remaining = 0.0 if over else self._remaining(now_ms)
        control = str(about.time_control)
        event = {
            "event": EVENT,
            "name": about.event,
            "status": "ranked" if over else "running",
            "colour": "red" if over else "green",
            "format": "match",
            "knockout": False,
            "variant": about.variant,
            "competition": None,
            "time_control": control,
            "time_control_words": about.clocks,
            "opens_at_ms": None,
            "entrants": list(self.names),
            "substitutes": {},
            "excused": {},
            "excused_allowed": None,
            "games": progress,
            "remaining_seconds": remaining,
            "estimated_start_ms": None,
        }
        return {
            "season": board_id(board, self._season),
            "kind": "match",
            "boards": [self._board(number) for number in range(1, self._boards + 1)],
            "name": about.event,
            "site": about.site,
            "status": "finished" if over else "running",
            "reason": self.reason or "",
            "launched_ms": self._launched_ms,
            "seed_sha256": "",
            "seed": None,
            "champion": None,
            "title": None,
            "games": progress,
            "remaining_seconds": remaining,
            "next_gate_ms": None,
            "decisions": [],
            "next": None,
            "waits": [],
            "running": None
            if mine is None
            else {
                "game": str(mine.number),
                "event": EVENT,
                "round": mine.round,
                "white": mine.white,
                "black": mine.black,
            },
            "events": [event],
        }

    def test(self) -> dict[str, Any]:
        """Return the table with Elo, the pairs by their points, and the sequential test."""
        two = len(self.names) == 2
        engines = [
            {
                "rank": rank_number,
                "name": self.names[rank.engine],
                **standings.numbers(self._table.of(rank.engine)),
                "elo": standings.finite(rank.elo),
                "elo_error": standings.finite(rank.error),
                "los": rank.superiority,
                "faults": {
                    kind: count for kind, count in self._table.faults(rank.engine).items() if count
                },
            }
            for rank_number, rank in enumerate(standings.ranks(self._table), start=1)
        ]
        return {
            "season": self._season,
            "games": len(self.results),
            "total": self.total,
            "first": self.names[0],
            "score": standings.numbers(self._table.between(0, 1)) if two else None,
            "engines": engines,
            "sprt": None
            if self.about.test is None or not two
            else told_test(self.about.test, self._table),
            "history": self._graph.data() if two else None,
            "running": [
                {
                    "game": str(game.number),
                    "white": game.white,
                    "black": game.black,
                    "place": game.place,
                }
                for game in sorted(self.running.values(), key=lambda game: game.number)
            ],
            "tuning": self.tuning(),
        }

    def _board(self, board: int) -> dict[str, Any]:
        mine = self.running.get(board)
        return {
            "season": board_id(board, self._season),
            "board": board,
            "white": "" if mine is None else mine.white,
            "black": "" if mine is None else mine.black,
            "game": "" if mine is None else str(mine.number),
        }

    def _remaining(self, now_ms: int) -> float:
        """Estimate the seconds that are left by the pace so far."""
        here = [
            result for result in self.results.values() if result.started_ms >= self._launched_ms
        ]
        if not here:
            return 0.0
        each = (now_ms - self._launched_ms) / len(here)
        return round(max(0.0, each * (self.total - len(self.results)) / 1000), 1)

    def _event(self) -> dict[str, Any]:
        order = [self.names[engine] for engine in self._table.ranked()]
        rows = [
            self._standing(position, name, order) for position, name in enumerate(order, start=1)
        ]
        return {
            "event": EVENT,
            "name": self.about.event,
            "status": "running" if self.reason is None else "ranked",
            "format": "match",
            "final": self.reason is not None,
            "open_decisions": 0,
            "chain": [],
            "entrants": list(self.names),
            "rows": rows if self.results else [],
            "bracket": None,
            "last": [str(n) for n in itertools.islice(reversed(self.results), statistics.LAST)],
            "statistics": self._counts.as_json() | {"engines": [self._colours(n) for n in order]},
        }

    def _standing(self, position: int, name: str, order: Sequence[str]) -> dict[str, Any]:
        engine = self.names.index(name)
        counts, faults = self._table.of(engine), self._table.faults(engine)
        return {
            "rank": position,
            "engine": name,
            "name": name,
            "rating": self.about.engines[engine].rating,
            "provisional": False,
            "points": counts.points,
            "games": counts.games,
            "wins": counts.wins,
            "draws": counts.draws,
            "losses": counts.losses,
            "crashes": faults["disconnect"] + faults["stall"],
            "tiebreaks": {},
            "decided_by": "points",
            "cells": [self._cell(name, other) for other in order],
        }

    def _cell(self, name: str, other: str) -> dict[str, Any] | None:
        met = self._cells.get((name, other))
        if not met:
            return None
        signs = {1.0: "1", 0.5: "=", 0.0: "0"}
        return {
            "games": [str(number) for number, _ in met],
            "text": "".join(signs[points] for _, points in met),
        }

    def _colours(self, name: str) -> dict[str, Any]:
        engine = self.names.index(name)
        others = [opponent for opponent in range(len(self.names)) if opponent != engine]
        white = [self._table.as_white(engine, other) for other in others]
        black = [self._table.as_white(other, engine).reversed() for other in others]
        row: dict[str, Any] = {"engine": name, "name": name}
        for side, met in (("white", white), ("black", black)):
            row[side] = {
                "wins": sum(counts.wins for counts in met),
                "draws": sum(counts.draws for counts in met),
                "losses": sum(counts.losses for counts in met),
            }
        return row

    def _schedule(self) -> documents.Document:
        rows = list(self._rows)
        now = sorted(self.running.values(), key=lambda game: game.number)
        rows += [_encoded(_running_row(game)) for game in now if game.number not in self.results]
        return documents.Document(lambda: b"[" + b",".join(rows) + b"]")


def told_test(test: sprt.Test, table: standings.Standings) -> dict[str, Any]:
    """Return a sequential test and where it stands."""
    counts = table.between(0, 1)
    figures = {"llr": test.llr(counts), "lower": test.lower, "upper": test.upper}
    return {**dataclasses.asdict(test), **figures, "accepted": test.verdict(counts)}


def _encoded(value: Mapping[str, Any]) -> bytes:
    return text.visible(contract.dumps(value)).encode()


def _row(result: match_journal.Result) -> dict[str, Any]:
    return {
        "game": str(result.number),
        "event": EVENT,
        "number": result.number,
        "round": str(result.round),
        "white": result.white,
        "black": result.black,
        "running": False,
        "cancelled": False,
        "annulled": False,
        "result": result.result,
        "started_ms": result.started_ms,
        "ending": result.ending.value,
        "details": result.details,
        "note": redact.text(result.note),
        "plies": result.plies,
        "duration_seconds": round((result.ended_ms - result.started_ms) / 1000, 1),
        "interruptions": 0,
    }


def _running_row(game: Running) -> dict[str, Any]:
    return {
        "game": str(game.number),
        "event": EVENT,
        "number": game.number,
        "round": game.round,
        "white": game.white,
        "black": game.black,
        "running": True,
        "cancelled": False,
        "annulled": False,
        "result": None,
        "started_ms": game.started_ms,
    }
