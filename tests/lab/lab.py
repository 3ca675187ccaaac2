"""``make lab``: the farm on hosts as the pages make them, from bare Debian to removal.

Steps are told on the terminal with their times; all that commands print goes into a log. The
first step that fails ends the run with what the farm says of itself (``--keep`` leaves the
hosts up for a look: ``nsenter`` into the process that is shown).
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Iterator

import base
import host
import steps
import undo

SANDBOXED = "its engines are in bubblewrap, below the hall's unit"


class Run:
    """One run: what was done, and when."""

    def __init__(self, log: pathlib.Path) -> None:
        """Begin to count seconds."""
        self.log, self._began, self._number = log, time.monotonic(), 0
        self.done: list[str] = []
        self.doing = ""
        self.lab: steps.Lab | None = None
        self.fault: undo.Fault | None = None

    def say(self, text: str) -> None:
        """Tell the terminal and the log."""
        line = f"{time.monotonic() - self._began:7.1f} s  {text}"
        print(line, flush=True)
        with self.log.open("a") as log:
            log.write(f"\n=== {line}\n")

    def begin(self, hosts: host.Hosts) -> steps.Lab:
        """Clone the repository at a desk; put a fault of old back where that is wanted."""
        self.lab = steps.Lab(hosts, self.log)
        if self.fault is not None:
            undo.put_back(self.lab.desk.clone, self.fault)
            self.say(f"put back: {self.fault.words}")
        return self.lab

    def step(self, text: str, work: Callable[..., object], *args: object, **more: object) -> None:
        """Do one step, under a number and its words."""
        self._number, self.doing = self._number + 1, text
        self.say(f"{self._number:2}  {text}")
        try:
            work(*args, **more)
        except BaseException as error:
            self.say(f"RED: {text}\n{error}")
            if self.lab is not None:
                self.say(self.lab.story())
            raise
        self.done.append(text)


def one_host(run: Run, hosts: host.Hosts) -> steps.Lab:
    """Boot one host that is to be control side and hall, and make the page's files for it."""
    run.step("a bare host boots", hosts.add, "control")
    lab = run.begin(hosts)
    run.step("the page makes its files", steps.the_page_makes_files, lab)
    steps.names_are_set(lab, control=["control"], halls=["control"])
    return lab


def a_game_is_played(run: Run, lab: steps.Lab, hall: str, games: int, seconds: float) -> None:
    """See all services run, and launch a season whose moves take so many seconds."""
    run.step("its services run", steps.services_run, lab)
    run.step("Debian's engines are installed", steps.halls_get_engines, lab, hall)
    steps.pace(lab, seconds, hall)
    run.step("a season is launched", steps.launched, lab, "match", games, paused=True)
    run.step("its engines are tried on the hall's host", steps.engines_are_tried, lab, hall)
    run.step("a game is played", steps.in_play, lab)


def its_operator_works(run: Run, lab: steps.Lab) -> None:
    """Do what an operator does and meets while a game is played, on the control side."""
    run.step("a season queues behind another", steps.a_queued_season_alarms_nobody, lab)
    run.step("a Redis that promises less is seen", steps.a_lazy_redis_is_seen, lab)
    run.step("an operator is added in mid-game", steps.an_operator_is_added, lab)
    run.step("secrets are rotated in mid-game", steps.secrets_are_rotated, lab)


def it_ends(run: Run, lab: steps.Lab, hall: str) -> None:
    """Play the season to its end without delay, and compare its copies."""
    steps.pace(lab, 0, hall)
    run.step("the season is played to its end", steps.over, lab, "match")
    run.step("journal and mirror agree", steps.the_copies_agree, lab, "match")


def short(run: Run, hosts: host.Hosts) -> None:
    """One host, one game, one restart of Redis."""
    lab = one_host(run, hosts)
    run.step("site.yml makes the host", steps.site_is_run, lab)
    a_game_is_played(run, lab, "control", 2, 3)
    run.step(SANDBOXED, steps.sandboxed, lab, "control")
    run.step("Redis is restarted in mid-game", steps.redis_is_restarted, lab)
    it_ends(run, lab, "control")


def changes(run: Run, hosts: host.Hosts) -> None:
    """One host, and what an operator changes on it in mid-game."""
    lab = one_host(run, hosts)
    run.step("a run that fails in the middle", steps.a_run_fails_in_the_middle, lab)
    run.step("site.yml again makes all hosts", steps.site_is_run, lab)
    a_game_is_played(run, lab, "control", 4, 5)
    its_operator_works(run, lab)
    run.step("an upgrade fails to build", steps.an_upgrade_fails_to_build, lab)


def long(run: Run, hosts: host.Hosts) -> None:
    """Control, hall and watch, later a second hall and a GPU box: all of a season's life."""
    for name in ("control", "cpu1", "watch"):
        run.step(f"bare host {name} boots", hosts.add, name)
    lab = run.begin(hosts)
    run.step("the page makes its files", steps.the_page_makes_files, lab)
    steps.names_are_set(lab, control=["control"], halls=["cpu1"], monitoring=["watch"])
    run.step("the page's check mode on bare hosts", steps.bare_hosts_are_looked_at, lab)
    run.step("a run that fails in the middle", steps.a_run_fails_in_the_middle, lab)
    run.step("site.yml again makes all hosts", steps.site_is_run, lab)
    run.step("nothing is left to do", steps.nothing_is_left_to_do, lab)
    a_game_is_played(run, lab, "cpu1", 60, 3)
    run.step(SANDBOXED, steps.sandboxed, lab, "cpu1")
    told = ("Celery's own commands and Flower", steps.celery_names_the_hall)
    run.step(*told, lab, "hall-1@cpu1.example.org")
    run.step("Redis is restarted in mid-game", steps.redis_is_restarted, lab)
    run.step("Redis is killed in mid-game", steps.redis_is_killed, lab)
    run.step("the hall is rebooted in mid-game", steps.the_hall_is_rebooted, lab, "cpu1")
    steps.pace(lab, 10, "cpu1")
    its_operator_works(run, lab)
    run.step("a second hall is added", steps.a_hall_is_added, lab, "cpu2", "hall-2")
    run.step("an upgrade fails to build", steps.an_upgrade_fails_to_build, lab)
    run.step("an upgrade while a game plays", steps.an_upgrade_is_made, lab, "cpu1")
    run.step("the way back", steps.the_way_back, lab)
    run.step("Redis' disk is lost in mid-game", steps.redis_disk_is_lost, lab)
    run.step("the first hall's host is replaced", steps.a_hall_is_replaced, lab, "cpu1")
    removed = ("a lane, a kibitzer and a hall are removed", steps.what_is_removed_is_gone)
    run.step(*removed, lab, "cpu2", "hall-2")
    run.step("a GPU box is added", steps.a_gpu_box_is_added, lab, "gpu1", "cpu1")
    run.step("the control side moves", steps.the_control_side_moves, lab, "control2", "cpu1")
    it_ends(run, lab, "cpu1")


FORMS = {"short": short, "changes": changes, "long": long}


@contextlib.contextmanager
def laboratory(*, keep: bool) -> Iterator[host.Hosts]:
    """Yield a laboratory in a folder of its own; take all away at the end, or leave it up."""
    with host.folder_for(base.folder()) as folder:
        hosts = host.Hosts(folder)
        try:
            yield hosts
        finally:
            if keep:
                for name, one in hosts.up.items():
                    print(f"{name}: nsenter -t {one.init} -a   # {one.folder}")
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    input("Enter takes all away ")
            hosts.close()
            base.run("rm", "-rf", "--one-file-system", folder)


def green(run: Run, form: str, *, keep: bool) -> bool:
    """Go through one form; say whether every step was well."""
    try:
        with laboratory(keep=keep) as hosts:
            FORMS[form](run, hosts)
    except Exception:
        run.say(f"RED after {len(run.done)} steps; the log: {run.log}")
        return False
    run.say(f"GREEN: {len(run.done)} steps; the log: {run.log}")
    return True


def undone(log: pathlib.Path, point: str, *, keep: bool) -> bool:
    """Put a fault back; say whether the laboratory is red where it must be."""
    fault = undo.FAULTS[point]
    run = Run(log)
    run.fault = fault
    if green(run, fault.form, keep=keep) or run.doing != fault.red_at:
        run.say(f"WRONG: point {point} undone must be red at: {fault.red_at}")
        return False
    run.say(f"RIGHT: point {point} undone is red at: {fault.red_at}")
    return True


def main() -> int:
    """Run the laboratory; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one host, one game, one restart")
    parser.add_argument("--undo", choices=[*undo.FAULTS, "all"], help="put a fault of old back")
    parser.add_argument("--keep", action="store_true", help="leave the hosts up at the end")
    parser.add_argument("--log", type=pathlib.Path, default=base.ROOT / "build" / "lab.log")
    told = parser.parse_args()
    if why := host.problem():
        print(f"make lab: {why}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):  # also of a job in the background: take all away
        signal.signal(number, signal.default_int_handler)
    told.log.parent.mkdir(parents=True, exist_ok=True)
    told.log.write_text("")
    if told.undo:
        points = list(undo.FAULTS) if told.undo == "all" else [told.undo]
        right = [undone(told.log, point, keep=told.keep) for point in points]
        return 0 if all(right) else 1
    return 0 if green(Run(told.log), "short" if told.short else "long", keep=told.keep) else 1


if __name__ == "__main__":
    sys.exit(main())
