"""TLCS: the game on the board in the lines of Tom's Live Chess Server, as its viewers read them.

A line is lasting (numbered and acknowledged by its transport) or passing: clocks, variations and
tables, which the next one replaces. A game begins with its site and players; each move is told
with the position after it; the result is told behind the last move, before anything of the next
game. Evals are White's view in centipawns, times hundredths of a second, variations UCI moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import chess

from orchestrator.broadcast.content import messages

Plain = Mapping[str, Any]
MATE_CP: Final = 100_000  # centipawns that a mate is told as, less those of its moves
GAMES: Final = 100  # of a table: the latest
_SIDES: Final = {"white": "W", "black": "B"}
_LEAST_CELL: Final = 3


class Lines(NamedTuple):
    """What is told at one moment."""

    lasting: list[str]
    passing: list[str]


class Told:
    """What has been told of the season that viewers see; ``document`` is a season's game now."""

    def __init__(self, shown: Callable[[], str], document: Callable[[str], Plain | None]) -> None:
        """Begin without a game."""
        self._shown, self._document = shown, document
        self._game: tuple[str, str] | None = None
        self._head: list[str] = []
        self._moves: list[list[str]] = []  # of each ply: position, move, fifty-move count
        self._sans: list[str] = []
        self._clocks: list[str] = []
        self._result = ""  # once it has been told
        self._known = ""  # once it is known; it is told behind the last move

    def whole(self) -> Lines:
        """Return what somebody is told who comes now."""
        # With their positions: a viewer that takes a move twice goes on from there.
        lasting = [*self._head, *(line for move in self._moves for line in move[:2])]
        if self._moves:
            lasting.append(self._moves[-1][2])
        return Lines(lasting + [self._result] * bool(self._result), self._clocks)

    def take(self, delta: messages.Delta) -> Lines:
        """Return what viewers are told of a change."""
        lines, season = Lines([], []), str(delta.data.get("season", ""))
        if not season or season != self._shown():
            return lines
        game = delta.data.get("game")
        if delta.kind == "game":
            if game:
                self._take_game(delta.data, lines)
        elif delta.kind in {"ply", "clock", "search", "result"} and game:
            if self._game != (season, game):
                document = self._document(season)
                if document is None or document["game"] != game:
                    return lines
                self._take_game(document, lines)
            self._take_change(delta, lines)
        return lines

    def _take_game(self, whole: Plain, lines: Lines) -> None:
        plies, name = whole["plies"], (whole["season"], whole["game"])
        sans = [ply["san"] for ply in plies]
        again = self._game == name and sans[: len(self._sans)] == self._sans
        if not again or (self._result and whole["status"] != "finished"):
            self._end(lines)
            self._game, self._result, self._known = name, "", ""
            self._head, self._moves, self._sans = list(_head(whole)), [], []
            lines.lasting.extend(self._head)
        for ply in plies[len(self._sans) :]:
            self._take_ply(ply, lines)
        if whole["status"] == "finished":
            self._known = whole["result"]
            self._end(lines)
        elif whole.get("clock"):
            self._take_clock(whole["clock"], lines)

    def _end(self, lines: Lines) -> None:
        """Tell a result that is known, once."""
        if self._known and not self._result:
            self._result = f"result: {self._known}"
            lines.lasting.append(self._result)

    def _take_change(self, delta: messages.Delta, lines: Lines) -> None:
        data = delta.data
        if delta.kind == "ply":
            if data["ply"]["n"] == len(self._sans) + 1:
                self._take_ply(data["ply"], lines)
            self._take_clock(data["clock"], lines)
        elif delta.kind == "clock":
            self._take_clock(data, lines)
        elif delta.kind == "search":
            lines.passing.extend(_variation(data))
        else:
            self._known = data["result"]  # its last moves may still be on their way

    def _take_ply(self, ply: Plain, lines: Lines) -> None:
        board, turn, castling, _, fifty, number = ply["fen"].split(" ")
        full = int(number) - (turn == "w")  # the number has grown behind Black's move
        move = [
            f"FEN: {board} {turn} {castling}",
            f"{_SIDES[ply['side']]}MOVE: {full}. {ply['san']}",
            f"FMR: {fifty}",
        ]
        self._moves.append(move)
        self._sans.append(ply["san"])
        lines.lasting.extend(move)

    def _take_clock(self, clock: Plain, lines: Lines) -> None:
        times = {side: (clock[f"{side}_ms"] or 0) // 10 for side in _SIDES}
        sides = list(_SIDES) if clock["thinking"] != "black" else list(_SIDES)[::-1]
        self._clocks = [
            f"{_SIDES[side]}TIME: {times[side]} otim {times[other]}"
            for side, other in (sides, sides[::-1])
        ]
        lines.passing.extend(self._clocks)


def _head(whole: Plain) -> Iterator[str]:
    yield f"SITE: {_clean(whole['event_name'])} {_clean(whole['time_control']['white'])}"
    yield f"WPLAYER: {_clean(whole['white']['name'])}"
    yield f"BPLAYER: {_clean(whole['black']['name'])}"
    # The usual start makes a viewer forget the game before, also where it is not this game's.
    for fen in dict.fromkeys((chess.STARTING_FEN, whole["start_fen"])):
        yield f"FEN: {' '.join(fen.split(' ')[:3])}"


def _variation(search: Plain) -> Iterator[str]:
    if not search["line"]:
        return
    cp, mate = search["cp"], search["mate"]
    if mate is not None:
        cp = (MATE_CP - abs(mate)) * (1 if mate > 0 else -1)
    if cp is None:
        return
    moves = " ".join(step["uci"] for step in search["line"])
    nodes, nps = search["nodes"] or 0, search["nps"] or 0
    spent = 100 * nodes // nps if nps else 0
    yield f"{_SIDES[search['side']]}PV: {search['depth'] or 0} {cp} {spent} {nodes} {moves}"


def table(event: Plain, schedule: Sequence[Plain]) -> list[str]:
    """Return an event's crosstable and its latest games; columns are found by their heads."""
    rows = event["rows"]
    names = [_clean(row["name"]) for row in rows]
    cells = [
        [_cell(number, at, cell) for at, cell in enumerate(row["cells"])]
        for number, row in enumerate(rows)
    ]
    wide = 2 + max([len("ENGINE"), *map(len, names)])
    cell = 1 + max([_LEAST_CELL, *(len(text) for row in cells for text in row)])
    head = f"{'RANK':<6}{'ENGINE':<{wide}}{'GAMES':<7}{'POINTS':<8}"
    lines = [head + "".join(f"{number:<{cell}}" for number in range(1, len(rows) + 1))]
    lines.append("-" * len(lines[0]))
    for name, row, texts in zip(names, rows, cells, strict=True):
        rank = f"{row['rank']}."
        line_start = f"{rank:<6}{name:<{wide}}{row['games']:<7}{row['points']:<8}"
        lines.append(line_start + "".join(f"{text:<{cell}}" for text in texts))
    lines += ["", f"TOTAL GAMES = {event['statistics']['games']}", ""]
    done = [game for game in schedule if game["result"] and not game["annulled"]]
    lines += ["GAME NO.   WHITE   BLACK   RESULT", "-" * len(head)]
    lines += [
        f"{game['number']}   {_clean(game['white'])}   {_clean(game['black'])}   {game['result']}"
        for game in done[-GAMES:][::-1]
    ]
    return ["CTRESET", *(f"CT: {line.rstrip()}" for line in lines)]


def _cell(row: int, column: int, cell: Plain | None) -> str:
    if row == column:
        return "*" * _LEAST_CELL
    return str(cell["text"]) if cell and cell["text"] else "."


def _clean(text: str) -> str:
    """Return a name as one line whose words are a space apart: more would end a column."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
