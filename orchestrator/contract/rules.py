"""What an event asks of its games: limits, time-outs, early ends, interruptions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

import pydantic

from orchestrator.contract import codec

MEMORY_MB: Final = 16 << 20  # MiB: 16 TiB, beyond any host
Milliseconds: TypeAlias = Annotated[int, pydantic.Field(ge=0, le=864_000_000)]  # at most 10 days


class Limits(codec.Message):
    """Limits set on every engine of an event (TCEC Season 16, Engine Specific Configuration).

    ``None`` for a size is no limit, for a path no tablebases of that kind.
    """

    threads: int = pydantic.Field(default=1, ge=1, le=65_536)
    hash_mb: int = pydantic.Field(default=16, ge=1, le=MEMORY_MB)
    syzygy_path: str | None = None
    free: bool = False  # `farm match`: nothing is set but what each author asks
    minor_hash_mb: int | None = pydantic.Field(
        default=None, ge=0, le=MEMORY_MB
    )  # all of them together
    tablebase_cache_mb: int | None = pydantic.Field(default=None, ge=0, le=MEMORY_MB)  # likewise
    nalimov_path: str | None = None
    gaviota_path: str | None = None
    scorpio_path: str | None = None
    tablebases: Literal["all", "one"] = "all"  # N1 Endgame Tablebases
    author_settings: Literal["free", "restricted"] = "free"  # N1 Other Settings


class Timeouts(codec.Message):
    """Time-outs off the clock, and how long after its flag an engine is waited for."""

    start_ms: Milliseconds = 60_000  # process start to uciok: big networks load here
    ready_ms: Milliseconds = 120_000  # readyok: hash allocation and tablebase loading
    stop_ms: Milliseconds = 1_000  # `stop` goes out this long after the flag
    stall_ms: Milliseconds = 10_000  # nothing this long after `stop` is a stalled connection
    quit_ms: Milliseconds = 2_000  # `quit` to exit, then the dead man kills
    features_ms: Milliseconds = (
        8_000  # XBoard: `protover 2` to the end of the features, if none is told
    )
    settle_ms: Milliseconds = 1_000  # XBoard engines without `ping`: from the last command to ready
    move_ms: Milliseconds = 600_000  # the longest move of an engine that plays without a clock


class EvalDraw(codec.Message):
    """Draw after ``plies`` plies in a row with both engines' evals inside the bound.

    ``min_ply`` is the first ply (book plies included) that may end the game: "move 35"
    is 70. A capture or pawn move sets the count to 0 and is not counted (``reset``), is
    counted as the first of a new row (``restart``), or changes nothing (``ignore``).
    """

    min_ply: int = pydantic.Field(default=0, ge=0)
    bound_cp: int = pydantic.Field(ge=0)
    plies: int = pydantic.Field(ge=1)
    zeroing: Literal["reset", "restart", "ignore"] = "reset"


class EvalWin(codec.Message):
    """Win after ``plies`` plies in a row with both engines' evals beyond the bound.

    ``zeroing`` says what captures and pawn moves do to the row, as in ``EvalDraw``.
    """

    min_ply: int = pydantic.Field(default=0, ge=0)
    bound_cp: int = pydantic.Field(gt=0)
    plies: int = pydantic.Field(ge=1)
    zeroing: Literal["reset", "restart", "ignore"] = "ignore"


class FewPiecesDraw(codec.Message):
    """Draw after ``plies`` plies in a row with few pieces and an eval inside the bound.

    ``pieces`` counts kings but not pawns, of both sides together; ``pawns`` likewise,
    ``None`` for any number (some events set a limit: FRC5 8 pieces, 8 pawns).
    """

    pieces: int = pydantic.Field(default=6, ge=2)
    pawns: int | None = pydantic.Field(default=None, ge=0)
    bound_cp: int = pydantic.Field(default=25, ge=0)
    plies: int = pydantic.Field(default=8, ge=1)


class Syzygy(codec.Message):
    """End the game by the tablebases at ``men`` men or fewer, kings and pawns included.

    ``path`` (directories, joined by ``:``) is the referee's; without it the engines' is
    taken. ``draw_only`` lets decided positions be played out, ``decided_only`` drawn ones;
    ``ignore_fifty`` takes a win that the fifty-move rule would cut short for a win.
    """

    men: int = pydantic.Field(default=6, ge=3, le=7)
    draw_only: bool = False
    decided_only: bool = False
    ignore_fifty: bool = False
    path: str | None = None

    @pydantic.model_validator(mode="after")
    def _ends_something(self) -> Self:
        if self.draw_only and self.decided_only:
            raise ValueError("draw_only and decided_only together end no game")
        return self


class MovesDraw(codec.Message):
    """cutechess' ``-draw``: from a move on, a score near zero for some moves by each side."""

    move_number: int = pydantic.Field(ge=1)
    move_count: int = pydantic.Field(ge=1)
    score_cp: int = pydantic.Field(ge=0)


class MovesResign(codec.Message):
    """cutechess' ``-resign``: a lost score for some moves, with the winner's if two-sided."""

    move_count: int = pydantic.Field(ge=1)
    score_cp: int = pydantic.Field(ge=0)
    twosided: bool = False


# The words of cutechess-cli and fastchess for these rules: the field, its value without the word
# (``None``: the word is required, since a rule without it would end games that nobody wants ended).
DRAW_WORDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "movenumber": ("move_number", None),
    "movecount": ("move_count", None),
    "score": ("score_cp", None),
}
RESIGN_WORDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "movecount": ("move_count", None),
    "score": ("score_cp", None),
    "twosided": ("twosided", "false"),
}


def missing_words(given: Container[str], words: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """Return which required words of a rule are not given."""
    return [word for word, (_, usual) in words.items() if usual is None and word not in given]


class Adjudication(codec.Message):
    """The rules that end a game early; a rule that is not there is not played.

    TCEC Seasons 16 and 17, rule 11; TCEC Cup and FRC, game ending; nTCEC 1, GUI Adjudication.

    ``rules`` names the preset the event file began with, ``max_moves`` counts full moves.
    """

    rules: str = ""
    syzygy: Syzygy | None = None
    eval_draw: EvalDraw | None = None
    few_pieces_draw: FewPiecesDraw | None = None
    eval_win: EvalWin | None = None
    draw: MovesDraw | None = None
    resign: MovesResign | None = None
    max_moves: int | None = pydantic.Field(default=None, ge=1)


class Interruptions(codec.Message):
    """What becomes of an interrupted game; a bound that is ``None`` decides nothing.

    TCEC Season 16, rule 15b; TCEC Cup, rule 7b.

    Both evals of a side's last engine move beyond ``win_cp`` for the same side win, both
    inside ``draw_cp`` after ``draw_moves`` moves by both draw; ``inclusive`` says whether the
    bounds themselves count. ``tablebase_men`` on the board are decided by tables, which
    ``syzygy_path`` names on the orchestrator's host (else the organizers are asked).
    ``otherwise`` the game is resumed, with ``compensation_ms`` for each side (``None``: what
    its own last move took), or restarted after the opening.

    ``excused_flags`` is how many losses of one engine in the event a stall of its host may
    excuse; one more counts (``None``: any number).
    """

    rules: str = ""
    win_cp: int | None = pydantic.Field(default=None, gt=0)
    draw_cp: int | None = pydantic.Field(default=None, ge=0)
    inclusive: bool = False
    draw_moves: int = pydantic.Field(default=35, ge=0)
    tablebase_men: int | None = pydantic.Field(default=None, ge=3, le=7)
    syzygy_path: str | None = None
    otherwise: Literal["resume", "restart"] = "resume"
    compensation_ms: Milliseconds | None = None
    when: Literal["at-once", "end-of-round"] = "at-once"  # CUP-7c, FRC-7c
    excused_flags: int | None = pydantic.Field(default=5, ge=0)
