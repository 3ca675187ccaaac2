"""Live games of remote workers: a few are shown, their moves checked; they count for nothing."""

from __future__ import annotations

import pathlib
import threading

import pytest
import test_gateway
import told

from orchestrator import contract
from orchestrator.contract import remote
from orchestrator.gateway import desk, match_page, watching
from orchestrator.ledger import live_games
from orchestrator.testmatch import orders
from worker_cpu.match import schedule
from worker_cpu.remote import player, spool
from worker_cpu.wire import frames

house, scene = test_gateway.house, test_gateway.scene  # fixtures
CLOCKS = {"white_clock_ns": 59_000_000_000, "black_clock_ns": -1}


def _show(scene: test_gateway.Scene, dealt: dict[str, object], number: int, *moves: str) -> object:
    words = {"batch": "b1", "token": dealt["token"], "number": number, "moves": moves, **CLOCKS}
    return scene.ask("show", **words)


def _games(scene: test_gateway.Scene) -> list[live_games.LiveGame]:
    return live_games.RedisLiveGames(scene.ledger.server).all(scene.ledger.now_ms())


def test_a_game_is_shown_until_it_ends(scene: test_gateway.Scene) -> None:
    """Its position follows from its moves; what is told of no game of the batch shows nothing."""
    scene.open()
    dealt = scene.dealt()
    answer = _show(scene, dealt, 1, "f2f3", "e7e5")
    assert answer.json() == {"schema_version": 1, "wait_ms": desk.SHOWN_MS}  # type: ignore[attr-defined]
    _show(scene, dealt, 1, "f2f3", "e7e5", "g2g4")
    (game,) = _games(scene)
    assert (game.match, game.number, game.plies, game.last) == ("m", 1, 3, "g2g4")
    assert (game.white, game.worker) == ("dev", "anna/box")
    assert game.fen.startswith("rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b")
    drawn = match_page.boards([game])
    assert drawn.count('class="piece"') == 32
    assert drawn.count('class="moved"') == 2
    assert "0:59.0" in drawn
    assert "0:00.0" in drawn, "a flag has fallen"
    for number, moves in ((9, ()), (orders.LAST_GAME + 1, ()), (1, ("e2e5",)), (1, ("a1h8q",))):
        assert _show(scene, dealt, number, *moves).status_code == 409  # type: ignore[attr-defined]
    assert _show(scene, dealt, 1, "<b>").status_code == 422  # type: ignore[attr-defined]
    assert _show(scene, {"token": "0.0"}, 1).status_code == 409  # type: ignore[attr-defined]
    assert [shown.plies for shown in _games(scene)] == [3]
    words = {"batch": "b1", "token": dealt["token"], "games": test_gateway.games(dealt)}
    assert scene.ask("results", **words).json()["recorded"] == [1, 2]
    assert _games(scene) == []


def test_few_games_are_shown(scene: test_gateway.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a match and in all; the others are told much later, and one that went silent gives way."""
    scene.open()
    dealt = scene.dealt()
    monkeypatch.setattr(live_games, "OF_A_MATCH", 1)
    assert _show(scene, dealt, 1, "f2f3").json()["wait_ms"] == desk.SHOWN_MS  # type: ignore[attr-defined]
    assert _show(scene, dealt, 2, "f2f3").json()["wait_ms"] == desk.NO_ROOM_MS  # type: ignore[attr-defined]
    assert _show(scene, dealt, 1, "f2f4").json()["wait_ms"] == desk.SHOWN_MS  # type: ignore[attr-defined]
    monkeypatch.setattr(live_games, "STALE_MS", -1)
    assert _show(scene, dealt, 2, "f2f3").json()["wait_ms"] == desk.SHOWN_MS  # type: ignore[attr-defined]
    monkeypatch.setattr(live_games, "STALE_MS", 60_000)
    assert [game.number for game in _games(scene)] == [2]


def test_a_worker_writes_down_one_of_its_games(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one when it has ended; never a check, and nothing of what engines say."""
    monkeypatch.setattr(player, "SHOW_SECONDS", 0.0)
    spec = told.spec(check_nodes=100)
    numbers = (orders.LAST_GAME + 1, 1, 2)
    dealt = spool.Batch("b", "", "1.1", "m", 1_000, tuple(spec.order(at) for at in numbers))
    kept = spool.Spool(tmp_path)
    kept.keep(dealt)
    kept.put(dealt, list(numbers))
    made = player.Player(kept, stays=False)
    slots: list[schedule.Slot] = list(made.more())
    played = [made.order(slot) for slot in slots]
    assert [order.shown for order in played] == [False, True, False], "plies of one are sent"
    assert made.begin(1, slots[0], played[0]) is None, "a check"
    watch = made.begin(1, slots[1], played[1])
    assert watch is not None
    assert made.begin(2, slots[2], played[2]) is None, "one is shown"
    for ply in told.game(spec.order(1)).plies[:2]:
        watch(frames.Frame(frames.Kind.PLY, contract.dumps(ply.model_dump(mode="json")).encode()))
    shown = kept.shown()
    assert shown is not None
    game = remote.GameShown.model_validate({**shown, "token": "1.1"})
    assert (game.batch, game.number, game.moves) == ("b", 1, ("f2f3", "e7e5"))
    made.end(played[2])
    assert kept.shown() is not None
    made.end(played[1])
    assert kept.shown() is None
    again = made.order(slots[2])
    assert made.begin(2, slots[2], again) is not None
    assert not made.order(slots[1], 2).shown


class Nothing:
    """Batches of a farm that deals no match."""

    def open_matches(self) -> list[object]:
        """Return none."""
        return []


def test_nobody_looks_at_matches_once_the_server_ends(tmp_path: pathlib.Path) -> None:
    """Who looked while a page was open does not for a minute more."""
    watched = watching.Watched(tmp_path, Nothing(), live_games)  # type: ignore[arg-type]
    assert watched.lines() == []
    (looking,) = [thread for thread in threading.enumerate() if thread.name == "watching"]
    watched.close()
    looking.join(60)
    assert not looking.is_alive()
