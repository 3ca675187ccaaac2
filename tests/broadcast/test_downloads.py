"""Downloads: PGN for Lichess, the links in it, what a poll costs; and the page's files."""

from __future__ import annotations

import pathlib
import re

import harness
import httpx
import made
import pytest
import theatre

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.broadcast.content import games
from orchestrator.broadcast.content import variations as content_variations
from orchestrator.broadcast.web import downloads, links
from orchestrator.common import errors
from orchestrator.season.fold import events


def keep_record(archive: pathlib.Path, season: str, game: events.Game) -> None:
    """Write the record of a finished game of one move, with a long variation."""
    assert game.finished is not None
    order = made.order(season=season, event=game.event, game=game.id, round=game.round)
    plies = (made.ply(1, "e2e4", "e4", pv=("e4", "e5", "Nf3", "Nc6"), score={"cp": 20}),)
    record = contract.GameRecord(
        order=order,
        attempt=game.finished.attempt,
        started_ms=1,
        ended_ms=2,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=plies,
        outcome=verdict.disconnect("black"),
        final_fen="",
    )
    folder = archive / season / "games" / game.id
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(record.model_dump_json())


def test_a_finished_game_is_rendered_once_however_often_lichess_polls(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another poll nor another address renders it again, and no variation is played."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    state = tape.folded()
    finished = [game for game in state.games.values() if game.finished is not None][:3]
    for game in finished:
        keep_record(tmp_path / "archive", tape.season, game)
    rendered, variations = [], []
    of_record, steps = games.of_record, content_variations.steps

    def counted(record: contract.GameRecord) -> games.GameLine:
        rendered.append(record.order.game)
        return of_record(record)

    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        monkeypatch.setattr(games, "of_record", counted)
        monkeypatch.setattr(
            content_variations, "steps", lambda *a: variations.append(a) or steps(*a)
        )
        first, second = (
            [
                httpx.get(
                    f"{url}/lichess/{tape.season}/games/{game.id}.pgn", headers={"Host": host}
                ).text
                for game in finished
            ]
            for host in ("a.example", "b.example")
        )
    assert sorted(rendered) == sorted(game.id for game in finished)
    assert not variations
    assert all("[%eval 0.20]" in text for text in first)
    assert all('[GameURL "http://a.example/#/' in text for text in first)
    assert [text.replace("a.example", "b.example") for text in first] == second


def test_a_knockouts_matches_are_rounds_and_the_newest_games_are_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A match has an address of its own; of too many games the last ones are given."""
    tape = theatre.simulated("cup")
    tape.shown = len(tape.journal)
    state = tape.folded()
    event = next(iter(state.events.values()))
    matches = [[g for g in map(state.game, event.order) if g.round_number == n] for n in (1, 2)]
    for game in (game for match in matches for game in match):
        keep_record(tmp_path / "archive", tape.season, game)
    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        place = f"{url}/lichess/{tape.season}/{event.id}"
        for number, match in enumerate(matches, start=1):
            text = httpx.get(f"{place}/{number}.pgn").text
            assert rounds(text) == [f"{number}.{n + 1}" for n in range(len(match))]
        one = httpx.get(f"{url}/lichess/{tape.season}/games/{matches[1][1].id}.pgn").text
        assert rounds(one) == ["2.2"]
        monkeypatch.setattr(downloads, "_ROUND_GAMES", 1)
        assert len(matches[0]) > 1
        assert rounds(httpx.get(f"{place}/1.pgn").text) == [f"1.{len(matches[0])}"]
        assert httpx.get(f"{place}/99.pgn").status_code == 404


def rounds(text: str) -> list[str]:
    """Return the Round tags of a PGN text."""
    return re.findall(r'\[Round "([^"]+)"\]', text)


def test_links_begin_with_the_public_address(tmp_path: pathlib.Path) -> None:
    """What a request calls this server does not matter where the operator has said it."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    game = next(game for game in tape.folded().games.values() if game.finished is not None)
    keep_record(tmp_path / "archive", tape.season, game)
    with theatre.served(tape, tmp_path, public="https://chess.example.org/farm/") as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        place = f"{url}/lichess/{tape.season}/games/{game.id}.pgn"
        text = httpx.get(place, headers={"Host": "evil.example"}).text
        assert _shared(place)
        assert _shared(f"{url}/feeds/results.rss")
    link = f"https://chess.example.org/farm/#/{tape.season}/game/{game.id}"
    assert f'[GameURL "{link}"]' in text
    assert "evil" not in text
    # Without one no cache that others share keeps what was made of a request's word.
    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        for path in (f"lichess/{tape.season}/games/{game.id}.pgn", "feeds/results.rss"):
            assert not _shared(f"{url}/{path}")


def _shared(address: str) -> bool:
    """Say whether everybody's cache may keep an answer."""
    policy = httpx.get(address, headers={"Host": "evil.example"}).headers["Cache-Control"]
    assert policy.partition(",")[0] in {"public", "private"}
    return policy.startswith("public")


@pytest.mark.parametrize(
    "text", ["chess.example.org", "ftp://a", "https://", "http://a/?b", "http://a b", "http://a:x"]
)
def test_what_is_no_public_address_is_refused(text: str) -> None:
    """The error says what is allowed."""
    with pytest.raises(errors.UsageError, match="allowed: an address such as"):
        links.checked(text)


def test_a_browser_finds_the_icon_and_no_page_below_a_file(tmp_path: pathlib.Path) -> None:
    """`/favicon.ico` is asked for by every browser; `/index.html/` is no address."""
    tape = theatre.simulated("demo")
    with theatre.served(tape, tmp_path) as url:
        icon = httpx.get(f"{url}/favicon.ico")
        assert (icon.status_code, icon.content[:4]) == (200, b"\0\0\1\0")
        assert icon.headers["content-type"] in {"image/vnd.microsoft.icon", "image/x-icon"}
        assert httpx.get(f"{url}/index.html").status_code == 200
        assert httpx.get(f"{url}/").status_code == 200
        for path in ("index.html/", "js/app.js/", "icon.svg//"):
            assert httpx.get(f"{url}/{path}").status_code == 404, path
