"""What ``farm up`` prints: the end of a season and what comes next, and others' load."""

from __future__ import annotations

import io
import os
import pathlib
import re
import signal

import driver
import harness
import pytest
import rich.console
from twins import memory

from orchestrator import contract
from orchestrator.commands import up
from orchestrator.common import processor
from orchestrator.ops import supervisor
from orchestrator.season.fold import abandoning, entries, openings

CORES = sorted(os.sched_getaffinity(0))
HOUR = 360_000  # ticks of a core


class Machine:
    """Counters as the kernel shows them; ``pid`` is the process whose use is not others'."""

    def __init__(self, proc: pathlib.Path) -> None:
        self.proc, self.busy, self.own, self.idle = proc, 0.0, 0, 0.0
        self.pass_hour(0, 0)

    def pass_hour(self, others: float, own: float) -> None:
        """Let an hour pass in which so many cores were used by others, and by this process."""
        self.busy += (others + own) / len(CORES) * HOUR
        self.idle += (len(CORES) - others - own) / len(CORES) * HOUR
        self.own += round(own * HOUR)
        core = f"{round(self.busy)} 0 0 {round(self.idle)} 0 0 0 0"
        ticks = (round(self.busy * len(CORES)), round(self.idle * len(CORES)))
        lines = [f"cpu {ticks[0]} 0 0 {ticks[1]} 0 0 0 0", *(f"cpu{n} {core}" for n in CORES)]
        (self.proc / "stat").write_text("\n".join(lines) + "\n")
        (self.proc / str(os.getpid())).mkdir(exist_ok=True)
        words = f"{os.getpid()} (farm) S 1 0 0 0 0 0 0 0 0 0 {self.own} 0 0 0 20"
        (self.proc / str(os.getpid()) / "stat").write_text(words)

    def others(self) -> processor.Others:
        """Watch it at every look."""
        return processor.Others(self.proc, 0.0)


class Shown:
    """A screen over a ledger in memory that is fed a season entry by entry."""

    def __init__(self, machine: Machine, season: driver.Driver, awaited: str | None = None) -> None:
        self.machine, self.season = machine, season
        self.ledger, self.out = memory.MemoryLedger(), io.StringIO()
        self._seq = 0
        self.screen = harness.up_screen_of(self.ledger, self.out, machine.others(), awaited=awaited)

    def feed(self) -> None:
        """Journal what the season has grown by."""
        new = self.season.journal[self._seq :]
        drafts = [contract.Draft(entry.kind, entry.data) for entry in new]
        self.ledger.append("test", self._seq, drafts, "test")
        self._seq += len(new)

    def look(self) -> str:
        """Look, and return what was printed."""
        self._clear()
        self.screen.look()
        return self.out.getvalue()

    def given_up(self, hall: str) -> str:
        """Tell what was given up in a hall, and return what was printed."""
        self._clear()
        self.screen.tell_last_game(hall)
        return self.out.getvalue()

    def _clear(self) -> None:
        self.out.seek(0)
        self.out.truncate()


def on_time(_game: object) -> driver.Verdict:
    """Invent a world in which White always loses on time."""
    return "0-1", contract.Ending.TIME


@pytest.fixture(name="machine")
def _machine(tmp_path: pathlib.Path) -> Machine:
    (tmp_path / "proc").mkdir()
    return Machine(tmp_path / "proc")


def launched(folder: pathlib.Path, *words: str) -> driver.Driver:
    """Launch a season that nobody has played yet; ``words`` are keys of its event."""
    text = driver.season_text().replace('id = "league"', "\n".join(('id = "league"', *words)))
    return driver.Driver.launched(driver.load(folder, text), on_time)


@pytest.fixture(name="season")
def _season(tmp_path: pathlib.Path) -> driver.Driver:
    return launched(tmp_path)


def test_others_load_is_told_at_the_start_and_at_a_loss_on_time(
    machine: Machine, season: driver.Driver
) -> None:
    """Each once, however long it lasts and however many games are lost; never on a quiet one."""
    shown = Shown(machine, season)
    shown.feed()
    told = shown.look()
    for game in range(4):
        machine.pass_hour(others=len(CORES), own=0)
        told += shown.look()
        season.play(1)
        shown.feed()
        told += shown.look()
        assert told.count("loses on time") + told.count("  time,") == game + 1
    crowd = f"other programs use {len(CORES):.1f} of {len(CORES)} cores of this machine"
    assert told.count(crowd) == 2
    assert told.count("engines may lose on time because of them") == 1
    assert told.count("this loss on time may come from them") == 1


def test_a_farms_own_load_is_nobody_elses(machine: Machine, season: driver.Driver) -> None:
    """Engines and referee use the machine as they please; a little of others is no matter."""
    shown = Shown(machine, season)
    shown.feed()
    told = shown.look()
    machine.pass_hour(others=processor.BUSY - 0.3, own=len(CORES) - 0.5)
    told += shown.look()
    season.play(1)
    shown.feed()
    told += shown.look()
    assert "other programs" not in told


def test_an_engine_of_more_threads_needs_more_of_the_machine(machine: Machine) -> None:
    """What is left is held against a thinking engine's cores, and one for the referee."""
    others = processor.Others(machine.proc)
    others.look()
    machine.pass_hour(others=0.75, own=0)
    others.look()
    assert others.used is None, "it is not time"
    others.look(at_once=True)
    machine.pass_hour(others=0, own=0)
    others.look(at_once=True)
    free = len(CORES) - 0.75
    enough = int(free)
    assert others.crowd(enough) == ""
    assert others.crowd(enough + 1).startswith("other programs use 0.8 of")


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        ("operator", "League waits for you: `farm season open-gate league` begins it\n"),
        ("1h", "League opens "),
    ],
)
def test_a_gate_is_told(machine: Machine, tmp_path: pathlib.Path, wait: str, said: str) -> None:
    """A season that waits for its director says so where he looks, and what begins it."""
    text = driver.season_text().replace('id = "league"', f'id = "league"\nbreak = "{wait}"')
    season = driver.Patient.launched(driver.load(tmp_path, text))
    shown = Shown(machine, season)
    shown.feed()
    shown.look()
    season.settle()
    shown.feed()
    assert said in shown.look()


def test_a_season_that_is_launched_meanwhile_is_told_from_its_launch_on(
    machine: Machine, season: driver.Driver
) -> None:
    """However much has happened by the next look: its pause, its hold, each with its season."""
    shown = Shown(machine, season)
    shown.look()
    why = entries.Held(reason="3 attempts at league.1 ended without a move")
    season.append([contract.Draft.of(entries.PAUSED, entries.Paused(name="ann", reason="[lunch]"))])
    season.append([contract.Draft.of(entries.HELD, why)])
    back = entries.Resumed(name="ann", reason="served")
    season.append([contract.Draft.of(entries.RESUMED, back)])
    shown.feed()
    told = shown.look()
    assert "ann  resumed: served\n" in told
    assert "test is launched: " in told
    assert "4 engines" in told
    resumes = "`FARM_DATA=/x farm season resume test` goes on"
    assert f"test is paused: [lunch]; {resumes}\n" in told
    assert f"test is held: {why.reason}; {resumes}\n" in told
    assert "launched" not in shown.look()


def test_the_end_of_a_season_says_who_won_and_what_next(
    machine: Machine, season: driver.Driver
) -> None:
    """Champion, tables, the next launch, with what a command needs to find this farm."""
    shown = Shown(machine, season)
    shown.feed()
    shown.look()
    season.play()
    shown.feed()
    told = shown.look()
    champion = season.state.engines[season.state.champion].name
    assert f"test is over: {champion} is the champion" in told
    assert "`FARM_DATA=/x farm season standings test`" in told
    assert "its games: /x/archive/test/*.pgn\n" in told
    assert "`FARM_DATA=/x farm season launch FILE --id ANOTHER`; Ctrl-C ends the farm" in told
    assert "is over" not in shown.look()
    again = Shown(machine, season)
    again.feed()
    assert f"test is over: {champion} is the champion" in again.look()


def test_an_awaited_season_is_told_by_its_report_alone(
    machine: Machine, season: driver.Driver
) -> None:
    """With --until-finished the farm ends then, and says who won when it has."""
    shown = Shown(machine, season, awaited="test")
    shown.feed()
    told = shown.look()
    season.play()
    shown.feed()
    assert "champion" not in told + shown.look()


def test_a_farm_with_nothing_to_play_says_what_to_do(
    machine: Machine, season: driver.Driver
) -> None:
    """Before the first season, and after an abandoned one."""
    shown = Shown(machine, season)
    assert "no season yet: `FARM_DATA=/x farm season launch FILE` begins one" in shown.look()
    shown.feed()
    shown.look()
    season.append(abandoning.abandon(season.state, "ann", "by mistake"))
    shown.feed()
    told = shown.look()
    assert "abandoned by ann" in told
    assert "champion" not in told
    assert "another season:" in told
    begun_anew = Shown(machine, season)
    begun_anew.feed()
    assert f"{season.state.launched.id} was abandoned" in begun_anew.look()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "goes on from its last move\n"),
        (('interruptions = "s16"',), "goes on from its last move, unless the event's rules decide"),
        (('interruptions = "ntcec1"',), "begins again\n"),
    ],
)
def test_a_game_that_is_given_up_is_told_what_its_events_rules_make_of_it(
    machine: Machine, tmp_path: pathlib.Path, words: tuple[str, ...], told: str
) -> None:
    """Of the hall that was stopped and no other; a game that ended meanwhile is told as such."""
    season = launched(tmp_path, *words)
    season.settle()
    game = season.state.ready_game()
    assert game is not None
    attempt = season.start(game)
    shown = Shown(machine, season)
    shown.feed()
    assert "given up" not in shown.given_up("another")
    assert f"{game} is given up: next time it {told}" in shown.given_up(driver.HALL)
    season.finish(game, attempt, on_time(game))
    shown.feed()
    assert "given up" not in (last := shown.given_up(driver.HALL))
    assert "0-1" in last


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ((), "nothing disqualifies it (disqualify_after = 0)"),
        (("disqualify_after = 2",), "it is disqualified after 2 crashes (disqualify_after = 2)"),
    ],
)
def test_an_engine_that_does_not_start_is_told_loudly_and_once(
    machine: Machine, tmp_path: pathlib.Path, words: tuple[str, ...], out: str
) -> None:
    """With what a director can type then; an engine that crashes later is told as before."""
    season = launched(tmp_path, *words)
    shown = Shown(machine, season)
    told = []
    for moves in (40, 0, 0):
        season.settle()
        game = season.state.games[season.state.ready_game() or ""]
        attempt = season.start(game.id)
        opening = len(openings.of_game(season.state, game).moves)
        crash = driver.finished(game.id, attempt, ("0-1", contract.Ending.STALL), season.now_ms)
        fact = crash.model_copy(update={"plies": opening + moves}).model_dump(mode="json")
        shown.feed()
        shown.look()
        season.append([contract.Draft("game_finished", fact)], "worker")
        shown.feed()
        told.append((game.white, game.id, shown.look()))
    assert "DID NOT START" not in told[0][2]
    seen: set[str] = set()
    for engine, game_id, lines in told[1:]:
        assert (f"{engine} DID NOT START in {game_id}" in lines) == (engine not in seen)
        seen.add(engine)
    engine, _, lines = told[1]
    assert out in lines
    for command in (
        "season pause --reason WHY",
        f"engine test {engine}",
        f"season amend engine {engine} --event league --with ID",
        f"engine withdraw {engine} --event league --reason WHY",
    ):
        assert f"`FARM_DATA=/x farm {command}" in lines


def test_a_farm_that_nohup_has_started_outlives_its_terminal() -> None:
    """Nobody hears of the SIGHUP that is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with up._Ending().listening():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class InterruptedOutput(io.StringIO):
    """A terminal at which Ctrl-C is pressed in the moment in which a result is printed."""

    pressed = False

    def write(self, text: str) -> int:
        """Press Ctrl-C once, before the line appears."""
        if "league.1 (" in text and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


def test_ctrl_c_while_a_result_is_printed_loses_no_line(
    season: driver.Driver, tmp_path: pathlib.Path
) -> None:
    """The result is on the screen, once, before the farm says goodbye."""
    terminal, ledger = InterruptedOutput(), memory.MemoryLedger()
    screen = harness.up_screen_of(ledger, terminal)

    def feed(since: int) -> int:
        drafts = [contract.Draft(entry.kind, entry.data) for entry in season.journal[since:]]
        ledger.append("test", since, drafts, "test")
        return len(season.journal)

    length = feed(0)
    idle = [
        supervisor.Supervised(name, ["sleep", "600"], os.environ, tmp_path / f"{name}.log")
        for name in ("serve", "worker")
    ]
    farm = up.Farm(driver.HALL, None, *idle)
    console = rich.console.Console(file=terminal, width=200)
    screen.look()
    season.play(1)
    feed(length)
    assert up.run(farm, screen, None, console) is None
    printed = terminal.getvalue()
    assert printed.count("league.1 (") == 1
    assert printed.index("league.1 (") < printed.index("everything is stopped")
    assert re.search(r"everything is stopped; `.*farm up` goes on\n", printed)
    assert not any(process.running for process in idle)
