"""Seats of GPU boxes in memory: the twin of ``seat_store``, on a ``MemoryLedger``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from twins import memory

from orchestrator.ledger import api, seats


class MemorySeats:
    """The verbs of ``seat_store.RedisSeats``, kept in this process."""

    def __init__(self, ledger: memory.MemoryLedger) -> None:
        self._ledger = ledger
        self._wants: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._answers: dict[tuple[str, str], str] = {}
        self._gpus: dict[str, seats.Holder] = {}

    def want_seats(self, seating: seats.Seating, request: str) -> api.Written | api.Fenced:
        """Write down what an attempt wants of a box."""
        with self._ledger.grown:
            if not self._may(seating):
                return api.Fenced()
            self._wants[seating.box][seating.attempt] = request
            self._answers.pop((seating.box, seating.attempt), None)
            return api.Written()

    def wanted_seats(self, box: str) -> dict[str, str]:
        """Return what is wanted of a box and not answered yet."""
        with self._ledger.grown:
            return dict(self._wants[box])

    def take_seats(
        self, seating: seats.Seating, gpus: Sequence[str], answer: str
    ) -> api.Written | seats.Taken | api.Fenced:
        """Take GPUs and answer in one step."""
        with self._ledger.grown:
            if not self._may(seating):
                return api.Fenced()
            for uuid in gpus:
                held = self._gpus.get(uuid)
                if held and held.attempt != seating.attempt and self._living(held, seating):
                    return seats.Taken(uuid, held.hall, held.attempt)
            deadline = self._ledger.now_ms() + seats.TRIAL_MS
            holder = seats.Holder(seating.hall, seating.attempt, seating.word, deadline)
            self._gpus.update(dict.fromkeys(gpus, holder))
            if answer:
                self._answers[seating.box, seating.attempt] = answer
                self._wants[seating.box].pop(seating.attempt, None)
            return api.Written()

    def tell_seats(self, seating: seats.Seating, answer: str) -> api.Written | api.Fenced:
        """Put another answer in the place of one that was not freed."""
        with self._ledger.grown:
            key = (seating.box, seating.attempt)
            if not self._may(seating) or key not in self._answers:
                return api.Fenced()
            self._answers[key] = answer
            return api.Written()

    def seat_answer(self, box: str, attempt: str) -> str | None:
        """Return a box's answer to an attempt's wish."""
        with self._ledger.grown:
            return self._answers.get((box, attempt))

    def gpu_holders(self) -> dict[str, seats.Holder]:
        """Return who has each GPU that was taken and not freed."""
        with self._ledger.grown:
            return dict(self._gpus)

    def free_seats(self, box: str, attempt: str) -> None:
        """Free all of an attempt's GPUs and forget its wish and its answer."""
        with self._ledger.grown:
            left = {uuid: held for uuid, held in self._gpus.items() if held.attempt != attempt}
            self._gpus = left
            self._wants[box].pop(attempt, None)
            self._answers.pop((box, attempt), None)

    def _may(self, seating: seats.Seating) -> bool:
        slot = self._ledger.slot(seating.hall)
        if seating.token is None or slot is None:
            return seating.token is None and slot is None
        holder = slot.attempt == seating.attempt and slot.token == seating.token
        return holder and slot.token.epoch == self._ledger.epoch

    def _living(self, held: seats.Holder, seating: seats.Seating) -> bool:
        slot = self._ledger.slot(held.hall)
        if held.token == seats.TRIAL:
            running = slot is None and self._ledger.now_ms() < held.deadline_ms
            return running and seating.token is None
        return slot is not None and (slot.attempt, str(slot.token)) == (held.attempt, held.token)
