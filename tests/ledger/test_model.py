"""Both twins do the same, whatever is asked of them in whatever order."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import hypothesis
import pytest
import scene
from hypothesis import stateful
from hypothesis import strategies as st
from twins import memory

from orchestrator import contract
from orchestrator.ledger import api, embedded_redis, store

HALLS = st.sampled_from(["main", "aside"])
SEASONS = st.sampled_from(["s1", "s2"])
GAMES = st.sampled_from([f"g{n}" for n in range(8)])
WORKERS = st.sampled_from([("w1", "h1")] * 3 + [("w2", "h1"), ("w3", "h2")])
CHAINS = st.sampled_from(["c1", "c1", "c2"])
TTLS = st.sampled_from([scene.SHORT, scene.LONG])
PLIES = st.integers(1, 3)
LAG = st.sampled_from([0, 0, 0, 1])  # how often a writer has not seen the last entry
# The hall "main" and the season "s1" are never held, so that games go on.
SCOPES = st.sampled_from(["s2", "hall:aside"])
EFFECTS = st.lists(
    st.one_of(
        st.builds(api.Hold, SCOPES, st.just("pause"), st.sampled_from(["tea", ""])),
        st.builds(api.Release, SCOPES, st.just("pause")),
        st.builds(api.Drain, HALLS, st.just("w2"), st.just("update")),
        st.builds(api.Undrain, HALLS, st.just("w2")),
    ),
    max_size=2,
)


@dataclasses.dataclass(frozen=True)
class Given:
    """A claim that was granted, and its token: what its attempt knows of itself."""

    claim: api.Claim
    token: contract.Token


def _timeless(entry: contract.Entry) -> contract.Entry:
    return dataclasses.replace(entry, at_ms=0)


def _slot_view(slot: api.Slot | None) -> api.Slot | None:
    return slot and dataclasses.replace(slot, deadline_ms=0)


class Twins(stateful.RuleBasedStateMachine):
    """Every rule asks both ledgers the same and compares; invariants hold after each."""

    redis: ClassVar[store.RedisLedger]
    given = stateful.Bundle("given")

    def __init__(self) -> None:
        super().__init__()
        self.redis.server.client.flushall()
        self.memory = memory.MemoryLedger()
        self.attempts: list[str] = []
        self.top: dict[str, contract.Token] = {}
        for season in ("s1", "s2"):
            self.both("append", season, 0, [scene.draft("launched")], "op")

    def both(self, verb: str, *args: Any) -> Any:
        """Ask both and return the one answer."""
        ours = getattr(self.memory, verb)(*args)
        theirs = getattr(self.redis, verb)(*args)
        assert ours == theirs
        return ours

    @stateful.rule(journal=SEASONS, lag=LAG, by=st.sampled_from(["x", "y"]), effects=EFFECTS)
    def append(self, journal: str, lag: int, by: str, effects: list[api.Effect]) -> None:
        """Append at the end, or behind it, or what was appended before."""
        expected = max(0, self.memory.last(journal) - 2 * lag)
        self.both("append", journal, expected, [scene.draft(), scene.draft("y")], by, effects)

    @stateful.rule(given=given)
    def abort(self, given: Given) -> None:
        """Wish the end of an attempt, running or over."""
        season, hall, attempt = given.claim.season, given.claim.hall, given.claim.attempt
        wish = [api.Abort(hall, attempt, "power")]
        self.both("append", season, self.memory.last(season), [scene.draft()], "op", wish)

    @stateful.rule(hall=HALLS, season=SEASONS, game=GAMES, lag=LAG)
    def offer(self, hall: str, season: str, game: str, lag: int) -> None:
        """Offer a game, seldom on stale knowledge."""
        expected = self.memory.last(season) - lag
        self.both("offer", hall, season, game, f"order of {game}", expected)

    @stateful.rule(hall=HALLS, season=SEASONS)
    def withdraw(self, hall: str, season: str) -> None:
        """Take an offer back."""
        self.both("withdraw", hall, season)

    @stateful.rule(hall=HALLS, worker=WORKERS)
    def open_hall(self, hall: str, worker: tuple[str, str]) -> None:
        """Open a hall, perhaps for the wrong host."""
        self.both("open_hall", hall, worker[1], worker[0])

    @stateful.rule(
        target=given, hall=HALLS, season=SEASONS, game=GAMES, worker=WORKERS, ttl_ms=TTLS
    )
    def claim(self, hall: str, season: str, game: str, worker: tuple[str, str], ttl_ms: int) -> Any:
        """Claim for a new attempt what is offered, or else an unoffered game."""
        attempt = f"a{len(self.attempts)}"
        self.attempts.append(attempt)
        game = self.memory.offered(hall).get(season, game)
        claim = api.Claim(hall, season, game, attempt, worker[0], worker[1], "", ttl_ms)
        reply = self.both("claim", claim)
        scene.lapse()
        if not isinstance(reply, api.Claimed):
            return stateful.multiple()
        assert hall not in self.top or reply.token > self.top[hall]
        self.top[hall] = reply.token
        return Given(claim, reply.token)

    @stateful.rule(
        target=given, hall=HALLS, season=SEASONS, game=GAMES, ttl_ms=TTLS, away=st.booleans()
    )
    def start(self, hall: str, season: str, game: str, ttl_ms: int, away: bool) -> Any:
        """Offer a game and claim it, after the last holder is done with when it is away."""
        slot = self.memory.slot(hall)
        if slot and away:
            end = scene.ended(slot.attempt, slot.game)
            self.both("give_up", hall, slot.token, slot.season, end)
        self.offer(hall, season, game, 0)
        return self.claim(hall, season, game, ("w1", "h1"), ttl_ms)

    @stateful.rule(given=given)
    def claim_again(self, given: Given) -> None:
        """Repeat a claim whose reply was lost, early or much too late."""
        self.both("claim", given.claim)

    @stateful.rule(given=given, ply=PLIES, text=st.sampled_from(["p", "p", "q"]))
    def write_ply(self, given: Given, ply: int, text: str) -> None:
        """Write a ply, running or over."""
        claim = given.claim
        self.both("write_ply", claim.hall, given.token, claim.attempt, ply, text)

    @stateful.rule(given=given, ply=PLIES)
    def renew(self, given: Given, ply: int) -> None:
        """Renew, running or over."""
        self.both("renew", given.claim.hall, given.token, given.claim.attempt, ply, 7)
        scene.lapse()

    @stateful.rule(given=given)
    def complete(self, given: Given) -> None:
        """Finish a game, or come with a spool."""
        claim = given.claim
        finished = scene.finished(claim.attempt, claim.game)
        self.both("complete", claim.hall, given.token, claim.season, finished, b"r")

    @stateful.rule(target=given, given=given, game=GAMES, same=st.booleans())
    def relieve(self, given: Given, game: str, same: bool) -> Any:
        """Give up, let another attempt begin this or another game, then come with a spool."""
        claim = given.claim
        self.give_up(given)
        game = claim.game if same else game
        self.offer(claim.hall, claim.season, game, 0)
        relief = self.claim(claim.hall, claim.season, game, ("w1", "h1"), scene.LONG)
        self.complete(given)
        return relief

    @stateful.rule(given=given)
    def give_up(self, given: Given) -> None:
        """Give up, running or over."""
        claim = given.claim
        end = scene.ended(claim.attempt, claim.game)
        self.both("give_up", claim.hall, given.token, claim.season, end)

    @stateful.rule(given=given, chain=CHAINS)
    def suspect(self, given: Given, chain: str) -> None:
        """Look at a lease."""
        self.both("suspect", given.claim.hall, given.token, chain)

    @stateful.rule(given=given, chain=CHAINS)
    def revoke(self, given: Given, chain: str) -> None:
        """Revoke a lease, if it may be."""
        claim = given.claim
        end = scene.ended(claim.attempt, claim.game)
        self.both("revoke", claim.hall, given.token, chain, end)

    @stateful.rule(
        hall=HALLS, season=SEASONS, game=GAMES, epoch=st.integers(1, 2), n=st.integers(1, 4)
    )
    def intrude(self, hall: str, season: str, game: str, epoch: int, n: int) -> None:
        """Come with a token that was never given to this attempt."""
        token = contract.Token(epoch, n)
        self.both("write_ply", hall, token, "a0", 1, "p")
        self.both("renew", hall, token, "none", 1, 1)
        self.both("give_up", hall, token, season, scene.ended("none", game))
        self.both("complete", hall, token, season, scene.finished("none", game), b"r")
        self.both("revoke", hall, token, "c1", scene.ended("none", game))

    @stateful.rule(given=given)
    def archived(self, given: Given) -> None:
        """Archive an attempt."""
        self.both("archived", given.claim.attempt)

    @stateful.rule(given=given)
    def plies_archived(self, given: Given) -> None:
        """Take an attempt's plies alone into the archive."""
        self.both("plies_archived", given.claim.attempt)

    @stateful.precondition(lambda self: self.memory.epoch < 2 <= len(self.attempts) / 4)
    @stateful.rule()
    def restore(self) -> None:
        """Raise the epoch on both; whoever holds a slot finds it closed."""
        scene.raise_epoch(self.memory, 2)
        scene.raise_epoch(self.redis, 2)
        for hall in ("main", "aside"):
            slot = self.memory.slot(hall)
            if slot:
                self.both("write_ply", hall, slot.token, slot.attempt, 1, "p")
                self.both("renew", hall, slot.token, slot.attempt, 1, 1)

    @stateful.invariant()
    def both_show_the_same(self) -> None:
        """Slots, offers, holds, journals and records of both are equal."""
        for hall in ("main", "aside"):
            assert _slot_view(self.memory.slot(hall)) == _slot_view(self.redis.slot(hall))
            self.both("offered", hall)
            self.both("drained", hall, "w2")
        for scope in ("s2", "hall:aside"):
            self.both("holds", scope)
        for attempt in self.attempts[-3:]:
            self.both("plies", attempt)
            self.both("record", attempt)
        self.both("halls")

    @stateful.invariant()
    def journals_are_sound(self) -> None:
        """Numbers are contiguous, times grow, a game has one result, an attempt one start."""
        for season in ("s1", "s2"):
            entries = self.redis.read(season)
            ours = self.memory.read(season)
            assert [_timeless(e) for e in ours] == [_timeless(e) for e in entries]
            assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
            assert [e.at_ms for e in entries] == sorted(e.at_ms for e in entries)
            results = [e.data["game"] for e in entries if e.kind == "game_finished"]
            starts = [e.data["attempt"] for e in entries if e.kind == "attempt_started"]
            ends = [e.data["attempt"] for e in entries if e.kind == "attempt_ended"]
            for once in (results, starts, ends):
                assert len(once) == len(set(once))


@pytest.mark.usefixtures("redis_ledger")
def test_the_twins_agree(
    redis_ledger: store.RedisLedger, server: embedded_redis.EmbeddedRedis
) -> None:
    """Random verbs in random order: equal replies, equal state, all invariants kept."""
    Twins.redis = redis_ledger
    stateful.run_state_machine_as_test(
        Twins,
        settings=hypothesis.settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        ),
    )
