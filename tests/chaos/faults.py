"""The faults of a storm, by name; each knows how to strike, how long it lasts, how to mend it.

A fault that finds nothing to strike (no game runs, no dead man lives) says so by ``None``
and is tried again. ``needs`` names what this machine must have for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import pathlib
import random
import signal
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import harness
import namespaces
import redis
import stage as stages

from orchestrator.common import errors
from orchestrator.contract import bells
from orchestrator.ledger import keys
from orchestrator.serve import doorbell

Stage = stages.Stage
Target = Callable[[Stage], int | None]
BELLS = 3  # rings too many
ROOM = 6  # entries that a journal has before one strikes at its end
PAIRED_SECONDS = 3.0  # s: a living `serve` pairs a new season sooner
TRIES = 50  # tries to give Redis back what was taken from it
MISCHIEF = ("flood", "fork", "memory", "threads")
GARBAGE = (
    *("", "{", "null", "[]", "7", '"x"', '{"body":1}', "\xff\xfe", "[" * 5_000, "9" * 5_000),
    *('{"__type__":"x","__value__":1}', '{"__type__":"decimal","__value__":"x"}'),
    '{"properties":{"delivery_tag":"x"},"headers":{"task":"os.system"},"body":"W10="}',
)
ATTEMPT = {"game": "league.1", "hall": "hall-1", "lane": "", "host": "h", "worker": "w"}
PAIRED = {"game": "league.99", "number": 99, "round": "1.1", "opening": 99_999}
PLAYERS = {"white": "scripted-0", "black": "scripted-1"}
ROUND = {"event": "league", "cycle": 0, "round": 1}
POISON: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("games_paired", ROUND | {"games": [PAIRED | PLAYERS]}),
    ("games_paired", ROUND | {"games": [PAIRED | PLAYERS | {"white": "nobody"}]}),
    ("attempt_started", ATTEMPT | {"attempt": "../../../../../pwned"}),
    ("attempt_started", ATTEMPT | {"attempt": "x\0y"}),
    ("attempt_ended", ATTEMPT | {"attempt": "../../pwned", "cause": "x"}),
    ("game_finished", {"game": "league.1", "r_mobility": math.nan}),
    ("no_such_kind", {}),
    ("season_finished", {"champion": 7}),
    ("promoted", {"event": "league", "to": "nowhere", "engines": ["scripted-0"]}),
    ("event_ranked", {"event": "league", "rows": []}),
)
STEP_SECONDS = 3 * 3600  # s: how far Redis' clock is stepped, there and back


@dataclasses.dataclass(frozen=True)
class Held:
    """A fault that has struck: how long it stays, in seconds, and what ends it.

    A frozen process is woken first; what is put right last needs what the others have broken.
    """

    seconds: float
    mend: Callable[[], None]
    turn: Literal["first", "", "last"] = ""  # among the mends of all that struck at once


Strike = Callable[[Stage, random.Random], Held | None]
OVER = Held(0.0, lambda: None)  # there is nothing to mend


@dataclasses.dataclass(frozen=True)
class Fault:
    """One named fault."""

    name: str
    strike: Strike
    needs: Literal["", "root", "skew", "proxy"] = ""


TARGETS: dict[str, Target] = {
    "worker main": lambda farm: farm.worker.pid if farm.worker.running else None,
    "link": harness.link_pid,
    "referee": harness.referee_pid,
    "fork server": lambda farm: harness.game_process(farm, "worker_cpu.referee.forkserver"),
    "dead man": lambda farm: harness.game_process(farm, "engines/supervisor.py"),
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
        return Held(dice.choice([0.3, 1.0, 4.0]), lambda: _thaw(pid), turn="first")

    return strike


def _thaw(pid: int) -> None:
    harness.kill(pid, signal.SIGCONT)


def _restart_redis(farm: Stage, _dice: random.Random) -> Held | None:
    return OVER if harness.kill(farm.redis_pid(), signal.SIGTERM) else None


def _slow_redis(farm: Stage, dice: random.Random) -> Held | None:
    seconds = dice.choice([0.5, 2.0, 6.0])  # s: the last one is beyond the socket's time-out
    client = redis.Redis.from_url(farm.address, socket_timeout=2)
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
    ring = doorbell.at(farm.address)
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
            return Held(0.0, lambda: farm.regain_host(slot.attempt), turn="last")
    return None


def _rolled_back(entries: int) -> Strike:
    def strike(farm: Stage, _dice: random.Random) -> Held | None:
        with contextlib.suppress(errors.LedgerAwayError):
            if farm.ledger.last(farm.season) > ROOM and farm.roll_back(entries):
                return Held(0.0, farm.put_right, turn="last")
        return None

    return strike


def _emptied(farm: Stage, _dice: random.Random) -> Held | None:
    with contextlib.suppress(redis.RedisError), _admin(farm) as client:
        if farm.ledger.last(farm.season) > ROOM:
            with contextlib.suppress(redis.RedisError):  # it may be done although no reply came
                client.flushall()
            return Held(0.0, farm.put_right, turn="last")
    return None


def _read_only(farm: Stage, dice: random.Random) -> Held | None:
    with _admin(farm) as client:
        client.ping()
        with contextlib.suppress(redis.RedisError):  # it may be done although no reply came
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
        return Held(dice.choice([0.5, 2.0]), lambda: _writable(farm))


def _writable(farm: Stage) -> None:
    for _ in range(TRIES):  # it may have been killed meanwhile, and is no replica then
        farm.keep_alive()
        with contextlib.suppress(redis.RedisError), _admin(farm) as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
            return
        time.sleep(0.1)


def _no_memory(farm: Stage, dice: random.Random) -> Held | None:
    with _admin(farm) as client:
        client.ping()
        with contextlib.suppress(redis.RedisError):  # it may be done although no reply came
            client.config_set("maxmemory", "1")
        return Held(dice.choice([0.5, 2.0]), lambda: _enough_memory(farm))


def _enough_memory(farm: Stage) -> None:
    for _ in range(TRIES):
        farm.keep_alive()
        with contextlib.suppress(redis.RedisError), _admin(farm) as client:
            client.config_set("maxmemory", "0")
            return
        time.sleep(0.1)


def _admin(farm: Stage) -> redis.Redis:
    return redis.Redis.from_url(farm.address, socket_timeout=2)


def _skewed(name: str) -> Strike:
    def strike(farm: Stage, dice: random.Random) -> Held | None:
        farm.skew(name, dice.choice([-3600, -61, 61, 3600]))
        return Held(dice.choice([1.0, 3.0]), lambda: farm.skew(name, 0))

    return strike


def _poisoned_queue(farm: Stage, dice: random.Random) -> Held | None:
    with contextlib.suppress(redis.RedisError), _admin(farm) as client:
        for garbage in dice.sample(GARBAGE, 3):
            client.lpush(bells.KEYS + bells.queue(harness.HALL), garbage)
        return OVER
    return None


def _poisoned_journal(farm: Stage, dice: random.Random) -> Held | None:
    """Let another season's journal get an entry that no farm has written, as a worker could.

    One that could not be poisoned, Redis being away, is the next one's: else it would be played.
    """
    kind, data = dice.choice(POISON)
    fields = {
        "v": "1",
        "kind": kind,
        "at": "1",
        "by": "x",
        "token": "1.1",
        "data": json.dumps(data),
    }
    if not farm.unpoisoned:
        with _admin(farm) as client:
            client.ping()  # frozen, it would begin the season later
        season = f"poison-{dice.getrandbits(40):x}"
        farm.launch(farm.season_file(final=False), season)
        farm.unpoisoned = season
    season, ends = farm.unpoisoned, time.monotonic() + PAIRED_SECONDS
    while time.monotonic() < ends and farm.ledger.last(season) <= 2:
        time.sleep(0.05)  # `serve` pairs it meanwhile, unless it is away
    for _ in range(TRIES):
        with _admin(farm) as client, contextlib.suppress(redis.ResponseError):  # `serve` was first
            client.xadd(keys.Keys().journal(season), fields, id=f"{farm.ledger.last(season) + 1}-0")
            farm.unpoisoned = ""
            return Held(0.0, lambda: _suspended(farm, season), turn="last")
    return None


def _suspended(farm: Stage, season: str) -> None:
    """Wait until the poisoned season is out of service, and take it out of sight."""
    ends = time.monotonic() + stages.LOOK_SECONDS
    while season not in farm.alarms() and time.monotonic() < ends:
        farm.keep_alive()
        time.sleep(0.05)


def _mischief(word: str) -> Strike:
    def strike(farm: Stage, dice: random.Random) -> Held | None:
        if not harness.engines(farm):
            return None
        farm.mischief.write_text(word)
        return Held(dice.choice([0.5, 1.5]), lambda: _well_behaved(farm))

    return strike


def _well_behaved(farm: Stage) -> None:
    farm.mischief.write_text("")


def _stepped(farm: Stage, dice: random.Random) -> Held | None:
    farm.skew("redis", 0 if farm.skewed("redis") else dice.choice([60, STEP_SECONDS]))
    return OVER


FAULTS: tuple[Fault, ...] = (
    *(Fault(f"kill {name}", _kill(target)) for name, target in TARGETS.items()),
    *(Fault(f"freeze {name}", _freeze(target)) for name, target in TARGETS.items()),
    Fault("freeze engine", _freeze(_engine)),
    Fault("restart Redis", _restart_redis),
    Fault("slow Redis", _slow_redis),
    Fault("full disk of Redis", _full_disk, "root"),
    Fault("step Redis' clock", _stepped, "skew"),
    Fault("cut the hall's link", _cut(namespaces.HALL), "root"),
    Fault("cut serve's link", _cut(namespaces.SERVE), "root"),
    Fault("lose the hall's requests", _lost_requests, "root"),
    Fault("lose the hall's replies", _lost_replies, "root"),
    Fault("lose the hall's host", _lose_host),
    Fault("roll Redis back by 1", _rolled_back(1)),
    Fault("roll Redis back by 3", _rolled_back(3)),
    Fault("empty Redis", _emptied),
    Fault("read-only Redis", _read_only),
    Fault("Redis without memory", _no_memory),
    Fault("skew serve's clock", _skewed("serve"), "skew"),
    Fault("skew the hall's clock", _skewed("worker"), "skew"),
    Fault("poison the queue", _poisoned_queue),
    Fault("poison a journal", _poisoned_journal),
    *(Fault(f"{word} of the engines", _mischief(word)) for word in MISCHIEF),
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
    if not farm.skews:
        missing.add("skew")
    return [fault for fault in FAULTS if fault.needs not in missing]


# -- the set of its own: engines ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Killed:
    """An engine that was killed: its game by the hall's slot, and its name."""

    game: str
    attempt: str
    name: str


def kill_engine(farm: Stage, dice: random.Random, spared: Collection[str] = ()) -> Killed | None:
    """Kill one engine of the game in flight by SIGKILL, unless its attempt is to be spared.

    Of two that are killed before either is missed, either may lose.
    """
    with contextlib.suppress(redis.RedisError):
        slot = farm.ledger.slot(harness.HALL)
        found = harness.engines(farm)
        pid = dice.choice(found) if found else None
        words = harness.command(pid).split() if pid else []
        if slot is None or not words or slot.attempt in spared:
            return None
        again = farm.ledger.slot(harness.HALL)
        is_its_engine = again is not None and again.attempt == slot.attempt
        if is_its_engine and harness.kill(pid, signal.SIGKILL):
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
