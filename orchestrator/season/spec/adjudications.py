"""The rules that end games early, as an event of the season file chooses them.

    adjudication = "s16"
    adjudication = { rules = "cup", syzygy = { men = 7 }, max_moves = 300 }
    adjudication = { eval_draw = { min_ply = 70, bound_cp = 8, plies = 10 } }

``rules`` names one of ``adjudication.presets``; what stands beside it changes single
numbers of a rule, adds a rule, or takes one away (``eval_win = false``). The model that
is journaled holds every rule in full, so a preset that changes later changes no season.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.arbiter.adjudication import presets


def _chosen(value: Any) -> Any:
    table = {"rules": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        return value
    name = table.get("rules", "")
    if name not in ("", *presets.PRESETS):
        raise ValueError(f"rules: {', '.join(presets.PRESETS)}, or no name but rules of its own")
    rules = presets.PRESETS[name].model_dump() if name else {}
    for key, own in table.items():
        preset = rules.get(key)
        merged = preset | own if isinstance(preset, dict) and isinstance(own, dict) else own
        rules[key] = None if own is False else merged
    return rules


Adjudication: TypeAlias = Annotated[contract.Adjudication, pydantic.BeforeValidator(_chosen)]


def doubts(rules: contract.Adjudication, limits: contract.Limits) -> Iterator[tuple[str, str, str]]:
    """Yield what cannot be meant: the rule, what was found, what is allowed."""
    if rules.syzygy and not (rules.syzygy.path or limits.syzygy_path):
        yield (
            "syzygy",
            "no directory of tables",
            "a path here or limits.syzygy_path, or syzygy = false",
        )
    if rules.eval_draw and rules.draw:
        yield "draw", "two draw rules by evals", "eval_draw or draw"
    if rules.eval_win and rules.resign:
        yield "resign", "two win rules by evals", "eval_win or resign"
