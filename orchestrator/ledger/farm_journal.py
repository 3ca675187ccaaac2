"""The farm's own journal: facts about halls, workers and operators, which no season holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, store

APPEND_TRIES: Final = 20  # somebody else's fact may come between look and append
BATCH: Final = 500  # entries read at once: bounds memory, not work


def append(
    ledger: store.RedisLedger, draft: contract.Draft, by: str, effects: Sequence[api.Effect] = ()
) -> None:
    """Append one fact, whatever the journal's end is by now; raise ``RefusedError``."""
    for _ in range(APPEND_TRIES):
        reply = ledger.append(api.FARM, ledger.last(api.FARM), [draft], by, effects)
        if isinstance(reply, api.Appended):
            return
    raise errors.RefusedError("the farm's journal grows too fast to write to it; try again")


def entries(ledger: store.RedisLedger, after: int = 0) -> Iterator[contract.Entry]:
    """Yield the entries behind ``after``."""
    while batch := ledger.read(api.FARM, after, BATCH):
        yield from batch
        after = batch[-1].seq
