"""Verify the draws of a season that is over: anyone can, from its journal and its published seed.

The seed must have the hash that was published at launch, the books must come out in the
same order when they are drawn again, and every field, bracket, pairing and opening that
was journaled must follow from the entries before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.season import decide
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import entries
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import seeded_random

# What a journal of an earlier version left out has its default: facts are compared, not bytes.
_DRAWN: Final[Mapping[str, type[contract.Message]]] = {
    entries.EVENT_STARTED: entries.EventStarted,
    entries.GAMES_PAIRED: entries.GamesPaired,
}


@dataclasses.dataclass(frozen=True)
class Verification:
    """What was verified, and all that does not agree, in words."""

    season: str
    seed: str
    draws: int
    books: bool
    mismatches: tuple[str, ...]


def verify(journal: Sequence[contract.Entry], loaded: load.Loaded | None = None) -> Verification:
    """Verify a journal; ``loaded`` is the season's file with its books, to draw them again.

    Raise ``LedgerDamagedError`` for what is no journal, ``RefusedError`` while the seed is
    sealed (the season is not over).
    """
    state = season_state.SeasonState()
    mismatches: list[str] = []
    expected: list[contract.Draft] = []
    drawn = 0
    for entry in journal:
        if entry.kind in _DRAWN:
            drawn += 1
            # Where a pause keeps an event back, an import begins it.
            expected = expected or decide.decide(state, state.at_ms) or decide.next_event(state)
            draft = expected.pop(0) if expected else None
            if draft is None or not _same(draft, entry):
                mismatches.append(f"entry {entry.seq} ({entry.kind}) does not follow from the seed")
        else:
            expected = []
        state.apply(entry)
    operations.require_unsealed(state)
    launched = state.launched
    if seeded_random.commitment(launched.seed) != launched.seed_sha256:
        mismatches.append("the seed does not have the hash that was published at launch")
    if loaded is not None:
        mismatches += _books(launched, loaded)
    return Verification(launched.id, launched.seed, drawn, loaded is not None, tuple(mismatches))


def _same(draft: contract.Draft, entry: contract.Entry) -> bool:
    fact = _DRAWN[entry.kind]
    if draft.kind != entry.kind:
        return False
    return fact.model_validate(_plain(draft)) == fact.model_validate(entry.data)


def _plain(draft: contract.Draft) -> object:
    return contract.loads(contract.dumps(draft.data))


def _books(launched: entries.Launched, loaded: load.Loaded) -> list[str]:
    again = operations.launch(loaded, launched.id, launched.seed, launched.hall, launched.version)
    fact = entries.Launched.model_validate(_plain(again[0]))
    return [
        f"book {name} comes out in another order, or with other lines"
        for name, exits in launched.books.items()
        if _lines(fact.books.get(name, ())) != _lines(exits)
    ]


def _lines(exits: Sequence[contract.Opening]) -> list[object]:
    """Return positions and moves: a line may be called otherwise by another version."""
    return [exit_.line for exit_ in exits]
