"""What of a season, or of its hall, waits for a person: one list for console, status and terminal.

It follows from the state alone. ``urgent`` is what nobody has wished and only a person can end:
a hold, a question. A pause and a gate are somebody's own will; a flag stops nothing.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.season import decisions, interruption
from orchestrator.season.fold import events, own_book, vacancies
from orchestrator.season.fold import state as season_state

SICK: Final = "sick"  # the hold that a hall sets on itself, and people release


class Kind(enum.StrEnum):
    """What is waited for."""

    HALL = "hall"
    HOLD = "hold"
    PAUSE = "pause"
    DECISION = "decision"
    FLAG = "flag"
    GATE = "gate"


URGENT: Final = frozenset({Kind.HALL, Kind.HOLD, Kind.DECISION})


@dataclasses.dataclass(frozen=True)
class Need:
    """Something that waits for a person, and the command (behind ``farm``) that it is answered by.

    ``named`` are the words of that command by what they name; ``offers`` may be chosen in a
    decision; ``until_ms`` is when a gate opens by itself.
    """

    kind: Kind
    text: str
    command: str = ""
    named: Mapping[str, str] = dataclasses.field(default_factory=dict)
    offers: tuple[str, ...] = ()
    until_ms: int | None = None

    @property
    def urgent(self) -> bool:
        """Say whether nobody has wished it, and only a person can end it."""
        return self.kind in URGENT


def of_hall(hall: str, holds: Mapping[str, str]) -> Iterator[Need]:
    """Yield why a hall is held; ``holds`` are its own, by name."""
    for name, reason in holds.items():
        release = f"host release {hall}" if name == SICK else ""
        named = {"hall": hall} if release else {}
        yield Need(Kind.HALL, f"{hall} is held: {reason}", release, named)


def of_season(state: season_state.SeasonState) -> Iterator[Need]:
    """Yield what a season waits for, the most urgent first; nothing once it is over."""
    if state.over:
        return
    of = f"--season {state.launched.id}"
    if state.held or state.paused:
        kind, word = (Kind.HOLD, "held") if state.held else (Kind.PAUSE, "paused")
        text = f"{word}: {state.held or state.paused}"
        yield Need(kind, text, f"season resume {of}")
    for question in interruption.outstanding(state):
        choose = ", ".join(interruption.ANSWERS)
        text = f"{question}: choose {choose}"
        named = {"decision": question}
        yield Need(Kind.DECISION, text, f"season decisions {of}", named, interruption.ANSWERS)
    for asked in decisions.outstanding(state):
        text = f"{asked.decision}: {asked.about}; {decisions.choice(asked)}"
        offers = (*asked.engines, vacancies.NOBODY) if asked.to else asked.engines
        named = {"decision": asked.decision}
        yield Need(Kind.DECISION, text, f"season decisions {of}", named, offers)
    for flag in own_book.standing(state):
        text = f"{flag.engine} is flagged for a hidden book in {flag.event}"
        named = {"engine": flag.engine, "event": flag.event}
        yield Need(Kind.FLAG, text, f"engine flags {of}", named)
    for event in state.events.values():
        if event.status is events.Status.GATE:
            text = f"the gate before {event.spec.name} opens"
            text += "" if event.opens_at_ms is not None else " when you open it"
            command, named = f"season open-gate {event.id} {of}", {"gate": event.id}
            yield Need(Kind.GATE, text, command, named, until_ms=event.opens_at_ms)
