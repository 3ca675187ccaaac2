"""Places that only a disqualified engine is left to take (S16-15c, S17-15c).

Who is disqualified or withdrawn ranks last, so it comes to a promoted place only where fewer
other engines are left than go on. It has no claim to the place: the organizers name an engine
for it, that one or another, or leave it empty. Question and answer are journaled as those
about ties (``decisions``). Not in matches and Cups, where somebody has to go on (CUP-2e).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator.season.fold import entries, events
from orchestrator.season.spec import model

NOBODY: Final = "nobody"
_MATCHES: Final = frozenset({"match", "knockout"})


def may_be_empty(event: events.EventState) -> bool:
    """Say whether places of an event may be left empty: it is a table, of points."""
    return event.spec.format.kind not in _MATCHES and event.parts is None


def questions(event: events.EventState) -> Iterator[entries.DecisionNeeded]:
    """Yield the promoted places of a ranked event that a disqualified engine has."""
    if not may_be_empty(event):
        return
    for promotion in event.spec.promote:
        for rank in promotion.places if promotion.to not in event.promoted else ():
            engine = event.rows[rank - 1].engine
            decision = decision_id(event, promotion.to, rank)
            if engine in event.excluded and decision not in event.answers:
                why = event.excluded[engine].reason or event.excluded[engine].cause
                yield entries.DecisionNeeded(
                    decision=decision,
                    event=event.id,
                    place=rank,
                    engines=(engine,),
                    choose=1,
                    about=f"place {rank}: to {promotion.to}; {engine} has left ({why})",
                    to=promotion.to,
                )


def decision_id(event: events.EventState, to: str, rank: int) -> str:
    """Return the name of the question about a place that leads to another event."""
    return f"{event.id}:seat-{rank}-{to}"


def taker(event: events.EventState, to: str, rank: int) -> str:
    """Return who goes on from a place of a ranked event, '' where it was left empty."""
    answer = event.answers.get(decision_id(event, to, rank))
    if answer is None:
        return event.rows[rank - 1].engine
    return "" if answer.choose == (NOBODY,) else answer.choose[0]


def promoted(event: events.EventState, promotion: model.Promotion) -> tuple[str, ...]:
    """Return who goes on to another event, best first, without the places left empty."""
    takers = (taker(event, promotion.to, rank) for rank in promotion.places)
    return tuple(engine for engine in takers if engine)
