"""The contract of lanes and test matches: one suite for the twin in memory and for Redis."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import threading
from collections.abc import Iterator, Sequence

import pytest
import scene
from twins import lane_memory, memory

from orchestrator import contract
from orchestrator.ledger import api, batches, embedded_redis, keys, lane_store, lanes, store
from orchestrator.ops import acl
from orchestrator.testmatch import orders

HALL = "main"


@dataclasses.dataclass
class Scene:
    """A ledger and the lanes on it."""

    ledger: scene.Twin
    lanes: lane_store.RedisLanes
    numbers: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def open(self, *names: str, cpus: int = 1, **other: int) -> None:
        """Open lanes with cores of their own."""
        for at, name in enumerate(names):
            own = frozenset(range(at * cpus, (at + 1) * cpus))
            assert self.lanes.open_lane(lane(name, own, **other)) == api.Opened()

    def claim(
        self, name: str, attempt: str = "", ttl_ms: int = scene.LONG, most: int = 1
    ) -> object:
        """Claim a lane as its worker does."""
        claim = dataclasses.replace(a_claim(name, attempt, ttl_ms), most=most)
        return self.lanes.claim_lane(claim)

    def lease(self, name: str) -> lanes.Lease:
        """Return who plays in a lane."""
        return next(one for one in self.lanes.leases(HALL) if one.lane == name)

    def finish(self, name: str, kind: str = lanes.GAME, *, goes_on: bool = True) -> object:
        """Complete what runs in a lane."""
        return self.lanes.complete_lane(self.lease(name), '{"game":1}', kind, goes_on=goes_on)

    def dealt(self, turns: int, lane_name: str = "a") -> list[tuple[str, int]]:
        """Play games in one lane, one after the other; return match and number of each."""
        found = []
        for _ in range(turns):
            reply = self.claim(lane_name, f"turn-{next(self.numbers)}")
            assert isinstance(reply, lanes.Dealt), reply
            found.append((reply.match, reply.game))
            self.finish(lane_name)
        return found


def lane(name: str, cpus: frozenset[int], host: str = "h1", **other: int) -> lanes.Lane:
    """Describe a lane of the test's hall."""
    return lanes.Lane(HALL, name, host, cpus, **{"memory_mb": 100, **other})  # type: ignore[arg-type]


def match(name: str = "m", games: int = 10, again: Sequence[int] = (), **other: int) -> lanes.Match:
    """Describe a test match."""
    return lanes.Match(name, games, "{}", again=tuple(again), **other)  # type: ignore[arg-type]


def a_claim(name: str, attempt: str = "", ttl_ms: int = scene.LONG) -> lanes.LaneClaim:
    """Claim a lane as worker w-NAME of host h1."""
    return lanes.LaneClaim(HALL, name, attempt or f"{name}-1", f"w-{name}", "h1", ttl_ms)


@pytest.fixture
def place(ledger: scene.Twin) -> Scene:
    """Give each of the twins in turn, empty."""
    if isinstance(ledger, memory.MemoryLedger):
        return Scene(ledger, lane_memory.MemoryLanes(ledger))
    assert isinstance(ledger, store.RedisLedger)
    return Scene(ledger, lane_store.RedisLanes(ledger.server))


# -- lanes ---------------------------------------------------------------------------


def test_lanes_never_share_a_core(place: Scene) -> None:
    """A lane with a core of another is refused by the other's name; closing it frees its cores."""
    place.open("a", "b", cpus=2)
    assert place.lanes.open_lane(lane("c", frozenset({3, 4}))) == lanes.Overlap("b")
    assert [one.name for one in place.lanes.lanes_of(HALL)] == ["a", "b"]
    place.lanes.close_lane(HALL, "b")
    assert place.lanes.open_lane(lane("c", frozenset({3, 4}))) == api.Opened()
    assert place.lanes.lanes_of(HALL)[1] == lane("c", frozenset({3, 4}))


def test_lanes_never_share_a_box_and_need_those_of_their_games(place: Scene) -> None:
    """A match with an engine on a box is dealt in the one lane that has it, others are not held."""
    assert place.lanes.open_lane(boxed("a", 0, "gpu-1", "gpu-2")) == api.Opened()
    assert place.lanes.open_lane(boxed("b", 1, "gpu-2")) == lanes.Overlap("a")
    assert place.lanes.open_lane(boxed("b", 1, "gpu-3")) == api.Opened()
    assert place.lanes.lanes_of(HALL)[0].boxes == {"gpu-1", "gpu-2"}
    away = lanes.Needs(boxes=("gpu-1", "gpu-2"))
    place.lanes.open_match(dataclasses.replace(match("away"), needs=away))
    assert place.lanes.matches()["away"].needs == away
    assert place.claim("b") == api.NotReady()
    place.lanes.open_match(match("here"))
    assert getattr(place.claim("b", "b-2"), "match", "") == "here"
    assert {name for name, _ in place.dealt(4)} == {"away", "here"}
    assert away.unmet(boxed("c", 2, "gpu-1")) == "no box gpu-2"


def boxed(name: str, core: int, *boxes: str) -> lanes.Lane:
    """Describe a lane that may use other machines."""
    return dataclasses.replace(lane(name, frozenset({core})), boxes=frozenset(boxes))


def test_a_lane_does_not_change_while_it_plays(place: Scene) -> None:
    """Its worker may open it again as it is, but not with other cores, during a game."""
    place.open("a")
    place.lanes.open_match(match())
    assert isinstance(place.claim("a"), lanes.Dealt)
    assert place.lanes.open_lane(lane("a", frozenset({0}))) == api.Opened()
    assert place.lanes.open_lane(lane("a", frozenset({7}))) == lanes.Overlap("a")


def test_a_hall_has_one_host_for_its_lanes_too(place: Scene) -> None:
    """Another host opens no lane, and claims none that is not its own."""
    place.open("a")
    place.lanes.open_match(match())
    assert place.lanes.open_lane(lane("b", frozenset({5}), host="h2")) == api.Foreign("h1")
    stranger = dataclasses.replace(a_claim("a"), host="h2")
    assert place.lanes.claim_lane(stranger) == api.NotReady()
    assert place.claim("unknown") == api.NotReady()


# -- lanes and the whole hall --------------------------------------------------------


def test_a_waiting_official_game_closes_all_lanes(place: Scene) -> None:
    """From the offer on no lane begins; the hall is claimed when the last lane has ended."""
    place.open("a", "b")
    place.lanes.open_match(match())
    assert isinstance(place.claim("a"), lanes.Dealt)
    scene.launch(place.ledger)
    scene.offer(place.ledger)
    assert place.claim("b") == api.Held(lanes.OFFICIAL)
    assert place.ledger.claim(scene.a_claim()) == api.Busy("a-1")
    assert isinstance(place.finish("a"), api.Recorded)
    assert place.claim("a", "a-2") == api.Held(lanes.OFFICIAL)
    assert isinstance(place.ledger.claim(scene.a_claim()), api.Claimed)


def test_no_lane_is_claimed_beside_an_official_game(place: Scene) -> None:
    """While an attempt has the hall every lane is busy with it; then they are free again."""
    place.open("a")
    place.lanes.open_match(match())
    token = scene.playing(place.ledger)
    assert place.claim("a") == api.Busy("a1")
    place.ledger.complete(HALL, token, "s1", scene.finished(), b"")
    assert isinstance(place.claim("a"), lanes.Dealt)


def test_a_lane_that_ran_out_does_not_come_back_beside_an_official_game(place: Scene) -> None:
    """An overdue lane does not bar the hall, and cannot renew or record while it is taken."""
    place.open("a")
    place.lanes.open_match(match())
    dealt = place.claim("a", ttl_ms=scene.SHORT)
    assert isinstance(dealt, lanes.Dealt)
    scene.lapse()
    token = scene.playing(place.ledger)
    assert place.lanes.renew_lane(HALL, "a", dealt.token, "a-1") == api.Fenced()
    place.ledger.complete(HALL, token, "s1", scene.finished(), b"")
    again = place.claim("a", "a-2")
    assert isinstance(again, lanes.Dealt)
    assert (again.game, again.token > dealt.token) == (dealt.game, True)


def test_of_racing_claims_either_lanes_or_the_hall_win(place: Scene) -> None:
    """Lanes and an official claim at the same time: never both, over and over."""
    names = [f"l{n}" for n in range(4)]
    place.open(*names)
    place.lanes.open_match(match(games=1000))
    scene.launch(place.ledger)
    for turn in range(15):
        won: list[object] = []
        scene.offer(place.ledger, game=f"g{turn}") if turn % 2 else None

        def lane_wins(name: str, turn: int = turn, won: list[object] = won) -> None:
            won.append(place.claim(name, f"{name}-{turn}"))

        def hall_wins(turn: int = turn, won: list[object] = won) -> None:
            scene.offer(place.ledger, game=f"g{turn}")
            won.append(place.ledger.claim(scene.a_claim(f"h-{turn}", f"g{turn}")))

        threads = [threading.Thread(target=lane_wins, args=(name,)) for name in names]
        threads.insert(turn % 5, threading.Thread(target=hall_wins))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        official = [one for one in won if isinstance(one, api.Claimed)]
        tested = [one for one in won if isinstance(one, lanes.Dealt)]
        assert bool(official) != bool(tested), won
        for lease in place.lanes.leases(HALL):
            place.lanes.complete_lane(lease, "{}")
        if not official:
            official = [place.ledger.claim(scene.a_claim(f"i-{turn}", f"g{turn}"))]  # type: ignore[list-item]
        slot = place.ledger.slot(HALL)
        assert slot is not None
        told = scene.finished(slot.attempt, slot.game)
        place.ledger.complete(HALL, slot.token, "s1", told, b"")


def test_holds_and_drains_close_lanes(place: Scene) -> None:
    """A hall that is held deals nothing; a drained worker is told so by its renewal."""
    place.open("a")
    place.lanes.open_match(match())
    dealt = place.claim("a")
    assert isinstance(dealt, lanes.Dealt)
    drain = api.Drain(HALL, "w-a", "update")
    place.ledger.append(api.FARM, 0, [scene.draft()], "op", [drain])
    assert place.lanes.renew_lane(HALL, "a", dealt.token, "a-1") == api.Renewed("", "update")
    place.finish("a")
    assert place.claim("a", "a-2") == api.Held("drain: update")
    hold = api.Hold("hall:main", "sick", "no disk")
    place.ledger.append(api.FARM, 1, [scene.draft()], "op", [hold])
    assert place.claim("a", "a-3") == api.Held("sick: no disk")


# -- dealing -------------------------------------------------------------------------


def test_every_game_is_dealt_once_and_recorded_in_the_matchs_journal(place: Scene) -> None:
    """Numbers from 1 to the last, then nothing; each result is an entry; seasons stay empty."""
    place.open("a", "b")
    place.lanes.open_match(match(games=4))
    numbers = []
    for turn in range(4):
        for name in "ab":
            reply = place.claim(name, f"{name}{turn}")
            if isinstance(reply, lanes.Dealt):
                numbers.append(reply.game)
                place.finish(name)
    assert numbers == [1, 2, 3, 4]
    assert place.claim("a", "late") == api.NotReady()
    assert scene.kinds(place.ledger, "test:m") == ["test_opened", *["test_game"] * 4]
    assert place.ledger.seasons() == ()


def test_claims_and_results_may_be_repeated(place: Scene) -> None:
    """A repeat by the same attempt answers as before and changes nothing."""
    place.open("a")
    place.lanes.open_match(match())
    first = place.claim("a")
    assert place.claim("a") == first
    lease = place.lease("a")
    recorded = place.finish("a")
    assert place.lanes.complete_lane(lease, '{"game":1}') == recorded
    assert place.claim("a") == api.NotReady()
    assert len(scene.kinds(place.ledger, "test:m")) == 2


def test_a_lost_worker_costs_its_own_game_only(place: Scene) -> None:
    """Its game is dealt again before new ones, its late result is fenced, others go on."""
    place.open("a", "b")
    place.lanes.open_match(match())
    other = place.claim("b")
    place.claim("a", ttl_ms=scene.SHORT)
    lost = place.lease("a")
    scene.lapse()
    again = place.claim("a", "a-2")
    assert isinstance(other, lanes.Dealt)
    assert isinstance(again, lanes.Dealt)
    assert (other.game, lost.game, again.game) == (1, 2, 2)
    assert place.lanes.complete_lane(lost, "{}") == api.Fenced()
    assert isinstance(place.finish("b"), api.Recorded)
    assert isinstance(place.finish("a"), api.Recorded)


def test_a_game_given_up_is_journaled_and_dealt_again(place: Scene) -> None:
    """The journal keeps that it was lost and why; its number comes next."""
    place.open("a")
    place.lanes.open_match(match())
    place.claim("a")
    place.finish("a", lanes.LOST)
    assert scene.kinds(place.ledger, "test:m") == ["test_opened", "test_game_lost"]
    assert place.dealt(2) == [("m", 1), ("m", 2)]


def test_results_set_aside_are_kept_marked_and_replayed(place: Scene) -> None:
    """The journal tells of it behind the results; the games come before new ones."""
    place.open("a")
    place.lanes.open_match(match())
    place.dealt(3)
    aside = contract.Draft(lanes.ASIDE, {"games": [1, 3], "reason": "bad host"})
    assert place.lanes.replay("m", [1, 3], aside, "op")
    assert scene.kinds(place.ledger, "test:m")[-1] == lanes.ASIDE
    assert place.dealt(3) == [("m", 1), ("m", 3), ("m", 4)]
    assert not place.lanes.replay("unknown", [1], aside, "op")


def test_matches_share_lanes_by_priority_and_share(place: Scene) -> None:
    """Equals are dealt by their shares, a newcomer at once; a higher priority goes first."""
    place.open("a")
    place.lanes.open_match(match("one", games=100))
    place.dealt(20)
    place.lanes.open_match(match("three", games=100, share=3))
    counted = collections.Counter(name for name, _ in place.dealt(40))
    assert counted == {"one": 10, "three": 30}
    place.lanes.open_match(match("urgent", games=2, priority=1))
    assert [name for name, _ in place.dealt(3)][:2] == ["urgent", "urgent"]


def test_a_lane_gets_only_games_it_can_play(place: Scene) -> None:
    """Threads, memory, GPUs, NUMA node and speed of a lane bound what it is dealt."""
    place.open("a", cpus=2, memory_mb=64, node=-1, nps=1000)
    wanted = {
        "threads": lanes.Needs(threads=3),
        "memory": lanes.Needs(memory_mb=65),
        "gpu": lanes.Needs(gpus=1),
        "node": lanes.Needs(one_node=True),
        "slow": lanes.Needs(nps=1001),
    }
    here = place.lanes.lanes_of(HALL)[0]
    for name, needs in wanted.items():
        place.lanes.open_match(dataclasses.replace(match(name), needs=needs))
        assert needs.unmet(here)
    elsewhere = dataclasses.replace(match("elsewhere"), halls=("other", "main-2"))
    place.lanes.open_match(elsewhere)
    assert place.claim("a") == api.NotReady()
    fits = lanes.Needs(threads=2, memory_mb=64, nps=1000)
    place.lanes.open_match(dataclasses.replace(match("fits"), needs=fits, halls=("x", HALL)))
    assert (fits.unmet(here), place.dealt(1)) == ("", [("fits", 1)])


def test_a_lane_claims_pairs_and_goes_on_until_the_last(place: Scene) -> None:
    """Several games come as whole pairs under one lease; each result leaves those behind it."""
    place.open("a", "b")
    place.lanes.open_match(match(games=7))
    first = place.claim("a", most=3)
    assert isinstance(first, lanes.Dealt)
    assert (first.games, place.claim("a", most=3)) == ((1, 2, 3, 4), first)
    lease = place.lease("a")
    counted = place.finish("a")
    assert isinstance(counted, lanes.Counted)
    assert counted.left == (2, 3, 4) == place.lease("a").games
    assert place.lanes.complete_lane(lease, "{}") == counted, "told again"
    assert isinstance(place.finish("a"), lanes.Counted)
    assert place.finish("a", goes_on=False).left == ()  # type: ignore[attr-defined]
    assert place.dealt(1, "b") == [("m", 4)], "what is given back comes first"
    ends = place.claim("a", "a-2", most=16)
    assert isinstance(ends, lanes.Dealt)
    assert (ends.games, place.claim("b", "late")) == ((5, 6, 7), api.NotReady())
    assert place.lanes.complete_lane(lease, "{}") == api.Fenced(), "of an earlier lease"


@pytest.mark.parametrize("most", [1, 2, 16])
def test_no_lease_is_given_without_a_game_whatever_is_left(place: Scene, most: int) -> None:
    """Checks that wait for lanes are taken by those that take pairs, too, and when all else is."""
    checks = [orders.LAST_GAME + number for number in (3, 7)]
    place.open("a")
    place.lanes.open_match(match(games=2))
    place.dealt(2)
    deals = contract.Draft(lanes.CHECKED, {"games": checks})
    assert place.lanes.replay("m", checks, deals, "op")
    played: list[int] = []
    for turn in range(2):
        if isinstance(dealt := place.claim("a", f"check-{turn}", most=most), lanes.Dealt):
            played += dealt.games
            assert dealt.games
            for _ in dealt.games:
                place.finish("a")
    assert (played, place.lanes.leases(HALL)) == (checks, [])
    assert place.claim("a", "late", most=most) == api.NotReady()


@pytest.mark.parametrize("ends", ["in an hour", "long ago"])
def test_a_lease_without_games_of_an_earlier_version_keeps_nobody(
    redis_ledger: store.RedisLedger, ends: str
) -> None:
    """It is no game that runs: its lane may change, and plays on at once."""
    place = Scene(redis_ledger, lane_store.RedisLanes(redis_ledger.server))
    place.open("a", "b")
    place.lanes.open_match(match())
    deadline = redis_ledger.now_ms() + {"in an hour": 3_600_000, "long ago": -3_600_000}[ends]
    _lease_nothing(redis_ledger, "a", deadline)
    assert place.lanes.leases(HALL) == []
    place.open("a", nps=7)
    assert place.dealt(2) == [("m", 1), ("m", 2)]
    assert place.dealt(1, "b") == [("m", 3)]
    names = keys.Keys()
    client = redis_ledger.server.client
    assert (client.hlen(names.leases(HALL)), client.zcard(names.due(HALL))) == (0, 0)


def _lease_nothing(ledger: store.RedisLedger, lane: str, deadline_ms: int) -> None:
    """Leave what a claim left that took pairs where checks alone were to be dealt."""
    facts = {"match": "over", "run": "1.1", "token": "1.9", "worker": f"w-{lane}", "host": "h1"}
    facts |= {"attempt": "a-old", "games": "", "ttl": "30000", "deadline": str(deadline_ms)}
    client, names = ledger.server.client, keys.Keys()
    client.hset(names.leases(HALL), lane, contract.dumps(facts))
    client.zadd(names.due(HALL), {lane: deadline_ms})


@pytest.mark.parametrize("stop", ["official", "hold", "drain", "lost", "lapsed", "closed"])
def test_a_lane_that_must_stop_gives_its_other_games_back(place: Scene, stop: str) -> None:
    """An official game, a hold, a drain and a lost game end a lease after the present game."""
    place.open("a")
    place.lanes.open_match(match())
    place.claim("a", ttl_ms=scene.SHORT if stop == "lapsed" else scene.LONG, most=4)
    if stop == "official":
        scene.launch(place.ledger)
        scene.offer(place.ledger)
    elif stop in {"hold", "drain"}:
        drain, hold = api.Drain(HALL, "w-a", "update"), api.Hold("hall:main", "sick", "no disk")
        fact = drain if stop == "drain" else hold
        place.ledger.append(api.FARM, 0, [scene.draft()], "op", [fact])
    elif stop == "closed":
        place.lanes.close_match("m")
        place.lanes.open_match(match())
    if stop == "lapsed":
        scene.lapse()
    else:
        kind = lanes.LOST if stop == "lost" else lanes.GAME
        reply = place.finish("a", kind)
        assert reply == api.Fenced() if stop == "closed" else reply.left == ()  # type: ignore[attr-defined]
        assert place.lanes.leases(HALL) == []
    again = {"lost": [1, 2, 3, 4], "lapsed": [], "closed": []}.get(stop, [2, 3, 4])
    assert list(place.lanes.matches()["m"].again) == again
    if stop in {"lost", "lapsed", "closed"}:
        assert [game for _, game in place.dealt(4)] == [1, 2, 3, 4]


def test_results_wait_for_the_mirror(place: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match whose results nobody mirrors is dealt no further than ``LEAD`` entries."""
    monkeypatch.setattr(lanes, "LEAD", 5)
    place.open("a")
    place.lanes.open_match(match(games=100))
    place.dealt(5)
    assert place.claim("a", "too far") == api.NotReady()
    place.lanes.forget("m", 4)
    assert place.dealt(1) == [("m", 6)]


def test_values_of_a_tuning_begin_with_the_next_iteration(place: Scene) -> None:
    """What was begun keeps its values; those that come are written down, and kept for a repeat."""
    place.open("a")
    assert place.lanes.values("m", 1) is None
    assert not place.lanes.tune("m", tuned(0), "op"), "it is not open"
    place.lanes.open_match(match(games=12))
    assert place.lanes.tune("m", tuned(0), "op")
    place.dealt(5)  # an iteration has four games
    assert place.lanes.tune("m", tuned(1), "op")
    assert place.lanes.tune("m", tuned(2), "op"), "instead: no game was dealt with the last ones"
    kept = [place.lanes.values("m", iteration) for iteration in (1, 2, 3, 4)]
    facts = [contract.loads(one or "") for one in kept]
    assert [(one["first"], one["done"]) for one in facts] == [(1, 0), (1, 0), (3, 2), (3, 2)]
    assert facts[3]["values"] == [0.1 + 0.2, -1e-17], "to the last digit"
    place.dealt(4)
    assert not place.lanes.tune("m", tuned(3), "op"), "no iteration is left"
    entries = place.ledger.read("test:m")
    journaled = [entry.data for entry in entries if entry.kind == lanes.TUNED]
    assert [data["first"] for data in journaled] == [1, 3, 3]
    place.lanes.close_match("m")
    assert place.lanes.values("m", 3) is None
    values = tuple((one["first"], contract.dumps(one)) for one in (facts[0], facts[2]))
    place.lanes.open_match(dataclasses.replace(match(games=12), values=values))
    again = [place.lanes.values("m", iteration) for iteration in (1, 2, 3, 4)]
    assert [contract.loads(one or "") for one in again] == facts


def tuned(done: int) -> lanes.Tuned:
    """Return values when so many of three iterations are done."""
    return lanes.Tuned((0.1 + 0.2, -1e-17), done, games=4, iterations=3)


def test_a_match_that_is_closed_ends_its_games(place: Scene) -> None:
    """Its running game is told to end and records nothing; what comes next is another's."""
    place.open("a")
    place.lanes.open_match(match())
    dealt = place.claim("a")
    assert isinstance(dealt, lanes.Dealt)
    place.lanes.close_match("m")
    assert place.lanes.renew_lane(HALL, "a", dealt.token, "a-1") == api.Renewed(lanes.STOPPED)
    assert place.finish("a") == api.Fenced()
    assert place.lanes.leases(HALL) == []
    place.lanes.open_match(match("next"))
    assert place.dealt(1) == [("next", 1)]


def test_a_match_is_taken_up_where_it_was(place: Scene) -> None:
    """Opened again it deals on; opened anew after a loss it deals what its mirror lacks."""
    place.open("a")
    place.lanes.open_match(match())
    place.dealt(2)
    place.lanes.open_match(match(games=20))
    assert place.dealt(1) == [("m", 3)]
    told = place.lanes.matches()["m"]
    assert (told.next, told.games, told.again) == (4, 20, ())
    place.lanes.close_match("m")
    place.lanes.open_match(match(next=7, again=[2, 5]))
    assert place.dealt(3) == [("m", 2), ("m", 5), ("m", 7)]


def test_a_match_opened_anew_deals_what_still_runs_once(place: Scene) -> None:
    """A game of its earlier opening is fenced, and neither counts nor comes a second time."""
    place.open("a", "b")
    place.lanes.open_match(match(games=3))
    place.claim("a")
    place.claim("b", ttl_ms=scene.SHORT)
    place.lanes.close_match("m")
    place.lanes.open_match(match(games=3))
    scene.lapse()
    lease = place.lease("a")
    renewed = place.lanes.renew_lane(HALL, "a", lease.token, lease.attempt)
    assert renewed == api.Renewed(lanes.STOPPED)
    assert place.finish("a", lanes.LOST) == api.Fenced()
    assert place.dealt(3) == [("m", 1), ("m", 2), ("m", 3)]
    assert place.claim("a", "late") == api.NotReady()


def test_a_restore_fences_lanes(place: Scene) -> None:
    """Tokens of an older epoch write nothing; their games are dealt again under newer ones."""
    place.open("a")
    place.lanes.open_match(match())
    dealt = place.claim("a")
    assert isinstance(dealt, lanes.Dealt)
    scene.raise_epoch(place.ledger, 2)
    assert place.lanes.renew_lane(HALL, "a", dealt.token, "a-1") == api.Fenced()
    assert place.finish("a") == api.Fenced()
    again = place.claim("a", "a-2")
    assert isinstance(again, lanes.Dealt)
    assert (again.game, again.token > dealt.token) == (dealt.game, True)


@pytest.mark.parametrize("what", ["facts", "next", "last", "place", "lane", "repeat"])
def test_one_match_that_cannot_be_read_keeps_no_other_from_being_played(
    redis_ledger: store.RedisLedger, what: str
) -> None:
    """What another hand has written of a match, a lane or a place in the queue is passed over."""
    place = Scene(redis_ledger, lane_store.RedisLanes(redis_ledger.server))
    place.open("a")
    place.lanes.open_match(match("bad"))
    client, names = redis_ledger.server.client, keys.Keys()
    if what == "facts":
        client.hset(names.tests(), "bad", "{")
    elif what in ("next", "last"):
        client.hdel(names.tests(what), "bad")
    elif what == "place":
        client.zadd(names.tests("queue"), {"": 0, "!": 0, "! 1 2 nobody": 0})
    elif what == "lane":
        client.hset(names.lanes(HALL), b"\xff", b"\xff")
        client.hset(names.leases(HALL), "x", "[]")
    else:
        client.zadd(names.tests("repeats"), {b"\xff": 0, "bad \u0663": 0})
    place.lanes.open_match(match("good", priority=1))
    assert place.dealt(2) == [("good", 1), ("good", 2)]
    assert "good" in lane_store.RedisLanes(redis_ledger.server).matches()
    assert [lane.name for lane in place.lanes.lanes_of(HALL)] == ["a"]
    assert "good" in {m.id for m in batches.RedisBatches(redis_ledger.server).open_matches()}


def test_a_workers_redis_user_may_play_in_lanes(
    redis_ledger: store.RedisLedger, server: embedded_redis.EmbeddedRedis
) -> None:
    """Under the worker's own Redis user every verb of a lane's worker is allowed."""
    client = redis_ledger.server.client
    rules = acl.roles()["worker"].rules()
    client.execute_command("ACL", "SETUSER", "w", "reset", "on", "nopass", *rules)
    try:
        operator = lane_store.RedisLanes(redis_ledger.server)
        operator.open_match(match())
        url = server.url.replace("unix://", "unix://w:x@")
        worker = lane_store.connect(url)
        place = Scene(redis_ledger, worker)
        place.open("a")
        dealt = place.claim("a")
        assert isinstance(dealt, lanes.Dealt)
        renewed = worker.renew_lane(HALL, "a", dealt.token, "a-1")
        assert (renewed, worker.spec("m")) == (api.Renewed(), "{}")
        assert worker.values("m", 1) is None
        assert isinstance(place.finish("a"), api.Recorded)
        worker.close()
    finally:
        client.execute_command("ACL", "DELUSER", "w")


def _work(server: embedded_redis.EmbeddedRedis, size: int) -> tuple[float, float]:
    """Play in one lane beside so many others; return commands and bytes of the AOF, a game."""
    ledger = store.connect(server.url)
    client = ledger.server.client
    client.flushall()
    place = Scene(ledger, lane_store.RedisLanes(ledger.server))
    for number in range(size):
        assert place.lanes.open_lane(lane(f"l{number}", frozenset({number}))) == api.Opened()
        own = f"m{number:04}"
        place.lanes.open_match(match(own, games=1000, again=range(2, 2 + size), next=900))
        assert isinstance(place.claim(f"l{number}"), lanes.Dealt)
    place.lanes.open_lane(lane("a", frozenset({size})))
    place.finish("l0")
    client.config_resetstat()

    def figures() -> tuple[int, int]:
        told = client.info("all")
        assert not {"cmdstat_hgetall", "cmdstat_hvals"} & told.keys(), "reads a table whole"
        calls = sum(each["calls"] for name, each in told.items() if name.startswith("cmdstat_"))
        return calls, told["aof_current_size"]

    before, games = figures(), 20
    for turn in range(games):
        place.lanes.open_lane(lane("a", frozenset({size})))
        attempt = f"turn-{turn}"
        claimed = place.claim("a", attempt)
        assert isinstance(claimed, lanes.Dealt)
        place.lanes.renew_lane(HALL, "a", claimed.token, attempt)
        dealt = claimed.token, claimed.match, claimed.games
        lease = lanes.Lease(HALL, "a", attempt, *dealt, "w-a", "h1", 0)
        kind = lanes.LOST if turn % 2 else lanes.GAME
        assert isinstance(place.lanes.complete_lane(lease, "{}", kind), lanes.Counted)
        place.lanes.forget(claimed.match, 1)
    after = figures()
    ledger.close()
    return (after[0] - before[0]) / games, (after[1] - before[1]) / games


def test_a_game_costs_the_same_beside_many_lanes_matches_and_games_to_deal_again(
    server: embedded_redis.EmbeddedRedis,
) -> None:
    """Commands in Redis and bytes of its append-only file a game, at two sizes of everything."""
    few, many = _work(server, 4), _work(server, 100)
    assert many[0] < few[0] + 1, (few, many)
    assert many[1] < few[1] * 1.05, (few, many)
