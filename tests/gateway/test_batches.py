"""Batches in Redis, under the rights of the gateway's own user."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from collections.abc import Iterator

import harness
import pytest
import told

from orchestrator.contract import remote
from orchestrator.gateway import desk
from orchestrator.ledger import api, batches, lane_store, lanes, store, worker_tokens
from orchestrator.testmatch import catalogue

LONG, SHORT = 1_000_000_000, 1  # ms
RESULT = '{"game":1}'


@dataclasses.dataclass
class Scene:
    """The gateway's verbs, and a farm's own hands beside them."""

    batches: batches.RedisBatches
    tokens: worker_tokens.RedisTokens
    lanes: lane_store.RedisLanes
    ledger: store.RedisLedger

    def open(self, name: str = "m", games: int = 10, **other: int) -> None:
        """Open a test match."""
        self.lanes.open_match(lanes.Match(name, games, "{}", **other))  # type: ignore[arg-type]

    def claim(
        self, batch: str = "b1", games: int = 4, ttl_ms: int = LONG, **other: object
    ) -> object:
        """Claim games as a worker of token t."""
        fields: dict[str, object] = {"owner": "t", "most_batches": 9, "matches": {"m": 0, "n": 0}}
        return self.batches.claim(
            batches.Claim(batch, worker="anna/box", ttl_ms=ttl_ms, games=games, **fields | other)  # type: ignore[arg-type]
        )

    def dealt(self, batch: str = "b1", games: int = 4, ttl_ms: int = LONG) -> batches.Batch:
        """Claim games that there are."""
        reply = self.claim(batch, games, ttl_ms)
        assert isinstance(reply, batches.Batch), reply
        return reply

    def lapse(self) -> int:
        """End the ``SHORT`` leases."""
        time.sleep(0.005)
        return self.batches.lapse()

    def results(self, match: str = "m") -> int:
        """Count the results of a match's journal."""
        return sum(entry.kind == lanes.GAME for entry in self.ledger.read(lanes.journal(match)))


@pytest.fixture
def scene(redis: harness.Redis) -> Iterator[Scene]:
    """Give the verbs under the gateway's user, the others under an operator's."""
    with (
        store.connect(redis.url_of("gateway")) as own,
        store.connect(redis.url_of(harness.OPERATOR)) as other,
    ):
        yield Scene(
            batches.RedisBatches(own.server),
            worker_tokens.RedisTokens(own.server),
            lane_store.RedisLanes(other.server),
            other,
        )


def test_pairs_stay_whole_and_a_repeated_claim_gets_the_same_games(scene: Scene) -> None:
    """Both games of a new pair are in one batch, also beyond the number that was asked for."""
    scene.open()
    first = scene.dealt("b1", 3)
    assert first.games == (1, 2, 3, 4)
    assert scene.dealt("b1", 3) == first
    assert scene.dealt("b2", 2).games == (5, 6)
    assert scene.dealt("b3").games == (7, 8, 9, 10)
    assert scene.claim("b4") == api.NotReady()


def test_a_result_is_journaled_once(scene: Scene) -> None:
    """A repeat is answered as before, after the batch's last game too; no other game is taken."""
    scene.open()
    batch = scene.dealt("b1", 2)
    assert scene.batches.record(batch, 1, RESULT) == api.Recorded(2)
    assert scene.batches.record(batch, 1, RESULT) == api.Recorded(2)
    assert scene.batches.record(batch, 3, RESULT) == batches.ForeignGame()
    assert scene.batches.record(batch, 2, RESULT) == api.Recorded(3)
    assert scene.batches.record(batch, 2, RESULT) == api.Recorded(3)
    assert scene.results() == 2
    assert scene.claim("b1") == api.NotReady()
    assert scene.tokens.uses()["t"] == worker_tokens.Use(2, 0, 0, {})


def test_a_check_is_no_counted_game_and_is_noted_while_its_match_is_open(scene: Scene) -> None:
    """What was noted of a match later would stay for ever."""
    scene.open()
    check = scene.claim(matches={"m": 0}, checks={"m": "7!"})
    assert isinstance(check, batches.Batch)
    assert isinstance(scene.batches.record(check, check.games[0], RESULT), api.Recorded)
    assert (len(check.games), scene.tokens.uses()["t"].games) == (1, 0)
    for owed in ("7 b1", batches.OWES_NONE, ""):
        scene.batches.note_check("m", "t/box", owed)
        assert scene.batches.owed("t/box", ["m"]) == {"m": owed}
    scene.lanes.close_match("m")
    scene.batches.note_check("m", "t/box", batches.OWES_NONE)
    assert scene.batches.owed("t/box", ["m"]) == {"m": ""}


def test_a_token_that_two_write_at_once_keeps_what_both_say(scene: Scene) -> None:
    """Whoever read it before the other wrote: it is revoked, and condemned."""
    tokens = worker_tokens.RedisTokens(scene.ledger.server)
    for first in ("revoked", "condemned"):
        read, _ = worker_tokens.make("anna", ("*",), 0, 1 << 50, "test", 9)
        tokens.write(read)
        if first == "revoked":
            tokens.revoke(read.id, 5)
        tokens.write(dataclasses.replace(read, condemned="another build"))
        tokens.revoke(read.id, 6)
        now = tokens.find(read.id)
        expected = (5 if first == "revoked" else 6, "another build")
        assert now is not None
        assert (now.revoked_ms, now.condemned) == expected


def test_games_of_a_lease_that_ran_out_are_dealt_again(scene: Scene) -> None:
    """Those without a result, before new ones; what comes under the old lease is fenced."""
    scene.open()
    lost = scene.dealt("b1", 4, SHORT)
    assert isinstance(scene.batches.record(lost, 2, RESULT), api.Recorded)
    assert scene.lapse() == 1
    assert scene.batches.record(lost, 1, RESULT) == api.Fenced()
    assert scene.batches.record(lost, 2, RESULT) == api.Fenced()
    assert scene.batches.renew(lost.id, "t", str(lost.token)) == api.Fenced()
    assert scene.dealt("b2", 4).games == (1, 3, 4, 5, 6)
    assert scene.results() == 1


def test_a_renewed_lease_does_not_end(scene: Scene) -> None:
    """And tells when the games are no longer wanted; nothing is recorded then."""
    scene.open()
    batch = scene.dealt("b1", 2, 60_000)
    assert scene.batches.renew("b1", "t", str(batch.token)) == api.Renewed("", "")
    assert scene.lapse() == 0
    scene.lanes.close_match("m")
    scene.open()
    renewed = scene.batches.renew("b1", "t", str(batch.token))
    assert renewed == api.Renewed(lanes.STOPPED, "")
    assert scene.batches.record(batch, 1, RESULT) == api.Fenced()
    assert scene.batches.give_back("b1", "t", str(batch.token)) == 0
    assert scene.dealt("b2", 2).games == (1, 2), "the match that was opened again deals them"


def test_a_batch_is_its_tokens_alone(scene: Scene) -> None:
    """Another owner, or another token of the lease, changes nothing of it."""
    scene.open()
    batch = scene.dealt()
    stranger = dataclasses.replace(batch, owner="u")
    assert scene.claim("b1", owner="u") == api.NotReady()
    assert scene.batches.record(stranger, 1, RESULT) == api.Fenced()
    assert scene.batches.renew("b1", "u", str(batch.token)) == api.Fenced()
    assert scene.batches.give_back("b1", "u", str(batch.token)) == api.Fenced()
    assert scene.batches.give_back("b1", "t", "1.77") == api.Fenced()
    assert scene.batches.give_back("b1", "t", str(batch.token), refused=True) == 4
    assert scene.tokens.uses()["t"].refused == 1


def test_a_token_holds_so_many_batches_and_no_more(scene: Scene) -> None:
    """One that was told, given back or lost makes room."""
    scene.open()
    batch = scene.dealt("b1", 2)
    assert scene.claim("b2", most_batches=1) == api.Busy("1")
    scene.batches.give_back("b1", "t", str(batch.token))
    assert isinstance(scene.claim("b2", 2, SHORT, most_batches=1), batches.Batch)
    scene.lapse()
    assert isinstance(scene.claim("b3", 2, SHORT, most_batches=1), batches.Batch)
    assert scene.claim("b4", 2, most_batches=1) == api.Busy("1")


def test_matches_share_workers_as_they_share_lanes(scene: Scene) -> None:
    """The higher priority first; among equals by share; only matches that the worker may play."""
    scene.open("m", 1000)
    scene.open("n", 1000, share=3)
    scene.open("o", 1000, priority=1)
    dealt = [scene.dealt(f"b{turn}", 2).match for turn in range(8)]
    assert (dealt.count("m"), dealt.count("n")) == (2, 6)
    reply = scene.claim("b9", matches={"m": 0, "o": 0})
    assert isinstance(reply, batches.Batch)
    assert reply.match == "o"


def test_a_lane_and_a_batch_never_get_the_same_game(scene: Scene) -> None:
    """They deal by one counter; a pair that a lane has begun is ended by whoever comes next."""
    scene.open()
    scene.lanes.open_lane(lanes.Lane("main", "a", "h1", frozenset({0}), 100))
    claim = lanes.LaneClaim("main", "a", "a-1", "w", "h1", LONG)
    assert isinstance(scene.lanes.claim_lane(claim), lanes.Dealt)
    assert scene.dealt("b1", 3).games == (2, 3, 4)


def test_a_restored_ledger_takes_nothing_of_before(scene: Scene, redis: harness.Redis) -> None:
    """A restore raises the epoch: older batches are fenced and end by their leases."""
    scene.open()
    batch = scene.dealt("b1", 2, SHORT)
    with store.connect(redis.url) as admin:
        admin.server.client.set("farm:ledger:epoch", 7)
    assert scene.batches.record(batch, 1, RESULT) == api.Fenced()
    assert scene.claim("b1") == api.NotReady()
    scene.lapse()
    assert scene.dealt("b2", 2).token.epoch == 7


# -- what the gateway asks of them --------------------------------------------------------


class Worker:
    """A worker that has both engines, before the gateway's desk."""

    def __init__(self, scene: Scene, *matches: str) -> None:
        self.scene = scene
        self.desk = desk.Desk(
            scene.batches, scene.tokens, LONG, catalogue.Catalogue(pathlib.Path())
        )
        self.token, _ = worker_tokens.make("anna", matches or ("*",), 0, 1 << 50, "test", 99)

    def open(self, name: str, **other: object) -> None:
        """Open a match with both engines."""
        spec = told.spec(name)
        self.scene.lanes.open_match(lanes.Match(name, spec.games, spec.encode(), **other))  # type: ignore[arg-type]

    def claim(self, batch: str) -> remote.BatchDealt:
        """Ask for two games."""
        files = (told.DEV, told.BASE)
        wanted = {"batch": batch, "host": "box", "games": 2, "cores": 1, "memory_mb": 1000}
        return self.desk.claim(self.token, remote.BatchWanted(files=files, **wanted))  # type: ignore[arg-type]

    def cost(self, number: int) -> float:
        """Return the commands in Redis of a batch beside so many open matches."""
        for at in range(number):
            self.open(f"free-{at}")
            self.open(f"hall-{at}", halls=("other",))
            self.open(f"over-{at}", next=11)
        for turn in range(number // 2):  # what is read once of each match, and what is over
            self.claim(f"first-{number}-{turn}")
        before = self._commands()
        for turn in range(10):
            dealt = self.claim(f"b-{number}-{turn}")
            named = remote.BatchNamed(batch=f"b-{number}-{turn}", token=dealt.token)
            assert self.desk.give_back(self.token, named) == 2
        return (self._commands() - before) / 10

    def _commands(self) -> int:
        counted = self.scene.ledger.server.client.info("commandstats")
        return sum(int(each["calls"]) for each in counted.values())


def test_a_claim_costs_the_same_beside_few_and_many_matches(scene: Scene) -> None:
    """Of other halls, without games left, and those that the worker may play."""
    worker = Worker(scene)
    few, many = worker.cost(8), worker.cost(40)
    assert many < few * 1.2, (few, many)


def test_of_many_matches_the_one_whose_turn_it_is_is_dealt(scene: Scene) -> None:
    """Those before it are of other engines, another's, or have no games left."""
    worker, berta = Worker(scene), Worker(scene, "zz")
    for at in range(30):
        strange = told.spec(f"other-{at}", engines=[told._engine(name, "e" * 64) for name in "xy"])
        opened = lanes.Match(strange.id, 10, strange.encode(), priority=1)
        scene.lanes.open_match(opened)
    for at in range(12):
        worker.open(f"over-{at}", priority=2, next=11)
    for name in ("ours", "zz"):
        worker.open(name)
    assert [worker.claim(batch).match for batch in ("b1", "b2")] == ["ours", "zz"]
    assert worker.claim("b1").match == "ours", "told again"
    assert berta.claim("b3").match == "zz"
    worker.open("late", share=3)
    dealt = [worker.claim(f"c{turn}").match for turn in range(10)]
    assert dealt.count("late") == 5, "all of its games, by its share"
    assert scene.lanes.spec("ours") is not None
