"""The end of a game without a verdict, raised wherever it is seen."""

from __future__ import annotations

from orchestrator import contract
from orchestrator.common import errors


class InterruptedGameError(errors.HostError):
    """The game ends without a verdict: ``cause`` in a word, ``evidence`` for the record.

    ``excused`` is the side whose engine would have lost, were it not for its host.
    """

    def __init__(
        self, cause: str, evidence: str = "", excused: contract.Side | None = None
    ) -> None:
        self.cause, self.evidence, self.excused = cause, evidence, excused
        super().__init__(f"{cause}: {evidence}")
