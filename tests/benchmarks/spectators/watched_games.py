"""Games of the clock-error probe through a whole farm, every other one before a crowd.

Referee and engines run on the last core, all else (Redis, orchestrator, link, web server,
the crowd itself) on the first. The hall is held until a game's crowd is there, or nobody is
any more: a move belongs to a *window*, from then to the end of the game.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping

import clock_figures
import clock_runners
import clock_script
import harness
import theatre

from orchestrator import contract
from orchestrator.ledger import api

CROWD = pathlib.Path(__file__).with_name("crowd.py")
SEASON = "crowd"
LOOK_SECONDS = 0.1  # s: between two looks at how far the season is
HOLD = api.Hold(f"hall:{harness.HALL}", "crowd", "the next crowd is coming")
CALM_SECONDS = 1.0  # s: after a crowd has left, its connections are still being closed
Ply = tuple[str, int]  # game and ply
Thought = tuple[contract.PlyRecord, clock_figures.Move]  # what we recorded, what the probe knows


@dataclasses.dataclass(frozen=True)
class Window:
    """From when to when (monotonic ns) a crowd of that size was whole, and what it saw."""

    crowd: int
    begin_ns: int
    end_ns: int
    seen: Mapping[Ply, list[int]] = dataclasses.field(default_factory=dict)
    ended: int = 0

    @property
    def seconds(self) -> float:
        """Return how long it was."""
        return (self.end_ns - self.begin_ns) / 1e9

    def holds(self, begin_ns: int, end_ns: int) -> bool:
        """Say whether all of a time is in this window."""
        return self.begin_ns <= begin_ns and end_ns <= self.end_ns


@dataclasses.dataclass(frozen=True)
class Played:
    """All windows, and the record of every game beside the probes' stamps."""

    windows: list[Window]
    games: dict[str, list[Thought]]

    def thoughts(self, crowd: int) -> Iterator[tuple[Window, str, Thought]]:
        """Yield the moves that were made before a crowd of that size, 0 for nobody."""
        for window in self.windows:
            for game, thoughts in self.games.items() if window.crowd == crowd else ():
                for thought in thoughts:
                    if window.holds(thought[1].go_ns, thought[1].bestmove_ns):
                        yield window, game, thought

    def own_errors(self, crowd: int) -> list[float]:
        """Return our own record of each move minus the probe's stamps, ms."""
        return [
            (ply.think_ns - move.think_ns) / clock_figures.NS
            for _, _, (ply, move) in self.thoughts(crowd)
        ]

    def told_errors(self, crowd: int) -> list[float]:
        """Return what engines were charged by the clocks they were told, minus the stamps, ms."""
        found = []
        for window in self.windows:
            for thoughts in self.games.values() if window.crowd == crowd else ():
                for side in (0, 1):
                    moves = [move for _, move in thoughts[side::2]]
                    found += [
                        one.told_ms + clock_figures.INCREMENT_MS - two.told_ms - one.think_ns / 1e6
                        for one, two in itertools.pairwise(moves)
                        if window.holds(one.go_ns, two.go_ns)
                    ]
        return found

    def delays(self, crowd: int) -> tuple[list[float], int]:
        """Return how late each spectator saw each ply after ``bestmove``, ms; how many plies.

        Raise ``AssertionError`` when one of them missed one.
        """
        found: list[float] = []
        plies = 0
        for window, game, (ply, move) in self.thoughts(crowd):
            stamps = window.seen.get((game, ply.ply), [])
            assert len(stamps) == crowd, f"{len(stamps)} of {crowd} saw ply {ply.ply} of {game}"
            found += [(stamp - move.bestmove_ns) / clock_figures.NS for stamp in stamps]
            plies += 1
        return found, plies


@contextlib.contextmanager
def on_the_first_core() -> Iterator[dict[str, str]]:
    """Bind this process and all that it starts; give the hall the last core, if there are two."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        yield {}
        return
    os.sched_setaffinity(0, {min(before)})
    try:
        yield {"FARM_REFEREE_CPUS": str(max(before)), "FARM_ENGINE_CPUS": str(max(before))}
    finally:
        os.sched_setaffinity(0, before)


def play(root: pathlib.Path, crowds: Iterable[int], setting: clock_runners.Setting) -> Played:
    """Play one game before each of the crowds, one after the other."""
    crowds = list(crowds)
    probe = clock_runners.build(root)
    logs = {name: root / "logs" / name for name in "ab"}
    for folder in logs.values():
        folder.mkdir(parents=True)
    with on_the_first_core() as cores, harness.running(root / "farm", cores) as farm:
        web = theatre.Web(farm)
        web.start()
        try:
            _change(farm, "hall_held", HOLD)
            farm.launch(_season(root, probe, logs, setting, len(crowds)), SEASON)
            windows = [_watch(web, number, crowd) for number, crowd in enumerate(crowds)]
            records = list(_records(farm))
        finally:
            web.kill()
    sides = {name: clock_figures.read(folder) for name, folder in logs.items()}
    return Played(windows, dict(_beside(records, sides)))


def _season(
    root: pathlib.Path,
    probe: clock_runners.Probe,
    logs: Mapping[str, pathlib.Path],
    setting: clock_runners.Setting,
    games: int,
) -> pathlib.Path:
    """Write a season file: two probes, so many games from the start position."""
    rows = ['schema = 1\nid = "crowd"\nname = "Crowd"\n[roster]']
    for name, folder in logs.items():
        command = json.dumps([str(probe.program), *probe.arguments(folder, setting)])
        rows += [f'[[roster.engine]]\nid = "{name}"\nname = "{name}"\ncommand = {command}']
    rows += [
        f"""[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = {-(-games // 2)} }}
entrants = "roster"
time_control = "60s+100ms"
limits = {{ free = true }}"""
    ]
    file = root / "season.toml"
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


def _watch(web: theatre.Web, number: int, crowd: int) -> Window:
    """Let a crowd come to a game before it begins, and leave when it is over."""
    if not crowd:
        time.sleep(CALM_SECONDS)
        begin_ns = time.monotonic_ns()
        _play(web.farm, number)
        return Window(0, begin_ns, time.monotonic_ns())
    command = [sys.executable, str(CROWD), str(web.port), str(crowd)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        begin_ns = time.monotonic_ns()
        game = _play(web.farm, number)
        end_ns = time.monotonic_ns()
        told = json.loads(process.communicate(f"{game} {clock_script.PLIES}\n", timeout=60)[0])
    seen = {(game, ply): stamps for game, ply, stamps in told["plies"]}
    return Window(crowd, begin_ns, end_ns, seen, told["ended"])


def _play(farm: harness.Farm, number: int) -> str:
    """Let the next game be played, and none behind it; its id."""
    _change(farm, "hall_released", api.Release(HOLD.scope, HOLD.name))
    farm.wait(lambda: bool(_running(farm)), 60, f"game {number + 1}")
    game = _running(farm)
    _change(farm, "hall_held", HOLD)
    _until(farm, number + 1)
    return game


def _change(farm: harness.Farm, kind: str, effect: api.Effect) -> None:
    """Hold or release the hall, as an operator does."""
    fact = {"hall": harness.HALL, "host": "", "worker": "", "reason": HOLD.reason}
    last = farm.ledger.last(api.FARM)
    told = farm.ledger.append(api.FARM, last, [contract.Draft(kind, fact)], "benchmark", [effect])
    assert isinstance(told, api.Appended)


def _until(farm: harness.Farm, games: int) -> None:
    """Wait until so many games are over; look seldom, so as not to be the load oneself."""
    limit = time.monotonic() + 300
    while _finished(farm) < games:
        assert time.monotonic() < limit, farm.serve.log_tail() + farm.worker.log_tail()
        time.sleep(LOOK_SECONDS)


def _finished(farm: harness.Farm) -> int:
    return sum(game.finished is not None for game in farm.state(SEASON).games.values())


def _running(farm: harness.Farm) -> str:
    """Return the game in flight, '' between two."""
    running = farm.state(SEASON).running
    return running.game if running else ""


def _records(farm: harness.Farm) -> Iterator[contract.GameRecord]:
    """Yield the records of the games in the order in which they were played."""
    folded = farm.state(SEASON)
    ended = [game for game in folded.games.values() if game.finished is not None]
    for game in sorted(ended, key=lambda game: game.finished.ended_ms if game.finished else 0):
        path = farm.archive / SEASON / "games" / game.id / "record.json"
        farm.wait(path.exists, 60, f"the record of {game.id}")
        yield contract.GameRecord.decode(path.read_bytes())


def _beside(
    records: Iterable[contract.GameRecord], sides: Mapping[str, list[clock_figures.Side]]
) -> Iterator[tuple[str, list[Thought]]]:
    """Put each engine's games, in their order, beside the records."""
    in_order = {
        name: iter(sorted(of, key=lambda side: side[0].go_ns)) for name, of in sides.items()
    }
    for record in records:
        moves = {
            move.ply: move
            for engine in (record.order.white.id, record.order.black.id)
            for move in next(in_order[engine])
        }
        assert len(moves) == len(record.plies), f"{record.order.game}: {len(moves)} moves"
        yield record.order.game, [(ply, moves[ply.ply]) for ply in record.plies]
