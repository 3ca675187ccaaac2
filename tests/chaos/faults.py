"""The faults of a storm, by name; each knows how to strike, how long it lasts, how to mend it.

A fault that finds nothing to strike (no game runs, no dead man lives) says so by ``None``
and is tried again. ``needs`` names what this machine must have for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import random
import signal
from collections.abc import Callable
from typing import Literal

import harness
import namespaces
import redis
import stage as stages

from orchestrator import doorbell, errors

Stage = stages.Stage
Target = Callable[[Stage], int | None]
BELLS = 3  # rings too many
STEP_SECONDS = 3 * 3600  # s: how far Redis' clock is stepped, there and back


@dataclasses.dataclass(frozen=True)
class Held:
    """A fault that has struck: how long it stays, in seconds, and what ends it."""

    seconds: float
    mend: Callable[[], None]


Strike = Callable[[Stage, random.Random], Held | None]
OVER = Held(0.0, lambda: None)  # there is nothing to mend


@dataclasses.dataclass(frozen=True)
class Fault:
    """One named fault."""

    name: str
    strike: Strike
    needs: Literal["", "root", "faketime", "proxy"] = ""


TARGETS: dict[str, Target] = {
    "worker main": lambda farm: farm.worker.pid if farm.worker.running else None,
    "link": harness.link_pid,
    "referee": harness.referee_pid,
    "nursery": lambda farm: harness.game_process(farm, "worker_cpu.nursery"),
    "dead man": lambda farm: harness.game_process(farm, "deadman.py"),
    "serve": lambda farm: farm.serve.pid if farm.serve.running else None,
    "redis": lambda farm: farm.redis_pid(),
}


def _engine(farm: Stage) -> int | None:
    return next(iter(harness.engines(farm)), None)


def _kill(target: Target) -> Strike:
    def strike(farm: Stage, _dice: random.Random) -> Held | None:
        return OVER if harness.kill(target(farm), signal.SIGKILL) else None

    return strike


def _freeze(target: Target) -> Strike:
    def strike(farm: Stage, dice: random.Random) -> Held | None:
        pid = target(farm)
        if pid is None or not harness.kill(pid, signal.SIGSTOP):
            return None
        return Held(dice.choice([0.3, 1.0, 4.0]), lambda: _thaw(pid))

    return strike


def _thaw(pid: int) -> None:
    harness.kill(pid, signal.SIGCONT)


def _restart_redis(farm: Stage, _dice: random.Random) -> Held | None:
    return OVER if harness.kill(farm.redis_pid(), signal.SIGTERM) else None


def _slow_redis(farm: Stage, dice: random.Random) -> Held | None:
    seconds = dice.choice([0.5, 2.0, 6.0])  # s: the last one is beyond the socket's time-out
    client = redis.Redis.from_url(farm.redis.url, socket_timeout=2)
    with contextlib.suppress(redis.RedisError), client:  # the fault before may have ended it
        client.client_pause(round(seconds * 1000))
        return Held(seconds, lambda: None)
    return None


def _full_disk(farm: Stage, dice: random.Random) -> Held | None:
    farm.fill_disk()
    return Held(dice.uniform(0.3, 2.0), farm.empty_disk)


def _cut(host: str) -> Strike:
    def strike(farm: Stage, dice: random.Random) -> Held | None:
        farm.nets.cut(host)
        return Held(dice.choice([0.5, 2.5, 7.0]), lambda: farm.nets.join(host))

    return strike


def _lost_requests(farm: Stage, dice: random.Random) -> Held | None:
    farm.nets.swallow_requests(namespaces.HALL)
    return Held(dice.choice([0.5, 2.5, 7.0]), lambda: farm.nets.pass_requests(namespaces.HALL))


def _lost_replies(farm: Stage, dice: random.Random) -> Held | None:
    farm.nets.swallow_replies(namespaces.HALL)
    return Held(dice.choice([0.5, 2.5, 7.0]), lambda: farm.nets.pass_replies(namespaces.HALL))


def _dropped_replies(way: str) -> Strike:
    def strike(farm: Stage, dice: random.Random) -> Held | None:
        farm.lose_replies(way)
        return Held(dice.choice([0.05, 0.3, 1.5]), lambda: farm.lose_replies(""))

    return strike


def _rung_too_often(farm: Stage, _dice: random.Random) -> Held | None:
    ring = doorbell.at(farm.redis.url)
    for _ in range(BELLS):
        ring(harness.HALL)
    return OVER


def _purged(farm: Stage, _dice: random.Random) -> Held | None:
    with contextlib.suppress(redis.RedisError):
        farm.purge_queues()
        return OVER
    return None


def _lose_host(farm: Stage, _dice: random.Random) -> Held | None:
    with contextlib.suppress(errors.LedgerAwayError):
        slot = farm.ledger.slot(harness.HALL)
        if slot is not None and farm.worker.running:
            farm.lose_host()
            return Held(0.0, lambda: farm.regain_host(slot.attempt))
    return None


def _stepped(farm: Stage, dice: random.Random) -> Held | None:
    ahead = farm.offset.read_text() != "+0"
    farm.set_clock(0 if ahead else dice.choice([60, STEP_SECONDS]))
    return OVER


FAULTS: tuple[Fault, ...] = (
    *(Fault(f"kill {name}", _kill(target)) for name, target in TARGETS.items()),
    *(Fault(f"freeze {name}", _freeze(target)) for name, target in TARGETS.items()),
    Fault("freeze engine", _freeze(_engine)),
    Fault("restart Redis", _restart_redis),
    Fault("slow Redis", _slow_redis),
    Fault("full disk of Redis", _full_disk, "root"),
    Fault("step Redis' clock", _stepped, "faketime"),
    Fault("cut the hall's link", _cut(namespaces.HALL), "root"),
    Fault("cut serve's link", _cut(namespaces.SERVE), "root"),
    Fault("lose the hall's requests", _lost_requests, "root"),
    Fault("lose the hall's replies", _lost_replies, "root"),
    Fault("lose the hall's host", _lose_host),
    Fault("ring too often", _rung_too_often),
    Fault("purge the queues", _purged),
    Fault("drop replies and close", _dropped_replies("close"), "proxy"),
    Fault("drop replies in silence", _dropped_replies("silence"), "proxy"),
)


def possible(farm: Stage) -> list[Fault]:
    """Return the faults that this machine can make."""
    missing = set()
    if not farm.rooted:
        missing.add("root")
    if not farm.faketime:
        missing.add("faketime")
    return [fault for fault in FAULTS if fault.needs not in missing]


# -- the set of its own: engines ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Killed:
    """An engine that was killed: its game by the hall's slot, and its name."""

    game: str
    attempt: str
    name: str


def kill_engine(farm: Stage, dice: random.Random) -> Killed | None:
    """Kill one engine of the game in flight by SIGKILL."""
    with contextlib.suppress(redis.RedisError):
        slot = farm.ledger.slot(harness.HALL)
        found = harness.engines(farm)
        pid = dice.choice(found) if found else None
        words = harness.command(pid).split() if pid else []
        if slot is not None and words and harness.kill(pid, signal.SIGKILL):
            return Killed(slot.game, slot.attempt, _name_of(words))
    return None


def _name_of(words: list[str]) -> str:
    return "scripted-" + words[words.index("--strength") + 1]


def reap_orphans(life: pathlib.Path) -> None:
    """Kill engines that a dead man broken on purpose has left behind."""
    for line in life.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            pid = json.loads(line)["pid"]
            if str(life) in harness.command(pid):
                harness.kill(pid, signal.SIGKILL)
