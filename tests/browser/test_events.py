"""The page at other kinds of events: a Cup's bracket as it grows, a game of Chess960."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import harness
import page_faults
import theatre
from playwright import sync_api

from orchestrator.season.fold import state as season_state

START = "bbrnqkrn/pppppppp/8/8/8/8/PPPPPPPP/BBRNQKRN w KQkq - 0 1"  # castles short at once
NUMBER = 608  # of that start position, by Chess960's numbering
BOOK = f"""[Event "castling"]
[Variant "fischerandom"]
[SetUp "1"]
[FEN "{START}"]
[Result "*"]

1. O-O O-O *
"""
BRACKET = """all => all.map(round => [...round.querySelectorAll('.match')].map(match =>
  [...match.querySelectorAll('.side')].map(side => [
    ...[...side.querySelectorAll('span')].map(span => span.textContent),
    side.classList.contains('won')])))"""


def scores(state: season_state.SeasonState, event: str) -> set[tuple[str, str]]:
    """Return names and scores of a knockout round, summed from its bare results."""
    taken: dict[str, float] = {}
    for game in (state.games[one] for one in state.events[event].order):
        finished = game.finished
        white = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}.get(finished.result) if finished else None
        for engine, share in (
            (game.white, white),
            (game.black, None if white is None else 1 - white),
        ):
            taken[engine] = taken.get(engine, 0.0) + (share or 0.0)
    return {(state.engines[engine].name, f"{score:g}") for engine, score in taken.items()}


UNCUT = """() => {
  const box = document.querySelector("#beside .scroll")
  return box !== null && box.scrollWidth <= box.clientWidth
}"""


def drawn(page: sync_api.Page) -> list[list[list[list[Any]]]]:
    """Return the bracket as it is shown: rounds of matches of sides."""
    found: list[list[list[list[Any]]]] = page.locator("#panel .round").evaluate_all(BRACKET)
    return found


def test_a_cups_bracket_grows_to_its_end(browser: sync_api.Browser, tmp_path: pathlib.Path) -> None:
    """Scores are the journal's, winners play on, all games are links; no reload until the end."""
    tape = theatre.simulated("cup")
    tape.shown = round(0.6 * len(tape.journal))
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.goto(url)
        page.get_by_role("tab", name="Bracket").click()
        sync_api.expect(page.locator("#panel .round").first).to_be_visible()
        check_rounds(page, tape.folded())
        check_ahead(page, tape.folded())
        for width, height in ((1280, 720), (2560, 1440)):  # the matches beside the game, uncut
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(UNCUT)  # not at once: the page measures itself behind a resize
        page.evaluate("window.kept = true")
        tape.shown = len(tape.journal)
        whole = tape.folded()
        assert whole.champion is not None
        champion = whole.engines[whole.champion].name
        sync_api.expect(page.locator("#panel .round").last.locator(".won")).to_contain_text(
            champion
        )
        sync_api.expect(page.locator("#notice")).to_contain_text(champion)
        assert page.evaluate("window.kept") is True
        check_rounds(page, whole)
        check_winners(page, whole)
        # Each of 16 winners and four more rounds', and both losers of the semifinals, have a line.
        sync_api.expect(page.locator("#panel .wires .won")).to_have_count(16 + 8 + 4 + 2)
        sync_api.expect(page.locator("#panel .wires .lost")).to_have_count(2)
        games = [game for event in whole.events.values() for game in event.order]
        finished = [game for game in games if whole.game(game).finished]
        assert page.locator("#panel .played a").count() == len(finished)


def check_rounds(page: sync_api.Page, state: season_state.SeasonState) -> None:
    """Hold the scores of every round that has begun against its results."""
    begun = 0
    for event, shown in zip(state.events, drawn(page), strict=True):
        sides = {(side[1], side[2]) for match in shown for side in match if side[2]}
        assert sides == scores(state, event), event
        begun += bool(sides)
    assert begun >= 2


def check_ahead(page: sync_api.Page, state: season_state.SeasonState) -> None:
    """Rounds that are not drawn have their matches, with the winners so far and lines to them."""
    rounds = dict(zip(state.events, drawn(page), strict=True))
    assert [len(rounds[event]) for event in rounds] == [16, 8, 4, 2, 1, 1]
    won = [[side[1] for side in match if side[3]] for match in rounds["round-16"]]
    sides = [side for match in rounds["quarterfinal"] for side in match]
    for winner, two, side in zip(won, rounds["round-16"], sides, strict=True):
        assert side[1] == (winner[0] if winner else " / ".join(one[1] for one in two))
    assert any(won)
    assert not all(won)
    assert rounds["final"][0][0][1] == "winner of match 1"
    assert rounds["bronze"][0][1][1] == "loser of match 2"
    leads = page.locator("#panel .wires path")
    sync_api.expect(leads).to_have_count(16 + 8 + 4 + 2 + 2)


def check_winners(page: sync_api.Page, state: season_state.SeasonState) -> None:
    """Whoever is shown as a winner entered the next round, and nobody else did."""
    rounds = dict(zip(state.events, drawn(page), strict=True))
    assert [len(rounds[event]) for event in rounds] == [16, 8, 4, 2, 1, 1]
    lead = {"round-32": "round-16", "round-16": "quarterfinal", "quarterfinal": "semifinal"}
    for event, following in (lead | {"semifinal": "final"}).items():
        won = {side[1] for match in rounds[event] for side in match if side[3]}
        assert won == {state.engines[one].name for one in state.events[following].entrants}
    seeds = [side[0] for match in rounds["round-32"] for side in match]
    assert sorted(map(int, seeds)) == list(range(1, 33))


def test_a_game_of_chess960_is_castled_on_the_board(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """The start position's number is told; castling moves king and rook to their squares."""
    with theatre.stage(tmp_path) as web, page_faults.silent(browser) as page:
        launch(web)
        record = web.finished("stage", "league.1")
        assert record.order.variant == "fischerandom"
        page.goto(f"{web.url}/#/stage/game/league.1")
        sync_api.expect(page.locator("#game-facts")).to_contain_text(f"Chess960 position {NUMBER}")
        moves = page.locator("#moves button")
        sync_api.expect(moves).to_have_count(2 + len(record.plies))
        page.keyboard.press("Home")
        check_pieces(page, START.split(maxsplit=1)[0])
        moves.nth(0).click()
        check_pieces(page, "bbrnqkrn/pppppppp/8/8/8/8/PPPPPPPP/BBRNQRKN")
        marked = page.locator("#board .marker-square").count()
        assert marked == 2
        moves.nth(1).click()
        check_pieces(page, "bbrnqrkn/pppppppp/8/8/8/8/PPPPPPPP/BBRNQRKN")
        sync_api.expect(moves.nth(1)).to_contain_text("O-O")
        page.keyboard.press("End")
        check_pieces(page, record.final_fen.split()[0])


def launch(web: theatre.Web) -> None:
    """Launch a match of Chess960 whose book castles at once."""
    book = web.farm.root / "castling.pgn"
    book.write_text(BOOK)
    rows = [harness.scripted(web.farm.life, strength) for strength in (1, 2)]
    file = harness.league(web.farm.root / "season.toml", rows, control="60s+1s", final_games=2)
    text = file.read_text()
    old = text.partition("[books.b]\nfile = ")[2].partition("\n")[0]
    text = text.replace(old, json.dumps(str(book)))
    file.write_text(text.replace('book = "b"', 'book = "b"\nvariant = "fischerandom"'))
    web.farm.launch(file, "stage", seed=theatre.SEED)


def check_pieces(page: sync_api.Page, placement: str) -> None:
    """Wait until the board shows a placement, piece by piece."""
    wanted = {}
    for rank, row in zip("87654321", placement.split("/"), strict=True):
        file = 0
        for sign in row:
            if sign.isdigit():
                file += int(sign)
                continue
            wanted[f"{'abcdefgh'[file]}{rank}"] = f"{'w' if sign.isupper() else 'b'}{sign.lower()}"
            file += 1
    page.wait_for_function(
        """wanted => {
          const all = [...document.querySelectorAll('#board g[data-piece][data-square]')]
          const now = all.map(one => one.dataset.square + one.dataset.piece).sort().join()
          return now === wanted
        }""",
        arg=",".join(sorted(square + piece for square, piece in wanted.items())),
    )
