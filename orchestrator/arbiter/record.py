"""The PGN of a finished game, in the dialect of TCEC's public archive or of match programs.

Tags: the seven-tag roster, then the others in alphabetical order. One comment with both
engines' options stands before the first move (TCEC's alone), one comment behind every move
(``pgn_comments``), the closing sentence of the verdict in the last one. Invariants: the
text reads back without an error whatever the engines wrote (braces, quotes, line ends);
no line is longer than 80 columns, but for words that cannot begin a line and, in the match
programs' dialects, for moves whose comment is longer; the text ends with an empty line, so
games can be appended to one another.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias, get_args

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import pgn_comments, redact, rmobility, san, verdict
from orchestrator.common import errors

COLUMNS = 80
Comments: TypeAlias = contract.PgnComments
Notation: TypeAlias = Literal["san", "uci"]
COMMENTS: tuple[str, ...] = get_args(Comments)

# Plies in SAN, each with the position behind it.
Played: TypeAlias = Sequence[tuple[str, boards.Reached]]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NO_LINES: Mapping[int, Sequence[str]] = {}
_BRACES = str.maketrans("{}", "()")
_TAG = re.compile(r'\s*\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_ESCAPED = re.compile(r"\\(.)")
_LAST_WORD = re.compile(r"(?:\A|(?<=[\s}]))(?:1-0|0-1|1/2-1/2|\*)\Z")
_ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")


def pgn(
    record: contract.GameRecord,
    *,
    minimal: bool = False,
    comments: Comments = "tcec",
    fields: AbstractSet[str] = frozenset(),
    notation: Notation = "san",
    played: Played = (),
    lines: Mapping[int, Sequence[str]] = _NO_LINES,
) -> str:
    """Write a finished game as PGN; a minimal one has no comments.

    ``played`` are the engines' plies as the board has them that the game was played on, where it
    is there: nothing is played again then. Moves in UCI notation are fastchess' own dialect of
    PGN. ``fields`` are those that it writes when it is asked for them (``nodes`` …), ``lines``
    those of engines by their ply, which stand in its comment as ``line="…"``. Raise
    ``BookError`` for an opening, ``LedgerDamagedError`` for a ply that cannot be played; neither
    comes from a referee.
    """
    tag_lines = [f'[{name} "{_tag_value(value)}"]' for name, value in tags(record).items()]
    if minimal:
        movetext = _wrap(_bare_movetext(record, notation, played))
    elif comments == "tcec":
        movetext = _wrap(_movetext(record, notation, played, lines))
    else:
        movetext = _lines(_peer_movetext(record, comments, fields, (notation, played), lines))
    return "\n".join([*tag_lines, "", *movetext, "", ""])


def tags(record: contract.GameRecord) -> dict[str, str]:
    """Return the game's tags in their order in the file; times of day are UTC."""
    order = record.order
    roster = {
        "Event": " - ".join(filter(None, (order.season_name, order.event_name))) or "?",
        "Site": order.site or record.hall or "?",
        "Date": _moment(record.started_ms).strftime("%Y.%m.%d"),
        "Round": order.round,
        "White": order.white.name,
        "Black": order.black.name,
        "Result": record.outcome.result,
    }
    start = boards.start_board(order.opening, order.variant)
    opening, _, variation = (record.opening or order.opening.name).partition(": ")
    others = {
        "BlackElo": None if order.black.rating is None else str(order.black.rating),
        "ECO": record.eco or order.opening.eco,
        **_position_tags(start, order.variant),
        "GameDuration": _duration(record.ended_ms - record.started_ms),
        "GameEndTime": timestamp(record.ended_ms),
        "GameStartTime": timestamp(record.started_ms),
        "Interruptions": str(len(record.interruptions) or ""),
        "Opening": opening,
        "PlyCount": str(len(order.opening.moves) + len(record.plies)),
        "RMobilityResult": record.r_mobility and rmobility.text(record.r_mobility),
        "Termination": verdict.termination(record.outcome),
        "TerminationDetails": record.outcome.details,
        **_time_controls(order),
        "Variation": variation,
        "WhiteElo": None if order.white.rating is None else str(order.white.rating),
    }
    return roster | {name: value for name, value in sorted(others.items()) if value}


def _time_controls(order: contract.GameOrder) -> dict[str, str]:
    white, black = str(order.control("white")), str(order.control("black"))
    if white == black:
        return {"TimeControl": white}
    own = {"WhiteTimeControl": white, "BlackTimeControl": black}
    clocks = {control.split(" ")[0] for control in (white, black)}
    return own if len(clocks) > 1 else {"TimeControl": clocks.pop(), **own}


def _position_tags(start: chess.Board, variant: boards.Variant) -> dict[str, str]:
    if variant == "standard" and start.fen() == chess.STARTING_FEN:
        return {}
    shown = {"FEN": start.fen(), "SetUp": "1"}
    return shown if variant == "standard" else shown | {"Variant": variant}


# -- a game whose result is not that of its moves -----------------------------------------


def read_tags(text: str) -> dict[str, str]:
    """Return the tags that a game's PGN begins with."""
    return _head(text)[0]


def retold(text: str, tags: Mapping[str, str], remark: str) -> str:
    """Return a game's PGN with other tags, their result behind the moves, and a last remark.

    The moves and what was said of them stay. The remark goes into the last comment, where there
    is one: viewers keep one comment of a move.
    """
    _, end = _head(text)
    movetext = _LAST_WORD.sub("", text[end:].strip()).rstrip()
    comment = _comment(remark)
    if movetext.endswith("}"):
        movetext = f"{movetext[:-1].rstrip()};"
    else:
        comment = f"{{{comment}"
    roster = {name: tags[name] for name in _ROSTER if name in tags}
    in_order = roster | {name: value for name, value in sorted(tags.items()) if value}
    tag_lines = [f'[{name} "{_tag_value(value)}"]' for name, value in in_order.items()]
    ending = _wrap([f"{comment}}}", tags.get("Result", "*")])
    return "\n".join([*tag_lines, "", *filter(None, [movetext]), *ending, "", ""])


def _head(text: str) -> tuple[dict[str, str], int]:
    """Return the tags of a game and where they end."""
    tags: dict[str, str] = {}
    end = 0
    while tag := _TAG.match(text, end):
        tags.setdefault(tag[1], _ESCAPED.sub(r"\1", tag[2]))
        end = tag.end()
    return tags, end


# -- movetext ------------------------------------------------------------------------


def _bare_movetext(
    record: contract.GameRecord, notation: Notation, played: Played
) -> Iterator[str]:
    yield from (move for move, _ in _moves(record, notation, played, commented=False))
    yield record.outcome.result


def _movetext(
    record: contract.GameRecord,
    notation: Notation,
    played: Played,
    lines: Mapping[int, Sequence[str]],
) -> Iterator[str]:
    yield f"{{{_options(record)}}}"
    moves = list(_moves(record, notation, played))
    closing = verdict.sentence(record.outcome)
    if not moves:
        yield f"{{{_comment(closing)}}}"
    for position, (move, remark) in enumerate(moves, start=1):
        comment = " ".join([remark, *_quoted(lines.get(position, ()))])
        last = f"{comment} {closing}" if position == len(moves) else comment
        yield f"{move} {{{_comment(last)}}}"
    yield record.outcome.result


def _peer_movetext(
    record: contract.GameRecord,
    comments: Comments,
    fields: AbstractSet[str],
    written: tuple[Notation, Played],
    lines: Mapping[int, Sequence[str]],
) -> Iterator[str]:
    """Yield moves and comments as match programs write them: ``{+0.29/19 0.40s}``."""
    closing = verdict.peer_sentence(record.outcome, comments)
    plies = {ply.ply: ply for ply in record.plies}
    moves = [move for move, _ in _moves(record, *written, commented=False)]
    if not moves:
        yield f"{{{_comment(closing)}}}"
    for position, move in enumerate(moves, start=1):
        ply = plies.get(position)
        if ply is None:
            comment = "book"
        elif comments == "cutechess":
            comment = pgn_comments.cutechess(ply)
        else:
            comment = pgn_comments.fastchess(ply, fields)
        comment = ", ".join([comment, *_quoted(lines.get(position, ()))])
        last = f"{comment}, {closing}" if position == len(moves) else comment
        yield f"{move} {{{_comment(last)}}}"
    yield record.outcome.result


def _quoted(lines: Sequence[str]) -> list[str]:
    return [f'line="{line}"' for line in lines]


def _moves(
    record: contract.GameRecord,
    notation: Notation,
    played: Played,
    *,
    commented: bool = True,
) -> Iterator[tuple[str, str]]:
    """Yield every ply (with its number where it needs one) and its comment."""
    board = boards.start_board(record.order.opening, record.order.variant)
    first = board.ply()
    for move in boards.book_moves(board, record.order.opening):
        number = _number(board.ply(), first)
        san_move = board.san_and_push(move)
        text = san_move if notation == "san" else board.peek().uci()
        yield number + text, pgn_comments.book(board)
    own = {chess.WHITE: pgn_comments.Predictions(), chess.BLACK: pgn_comments.Predictions()}
    interruptions = _interruptions(record)
    material = pgn_comments.Material()
    plies = zip(record.plies, played or itertools.repeat(None), strict=False)
    for at, (ply, reached) in enumerate(plies, start=board.ply()):
        mover, number = board.turn, _number(at, first)
        pv = boards.variation(board, ply.pv) if ply.pv and commented else ()
        san_move = _play(board, ply, reached)
        if notation == "san":
            text = number + san_move
        else:
            text = number + (ply.move if reached is not None else board.peek().uci())
        if not commented:
            yield text, ""
            continue
        comment = pgn_comments.engine(board, ply, pv, own[mover], material.balance(board))
        if ply.ply in interruptions:
            comment = " ".join([comment, *interruptions[ply.ply]])
        yield text, comment
        own[mover].expect(board, ply.ponder)
        own[not mover].answer(san_move)


def _interruptions(record: contract.GameRecord) -> dict[int, list[str]]:
    """Return, by the ply before it, what is told of each interruption."""
    remarks: dict[int, list[str]] = {}
    for interruption in record.interruptions:
        remarks.setdefault(interruption.ply, []).append(pgn_comments.interruption(interruption))
    return remarks


def _play(
    board: chess.Board, ply: contract.PlyRecord, reached: tuple[str, boards.Reached] | None
) -> str:
    """Set up the position after a ply, and return the ply in SAN."""
    if reached is not None:
        boards.put(board, reached[1])
        return reached[0]
    played = san.push_uci(board, ply.move)
    if played is None:
        raise errors.LedgerDamagedError(
            f"ply {ply.ply}: {ply.move!r} is not legal in {board.fen()}"
        )
    return played


def _number(ply: int, first: int) -> str:
    """Return what stands before the move behind so many plies; ``first`` is the game's first."""
    if ply % 2 == 0:
        return f"{ply // 2 + 1}. "
    return f"{ply // 2 + 1}... " if ply == first else ""


def _options(record: contract.GameRecord) -> str:
    white = _engine_options(record.order.white, record.white)
    black = _engine_options(record.order.black, record.black)
    return _comment(f"WhiteEngineOptions: {white}, BlackEngineOptions: {black}")


def _engine_options(spec: contract.EngineSpec, report: contract.EngineReport) -> str:
    settings = [f"Protocol={spec.protocol}"]
    given = ((option.name, option.set) for option in report.options)
    settings += [f"{name}={redact.option(value)}" for name, value in given if value]
    # viewers split this comment at semicolons
    return "; ".join(setting.replace(";", ",") for setting in settings) + ";"


# -- text that engines and operators wrote ---------------------------------------------


def _comment(text: str) -> str:
    line = _one_line(text)
    return line.translate(_BRACES) if "{" in line or "}" in line else line


def _tag_value(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _one_line(text: str) -> str:
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    elif "  " not in text and not text.startswith(" ") and not text.endswith(" "):
        return text  # of what is printable a space alone is white
    return " ".join(text.split())


def _lines(moves: Iterable[str]) -> Iterator[str]:
    """Yield lines of whole moves with their comments, as match programs break them."""
    line = ""
    for move in moves:
        if line and len(line) + 1 + len(move) > COLUMNS:
            yield line
            line = ""
        line = f"{line} {move}" if line else move
    yield line


def _wrap(tokens: Iterable[str]) -> Iterator[str]:
    text, at = " ".join(tokens), 0
    while len(text) - at > COLUMNS:
        end = text.rfind(" ", at + 1, at + COLUMNS + 1)
        if end < 0:  # a word that is longer than a line
            end = text.find(" ", at + COLUMNS)
        # a line that begins with % or ; is skipped by readers, with [ it is a tag
        while end >= 0 and text.startswith(("%", ";", "["), end + 1):
            end = text.find(" ", end + 1)
        if end < 0:
            break
        yield text[at:end]
        at = end + 1
    yield text[at:]


# -- times -----------------------------------------------------------------------------


def _moment(at_ms: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=at_ms)


def timestamp(at_ms: int) -> str:
    """Write a moment as TCEC's archives do; ``moment_ms`` reads it."""
    moment = _moment(at_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def moment_ms(text: str) -> int | None:
    """Read a moment that ``timestamp`` wrote, None where it is none."""
    try:
        moment = dt.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f UTC").replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    return round(moment.timestamp() * 1000)


def _duration(elapsed_ms: int) -> str:
    seconds = max(elapsed_ms, 0) // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
