"""The lease of an attempt: what a renewal does, and what follows when it is lost or taken back."""

from __future__ import annotations

import json
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import Any

import harness
import pytest
from twins import memory

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api
from worker_cpu.engines import handles
from worker_cpu.link import lease

BEAT_SECONDS = 60.0  # s: no renewal of these tests comes by itself


class Scene:
    """A claimed game with its lease, and a real dead man who owns no engine."""

    def __init__(self, root: pathlib.Path) -> None:
        self.ledger = memory.MemoryLedger()
        self.ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
        self.ledger.offer(harness.HALL, "s", "g", "{}", 1)
        claim = harness.claim("s", "g", "a")
        self.ledger.open_hall(claim.hall, claim.host, claim.worker)
        claimed = self.ledger.claim(claim)
        assert isinstance(claimed, api.Claimed)
        self.claim, self.token = claim, claimed.token
        self.carried = (0, 0)  # ply, and when it was made
        self._referee, theirs = socket.socketpair()
        channel, other = socket.socketpair()
        referee = handles.RefereeProcess(handles.Fork(os.getpid(), 1), channel, theirs)
        self.dead_man = handles.DeadMan(root / "log", root, None, 600, referee)
        self._open = (self._referee, channel, other)
        self.lease = self.leased(self.token)

    def leased(self, token: contract.Token) -> lease.Lease:
        """Return a lease under a token."""

        def renewal() -> api.Renewed | api.Fenced:
            claim = self.claim
            return self.ledger.renew(claim.hall, token, claim.attempt, *self.carried)

        return lease.Lease(renewal, self.dead_man, BEAT_SECONDS)

    def last_words(self) -> str:
        """Wait for the dead man's end; return what he told the referee of it."""
        self.dead_man.wait()
        return str(json.loads(self._referee.recv(1 << 16).splitlines()[-1])["why"])

    def close(self) -> None:
        """End the dead man."""
        self.dead_man.end()
        self.dead_man.wait()
        for one in self._open:
            one.close()


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Iterator[Scene]:
    """Give a claimed game."""
    made = Scene(tmp_path)
    yield made
    made.close()


def never(*_: Any) -> Any:
    """Fail when asked."""
    raise AssertionError("a renewal that nobody may ask for")


def test_a_renewal_is_asked_for_and_the_next_one_waits_for_its_beat(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot shows what the renewal carried; before its beat nothing is asked."""
    scene.carried = (7, 1234)
    scene.lease.renew()
    slot = scene.ledger.slot(harness.HALL)
    assert slot is not None
    assert (slot.ply, slot.last_move_ms) == (7, 1234)
    assert 0 < scene.lease.rest_seconds <= BEAT_SECONDS
    monkeypatch.setattr(scene.ledger, "renew", never)
    scene.lease.beat()


def test_a_lost_lease_ends_the_engines_and_is_never_asked_for_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that another attempt has overtaken writes nothing any more."""
    overtaken = scene.leased(contract.Token.parse("0.1"))
    overtaken.renew()
    assert overtaken.lost
    assert scene.last_words() == lease.FENCED
    monkeypatch.setattr(scene.ledger, "renew", never)
    overtaken.beat()


def test_an_abort_is_heard_with_a_renewal(scene: Scene) -> None:
    """The operator's reason is kept for the record, and said to the dead man."""
    wish = api.Abort(harness.HALL, scene.claim.attempt, "fire alarm")
    scene.ledger.append("s", scene.ledger.last("s"), [contract.Draft("x", {})], "op", [wish])
    scene.lease.renew()
    assert (scene.lease.aborted, scene.lease.lost) == ("fire alarm", False)
    assert scene.last_words() == "aborted: fire alarm"


def test_a_renewal_that_fails_is_tried_again_soon(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis that is away takes no right to write; only its answer does."""

    def away(*_: Any) -> Any:
        raise errors.LedgerUnreachableError("away")

    monkeypatch.setattr(scene.ledger, "renew", away)
    scene.lease.renew()
    assert scene.lease.rest_seconds <= lease.HURRY_SECONDS
    assert not scene.lease.lost
    assert not scene.dead_man.ended


def test_a_lease_that_was_just_given_is_renewed_one_beat_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane's game is claimed with the result before it: nothing is asked before the next beat."""
    monkeypatch.setattr(scene.ledger, "renew", never)
    scene.lease.asked_at(handles.boottime_ns())
    assert 0 < scene.lease.rest_seconds <= BEAT_SECONDS
    scene.lease.beat()
    scene.lease.asked_at(handles.boottime_ns() - round(2 * BEAT_SECONDS * 1e9))
    assert scene.lease.rest_seconds == 0
