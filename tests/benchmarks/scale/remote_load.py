"""Simulated remote workers: what ``farm work`` says to a gateway, without an engine behind it.

``remote_run.py`` starts some of these processes. A worker has a token, cores and an address of its
own; it claims batches when all that is left is being played, lets each game take its time, and
tells what has ended every three seconds at most, each request on a connection of its own. As
``farm work`` it renews its batches, and waits, with all but its games, where it is told to. Games
are made beforehand, one of ``VARIETY`` for each opening: legal, with thinking times that fit the
clock, and scores; some are won. The last line of output is a JSON object of what was seen.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import heapq
import json
import os
import pathlib
import random
import re
import sys
import time
from typing import Any

from orchestrator import contract
from orchestrator.arbiter import board, clock
from orchestrator.arbiter.adjudication import judge
from orchestrator.contract import remote
from orchestrator.testmatch import orders
from worker_cpu.engines import handles
from worker_cpu.remote import command, gateway

VARIETY = 4  # games of each opening
JITTER = 0.3  # of a game's length, to both sides
LONGEST_SECONDS = 60.0  # s: of one request
RETRY = (429, 503)
_TIME = re.compile(rb"(?i)\r\n%s: (\d+)" % remote.FARM_TIME.encode())
_WAIT = re.compile(rb"(?i)\r\nretry-after: (\d+)")
SIDES: tuple[contract.Side, ...] = ("white", "black")


def made(order: contract.GameOrder, dice: random.Random, seconds: float) -> dict[str, Any]:
    """Play a game at random by an order, in about so many seconds of thinking."""
    game, rules = board.GameBoard(order.opening), judge.Judge(order.adjudication)
    clocks = {side: clock.EngineClock(order.control(side)) for side in SIDES}
    winner = dice.choice([None, None, "white", "black"])  # half of the games are drawn
    decided = dice.randrange(50, 100)
    each_ns = seconds * 1e9 / 120
    plies: list[contract.PlyRecord] = []
    over = None
    while over is None:
        side, move = game.turn, dice.choice(list(game.position().legal_moves))
        think_ns = round(min(dice.expovariate(1 / each_ns), clocks[side].allowance_ns() / 4))
        charge = clocks[side].charge(think_ns)
        won = winner is not None and game.ply > decided
        score = contract.Score(cp=(900 if side == winner else -900) if won else 10)
        uci = move.uci()
        san = game.push(move)
        over = game.ending() or rules.rule(game.position(), game.ply, score)
        plies.append(
            contract.PlyRecord(
                ply=game.ply,
                side=side,
                move=uci,
                san=san,
                think_ns=think_ns,
                margin_ns=charge.margin_ns,
                overhead_ns=dice.randrange(50_000, 90_000),
                white_clock_ns=clocks["white"].remaining_ns,
                black_clock_ns=clocks["black"].remaining_ns,
                score=score,
                depth=dice.randrange(12, 24),
                seldepth=dice.randrange(24, 40),
                nodes=think_ns // 1_000,
                nps=1_000_000,
                hashfull=dice.randrange(1_000),
            )
        )
    return {
        "plies": [ply.model_dump(mode="json", exclude_defaults=True) for ply in plies],
        "outcome": over.model_dump(mode="json"),
        "final_fen": game.fen(),
    }


def prepared(spec: orders.Spec, seconds: float) -> dict[str, list[str]]:
    """Make games for each opening; return them as the inside of a JSON object, by opening."""
    dice, games = random.Random(1), collections.defaultdict(list)
    for pair in range(len(spec.openings)):
        order = spec.order(2 * pair + 1)
        for _ in range(VARIETY):
            body = json.dumps(made(order, dice, seconds), separators=(",", ":"))
            games[_key(json.loads(order.encode()))].append(body[1:-1])
    return dict(games)


def _key(order: dict[str, Any]) -> str:
    return json.dumps(order["opening"], sort_keys=True)


@dataclasses.dataclass
class Seen:
    """What was seen of the gateway, of all workers together."""

    claims: list[float] = dataclasses.field(default_factory=list)  # s
    results: list[float] = dataclasses.field(default_factory=list)
    counted: list[str] = dataclasses.field(default_factory=list)  # match and number
    dealt: int = 0
    idle_seconds: float = 0.0  # of cores, summed
    refused: list[str] = dataclasses.field(default_factory=list)
    failures: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass
class Batch:
    """Games that were dealt together."""

    name: str
    token: str
    match: str
    left: int  # games that are not recorded
    renew_seconds: float  # s: between two renewals
    renew_at: float


@dataclasses.dataclass(order=True)
class Running:
    """A game that is being played."""

    ends_at: float
    began_at: float
    batch: str = dataclasses.field(compare=False)
    number: int = dataclasses.field(compare=False)
    body: bytes = dataclasses.field(compare=False)


class Worker:
    """One simulated worker."""

    def __init__(self, setup: dict[str, Any], at: int, games: dict[str, list[bytes]], seen: Seen):
        self._setup, self._at, self._games, self._seen = setup, at, games, seen
        self._token: str = setup["tokens"][at]
        self._port: int = setup["ports"][at % len(setup["ports"])]
        self._dice = random.Random(at)
        self._waiting: collections.deque[tuple[str, int, bytes]] = collections.deque()
        self._running: list[Running] = []
        self._finished: list[tuple[Running, float]] = []
        self._batches: dict[str, Batch] = {}
        self._ask_at = self._send_at = self._claim_at = self._looked = 0.0
        self._setbacks = 0
        self._heard: dict[str, dict[str, int]] = {}  # as the worker's gateway has it

    async def run(self, ends_at: float) -> None:
        """Work until the end; others begin within a game's length.

        Games go on while a request waits, as a worker's player does.
        """
        await asyncio.sleep(self._dice.uniform(0.0, self._setup["game_seconds"]))
        self._looked = time.monotonic()
        asking: asyncio.Task[None] | None = None
        while (now := time.monotonic()) < ends_at:
            self._play(now)
            if asking is None or asking.done():
                asking = asyncio.create_task(self._ask_all(now))
            due = self._running[0].ends_at if self._running else ends_at
            await asyncio.sleep(min(0.5, max(0.01, due - time.monotonic())))
        if asking is not None:
            await asking

    async def _ask_all(self, now: float) -> None:
        """Tell what has ended, renew, and claim where all that is left is being played."""
        if now < self._ask_at:
            return
        try:
            try:
                if self._finished and now >= self._send_at:
                    await self._tell()
            except gateway.AwayError:
                await self._renew()
                raise
            await self._renew()
            if not self._waiting and now >= self._claim_at:
                await self._claim()
        except gateway.AwayError as error:
            self._back_off(error.seconds or 0.0)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            self._seen.failures[type(error).__name__] += 1
            self._back_off(0.0)
        else:
            self._setbacks = 0

    def _back_off(self, least_seconds: float) -> None:
        seconds = command.BACKOFF_SECONDS * 2**self._setbacks
        seconds = max(least_seconds, min(command.LONGEST_BACKOFF_SECONDS, seconds))
        self._setbacks += 1
        self._ask_at = time.monotonic() + seconds * self._dice.uniform(0.75, 1.25)

    async def _renew(self) -> None:
        for batch in list(self._batches.values()):
            if time.monotonic() < batch.renew_at:
                continue
            named = remote.BatchNamed(batch=batch.name, token=batch.token)
            status, answer = await self._ask("renew", named.encode().encode())
            batch.renew_at = time.monotonic() + batch.renew_seconds
            if status != 200:
                self._seen.refused.append(f"{status} {answer}")
                del self._batches[batch.name]

    @property
    def _cores(self) -> int:
        return int(self._setup["cores"])

    def _play(self, now: float) -> None:
        """End games whose time has come, and begin others on their cores."""
        self._seen.idle_seconds += (now - self._looked) * (self._cores - len(self._running))
        self._looked = now
        while self._running and self._running[0].ends_at <= now:
            self._finished.append((heapq.heappop(self._running), now))
        while self._waiting and len(self._running) < self._cores:
            batch, number, body = self._waiting.popleft()
            takes = self._setup["game_seconds"] * self._dice.uniform(1 - JITTER, 1 + JITTER)
            heapq.heappush(self._running, Running(now + takes, now, batch, number, body))

    async def _claim(self) -> None:
        name = f"b{self._at}-{self._dice.getrandbits(64):x}"
        wanted = remote.BatchWanted(
            batch=name,
            host=f"box{self._at}",
            games=min(remote.MOST_GAMES, 2 * self._cores),
            cores=1,
            memory_mb=1_024,
            files=tuple(self._setup["files"]),
        )
        began = time.monotonic()
        status, answer = await self._ask("claim", wanted.encode().encode())
        if status != 200:
            self._claim_at = time.monotonic() + self._dice.uniform(1.0, 5.0)
            return
        self._seen.claims.append(time.monotonic() - began)
        if not answer["orders"]:
            self._claim_at = time.monotonic() + answer["wait_ms"] / 1_000
            return
        renew_seconds = answer["lease_ms"] / 1_000 / command.RENEWALS
        self._batches[name] = Batch(
            name,
            answer["token"],
            answer["match"],
            len(answer["orders"]),
            renew_seconds,
            time.monotonic() + renew_seconds,
        )
        self._seen.dealt += len(answer["orders"])
        for order in answer["orders"]:
            body = self._dice.choice(self._games[_key(order)])
            self._waiting.append((name, order["number"], body))

    async def _tell(self) -> None:
        self._send_at = time.monotonic() + command.SEND_SECONDS
        by_batch = collections.defaultdict(list)
        for ended in self._finished:
            by_batch[ended[0].batch].append(ended)
        for name, games in by_batch.items():
            batch = self._batches.get(name)
            if batch is None:  # it has ended, and was said to be refused
                self._finished = [one for one in self._finished if one not in games]
                continue
            told = games[:16]
            clocks = {
                "process": f"p{os.getpid()}-{self._at}",
                "boot_ms": handles.boottime_ns() // 1_000_000,
                "day_ms": time.time_ns() // 1_000_000,
                **self._heard,
            }
            message = {"batch": name, "token": batch.token, "clock": clocks}
            head = json.dumps(message)[:-1].encode()
            bodies = [
                b'{"number":%d,"wall_ms":%d,%s}'
                % (game.number, (ended - game.began_at) * 1_000, game.body)
                for game, ended in told
            ]
            began = time.monotonic()
            status, answer = await self._ask(
                "results", head + b',"games":[' + b",".join(bodies) + b"]}"
            )
            self._finished = [one for one in self._finished if one not in told]
            if status != 200:
                self._seen.refused.append(f"{status} {answer}")
                del self._batches[name]
                continue
            self._seen.results.append(time.monotonic() - began)
            self._seen.counted += [f"{batch.match} {number}" for number in answer["recorded"]]
            batch.left -= len(answer["recorded"])
            batch.renew_at = time.monotonic() + batch.renew_seconds
            if not batch.left or answer["over"]:
                del self._batches[name]
            self._seen.refused += [*answer["refused"].values(), *filter(None, [answer["over"]])]

    async def _ask(self, verb: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Send a request on a connection of its own; return its status and answer.

        Raise ``AwayError`` where it is to be sent again.
        """
        address = f"10.{self._at >> 16 & 255}.{self._at >> 8 & 255}.{self._at & 255}"
        head = (
            f"POST /work/v1/{verb} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {self._token}\r\nX-Forwarded-For: {address}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        async with asyncio.timeout(LONGEST_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(head.encode() + body)
                await writer.drain()
                whole = await reader.read()
            finally:
                writer.close()
        top, _, content = whole.partition(b"\r\n\r\n")
        if not top:
            raise ConnectionResetError
        if (at_ms := _TIME.search(top)) is not None:
            boot_ms = handles.boottime_ns() // 1_000_000
            self._heard = {"heard": {"at_ms": int(at_ms[1]), "boot_ms": boot_ms}}
        status = int(top.split(None, 2)[1])
        if status != 200:
            self._seen.failures[f"{verb} {status}"] += 1
        if status in RETRY:
            wait = _WAIT.search(top)
            raise gateway.AwayError(f"{verb} {status}", None if wait is None else float(wait[1]))
        return status, json.loads(content)


async def _work(setup: dict[str, Any], games: dict[str, list[bytes]]) -> Seen:
    seen, ends_at = Seen(), time.monotonic() + setup["seconds"]
    workers = [Worker(setup, at, games, seen) for at in setup["workers"]]
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.run(ends_at))
    return seen


def main() -> int:
    """Run the workers that the file of the first argument names."""
    setup = json.loads(pathlib.Path(sys.argv[1]).read_text())
    stored = json.loads(pathlib.Path(setup["games"]).read_text())
    games = {key: [body.encode() for body in bodies] for key, bodies in stored.items()}
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    seen = asyncio.run(_work(setup, games))
    report = {field.name: getattr(seen, field.name) for field in dataclasses.fields(seen)}
    report["cpu"] = time.process_time() - began
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
