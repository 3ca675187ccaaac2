"""The gateway over HTTP, on a real Redis under its own user: what it deals, takes and refuses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent import futures
from typing import Any

import harness
import httpx
import pytest
import told
from starlette import types

from orchestrator import contract
from orchestrator.broadcast.web import server
from orchestrator.commands import serve_web
from orchestrator.common import allowance
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.gateway import app, desk, doors, pages, watching
from orchestrator.ledger import (
    batches,
    lane_store,
    lanes,
    live_games,
    sessions,
    store,
    submissions,
    worker_tokens,
)
from orchestrator.testmatch import catalogue, orders, spsa, worker_review
from worker_cpu.remote import gateway

LONG_MS = 600_000


class Scene:
    """A gateway and its Redis; ``ask`` is a worker's request."""

    def __init__(self, redis: harness.Redis, client: httpx.Client) -> None:
        self.client = client
        self._environment = {"FARM_REDIS_URL": redis.url_of(harness.OPERATOR)}
        self.ledger = store.connect(redis.url_of(harness.OPERATOR))
        self.lanes = lane_store.RedisLanes(self.ledger.server)
        self.secret = self.token("anna")

    def farm(self, *words: str) -> str:
        """Run a command of the farm as its operator does."""
        return harness.farm(*words, env=self._environment)

    def token(self, name: str, *words: str) -> str:
        """Make a token by the command; return it."""
        shown = self.farm("worker-token", "create", name, *words, "--by", "anna", "--json")
        return str(json.loads(shown)["secret"])

    def open(self, name: str = "m", **other: Any) -> orders.Spec:
        """Open a test match for remote workers."""
        spec = told.spec(name, **other)
        self.lanes.open_match(lanes.Match(name, spec.games, spec.encode()))
        return spec

    def ask(self, verb: str, secret: str = "", **words: Any) -> httpx.Response:
        """Send a request with a token; ``words`` are its JSON."""
        headers = {"Authorization": f"Bearer {secret or self.secret}"}
        return self.client.post(f"/work/v1/{verb}", json=words, headers=headers)

    def fetch(self, digest: str, secret: str = "") -> httpx.Response:
        """Ask for a source."""
        headers = {"Authorization": f"Bearer {secret or self.secret}"}
        return self.client.get(f"/work/v1/files/{digest}", headers=headers)

    def claim(self, batch: str = "b1", secret: str = "", **other: Any) -> dict[str, Any]:
        """Claim a batch; return what was dealt."""
        answer = self.ask("claim", secret, **wanted(batch) | other)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def dealt(self, batch: str = "b1", secret: str = "", **other: Any) -> dict[str, Any]:
        """Claim a batch of two games, which there is."""
        found = self.claim(batch, secret, **other)
        assert len(found["orders"]) == 2, found
        return found

    def older(self, batch: str, minutes: int) -> None:
        """Let a batch of the first token have been dealt, and heard last, so much earlier."""
        name = f"{self.secret.split('_')[1]}/{batch}"
        client = self.ledger.server.client
        lease = json.loads(client.hget("farm:ledger:batches", name))
        for when in ("begun", "heard"):
            if when in lease:
                lease[when] = str(int(lease[when]) - minutes * 60_000)
        client.hset("farm:ledger:batches", name, json.dumps(lease))

    def results(self, match: str = "m") -> list[dict[str, Any]]:
        """Return the results of a match's journal."""
        entries = self.ledger.read(lanes.journal(match))
        return [dict(entry.data) for entry in entries if entry.kind == lanes.GAME]


def wanted(batch: str) -> dict[str, Any]:
    """Say what a worker with both engines wants."""
    return {
        "batch": batch,
        "host": "box",
        "games": 2,
        "cores": 1,
        "memory_mb": 1_000,
        "files": [told.DEV, told.BASE],
    }


def games(found: dict[str, Any], **other: Any) -> list[dict[str, Any]]:
    """Play the games of a batch: each is the same short mate."""
    read = [contract.GameOrder.model_validate(order) for order in found["orders"]]
    return [told.game(order, **other).model_dump(mode="json") for order in read]


class House:
    """One web server for all tests of this file: it serves the gateway of the test that runs."""

    def __init__(self, url: str) -> None:
        self.url, self.data = url, pathlib.Path()
        self.gateway: types.ASGIApp | None = None

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Pass a request on; the server's own life is nobody's."""
        assert self.gateway is not None
        if scope["type"] == "http":
            await self.gateway(scope, receive, send)

    @property
    def files(self) -> sources.Store:
        """The sources that are there."""
        return sources.Store(self.data / "sources")

    @contextlib.contextmanager
    def serving(self, ledger: store.RedisLedger) -> Iterator[httpx.Client]:
        """Serve a gateway on this ledger; give a client of it."""
        tokens = worker_tokens.RedisTokens(ledger.server)
        ledger_batches = batches.RedisBatches(ledger.server)
        dealer = desk.Desk(ledger_batches, tokens, LONG_MS, catalogue.Catalogue(self.data))
        at_the_door = doors.Doors(tokens, sessions.RedisSessions(ledger.server))
        live = live_games.RedisLiveGames(ledger.server)
        watched = watching.Watched(self.data / "tests", ledger_batches, live)
        for_browsers = pages.Pages(dealer, tokens, at_the_door, watched)
        self.gateway = app.Gateway(dealer, at_the_door, self.files, for_browsers).app()
        try:
            with httpx.Client(base_url=self.url, timeout=60) as client:
                yield client
        finally:
            for_browsers.close()  # as the server's end does: the house outlives its gateways


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """Run the web server as its command does."""
    with serve_web.listen("127.0.0.1", 0) as listening:
        made = House(f"http://127.0.0.1:{listening.getsockname()[1]}")
        serving = server.make(made, "127.0.0.1", 0)
        serving.config.lifespan = "off"
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        yield made
        serving.should_exit = True
        thread.join()


@pytest.fixture
def scene(
    redis: harness.Redis, house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> Iterator[Scene]:
    """Give a gateway that serves, and a token. No allowance fills up again, however slow we are."""
    house.data = tmp_path
    for name in ("A_SECOND", "ADDRESS_A_SECOND", "WRONG_A_SECOND", "BYTES_A_SECOND"):
        monkeypatch.setattr(doors, name, 0.0)
    monkeypatch.setattr(pages, "LOOKS_A_SECOND", 0.0)
    with store.connect(redis.url_of("gateway")) as own, house.serving(own) as client:
        made = Scene(redis, client)
        yield made
        made.ledger.close()


def test_a_batch_is_dealt_told_and_counted_once(scene: Scene) -> None:
    """Its results are in the match's journal as a lane's are; told again they are there once."""
    scene.open()
    found = scene.dealt()
    words = {"batch": "b1", "token": found["token"], "games": games(found)}
    first, again = scene.ask("results", **words), scene.ask("results", **words)
    assert first.json() == again.json()
    assert first.json() == {"schema_version": 1, "recorded": [1, 2], "refused": {}, "over": ""}
    results = scene.results()
    assert [one["game"] for one in results] == [1, 2]
    assert {one["host"] for one in results} == {"anna/box"}
    assert "Qh4#" in results[0]["pgn"]
    assert scene.claim("b1")["orders"] == [], "a late repeat of the claim begins no other batch"
    shown = json.loads(scene.farm("worker-token", "list", "--json"))["tokens"]
    assert "author" in scene.farm("worker-token", "list")
    assert (shown[0]["name"], shown[0]["use"]["games"]) == ("anna", 2)


def test_engines_are_built_before_their_games_are_dealt(scene: Scene, house: House) -> None:
    """By who can; the source is served to the match's tokens alone; what became of it is journaled.

    A build that has failed is not asked for again, and games are dealt when all are there.
    """
    archive = house.files.add(iter([b"source"]))
    build = remote.SourceBuild(
        name="Dev", commit="ab", archive=archive, make="make", program="dev", bench=7
    )
    base = told.BASE
    scene.open(builds=(build, None))
    assert scene.claim("b1", files=[base])["builds"] == [], "who cannot build is not asked to"
    dealt = scene.claim("b1", files=[base], builds=True)
    assert [remote.SourceBuild.model_validate(one).id for one in dealt["builds"]] == [build.id]
    assert dealt["orders"] == []
    assert scene.claim("b1", files=[base], builds=True, declined=[build.id])["builds"] == []
    assert scene.claim("b1", files=[told.DEV, base])["orders"] == [], "the build is what is pinned"
    order = scene.claim("b1", files=[build.id, base])["orders"][0]
    assert order["white"]["checksums"] == {"dev": build.id}
    stranger = scene.token("stranger", "--match", "other-*")
    fetched = [scene.fetch(archive), scene.fetch("0" * 64), scene.fetch(archive, stranger)]
    assert [answer.status_code for answer in fetched] == [200, 404, 404]
    assert fetched[0].content == b"source"
    facts = {"match": "m", "build": build.id, "host": "box", "machine": "x86_64", "seconds": 1}
    assert remote.BuildTold.model_validate({**facts, "match": "m" * 100}), "as long as names may be"
    failed = {**facts, "why": "its bench has 8 nodes", "log": "cc dev.c"}
    assert scene.ask("built", **failed).json() == {"recorded": True}
    assert scene.ask("built", **{**failed, "build": base}).status_code == 409
    assert scene.ask("built", stranger, **failed).status_code == 409
    (entry,) = [
        one.data for one in scene.ledger.read(lanes.journal("m")) if one.kind == lanes.BUILD
    ]
    assert (entry["worker"], entry["why"]) == ("anna/box", "its bench has 8 nodes")


def test_an_author_steers_own_matches(scene: Scene) -> None:
    """With a token that says so, and within its scope; the match's journal says who it was."""
    scene.open()
    author = scene.token("berta", "--author", "--match", "m")
    stop = {"match": "m", "stop": True, "reason": "rebased"}
    assert scene.ask("steer", **stop).status_code == 409, "anna's token plays, and no more"
    assert scene.ask("steer", author, **{**stop, "match": "n"}).status_code == 409
    assert scene.ask("steer", author, match="m").status_code == 422, "it asks for nothing"
    assert scene.ask("steer", author, match="m", priority=2).json() == {"recorded": True}
    assert scene.ask("steer", author, **stop).json() == {"recorded": True}
    wishes = [one for one in scene.ledger.read(lanes.journal("m")) if one.kind != lanes.OPENED]
    assert [one.kind for one in wishes] == [lanes.CHANGE, lanes.STOP]
    assert wishes[1].by.startswith("berta@token:")
    assert wishes[1].data == {"reason": "rebased"}
    scene.lanes.close_match("m")
    assert scene.ask("steer", author, **stop).status_code == 409


def test_an_author_submits_a_match_once_more_and_another_one_approves_it(scene: Scene) -> None:
    """Within the token's scope, and so many at a time; nobody approves own ones."""
    author = scene.token("berta", "--author", "--match", "m*")
    again = scene.token("berta", "--author", "--match", "m*")
    other = scene.token("carl", "--author", "--match", "m*")
    copied = {"match": "m", "name": "m-ltc", "time_control": {"base_ms": 60_000}, "games": 40}
    assert scene.ask("copy", **copied).status_code == 409, "anna's token plays, and no more"
    assert scene.ask("copy", author, **{**copied, "name": "x"}).status_code == 409
    assert scene.ask("copy", author, **{**copied, "name": "../m"}).status_code == 422
    assert scene.ask("approve", other, match="m-ltc").status_code == 409, "nothing waits yet"
    assert scene.ask("copy", author, **copied).json() == {"recorded": True}
    assert scene.ask("copy", other, **copied).status_code == 409, "one of this name waits"
    submitted = submissions.RedisSubmissions(scene.ledger.server)
    (waiting,) = submitted.all()
    assert (waiting.match, waiting.copy_of, waiting.ready) == ("m-ltc", "m", False)
    assert waiting.changes["time_control"]["base_ms"] == 60_000
    for own in (author, again):
        assert scene.ask("approve", own, match="m-ltc").status_code == 409, "it is berta's own"
    assert scene.ask("approve", other, match="m-ltc").json() == {"recorded": True}
    (approved,) = submitted.all()
    assert approved.ready
    assert approved.approved_by.startswith("carl@token:")
    for at in range(desk.MOST_WAITING - 1):
        assert scene.ask("copy", again, match="m", name=f"m{at}").status_code == 200
    assert scene.ask("copy", author, match="m", name="m-more").status_code == 409
    scene.open("m-open")
    assert scene.ask("copy", other, match="m", name="m-open").status_code == 409


def test_a_tuning_is_dealt_with_its_values(scene: Scene) -> None:
    """A claim that is repeated has the same ones; what the engine did not take is written down."""
    facts = {"name": "Razor", "whole": True, "start": 300, "least": 100, "most": 600}
    one = spsa.Parameter.model_validate({**facts, "c_end": 20, "r_end": 0.002})
    tuning = spsa.Tuning(parameters=(one,), iterations=5)
    spec = scene.open(tuning=tuning, games=tuning.games, check_nodes=20)
    scene.lanes.tune("m", lanes.Tuned((512.0,), 0, 2, 5), "op")
    (check,) = scene.claim("b0")["orders"]
    assert check["number"] > orders.LAST_GAME
    assert check["white"]["options"] == {}, "a check is of the builds"
    scene.lanes.close_match("m")
    spec = scene.open(tuning=tuning, games=tuning.games)
    scene.lanes.tune("m", lanes.Tuned((512.0,), 0, 2, 5), "op")
    found = scene.dealt()
    sides = tuning.sides([512.0], spec.lots, 1)
    told_values = [
        [order[side]["options"]["Razor"] for side in ("white", "black")]
        for order in found["orders"]
    ]
    values = [side["Razor"] for side in sides]
    assert told_values == [values, values[::-1]]
    scene.lanes.tune("m", lanes.Tuned((100.0,), 0, 2, 5), "op")
    assert scene.claim()["orders"] == found["orders"]
    setting = {"name": "Razor", "asked": "1", "offered": None, "set": None, "remark": "not offered"}
    white = contract.EngineReport.model_validate({"options": [setting]})
    words = {"batch": "b1", "token": found["token"], "games": games(found, white=white)}
    assert scene.ask("results", **words).json()["recorded"] == [1, 2]
    assert [result["unmet"] for result in scene.results()] == ["Razor: not offered"] * 2


def test_a_forged_result_ends_the_batch(scene: Scene) -> None:
    """It is refused with the reason; true games beside it count; the others are dealt again."""
    scene.open()
    found = scene.dealt()
    true, forged = games(found)
    forged["outcome"] |= {"result": "1-0", "loser": "black"}
    answer = scene.ask("results", batch="b1", token=found["token"], games=[true, forged]).json()
    assert answer["recorded"] == [1]
    assert "final position is 0-1" in answer["refused"]["2"]
    late = scene.ask("results", batch="b1", token=found["token"], games=games(found))
    assert late.status_code == 409
    again = scene.claim("b2")
    assert [order["number"] for order in again["orders"]] == [2, 3, 4]
    assert [one["game"] for one in scene.results()] == [1]


def test_a_worker_is_told_which_files_a_match_wants_that_it_lacks(scene: Scene) -> None:
    """A rebuilt engine is no silence; other people's matches are none of its business."""
    scene.open()
    scene.open("secret-1")
    secret = scene.token("boris", "--match", "m*")
    answer = scene.claim("b1", secret, files=[told.BASE, "c" * 64])
    assert answer["orders"] == []
    assert answer["why"] == f"{remote.NOTHING}; m wants dev's dev with SHA-256 {'d' * 16}…"
    engines = [
        contract.EngineSpec(id=name, name=name, command=("x",), checksums={"x": name * 64})
        for name in "ab"
    ]
    for number in range(20):
        scene.open(f"m{number}", engines=engines)
    why = scene.claim("b2", secret, files=[])["why"]
    assert why.count("wants a's x with SHA-256 aaaaaaaaaaaaaaaa… and b's x") <= desk.NAMED
    assert why.count(" wants ") == desk.NAMED, "a line stays a line"
    assert scene.claim("b3", scene.token("carl", "--match", "none-*"))["why"] == remote.NOTHING


def test_an_illegal_move_is_kept_with_its_position(scene: Scene) -> None:
    """As `farm match` prints it; of other ends nothing is added to what is said."""
    scene.open()
    found = scene.dealt()
    loss = contract.Outcome(
        result="0-1",
        ending=contract.Ending.ILLEGAL,
        loser="white",
        details="White makes an illegal move",
        note="g2g5",
    )
    played = [games(found, moves=told.MATE[:2], outcome=loss)[0], games(found)[1]]
    answer = scene.ask("results", batch="b1", token=found["token"], games=played).json()
    assert answer["recorded"] == [1, 2], answer
    position = "rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2"
    assert [one["note"] for one in scene.results()] == [f"g2g5 in {position}", ""]


def test_what_an_engine_wrote_before_its_crash_is_kept_within_bounds(scene: Scene) -> None:
    """Of the loser, after a fault, the last lines; of an engine that was mated none."""
    scene.open()
    found = scene.dealt()
    wrote = "".join(f"line {number} {'x' * 50}\n" for number in range(40)) + "assert failed\n"
    reports = {"white": contract.EngineReport(stderr_tail=wrote), "wall_ms": 5}
    ending = contract.Ending.DISCONNECT
    crashed = contract.Outcome(result="0-1", ending=ending, loser="white", details="left")
    played = [
        games(found, moves=told.MATE[:2], outcome=crashed, **reports)[0],
        games(found, **reports)[1],
    ]
    answer = scene.ask("results", batch="b1", token=found["token"], games=played).json()
    assert answer["recorded"] == [1, 2], answer
    kept, nothing = (one.get("stderr", "") for one in scene.results())
    assert kept.endswith("\nassert failed")
    assert (len(kept) <= worker_review.SAID_LETTERS, "line 0 " in kept, nothing) == (
        True,
        False,
        "",
    )


def test_games_of_another_batch_are_refused(scene: Scene) -> None:
    """Not one's own, not another token's, not with another lease's token."""
    scene.open()
    found = scene.dealt()
    boris = scene.token("boris")
    other = scene.dealt("b1", boris)  # the same name, and not the same batch
    assert [order["number"] for order in other["orders"]] == [3, 4]
    stolen = scene.ask("results", boris, batch="b1", token=found["token"], games=games(found))
    assert stolen.status_code == 409
    foreign = scene.ask("results", batch="b1", token=found["token"], games=games(other))
    assert "none of this batch" in foreign.json()["refused"]["3"]
    assert scene.results() == []


def test_a_batch_that_was_given_back_is_dealt_again(scene: Scene) -> None:
    """At once, to whoever asks next; its results come too late then."""
    scene.open()
    found = scene.dealt()
    named = {"batch": "b1", "token": found["token"]}
    assert scene.ask("renew", **named).json()["abort"] == ""
    assert scene.ask("return", **named).json() == {"dealt_again": 2}
    assert scene.ask("return", **named).json() == {"dealt_again": 0}
    assert scene.ask("renew", **named).status_code == 409
    assert [order["number"] for order in scene.dealt("b2")["orders"]] == [1, 2]


def test_a_batch_of_a_match_that_was_opened_again_is_over(scene: Scene) -> None:
    """Its games are not held against what the match is now; that it is over is all it is told."""
    scene.open()
    scene.dealt("b1")
    found = scene.dealt("b2")
    scene.lanes.close_match("m")
    other = [contract.EngineSpec(id=name, name=name, command=("x",)) for name in ("a", "b")]
    scene.open(games=2, engines=other)
    scene.dealt("b3")  # of what the match is now
    for _ in range(2):
        heard = scene.ask("results", batch="b2", token=found["token"], games=games(found))
        assert (heard.status_code, heard.json()["refused"]) == (200, {}), heard.text
        assert "its match is over" in heard.json()["over"]
    renewed = scene.ask("renew", batch="b2", token=found["token"]).json()
    assert renewed["abort"] == "the test match is over"


def test_two_threads_do_not_have_an_allowance_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is new to both is counted once."""

    class Slow(allowance.Allowance):
        def __init__(self, a_second: float, at_once: float) -> None:
            time.sleep(0.05)  # in which the other thread asks
            super().__init__(a_second, at_once)

    monkeypatch.setattr(doors.allowance, "Allowance", Slow)
    limits = doors.Limits(0.0, 1.0)
    with futures.ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(limits.take, ["anna"] * 2)) == [False, True]


def test_a_batch_without_results_cannot_be_renewed_for_ever(scene: Scene) -> None:
    """Beyond what games take its games are dealt again; a result begins the time anew."""
    scene.open()
    found = scene.dealt()
    named = {"batch": "b1", "token": found["token"]}
    scene.older("b1", minutes=29)
    assert scene.ask("renew", **named).status_code == 200
    scene.older("b1", minutes=2)
    true = games(found)[:1]
    assert scene.ask("results", **named, games=true).json()["recorded"] == [1]
    assert scene.ask("renew", **named).status_code == 200
    scene.older("b1", minutes=31)
    over = scene.ask("renew", **named)
    assert (over.status_code, "no result has come for 31 minutes" in over.text) == (409, True)
    assert [order["number"] for order in scene.claim("b2")["orders"]] == [2, 3, 4]


def test_a_slow_machine_has_more_time(scene: Scene) -> None:
    """As much as the base build is slower there than where --tc is meant for; results fit it."""
    scene.open(reference_nps=1_000_000)
    found = scene.dealt()
    assert {order["time_control"]["base_ms"] for order in found["orders"]} == {1_000}
    scene.older("b1", minutes=1)
    played = games(found, think_ns=300_000_000, wall_ms=2_000)
    for ply in (ply for game in played for ply in game["plies"]):
        ply["nodes"] = 150_000  # in 0.3 s
    heard = scene.ask("results", batch="b1", token=found["token"], games=played).json()
    assert heard["recorded"] == [1, 2], heard
    slow = scene.dealt("b2")
    control = {"base_ms": 2_000, "increment_ms": 20}
    assert all(order["time_control"].items() >= control.items() for order in slow["orders"])
    told = scene.ask("results", batch="b2", token=slow["token"], games=games(slow)).json()
    assert told["recorded"] == [3, 4], "checked by the clock that the worker was given"
    other = scene.dealt("b3", host="fast")
    assert other["orders"][0]["time_control"]["base_ms"] == 1_000, "nothing is known of it"


def test_clocks_are_scaled_within_bounds() -> None:
    """Engines' own clocks, too; a machine that tells nonsense gets no endless games."""
    own = contract.TimeControl(move_ms=100)
    slow = told.spec(reference_nps=1_000_000)
    engines = [one.model_copy(update={"time_control": own}) for one in slow.engines]
    order = slow.model_copy(update={"engines": tuple(engines)}).order(1, nps=1)
    assert order.time_control == contract.TimeControl(base_ms=4_000, increment_ms=40)
    assert {order.control(side).move_ms for side in ("white", "black")} == {400}
    assert slow.order(1, nps=10**12).time_control.base_ms == 250
    assert told.spec().order(1, nps=1) == told.spec().order(1)


def test_a_token_sends_so_many_bytes_and_no_more(scene: Scene) -> None:
    """Large bodies take the gateway's time from all others."""
    scene.open()
    body = b" " * (doors.BODY_BYTES - 2) + b"{}"
    headers = {"Authorization": f"Bearer {scene.secret}"}
    told = []
    for _ in range(int(doors.BYTES_AT_ONCE) // doors.BODY_BYTES + 2):
        answer = scene.client.post("/work/v1/renew", content=body, headers=headers)
        told.append(answer.status_code)
    assert (told[0], told[-1]) == (422, 429)
    boris = {"Authorization": f"Bearer {scene.token('boris')}"}
    assert scene.client.post("/work/v1/renew", content=b"{}", headers=boris).status_code == 422


def test_a_token_that_is_none_opens_nothing(scene: Scene) -> None:
    """Revoked, ended, unknown, forged, or missing: 401 with the reason, and no more."""
    scene.open()
    identity = scene.secret.split("_")[1]
    scene.farm("worker-token", "revoke", identity, "--reason", "sold")
    refused = scene.ask("claim", **wanted("b1"))
    assert (refused.status_code, "revoked" in refused.text) == (401, True)
    ended = scene.ask("claim", scene.token("boris", "--until", "+0ms"), **wanted("b1"))
    assert (ended.status_code, "has ended" in ended.text) == (401, True)
    for secret in (f"farm_{identity}_wrong", "farm_00_x", "x", "farm__"):
        unknown = scene.ask("claim", secret, **wanted("b1"))
        assert (unknown.status_code, "not known" in unknown.text) == (401, True)
    assert scene.client.post("/work/v1/claim", json={}).status_code == 401
    assert scene.secret not in json.dumps(scene.ledger.server.table("farm:ledger:workers"))


def test_wrong_tokens_close_the_door_for_their_address(scene: Scene) -> None:
    """Who tries some is no longer heard for a while, whatever he shows then."""
    for _ in range(doors.WRONG_AT_ONCE):
        assert scene.ask("claim", "farm_0_x", **wanted("b1")).status_code == 401
    refused = scene.ask("claim", **wanted("b1"))
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")


def test_a_token_asks_so_often_and_no_more(scene: Scene) -> None:
    """A flood with a valid token is told to wait; another token is heard."""
    for _ in range(doors.AT_ONCE):
        assert scene.ask("renew", batch="b", token="1.1").status_code == 409
    assert scene.ask("renew", batch="b", token="1.1").status_code == 429
    assert scene.ask("renew", scene.token("boris"), batch="b", token="1.1").status_code == 409


class Patient:
    """A desk that lets all wait but Boris."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.hearing: list[str] = []

    def claim(self, token: worker_tokens.WorkerToken, _: Any) -> remote.BatchDealt:
        """Answer Boris now, everybody else later."""
        if token.name != "boris":
            self.open.wait(120)
        return remote.BatchDealt()

    def hear(self, token: worker_tokens.WorkerToken, _: Any) -> remote.GamesHeard:
        """Hear results later, Boris', too."""
        self.hearing.append(token.name)
        self.open.wait(120)
        return remote.GamesHeard()

    show = renew = give_back = steer = copy = propose = go_on = approve = refuse = claim


class Names:
    """Tokens that are names."""

    def check(self, name: str) -> tuple[worker_tokens.WorkerToken, str]:
        """Take everybody."""
        return worker_tokens.WorkerToken(name, name, "", ("*",), 0, 1 << 62, "test"), ""


@contextlib.asynccontextmanager
async def asking(waits: Patient) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of a gateway with this desk."""
    opened = doors.Doors(Names(), None)  # type: ignore[arg-type]
    for_browsers = pages.Pages(waits, Names(), opened, None)  # type: ignore[arg-type]
    made = app.Gateway(waits, opened, sources.Store(pathlib.Path()), for_browsers).app()  # type: ignore[arg-type]
    transport = httpx.ASGITransport(made)
    async with httpx.AsyncClient(transport=transport, base_url="http://farm") as client:
        yield client


async def ask(client: httpx.AsyncClient, name: str, verb: str = "claim") -> int:
    """Claim a batch, or tell a result; return the status."""
    game = told.game(told.spec().order(1)).model_dump(mode="json")
    results = {"batch": "b", "token": "1.1", "games": [game]}
    words = {"claim": wanted("b"), "results": results}[verb]
    headers = {"Authorization": f"Bearer {name}"}
    answer = await client.post(f"/work/v1/{verb}", json=words, headers=headers)
    return answer.status_code


def test_a_token_has_its_share_of_the_threads_alone() -> None:
    """However long its requests take: one more is told to wait, and others are served."""
    waits = Patient()

    async def attack() -> None:
        async with asking(waits) as client:
            flood = [asyncio.create_task(ask(client, "anna")) for _ in range(doors.AT_WORK + 1)]
            first, others = await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result() for task in first] == [429]
            assert await ask(client, "boris") == 200
            waits.open.set()
            assert await asyncio.gather(*others) == [200] * doors.AT_WORK
            assert await ask(client, "anna") == 200

    asyncio.run(attack())


def test_however_many_results_come_claims_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are played again at a time; the others wait without a thread, and not for ever."""
    waits, names = Patient(), [f"worker{at}" for at in range(50)]
    monkeypatch.setattr(app, "TURN_SECONDS", 0.5)

    async def flood() -> None:
        async with asking(waits) as client:
            results = [asyncio.create_task(ask(client, name, "results")) for name in names]
            while len(waits.hearing) < app.RESULTS_AT_A_TIME:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(60):
                assert await ask(client, "boris") == 200
                while sum(task.done() for task in results) < 50 - app.RESULTS_AT_A_TIME:
                    await asyncio.sleep(0.01)
            heard = [task for task in results if not task.done()]
            assert {task.result() for task in results if task.done()} == {503}
            assert len(waits.hearing) == app.RESULTS_AT_A_TIME
            waits.open.set()
            assert await asyncio.gather(*heard) == [200] * app.RESULTS_AT_A_TIME
            assert await ask(client, names[0], "results") == 200, "turns are given back"

    asyncio.run(flood())


def test_a_clock_is_told_with_what_bounds_the_nets_delays(scene: Scene, house: House) -> None:
    """The farm's time is in the answer; the worker says it again, and when it had come."""
    scene.open()
    there = gateway.Gateway(house.url, scene.secret)
    for batch in ("b1", "b2"):
        found = scene.dealt(batch)
        played = [json.dumps(game).encode() for game in games(found)]
        assert len(there.results(batch, found["token"], played).recorded) == 2
    first, _, second, _ = (result["clock"] for result in scene.results())
    assert set(first) == {"process", "at_ms", "boot_ms", "day_ms"}
    assert second["process"] == first["process"]
    assert second["heard"]["at_ms"] == first["at_ms"] <= second["at_ms"]
    assert first["boot_ms"] <= second["heard"]["boot_ms"] <= second["boot_ms"]


def test_a_long_pgn_does_not_fill_redis() -> None:
    """Whatever a worker says its engines were set to: beyond the bound moves alone are kept."""
    order = told.spec().order(1)
    setting = {"name": "x" * desk.PGN_BYTES, "asked": "1", "offered": "", "set": "1"}
    game = told.game(order, white={"options": [setting]})
    batch = batches.Batch("b", "o", "anna/box", contract.Token(1, 1), "m", "1", 0, 0, (1,), 0)
    text = str(desk._journaled(batch, order, game, 60_000)["pgn"])
    assert len(text) < 2_000
    assert "Qh4#" in text


def test_the_gateways_unit_may_write_nowhere() -> None:
    """It faces the internet, and keeps nothing: mirror and archive are not its to change."""
    folder = pathlib.Path(__file__).parents[2] / "deploy" / "systemd"
    unit = (folder / "farm-gateway.service").read_text()
    assert "ProtectSystem=strict" in unit
    assert "StateDirectory" not in unit
    assert "ReadWritePaths" not in unit


def test_a_token_plays_the_matches_of_its_scope(scene: Scene) -> None:
    """And none without --remote, none of named halls, none whose engines the worker lacks."""
    scene.open("private", remote=False)
    scene.open("other")
    boris = scene.token("boris", "--match", "dev-*")
    assert "no open match" in scene.claim("b1", boris)["why"]
    scene.open("dev-1")
    assert scene.claim("b1", boris, files=[told.DEV])["orders"] == []
    assert scene.claim("b1", boris, memory_mb=10, cores=1)["match"] in {"", "dev-1"}
    assert scene.dealt("b2", boris)["match"] == "dev-1"


def test_what_is_too_large_or_no_message_is_refused(scene: Scene) -> None:
    """By its length before it is read, by having none, and by its words."""
    headers = {"Authorization": f"Bearer {scene.secret}"}
    body = b"x" * (doors.BODY_BYTES + 1)
    assert scene.client.post("/work/v1/results", content=body, headers=headers).status_code == 413
    pieces = iter([b"{}"])  # in chunks
    assert scene.client.post("/work/v1/results", content=pieces, headers=headers).status_code == 400
    for content in (b"{", b"[]", b"[" * 100_000, b'{"batch":"../x","token":""}', b"\xff"):
        answer = scene.client.post("/work/v1/renew", content=content, headers=headers)
        assert (answer.status_code, "error" in answer.json()) == (422, True)
    assert scene.client.get("/work/v1/claim", headers=headers).status_code == 405


def test_a_worker_may_look_at_its_token(scene: Scene) -> None:
    """Name, scope and end; nothing of other tokens."""
    answer = scene.client.get(
        "/work/v1/token", headers={"Authorization": f"Bearer {scene.secret}"}
    ).json()
    assert (answer["name"], answer["matches"]) == ("anna", ["*"])
    assert set(answer) == {"id", "name", "matches", "until_ms"}


def test_a_token_ends_by_redis_clock(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's host is a year ahead: a token of an hour is valid all the same."""
    secret = scene.token("ben", "--until", "+1h")
    ahead_ns = 365 * 86_400 * 10**9
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ns)
    headers = {"Authorization": f"Bearer {secret}"}
    assert scene.client.get("/work/v1/token", headers=headers).status_code == 200


def test_the_gateway_says_so_while_redis_is_away(tmp_path: Any, house: House) -> None:
    """503 with a time to wait: the worker keeps its results and comes again."""
    away = store.connect(f"unix://{tmp_path}/none.sock")
    with house.serving(away) as client:
        headers = {"Authorization": "Bearer farm_0_x"}
        answer = client.post("/work/v1/renew", json={}, headers=headers)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
