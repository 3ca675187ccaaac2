"""A launched season in real Redis that is played on paper: its facts journaled, no engines."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator

import driver
import harness
import pytest

from orchestrator import contract
from orchestrator.commands import common
from orchestrator.ledger import store
from orchestrator.season import decide
from orchestrator.season.fold import state


@contextlib.contextmanager
def launched(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, season: str
) -> Iterator[store.RedisLedger]:
    """Launch a season file's text on a ledger of its own, which the commands then find."""
    with harness.Redis(folder / "redis") as server:
        monkeypatch.setenv("FARM_REDIS_URL", server.url_of(harness.OPERATOR))
        driver.load(folder, season)
        harness.farm("launch", str(folder / "season.toml"), "--hall", driver.HALL)
        with store.connect(server.url) as opened:
            yield opened


ORGANIZED = driver.season_text().replace(
    "promote =", 'tiebreaks = ["direct-encounter", "wins", "organizers"]\npromote ='
)  # a league that ends with its organizers


def play(ledger: store.RedisLedger, games: int) -> state.SeasonState:
    """Journal all that can be decided, and so many drawn games."""
    while True:
        folded = common.fold(ledger, "test")
        drafts = decide.decide(folded, ledger.now_ms())
        game = folded.ready_game()
        if not drafts and games and game is not None:
            fact = driver.finished(game, f"{game}-a", ("1/2-1/2", driver.Ending.THREEFOLD))
            drafts = [contract.Draft.of("game_finished", fact)]
            games -= 1
        if not drafts:
            return folded
        ledger.append("test", folded.seq, drafts, "test")
