"""Seats of GPU boxes in Redis: every verb is one script of ``scripts`` or one read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.common import errors
from orchestrator.ledger import api, connection, keys, replies, seats

TRIES = 20  # of a take whose holders change between reading and taking


class RedisSeats:
    """The verbs of seats, on one Redis server; any may raise ``LedgerUnreachableError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self._server = server
        self._keys = keys.Keys(prefix)

    def want_seats(self, seating: seats.Seating, request: str) -> api.Written | api.Fenced:
        """Write down what an attempt wants of a box; forgets an earlier answer."""
        raw = self._server.run(
            "want_seats", self._names(seating), seating.attempt, seating.word, request
        )
        return api.Written() if replies.word(raw) == "wanted" else api.Fenced()

    def wanted_seats(self, box: str) -> dict[str, str]:
        """Return what is wanted of a box and not answered yet: attempt to request."""
        return self._server.table(self._keys.wants(box))

    def take_seats(
        self, seating: seats.Seating, gpus: Sequence[str], answer: str
    ) -> api.Written | seats.Taken | api.Fenced:
        """Take GPUs (none for a refusal) and answer in one step; a repeat is success.

        Without an answer (``""``) the wish stands: whoever serves the box next answers it.
        """
        for _ in range(TRIES):
            halls = sorted({holder.hall for holder in self.gpu_holders().values()})
            names = [*self._names(seating), self._keys.gpus, *map(self._keys.slot, halls)]
            arguments: list[str | int] = [
                seating.attempt,
                seating.word,
                seating.hall,
                answer,
                seats.TRIAL_MS,
            ]
            raw = self._server.run("take_seats", names, *arguments, len(gpus), *gpus, *halls)
            match replies.word(raw):
                case "seated":
                    return api.Written()
                case "fenced":
                    return api.Fenced()
                case "taken":
                    return seats.Taken(*(replies.text(word) for word in raw[1:4]))
        raise errors.LedgerRefusedError("the GPUs change hands too often; try again")

    def tell_seats(self, seating: seats.Seating, answer: str) -> api.Written | api.Fenced:
        """Put another answer in the place of one that was not freed; ``Fenced`` where it was."""
        slot, epoch, _, answers = self._names(seating)
        names = [slot, epoch, answers]
        raw = self._server.run("tell_seats", names, seating.attempt, seating.word, answer)
        return api.Written() if replies.word(raw) == "told" else api.Fenced()

    def seat_answer(self, box: str, attempt: str) -> str | None:
        """Return a box's answer to an attempt's wish, None where there is none yet."""
        with self._server.asked():
            raw: Any = self._server.client.get(self._keys.seats(box, attempt))
        return None if raw is None else replies.text(raw)

    def gpu_holders(self) -> dict[str, seats.Holder]:
        """Return who has each GPU that was taken and not freed: UUID to holder."""
        held = self._server.table(self._keys.gpus)
        return {uuid: seats.Holder.parse(text) for uuid, text in held.items()}

    def free_seats(self, box: str, attempt: str) -> None:
        """Free all of an attempt's GPUs and forget its wish and its answer."""
        names = [self._keys.wants(box), self._keys.seats(box, attempt), self._keys.gpus]
        self._server.run("free_seats", names, attempt)

    def _names(self, seating: seats.Seating) -> list[str]:
        return [
            self._keys.slot(seating.hall),
            self._keys.epoch,
            self._keys.wants(seating.box),
            self._keys.seats(seating.box, seating.attempt),
        ]
