"""Test matches that were submitted: they wait for somebody's consent, or to be taken.

What takes them (``farm match keep``, which ``farm serve`` starts) has them in its folder from then
on, and removes them here. Who submitted a match is not who approves it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.ledger import connection, keys, replies

FAILED_LENGTH: Final = 4_000  # characters of why a match cannot be played
NOBODY: Final = "default"  # the user of a server that knows no operators
BY_GATEWAY: Final = "token:"  # begins the user of an author who came by the gateway; its id follows
# of the farm's journal; each names its match
SUBMITTED, APPROVED, REFUSED = "test_submitted", "test_approved", "test_refused"


@dataclasses.dataclass(frozen=True)
class Submission:
    """A match that waits: who submitted it, what it is in a line, and who has to agree.

    ``goes_on`` is one that its keeper has already and that was stopped: it comes without an order,
    as does one that is to be played as ``copy_of`` another, but for its ``changes``, and one of
    revisions that an author has ``proposed``. One that ``failed`` stays for its author to see.
    """

    match: str
    by: str
    at_ms: int
    about: str
    asks: bool = False
    approved_by: str = ""
    goes_on: bool = False
    copy_of: str = ""
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    proposed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    failed: str = ""  # why it cannot be played
    refused_by: str = ""  # by the gateway: whoever journals it removes it
    reason: str = ""  # of the refusal
    journaled: bool = True  # the farm's journal says it; what comes by the gateway waits for that

    @property
    def ready(self) -> bool:
        """Say whether it may be played."""
        approved = not self.asks or bool(self.approved_by)
        return approved and not (self.failed or self.refused_by)

    def is_by(self, who: str) -> bool:
        """Say whether somebody (NAME@USER) has submitted it himself.

        The user is who has logged in to Redis; a name alone is what somebody calls himself, but
        for authors, whose tokens have the name that an operator gave them.
        """
        name, _, user = who.rpartition("@")
        own_name, _, own_user = self.by.rpartition("@")
        if user.startswith(BY_GATEWAY) and own_user.startswith(BY_GATEWAY):
            return name == own_name
        return user == own_user and (user != NOBODY or name == own_name)


class RedisSubmissions:
    """The submitted matches of one Redis server. Any verb may raise ``LedgerAwayError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self._server = server
        names = keys.Keys(prefix)
        self._submitted, self._orders = names.tests("submitted"), names.tests("orders")

    def all(self) -> list[Submission]:
        """Return those that wait, the oldest first."""
        table = self._server.table(self._submitted)
        listed = replies.each(table, lambda _, raw: Submission(**raw))
        return sorted(listed, key=lambda submission: (submission.at_ms, submission.match))

    def order(self, match: str) -> str | None:
        """Return what is played in a match that waits."""
        return self._field(self._orders, match)

    def submit(self, submission: Submission, order: str) -> bool:
        """Let a match wait; return whether none of this name did, but one of his that failed."""
        before = self._field(self._submitted, submission.match)
        failed = None if before is None else _read(before)
        if failed is None or not failed.failed or not failed.is_by(submission.by):
            before = ""
        return self._write(before or "", submission, order)

    def approve(self, match: str, who: str) -> None:
        """Note who agrees, where a match of this name waits."""
        self._change(match, approved_by=who)

    def fail(self, match: str, why: str) -> None:
        """Note why a match that waits cannot be played."""
        self._change(match, failed=why[:FAILED_LENGTH])

    def refuse(self, match: str, who: str, reason: str) -> None:
        """Let a match that waits be taken out by who writes the farm's journal."""
        self._change(match, refused_by=who, reason=reason)

    def note_journaled(self, match: str) -> None:
        """Note that the farm's journal says who has submitted a match."""
        self._change(match, journaled=True)

    def _change(self, match: str, **fields: Any) -> None:
        while (before := self._field(self._submitted, match)) is not None:
            if self._write(before, dataclasses.replace(_read(before), **fields), ""):
                return

    def find(self, match: str) -> Submission | None:
        """Return a match that waits."""
        raw = self._field(self._submitted, match)
        return None if raw is None else _read(raw)

    def remove(self, match: str) -> None:
        """Forget a match that was taken or refused."""
        with self._server.asked(), self._server.client.pipeline() as pipe:
            pipe.hdel(self._submitted, match)
            pipe.hdel(self._orders, match)
            pipe.execute()

    def _field(self, key: str, match: str) -> str | None:
        with self._server.asked():
            raw: Any = self._server.client.hget(key, match)
        return None if raw is None else replies.text(raw)

    def draft(self, submission: Submission) -> contract.Draft:
        """Return what the farm's journal says of a match that was submitted."""
        facts = {"match": submission.match, "about": submission.about, "asks": submission.asks}
        return contract.Draft(SUBMITTED, facts)

    def _write(self, before: str, submission: Submission, order: str) -> bool:
        payload = contract.dumps(dataclasses.asdict(submission))
        names = [self._submitted, self._orders]
        raw = self._server.run("submit_match", names, submission.match, before, payload, order)
        return replies.word(raw) == "written"


def _read(text: str) -> Submission:
    return Submission(**contract.loads(text))
