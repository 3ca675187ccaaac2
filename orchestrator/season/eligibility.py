"""Who may enter: the uniqueness of neural-network engines (S16-16).

An entry of kind NN names three parts: training code, network, executing engine. It is
eligible only if at least two of the three are unlike those of every other NN entry. The
organizers may make an exception; its reason stands in the roster, and so in the journal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from orchestrator.season import model, problems

PARTS = ("training", "network", "engine")


def uniqueness(entries: Sequence[model.EngineEntry]) -> Iterator[problems.Problem]:
    """Yield each pair of NN entries that have two or three parts in common."""
    neural = [entry for entry in entries if entry.neural is not None and not entry.exception]
    for first, second in itertools.combinations(neural, 2):
        shared = _shared(first, second)
        if len(shared) > 1:
            who = first.name or first.id
            found = f"the same {' and '.join(shared)} as {who}"
            allowed = "two of three parts unlike every other entry's, or an exception (S16-16)"
            yield problems.Problem(
                f"[roster.engine {second.id or second.name}] neural", found, allowed
            )


def _shared(first: model.EngineEntry, second: model.EngineEntry) -> list[str]:
    """Return the parts that two entries have in common, whatever their capitals."""
    return [
        part
        for part in PARTS
        if str(getattr(first.neural, part)).casefold()
        == str(getattr(second.neural, part)).casefold()
    ]
