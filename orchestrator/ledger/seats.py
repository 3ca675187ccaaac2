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
from collections.abc import Sequence
from typing import Final, Protocol

from orchestrator import contract
from orchestrator.ledger import api

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


class Seats(Protocol):
    """The verbs of seats; any of them may raise ``LedgerUnreachableError``."""

    def want_seats(self, seating: Seating, request: str) -> api.Written | api.Fenced:
        """Write down what an attempt wants of a box; forgets an earlier answer."""

    def wanted_seats(self, box: str) -> dict[str, str]:
        """Return what is wanted of a box and not answered yet: attempt to request."""

    def take_seats(
        self, seating: Seating, gpus: Sequence[str], answer: str
    ) -> api.Written | Taken | api.Fenced:
        """Take GPUs (none for a refusal) and answer in one step; a repeat is success.

        Without an answer (``""``) the wish stands: whoever serves the box next answers it.
        """

    def tell_seats(self, seating: Seating, answer: str) -> api.Written | api.Fenced:
        """Put another answer in the place of one that was not freed; ``Fenced`` where it was."""

    def seat_answer(self, box: str, attempt: str) -> str | None:
        """Return a box's answer to an attempt's wish, None where there is none yet."""

    def gpu_holders(self) -> dict[str, Holder]:
        """Return who has each GPU that was taken and not freed: UUID to holder."""

    def free_seats(self, box: str, attempt: str) -> None:
        """Free all of an attempt's GPUs and forget its wish and its answer."""
