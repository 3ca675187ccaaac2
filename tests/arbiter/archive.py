"""TCEC's public game archive as test data: read fast, replayed ply by ply.

The games are those of TCEC's public game archive (TCEC organization, CC BY-SA 3.0), read
from the shared data folder. Comments are read by their fields; a move without a comment
is one whose engine gave no eval. ``Printer`` recomputes the fields that TCEC's program
printed; it knows two faults of that program that are not ours:

* from 2017 on, a rook move that gives up a castling right set its fifty-move counter (and
  with it the draw rule's row) to 0;
* Rd of the few-pieces rule left out how many pieces there are, and stood idle on captures
  and pawn moves, while the rule itself counted on.

The programs of 2013 wrote tl and mt in whole seconds, cut off, so a computed tl may be a
second too high; in Season 5 mt also held a lag that the clock was not charged.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import chess
import pytest

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import comments
from orchestrator.arbiter.adjudication import judge, tablebase

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
# Not in truth.md; found by search: ends 97 of 97 draws at their ply and no other game.
FRC5 = contract.FewPiecesDraw(pieces=8, pawns=8, bound_cp=20, plies=10)

LAG_MS = 3000  # ms: what the program of Season 5 put into mt but not on the clock, at most

_TOKEN = re.compile(r";\s*\{[^}]*\}|\{([^}]*)\}|([^\s{}]+)")
_TAG = re.compile(r'\[(\w+) "(.*)"\]')
_FIELD = re.compile(r"(\w+)=([^,]*),")
_RESULTS = frozenset({"1-0", "0-1", "1/2-1/2", "*"})


@dataclasses.dataclass(frozen=True)
class Told:
    """One recorded ply: the move (UCI notation) and the fields of its comment."""

    move: str
    fields: dict[str, str]
    book: bool


@dataclasses.dataclass(frozen=True)
class Game:
    """One recorded game; ``number`` counts from 1 in the file."""

    number: int
    tags: dict[str, str]
    plies: list[Told]

    @property
    def variant(self) -> boards.Variant:
        """Return the variant by its tag."""
        return "fischerandom" if self.tags.get("Variant") == "fischerandom" else "standard"

    @property
    def old(self) -> bool:
        """Say whether the game was played under the program of 2013: whole seconds."""
        return "TerminationDetails" not in self.tags

    @property
    def opening(self) -> contract.Opening:
        """Return the start position and the book moves."""
        book = tuple(told.move for told in self.plies if told.book)
        return contract.Opening(fen=self.tags.get("FEN"), moves=book)

    def start(self) -> chess.Board:
        """Return the start position."""
        return boards.start_board(self.opening, self.variant)


@dataclasses.dataclass(frozen=True)
class Event:
    """One event file, with what is known of it."""

    name: str
    rules: contract.Adjudication
    games: list[Game]
    truth: dict[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """Return what is known of each game, in the file's order."""
        return [dict(zip(self.truth["columns"], row, strict=True)) for row in self.truth["games"]]


def names() -> list[str]:
    """Return the events of the shared data folder."""
    return sorted(path.stem for path in (DATA / "truth").glob("*_-_*.json")) + sorted(
        path.stem for path in (DATA / "truth").glob("Cup_*_*.json")
    )


@functools.cache
def truth_of(name: str) -> dict[str, Any]:
    """Return what is known of an event beside its games."""
    found: dict[str, Any] = json.loads((DATA / "truth" / f"{name}.json").read_text())
    return found


def eras() -> list[list[str]]:
    """Return the events that were played by the same rules together."""
    groups: dict[str, list[str]] = {}
    for name in names():
        groups.setdefault(_rules(truth_of(name)).encode(), []).append(name)
    return list(groups.values())


@functools.cache
def event(name: str) -> Event:
    """Read an event file; skip by name where the shared data folder is missing."""
    path = DATA / "pgn" / f"TCEC_{name}.pgn.gz"
    if not path.exists():
        pytest.skip("needs the shared data folder with TCEC's game archive")
    truth = truth_of(name)
    text = gzip.decompress(path.read_bytes()).decode(errors="replace")
    chunks = re.split(r"\n(?=\[Event )", text)
    games = [_game(number, chunk) for number, chunk in enumerate(chunks, start=1)]
    return Event(name, _rules(truth), games, truth)


def _game(number: int, chunk: str) -> Game:
    head, _, body = chunk.strip().partition("\n\n")
    plies: list[tuple[str, str]] = []
    for comment, word in (match.groups() for match in _TOKEN.finditer(body)):
        if comment is not None:
            if plies:  # the first comment is the engines' options
                plies[-1] = (plies[-1][0], plies[-1][1] + comment)
        elif word is not None and (san := re.sub(r"^\d+\.+", "", word)) and san not in _RESULTS:
            plies.append((san, ""))
    game = Game(number, dict(_TAG.findall(head)), [])
    game.plies.extend(_told(plies, game.start()))
    return game


def _told(plies: list[tuple[str, str]], board: chess.Board) -> Iterator[Told]:
    in_book = True
    for san, comment in plies:
        move = board.parse_san(san)
        uci = board.uci(move)
        board.push(move)
        text = " ".join(comment.split())
        fields = dict(_FIELD.findall(text))
        untouched = {"d": "1", "mt": "00:00:00", "n": "0"}.items() <= fields.items()
        in_book = in_book and (text.startswith("book") or untouched)
        yield Told(uci, fields, in_book)


def _rules(truth: dict[str, Any]) -> contract.Adjudication:
    # the programs of 2013 had no Syzygy tables, and ended by others not always at once
    old = truth["group"].startswith("nTCEC")
    rules: dict[str, Any] = {"syzygy": None if old else contract.Syzygy(men=6)}
    rule = truth["adjudication_rule"]
    if rule is None:
        assert truth["group"] == "Frc5"
        rules["few_pieces_draw"] = FRC5
    elif rule["kind"] == "new":
        rules["few_pieces_draw"] = contract.FewPiecesDraw(
            pieces=rule["max_pieces"], bound_cp=rule["draw_cp"], plies=rule["draw_n"]
        )
    else:
        rules["eval_draw"] = contract.EvalDraw(
            min_ply=rule["draw_ply"], bound_cp=rule["draw_cp"], plies=rule["draw_n"]
        )
        if "win_n" in rule:
            win = contract.EvalWin(bound_cp=rule["win_cp"], plies=rule["win_n"])
            rules["eval_win"] = win
    return contract.Adjudication(**rules)


# -- replaying ---------------------------------------------------------------------------


@dataclasses.dataclass
class Replayed:
    """One engine ply of a replay: what the file says of it and what our rules say."""

    number: int
    mover: contract.Side
    told: Told
    score: contract.Score | None
    board: chess.Board
    ruling: judge.Ruling
    ending: contract.Outcome | None


def replay(
    game: Game, rules: contract.Adjudication, prober: tablebase.Prober | None = None
) -> Iterator[Replayed]:
    """Feed a game to the rules, up to the ply where they or the board end it.

    ``board`` is the game's own and goes on with the next ply.
    """
    played, judged = boards.GameBoard(game.opening, game.variant), judge.Judge(rules, prober)
    for told in game.plies[played.book_plies :]:
        mover = played.turn
        played.push(chess.Move.from_uci(told.move))
        score = score_of(told.fields.get("wv", told.fields.get("ev")), mover)
        ruling = judged.take(played.position(), played.ply, score)
        ending = played.ending() or ruling.outcome
        yield Replayed(played.ply, mover, told, score, played.position(), ruling, ending)
        if ending is not None:
            return


class Known:
    """A tablebase that knows the result of one recorded game (no 6-men tables are here)."""

    def __init__(self, result: str) -> None:
        self._white = {"1-0": 2, "0-1": -2}.get(result, 0)

    def wdl(self, board: chess.Board) -> int:
        """Return the recorded result for the side to move."""
        return self._white if board.turn else -self._white

    def dtz(self, board: chess.Board) -> int:
        """Return a distance that the fifty-move counter never cuts short."""
        return self.wdl(board) // 2


def score_of(text: str | None, mover: contract.Side) -> contract.Score | None:
    """Read an eval in White's view back into the mover's score; a mate has ``M`` or ``#``."""
    if text is None:
        return None
    sign = 1 if (not text.startswith("-")) == (mover == "white") else -1
    number = text.lstrip("-+")
    if number[:1] in ("M", "#"):
        plies = int(re.sub(r"\D", "", number) or "1")
        return contract.Score(mate=sign * ((plies + 1) // 2))
    return contract.Score(cp=sign * round(100 * float(number)))


# -- fields as TCEC's program printed them -------------------------------------------------


class Printer:
    """Recomputes mb, R50, Rd, Rr and tl of one game's engine plies from the game itself."""

    def __init__(self, game: Game, rules: contract.Adjudication) -> None:
        self._game, self._rules = game, rules
        self._judge = judge.Judge(rules)
        self._board = game.start()
        self._halfmoves = self._board.halfmove_clock
        self._few_row = 0
        self._left: dict[contract.Side, int | None] = dict.fromkeys(("white", "black"))
        base, _, increment = game.tags["TimeControl"].partition("+")
        self._increment_ms = int(increment) * 1000
        self._lag_ms = LAG_MS if "wv" in game.plies[-1].fields else 0
        if not game.old:
            self._left = dict.fromkeys(("white", "black"), int(base) * 1000)
        for told in game.plies[: len(game.opening.moves)]:
            self._push(told)

    def fields(self, ply: Replayed) -> dict[str, str]:
        """Play an engine's move and return the fields behind it."""
        self._push(ply.told)
        board = self._board.copy(stack=False)
        if not self._game.old:
            board.halfmove_clock = self._halfmoves
        counters = self._judge.take(board, ply.number, ply.score).counters
        rd = counters.rd if self._rules.few_pieces_draw is None else self._few_rd(ply)
        found = {
            "mb": comments.material_balance(board),
            "R50": str(counters.moves_to_fifty),
            "Rd": str(comments.RULE_OFF if rd is None else rd),
            "Rr": str(comments.RULE_OFF if counters.rr is None else counters.rr),
        }
        left = self._time_left(ply)
        return found if left is None else found | {"tl": left}

    def _push(self, told: Told) -> None:
        board = self._board
        rights = board.castling_rights
        move = chess.Move.from_uci(told.move)
        rook = board.piece_type_at(move.from_square) == chess.ROOK
        board.push(move)
        lost_by_rook = rook and board.castling_rights != rights
        self._halfmoves = 0 if lost_by_rook or not board.halfmove_clock else self._halfmoves + 1

    def _few_rd(self, ply: Replayed) -> int:
        rule = self._rules.few_pieces_draw
        assert rule is not None
        within = ply.score is not None and abs(ply.score.cp or 0) <= rule.bound_cp
        within = within and ply.score is not None and ply.score.mate is None
        shown = self._few_row + 1 if within and self._halfmoves else 0
        to_draw = ply.ruling.counters.plies_to_draw
        assert to_draw is not None
        self._few_row = rule.plies - to_draw
        return max(0, rule.plies - shown) if shown else -rule.plies - 1

    def _time_left(self, ply: Replayed) -> str | None:
        """Return tl from the mover's tl before, ``None`` where one of the two is missing."""
        told, before = ply.told.fields, self._left[ply.mover]
        if "tl" not in told:
            self._left[ply.mover] = None
            return None
        self._left[ply.mover] = _ms(told["tl"])
        if before is None:
            return None
        left = before - _ms(told["mt"]) + self._increment_ms
        if self._game.old and -1000 <= _ms(told["tl"]) - left <= self._lag_ms:
            return told["tl"]
        return str(left)


def _ms(text: str) -> int:
    if ":" not in text:
        return int(text)
    hours, minutes, seconds = text.split(":")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000
