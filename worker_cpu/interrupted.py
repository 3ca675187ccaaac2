"""The end of a game without a verdict, raised wherever it is seen."""

from __future__ import annotations

from orchestrator import errors


class InterruptedGameError(errors.HostError):
    """The game ends without a verdict: ``cause`` in a word, ``evidence`` for the record."""

    def __init__(self, cause: str, evidence: str = "") -> None:
        self.cause, self.evidence = cause, evidence
        super().__init__(f"{cause}: {evidence}")
