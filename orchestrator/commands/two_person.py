"""Two operators for what cannot be taken back: one proposes, another one repeats it.

A season names the acts (``second_operator = ["void", "withdraw"]``). The first operator's
command is journaled in the farm's journal as ``proposed`` and refused; when another
Redis user gives a command that would change exactly the same, it is journaled as
``seconded`` and carried out. The proposal is used up by that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from orchestrator import contract
from orchestrator.commands import common
from orchestrator.common import errors
from orchestrator.ledger import api, store, submissions
from orchestrator.season.fold import state

PROPOSED, SECONDED = "proposed", "seconded"
OWN_WORDS = ("by", "name", "reason")  # what the two of them may say differently

Change = Callable[[state.SeasonState], Sequence[contract.Draft]]


def consent(
    ledger: store.RedisLedger,
    season: str | None,
    act: str,
    change: Change,
    by: str,
    *,
    dry_run: bool,
) -> str:
    """Return who does it, the proposer included; raise ``RefusedError`` for a first proposal."""
    chosen = common.choose_open(ledger, season)
    if dry_run or act not in chosen.launched.season.second_operator:
        return by
    user = ledger.whoami()
    if user == submissions.NOBODY:
        raise errors.RefusedError(
            f"{act} needs two operators in {chosen.launched.id}, and this Redis knows none; see"
            " `farm acl`"
        )
    what = _digest(change(chosen))
    proposal = {"season": chosen.launched.id, "act": act, "what": what}
    proposer = _proposer(ledger, proposal, user)
    if not proposer:
        common.append_farm(ledger, contract.Draft(PROPOSED, proposal), common.author(ledger, by))
        raise errors.RefusedError(
            f"{act} needs a second operator in {chosen.launched.id}: {user} has proposed it;"
            " it takes effect when another operator gives the same command"
        )
    draft = contract.Draft(SECONDED, proposal | {"proposed_by": proposer})
    common.append_farm(ledger, draft, common.author(ledger, by))
    return f"{by}, proposed by {proposer}"


def _proposer(ledger: store.RedisLedger, proposal: Mapping[str, str], user: str) -> str:
    """Return another user who has proposed this and was not yet seconded, '' for none.

    Games of two seasons may bear the same name: the season is a part of what was proposed.
    """
    proposer = ""
    for entry in common.journal(ledger, api.FARM):
        if not proposal.items() <= entry.data.items():
            continue
        author = entry.by.rpartition("@")[2]
        if entry.kind == PROPOSED and author != user:
            proposer = author
        elif entry.kind == SECONDED:
            proposer = ""
    return proposer


def _digest(drafts: Sequence[contract.Draft]) -> str:
    """Name a change by all that it would journal, but for who says why."""
    journaled = [
        [draft.kind, {key: value for key, value in draft.data.items() if key not in OWN_WORDS}]
        for draft in drafts
    ]
    return hashlib.sha256(contract.dumps(journaled).encode()).hexdigest()
