"""The live page in a real browser, against a really running farm."""

from __future__ import annotations

import collections
import contextlib
import decimal
import json
import pathlib
import re
from collections.abc import Iterator

import chess
import harness
import page_faults
import pytest
import theatre
from playwright import sync_api

from orchestrator import contract
from orchestrator.arbiter import pgn_comments, score
from orchestrator.ledger import kibitz_store
from orchestrator.season import views
from orchestrator.season.fold import events

PHONE = {"width": 390, "height": 844}
DECIDED = {  # what decided a place, in the page's words
    "points": "points",
    "crashes": "Crashes",
    "direct-encounter": "Direct",
    "wins": "Wins",
    "sonneborn-berger": "SB",
    "black-wins": "Black wins",
    "": "not decided",
}


HELD = 25  # ply at which a game with a gate stands
RULES = '{ rules = "s16", syzygy = false }'  # counters run


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[theatre.Web]:
    """Run a farm that plays slowly enough to be watched; its final waits for a test."""
    with theatre.stage(tmp_path_factory.mktemp("page")) as stage:
        gate(stage, "final.1").touch()
        hold = ("--fault", f"hold:{gate(stage, 'GAME')}@{HELD}")
        theatre.season(stage.farm, delay_ms=100, adjudication=RULES, control="30m+1s", words=hold)
        yield stage


def gate(web: theatre.Web, game: str) -> pathlib.Path:
    """Return the file that holds a game."""
    return web.farm.root / f"gate-{game}"


@pytest.fixture
def page(browser: sync_api.Browser, web: theatre.Web) -> Iterator[sync_api.Page]:
    """Open the page; no error may be on its console when the test ends."""
    requests: list[str] = []
    with page_faults.silent(browser, viewport={"width": 1440, "height": 1000}) as opened:
        opened.on("request", lambda request: requests.append(request.url))
        opened.goto(web.url)
        yield opened
    assert all(url.startswith((web.url, "data:")) for url in requests)


def shown(page: sync_api.Page, chosen: str = "") -> list[str]:
    """Return the moves that the page lists, all or those that a selector chooses."""
    words: list[str] = page.locator(f"#moves button{chosen}").evaluate_all(
        "all => all.map(one => one.firstChild.textContent)"
    )
    return words


GROWN = """() => {
  const now = document.querySelectorAll("#moves button:not(.book)").length
  window.grown = (window.grown ?? 0) + Math.max(0, now - (window.before ?? now))
  window.before = now
  return window.grown >= 5
}"""  # whether five moves have come, of one game or of two


def test_moves_come_without_a_reload_and_are_those_of_the_journal(
    page: sync_api.Page, web: theatre.Web
) -> None:
    """The list of moves grows by itself; what it shows is what the ledger holds."""
    page.evaluate("window.kept = true")
    sync_api.expect(page.locator("#moves button:not(.book)").first).to_be_visible()
    page.wait_for_function(GROWN)
    assert page.evaluate("window.kept") is True
    sync_api.expect(page.locator("#link-state")).to_have_text("live")
    sync_api.expect(page.locator(".card.thinks")).to_have_count(1)
    seen: list[tuple[list[str], list[str]]] = []

    def caught() -> bool:
        seen[:] = live_moves(page, web)
        return bool(seen)

    web.farm.wait(caught, 60, "a page that shows five moves of the game in flight")
    told, known = seen[0]
    assert told == known[: len(told)]


def live_moves(page: sync_api.Page, web: theatre.Web) -> list[tuple[list[str], list[str]]]:
    """Return the page's moves and the ledger's, nothing unless both are of one game in flight."""
    running = web.farm.state("stage").running
    if running is None:
        return []
    link = f"lichess/stage/games/{running.game}.pgn"  # finished games are linked elsewhere
    shows = [page.locator("#game-pgn").get_attribute("href") == link]
    told = shown(page, ":not(.book)")
    shows.append(page.locator("#game-pgn").get_attribute("href") == link)
    texts = [text for _, text in web.farm.ledger.plies(running.attempt)]
    known = [contract.PlyRecord.decode(text).san for text in texts]
    after = web.farm.state("stage").running
    same = after is not None and after.attempt == running.attempt
    return [(told, known)] if same and all(shows) and len(told) >= 5 else []


def test_a_kibitzers_word_is_shown_as_long_as_its_position(
    page: sync_api.Page, web: theatre.Web
) -> None:
    """What an engine that only watches says stands beneath the variations, then goes by itself."""
    desks = kibitz_store.RedisKibitzing(web.farm.ledger.server)
    word = contract.Evaluation(engine="Watcher 3", ply=0, score=contract.Score(cp=77), depth=30)
    lines = page.locator("#kibitzers .line")

    def shown_now() -> bool:
        slot = web.farm.ledger.slot(harness.HALL)
        if slot is not None:
            for ply in range(slot.ply, slot.ply + 30):
                told = word.model_copy(update={"ply": ply}).encode()
                desks.tell(0, slot.attempt, ply, told)
        beneath = any("Watcher 3 kibitzes: " in text for text in lines.all_inner_texts())
        return beneath and "Watcher 3" in page.locator(".graph [data-desk='0']").inner_text()

    web.farm.wait(shown_now, 60, "a kibitzer's word on the page")
    sync_api.expect(lines).to_have_count(0)


def test_a_finished_game_is_replayed_with_all_its_figures(
    page: sync_api.Page, web: theatre.Web
) -> None:
    """A cell of the crosstable opens the game; evals, clocks, counters are the record's."""
    record = web.finished("stage", "league.1")
    page.goto(f"{web.url}#/stage/event/league")  # the final may have begun
    page.get_by_role("tab", name="Crosstable").click()
    cell = page.locator('#panel a[href="#/stage/game/league.1"]').first
    sync_api.expect(cell).to_be_visible()
    cell.click()
    title = (
        f"{record.order.white.name} \N{EN DASH} {record.order.black.name} {record.outcome.result}"
    )
    sync_api.expect(page.locator("#game-title")).to_have_text(title)
    book = len(record.order.opening.moves)
    assert shown(page)[book:] == [ply.san for ply in record.plies]
    sync_api.expect(page.locator("#moves .end").last).to_contain_text(record.outcome.details)
    sync_api.expect(page.locator("#moves button.book small")).to_have_text(["book"] * book)
    check_cards(page, record)
    check_figures(page, record, len(record.plies))
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    check_figures(page, record, len(record.plies) - 3)
    check_one_stop(page)
    page.keyboard.press("Home")
    sync_api.expect(page.locator('#moves [aria-current="true"]')).to_have_count(0)
    page.keyboard.press("End")
    step = page.locator(".line button").first
    sync_api.expect(step).to_be_visible()
    step.hover()
    sync_api.expect(page.locator("#hover")).to_be_visible()
    page.locator("#to-live").click()
    sync_api.expect(page.locator("#to-live")).to_be_hidden()


def test_a_position_is_linked_copied_and_looked_into(
    browser: sync_api.Browser, web: theatre.Web
) -> None:
    """The address names the ply; FEN, analysis and a variation's board are of that position."""
    record = web.finished("stage", "league.1")
    last = len(record.order.opening.moves) + len(record.plies)
    rights = ["clipboard-read", "clipboard-write"]
    with page_faults.silent(browser, permissions=rights) as page:
        page.goto(f"{web.url}/#/stage/game/league.1/{last - 2}")
        current = page.locator('#moves [aria-current="true"]')
        sync_api.expect(current).to_have_attribute("data-ply", str(last - 2))
        page.locator("#board").hover()
        page.mouse.wheel(0, 100)
        sync_api.expect(current).to_have_attribute("data-ply", str(last - 1))
        page.wait_for_url(f"**/#/stage/game/league.1/{last - 1}")
        step = page.locator(".line button").first
        step.click()
        page.keyboard.press("End")
        sync_api.expect(current).to_have_attribute("data-ply", str(last))
        page.locator('[data-copy="fen"]').click()
        page.wait_for_function(
            "async fen => await navigator.clipboard.readText() === fen", arg=record.final_fen
        )
        words = record.final_fen.replace(" ", "_")
        sync_api.expect(page.locator("#analyse")).to_have_attribute(
            "href", f"https://lichess.org/analysis/standard/{words}"
        )
        pinned = page.locator("#pinned")
        sync_api.expect(pinned.locator("#pinned-step")).to_contain_text("1 of ")
        sync_api.expect(pinned.locator("g[data-piece]").first).to_be_visible()
        pinned.get_by_label("Close").click()
        sync_api.expect(pinned).to_be_hidden()
        page.locator('[data-copy="link"]').click()
        link = f"{web.url}/#/stage/game/league.1/{last}"
        page.wait_for_function(
            "async url => await navigator.clipboard.readText() === url", arg=link
        )


def check_one_stop(page: sync_api.Page) -> None:
    """Of all moves the Tab key stops at the shown one, and stays with it as the arrows move."""
    stop = page.locator('#moves button[tabindex="0"]')
    sync_api.expect(stop).to_have_count(1)
    page.locator("#moves").focus()
    for key in ("Tab", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
        sync_api.expect(stop).to_have_attribute("aria-current", "true")
        sync_api.expect(stop).to_be_focused()


DRAWN = """async ([steps, wanted]) => {
  const drawn = () => [...document.querySelectorAll("#board g[data-piece]")]
    .map((one) => one.dataset.square + one.dataset.piece).sort().join(" ")
  const seen = []
  await new Promise((done) => {
    const look = () => { seen.push(drawn()); if (seen.at(-1) === wanted) done() }
    const all = { childList: true, subtree: true }
    new MutationObserver(look).observe(document.getElementById("board"), all)
    const back = () => document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }))
    for (let k = 0; k < steps; k += 1) back()
  })
  return seen
}"""  # goes so many plies back at once, returns what the board drew until it drew what is wanted


def test_a_board_that_is_overtaken_draws_the_newest_position(
    page: sync_api.Page, web: theatre.Web
) -> None:
    """Of many positions that come at once none between the first and the last is drawn."""
    record = web.finished("stage", "league.1")
    page.goto(f"{web.url}#/stage/game/league.1")
    sync_api.expect(page.locator("#moves .end").last).to_contain_text(record.outcome.details)
    boards = placements(record)
    steps = len(boards) - 1
    seen = page.evaluate(DRAWN, [steps, boards[0]])
    assert seen[-1] == boards[0]
    assert not set(seen) & (set(boards[1:-2]) - {boards[0]})


def test_a_replay_that_comes_before_the_stream_is_shown(
    browser: sync_api.Browser, web: theatre.Web
) -> None:
    """Whichever of the two answers is the later one, the page ends the same, without an error."""
    record = web.finished("stage", "league.1")
    with page_faults.silent(browser) as opened:
        with before_the_stream(opened):
            opened.goto(f"{web.url}/#/stage/game/league.1")
            end = opened.locator("#moves .end").last
            sync_api.expect(end).to_contain_text(record.outcome.details)
        sync_api.expect(opened.locator('#events [aria-current="true"]')).to_have_attribute(
            "data-event", record.order.event
        )
        sync_api.expect(opened.locator("#link-state")).to_have_text("live")


@contextlib.contextmanager
def before_the_stream(page: sync_api.Page) -> Iterator[None]:
    """Hold back where things stand for the length of a block, in which it is asked for."""
    held: list[sync_api.Route] = []
    waits = True

    def hold(route: sync_api.Route) -> None:
        if waits:
            held.append(route)
        else:
            route.continue_()

    # The stream goes on from the snapshot.
    page.route(re.compile(r"/api/v1/(live|snapshot)"), hold)
    yield
    waits = False
    for route in held:
        route.continue_()
    assert held


def test_an_address_that_leads_nowhere_is_told_and_taken_back(
    browser: sync_api.Browser, web: theatre.Web
) -> None:
    """A season or game that is not here is named; the next address is live without a trace."""
    context = browser.new_context(service_workers="block")
    context.set_default_timeout(page_faults.PATIENCE)  # not silent: what is not here is a 404
    opened = context.new_page()
    notice = opened.locator("#notice")
    opened.goto(f"{web.url}/#/100%")  # as it was typed: no link has made it
    sync_api.expect(notice).to_have_text("There is no season 100% here.")
    opened.goto(f"{web.url}/#/nosuch")
    sync_api.expect(notice).to_have_text("There is no season nosuch here.")
    opened.goto(f"{web.url}/#/stage/game/league.99")
    sync_api.expect(notice).to_have_text(
        "There is no game league.99 to be shown here: not yet played, or never paired."
    )
    opened.goto(f"{web.url}/#/stage")
    sync_api.expect(opened.locator("#link-state")).to_have_text("live")
    sync_api.expect(notice).not_to_contain_text("league.99")
    context.close()


def placements(record: contract.GameRecord) -> list[str]:
    """Return the pieces on their squares, as the drawing names them, before and after each ply."""
    board = chess.Board(record.order.opening.fen or chess.STARTING_FEN)
    found = [pieces(board)]
    for move in (*record.order.opening.moves, *(ply.move for ply in record.plies)):
        board.push_uci(move)
        found.append(pieces(board))
    return found


def pieces(board: chess.Board) -> str:
    """Return the pieces on their squares in one line: a1wr a2wp …."""
    signs = {
        chess.square_name(square): f"{'wb'[not piece.color]}{piece.symbol().lower()}"
        for square, piece in board.piece_map().items()
    }
    return " ".join(sorted(f"{square}{sign}" for square, sign in signs.items()))


def check_figures(page: sync_api.Page, record: contract.GameRecord, played: int) -> None:
    """Hold evals, clocks and counters on the page against the record's plies."""
    plies = record.plies[:played]
    last = plies[-1]
    sync_api.expect(page.locator('#moves [aria-current="true"]')).to_contain_text(last.san)
    for side in ("white", "black"):
        own = next(ply for ply in reversed(plies) if ply.side == side)
        card = page.locator(f'.card[data-side="{side}"]')
        text = score.text(own.score, own.side) if own.score else ""
        plain = (
            "\N{EN DASH}"
            if not text
            else text
            if text.startswith("-") or text == "0.00"
            else f"+{text}"
        )
        sync_api.expect(card.locator('[data-x="eval"]')).to_have_text(plain)
        left = (last.white_clock_ns if side == "white" else last.black_clock_ns) // 1_000_000
        clock = (
            f"{left // 60_000}:{left // 1000 % 60:02}"
            if left >= 60_000
            else f"{left // 100 / 10:.1f}"
        )
        sync_api.expect(card.locator('[data-x="clock"]')).to_have_text(clock)
    counters = last.counters
    assert counters is not None
    assert counters.plies_to_draw is not None
    assert counters.plies_to_win is not None
    told = {
        "draw": f"{counters.plies_to_draw} plies",
        "win": f"{counters.plies_to_win} plies",
        "fifty": f"{counters.moves_to_fifty} moves",
    }
    for rule, text in told.items():
        sync_api.expect(page.locator(f'[data-x="to-{rule}"]')).to_have_text(text)


def check_cards(page: sync_api.Page, record: contract.GameRecord) -> None:
    """Hold what the cards tell of the engines against the record: who, options, threads, hash."""
    for side, report in (("white", record.white), ("black", record.black)):
        card = page.locator(f'.card[data-side="{side}"]')
        engine = record.order.engine(side)
        who = f"{engine.version} · by {engine.author} · {engine.country} · {engine.rating} Elo"
        sync_api.expect(card.locator(".who")).to_contain_text(who)
        options = [f"{one.name} = {one.set}" for one in report.options if one.set is not None]
        assert options
        assert card.locator("details li").all_text_contents() == options
        own = next(ply for ply in reversed(record.plies) if ply.side == side)
        limits = record.order.limits
        figures = {
            "threads": "\N{BLACK DIAMOND}" * limits.threads + f" {limits.threads}",
            "hash": f"{limits.hash_mb} MB",
            "hashfull": f"{own.hashfull / 10:.1f} %" if own.hashfull is not None else "\N{EN DASH}",
            "depth": f"{own.depth}/{own.seldepth or own.depth}",
            "tbhits": str(own.tbhits),
            "tablebases": "none",
            "speed": f"{short(own.nps)}n/s" if own.nps is not None else "\N{EN DASH}",
            "nodes": short(own.nodes),
            "move": f"{rounded(pgn_comments.move_time_ms(own) / 1000)} s",
        }
        for name, text in figures.items():
            sync_api.expect(card.locator(f'[data-x="{name}"]')).to_have_text(text)


def rounded(value: float) -> decimal.Decimal:
    """Round to two places as a browser does: halves of what is written up, 0.105 is 0.11."""
    return decimal.Decimal(str(value)).quantize(decimal.Decimal("0.01"), decimal.ROUND_HALF_UP)


def short(value: int | None) -> str:
    """Return a count as people read it: 1.2M, 45.0k."""
    if value is None:
        return "\N{EN DASH}"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.{0 if value >= 100 * size else 1}f}{unit}"
    return str(value)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(
    browser: sync_api.Browser, web: theatre.Web, scheme: str
) -> None:
    """Every tab, in both colour schemes, is fit for those who do not see or use no mouse."""
    web.finished("stage", "league.1")
    size = {"width": 1280, "height": 900}
    with page_faults.silent(browser, color_scheme=scheme, viewport=size) as opened:
        opened.goto(f"{web.url}/#/stage/game/league.1")
        sync_api.expect(opened.locator("#moves .end").last).to_be_visible()
        found = page_faults.violations(opened)
        for tab in opened.get_by_role("tab").all():
            tab.click()
            sync_api.expect(opened.locator("#panel h3").first).to_be_visible()
            found += page_faults.violations(opened, "#tables")
    assert not found, "\n".join(dict.fromkeys(found))


def test_a_phone_shows_it_all_without_sideways_scrolling(
    browser: sync_api.Browser, web: theatre.Web
) -> None:
    """On a narrow screen the page is as wide as the screen, and the board fills it."""
    with page_faults.silent(browser, viewport=PHONE, has_touch=True, is_mobile=True) as opened:
        opened.goto(web.url)
        sync_api.expect(opened.locator("#board svg")).to_be_visible()
        sync_api.expect(opened.locator("#moves button").first).to_be_visible()
        assert opened.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        box = opened.locator("#board").bounding_box()
        assert box is not None
        assert box["width"] > 0.8 * PHONE["width"]


def test_tables_are_those_of_the_journal(page: sync_api.Page, web: theatre.Web) -> None:
    """Standings of a finished event: points, tiebreak and what decided are the journal's."""
    web.farm.wait(lambda: ranked(web), 120, "the end of the league")
    page.locator('#events [data-event="league"]').click()
    page.get_by_role("tab", name="Schedule").click()
    sync_api.expect(page.locator('#panel tr[data-game="league.1"]')).to_be_visible()
    sync_api.expect(page.locator("#panel tbody tr")).to_have_count(6)
    page.get_by_role("tab", name="Standings").click()
    sync_api.expect(page.locator("#panel h3")).to_have_text("League: final table")
    told = page.locator("#panel tr[data-engine]").evaluate_all(
        "all => all.map(row => [row.dataset.engine, ...['points', 'sonneborn-berger', 'decided-by']"
        ".map(name => row.querySelector(`[data-x=${name}]`).textContent)])"
    )
    folded = views.standings(web.farm.state("stage"), "league")["rows"]
    points, berger = counted(web)
    assert told == [
        [one, f"{points[one]:g}", f"{berger[one]:g}", DECIDED[row["decided_by"]]]
        for row in folded
        for one in [row["engine"]]
    ]


def ranked(web: theatre.Web) -> bool:
    """Say whether the league is over."""
    state = web.farm.state("stage")
    return "league" in state.events and state.events["league"].status is events.Status.RANKED


def counted(web: theatre.Web) -> tuple[dict[str, float], dict[str, float]]:
    """Return points and Sonneborn-Berger of the league, counted from its bare results."""
    state = web.farm.state("stage")
    games = [state.games[game] for game in state.events["league"].order]
    results = [
        (game.white, game.black, {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}[game.finished.result])
        for game in games
        if game.finished is not None
    ]
    pairs = [*results, *((black, white, 1 - taken) for white, black, taken in results)]
    points, berger = (
        collections.defaultdict[str, float](float),
        collections.defaultdict[str, float](float),
    )
    for one, _, taken in pairs:
        points[one] += taken
    for one, other, taken in pairs:
        berger[one] += taken * points[other]
    return dict(points), dict(berger)


def test_the_api_has_a_page(browser: sync_api.Browser, web: theatre.Web) -> None:
    """The page of the read API names every path of its description."""
    with page_faults.silent(browser) as opened:
        opened.goto(f"{web.url}/api.html")
        sync_api.expect(opened.locator("#paths h3").first).to_be_visible()
        told = opened.locator("#paths h3").all_inner_texts()
    paths = json.loads(web.get("/api/v1/openapi.json").text)["paths"]
    assert told == [f"GET {path}" for path in paths]


def test_the_address_of_a_game_in_flight_follows_it(
    browser: sync_api.Browser, web: theatre.Web
) -> None:
    """Whether the game or the stream is here first: it is no replay, its moves go on coming."""

    def in_flight() -> bool:
        slot = web.farm.ledger.slot(harness.HALL)
        if slot is None or slot.game != "final.1":
            return False
        told = web.get("/api/v1/seasons/stage/games/final.1")  # the page asks for it once
        return told.status_code == 200 and not all(ply["book"] for ply in told.json()["plies"])

    web.farm.wait(in_flight, 120, "a move of the final")
    with page_faults.silent(browser) as opened:
        with before_the_stream(opened):
            opened.goto(f"{web.url}/#/stage/game/final.1")
            sync_api.expect(opened.locator("#moves button:not(.book)").first).to_be_visible()
        sync_api.expect(opened.locator("#link-state")).to_have_text("live")
        sync_api.expect(opened.locator("#to-live")).to_be_hidden()
        gate(web, "final.1").unlink()
        opened.wait_for_function(GROWN)
        last = opened.locator("#moves button").last
        sync_api.expect(last).to_have_attribute("aria-current", "true")
