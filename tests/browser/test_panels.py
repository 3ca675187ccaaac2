"""The page's tables hold what the journal says: ratings, forecast, statistics, log, graph."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import pathlib
import zoneinfo
from collections.abc import Iterator
from typing import Any

import httpx
import page_faults
import pytest
import theatre
from playwright import sync_api

from orchestrator import contract
from orchestrator.broadcast.content import statistics
from orchestrator.broadcast.forecast import settings
from orchestrator.forecast import game_model
from orchestrator.season import graph
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

ZONE = "Asia/Kolkata"  # half an hour off every other zone's full hours
NONE = "\N{EN DASH}"
PHONE = {"width": 390, "height": 844}
CELLS = """all => all.map(row => [row.dataset.engine ?? row.dataset.champion,
  Object.fromEntries([...row.querySelectorAll('[data-x]')].map(
    one => [one.dataset.x, one.textContent]))])"""


@pytest.fixture(scope="module")
def tape() -> theatre.Tape:
    """Play a season of rated engines with crashes; show it up to an adjudicated game."""
    whole = theatre.simulated("frc", luck=game_model.Chances(crash=0.05))
    ends = [entry for entry in whole.journal if entry.kind == "game_finished"]
    judged = [one.seq for one in ends[len(ends) // 3 :] if one.data["ending"] == "syzygy"]
    whole.shown = judged[0]
    return whole


@pytest.fixture(scope="module")
def url(tape: theatre.Tape, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve that season with a quick forecast."""
    computed = settings.Settings(runs=20, humble=False)
    with theatre.served(tape, tmp_path_factory.mktemp("panels"), computed) as address:
        yield address


@pytest.fixture
def page(browser: sync_api.Browser, url: str) -> Iterator[sync_api.Page]:
    """Open the page somewhere else in the world; its console stays silent."""
    size = {"width": 1440, "height": 1000}
    with page_faults.silent(browser, locale="en-GB", timezone_id=ZONE, viewport=size) as opened:
        opened.goto(url)
        yield opened


def document(url: str, place: str) -> Any:
    """Return a document of the read API."""
    return httpx.get(f"{url}/api/v1/{place}", timeout=60).raise_for_status().json()


def choose(page: sync_api.Page, tab: str, event: str = "") -> None:
    """Open a tab, of an event."""
    if event:
        page.locator(f'#events [data-event="{event}"]').click()
    page.get_by_role("tab", name=tab, exact=True).click()


def cells(page: sync_api.Page, table: str) -> list[tuple[str, dict[str, str]]]:
    """Return the marked cells of a table's rows, by the engine of the row."""
    rows = page.locator(f"#panel {table} tbody tr")
    found: list[list[Any]] = rows.evaluate_all(CELLS)
    return [(engine, texts) for engine, texts in found]


def moment(at_ms: float) -> str:
    """Write a moment as people there do."""
    then = dt.datetime.fromtimestamp(at_ms / 1000, zoneinfo.ZoneInfo(ZONE))
    return f"{then.day} {then:%b} {then.year}, {then:%H:%M}"


def tenths(value: float) -> str:
    """Write a number with one decimal; halves are rounded up, as browsers do."""
    return str(decimal.Decimal(value).quantize(decimal.Decimal("0.1"), decimal.ROUND_HALF_UP))


def percent(chance: float) -> str:
    """Write a chance as the page does."""
    return f"{round(100 * chance)} %" if chance else ""


def test_a_game_is_marked_that_a_rule_has_ended(page: sync_api.Page, tape: theatre.Tape) -> None:
    """Under the moves stand the result, that it was adjudicated, and by which rule."""
    ended = tape.journal[tape.shown - 1]
    assert ended.data["details"] == "SyzygyTB"
    end = page.locator("#moves .end").last
    sync_api.expect(end).to_have_text(f"{ended.data['result']} \N{EN DASH} adjudicated: SyzygyTB")


def test_a_visit_costs_few_requests_and_bytes(browser: sync_api.Browser, url: str) -> None:
    """The first one loads all in a dozen requests; the second one asks for no static file."""
    asked: list[str] = []
    with page_faults.silent(browser) as opened:
        opened.on("request", lambda one: asked.append(one.url))
        for visit in (1, 2):
            asked.clear()
            opened.goto(url)
            sync_api.expect(opened.locator("#panel tbody tr").first).to_be_visible()
            sync_api.expect(opened.locator("#board g[data-piece]").first).to_be_visible()
            sizes: list[list[Any]] = opened.evaluate(
                "() => ['navigation', 'resource']"
                ".flatMap(kind => performance.getEntriesByType(kind))"
                ".map(one => [one.name, one.transferSize])"
            )
            static = [size for name, size in sizes if "/static/" in name]
            assert len(asked) <= 12, asked
            assert opened.locator("#main").get_attribute("data-waits") is None
            sent = [name for name, size in sizes if size and "/events/" not in name]
            again = [
                name for name in sent if not name.endswith("icon.svg") and sent.count(name) > 1
            ]
            assert not again  # what is asked for ahead is what the script takes
            assert sum(size for _, size in sizes) <= (115_000 if visit == 1 else 20_000), sizes
            assert any(static) is (visit == 1), sizes


def test_the_page_speaks_the_readers_language(browser: sync_api.Browser, url: str) -> None:
    """The address names it, else what was chosen here, else the browser; one language is loaded."""
    asked: list[str] = []
    with page_faults.silent(browser, locale="de-AT") as opened:
        opened.on("request", lambda one: asked.append(one.url))

        def shows(language: str, tab: str, *ahead: str) -> None:
            sync_api.expect(opened.locator("html")).to_have_attribute("lang", language)
            sync_api.expect(opened.locator("#tab-standings")).to_have_text(tab)
            sync_api.expect(opened.locator("#language")).to_have_value(language)
            texts = [one for one in asked if "/texts/" in one]
            expected = [f"{one}.json" for one in (*ahead, language)]
            assert [pathlib.PurePosixPath(one).name for one in texts] == expected
            asked.clear()

        opened.goto(url)
        shows("de", "Tabelle")
        opened.locator("#tab-statistics").click()
        sync_api.expect(opened.locator("#panel h3").first).to_contain_text("Partien")
        opened.goto(f"{url}/?lang=es")
        shows("es", "Clasificaci\N{LATIN SMALL LETTER O WITH ACUTE}n")
        opened.locator("#language").select_option("en")
        shows("en", "Standings", "de")  # the server knows only what the browser asks for
        opened.goto(url)
        shows("en", "Standings", "de")


OUTSIDE = """() => [...document.querySelectorAll("#board, .clock, .controls, #beside tbody tr")]
  .filter(one => one.getBoundingClientRect().bottom > innerHeight).map(one => one.outerHTML)"""
PARTS = {
    "game": "#card-top #board #card-bottom .controls",
    "board": "#board",
    "clocks": "#card-top #card-bottom",
    "standings": "#beside",
}
WHOLE = ("#card-top", "#board", "#card-bottom", ".controls", "#beside", "#tables", ".top", "#lines")


def all_is_inside(opened: sync_api.Page) -> None:
    """Wait until nothing needs scrolling: behind a resize the page measures itself again."""
    with contextlib.suppress(sync_api.TimeoutError):  # what is outside is told below
        opened.wait_for_function(f"() => !({OUTSIDE})().length", timeout=5_000)
    assert opened.evaluate(OUTSIDE) == []


def test_game_clocks_and_standings_are_seen_at_once(browser: sync_api.Browser, url: str) -> None:
    """On a laptop nothing of them needs scrolling; a large screen is used to its edge."""
    with page_faults.silent(browser, viewport={"width": 1440, "height": 900}) as opened:
        opened.goto(url)
        rows = opened.locator("#beside tbody tr")
        sync_api.expect(rows.first).to_be_visible()
        assert rows.count() == 6
        sync_api.expect(opened.locator(".clock")).to_have_count(2)
        all_is_inside(opened)
        opened.set_viewport_size({"width": 1440, "height": 1260})  # higher than the board can be
        all_is_inside(opened)
        board, card = (opened.locator(name).bounding_box() for name in ("#board", "#card-bottom"))
        assert board is not None
        assert card is not None
        assert card["y"] - board["y"] - board["height"] < 40
        opened.set_viewport_size({"width": 2560, "height": 1440})
        all_is_inside(opened)
        box = opened.locator("#beside").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] > 2500


SEEN = """() => {
  const box = document.querySelector("#beside .results").getBoundingClientRect()
  const inside = (one) => {
    const at = one.getBoundingClientRect()
    return at.top >= box.top - 1 && at.bottom <= box.bottom + 1 && at.left < box.right
  }
  const heading = document.querySelector("#beside .results h4").getBoundingClientRect()
  const links = [...document.querySelectorAll("#beside .results a")]
  return [heading.left < box.right && heading.top < box.bottom, links.filter(inside).length]
}"""


def test_last_results_stand_below_their_heading(browser: sync_api.Browser, url: str) -> None:
    """However much room the table leaves: no heading is without a line, no line without it."""
    with page_faults.silent(browser, viewport={"width": 1440, "height": 900}) as opened:
        opened.goto(url)
        sync_api.expect(opened.locator("#beside .results h4")).to_be_attached()
        counts = set()
        for height in range(240, 600, 5):
            opened.locator("#beside").evaluate(f"one => one.style.flex = '0 0 {height}px'")
            headed, lines = opened.evaluate(SEEN)
            assert headed is (lines > 0), f"{lines} lines at {height} px"
            counts.add(lines)
        assert counts == set(range(11))


def test_parts_stand_alone(browser: sync_api.Browser, url: str) -> None:
    """Each shows what it is named after, live, and nothing else; an overlay has no ground."""
    with page_faults.silent(browser) as opened:
        for at, (part, shown) in enumerate(PARTS.items()):
            place = f"/embed/{part}" if at % 2 else f"/?overlay={part}&theme=dark"
            opened.goto(url + place)
            sync_api.expect(opened.locator("#link-state")).to_have_text("live")
            for name in WHOLE:
                seen = opened.locator(name)
                expected = sync_api.expect(seen)
                expected.to_be_visible() if name in shown.split() else expected.to_be_hidden()
            ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgba(0, 0, 0, 0)") is ("overlay" in place)


def test_a_search_narrows_every_long_table(page: sync_api.Page) -> None:
    """Rows stay that have the words, how many is told, and a table drawn again is narrowed, too."""
    choose(page, "Rating list")
    rows = page.locator("#panel tbody tr")
    sync_api.expect(rows.first).to_be_visible()
    name = rows.nth(3).locator("th").inner_text()
    of_name = [text for text in rows.locator("th").all_inner_texts() if name in text]
    field = page.locator("#panel .filters input")
    for _ in "12":
        field.fill(name.upper())
        sync_api.expect(page.locator("#panel tbody tr:visible")).to_have_count(len(of_name))
        sync_api.expect(page.locator("#panel .filters [role=status]")).to_have_text(
            f"{len(of_name)} of {rows.count()} rows"
        )
        choose(page, "Standings")
        choose(page, "Rating list")
        sync_api.expect(page.locator("#panel[data-shows='ratings']")).to_be_visible()
        sync_api.expect(field).to_have_value(name.upper())
        sync_api.expect(page.locator("#panel tbody tr:visible")).to_have_count(len(of_name))


def test_the_rating_list_is_the_apis(page: sync_api.Page, url: str) -> None:
    """Rank, rating, error, points and games stand in order; provisional engines are marked."""
    choose(page, "Rating list")
    sync_api.expect(page.locator("#panel .ratings")).to_be_visible()
    told = document(url, "ratings")
    assert any(row["provisional"] for row in told["ratings"])
    wanted = [
        (
            row["engine"],
            {
                "rank": NONE if row["rank"] is None else str(row["rank"]),
                "rating": NONE
                if row["rating"] is None
                else f"{row['bound']} {tenths(row['rating'])}".strip(),
                "error": tenths(row["error"]) if row["error"] else NONE,
                "points": f"{row['points']:g}",
                "played": str(row["played"]),
                "score": f"{tenths(row['percent'])} %",
            },
            row["provisional"],
        )
        for row in told["ratings"]
    ]
    shown = [
        (engine, texts, "provisional" in texts.pop("standing"))
        for engine, texts in cells(page, ".ratings")
    ]
    assert shown == wanted
    sync_api.expect(page.locator("#panel")).to_contain_text(f"All {told['games']} official games")


def test_the_forecast_is_the_apis_and_follows_the_games(
    page: sync_api.Page, url: str, tape: theatre.Tape
) -> None:
    """Every chance, the title and the end; after more games it is another one, by itself."""
    choose(page, "Forecast", "semi-1")
    sync_api.expect(page.locator('#panel [data-x="basis"]')).to_be_visible()
    check_forecast(page, document(url, "seasons/frc/forecast"))
    page.evaluate("window.kept = true")
    ends = [entry.seq for entry in tape.journal if entry.kind == "game_finished"]
    tape.shown = next(seq for seq in ends if seq > tape.shown + 40)
    games = sum(event.tally.games for event in tape.folded().events.values())
    basis = page.locator('#panel [data-x="basis"]')
    sync_api.expect(basis).to_contain_text(f"after {games} games")
    told = document(url, "seasons/frc/forecast")
    assert told["games"] == games
    check_forecast(page, told)
    assert page.evaluate("window.kept") is True


def check_forecast(page: sync_api.Page, told: dict[str, Any]) -> None:
    """Hold the panel against the document."""
    basis = page.locator('#panel [data-x="basis"]')
    sync_api.expect(basis).to_contain_text(f"after {told['games']} games")
    sync_api.expect(basis).to_contain_text(f"played {told['runs']} times")
    (event,) = [one for one in told["events"] if one["event"] == "semi-1"]
    uncertain = any(line["plays"] < 1 for line in event["engines"])
    wanted = []
    for line in event["engines"]:
        texts = {"plays": percent(line["plays"])} if uncertain else {}
        texts |= {f"place-{at}": percent(one) for at, one in enumerate(line["places"], 1)}
        texts |= {f"to-{to}": percent(one) for to, one in line["promoted"].items()}
        wanted.append((line["engine"], texts))
    assert cells(page, ".chances") == wanted
    check_title(page, [(one["engine"], one["chance"]) for one in told["champion"]])
    end = page.locator('#panel [data-x="end"]')
    sync_api.expect(end).to_contain_text(moment(told["end_ms"]["expected"]))


def check_title(page: sync_api.Page, told: list[tuple[str, float]]) -> None:
    """Hold the chances of the title against the document's: each rounded, 100 together."""
    shown = [(engine, texts["title"]) for engine, texts in cells(page, ".favourites")]
    assert [engine for engine, _ in shown] == [engine for engine, _ in told[:8]]
    least, most = 0, 0
    for (_, text), (_, chance) in zip(shown, told, strict=False):
        bound, share = text[0], int(text.strip("<> %"))
        assert abs(share - 100 * chance) < 1, text
        least += 0 if bound == "<" else share
        most += share
    if len(told) <= 8:
        assert least <= 100 <= most


def test_statistics_are_the_folds(page: sync_api.Page, tape: theatre.Tape) -> None:
    """Results by colour, of each engine too, reasons of endings, lengths."""
    choose(page, "Statistics", "league-a")
    state = tape.folded()
    told = statistics.of_event(state, state.events["league-a"])
    panel = page.locator("#panel")
    sync_api.expect(panel.locator("h3").first).to_have_text(f"League A: {told['games']} games")
    rows = (
        panel.locator("table")
        .first.locator("tbody tr")
        .evaluate_all("all => all.map(row => [...row.children].map(one => one.textContent))")
    )
    assert {name: int(count) for name, count in rows} == told["endings"]
    for sign, count in (("w", "white_wins"), ("d", "draws"), ("b", "black_wins")):
        bar = panel.locator(".bars").first.locator(f".{sign}")
        sync_api.expect(bar).to_contain_text(f" {told[count]} (")
        assert bar.evaluate("one => one.scrollWidth <= one.clientWidth"), "the label is cut"
    plies = told["plies"]
    lengths = f"Plies: {plies['min']} to {plies['max']}, {plies['mean']:g} on average"
    sync_api.expect(panel).to_contain_text(lengths)
    games = [state.games[game] for game in state.events["league-a"].order]
    for engine, texts in by_colour(page):
        for side, won in (("white", "1-0"), ("black", "0-1")):
            results = [
                game.finished.result
                for game in games
                if game.finished is not None and getattr(game, side) == engine
            ]
            won_drawn = results.count(won), results.count("1/2-1/2")
            lost = len(results) - sum(won_drawn)
            assert texts[side] == f"+{won_drawn[0]} ={won_drawn[1]} \N{MINUS SIGN}{lost}"


def test_shares_of_a_whole_add_up(page: sync_api.Page) -> None:
    """Whole per cent of results are 100 together, however they are rounded."""
    told = page.evaluate(
        "async all => all.map((await import('./js/format.js')).shares)",
        [[1, 1, 1], [1, 3, 4], [0, 5, 0], [2, 3, 195], [0, 0, 0]],
    )
    assert told == [[34, 33, 33], [13, 37, 50], [0, 100, 0], [1, 2, 97], [0, 0, 0]]


def by_colour(page: sync_api.Page) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of the table of results by colour."""
    found = [row for row in cells(page, "table") if "white" in row[1]]
    assert len(found) == 6
    return found


def test_the_log_tells_every_crash(page: sync_api.Page, tape: theatre.Tape) -> None:
    """Each crash of the journal stands in the log, the newest first, with time and game."""
    choose(page, "Crashes and decisions")
    state = tape.folded()
    crashed = [
        entry
        for entry in reversed(tape.journal[: tape.shown])
        if entry.kind == "game_finished" and entry.data["ending"] in {"disconnect", "stall"}
    ]
    assert len(crashed) > 2
    sync_api.expect(page.locator("#panel h3")).to_have_text("Crashes and decisions")
    rows: list[list[str]] = page.locator("#panel tbody tr").evaluate_all(
        "all => all.map(row => [...row.children].map(one => one.textContent))"
    )
    told = [row[:4] for row in rows if "disconnects" in row[3] or "stalls" in row[3]]
    assert told == [
        [moment(e.at_ms), e.data["game"], loser(state, e), e.data["details"]] for e in crashed
    ]


def loser(state: season_state.SeasonState, entry: contract.Entry) -> str:
    """Return the name of who lost a game."""
    game = state.games[entry.data["game"]]
    return state.engines[game.white if entry.data["loser"] == "white" else game.black].name


def test_the_graph_shows_every_node_with_its_state(page: sync_api.Page, tape: theatre.Tape) -> None:
    """Each event is a box with its nodes and their states; colours are those of the tabs."""
    choose(page, "Event graph")
    state = tape.folded()
    sync_api.expect(page.locator("#panel .flow article").first).to_be_visible()
    told: list[str] = page.locator("#panel .flow ol li").all_text_contents()
    nodes = [node for node in graph.build(state, by_round=True).nodes if node.event]
    assert sorted(told) == sorted(f"{node.label} ({node.state.value})" for node in nodes)
    colours = {events.Status.RANKED: "red", events.Status.RUNNING: "green"}
    for event in state.events.values():
        colour = colours.get(event.status, "orange")
        dot = page.locator(f'#events [data-event="{event.id}"] .dot')
        sync_api.expect(dot).to_have_class(f"dot {colour}")
        box = page.locator(
            "#panel .flow article", has=page.get_by_text(event.spec.name, exact=True)
        )
        sync_api.expect(box.first).to_have_class(colour)


def test_the_graph_says_who_goes_on_and_shows_an_engines_way(
    page: sync_api.Page, tape: theatre.Tape
) -> None:
    """A line says which places go on along it; pointing at an engine marks the events it is in."""
    choose(page, "Event graph")
    state = tape.folded()
    sync_api.expect(page.locator("#panel .flow article").first).to_be_visible()
    labels = page.locator("#panel .flow svg.wires text").all_text_contents()
    promotions = [p for event in state.events.values() for p in event.spec.promote if p.top > 1]
    assert promotions
    for promotion in promotions:
        assert f"top {promotion.top}" in labels
    played: dict[str, set[str]] = {}
    for event in state.events.values():
        for engine in event.entrants:
            played.setdefault(state.engines[engine].name, set()).add(event.id)
    name, entered = max(played.items(), key=lambda item: (len(item[1]), item[0]))
    marked = page.locator("#panel .flow article.way")
    sync_api.expect(marked).to_have_count(0)
    page.locator(f'#panel .flow li[data-engine="{name}"] a').first.hover()
    sync_api.expect(marked).to_have_count(len(entered))
    assert set(marked.evaluate_all("all => all.map(box => box.dataset.event)")) == entered
    led = page.locator("#panel .flow svg.wires path.way")
    assert led.count() >= len(entered) - 1
    page.locator("#panel h3").first.hover()
    sync_api.expect(marked).to_have_count(0)


def test_the_schedule_is_told_in_the_viewers_zone(page: sync_api.Page, tape: theatre.Tape) -> None:
    """Starts of played games are the journal's, starts ahead are estimates after them."""
    state = tape.folded()
    event = next(e for e in state.events.values() if e.status is events.Status.RUNNING)
    choose(page, "Schedule", event.id)
    sync_api.expect(page.locator(f'#panel tr[data-game="{event.order[0]}"]')).to_be_visible()
    told: dict[str, str] = page.locator("#panel tbody tr").evaluate_all(
        "all => Object.fromEntries(all.map(row => [row.dataset.game, row.children[5].textContent]))"
    )
    assert list(told) == list(event.order)
    for name in event.order:
        finished = state.games[name].finished
        if finished is not None:
            assert told[name] == moment(finished.started_ms)
        else:
            assert told[name].startswith("about ")
    assert any(text.startswith("about ") for text in told.values())
    ahead = next(name for name in event.order if state.games[name].finished is None)
    page.get_by_role("button", name="To the next game").click()
    sync_api.expect(page.locator(f'#panel tr[data-game="{ahead}"]')).to_be_in_viewport()
    first = state.engines[state.games[event.order[0]].white].name
    field = page.locator("#panel").get_by_label("Search")
    field.press_sequentially(first.lower())
    mine = [g for g in event.order if first in names_of(state, g)]
    sync_api.expect(page.locator("#panel tbody tr")).to_have_count(len(mine))
    sync_api.expect(field).to_be_focused()
    assert len(mine) < len(told)


def names_of(state: season_state.SeasonState, game: str) -> tuple[str, str]:
    """Return the names of both players of a game."""
    played = state.games[game]
    return state.engines[played.white].name, state.engines[played.black].name


def test_an_engines_page_adds_up(page: sync_api.Page, tape: theatre.Tape) -> None:
    """From its name in the standings; its results by opponent are the journal's."""
    choose(page, "Standings", "league-a")
    link = page.locator("#panel a.engine").first
    name = link.inner_text()
    link.click()
    rows = page.locator('#panel table[data-key="opponents"] tbody tr')
    sync_api.expect(page.locator("#panel strong")).to_have_text(name)
    state = tape.folded()
    wanted: dict[str, int] = {}
    for game, played in state.games.items():
        white, black = names_of(state, game)
        if played.finished is not None and name in {white, black}:
            other = black if white == name else white
            wanted[other] = wanted.get(other, 0) + 1
    sync_api.expect(rows).to_have_count(len(wanted))
    told = rows.evaluate_all(
        "all => Object.fromEntries(all.map(row =>"
        " [row.dataset.engine, row.querySelectorAll('td.text a').length]))"
    )
    assert told == wanted
    events_told = page.locator('#panel table[data-key="events"] tbody tr').evaluate_all(CELLS)
    engine = next(one for one, spec in state.engines.items() if spec.name == name)
    entered = [event for event in state.events.values() if engine in event.entrants]
    assert [texts for _, texts in events_told] == [
        {
            "crashes": str(event.tally.scores[engine].crashes),
            "version": state.engines[engine].version,
        }
        for event in entered
    ]
    sync_api.expect(page.locator("#panel svg.curve path")).to_have_count(2)  # its own rating, too


def test_the_archive_leads_to_the_games_that_were_asked_for(page: sync_api.Page) -> None:
    """What is chosen in the archive's form is asked of the download."""
    choose(page, "Archive")
    link = page.locator("#panel .filters a")
    sync_api.expect(link).to_have_attribute("href", "pgn/frc.pgn")
    page.get_by_label("Result").select_option("1-0")
    page.get_by_label("Engine").fill("SlowChess")
    sync_api.expect(link).to_have_attribute("href", "pgn/frc.pgn?engine=SlowChess&result=1-0")


def test_ratings_and_forecast_are_fit_for_everybody(browser: sync_api.Browser, url: str) -> None:
    """On a phone: no serious fault by axe, no sideways scrolling."""
    found: list[str] = []
    with page_faults.silent(browser, color_scheme="dark", viewport=PHONE) as opened:
        opened.goto(url)
        for tab, shown in (("Rating list", ".ratings"), ("Forecast", ".favourites")):
            choose(opened, tab)
            sync_api.expect(opened.locator(f"#panel {shown}")).to_be_visible()
            found += page_faults.violations(opened, "#tables")
        assert opened.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert not found, "\n".join(dict.fromkeys(found))


FIGURES = """([clock, eval_, figure]) => {
  for (const one of document.querySelectorAll(".clock")) one.textContent = clock
  for (const one of document.querySelectorAll(".card .eval")) one.textContent = eval_
  for (const one of document.querySelectorAll(".card .stats dd")) one.textContent = figure
}"""


NOTICE = """(shown) => {  // whether there is one, and when, is the season's
  const notice = document.querySelector("#notice")
  notice.style.display = shown ? "block" : "none"
  notice.style.height = "38px"
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
}"""


@pytest.mark.parametrize("noticed", [False, True])
@pytest.mark.parametrize(
    ("width", "height", "least"), [(1280, 720, 300), (1440, 900, 380), (1920, 900, 380)]
)
def test_figures_do_not_move_the_board(
    browser: sync_api.Browser, url: str, width: int, height: int, least: int, *, noticed: bool
) -> None:
    """They change with every move; a board that grew and shrank with them would be redrawn.

    A notice above the game takes little more than its own height from the board.
    """
    with page_faults.silent(browser, viewport={"width": width, "height": height}) as opened:
        opened.goto(url)
        sync_api.expect(opened.locator("#board g[data-piece]").first).to_be_visible()
        opened.evaluate(NOTICE, noticed)
        boxes = []
        for words in (["9.9", "0.00", "1"], ["1:59:59", "+153.20", "123.4Mn/s"]):
            opened.evaluate(FIGURES, words)
            boxes.append(opened.locator("#board").bounding_box())
        assert boxes[0] == boxes[1]
        assert boxes[0] is not None
        assert boxes[0]["width"] >= least
