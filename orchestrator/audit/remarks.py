"""Read the comment behind a move, as each program writes it.

Fields (``wv=0.12, d=20,``) are TCEC's and the farm's own. cutechess, fastchess and WinBoard
write the mover's eval and the depth (``+0.12/20 1.5s``), Lichess commands (``[%eval 0.12]``):
their evals become the field ``wv``, White's view. Other text tells nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

from orchestrator import contract

_FIELD = re.compile(r"\b(\w+)=([^,]*)(?:,|$)")  # \b: words may be very long
_SCORE = re.compile(r"(?:\([^)]*\) ?)?([+-]?)([M#]?\d+(?:\.\d+)?)/\d+")
_COMMAND = re.compile(r"\[%eval ([+-]?)(#?)(-?)(\d+(?:\.\d+)?)")
_DECIMAL = re.compile(r"\d+(\.\d*)?|\.\d+")
_SILENT: Final = {"d": "1", "sd": "1", "pv": "", "wv": "0.00"}.items()
_UNTOUCHED: Final = {"d": "1", "mt": "00:00:00", "n": "0"}.items()


@functools.lru_cache(maxsize=4)  # all who look at a ply look one after the other
def fields(remark: str, mover: contract.Side) -> Mapping[str, str]:
    """Return the fields of a move's remark."""
    text = " ".join(remark.split())
    by_name = dict(_FIELD.findall(text))
    if "wv" in by_name or "ev" in by_name:
        return by_name
    if score := _SCORE.match(text):
        ahead = (score[1] != "-") == (mover == "white")
        by_name["wv"] = ("" if ahead else "-") + score[2]
    elif command := _COMMAND.search(text):
        sign = "-" if "-" in (command[1], command[3]) else ""
        by_name["wv"] = sign + command[2] + command[4]
    return by_name


def of_book(remark: str, mover: contract.Side) -> bool:
    """Say whether a move is the book's: marked, or (in 2013) without time and nodes."""
    return remark.lstrip().startswith("book") or fields(remark, mover).items() >= _UNTOUCHED


def told_eval(fields_of_move: Mapping[str, str]) -> str | None:
    """Return the eval of a move's fields, None where the engine gave none.

    TCEC's program wrote 0.00 at depth 1 without a variation then, and broke the draw
    rule's row (CUP-6b; so did the program in the years of S16-11b).
    """
    return (
        None
        if fields_of_move.items() >= _SILENT
        else fields_of_move.get("wv", fields_of_move.get("ev"))
    )


def score(evaluation: str | None, mover: contract.Side) -> contract.Score | None:
    """Read an eval in White's view back into the mover's score; a mate has ``M`` or ``#``.

    Words that are no eval are none.
    """
    if evaluation is None:
        return None
    sign = 1 if ("-" not in evaluation) == (mover == "white") else -1
    number = evaluation.lstrip("-+")
    if number[:1] in ("M", "#"):
        plies = int(re.sub(r"\D", "", number) or "1")
        return contract.Score(mate=sign * ((plies + 1) // 2))
    if not _DECIMAL.fullmatch(number):
        return None
    return contract.Score(cp=sign * round(100 * float(number)))
