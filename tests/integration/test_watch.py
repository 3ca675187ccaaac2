"""``farm watch``: what stands on the screen when a game has ended."""

from __future__ import annotations

import io
import pathlib

import harness
import made
import rich.console

from orchestrator import contract
from orchestrator.arbiter import score
from orchestrator.commands import watch
from orchestrator.ledger import store

WIDTH = 200  # characters: nothing is folded
COLUMNS, LINES = 80, 24  # of a terminal as it comes


def shown(screen: watch.Screen) -> str:
    """Look, and return what is on the screen, in one line."""
    screen.refresh()
    console = rich.console.Console(file=io.StringIO(), width=WIDTH, record=True)
    console.print(screen.render())
    return " ".join(console.export_text().replace("│", " ").split())


def fits(screen: watch.Screen, last: int) -> None:
    """A game at its fullest fits into a usual terminal, below where the season stands.

    Both engines are on boxes, every rule is near, and ``last`` is the number of the last ply.
    """
    counters = contract.Counters(plies_to_draw=10, plies_to_win=1, moves_to_fifty=50)
    for ply in range(last + 1 - watch.LAST_MOVES, last + 1):
        told = {"counters": counters, "network_ns": 12_000_000}
        screen._plies.append(made.ply(ply, "b8d7", "Nbxd7+", **told))
    console = rich.console.Console(file=io.StringIO(), width=COLUMNS, record=True)
    console.print(screen.render())
    lines = console.export_text().splitlines()
    assert ": running  |  " in lines[0]
    assert len(lines) <= LINES
    assert lines[-1].startswith("╰")
    whole = " ".join(" ".join(line[1:39] for line in lines).replace("│", " ").split())
    assert f"{last // 2 + 1}. Nbxd7+" in whole, "the last of the last moves"
    rules = "fifty-move rule in 50 moves draw rule in 10 plies win rule in 1 ply"
    assert rules in whole
    assert whole.count("network 12 ms, not charged") == 2
    screen._plies.clear()


def test_a_games_last_move_and_its_evals_stand_on_the_screen(tmp_path: pathlib.Path) -> None:
    """Though Redis has its moves no longer; a search that was told of before counts no more."""
    gate = tmp_path / "gate"
    with (
        harness.running(tmp_path) as farm,
        store.connect(farm.redis.url_of(harness.OPERATOR)) as ledger,
    ):
        with harness.held(gate) as hold:
            engines = [harness.scripted(farm.life, number, *hold) for number in (1, 2)]
            file = harness.league(tmp_path / "s.toml", engines, adjudication="{ max_moves = 12 }")
            farm.launch(file, "s")
            harness.stands(gate)
            folded = farm.state("s")
            screen = watch.Screen(ledger, folded, farm.archive)
            nowhere = watch.Screen(ledger, farm.state("s"), tmp_path / "nowhere")
            assert shown(screen).count("last moves are in the PGN") == 0
            fits(screen, 201)
            shown(nowhere)
            farm.operate("season", "pause", "--reason", "a look")
            assert folded.running is not None
            attempt = folded.running.attempt
        kept = farm.archive / "s" / "games" / "league.1" / "record.json"
        farm.wait(kept.exists, 60, "the archive")
        farm.wait(lambda: not farm.ledger.plies(attempt), 60, "Redis to forget the moves")
        picture = contract.loads(farm.ledger.live(harness.HALL) or "{}")
        for side in ("white", "black"):
            picture.setdefault(side, {})["search"] = {"cp": 4321, "depth": 77}
        published = contract.dumps(picture | {"attempt": attempt, "thinking": None})
        farm.ledger.set_live(harness.HALL, published, 60_000)
        record = contract.GameRecord.decode(kept.read_bytes())
        *_, before, last = record.plies
        told = shown(screen)
        assert (before.side, last.side) == ("white", "black")
        assert f" {before.ply // 2 + 1}. {before.san} {last.san} " in told
        for ply in (before, last):
            assert ply.score is not None
            assert f" {score.text(ply.score, ply.side)} depth {ply.depth}/" in told
        assert "depth 77" not in told
        assert "rule in" not in told
        assert "… the last moves are in the PGN" in shown(nowhere)
