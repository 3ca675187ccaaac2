"""A season that its organizers end before its end, such as one that was launched by mistake.

One fact ends it for good: nothing is decided, ordered or changed in it any more. What was
played stays as it is: results, tables so far, ratings (S16-14b, S17-14b). A game in flight is
given up without a result; its hall may still tell how the attempt ended, or that the game was
over before the hall heard of it. Nothing else follows (``FOLLOWING``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.fold import apply_amendments, entries, events

if TYPE_CHECKING:
    from orchestrator.season.fold import state as season_state

FOLLOWING: Final = frozenset({entries.ATTEMPT_ENDED, entries.GAME_FINISHED})  # told by halls
HOLD: Final = "abandoned"  # the name of the season's hold: nothing is claimed any more


def abandon(state: season_state.SeasonState, name: str, reason: str) -> list[contract.Draft]:
    """End a season before its end; raise ``RefusedError`` once it is over.

    Raise ``UsageError`` without a reason: spectators and authors are told it.
    """
    if not reason:
        raise errors.UsageError("to abandon a season needs --reason")
    state.require_unfinished()
    fact = entries.SeasonAbandoned(seed=state.launched.seed, reason=reason, name=name)
    return [contract.Draft.of(entries.SEASON_ABANDONED, fact)]


def require_may_follow(state: season_state.SeasonState, kind: str) -> None:
    """Raise ``ContradictionError`` for an entry that nobody can add to an abandoned season."""
    if state.abandoned:
        apply_amendments.require(kind in FOLLOWING, "the season was abandoned before")


def _season_abandoned(
    state: season_state.SeasonState, fact: entries.SeasonAbandoned, _at_ms: int
) -> None:
    apply_amendments.require(not state.over, "the season is over already")
    state.abandoned = fact.reason or "no reason was told"
    state.lost = state.planned_pause = None
    for event in state.events.values():
        event.asked = {}  # nobody waits for the answers any more
        if event.status is not events.Status.RANKED:
            event.status = events.Status.ABANDONED


VERBS: Final[Mapping[str, tuple[type[contract.Message], apply_amendments.Verb]]] = {
    entries.SEASON_ABANDONED: (entries.SeasonAbandoned, _season_abandoned),
}
