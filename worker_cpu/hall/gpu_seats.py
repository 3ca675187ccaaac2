"""Seats of engines on GPU boxes: requested, awaited, freed.

The wish is in the ledger under the attempt's token; Celery only rings. Invariants:

* no engine of a box is started before its files are the pinned ones there;
* a box that refuses, does not answer or lacks a file that cannot be pushed is a host's
  fault (``HostError``), never an engine's;
* what was wished for is freed, whatever became of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import celery
import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.contract import bells
from orchestrator.ledger import api, seat_store, seats
from worker_cpu.hall import gpu_hosts

log = structlog.get_logger()

ANSWER_SECONDS = 60.0  # s: a box that is busy computing checksums of large networks
POLL_SECONDS = 0.05  # s: between two looks for the answer
PUSH_SECONDS = 30.0  # s: to connect; the files take as long as they take
LOOK_SECONDS = 15.0  # s: for two looks of a box at its GPUs, one every 5 s
PUSHES = 3  # answers that files are missing, before it is given up


@dataclasses.dataclass(frozen=True)
class Seated:
    """An order whose remote engines have their seats, and checksums nobody had pinned."""

    order: contract.GameOrder
    files: Mapping[contract.Side, Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class GpuSeats:
    """Where engines may play beside the hall: the known boxes, and the wishes for them."""

    wishes: seat_store.RedisSeats
    known: Mapping[str, gpu_hosts.BoxAddress]

    def of(self, hall: str, attempt: str, token: contract.Token | None) -> Seating:
        """Return the seats of one attempt."""
        return Seating(self.wishes, self.known, hall, attempt, token)


class Seating:
    """The remote seats of one attempt; nothing at all where both engines play in the hall."""

    def __init__(
        self,
        wishes: seat_store.RedisSeats,
        boxes: Mapping[str, gpu_hosts.BoxAddress],
        hall: str,
        attempt: str,
        token: contract.Token | None,
    ) -> None:
        self._wishes, self._known = wishes, boxes
        self._hall, self._attempt, self._token = hall, attempt, token
        self._asked: dict[str, None] = {}

    def seat(self, order: contract.GameOrder, meanwhile: Callable[[], None]) -> Seated:
        """Get a seat for every engine that plays on a box; raise ``HostError``.

        ``meanwhile`` is called again and again: the lease goes on.
        """
        by_box: dict[str, dict[contract.Side, contract.EngineSpec]] = {}
        engines: dict[contract.Side, contract.EngineSpec] = {
            "white": order.white,
            "black": order.black,
        }
        for side, spec in engines.items():
            if spec.box:
                by_box.setdefault(spec.box, {})[side] = spec
        addresses: dict[contract.Side, contract.SeatAddress] = {}
        files: dict[contract.Side, Mapping[str, str]] = {}
        for name, wanted in by_box.items():
            box = self._box(name)
            answer = self._answered(name, box, self._request(order, box, wanted), meanwhile)
            for side, seat in answer.seats.items():
                addresses[side] = box.seat(
                    name, seat, answer.gpus.get(side, ()), answer.secrets.get(side, "")
                )
            files.update(answer.files)
        return Seated(order.model_copy(update={"seats": addresses}), files)

    def bench(self, name: str, box: gpu_hosts.BoxAddress) -> contract.SeatAnswer:
        """Let a box measure itself, and get a seat there that runs nothing."""
        request = contract.SeatRequest(
            hall=self._hall,
            attempt=self._attempt,
            token=seats.TRIAL,
            game="bench",
            engines={},
            grace_ms=round(box.grace_seconds * 1000),
            beat_ms=round(box.beat_seconds * 1000),
        )
        return self._answered(name, box, request, lambda: None)

    def use_by_side(self, reports: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return what each engine's GPUs did so far; nothing where no answer can be read.

        ``reports`` are the engines' by side, as the referee wrote them.
        """
        try:
            answers = {box: self._answer(box) for box in self._asked}
        except (errors.LedgerAwayError, errors.HostError) as error:
            log.warning("use.unknown", error=str(error))
            return {}
        return {
            side: [use.model_dump(mode="json") for use in _used(reports[side], answers)]
            for side in ("white", "black")
            if reports[side].get("gpus")
        }

    def _answer(self, box: str) -> contract.SeatAnswer | None:
        """Return a box's answer, None while there is none; raise ``HostError`` if damaged."""
        text = self._wishes.seat_answer(box, self._attempt)
        try:
            return None if text is None else contract.SeatAnswer.decode(text)
        except ValueError as error:
            raise errors.HostError(f"{box}: its answer cannot be read: {error}") from error

    def lost_gpu(self, report: Mapping[str, Any], meanwhile: Callable[[], None]) -> str:
        """Return why a GPU is not there any more that a faulty engine ran on, '' where all are.

        ``report`` is the engine's. Its box's next look but one is waited for: an earlier one
        may have begun before the fault. A box that does not look, or tell, proves nothing.
        """
        if not report.get("gpus"):
            return ""
        began, looks = time.monotonic(), -1
        with contextlib.suppress(errors.LedgerAwayError, errors.HostError):
            while time.monotonic() < began + LOOK_SECONDS:
                answer = self._answer(report["box"])
                lost = [use for use in _used(report, {report["box"]: answer}) if use.lost]
                if lost:
                    return "; ".join(f"GPU {use.uuid}: {use.lost}" for use in lost)
                if answer is None or 0 <= looks <= answer.looks - 2:
                    return ""
                looks = answer.looks if looks < 0 else looks
                meanwhile()
                time.sleep(POLL_SECONDS)
        return ""

    def free(self) -> None:
        """Free all that was asked for; while Redis is away the attempt's end does."""
        for box in self._asked:
            try:
                self._wishes.free_seats(box, self._attempt)
            except errors.LedgerAwayError as error:
                log.warning("seats.not_freed", error=str(error))

    def _box(self, name: str) -> gpu_hosts.BoxAddress:
        try:
            return self._known[name]
        except KeyError:
            box_names = ", ".join(self._known) or "none"
            raise errors.HostError(
                f"no GPU box {name!r} is known here: FARM_BOXES lists {box_names}"
            ) from None

    def _request(
        self,
        order: contract.GameOrder,
        box: gpu_hosts.BoxAddress,
        wanted: Mapping[contract.Side, contract.EngineSpec],
    ) -> contract.SeatRequest:
        return contract.SeatRequest(
            hall=self._hall,
            attempt=self._attempt,
            token=seats.TRIAL if self._token is None else str(self._token),
            game=order.game,
            engines=wanted,
            gpus=order.gpus,
            grace_ms=round(box.grace_seconds * 1000),
            beat_ms=round(box.beat_seconds * 1000),
        )

    def _answered(
        self,
        name: str,
        box: gpu_hosts.BoxAddress,
        request: contract.SeatRequest,
        meanwhile: Callable[[], None],
    ) -> contract.SeatAnswer:
        """Ask until the box has given seats; push what it lacks."""
        for _ in range(PUSHES):
            answer = self._ask(name, request, meanwhile)
            if answer.state == "ready":
                return answer
            if answer.state == "refused":
                raise errors.HostError(f"{name}: {answer.reason}")
            push(name, box, request, answer.missing, meanwhile)
        raise errors.HostError(f"{name} still lacks {', '.join(answer.missing.values())}")

    def _ask(
        self, name: str, request: contract.SeatRequest, meanwhile: Callable[[], None]
    ) -> contract.SeatAnswer:
        self._asked[name] = None
        seating = seats.Seating(name, self._hall, self._attempt, self._token)
        if isinstance(self._wishes.want_seats(seating, request.encode()), api.Fenced):
            raise errors.HostError(f"{name}: the attempt has lost its hall, or a game runs there")
        ring(name)
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            answer = self._answer(name)
            if answer is not None:
                return answer
            meanwhile()
            time.sleep(POLL_SECONDS)
        raise errors.HostError(
            f"{name} does not answer within {ANSWER_SECONDS:g} s; is its worker running?"
        )


def _used(
    report: Mapping[str, Any], answers: Mapping[str, contract.SeatAnswer | None]
) -> list[contract.GpuUse]:
    """Return what the GPUs of one engine did, as its box has told."""
    answer = answers.get(report["box"])
    seen = () if answer is None else answer.use
    return [use for use in seen if any(label.endswith(use.uuid) for label in report["gpus"])]


def ring(box: str) -> None:
    """Ring a box; a ring that is lost costs its next look's delay."""
    app = celery.current_app
    if app.main != bells.APP:
        return  # a command without the farm's broker
    try:
        app.send_task(bells.PREPARE, queue=bells.box_queue(box), expires=60)
    except Exception as error:
        log.warning("ring.lost", box=box, error=str(error))


def push(
    name: str,
    box: gpu_hosts.BoxAddress,
    request: contract.SeatRequest,
    missing: Mapping[str, str],
    meanwhile: Callable[[], None],
) -> None:
    """Put the files that a box lacks into its ``incoming``; raise ``HostError``."""
    own = _own_files(request)
    lacking = [path for digest, path in missing.items() if digest not in own]
    if lacking or not box.push_key:
        what = ", ".join(lacking or missing.values())
        raise errors.HostError(
            f"{name} lacks {what}, and this hall has no such file or no push_key to send it with"
        )
    # Its SSH library is 8 MB of memory in every hall and lane; few of them have a box to push to.
    from worker_cpu.engines import ssh  # noqa: PLC0415

    wanted = {f"{box.incoming}/{digest}": own[digest] for digest in missing}
    try:
        ssh.put(box.seat(name, "-"), box.push_key, PUSH_SECONDS, wanted, meanwhile)
    except ssh.BROKEN as error:
        raise errors.HostError(f"{name}: files cannot be pushed: {error}") from error
    for digest in missing:
        log.info("file.pushed", box=name, file=str(own[digest]), sha256=digest)


def _own_files(request: contract.SeatRequest) -> dict[str, pathlib.Path]:
    """Return where this hall keeps the pinned files of the engines, by SHA-256.

    At the same path as on the box: the roster names one place for both.
    """
    by_digest = {}
    for spec in request.engines.values():
        for file, digest in spec.checksums.items():
            path = pathlib.Path(spec.directory or ".") / file
            if path.is_file():
                by_digest[digest] = path
    return by_digest
