"""A worker that plays another build: from its first check to its stopped token, and a pardon."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import harness
import pytest
import told

from orchestrator import contract
from orchestrator.contract import remote
from orchestrator.gateway import desk
from orchestrator.ledger import batches, journal_mirror, lane_store, lanes, store, worker_tokens
from orchestrator.testmatch import catalogue, orders, sprt_match, worker_verdicts

GAMES, LONG_MS = 6, 600_000
OTHER = ("g2g4", "e7e5", "f2f3", "d8h4")  # the moves of the true builds; ``told.MATE`` are others
OTHER_PGN = "1. g4 e5 2. f3 Qh4# 0-1"


class Scene:
    """A match, its keeper, the gateway's desk under its own Redis user, one lane of the farm."""

    def __init__(self, root: pathlib.Path, redis: harness.Redis, own: store.RedisLedger) -> None:
        self.root, self.url = root, redis.url_of(harness.OPERATOR)
        self.ledger = store.connect(self.url)
        self.lanes = lane_store.RedisLanes(self.ledger.server)
        self.tokens = worker_tokens.RedisTokens(self.ledger.server)
        reads = worker_tokens.RedisTokens(own.server)
        self.desk = desk.Desk(
            batches.RedisBatches(own.server), reads, LONG_MS, catalogue.Catalogue(pathlib.Path())
        )
        self.spec: orders.Spec = told.spec("m", GAMES, check_nodes=20)
        self.names: dict[str, worker_tokens.WorkerToken] = {}
        self._at = 0
        self.lanes.open_lane(lanes.Lane("main", "a", "h1", frozenset({0}), 1024))
        self.keeper = self.keep()

    def keep(self) -> sprt_match.Keeper:
        """Keep the match as its command does."""
        known = batches.RedisBatches(self.ledger.server)
        verdicts = worker_verdicts.Verdicts(self.ledger, self.tokens, known, "m", "test")
        place, terms = self.root / "tests" / "m", sprt_match.Terms()
        made = sprt_match.Keeper(self.ledger, self.lanes, place, self.spec, terms, verdicts)
        made.open("test")
        return made

    def token(self, name: str) -> worker_tokens.WorkerToken:
        """Return a person's token as it is now."""
        if name not in self.names:
            made, _ = worker_tokens.make(name, ("*",), 0, 1 << 50, "test", 9)
            self.tokens.write(made)
            self.names[name] = made
        found = self.tokens.find(self.names[name].id)
        assert found is not None
        return found

    def play(self, name: str, moves: tuple[str, ...]) -> list[int]:
        """Claim a batch, play it with these moves, tell it; return its numbers."""
        self._at += 1
        files = (told.DEV, told.BASE)
        wanted = remote.BatchWanted(
            batch=f"b{self._at}", host="box", games=2, cores=1, memory_mb=999, files=files
        )
        dealt = self.desk.claim(self.token(name), wanted)
        games = tuple(told.game(order, moves) for order in dealt.orders)
        results = remote.GamesTold(batch=wanted.batch, token=dealt.token, games=games)
        heard = self.desk.hear(self.token(name), results)
        assert not heard.refused, heard
        return [order.number for order in dealt.orders]

    def play_lane(self) -> list[int]:
        """Let the lane play what it is dealt at once; return the numbers."""
        self._at += 1
        claim = lanes.LaneClaim("main", "a", f"main.a-{self._at}", "w", "h1", LONG_MS)
        played: list[int] = []
        while isinstance(dealt := self.lanes.claim_lane(claim), lanes.Dealt) and not played:
            lease = lanes.Lease("main", "a", claim.attempt, dealt.token, "m", dealt.games, *HERE)
            data = {"game": dealt.game, "hall": "main", "host": "h1", "attempt": claim.attempt}
            facts = {"result": "0-1", "ending": "checkmate", "loser": "white", "pgn": OTHER_PGN}
            words = {"details": "", "note": "", "plies": 4, "lane": "a"}
            self.lanes.complete_lane(lease, contract.dumps(data | facts | words))
            played.append(dealt.game)
        return played

    def farm(self, *words: str) -> str:
        """Run a command of the farm as its operator does."""
        environment = {"FARM_REDIS_URL": self.url, "FARM_DATA": str(self.root)}
        return harness.farm(*words, env=environment)

    def kinds(self) -> list[str]:
        """Return the kinds of the match's entries, each once."""
        path = self.root / "tests" / "m" / "journal.jsonl"
        return list(dict.fromkeys(entry.kind for entry in journal_mirror.entries(path)))


HERE = ("w", "h1", 1 << 50)


@pytest.fixture
def scene(
    redis: harness.Redis, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    """Give the scene; no check is asked by lot, and no two are the same."""
    drawn = iter(range(1, 1_000))
    monkeypatch.setattr(
        desk.secrets, "randbelow", lambda n: 1 if n == desk.CHECK_EVERY else next(drawn) % n
    )
    monkeypatch.setattr(sprt_match, "LOOK_SECONDS", 0.0)
    with store.connect(redis.url_of("gateway")) as own:
        made = Scene(tmp_path, redis, own)
        yield made
        made.keeper.close()
        made.ledger.close()


def test_another_build_is_found_stopped_and_its_games_dealt_again(scene: Scene) -> None:
    """By two checks that lanes play otherwise; its owner is told why, and may be pardoned."""
    checks = [scene.play("boris", told.MATE), scene.play("anna", OTHER)]
    assert [len(one) for one in checks] == [1, 1], "a check comes before the first game, alone"
    assert all(one[0] > orders.LAST_GAME for one in checks)
    assert scene.play("boris", told.MATE) == [1, 2]
    assert scene.keeper.step(lambda _: None, 1).games == 2
    lane = []
    for _ in range(4):  # each check twice, and no game before them
        lane += scene.play_lane()
        standing = scene.keeper.step(lambda _: None, 1)
    assert sorted(lane) == sorted(2 * (checks[0] + checks[1]))
    boris = standing.workers[0]
    assert (boris.token, boris.state) == (scene.token("boris").id, "suspect")
    (number,) = scene.play("boris", told.MATE)  # so it is asked once more
    assert number not in {*checks[0], *checks[1]}
    for _ in range(2):
        scene.keeper.step(lambda _: None, 1)
        assert scene.play_lane() == [number]
    standing = scene.keeper.step(lambda _: None, 1)
    assert (standing.games, standing.set_aside, standing.workers[0].state) == (0, 2, "condemned")
    why = scene.token("boris").invalid(0)
    assert "went otherwise than on the farm's own machines" in why
    assert why.startswith("the token was stopped, and its games are played again: m: checks")
    listed = json.loads(scene.farm("worker-token", "list", "--json"))["tokens"]
    assert {one["name"]: one["valid"] for one in listed} == {"boris": False, "anna": True}
    shown = json.loads(scene.farm("match", "workers", "m", "--json"))["tokens"]
    assert [(one["state"], one["checks_wrong"]) for one in shown] == [("condemned", 2), ("", 0)]
    assert "condemned" in scene.farm("match", "workers", "m")
    assert scene.play("anna", OTHER) == [1, 2]

    scene.farm("worker-token", "pardon", scene.token("boris").id, "--reason", "it was a bad disk")
    assert scene.token("boris").invalid(0) == ""
    assert scene.keeper.step(lambda _: None, 1).games == 2
    assert lanes.CONDEMNED in scene.kinds()
    assert lanes.PARDONED in scene.kinds()
    before = scene.keeper.standing()
    scene.keeper.close()
    scene.keeper = scene.keep()
    assert scene.keeper.standing().as_json() == before.as_json(), "the journal alone gives the same"


def test_an_operator_s_word_holds_in_every_open_match(scene: Scene) -> None:
    """What the token's workers have played is set aside; checks are no games of the match."""
    scene.play("boris", told.MATE)
    assert scene.play("boris", told.MATE) == [1, 2]
    assert scene.keeper.step(lambda _: None, 1).games == 2
    token = scene.token("boris").id
    scene.farm("worker-token", "condemn", token, "--reason", "he sold his account")
    standing = scene.keeper.step(lambda _: None, 1)
    assert (standing.games, standing.workers[0].reason) == (0, "he sold his account")
    pgn = scene.root / "tests" / "m"
    assert (pgn / "games.pgn").read_text() == ""
    assert (pgn / "set-aside.pgn").read_text().count("[Result ") == 2
    scene.play("anna", OTHER)
    assert scene.play("anna", OTHER) == [1, 2]
    assert scene.keeper.step(lambda _: None, 1).games == 2
    with pytest.raises(AssertionError, match="stopped already"):
        scene.farm("worker-token", "condemn", token, "--reason", "again")


def test_a_check_that_is_owed_comes_again_and_alone(scene: Scene) -> None:
    """Who gives it back, or lets it lapse, gets no game before it; no other worker gets it."""
    files = (told.DEV, told.BASE)
    owed = []
    for name in ("x1", "x2"):
        wanted = remote.BatchWanted(
            batch=name, host="box", games=2, cores=1, memory_mb=999, files=files
        )
        dealt = scene.desk.claim(scene.token("boris"), wanted)
        owed.append([order.number for order in dealt.orders])
        assert scene.desk.claim(scene.token("boris"), wanted) == dealt
        other = scene.desk.claim(scene.token("boris"), wanted.model_copy(update={"batch": "y"}))
        assert (other.orders, other.why) == ((), desk.CHECKING)
        named = remote.BatchNamed(batch=name, token=dealt.token)
        assert scene.desk.give_back(scene.token("boris"), named) == 0
    assert owed[0] == owed[1]
    assert scene.play_lane() == [1], "it is not dealt to others"
    assert scene.play("boris", told.MATE) == owed[0]
    assert scene.play("boris", told.MATE) == [2, 3, 4]


def test_evidence_goes_on_in_the_next_match(scene: Scene) -> None:
    """A match that ends leaves it in the farm's journal; another one begins with it."""
    for name, moves in (("anna", OTHER), ("boris", told.MATE)):
        scene.play(name, moves)
        scene.play(name, moves)
    scene.keeper.step(lambda _: None, 1)
    review: Any = scene.keeper._review
    nats = [-1.0] * 11 + [3.0]
    review.carried = lambda: {scene.token("boris").id: nats}
    scene.keeper.finish()
    scene.keeper.close()
    scene.root, scene.spec = scene.root / "next", scene.spec.model_copy(update={"id": "m2"})
    scene.keeper = scene.keep()
    scene.keeper.step(lambda _: None, 1)
    (entry,) = (one for one in scene.ledger.read("test:m2") if one.kind == lanes.CARRIED)
    assert entry.data["nats"] == {scene.token("boris").id: nats}
