"""Who may enter: the uniqueness of neural-network engines (S16-16a).

An entry of kind NN names three parts: training code, network, executing engine (S16-16b).
It is eligible (S16-16d) only if at least two of the three are unlike those of every other
NN entry (S16-16c); two parts taken from two different entries are not unlike. The
organizers may make an exception (S16-16e); its reason stands in the roster, and so in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.season.spec import model, problems

PARTS = ("training", "network", "engine")
ALLOWED = "two of three parts unlike every other entry's, or an exception (S16-16)"


def uniqueness(entries: Sequence[model.EngineEntry]) -> Iterator[problems.Problem]:
    """Yield each NN entry that shares two or three of its parts with others."""
    neural = [
        candidate
        for candidate in entries
        if candidate.neural and not candidate.exception and not candidate.dropped
    ]
    for entry in neural:
        others = [other for other in neural if other is not entry]
        problem = clash(entry, others)
        if problem:
            where = f"[roster.engine {_name(entry, by='id')}] neural"
            yield problems.Problem(where, problem, ALLOWED)


def clash(entry: model.EngineEntry, others: Sequence[model.EngineEntry]) -> str:
    """Say which parts an entry shares and with whom, '' for one that is eligible."""
    sharing = {part: [other for other in others if _same(part, entry, other)] for part in PARTS}
    taken = {part: who for part, who in sharing.items() if who}
    if len(taken) < 2:
        return ""
    first, *rest = taken.values()
    if all(who == first for who in rest):
        return f"the same {' and '.join(taken)} as {_names(first)}"
    return " and ".join(f"the same {part} as {_names(who)}" for part, who in taken.items())


def _same(part: str, entry: model.EngineEntry, other: model.EngineEntry) -> bool:
    """Say whether two entries have a part in common, whatever its capitals."""
    mine, theirs = getattr(entry.neural, part), getattr(other.neural, part)
    return str(mine).casefold() == str(theirs).casefold()


def _names(entries: Sequence[model.EngineEntry]) -> str:
    return ", ".join(_name(entry) for entry in entries)


def _name(entry: model.EngineEntry, by: str = "name") -> str:
    first, second = (entry.id, entry.name) if by == "id" else (entry.name, entry.id)
    return str(first or second)
