"""What each part costs, at several sizes, with the exponent, the peer and the goal: one table.

CPU seconds and counts, so that other programs on the machine matter little. Each row names the
test that guards it by counting work. Prints the table, asserts no figure. ``FARM_BENCH=long``
takes the sizes that the goals are told for; peers are those that are named (``FARM_ORDO`` …), and
``FARM_BEFORE`` names an earlier checkout that is asked for the same rows (``before``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import before
import clock_figures
import clock_runners
import clock_script
import httpx
import pytest
import resting
import theatre

from orchestrator import contract
from orchestrator.ledger import embedded_redis, lane_store, lanes, restoring, store
from orchestrator.ops import supervisor
from orchestrator.season.formats import base, swiss
from orchestrator.serve import archive, doorbell
from orchestrator.testmatch import match_journal, orders, sprt_match
from worker_cpu.match import books

LONG = os.environ.get("FARM_BENCH") == "long"
FARM = (sys.executable, "-c", "from orchestrator import commands; commands.main()")
ENTRIES = 100  # shown on the page one by one, and measured
GAMES_OF_PAUSES = (100, 316)  # engines of round robins; a season has at most 100,000 games
PAUSES = (str(pathlib.Path(__file__).with_name("gc_pauses.py")),)
HEAD = "| row | what | sizes | ours | exponent | before | peer | ours / peer | goal | guarded by |"


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: figures by size, ours and a peer's."""

    number: str
    what: str
    unit: str
    ours: Mapping[int, float]
    goal: str
    guard: str
    peer: str = ""
    theirs: Mapping[int, float] = dataclasses.field(default_factory=dict)
    before: Mapping[int, float] = dataclasses.field(default_factory=dict)

    def line(self) -> str:
        """Return the row as Markdown; the exponent is that from the first to the last size."""
        sizes = " / ".join(f"{size:,}" for size in self.ours)
        cells = [self.number, self.what, sizes, self._figures(self.ours), self._exponent()]
        cells.append(self._figures(self.before) if self.before else before.paper(self.what))
        cells.append(f"{self.peer} {self._figures(self.theirs)}" if self.theirs else "")
        ratios = [f"{self.ours[size] / theirs:.2f}" for size, theirs in self.theirs.items()]
        cells += [" / ".join(ratios), self.goal, f"`{self.guard}`" if self.guard else ""]
        return f"| {' | '.join(cells)} |"

    def _figures(self, figures: Mapping[int, float]) -> str:
        return " / ".join(f"{_figure(value)}" for value in figures.values()) + f" {self.unit}"

    def _exponent(self) -> str:
        few, many = next(iter(self.ours)), list(self.ours)[-1]
        least, most = self.ours[few], self.ours[many]
        if few == many or least <= 0 or most <= 0:
            return ""
        return f"{math.log(most / least) / math.log(many / few):.2f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def sizes(*long: int, short: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of this form."""
    return tuple(long) if LONG else tuple(short)


# A small process starts the program: of one that starts it by itself, the peak would be ours.
WAITS = """import json, os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
sys.stderr.write(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def spent(command: Sequence[str], folder: pathlib.Path, **environment: str) -> tuple[float, float]:
    """Run a program; return its CPU seconds, those of its children included, and its peak MB."""
    with (folder / "said.txt").open("wb") as said:
        done = subprocess.run(
            [sys.executable, "-c", WAITS, *command],
            env=os.environ | environment,
            stdout=said,
            stderr=subprocess.PIPE,
            check=True,
        )
    status, cpu, peak = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, (command, (folder / "said.txt").read_text()[-2000:], done.stderr)
    return cpu, peak


def spent_by_all(command: Sequence[str], folder: pathlib.Path) -> float:
    """Run a program; return the CPU seconds of all processes that it is the ancestor of.

    Nobody tells those of a process whose parent does not wait for it: they are looked at, by a
    mark in their environment, until they are gone. What they take after the last look is missed.
    """
    mark = f"FARM_BENCH_RUN={folder}"
    ticks: dict[str, int] = {}
    running = clock_runners.started(command, folder, mark)
    others = {path.name for path in pathlib.Path("/proc").iterdir()} - {str(running.pid)}
    while running.poll() is None:
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            if path.name not in others:
                with contextlib.suppress(OSError, IndexError):
                    if path.name not in ticks and mark.encode() not in (
                        path / "environ"
                    ).read_bytes().split(b"\0"):
                        continue
                    fields = (path / "stat").read_text().rpartition(")")[2].split()
                    ticks[path.name] = int(fields[11]) + int(fields[12])
        time.sleep(0.05)
    clock_runners.ended(running, folder)
    return sum(ticks.values()) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work in this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


# -- commands --------------------------------------------------------------------------


def commands(folder: pathlib.Path) -> Iterator[Row]:
    """Measure starts of commands, and a status beside finished seasons."""
    runs = 3 if LONG else 1
    started = min(spent((*FARM, "--help"), folder)[0] for _ in range(runs))
    guard = "tests/release/test_startup.py"
    yield Row("1", "`farm --help`, CPU", "s", {1: started}, "0.15 s", guard)
    journal = theatre.simulated("demo").journal
    costs: dict[int, float] = {}
    with embedded_redis.EmbeddedRedis(folder / "redis") as server, store.connect(server.url) as own:
        for size in sizes(1, 100, short=(1, 4)):
            for number in range(len(own.seasons()), size):
                name = f"s{number}"
                launched = dataclasses.replace(journal[0], data={**journal[0].data, "id": name})
                own.load(name, [launched, *journal[1:]])
                own.reindex(restoring.Index(name, {}, {}, {}, {}, {}, {}, len(journal)))
                own.set_checked(name, own.run_id(), over=len(journal))
            told = {"FARM_REDIS_URL": server.url, "FARM_DATA": str(folder)}
            words = (*FARM, "status", f"s{size - 1}")
            costs[size] = min(spent(words, folder, **told)[0] for _ in range(runs))
    what = "`farm status` beside so many finished seasons, CPU"
    guard = "tests/integration/test_finished_seasons.py"
    yield Row("1, 4", what, "s", costs, "0.35 s, flat", guard)


# -- the page --------------------------------------------------------------------------


def page(folder: pathlib.Path) -> Iterator[Row]:
    """Measure an entry of a season's journal in the projector, its files included."""
    spent_ms: dict[int, float] = {}
    tapes = [theatre.round_robin(folder, engines) for engines in sizes(11, 32, 100, short=(4, 8))]
    named = "season17" if LONG else "demo"
    for tape in (*tapes, theatre.simulated(named)):
        here = folder / f"page-{len(tape.journal)}"
        made = theatre.projected(tape, here)
        tape.shown = len(tape.journal) * 9 // 10 if tape in tapes else len(tape.journal) // 2
        made.projector.look()
        entries = min(ENTRIES, len(tape.journal) - tape.shown)

        def looks(tape: theatre.Tape = tape, made: theatre.Projected = made) -> None:
            for _ in range(min(ENTRIES, len(tape.journal) - tape.shown)):
                tape.shown += 1
                made.projector.look()

        games = sum(entry.kind == "game_finished" for entry in tape.journal)
        cost = timed(looks) / entries * 1e3
        if tape not in tapes:
            season = Row(
                "2", f"an entry on the page in {named}, CPU", "ms", {games: cost}, "5 ms", ""
            )
            yield dataclasses.replace(season, guard="tests/broadcast/test_rendering.py")
        else:
            spent_ms[games] = cost
    what = "an entry on the page, round robin of so many games, CPU"
    yield Row("2", what, "ms", spent_ms, "10 ms", "tests/broadcast/test_rendering.py")


def page_files(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what a browser loads before the first script runs: requests, bytes as they come."""
    with (
        theatre.served(theatre.simulated("demo"), folder) as url,
        httpx.Client(base_url=url) as client,
    ):
        page = client.get("/")
        named = {*re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)}
        answers = [page, *(client.get(f"/{name}") for name in sorted(named))]
    size = sum(answer.num_bytes_downloaded for answer in answers) / 1024
    guard = "tests/broadcast/test_page_files.py"
    what = "the page and the files that it names"
    yield Row("14", f"{what}: requests", "", {1: len(answers)}, "12", guard)
    yield Row("14", f"{what}: compressed", "KB", {1: size}, "140 KB", guard)


def event_files(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what a game adds to its event's PGN behind so many others: bytes written."""
    text = (f'[Event "b"]\n[White "A"]\n[Result "1-0"]\n\n{{{"d=9, " * 1000}}} 1-0\n').encode()
    written: dict[int, float] = {}
    for games in sizes(100, 2_000, short=(4, 8)):
        kept = archive.SeasonArchive(folder / str(games), "s")
        for _ in range(games):
            kept.extend_event("e", text)
        before = _written()
        kept.extend_event("e", text)
        written[games] = _written() - before
    guard = "tests/integration/test_serve.py"
    what = "a game of 5 KB added to its event's PGN behind so many: written"
    yield Row("3", what, "B", written, "its own bytes", guard)


def _written() -> int:
    """Return the bytes that this process has given to the kernel to write."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar:")).split()[1])


def finished_seasons(folder: pathlib.Path) -> Iterator[Row]:
    """Measure a pass of page, notices, exporter and status beside so many seasons that are over."""
    commands_by_size: dict[int, float] = {}
    with embedded_redis.EmbeddedRedis(folder / "redis") as server, store.connect(server.url) as own:
        for size in sizes(10, 100, short=(2, 4)):
            for number in range(len(own.seasons()), size):
                resting.finished(own, f"s{number}")
            counted = resting.commands_of_a_pass(own, folder / str(size))
            commands_by_size[size] = sum(counted.values())
    what = "a pass of page, notices, exporter and status beside so many finished seasons"
    guard = "tests/integration/test_finished_seasons.py"
    yield Row("4", f"{what}: Redis commands", "", commands_by_size, "flat", guard)


# -- garbage ---------------------------------------------------------------------------


def pauses(folder: pathlib.Path) -> Iterator[Row]:
    """Measure the longest pause of the garbage collector in the processes that keep a season."""
    longest: dict[str, dict[int, float]] = {"serve": {}, "serve-web": {}}
    for engines in sizes(*GAMES_OF_PAUSES, short=(4,)):
        tape = theatre.round_robin(folder, engines)
        journal = folder / f"{engines}.jsonl"
        journal.write_text("".join(f"{entry.line()}\n" for entry in tape.journal))
        games = sum(entry.kind == "game_finished" for entry in tape.journal)
        for service, milliseconds in longest.items():
            words = [sys.executable, *PAUSES, service, str(journal), str(folder / str(games))]
            modules = os.pathsep.join(sys.path)  # the tests' own are among them
            said = subprocess.check_output(words, env=os.environ | {"PYTHONPATH": modules})
            milliseconds[games] = json.loads(said)["ms"]
    for service, milliseconds in longest.items():
        what = (
            f"longest pause of the garbage collector in `farm {service}`, season of so many games"
        )
        yield Row("15", what, "ms", milliseconds, "10 ms", "tests/operations/test_pauses.py")


# -- games -----------------------------------------------------------------------------


def games(folder: pathlib.Path) -> Iterator[Row]:
    """Measure a game of 120 plies with PGN, engines included, in each runner of matches."""
    if clock_runners.compiler() is None:
        return
    probe = clock_runners.build(folder)
    least, most = sizes(20, 220, short=(1, 2))
    found: dict[str, dict[int, float]] = {}
    pgn = {"fastchess": ["-pgnout", "file=games.pgn"], "c-chess-cli": ["-pgn", "games.pgn"]}
    for at_a_time in sizes(1, 2, short=(1,)):
        for runner in clock_runners.available():
            used = []
            for number in (least, most):
                here = folder / f"{runner.name.split()[0]}-{at_a_time}-{number}"
                (here / "logs").mkdir(parents=True)
                setting = clock_runners.Setting(0, 0, at_a_time, number)
                words = runner.command(probe, here / "logs", setting)
                words += pgn.get(runner.name, ["-pgnout", str(here / "games.pgn")])
                used.append(spent_by_all(words, here))
            cost = (used[1] - used[0]) / (most - least) * 1e3
            found.setdefault(runner.name, {})[at_a_time] = cost
    ours = found.pop("farm match")
    what = f"`farm match`, a game of {clock_script.PLIES} plies with PGN, so many at once, CPU"
    row = Row("5", what, "ms", ours, "8 ms", "tests/referee/test_work.py")
    for peer, theirs in found.items() or (("", {}),):
        yield dataclasses.replace(row, peer=peer, theirs=theirs)


def memory(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what `farm match` holds a game, engines apart, while so many games are played.

    Proportional size: a page that several processes share counts once in all.
    """
    if clock_runners.compiler() is None:
        return
    probe = clock_runners.build(folder)
    proportional: dict[int, float] = {}
    resident: dict[int, float] = {}
    for at_a_time in sizes(2, 16, 64, short=(2,)):
        here = folder / f"memory-{at_a_time}"
        (here / "logs").mkdir(parents=True)
        setting = clock_runners.Setting(2_000, 0, at_a_time, 4 * at_a_time)
        words = clock_runners.available()[0].command(probe, here / "logs", setting)
        words += ["-force-concurrency", "-pgnout", str(here / "games.pgn")]
        mark = f"FARM_BENCH_RUN={here}"
        running = clock_runners.started(words, here, mark)
        journal = here / "games.pgn.jsonl"
        while not journal.exists() or journal.read_bytes().count(b"\n") <= at_a_time:
            assert running.poll() is None, (here / "said.txt").read_text()[-2000:]
            time.sleep(0.05)  # until as many have ended as are played at a time
        proportional[at_a_time], resident[at_a_time] = (
            size / at_a_time for size in _held(mark, probe.program.name)
        )
        running.send_signal(signal.SIGTERM)
        running.wait()
    what = "`farm match`, memory a game without engines, so many at once"
    guard = "tests/match/test_many_games.py"
    yield Row("6", f"{what}: shared pages once (PSS)", "MB", proportional, "3 MB", guard)
    yield Row("6", f"{what}: shared pages in each process (RSS)", "MB", resident, "", "")


def _held(mark: str, engine: str) -> tuple[float, float]:
    """Return the proportional and the resident MB of all processes of a run but its engines."""
    proportional, resident = 0, 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() not in (path / "environ").read_bytes().split(b"\0"):
                continue
            if (path / "comm").read_text().strip() == engine:
                continue
            lines = (path / "smaps_rollup").read_text().splitlines()[1:]
            kilobytes = {name: int(rest.split()[0]) for name, rest in (x.split(":") for x in lines)}
            proportional += kilobytes["Pss"]
            resident += kilobytes["Rss"]
    return proportional / 1024, resident / 1024


def many_at_once(folder: pathlib.Path) -> Iterator[Row]:
    """Measure so many games at once of engines that sleep 80 ms a move: one game each, 9.6 s."""
    if clock_runners.compiler() is None:
        return
    probe = clock_runners.build(folder)
    seconds: dict[str, dict[int, float]] = {}
    late: dict[str, dict[int, float]] = {}
    think_us = sizes(-80_000, short=(-1_000,))[0]
    for at_a_time in sizes(64, 250, short=(2,)):
        for runner in clock_runners.available():
            here = folder / f"{runner.name.split()[0]}-{at_a_time}"
            (here / "logs").mkdir(parents=True)
            setting = clock_runners.Setting(think_us, 0, at_a_time, at_a_time)
            words = runner.command(probe, here / "logs", setting)
            if runner.name in ("farm match", "fastchess"):
                words += ["-force-concurrency"]
            begun = time.monotonic()
            clock_runners.ended(clock_runners.started(words, here), here)
            seconds.setdefault(runner.name, {})[at_a_time] = time.monotonic() - begun
            figures = clock_figures.figures(clock_figures.read(here / "logs"))
            late.setdefault(runner.name, {})[at_a_time] = figures.p99
    what = f"so many games at once of engines that sleep, {abs(think_us) // 1000} ms a move"
    ours, errors = seconds.pop("farm match"), late.pop("farm match")
    for peer in seconds or ("",):
        own, theirs = seconds.get(peer, {}), late.get(peer, {})
        guard = "tests/referee/test_deadman.py"
        yield Row("6", f"{what}: all of it", "s", ours, "10.5 s", guard, peer, own)
        yield Row("6", f"{what}: charged too much, p99", "ms", errors, "1 ms", "", peer, theirs)


def side_by_side(folder: pathlib.Path) -> Iterator[Row]:
    """Measure the time of one match, and of two that are started together, in each runner."""
    if clock_runners.compiler() is None or len(os.sched_getaffinity(0)) < 2:
        return
    probe = clock_runners.build(folder)
    seconds: dict[str, dict[int, float]] = {}
    for runner in clock_runners.available():
        for matches in sizes(1, 2, short=(1,)):
            begun, running = time.monotonic(), []
            for number in range(matches):
                here = folder / f"{runner.name.split()[0]}-{matches}-{number}"
                (here / "logs").mkdir(parents=True)
                setting = clock_runners.Setting(2_000, 0, 1, sizes(20, short=(1,))[0])
                words = runner.command(probe, here / "logs", setting)
                running.append(clock_runners.started(words, here))
            statuses = [match.wait() for match in running]
            assert not any(statuses), runner
            seconds.setdefault(runner.name, {})[matches] = time.monotonic() - begun
    ours = seconds.pop("farm match")
    what = "so many matches of engines that think 2 ms at the same time, until all have ended"
    row = Row("6b", what, "s", ours, "two as one", "tests/match/test_match_cores.py")
    for peer, theirs in seconds.items() or (("", {}),):
        yield dataclasses.replace(row, peer=peer, theirs=theirs)


# -- lanes -----------------------------------------------------------------------------


def claims(folder: pathlib.Path) -> Iterator[Row]:
    """Measure claim and result of a lane beside so many lanes, matches and games to deal again."""
    calls: dict[int, float] = {}
    aof: dict[int, float] = {}
    cpu: dict[int, float] = {}
    games = 500 if LONG else 20
    for size in sizes(10, 100, 1000, short=(4, 16)):
        with embedded_redis.EmbeddedRedis(folder / f"lanes-{size}") as server:
            known = lane_store.connect(server.url)
            client = known.server.client
            for number in range(size):
                hall = f"h{number // 100}"
                lane = lanes.Lane(hall, f"l{number}", hall, frozenset({number}), 64)
                known.open_lane(lane)
                match = lanes.Match(f"m{number}", 10_000, "{}", again=tuple(range(1, size + 1)))
                known.open_match(dataclasses.replace(match, next=size + 1))
                _claim(known, hall, f"l{number}", "held")
            known.open_lane(lanes.Lane("h0", "a", "h0", frozenset({size}), 64))
            before = client.info("all")
            for game in range(games):
                attempt = f"a-{game}"
                dealt = _claim(known, "h0", "a", attempt)
                lease = lanes.Lease(
                    "h0", "a", attempt, dealt.token, dealt.match, dealt.games, "w", "h0", 0
                )
                known.complete_lane(lease, '{"game":1}')
            after = client.info("all")
            known.close()
        calls[size] = (_calls(after) - _calls(before)) / games
        aof[size] = (after["aof_current_size"] - before["aof_current_size"]) / games
        used = sum(
            after[f"used_cpu_{kind}"] - before[f"used_cpu_{kind}"] for kind in ("sys", "user")
        )
        cpu[size] = used / games * 1e6
    what = "claim and result beside so many lanes, matches, and repeats of each match"
    guard = "tests/ledger/test_lanes.py"
    yield Row("8", f"{what}: Redis commands", "", calls, "flat", guard)
    yield Row("8", f"{what}: append-only file", "B", aof, "flat", guard)
    yield Row("8", f"{what}: Redis CPU", "µs", cpu, "flat", guard)


def keeper(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what keeps a test match beside so many lanes; Redis is not counted.

    All lanes are looked at once a second (``sprt_match.LOOK_SECONDS``), so several seconds are
    measured: one second alone has a look or none, as it happens.
    """
    steps, seconds, by_size = 10, 10 if LONG else 2, dict[int, float]()
    engine = {"id": "a", "name": "a", "command": ("true",)}
    for size in sizes(500, 5_000, short=(4, 16)):
        here = folder / f"keeper-{size}"
        with (
            embedded_redis.EmbeddedRedis(here / "redis") as server,
            store.connect(server.url) as own,
        ):
            known = lane_store.connect(server.url)
            for number in range(size):
                hall = f"h{number // 100}"
                if number % 100 == 0:
                    own.open_hall(hall, hall, "w")
                known.open_lane(lanes.Lane(hall, f"l{number}", hall, frozenset({number}), 4_096))
            spec = orders.Spec(
                id="m",
                engines=tuple(contract.EngineSpec(**engine | {"id": name}) for name in "ab"),
                time_control=contract.TimeControl(base_ms=20_000, increment_ms=1_000),
                games=10_000,
            )
            (here / "m").mkdir()
            kept = sprt_match.Keeper(own, known, here / "m", spec, sprt_match.Terms())
            kept.open("here")
            rung: list[str] = []
            kept.step(rung.append, 1)
            assert len(rung) == size
            begun, waited = time.process_time(), time.monotonic()
            for number in range(steps * seconds):
                kept.step(rung.append, 1)
                time.sleep(max(0.0, waited + (number + 1) / steps - time.monotonic()))
            by_size[size] = (time.process_time() - begun) / seconds * 1e3
            kept.close()
            known.close()
    what = f"what keeps a test match, so many lanes, {steps} steps a second: CPU a second"
    yield Row("8", what, "ms", by_size, "flat", "tests/testmatch/test_sprt_match.py")


def _claim(known: lane_store.RedisLanes, hall: str, lane: str, attempt: str) -> lanes.Dealt:
    dealt = known.claim_lane(lanes.LaneClaim(hall, lane, attempt, "w", hall, 10_000_000))
    assert isinstance(dealt, lanes.Dealt), dealt
    return dealt


def _calls(told: Mapping[str, dict[str, int]]) -> int:
    return sum(each["calls"] for name, each in told.items() if name.startswith("cmdstat_"))


def lane_memory(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what a lane holds beside its engines while it plays, so many lanes at once."""
    if not LONG or clock_runners.compiler() is None:
        return
    probe = clock_runners.build(folder)
    setting = clock_runners.Setting(2_000, 0, 1, 1)
    command = (str(probe.program), *probe.arguments(folder, setting))
    spec = orders.Spec(
        id="m",
        engines=tuple(contract.EngineSpec(id=name, name=name, command=command) for name in "ab"),
        time_control=contract.TimeControl(base_ms=20_000, increment_ms=1_000),
        games=10_000,
    )
    cores = sorted(os.sched_getaffinity(0))
    held: dict[int, float] = {}
    cpu: dict[int, float] = {}
    for size in sizes(1, 4, short=(1,)):
        here = folder / f"lanes-{size}"
        mark = f"FARM_BENCH_RUN={here}"
        with embedded_redis.EmbeddedRedis(here / "redis") as server, contextlib.ExitStack() as end:
            ring = doorbell.at(server.url)
            known = lane_store.connect(server.url)
            known.open_match(lanes.Match("m", 10_000, spec.encode()))
            logs = [here / f"{number}.log" for number in range(size)]
            for number, log in enumerate(logs):
                own = supervisor.environment(server.url, here, f"h{number}") | {
                    "FARM_LANE": "a",
                    "FARM_HOST": "here",
                    "FARM_ENGINE_CPUS": str(cores[number % len(cores)]),
                    "FARM_LANE_MEMORY_MB": "64",
                    "FARM_SANDBOX": "plain",
                }
                (here / "halls" / f"h{number}").mkdir(parents=True)
                with log.open("wb") as said:
                    words = supervisor.worker_command(f"h{number}", "a")
                    environment = own | dict([mark.split("=", 1)])
                    worker = subprocess.Popen(words, env=environment, stdout=said, stderr=said)
                end.callback(worker.wait)
                end.callback(worker.kill)  # its child and the games of that end with it
            games = _played(ring, logs, 2)
            held[size] = _held(mark, probe.program.name)[0] / size
            before = _used(mark, probe.program.name)
            games = _played(ring, logs, 10) - games
            cpu[size] = (_used(mark, probe.program.name) - before) / games * 1e3
            known.close()
    guard = "tests/referee/test_handles.py"
    what = "memory of a lane that plays, engines apart, so many lanes: shared pages once (PSS)"
    yield Row("7", what, "MB", held, "40 MB", guard)
    what = (
        f"a test game of {clock_script.PLIES} plies in so many lanes, engines and Redis apart, CPU"
    )
    yield Row("7", what, "ms", cpu, "35 ms", "tests/integration/test_lane_games.py")


def _played(ring: Callable[[str], None], logs: Sequence[pathlib.Path], least: int) -> int:
    """Ring lanes until each has played so many games; return the sum of theirs."""
    while min(games := [log.read_text().count("test.ended") for log in logs]) < least:
        for log in logs:
            ring(f"h{log.stem}.a")
        time.sleep(1)
    return sum(games)


def _used(mark: str, engine: str) -> float:
    """Return the CPU seconds so far of all processes of a run but its engines."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() not in (path / "environ").read_bytes().split(b"\0"):
                continue
            if (path / "comm").read_text().strip() != engine:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


# -- seasons ---------------------------------------------------------------------------


def forecasts(folder: pathlib.Path) -> Iterator[Row]:
    """Measure forecasts of whole seasons, and a round of a Swiss."""
    for name in ("season17", "ntcec1") if LONG else ("demo",):
        words = (*FARM, "forecast", name, "--processes", "0", "--json", "--runs")
        costs = {}
        for runs in sizes(50, 200, short=(10,)):
            costs[runs] = spent((*words, str(runs)), folder)[0]
        what = f"so many forecasts of {name}, CPU"
        guard = "tests/season/test_season_swiss.py"
        yield Row("9", what, "s", costs, "1,000 in 20 s of two cores", guard)
    rounds: dict[int, float] = {}
    for entrants in sizes(32, 64, 128, short=(8, 16)):
        rounds[entrants] = _longest_round(entrants)
    guard = "tests/integration/test_serve.py"
    yield Row("9", "the longest round of a Swiss of so many, CPU", "s", rounds, "0.3 s", guard)


def _longest_round(entrants: int) -> float:
    format_, results, longest = swiss.Swiss(entrants, 7), random.Random(1), 0.0
    played: list[base.Game] = []
    for number in range(format_.rounds):
        history = base.History(number, lambda: tuple(played))
        begun = time.process_time()
        paired = format_.pair(number, history)
        longest = max(longest, time.process_time() - begun)
        assert paired is not None
        for board in paired.boards:
            half_points = results.choice([(2, 0), (1, 1), (0, 2)])
            played.append(base.Game(board.white, board.black, number + 1, half_points))
    return longest


# -- files -----------------------------------------------------------------------------


def files(folder: pathlib.Path) -> Iterator[Row]:
    """Measure what is read before a match's first game: its book, and a journal to resume."""
    read: dict[int, float] = {}
    for lines in sizes(25_000, 100_000, short=(500, 2_000)):
        book = folder / f"{lines}.epd"
        clocks = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - hmvc 0; fmvn"
        book.write_text("".join(f"{clocks} {number};\n" for number in range(1, lines + 1)))
        read[lines] = timed(lambda book=book: books.read_book(book, "epd", None)[0])  # type: ignore[misc]
    guard = "tests/match/test_openings_of_matches.py"
    yield Row("11", "a book of so many lines, CPU", "s", read, "0.2 s", guard)
    taken: dict[int, float] = {}
    journal = folder / "journal.jsonl"
    for number in sizes(10_000, 40_000, short=(100, 400)):
        with journal.open("w") as out:
            out.write('{"kind":"match","v":1,"arguments":[],"seed":1}\n')
            for game in range(1, number + 1):
                out.write(contract.dumps(_result(game)) + "\n")
        taken[number] = timed(lambda: match_journal.past(journal))
    guard = "tests/match/test_match_journal.py"
    yield Row("12", "resuming after so many games, CPU", "s", taken, "linear", guard)


def _result(number: int) -> dict[str, object]:
    played = match_journal.Result(
        number=number,
        round=number,
        white="A",
        black="B",
        opening=1,
        result="1-0",
        ending="checkmate",
        loser="black",
        details="White mates",
        note="",
        plies=120,
        started_ms=0,
        ended_ms=1_000,
    )
    return {"kind": "game", **dataclasses.asdict(played)}


# -- ratings ---------------------------------------------------------------------------


def ratings(folder: pathlib.Path) -> Iterator[Row]:
    """Measure a rating list of 200 engines beside Ordo's: CPU and memory."""
    ordo = os.environ.get("FARM_ORDO", "")
    cpu: dict[int, float] = {}
    memory: dict[int, float] = {}
    their_cpu: dict[int, float] = {}
    their_memory: dict[int, float] = {}
    for number in sizes(100_000, 1_000_000, short=(1_000, 4_000)):
        archive = _archive(folder / f"{number}.pgn", number)
        words = ("rate", str(archive), "--white-advantage", "--draw-rate", "--json")
        cpu[number], memory[number] = spent((*FARM, *words), folder)
        if ordo:
            peer = (ordo, "-q", "-W", "-D", "-p", str(archive), "-o", str(folder / "peer.txt"))
            their_cpu[number], their_memory[number] = spent(peer, folder)
        archive.unlink()
    guard = "tests/rating/test_pairings.py"
    what = "rating list of so many games of 200 engines"
    yield Row("13", f"{what}: CPU", "s", cpu, "0.7 of Ordo", guard, "Ordo", their_cpu)
    yield Row("13", f"{what}: memory", "MB", memory, "1.5 of Ordo", guard, "Ordo", their_memory)


def _archive(path: pathlib.Path, games: int) -> pathlib.Path:
    numbers = random.Random(1)
    with path.open("w") as out:
        for number in range(games):
            one, other = numbers.sample(range(200), 2)
            lead = (other - one) / 200 + numbers.gauss(0, 1)
            result = "1/2-1/2" if abs(lead) < 0.8 else "1-0" if lead > 0 else "0-1"
            out.write(
                f'[Event "b"]\n[Round "{number}"]\n[White "Engine {one}"]\n'
                f'[Black "Engine {other}"]\n[Result "{result}"]\n\n{result}\n\n'
            )
    return path


@pytest.mark.benchmark
def test_the_table_of_costs(tmp_path: pathlib.Path) -> None:
    """Every row is measured; the table is printed as the page has it."""
    rows: list[Row] = []
    parts = (
        commands,
        page,
        page_files,
        event_files,
        finished_seasons,
        pauses,
        games,
        memory,
        many_at_once,
        side_by_side,
        claims,
        keeper,
        lane_memory,
        forecasts,
        files,
        ratings,
    )
    for number, part in enumerate(parts):
        (tmp_path / str(number)).mkdir()
        ours = list(part(tmp_path / str(number)))
        earlier = before.rows(part.__name__, tmp_path / f"{number}-before")
        rows += [dataclasses.replace(row, before=earlier.get(row.what, {})) for row in ours]
    print(f"\n{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}")
    for row in rows:
        print(row.line())
    for row in rows:
        assert not row.guard or pathlib.Path(row.guard).is_file(), row
