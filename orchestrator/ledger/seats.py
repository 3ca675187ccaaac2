"""Seats of GPU boxes in the ledger: who wants one, who has which GPU, and the answers.

A hall writes down what it wants under its own token and rings; the box's worker takes the
GPUs for it and answers. Invariants:

* a GPU is an attempt's only, whatever hall or box asks: no two halls ever share one;
* only the holder of a hall's slot wants or takes; a *trial* (a test game or a rehearsal,
  without a token) only while its hall has no game;
* a trial's GPU is taken by any official game that wants it, of whatever hall;
* a GPU whose attempt is over, without having freed it, is free;
* each box answers for itself: an attempt may have engines on two of them.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from orchestrator import contract

TRIAL: Final = "trial"  # in a token's place, of a game that counts nowhere
TRIAL_MS: Final = 1_800_000  # ms: a trial keeps its GPUs so long, unless a game wants them


@dataclasses.dataclass(frozen=True)
class Seating:
    """An attempt's seats on one box; ``token`` is None for a trial."""

    box: str
    hall: str
    attempt: str
    token: contract.Token | None

    @classmethod
    def of(cls, box: str, hall: str, attempt: str, word: str) -> Seating:
        """Return the seats that a word stands for, as ``word`` writes it; raise ``ValueError``."""
        return cls(box, hall, attempt, None if word == TRIAL else contract.Token.parse(word))

    @property
    def word(self) -> str:
        """Return the token as the scripts know it, ``trial`` without one."""
        return TRIAL if self.token is None else str(self.token)


@dataclasses.dataclass(frozen=True)
class Holder:
    """Who has a GPU; ``deadline_ms`` (Redis' time) counts for a trial only."""

    hall: str
    attempt: str
    token: str
    deadline_ms: int

    @classmethod
    def parse(cls, text: str) -> Holder:
        """Read ``hall attempt token deadline``; raise ``ValueError``."""
        hall, attempt, token, deadline = text.split(" ")
        return cls(hall, attempt, token, int(deadline))


@dataclasses.dataclass(frozen=True)
class Taken:
    """A GPU is another attempt's: nothing was done."""

    gpu: str
    hall: str
    attempt: str
