"""The keeper of a test match: what a step asks of the ledger, however many lanes there are."""

from __future__ import annotations

import itertools
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import harness
import pytest
from twins import lane_memory, memory

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, lane_store, lanes, store
from orchestrator.rating import sprt
from orchestrator.testmatch import orders, sprt_match

HALL = "main"
STEPS = 20
WON = {  # by White, as a lane tells it
    "host": "h1",
    "result": "1-0",
    "ending": "checkmate",
    "loser": "black",
    "details": "White mates",
    "note": "",
}


STAMPS = {"plies": 9, "repeated": 0, "overhead_ns": 0}
CLOCK = {"process": "p", "at_ms": 1, "boot_ms": 1, "day_ms": 1}


def spec(engines: str = "ab", games: int = 10, pin: str = "", **other: Any) -> orders.Spec:
    """Describe a match; what ``other`` says goes before that."""
    pins = {"none": pin} if pin else {}
    named = tuple(
        contract.EngineSpec(id=n, name=n, command=("none",), checksums=pins) for n in engines
    )
    clock = contract.TimeControl(base_ms=1000)
    described = orders.Spec(id="m", engines=named, time_control=clock, games=games)
    return described.model_copy(update=other)


def keeper(root: pathlib.Path, number: int) -> tuple[sprt_match.Keeper, lane_memory.MemoryLanes]:
    """Return the keeper of a match with so many lanes to play in."""
    ledger = memory.MemoryLedger()
    known = lane_memory.MemoryLanes(ledger)
    for at in range(number):
        known.open_lane(lanes.Lane(HALL, f"l{at}", "h1", frozenset({at}), 1024))
    made = sprt_match.Keeper(ledger, known, root / "m", spec(), sprt_match.Terms(halls=(HALL,)))
    made.open("test")
    return made, known


def looks(root: pathlib.Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often lanes and leases are read in steps, and the lanes that were rung."""
    made, known = keeper(root, number)
    counts: Counter[str] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            counts[name] += 1
            return real(*args)

        return count

    for name in ("lanes_of", "leases"):
        monkeypatch.setattr(known, name, counted(name, getattr(known, name)))
    monkeypatch.setattr(sprt_match, "LOOK_SECONDS", 3_600.0)  # no step is later than that
    rung: list[str] = []
    for _ in range(STEPS):
        made.step(rung.append, 0)
    made.close()
    assert len(rung) == len(set(rung)) == number
    return counts


def test_a_step_reads_lanes_now_and_then_whatever_their_number(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All lanes of a hall are one look, who plays there another; steps between have none."""
    few, many = (looks(tmp_path / str(n), n, monkeypatch) for n in (2, 40))
    assert few == many == {"lanes_of": 1, "leases": 1}


def test_a_lane_that_comes_later_is_rung(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look finds it; one that plays is not rung, one that was rung only in time."""
    made, known = keeper(tmp_path, 1)
    rung: list[str] = []
    made.step(rung.append, 0)
    known.open_lane(lanes.Lane(HALL, "late", "h1", frozenset({9}), 1024))
    monkeypatch.setattr(sprt_match, "LOOK_SECONDS", 0.0)
    made.step(rung.append, 0)
    assert rung == [f"{HALL}.l0", f"{HALL}.late"]
    known.claim_lane(lanes.LaneClaim(HALL, "late", "late-1", "w", "h1", 60_000))
    monkeypatch.setattr(sprt_match, "RING_SECONDS", 0.0)
    made.step(rung.append, 0)
    assert rung[2:] == [f"{HALL}.l0"]
    made.close()


# -- a Redis that has another past than the mirror -------------------------------------


class Kept:
    """A match on a real Redis that is put back to what it was before; its worker is this test."""

    def __init__(self, root: pathlib.Path, url: str) -> None:
        self.root, self.url, self.ledger = root, url, store.connect(url)
        self.lanes = lane_store.connect(url)
        self.ledger.server.client.flushall()
        self.lanes.open_lane(lanes.Lane(HALL, "a", "h1", frozenset({0}), 1024))
        self.attempts = itertools.count()
        self.open()

    def open(self, test: sprt.Test | None = None, **other: Any) -> None:
        """Begin to keep the match, as the command does each time."""
        keeping = sprt_match.Keeper(
            self.ledger, self.lanes, self.root / "m", spec(**other), sprt_match.Terms(test=test)
        )
        try:
            keeping.open("test")
        except errors.RefusedError:
            keeping.close()
            raise
        self.keeper = keeping

    def claim(self) -> lanes.Lease:
        """Claim a game."""
        claim = lanes.LaneClaim(HALL, "a", f"a-{next(self.attempts)}", "w", "h1", 60_000)
        dealt = self.lanes.claim_lane(claim)
        assert isinstance(dealt, lanes.Dealt), dealt
        place = (HALL, "a", claim.attempt, dealt.token, dealt.match, dealt.games)
        return lanes.Lease(*place, "w", "h1", 0, dealt.run)

    def play(self, games: int) -> None:
        """Let so many games be won by White."""
        for _ in range(games):
            lease = self.claim()
            facts = {**WON, "game": lease.game, "pgn": f"game {lease.game}"}
            counted = self.lanes.complete_lane(lease, contract.dumps(facts), goes_on=False)
            assert isinstance(counted, lanes.Counted), counted

    def step(self) -> sprt_match.Standing:
        """Let the keeper look."""
        return self.keeper.step(lambda _: None, 0)

    def copy(self) -> Mapping[bytes, bytes]:
        """Return all that Redis has."""
        client = self.ledger.server.client
        return {name: client.dump(name) for name in client.keys("*")}

    def put_back(self, kept: Mapping[bytes, bytes]) -> None:
        """Let Redis have what it had then."""
        client = self.ledger.server.client
        client.flushall()
        for name, value in kept.items():
            client.restore(name, 0, value)


@pytest.fixture
def kept(tmp_path: pathlib.Path, server: harness.Redis) -> Iterator[Kept]:
    """Give a match that is kept."""
    made = Kept(tmp_path, server.url)
    yield made
    made.keeper.close()
    made.lanes.close()
    made.ledger.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Redis]:
    """Run one real server for this file."""
    with harness.Redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.mark.parametrize(
    ("grown", "again"), [(0, False), (1, False), (2, False), (3, False), (2, True)]
)
def test_a_match_outlives_a_redis_without_its_last_results(
    kept: Kept, grown: int, *, again: bool
) -> None:
    """Two results are kept here alone, others stand in their place: each game counts once."""
    kept.play(4)
    assert kept.step().games == 4
    before = kept.copy()
    kept.play(2)
    assert kept.step().games == 6
    kept.put_back(before)
    kept.play(grown)  # before the keeper looks: games that have their results
    if again:
        kept.keeper.close()
        kept.open()
    kept.step()
    assert kept.keeper.reopened == 1
    kept.play(4)
    standing = kept.step()
    assert standing.over
    assert (standing.counts.wins, standing.counts.losses) == (5, 5)
    told = (kept.root / "m" / "games.pgn").read_text().split("\n")
    assert sorted(filter(None, told)) == sorted(f"game {number}" for number in range(1, 11))


def test_a_match_outlives_an_emptied_redis(kept: Kept) -> None:
    """Whoever holds a game of before is fenced; lanes that come again play the others."""
    kept.play(4)
    kept.step()
    old = kept.claim()
    kept.ledger.server.client.flushall()
    kept.step()
    kept.lanes.open_lane(lanes.Lane(HALL, "a", "h1", frozenset({0}), 1024))
    assert kept.lanes.complete_lane(old, "{}") == api.Fenced()
    kept.play(6)
    assert kept.step().over


def test_an_opening_is_told_from_all_others(kept: Kept) -> None:
    """What workers keep of a match they keep by its opening; no counter lost makes two alike."""
    first = kept.claim().run
    kept.ledger.server.client.flushall()
    time.sleep(0.002)
    kept.keeper.close()
    kept.lanes.open_lane(lanes.Lane(HALL, "a", "h1", frozenset({0}), 1024))
    kept.open()
    assert kept.claim().run not in {"", first}


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        (lanes.GAME, {}, "game: "),
        (lanes.GAME, {"game": 0}, "game: "),
        (lanes.GAME, {"game": True}, "game: "),
        (lanes.GAME, {"game": 11}, "there is no game 11"),
        (lanes.GAME, {"game": 10**18}, "there is no game"),
        (lanes.GAME, {"game": 3, "result": "*"}, "result: "),
        (lanes.GAME, {"game": 3, "loser": "nobody"}, "loser: "),
        (lanes.GAME, {"game": 3, "ending": "won"}, "ending: "),
        (lanes.GAME, {"game": 3, "pgn": ["x"]}, "pgn: "),
        (lanes.GAME, {"game": 3, "host": {}}, "host: "),
        (lanes.LOST, {"game": [1]}, "game: "),
        (lanes.LOST, {"game": 3}, "cause: "),
        (lanes.ASIDE, {"games": [1, -4]}, "games.1: "),
        (lanes.BUILD, {"worker": "w"}, "name: "),
        (lanes.GAME, {"game": 3, "stamps": STAMPS | {"plies": "9"}}, "stamps.plies: "),
        (lanes.GAME, {"game": 3, "stamps": STAMPS | {"repeated": 10**4000}}, "stamps.repeated: "),
        (lanes.GAME, {"game": 3, "clock": CLOCK | {"at_ms": "1"}}, "clock.at_ms: "),
        (lanes.GAME, {"game": 3, "clock": CLOCK | {"boot_ms": 1.5}}, "clock.boot_ms: "),
        (
            lanes.GAME,
            {"game": 3, "clock": CLOCK | {"heard": {"at_ms": 1}}},
            "clock.heard.boot_ms: ",
        ),
        (lanes.CARRIED, {"nats": {"t": [1e4]}}, "nats.t.0: "),
        (lanes.CARRIED, {"nats": {"t": ["1"]}}, "nats.t.0: "),
    ],
)
def test_an_entry_that_cannot_be_counted_ends_the_match_and_no_more(
    kept: Kept, kind: str, data: Mapping[str, Any], why: str
) -> None:
    """It is said who wrote it; the match goes on without it, and that game is played again."""
    kept.play(2)
    lease = kept.claim()
    facts = data if "cause: " in why or "game" not in data else {**WON, "pgn": "", **data}
    kept.lanes.complete_lane(lease, contract.dumps(facts), kind, goes_on=False)
    with pytest.raises(errors.LedgerDamagedError, match=r"by 'w'\) cannot be counted: " + why):
        kept.step()
    kept.keeper.finish()
    kept.keeper.close()
    kept.open()
    kept.play(8)
    assert kept.step().over


def test_a_match_is_steered_from_elsewhere(kept: Kept) -> None:
    """Its keeper follows a wish once, and says whose it was; one of an earlier opening is over."""
    kept.play(2)
    wish = contract.Draft(lanes.CHANGE, {"priority": 3, "share": None, "reason": "release"})
    assert kept.lanes.replay("m", [], wish, "anna@op")
    assert kept.step().games == 2
    dealt = kept.lanes.matches()["m"]
    assert (dealt.priority, dealt.share, dealt.next) == (3, 1, 3)
    assert sprt_match.load(kept.root / "m")[1].priority == 3
    assert kept.lanes.replay("m", [], contract.Draft(lanes.STOP, {"reason": "rebased"}), "anna@op")
    kept.step()
    assert kept.keeper.stopped == ("anna@op", "rebased")
    kept.keeper.finish()
    assert not kept.lanes.replay("m", [], wish, "anna@op")
    kept.keeper.close()
    kept.open()
    kept.play(8)
    assert kept.step().over
    assert kept.keeper.stopped is None


def test_one_name_is_one_match(kept: Kept, tmp_path: pathlib.Path) -> None:
    """Neither another's results count for it, nor does its end end another's."""
    kept.play(2)
    kept.step()
    elsewhere = Kept.__new__(Kept)
    elsewhere.__dict__.update(kept.__dict__, root=tmp_path / "elsewhere")
    for other in ({}, {"engines": "ac"}):
        with pytest.raises(errors.RefusedError, match="is open already"):
            elsewhere.open(**other)
    kept.keeper.close()
    with pytest.raises(errors.RefusedError, match=r"another match m \(engines was another"):
        kept.open(engines="ac")
    kept.open(games=20)  # more of the same
    kept.play(18)
    assert kept.step().over
    kept.keeper.close()
    with pytest.raises(errors.RefusedError, match="has played 20 games"):
        kept.open(games=10)
    kept.open(games=20)


def test_a_match_with_results_keeps_its_bounds(kept: Kept) -> None:
    """Bounds that are chosen by the results falsify the test, and so does giving it up."""
    kept.keeper.finish()
    kept.keeper.close()
    kept.root /= "tested"
    kept.open(sprt.Test(0, 20))
    kept.play(2)
    kept.step()
    kept.keeper.close()
    was = (
        r"another match m \(its --sprt was elo0=0 elo1=20 alpha=0\.05 beta=0\.05 model=normalized\)"
    )
    for other in (None, sprt.Test(0, 5), sprt.Test(0, 20, model="logistic")):
        with pytest.raises(errors.RefusedError, match=was + ".* another --id begins this one"):
            kept.open(other)
    with pytest.raises(errors.RefusedError, match=r"\(time_control was another\)"):
        kept.open(sprt.Test(0, 5), time_control=contract.TimeControl(base_ms=9))
    kept.open(sprt.Test(0, 20), games=12)
    assert kept.step().games == 2
    kept.keeper.close()
    assert sprt_match.load(kept.root / "m")[1].test == sprt.Test(0, 20)
    kept.open(sprt.Test(0, 20))


@pytest.mark.parametrize("pin", ["", "0" * 64], ids=["built", "pinned"])
def test_a_match_of_remote_workers_is_not_damaged_without_remote(kept: Kept, pin: str) -> None:
    """Its checks have numbers that a match without them has not: that it was opened so is told."""
    kept.keeper.finish()
    kept.keeper.close()
    kept.root /= "remote"
    remote: dict[str, Any] = {"remote": True, "check_nodes": 9, "pin": pin}
    kept.open(**remote)
    kept.play(2)
    lease = kept.claim()
    check = {**WON, "game": orders.LAST_GAME + 27, "pgn": "check", "attempt": "t/1"}
    kept.lanes.complete_lane(lease, contract.dumps(check), goes_on=False)
    assert kept.step().games == 2
    kept.keeper.close()
    games = (kept.root / "m" / "games.pgn").read_text()
    with pytest.raises(errors.RefusedError, match="m was opened with --remote: add it, or `farm"):
        kept.open()
    with pytest.raises(errors.RefusedError, match=r"\(time_control was another\)"):
        kept.open(time_control=contract.TimeControl(base_ms=9))
    assert (kept.root / "m" / "games.pgn").read_text() == games
    kept.open(**remote)
    kept.keeper.finish()
    kept.keeper.close()
    kept.root /= "local"
    kept.open()
    kept.play(2)
    kept.step()
    kept.keeper.finish()
    kept.keeper.close()
    with pytest.raises(errors.RefusedError, match="m was opened without --remote: leave it out"):
        kept.open(**remote)
    kept.root = kept.root.parent
    kept.open(**remote)
