"""What commands share that play games which count nowhere: a season that waits, clock, book.

The openings are those of the demo book: a test tells nobody what the season's games will
begin with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pydantic

from orchestrator import contract
from orchestrator.commands import launch
from orchestrator.common import errors
from orchestrator.season.fold import state

DEMO_BOOK: Final = launch.SEASONS / "books" / "demo.pgn"
TIME_CONTROL: Final = (
    "seconds+seconds such as 8+0.08, or with units: 2m+500ms; the time above 0, at most 10 days"
)
PLIES: Final = 8  # of the demo book's lines, as in the demo season


def require_waiting(season: state.SeasonState, what: str) -> None:
    """Raise ``RefusedError`` while a season plays: ``what`` is done when no game waits."""
    if season.running is not None or season.ready_game() is not None:
        raise errors.RefusedError(
            f"{season.launched.id} plays; {what} while it is at a gate, paused or held"
        )


def control(text: str) -> contract.TimeControl:
    """Read ``--tc``: seconds, as engine authors write it; raise ``UsageError``."""
    try:
        return contract.TimeControl.parse(text, "s")
    except ValueError:
        raise errors.UsageError(f"--tc: found {text!r}; allowed: {TIME_CONTROL}") from None


def adjudication(told: Mapping[str, Any], *, remote: bool) -> contract.Adjudication:
    """Read ``--draw``, ``--resign``, ``--maxmoves`` and ``--tb``: rules that end a game early.

    The words are those of ``farm match``. Raise ``UsageError``.
    """
    if told["tb"] and remote:
        raise errors.UsageError(
            "--tb: remote workers' games are checked here, where their tables are not; leave out"
            " --tb or --remote"
        )
    rules: dict[str, Any] = {"max_moves": told["maxmoves"]}
    if told["draw"]:
        rules["draw"] = _rule("--draw", told["draw"], contract.DRAW_WORDS)
    if told["resign"]:
        rules["resign"] = _rule("--resign", told["resign"], contract.RESIGN_WORDS)
    if told["tb"]:
        rules["syzygy"] = {"path": told["tb"], "men": told["tb_pieces"]}
    try:
        return contract.Adjudication.model_validate(rules)
    except pydantic.ValidationError as error:
        where, what = contract.first_wrong(error)
        raise errors.UsageError(f"--{where}: {what}") from None


def _rule(
    option: str, text: str, allowed: Mapping[str, tuple[str, str | None]]
) -> dict[str, str | None]:
    """Read ``movecount=3,score=600``, with commas or spaces between."""
    settings = [
        f"{word}=true" if word == "twosided" else word for word in text.replace(",", " ").split()
    ]
    given = dict(word.partition("=")[::2] for word in settings)
    if len(given) < len(settings) or not given.keys() <= allowed.keys():
        keys = " ".join(f"{key}=" for key in allowed)
        raise errors.UsageError(f"{option}: found {text!r}; allowed, each once: {keys}")
    if missing := contract.missing_words(given, allowed):
        lacks = ", ".join(f"{key}=" for key in missing)
        required = " ".join(f"{key}=" for key in contract.missing_words((), allowed))
        raise errors.UsageError(f"{option}: found {text!r}, no {lacks}; required: {required}")
    return {name: given.get(key, default) for key, (name, default) in allowed.items()}
