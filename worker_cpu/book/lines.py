"""Book lines: the moves to an exit, how often it was played, and how it is written.

Exits are compared as positions (pieces, side to move, castling, en passant), so lines
that transpose into each other are one. Written books read back with
``arbiter.openings``, names and ECO codes included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import eco

Format: TypeAlias = Literal["pgn", "epd"]
COLUMNS = 80


@dataclasses.dataclass(frozen=True)
class Line:
    """One book exit; ``wins``, ``draws`` and ``losses`` are White's, of known results."""

    opening: contract.Opening
    count: int = 1
    wins: int = 0
    draws: int = 0
    losses: int = 0
    cp: int | None = None

    def board(self, variant: boards.Variant = "standard") -> chess.Board:
        """Return the exit's position."""
        board = boards.start_board(self.opening, variant)
        for move in boards.book_moves(board, self.opening):
            board.push(move)
        return board

    def merged(self, other: Line) -> Line:
        """Return this line with another one's games."""
        return dataclasses.replace(
            self,
            count=self.count + other.count,
            wins=self.wins + other.wins,
            draws=self.draws + other.draws,
            losses=self.losses + other.losses,
        )

    def remark(self) -> str:
        """Return what is known of the exit in a few words."""
        decided = self.wins + self.draws + self.losses
        parts = [f"{self.count} games"] if self.count > 1 or decided else []
        parts += [f"+{self.wins} ={self.draws} -{self.losses}"] if decided else []
        parts += [f"{self.cp / 100:+.2f}"] if self.cp is not None else []
        return ", ".join(parts)


def named(line: Line, variant: boards.Variant = "standard") -> Line:
    """Return the line with ECO code and name where its book has none."""
    if variant != "standard":
        return line
    start = boards.start_board(line.opening, variant)
    eco_name = eco.of_moves(start, line.opening.moves)
    opening = line.opening.model_copy(
        update={"eco": line.opening.eco or eco_name.eco, "name": line.opening.name or eco_name.name}
    )
    return dataclasses.replace(line, opening=opening)


def written(lines: Sequence[Line], form: Format, variant: boards.Variant = "standard") -> str:
    """Write a book; its lines stay in their order."""
    if form == "epd":
        return "".join(_epd(line, variant) for line in lines)
    games = (_pgn(line, f"{at}", variant) for at, line in enumerate(lines, start=1))
    return "".join(games)


def _epd(line: Line, variant: boards.Variant) -> str:
    operations = {"eco": line.opening.eco, "id": line.opening.name, "c0": line.remark()}
    operations_text = "".join(
        f" {key} {_quoted(text)};" for key, text in operations.items() if text
    )
    return f"{line.board(variant).epd()}{operations_text}\n"


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', "'"))


def _pgn(line: Line, number: str, variant: boards.Variant) -> str:
    opening, _, variation = line.opening.name.partition(": ")
    tags = {
        "Event": "Book",
        "Site": "?",
        "Date": "????.??.??",
        "Round": number,
        "White": "?",
        "Black": "?",
        "Result": "*",
        "ECO": line.opening.eco,
        "FEN": line.opening.fen or "",
        "Opening": opening,
        "SetUp": "1" if line.opening.fen else "",
        "Variant": "" if variant == "standard" else variant,
        "Variation": variation,
    }
    head = "".join(f'[{key} "{_tag(text)}"]\n' for key, text in tags.items() if text)
    return f"{head}\n{_wrapped(_moves(line, variant))}\n\n"


def _tag(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _moves(line: Line, variant: boards.Variant) -> Iterable[str]:
    board = boards.start_board(line.opening, variant)
    for at, move in enumerate(boards.book_moves(board, line.opening)):
        if board.turn == chess.WHITE:
            yield f"{board.fullmove_number}."
        elif at == 0:
            yield f"{board.fullmove_number}..."
        yield board.san_and_push(move)
    if line.remark():
        yield from f"{{{line.remark()}}}".split()
    yield "*"


def _wrapped(tokens: Iterable[str]) -> str:
    rows = [""]
    for word in tokens:
        if len(rows[-1]) + 1 + len(word) > COLUMNS:
            rows.append(word)
        else:
            rows[-1] = f"{rows[-1]} {word}".lstrip()
    return "\n".join(rows)
