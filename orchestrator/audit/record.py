"""The record of played events: who met whom, with which colours, opening and clock, and the result.

All that a season file can be compared with, without the moves. A record is written as lines of
JSON, one an event, and read back; engines, openings and clocks are numbered within an event.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import chess

from orchestrator import contract
from orchestrator.audit import reading, unpacking
from orchestrator.common import errors

_MIDDLE: Final = ("pppppppp", "8", "8", "8", "8", "PPPPPPPP")
_USUAL: Final = 518  # the number of the usual start position in Chess960

Start: TypeAlias = Literal["standard", "chess960", "double-chess960", "position"]


@dataclasses.dataclass(frozen=True)
class Game:
    """One played game; ``opening`` is equal for games that began alike.

    ``clocks`` are White's and Black's as the archive writes them, such as ``1800+3``, ``ended``
    is what ended the game in the archive's words.
    """

    round: str
    white: str
    black: str
    result: contract.Result | None
    opening: Hashable
    clocks: tuple[str, str]
    start: Start = "standard"
    ended: str = ""


@dataclasses.dataclass(frozen=True)
class Event:
    """The games of one event in their order of play; ``source`` is the archive's file."""

    title: str
    source: str
    games: tuple[Game, ...]

    @property
    def engines(self) -> tuple[str, ...]:
        """Return all engines in the order in which they first played."""
        names = (name for game in self.games for name in (game.white, game.black))
        return tuple(dict.fromkeys(names))


def of_games(games: Iterable[reading.Game], source: str) -> Event:
    """Return the record of an archive's file, which holds one event; most tags name it."""
    listed = sorted(games, key=lambda game: game.number)
    titles = collections.Counter(" ".join(game.tags.get("Event", "").split()) for game in listed)
    return Event(titles.most_common(1)[0][0], source, tuple(map(_game, listed)))


def _game(game: reading.Game) -> Game:
    both = game.tags.get("TimeControl", "")
    clocks = (game.tags.get("WhiteTimeControl", both), game.tags.get("BlackTimeControl", both))
    return Game(
        round=game.tags.get("Round", "?"),
        white=game.white,
        black=game.black,
        result=game.result,
        opening=game.opening.line,
        clocks=clocks,
        start=_start(game.tags.get("FEN")),
        ended=game.tags.get("TerminationDetails", ""),
    )


def _start(fen: str | None) -> Start:
    """Say what kind of start position a game has."""
    if fen is None:
        return "standard"
    board = chess.Board(fen, chess960=True)
    black, *middle, white = board.board_fen().split("/")
    arrays = all(sorted(row.lower()) == sorted("bbknnqrr") for row in (black, white))
    usual = [*middle, board.castling_xfen()] == [*_MIDDLE, "KQkq"] and board.turn
    if not arrays or not usual:
        return "position"
    if black != white.lower():
        return "double-chess960"
    return "standard" if board.chess960_pos() == _USUAL else "chess960"


def lines(events: Iterable[Event]) -> Iterator[str]:
    """Write a record, one line an event."""
    for event in events:
        yield json.dumps(_plain(event), separators=(",", ":"), ensure_ascii=False)


def _plain(event: Event) -> dict[str, Any]:
    openings = list(dict.fromkeys(game.opening for game in event.games))
    clocks = list(dict.fromkeys(clock for game in event.games for clock in game.clocks))
    ends = list(dict.fromkeys(game.ended for game in event.games))
    starts = list(dict.fromkeys(game.start for game in event.games))
    engines = list(event.engines)
    number = {opening: index for index, opening in enumerate(openings)}
    return {
        "title": event.title,
        "source": event.source,
        "engines": engines,
        "clocks": clocks,
        "ends": ends,
        "starts": starts,
        "games": [
            [
                game.round,
                engines.index(game.white),
                engines.index(game.black),
                game.result,
                number[game.opening],
                clocks.index(game.clocks[0]),
                clocks.index(game.clocks[1]),
                starts.index(game.start),
                ends.index(game.ended),
            ]
            for game in event.games
        ],
    }


def read(path: pathlib.Path) -> list[Event]:
    """Read a record, plain or gzip; raise ``UsageError`` for a file that is none.

    Lines that begin with ``#`` are remarks.
    """
    text = unpacking.text(path)
    try:
        return [_event(json.loads(line)) for line in text.splitlines() if _has_content(line)]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise errors.UsageError(f"{path}: is no record of played events: {error}") from None


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _event(plain: dict[str, Any]) -> Event:
    engines, clocks = plain["engines"], plain["clocks"]
    games = tuple(
        Game(
            round=round_,
            white=engines[white],
            black=engines[black],
            result=result,
            opening=opening,
            clocks=(clocks[first], clocks[second]),
            start=plain["starts"][start],
            ended=plain["ends"][ended],
        )
        for round_, white, black, result, opening, first, second, start, ended in plain["games"]
    )
    return Event(plain["title"], plain["source"], games)


def survey(paths: Sequence[pathlib.Path]) -> list[Event]:
    """Read the record of archives' files, each by itself; raise ``UsageError``."""
    return [of_games(reading.archive([path]), path.name) for path in paths]
