"""A season as files, served by a web host that knows nothing of it."""

from __future__ import annotations

import functools
import http.server
import pathlib
import threading

import made
import page_faults
import test_last_game
from playwright import sync_api

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.broadcast.web import site


class Silent(http.server.SimpleHTTPRequestHandler):
    """A web host that writes no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def keep(folder: pathlib.Path) -> None:
    """Archive a game of two moves, the first of which has a variation."""
    said = {"pv": ("e4", "c5", "Nf3"), "score": {"cp": 20}}
    record = contract.GameRecord(
        order=made.order(season="test", event="league", game="league.1"),
        attempt="league.1.a",
        started_ms=1,
        ended_ms=2,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=(made.ply(1, "e2e4", "e4", **said), made.ply(2, "e7e5", "e5")),
        outcome=verdict.disconnect("black"),
        final_fen="",
    )
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(record.model_dump_json())


def test_an_exported_season_is_shown_and_replayed(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """Tables, a replay by its link, and the way back; nothing is asked of a farm."""
    season, _ = test_last_game.one_played(tmp_path)
    season.play()
    archive = tmp_path / "archive"
    keep(archive / "test" / "games" / "league.1")
    assert site.Site(season.journal, archive, tmp_path / "site").write(lambda *_: None) == 1
    handler = functools.partial(Silent, directory=tmp_path / "site")
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        page_faults.silent(browser) as page,
    ):
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            sync_api.expect(page.locator("#link-state")).to_have_text("archive")
            sync_api.expect(page.locator("#season-name")).to_have_text("Test Season")
            sync_api.expect(page.locator("#panel tbody tr").first).to_be_visible()
            page.goto(f"http://127.0.0.1:{server.server_port}/#/test/game/league.1")
            sync_api.expect(page.locator("#to-live")).to_have_text("Back to the last game")
            page.locator("#moves [data-ply='1']").click()
            sync_api.expect(page.locator("#lines")).to_contain_text("Nf3")
            page.goto(f"http://127.0.0.1:{server.server_port}/#/test/game/league.2")
            sync_api.expect(page.locator("#unplayed")).to_contain_text("not known")
            page.get_by_role("tab", name="Crosstable").click()
            sync_api.expect(page.locator("#panel tbody tr").first).to_be_visible()
        finally:
            server.shutdown()
            serving.join()
