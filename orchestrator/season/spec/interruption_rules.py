"""What becomes of interrupted games, as an event of the season file chooses it.

    interruptions = "s16"
    interruptions = { rules = "cup", when = "end-of-round", compensation_ms = 30000 }
    interruptions = { rules = "s17", syzygy_path = "/srv/syzygy7" }

``rules`` names one of ``interruption.PRESETS``; what stands beside it changes single keys,
``false`` takes a bound away. The journaled model holds every number, so a preset that
changes later changes no season. Without the key a game is resumed, and nobody's evals
decide it.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption

BOUNDS = ("win_cp", "draw_cp", "tablebase_men")  # where a game that is interrupted is decided
_TAKEN_AWAY = (*BOUNDS, "excused_flags")  # by `false`


def _chosen(value: Any) -> Any:
    table = {"rules": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        return value
    name = table.get("rules", "")
    if name not in ("", *interruption.PRESETS):
        allowed = ", ".join(interruption.PRESETS)
        raise ValueError(f"rules: {allowed}, or no name but keys of its own")
    preset = interruption.PRESETS[name].model_dump() if name else {}
    gone = {key: None for key in _TAKEN_AWAY if table.get(key) is False}
    return preset | table | gone


Interruptions: TypeAlias = Annotated[contract.Interruptions, pydantic.BeforeValidator(_chosen)]
