"""The lookout over a lease, against the ledger in memory: when is an attempt given up?"""

from __future__ import annotations

import harness
import hypothesis
import pytest
from hypothesis import strategies
from twins import memory

from orchestrator import contract
from orchestrator.ledger import api
from orchestrator.serve import backoff, lease_monitor

TTL = 60.0  # s: what the harness' claims ask for
STEPS = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("look"), strategies.floats(0.1, 9.0)),
        strategies.tuples(strategies.just("renew"), strategies.floats(0.1, 40.0)),
        # Not to be hidden by the time between two renewals, to the millisecond.
        strategies.tuples(strategies.just("step"), strategies.sampled_from([-10_799.877, 61.043])),
    ),
    max_size=80,
)


class Watched:
    """A hall that holds a lease, Redis' clock, and the lookout's own."""

    def __init__(self) -> None:
        self.now = 1_000.0  # monotonic seconds
        self.stepped = 0.0  # seconds that Redis' clock is away from it
        self.ledger = memory.MemoryLedger(lambda: round((self.now + self.stepped) * 1000) + 10**9)
        self.ledger.append("s", 0, [contract.Draft("launched", {})], "test")
        self.ledger.offer(harness.HALL, "s", "g", "{}", 1)
        claimed = self.ledger.claim(harness.claim("s", "g", "a1"))
        assert isinstance(claimed, api.Claimed)
        self.token, self.renewed = claimed.token, self.now
        self.lookout = lease_monitor.LeaseMonitor(harness.HALL)

    def renew(self) -> None:
        """Renew the lease, as the link does on its beat."""
        reply = self.ledger.renew(harness.HALL, self.token, "a1", 0, 0)
        assert isinstance(reply, api.Renewed)
        self.renewed = self.now

    def look(self, after: float) -> bool:
        """Look so many seconds later; say whether the lease was revoked."""
        self.now += after
        return self.lookout.look(self.ledger, self.ledger.slot(harness.HALL), self.now)

    def revoked_after(self, seconds: float = 1_000.0) -> float:
        """Look once a second until the lease is revoked; return how long after its renewal."""
        while not self.look(1.0):
            assert self.now - self.renewed < seconds, "never revoked"
        return self.now - self.renewed


def test_a_lost_host_costs_one_lease() -> None:
    """Looks count from the last renewal: a lease, and not a second one behind it."""
    hall = Watched()
    for _ in range(3):
        hall.look(1.0)
        hall.renew()
    assert TTL < hall.revoked_after() <= TTL + 2
    ended = hall.ledger.read("s")[-1]
    assert (ended.kind, ended.data["cause"]) == ("attempt_ended", "host lost")
    assert hall.ledger.slot(harness.HALL) is None


def test_looks_that_were_interrupted_begin_anew() -> None:
    """After a gap in the looks a whole lease of them is wanted: the hall could not renew either."""
    hall = Watched()
    for _ in range(int(TTL) - 5):
        assert not hall.look(1.0)
    assert not hall.look(lease_monitor.LATE_LOOK_SECONDS + 0.1)
    assert hall.revoked_after() > 2 * TTL - 5


def test_a_stepped_clock_revokes_no_lease_that_is_renewed() -> None:
    """Redis' clock goes three hours ahead, and back, while the hall renews on its beat."""
    hall = Watched()
    for second in range(400):
        hall.stepped = 10_800.0 if 100 < second < 250 else 0.0
        if second % 10 == 0:
            hall.renew()
        assert not hall.look(1.0)


@hypothesis.given(STEPS)
def test_no_lease_is_revoked_within_its_time(steps: list[tuple[str, float]]) -> None:
    """Whatever Redis' clock does: between the last renewal and a revocation lies a lease."""
    hall = Watched()
    for verb, value in steps:
        if verb == "step":
            hall.stepped += value
        elif verb == "renew":
            hall.now += value
            hall.renew()
        elif hall.look(value):
            assert hall.now - hall.renewed >= TTL
            return


def test_a_ring_that_nobody_hears_comes_again_soon() -> None:
    """After a tenth of a second, ever later, then every five; at once for something new."""
    bell = backoff.Bell()
    rung = [tenth / 10 for tenth in range(200) if bell.rings_at(tenth / 10 + 0.001)]
    assert rung == pytest.approx([0, 0.1, 0.4, 1.4, 3.4, 8.4, 13.4, 18.4], abs=0.2)
    bell.news()
    assert [bell.rings_at(at) for at in (18.5, 18.55, 18.61)] == [True, False, True]
