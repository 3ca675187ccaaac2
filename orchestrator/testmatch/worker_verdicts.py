"""Condemn or pardon remote workers: entries in the farm's journal, stopped tokens.

The farm's journal says who was condemned and who was pardoned, by whom and why, and at which
evidence each match has ended; matches copy into their own journals what concerns them. So every
match knows of what another one, or a person, has decided, and a journal alone gives the same again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import batches, farm_journal, store, worker_tokens
from orchestrator.testmatch import worker_review

log = structlog.get_logger()

CONDEMNED: Final = "worker_condemned"  # kinds of entries of the farm's journal
PARDONED: Final = "worker_pardoned"
EVIDENCE: Final = "test_evidence"
BY_HAND: Final = "operator"  # the rule by which a person condemns


@dataclasses.dataclass(frozen=True)
class Word:
    """That an owner was condemned, with the reason, or pardoned (no reason)."""

    token: str
    rule: str
    reason: str


def condemn(
    ledger: store.RedisLedger,
    tokens: worker_tokens.RedisTokens,
    token: worker_tokens.WorkerToken,
    draft: Mapping[str, Any],
    by: str,
) -> None:
    """Stop a token for good, with the ``reason`` of its ``draft``; one that is stays as it is."""
    if token.condemned:
        return
    content = {"token": token.id, "owner": token.name, **draft}
    farm_journal.append(ledger, contract.Draft(CONDEMNED, content), by)
    tokens.write(dataclasses.replace(token, condemned=draft["reason"]))


def pardon(
    ledger: store.RedisLedger,
    tokens: worker_tokens.RedisTokens,
    token: worker_tokens.WorkerToken,
    reason: str,
    by: str,
) -> None:
    """Let a condemned token's workers play again; the evidence against them is deleted."""
    content = {"token": token.id, "owner": token.name, "reason": reason}
    farm_journal.append(ledger, contract.Draft(PARDONED, content), by)
    tokens.write(dataclasses.replace(token, condemned=""))


class Verdicts:
    """The farm's side of one match: what others have decided, and what follows from a finding."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        tokens: worker_tokens.RedisTokens,
        remote: batches.RedisBatches,
        match: str,
        by: str,
    ) -> None:
        """Read nothing yet; ``by`` is who keeps the match."""
        self._ledger, self._tokens, self._batches = ledger, tokens, remote
        self._match, self._by = match, by
        self._seen = 0
        self._evidence: dict[str, list[float]] = {}

    def news(self) -> list[Word]:
        """Return what was decided since the last call, of each owner the last word."""
        latest: dict[str, Word] = {}
        for entry in farm_journal.entries(self._ledger, self._seen):
            self._seen, data = entry.seq, entry.data
            if entry.kind == EVIDENCE:
                self._evidence.update(data["nats"])
            elif entry.kind in {CONDEMNED, PARDONED}:
                token = data["token"]
                reason = data["reason"] if entry.kind == CONDEMNED else ""
                latest[token] = Word(token, data.get("rule", BY_HAND), reason)
                self._evidence.pop(token, None)
        return list(latest.values())

    def evidence(self) -> dict[str, list[float]]:
        """Return what earlier matches have found (nats by token), as far as ``news`` has read."""
        return dict(self._evidence)

    def condemn(self, finding: worker_review.Finding) -> None:
        """Stop the owner's token and end his batches: their games are dealt again."""
        log.warning(
            "worker.condemned", match=self._match, token=finding.token, reason=finding.reason
        )
        token = self._tokens.find(finding.token)
        draft = {
            "match": self._match,
            "rule": finding.rule,
            "reason": f"{self._match}: {finding.reason}",
            "nats": round(finding.nats, 2),
        }
        try:
            if token is not None:
                condemn(self._ledger, self._tokens, token, draft, self._by)
        except errors.RefusedError as error:  # the match's own journal says it, too
            log.warning("worker.not_stopped", token=finding.token, why=str(error))
        self._batches.end_all(finding.token)

    def check_again(self, workers: Sequence[str]) -> None:
        """Ask a check of workers (token and host) before their next games."""
        for worker in workers:
            self._batches.note_check(self._match, worker, "")

    def close(self, nats: Mapping[str, Sequence[float]]) -> None:
        """Keep at which evidence the match has ended, for those that come."""
        self._batches.forget_checks(self._match)
        if nats:
            draft = contract.Draft(EVIDENCE, {"match": self._match, "nats": dict(nats)})
            try:
                farm_journal.append(self._ledger, draft, self._by)
            except errors.RefusedError as error:  # the match has ended all the same
                log.warning("worker.evidence_lost", match=self._match, why=str(error))
