"""Lanes with real processes: a watcher outside Redis looks at cores, engines and games."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator

import harness
import pytest
import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import journal_mirror, lane_store, lanes, store
from orchestrator.ops import supervisor
from orchestrator.serve import doorbell
from orchestrator.testmatch import orders, sprt_match
from worker_cpu import settings
from worker_cpu.engines import sandbox
from worker_cpu.hall import directory as hall_directory
from worker_cpu.link import redis_retry
from worker_cpu.referee import session
from worker_cpu.worker import lane_worker


@dataclasses.dataclass
class Watcher:
    """Looks at the process table all the time; knows nothing of ledger and locks.

    Engines are known by the files that they record their lives in.
    """

    tests_file: pathlib.Path
    official_file: pathlib.Path
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)
    faults: list[str] = dataclasses.field(default_factory=list)
    together: int = 0  # looks that saw two lanes at play
    official: int = 0  # looks that saw an official engine

    def watch(self) -> None:
        """Look until told to stop."""
        while not self.stop.wait(0.02):
            engines = {pid: words for pid, words in _commands() if "scripted.py" in words}
            tests = [pid for pid, words in engines.items() if str(self.tests_file) in words]
            officials = [pid for pid, words in engines.items() if str(self.official_file) in words]
            self.official += bool(officials)
            self._check_alone(tests, officials)
            self._check_cores(tests)

    def _check_alone(self, tests: list[int], officials: list[int]) -> None:
        # Alive after the look as well: a process that ended during it overlaps nobody.
        alive = [[pid for pid in pids if harness.alive(pid)] for pids in (officials, tests)]
        if all(alive) and all(harness.alive(pid) for pid in alive[0]):
            self.faults.append(f"official engines {alive[0]} beside test engines {alive[1]}")

    def _check_cores(self, tests: list[int]) -> None:
        games: defaultdict[str, set[str]] = defaultdict(set)  # a game's engines: one parent
        for pid in tests:
            with contextlib.suppress(OSError, StopIteration, ValueError):
                games[_status(pid, "PPid")].add(_status(pid, "Cpus_allowed_list"))
        cores = list(games.values())
        self.together += len(cores) > 1
        if len(cores) > 1 and set.intersection(*cores) and all(map(harness.alive, tests)):
            self.faults.append(f"two games on the same cores: {dict(games)}")


def _commands() -> Iterator[tuple[int, str]]:
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        yield int(path.name), harness.command(int(path.name))


def _status(pid: int, field: str) -> str:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith(f"{field}:"))


@contextlib.contextmanager
def watched(folder: pathlib.Path) -> Iterator[Watcher]:
    """Watch for the length of a block."""
    watcher = Watcher(folder / "tests.jsonl", folder / "life.jsonl")
    thread = threading.Thread(target=watcher.watch)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.stop.set()
        thread.join()


def spec(games: int, folder: pathlib.Path) -> orders.Spec:
    """Describe a test match of two scripted engines."""
    engines = []
    for strength in (1, 2):
        entry = harness.scripted(folder / "tests.jsonl", strength)
        command = [f"Lane {strength}" if "Scripted" in word else word for word in entry["command"]]
        told = {**entry, "name": f"Lane {strength}", "command": tuple(command)}
        engines.append(contract.EngineSpec.model_validate(told))
    clock = contract.TimeControl(base_ms=20_000, increment_ms=1_000)
    return orders.Spec(id="watched", engines=tuple(engines), time_control=clock, games=games)


class Kept:
    """A test match that is kept by a thread, and the workers of two lanes."""

    def __init__(self, farm: harness.Farm, games: int) -> None:
        self.ledger = store.connect(farm.redis.url)
        self._known = known = lane_store.connect(farm.redis.url_of(harness.OPERATOR))
        self.dealt, self.unplayed = 0, set[int]()  # at the end: games dealt, and those still open
        self.directory = farm.root / "tests" / "watched"
        described, terms = spec(games, farm.root), sprt_match.Terms()
        self.keeper = sprt_match.Keeper(self.ledger, known, self.directory, described, terms)
        self._ring = doorbell.at(farm.redis.url_of(harness.OPERATOR))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep)
        own = dict(farm.worker.environment) | {"FARM_LANE_GPUS": ""}
        worker = dataclasses.replace(farm.worker, environment=own)
        self.lanes = [supervisor.lane(text, worker, harness.HALL) for text in ("a=0", "b=1")]

    def start(self) -> None:
        """Start the lanes and deal games."""
        for lane in self.lanes:
            lane.start()
        self.keeper.open("test")
        self._thread.start()

    def _keep(self) -> None:
        while not self._stop.is_set():
            self.keeper.step(self._ring, 200)

    def stop(self) -> None:
        """End all."""
        self._stop.set()
        self._thread.join()
        for lane in self.lanes:
            lane.kill()
        self.keeper.step(self._ring, 1)  # results that came since the thread has ended
        # The leases first: the hall's worker gives these games up, then they are the match's.
        leased = [lease.games for lease in self._known.leases(harness.HALL)]
        match = self._known.matches()["watched"]
        self.dealt, self.unplayed = match.next - 1, {*match.again, *itertools.chain(*leased)}
        self.keeper.finish()
        self.keeper.close()
        self.ledger.close()

    def results(self) -> list[contract.Entry]:
        """Return what the mirror on disk tells."""
        return journal_mirror.read(self.directory / "journal.jsonl")

    def kinds(self) -> list[str]:
        """Return the kinds of these entries."""
        return [entry.kind for entry in self.results()]

    def played_by(self, lane: str) -> int:
        """Return how many results came from a lane."""
        told = (entry.data for entry in self.results() if entry.kind == lanes.GAME)
        return sum(data["lane"] == lane for data in told)


def test_lanes_share_no_core_and_an_official_event_is_alone(tmp_path: pathlib.Path) -> None:
    """Both lanes full, a worker killed, then a season: it waits, plays alone, lanes go on."""
    engines = [harness.scripted(tmp_path / "life.jsonl", n) for n in (1, 2)]
    file = harness.league(tmp_path / "season.toml", engines, final_games=2)
    with harness.running(tmp_path) as farm, watched(tmp_path) as watcher:
        kept = Kept(farm, games=100_000)
        kept.start()
        try:
            farm.wait(lambda: watcher.together > 2, 90, "both lanes at play")
            os.kill(kept.lanes[1].pid, signal.SIGKILL)
            kept.lanes[1].process.wait()  # type: ignore[union-attr]
            kept.lanes[1].start()
            before = kept.played_by("b")
            farm.wait(lambda: kept.played_by("b") > before, 60, "games in lane b again")
            farm.launch(file, "official")
            farm.finish("official")
            before = kept.played_by("a")
            farm.wait(lambda: kept.played_by("a") > before, 60, "lanes after the season")
            # Now, for the end kills both lanes.
            lost = [entry.data for entry in kept.results() if entry.kind == lanes.LOST]
        finally:
            kept.stop()
    assert watcher.faults == []
    assert watcher.official > 0
    lines = [line for lane in kept.lanes for line in lane.log.read_text().splitlines()]
    told = [json.loads(line) for line in lines if '"event": "test.' in line]
    assert {line["event"] for line in told} >= {"test.started", "test.ended"}
    assert all({"match", "game", "attempt", "lane"} <= line.keys() for line in told)
    assert {data["lane"] for data in lost} <= {"b"}, lost
    games = [entry.data["game"] for entry in kept.results() if entry.kind == lanes.GAME]
    assert len(games) == len(set(games))
    assert set(range(1, kept.dealt + 1)) - set(games) == kept.unplayed, "a game was skipped"


def test_a_lane_started_during_an_official_game_is_known_after_it(tmp_path: pathlib.Path) -> None:
    """The hall is taken while the lane's worker starts; nobody rings it, and it is found."""
    with harness.running(tmp_path) as farm, contextlib.ExitStack() as official:
        configured = settings.from_environment(farm.worker.environment)
        directory = hall_directory.HallDirectory(configured.directory)
        assert official.enter_context(directory.locked(9)) is not None
        lane = supervisor.lane("a=0", farm.worker, harness.HALL)
        known = lane_store.connect(farm.redis.url)
        lane.start()
        try:
            farm.wait(lambda: "lane.closed" in lane.log.read_text(), 60, "a lane that waits")
            assert known.lanes_of(harness.HALL) == []
            official.close()
            farm.wait(lambda: bool(known.lanes_of(harness.HALL)), 60, "the lane")
        finally:
            lane.kill()


def test_a_match_goes_on_after_its_keeper_and_sets_a_host_aside(tmp_path: pathlib.Path) -> None:
    """A second keeper takes up the mirror; results set aside are kept, marked and replayed."""
    with harness.running(tmp_path) as farm:
        first = Kept(farm, games=6)
        first.start()
        farm.wait(lambda: len(first.results()) >= 3, 90, "two results")
        first.stop()
        second = Kept(farm, games=6)
        folded = sprt_match.folded(second.directory, spec(6, tmp_path)).tally
        host = next(iter(folded.hosts()))
        second.start()
        known = lane_store.connect(farm.redis.url)
        try:
            farm.wait(lambda: "watched" in known.matches(), 10, "an open match")
            aside = sprt_match.set_aside(known, "watched", folded, host, "op", "a broken fan")
            count = 6 + len(aside)  # the mirror's: six may have stood before any was set aside
            farm.wait(lambda: second.kinds().count(lanes.GAME) == count, 90, "six games")
        finally:
            second.stop()
    kinds = second.kinds()
    assert kinds.count(lanes.ASIDE) == 1
    assert kinds.count(lanes.GAME) == 6 + len(aside)
    assert second.keeper.standing().games == 6
    assert second.keeper.standing().set_aside == len(aside) > 0
    # two lanes, each opened twice: two engines each time, and again after a game that was lost
    lives = (tmp_path / "tests.jsonl").read_text().splitlines()
    starts = {json.loads(life)["pid"] for life in lives}
    assert len(starts) <= 8 + 2 * kinds.count(lanes.LOST), "engines stay between games"
    for name, count in (("games", 6), ("set-aside", len(aside))):
        text = (second.directory / f"{name}.pgn").read_text()
        assert text.count("[Event ") == count, name


@pytest.mark.parametrize("games", [4, 40])
def test_matches_in_turn_are_each_read_once(games: int, tmp_path: pathlib.Path) -> None:
    """Two matches of equal share alternate game by game: neither book is read again for each.

    One that is opened again under its old name may have other engines.
    """
    read: list[str] = []

    class Ledger:
        def spec(self, match: str) -> str:
            read.append(match)
            return spec(games, tmp_path).encode()

    keeper = object.__new__(lane_worker.LaneWorker)
    keeper._lanes, keeper._specs = Ledger(), {}  # type: ignore[assignment]

    def spec_of(match: str, run: str) -> orders.Spec | None:
        place = ("main", "a", "first", contract.Token(1, 1), match, (1,), "w", "h", 0, run)
        return keeper._spec(lanes.Lease(*place))

    for game in range(games):
        assert spec_of("ab"[game % 2], "1") is not None
    assert read == ["a", "b"]
    assert spec_of("a", "2") is not None
    assert read == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("kind", "engines", "kept"),
    [("plain", 2, True), ("plain", 3, True), ("bubblewrap", 2, True), ("bubblewrap", 3, False)],
)
def test_engines_in_a_sandbox_stay_for_the_next_game_where_both_are_in_it(
    kind: sandbox.Kind, engines: int, *, kept: bool, tmp_path: pathlib.Path
) -> None:
    """What hides an engine from its opponent was not made for a third one."""
    two = spec(4, tmp_path)
    more = [two.engines[1].model_copy(update={"id": f"more-{n}"}) for n in range(engines - 2)]
    match = two.model_copy(update={"engines": (*two.engines, *more)})
    worker = object.__new__(lane_worker.LaneWorker)
    worker._confinement = sandbox.Confinement(kind)
    place = ("main", "a", "first", contract.Token(1, 1), "m", (1,), "w", "h", 0, "1")
    assert bool(worker._order(match, lanes.Lease(*place)).keep) is kept


def test_a_lane_that_waits_says_so_once() -> None:
    """A match behind an official season rings it every five seconds, for weeks."""

    class Directory:
        @contextlib.contextmanager
        def lane_locked(self, *_: object) -> Iterator[None]:
            yield None

    worker = object.__new__(lane_worker.LaneWorker)
    worker._directory, worker._waits = Directory(), ""  # type: ignore[assignment]
    worker.lane = lanes.Lane("main", "a", "h", frozenset({0}), 1)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            worker.look()
    assert [line["event"] for line in lines] == ["lane.closed"]


def test_the_dead_man_of_idle_engines_is_fed_while_a_result_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis may be away for longer than the dead man waits: he would end this worker, too."""
    monkeypatch.setattr(redis_retry, "RETRY_SECONDS", 0.0)
    seen: list[str] = []

    class Ledger:
        def complete_lane(self, *_: object, **__: object) -> lanes.Counted:
            seen.append("asked")
            if len(seen) < 10:
                raise errors.LedgerUnreachableError("away")
            return lanes.Counted(1)

    class Seated:
        def feed(self) -> None:
            seen.append("fed")

    keeper = object.__new__(lane_worker.LaneWorker)
    keeper._lanes = Ledger()  # type: ignore[assignment]
    keeper.lane = lanes.Lane("main", "a", "h", frozenset({0}), 1)
    keeper._kept = lane_worker._Seats(("m", "1"), "first", Seated())  # type: ignore[arg-type]
    lease = lanes.Lease("main", "a", "second", contract.Token(1, 1), "m", (1,), "w", "h", 0)
    keeper._record(lease, session.Interrupted("host", "as an example"), goes_on=True)
    assert seen == ["fed", "asked"] * 5


def test_each_engine_of_a_lane_gets_half_of_the_lanes_memory(tmp_path: pathlib.Path) -> None:
    """The two together stay within it; where a lane has no bound, the hall's for engines holds."""
    whole = settings.HallSettings(
        "hall-1", tmp_path, "", "h1", "w", engine_sandbox="plain", engine_memory_mb=512
    )
    bounds = {
        lane_memory: lane_worker._confinement(
            dataclasses.replace(whole, lane="a", lane_memory_mb=lane_memory)
        ).memory_mb
        for lane_memory in (None, 8_192, 65, 1)
    }
    assert bounds == {None: 512, 8_192: 4_096, 65: 32, 1: 1}


def test_a_lane_without_a_bound_has_its_cores_share_of_the_hosts_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten of twenty cores of a host of 64 GiB: 32 GiB."""
    sizes = {"SC_PAGE_SIZE": 4_096, "SC_PHYS_PAGES": 64 * 2**30 // 4_096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: 20)
    assert lane_worker._share_of_memory_mb(10) == 32 * 1_024
    assert lane_worker._share_of_memory_mb(20) == 64 * 1_024
