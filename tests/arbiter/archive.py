"""TCEC's public game archive as test data: read fast, replayed ply by ply.

The games are those of TCEC's public game archive (TCEC organization, CC BY-SA 3.0), read
from ``tests/data/tcec`` by the audit's reader. ``Printer`` recomputes the fields that
TCEC's program printed; it knows two faults of that program that are not ours:

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
from typing import Any

import chess
import tcec_events

from orchestrator import contract
from orchestrator.arbiter import pgn_comments
from orchestrator.arbiter.adjudication import judge
from orchestrator.audit import reading, replaying

# TCEC never published these numbers. Found by search: they end 97 of 97 draws at their ply and
# no other game.
FRC5 = contract.FewPiecesDraw(pieces=8, pawns=8, bound_cp=20, plies=10)

LAG_MS = 3000  # ms: what the program of Season 5 put into mt but not on the clock, at most

Told, Game = reading.Told, reading.Game
Replayed, Known = replaying.Replayed, replaying.Known
replay = replaying.replay


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


def eras() -> list[list[str]]:
    """Return the events that were played by the same rules together."""
    groups: dict[str, list[str]] = {}
    for name in tcec_events.names():
        groups.setdefault(_rules(tcec_events.expected(name)).encode(), []).append(name)
    return list(groups.values())


@functools.cache
def event(name: str) -> Event:
    """Read an event file."""
    truth = tcec_events.expected(name)
    text = gzip.decompress(tcec_events.games(name).read_bytes()).decode()
    return Event(name, _rules(truth), list(reading.games(text)), truth)


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
            "mb": pgn_comments.material_balance(board),
            "R50": str(counters.moves_to_fifty),
            "Rd": str(pgn_comments.RULE_OFF if rd is None else rd),
            "Rr": str(pgn_comments.RULE_OFF if counters.rr is None else counters.rr),
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
