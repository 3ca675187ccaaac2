"""What many disagreements may come from at once: an assumption that the archive speaks against.

No tables are read, so a tablebase is taken to end every game with few men
(``replaying.Known``). A season that was played without tables, or with those of fewer men,
then disagrees game by game; the hint says so once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.audit import reading, replaying


def tablebase(
    games: Sequence[reading.Game], rules: contract.Adjudication, found: Mapping[str, Any]
) -> dict[str, int] | None:
    """Count the games that a tablebase should have ended earlier; None where no hint would help.

    ``found`` is what ``replaying.report`` says of the games. Of the ``missed`` ones ``agree``
    would be as recorded without tables; ``recorded`` games did end by one. Where there are
    such, a hint is worth giving only if some agree.
    """
    missed = {
        wrong["game"]
        for wrong in found["mismatches"]
        if wrong["rule"] == "tablebase" and wrong["computed_ply"] is not None
    }
    again = [game for game in games if game.number in missed]
    without = replaying.report(again, rules.model_copy(update={"syzygy": None}))
    agree = len(again) - len({wrong["game"] for wrong in without["mismatches"]})
    recorded = found["tablebase"]["recorded"] if found["tablebase"] else 0
    if not again or (recorded and not agree):
        return None
    return {"recorded": recorded, "missed": len(again), "agree": agree}


def sentence(hint: Mapping[str, int]) -> str:
    """Return the hint in words."""
    ends = f"{hint['recorded'] or 'none'} in the record, {hint['missed']} missed by the rules"
    fewer = ", or with --tb-men where they had fewer men" if hint["recorded"] else ""
    return (
        f"hint: ends by a tablebase: {ends}, of which {hint['agree']} agree without tables:"
        f" if it was played so, audit with --no-tablebase{fewer}"
    )
