"""Metrics of kibitzers: who has a desk, and how much is told from it of the games in flight.

A kibitzer that hangs keeps its desk and tells nothing; one that is gone leaves its desk empty.
Neither touches a game.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.ledger import kibitzing
from orchestrator.metrics import families


def write(sheet: families.Sheet, source: kibitzing.Kibitzing, attempts: Mapping[str, str]) -> None:
    """Write all samples of the desks; ``attempts`` are those in flight, by their hall."""
    seated = source.kibitzers()
    for desk in range(kibitzing.DESKS):
        sheet.set("farm_kibitzer_seated", desk in seated, desk=str(desk))
    if not seated:
        return
    for hall, attempt in attempts.items():
        words = source.marks(attempt)
        for desk in seated:
            sheet.set("farm_kibitzer_words", words[desk], hall=hall, desk=str(desk))
