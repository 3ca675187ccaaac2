"""Metrics of kibitzers: who has a desk, and how much is told from it of the games in flight.

A kibitzer that hangs keeps its desk and tells nothing; one that is gone leaves its desk empty.
A desk that was left on purpose has no sample: nobody is missed. None of it touches a game.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.ledger import kibitzing
from orchestrator.metrics import families


def write(sheet: families.Sheet, source: kibitzing.Kibitzing, attempts: Mapping[str, str]) -> None:
    """Write all samples of the desks; ``attempts`` are those in flight, by their hall."""
    seated = source.kibitzers()
    for desk in set(range(kibitzing.DESKS)) - source.left():
        sheet.set("farm_kibitzer_seated", desk in seated, desk=str(desk))
    if not seated:
        return
    for hall, attempt in attempts.items():
        reports = source.marks(attempt)
        for desk in seated:
            sheet.set("farm_kibitzer_words", reports[desk], hall=hall, desk=str(desk))
