"""The gateway's pages: an author's browser, and those who would use it against him."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import harness
import httpx
import pytest
import remote_stage
import test_gateway

from orchestrator import contract
from orchestrator.commands import keep_tests
from orchestrator.gateway import doors, pages
from orchestrator.ledger import lane_store, lanes, store, submissions
from orchestrator.testmatch import sprt_match

house, scene = test_gateway.house, test_gateway.scene  # fixtures
NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"
NEW = {
    "name": "dev-1",
    "engine": "tiny",
    "tested": "fix",
    "against": "main",
    "time_control": "nodes=20",
    "games": "40",
    "elo0": "0",
    "elo1": "5",
}


class Browser:
    """One that keeps cookies, sends what browsers send, and reads forms."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=60, follow_redirects=True)
        self.client.headers["Sec-Fetch-Site"] = "same-origin"
        self._secrets: dict[str, str] = {}  # of forms, by session

    def get(self, path: str = "") -> httpx.Response:
        """Load a page."""
        return self.client.get(f"{pages.HOME}{path}")

    def login(self, secret: str) -> httpx.Response:
        """Log in."""
        return self.client.post(f"{pages.HOME}/login", data={"token": secret})

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form, which carries the session's secret."""
        session = self.client.cookies[doors.COOKIE]
        if session not in self._secrets:
            found = re.search(r'name="form" value="([0-9a-f]+)"', self.get().text)
            assert found is not None
            self._secrets[session] = found[1]
        return self.client.post(
            f"{pages.HOME}{path}", data={"form": self._secrets[session], **fields}
        )


@pytest.fixture
def browser(scene: test_gateway.Scene) -> Iterator[Browser]:
    """Give a browser at the gateway."""
    made = Browser(str(scene.client.base_url))
    yield made
    made.client.close()


@pytest.fixture
def recipe(scene: test_gateway.Scene, house: test_gateway.House, tmp_path: pathlib.Path) -> None:
    """Put up the recipe of an engine whose repository is there."""
    made = remote_stage.repository(tmp_path)  # where a recipe's path is taken from
    text = made.read_text().replace('"tiny"\nmake', f'"{tmp_path}/tiny"\nmake')
    (house.data / "recipes").mkdir()
    path = house.data / "recipes" / "tiny.toml"
    path.write_text(f'{text}forks = ["https://example.org/*/tiny"]\n')


def _author(scene: test_gateway.Scene, name: str, match: str = "dev-*") -> str:
    return scene.token(name, "--author", "--match", match)


def test_nothing_is_shown_or_done_without_a_session(
    scene: test_gateway.Scene, browser: Browser
) -> None:
    """A page asks for a token; so does a form without a session; one in an address is none."""
    scene.open("dev-1")
    for path in ("", "/new", "/m/dev-1", "/m/dev-1/live", f"?token={scene.secret}"):
        shown = browser.get(path)
        assert "Log in" in shown.text
        assert "dev-1</a>" not in shown.text
    answer = browser.client.post(f"{pages.HOME}/m/dev-1/stop", data={"form": "0" * 64})
    assert "Log in" in answer.text
    assert len(scene.ledger.read(lanes.journal("dev-1"))) == 1, "it was opened, and no more"


def test_a_login_makes_a_session_that_is_not_the_token(
    scene: test_gateway.Scene, browser: Browser
) -> None:
    """Its cookie is for no script and no other site; it ends with a logout, or its token."""
    secret = _author(scene, "berta")
    answer = browser.login(secret)
    assert (answer.url.path, "berta" in answer.text) == (pages.HOME, True)
    (cookie,) = [
        header
        for step in answer.history
        for key, header in step.headers.multi_items()
        if key == "set-cookie"
    ]
    assert {"HttpOnly", "SameSite=strict", f"Path={pages.HOME}"} <= set(cookie.split("; "))
    kept = browser.client.cookies[doors.COOKIE]
    stored = str(scene.ledger.server.table("farm:ledger:batches:sessions"))
    for hidden in (secret, secret.split("_", 2)[2]):
        assert hidden not in answer.text + cookie + stored
    assert kept not in stored, "who reads Redis cannot make one"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy, "none may run"
    assert "form-action 'self'" in policy
    browser.post("/logout")
    browser.client.cookies.set(doors.COOKIE, kept, path=pages.HOME)
    assert "Log in" in browser.get().text, "a cookie that was kept opens nothing after"
    browser.login(secret)
    scene.farm("worker-token", "revoke", secret.split("_")[1], "--reason", "left")
    assert "Log in" in browser.get().text


def test_sessions_of_a_token_are_few(scene: test_gateway.Scene, browser: Browser) -> None:
    """One more ends the oldest; those whose time is over are deleted."""
    browser.login(scene.secret)
    first = browser.client.cookies[doors.COOKIE]
    for _ in range(8):
        browser.login(scene.secret)
    table = scene.ledger.server.table("farm:ledger:batches:sessions")
    assert len(table) == 8
    browser.client.cookies.set(doors.COOKIE, first, path=pages.HOME)
    assert "Log in" in browser.get().text


def test_wrong_tokens_at_the_form_count_as_at_the_api(
    scene: test_gateway.Scene, browser: Browser
) -> None:
    """The address is shut for both; neither page nor address shows what was tried."""
    for _ in range(doors.WRONG_AT_ONCE):
        answer = browser.login("farm_00_guess")
        assert (answer.status_code, "guess" in answer.text + str(answer.url)) == (401, False)
    assert browser.login(scene.secret).status_code == 429
    assert scene.ask("renew", batch="b", token="1.1").status_code == 429


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ],
)
def test_a_form_of_another_site_does_nothing(
    scene: test_gateway.Scene, browser: Browser, headers: dict[str, str]
) -> None:
    """Whatever it guesses; nor does it log somebody in, as another."""
    scene.open("dev-1")
    secret = _author(scene, "berta")
    browser.login(secret)
    found = re.search(r'name="form" value="([0-9a-f]+)"', browser.get().text)
    assert found is not None
    del browser.client.headers["Sec-Fetch-Site"]
    for form, where in ((found[1], "/m/dev-1/stop"), ("", "/login"), (found[1], "/logout")):
        fields = {"form": form, "token": secret}
        answer = browser.client.post(f"{pages.HOME}{where}", data=fields, headers=headers)
        assert answer.status_code == 403, where
    assert len(scene.ledger.read(lanes.journal("dev-1"))) == 1
    wrong = {"form": "0" * 64}
    here = {"Origin": str(scene.client.base_url)}
    answer = browser.client.post(f"{pages.HOME}/m/dev-1/stop", data=wrong, headers=here)
    assert answer.status_code == 403, "a form of this site that is none of the session's"
    right = {"form": found[1], "reason": "rebased"}
    answer = browser.client.post(f"{pages.HOME}/m/dev-1/stop", data=right, headers=here)
    assert answer.status_code == 200
    entry = scene.ledger.read(lanes.journal("dev-1"))[-1]
    assert (entry.kind, entry.data["reason"]) == (lanes.STOP, "rebased")


def test_a_new_test_is_submitted_and_approved_by_another_one(
    scene: test_gateway.Scene, browser: Browser, recipe: None
) -> None:
    """The form says what is wrong and keeps what was typed; what is right waits, as by the API."""
    browser.login(_author(scene, "berta"))
    assert "Tiny" in browser.get("/new").text
    for wrong, why in (
        ({"tested": "--upload-pack=touch /tmp/x"}, "tested"),
        ({"tested": "https://evil.example/x/tiny#main"}, "fork"),
        ({"tested": "https://example.org/../tiny#main"}, "tested"),
        ({"against": "ext::sh -c x#main"}, "against"),
        ({"engine": "../../etc/passwd"}, "engine"),
        ({"engine": "other"}, "recipes of: tiny"),
        ({"book": "../x"}, "book"),
        ({"book": "x"}, "the farm has: none"),
        ({"name": "../dev-2"}, "name"),
        ({"name": "x-1"}, "name must match "),
        ({"elo1": "-5"}, "elo0 below elo1"),
        ({"elo1": "nan"}, "elo1"),
        ({"games": "1e9"}, "games"),
        ({"time_control": "fast"}, "time control"),
        ({"options": "Hash"}, "NAME=VALUE"),
        ({"options": f"A={NASTY}" + "x" * 2_000}, "options"),
        ({"draw_count": "8"}, "all of its 3 numbers"),
        ({"also": "main main"}, "leave out its Elo bounds"),
        ({"also": "main\n--x", "elo0": "", "elo1": ""}, "also"),
        ({"against": ""}, "what it plays against"),
        ({"tuned": "Razor", "iterations": "5"}, "line 1"),
        ({"tuned": "Razor, int, 300, 100, 600, 20, 0.002", "iterations": "9" * 12}, "iterations"),
        ({"draw_count": "9" * 5_000, "draw_number": "1", "draw_score": "1"}, "draw"),
    ):
        answer = browser.post("/new", **NEW | wrong)
        assert (answer.status_code, why in answer.text) == (422, True), (wrong, answer.text)
        assert 'value="fix"' in answer.text or "tested" in wrong
        assert "submitted" not in str(answer.url)
        assert "<script" not in answer.text
    answer = browser.post("/new", **NEW)
    assert (answer.status_code, "Submitted" in answer.text) == (200, True), answer.text
    assert "tiny: fix against main, 40 games at 20 nodes" in answer.text
    assert "alpha 0.05, beta 0.05, elo0 0.0, elo1 5.0, model normalized" in answer.text
    assert "Withdraw" in answer.text
    own = browser.get("/m/dev-1")
    assert (own.status_code, "waits for approval" in own.text, "Withdraw" in own.text) == (
        *(200, True, True),
    )
    assert "Approve" not in own.text
    assert "Approve" not in answer.text, "nobody approves own ones"
    assert browser.post("/m/dev-1/approve").status_code == 409
    tuned = {"tuned": "Razor, int, 300, 100, 600, 20, 0.002", "iterations": "5", "pairs": "2"}
    answer = browser.post("/new", **NEW | tuned | {"name": "dev-t"})
    assert "fix tuned, 5 iterations of 2 pairs" in answer.text
    assert "Taken out" in browser.post("/m/dev-t/refuse").text
    assert browser.post("/new", **NEW).status_code == 422, "sent again it waits once"
    waiting = submissions.RedisSubmissions(scene.ledger.server)
    assert [each.proposed["tested"] for each in waiting.all() if not each.refused_by] == ["fix"]
    stranger = Browser(str(scene.client.base_url))
    stranger.login(_author(scene, "dora", "other-*"))
    assert "dev-1" not in stranger.get().text
    assert stranger.get("/m/dev-1").status_code == 404
    assert stranger.post("/m/dev-1/approve").status_code == 404
    stranger.login(scene.token("worker", "--match", "dev-*"))
    assert "Approve" not in stranger.get().text
    assert stranger.post("/m/dev-1/approve").status_code == 409, "its token plays, and no more"
    assert stranger.get("/new").status_code == 409
    stranger.login(_author(scene, "carl"))
    assert "against: main" in stranger.get().text, "who approves it sees all that is asked"
    assert "Approved" in stranger.post("/m/dev-1/approve").text
    assert [each.match for each in waiting.all() if each.ready] == ["dev-1"]
    stranger.client.close()


def test_an_approved_test_is_fetched_and_kept_and_its_workers_build_it(
    scene: test_gateway.Scene,
    browser: Browser,
    recipe: None,
    house: test_gateway.House,
    redis: harness.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No lane plays what nobody has built here; what cannot be fetched its author is told."""
    berta, carl = _author(scene, "berta"), _author(scene, "carl")
    words = {key: NEW[key] for key in ("name", "engine", "tested", "against")}
    words |= {"options": "Hash=1", "book": ""}
    asked = {**words, "games": 40, "time_control": {"nodes": 20}, "test": {"elo0": 0, "elo1": 5}}
    assert scene.ask("submit", berta, **asked).json() == {"recorded": True}
    missing = {**asked, "name": "dev-none", "tested": "no-such-branch"}
    assert scene.ask("submit", berta, **missing).json() == {"recorded": True}
    unsigned = {**asked, "name": "dev-signed", "bench": 7}
    assert scene.ask("submit", berta, **unsigned).json() == {"recorded": True}
    lots = {"tested": "fix", "engine": "tiny", "time_control": {"nodes": 20}, "games": 12}
    tuning = {"parameters": "Razor, int, 300, 100, 600, 20, 0.002", "iterations": 5, "pairs": 2}
    assert scene.ask("submit", berta, name="dev-t", tuning=tuning, **lots).status_code == 200
    gauntlet = {"against": "main", "also": ["fix", "main"]}
    assert scene.ask("submit", berta, name="dev-g", **gauntlet, **lots).status_code == 200
    for name in ("dev-1", "dev-none", "dev-signed", "dev-t", "dev-g"):
        assert scene.ask("approve", carl, match=name).json() == {"recorded": True}
    monkeypatch.setenv("FARM_DATA", str(house.data))
    monkeypatch.setenv("FARM_REDIS_URL", redis.url_of("orchestrator"))
    with store.connect(redis.url_of("orchestrator")) as ledger:
        keepers = keep_tests.Keepers(ledger, house.data / "tests")
        waiting = submissions.RedisSubmissions(ledger.server)

        def is_done() -> bool:
            assert keepers._pass()
            return not any(each.ready for each in waiting.all())

        harness.wait(is_done, "the sources")
        (failed,) = waiting.all()
        assert failed.match == "dev-none"
        assert "no-such-branch cannot be fetched" in failed.failed
        assert str(house.data) not in failed.failed
        browser.login(berta)
        assert "no-such-branch" in browser.get().text
        assert scene.ask("submit", berta, **{**asked, "name": "dev-none"}).json()["recorded"]
        assert not waiting.all()[0].ready, "it is approved again, or not played"
        spec = keepers._matches["dev-1"].spec
        assert spec.engines[0].options == {"Hash": "1"}
        assert [build and build.bench for build in spec.builds] == [9323, 9324]
        assert keepers._matches["dev-signed"].spec.builds[0].bench == 7  # type: ignore[union-attr]
        lane = lanes.Lane("hall", "a", "host", frozenset({0}), 4096)
        assert "builds-from-source" in lanes.Needs(boxes=spec.boxes).unmet(lane)
        opened = {"dev-1", "dev-signed", "dev-t", "dev-g"}
        assert set(lane_store.RedisLanes(ledger.server).matches()) == opened
        engines = keepers._matches["dev-g"].spec.engines
        assert [engine.name for engine in engines] == [
            *("Tiny fix (tested)", "Tiny main", "Tiny fix", "Tiny main")
        ]
        tuned = keepers._matches["dev-t"].spec
        assert (tuned.games, [engine.name for engine in tuned.engines]) == (
            *(20, ["Tiny fix +", "Tiny fix -"]),
        )
        for name in opened - {"dev-1"}:
            scene.lanes.close_match(name)
        dealt = scene.claim("b1", berta, files=[], builds=True)
        assert [build["bench"] for build in dealt["builds"]] == [9323, 9324]
        assert dealt["orders"] == []
        assert scene.fetch(dealt["builds"][0]["archive"], berta).status_code == 200
        built = [remote_id(build) for build in dealt["builds"]]
        order = scene.claim("b2", berta, files=built, builds=True)["orders"][0]
        assert order["white"]["command"] == ["tiny"]
        assert "was played already" in scene.ask("submit", carl, **asked).json()["error"]
        for match in keepers._matches.values():
            match.close()
        again = keep_tests.Keepers(ledger, house.data / "tests")
        assert again._pass(), "a keeper that comes after goes on with them"
        assert again._matches.keys() == opened
        for match in again._matches.values():
            match.end("the test is over")
            match.close()


def _entry(seq: int, kind: str, data: dict[str, object]) -> contract.Entry:
    return contract.Entry(seq=seq, at_ms=seq, kind=kind, by="", data=data)


def remote_id(build: dict[str, object]) -> str:
    """Return what a build is known by."""
    return test_gateway.remote.SourceBuild.model_validate(build).id


def test_what_people_and_workers_call_themselves_is_text(
    scene: test_gateway.Scene, browser: Browser, house: test_gateway.House
) -> None:
    """On all pages; a match, its graphs, builds and owners are there to be read."""
    engines = [
        contract.EngineSpec(id=name, name=f"{name} {NASTY}", command=("x",)) for name in "ab"
    ]
    spec = scene.open("dev-1", engines=engines)
    folder = house.data / "tests" / "dev-1"
    folder.mkdir(parents=True)
    test = sprt_match.sprt.Test(0.0, 20.0)
    (folder / "match.json").write_text(sprt_match.encoded(spec, sprt_match.Terms(test=test)))
    build = {"worker": f"w {NASTY}", "name": NASTY, "commit": "", "build": "b", "machine": "x"}
    build |= {"compiler": NASTY, "program": "", "bench": None, "seconds": 1, "why": NASTY}
    entries = [_entry(1, lanes.BUILD, build | {"log": NASTY})]
    for game in range(1, 9):
        data = {"game": game, "lane": "", "hall": "", "host": f"h {NASTY}/x"}
        data |= {"attempt": f"t/{game}", "result": "1-0", "ending": "checkmate", "loser": "black"}
        data |= {"details": NASTY, "note": NASTY, "plies": 3, "pgn": "*"}
        entries.append(_entry(game + 1, lanes.GAME, data))
    (folder / "journal.jsonl").write_text("".join(f"{entry.line()}\n" for entry in entries))
    browser.login(_author(scene, "berta", "*"))
    scene.ask("copy", _author(scene, "carl"), match="dev-1", name="dev-2", games=7)
    for path in ("", "/m/dev-1", "/m/dev-1/live"):
        page = browser.get(path)
        assert page.status_code == 200, page.text
        assert "<script" not in page.text
        assert "<img" not in page.text
        assert "\u202e" not in page.text
    page = browser.get("/m/dev-1").text
    assert "&lt;script&gt;" in page
    assert page.count('class="graph"') == 2
    assert "+4 =0 -4" in page
    assert "evidence" not in page, "who plays does not see how near he is to being found"
    worker = Browser(str(scene.client.base_url))
    worker.login(scene.secret)
    plain = worker.get("/m/dev-1").text
    assert "+4 =0 -4" in plain
    assert "Played by" not in plain
    assert "Builds" not in plain
    assert "berta" not in worker.get().text, "of others' tokens authors alone are told"
    for _ in range(pages.LOOKS_AT_ONCE):
        last = worker.get("/m/dev-404").status_code
    assert last == 429
    worker.client.close()
    assert browser.get("/m/..%2f..%2fetc").status_code == 404
    assert browser.get("/m/dev-404").status_code == 404


def test_an_author_sees_whose_fault_games_were_and_which_revisions_played(
    scene: test_gateway.Scene, browser: Browser, house: test_gateway.House
) -> None:
    """With the games' numbers and the engine's last lines, equal ones once; not who only plays."""
    engines = [contract.EngineSpec(id=name, name=name, command=("x",)) for name in ("new", "old")]
    sources = tuple(_source(engine.name) for engine in engines)
    spec = scene.open("dev-1", engines=engines).model_copy(update={"builds": sources})
    folder = house.data / "tests" / "dev-1"
    folder.mkdir(parents=True)
    (folder / "match.json").write_text(sprt_match.encoded(spec, sprt_match.Terms()))
    said = f"first line {NASTY}\nassert failed: nlines"
    entries = []
    for seq, game in enumerate((3, 1, 5, 2), start=1):
        data = {"game": game, "lane": "", "hall": "", "host": "h/x", "attempt": f"t/{game}"}
        data |= {"result": "0-1", "ending": "disconnect", "loser": "white", "plies": 3, "pgn": "*"}
        data |= {"details": "White disconnects", "stderr": said}
        data["note"] = f"signal SIGABRT; its last line: {said.splitlines()[-1]}"
        entries.append(_entry(seq, lanes.GAME, data))
    (folder / "journal.jsonl").write_text("".join(f"{entry.line()}\n" for entry in entries))
    browser.login(_author(scene, "berta", "*"))
    page = browser.get("/m/dev-1").text
    what = "White disconnects: signal SIGABRT; its last line: assert failed: nlines"
    assert f"3 games (1, 3, 5): new: {what}" in page
    assert f"game 2: old: {what}" in page
    assert page.count("first line &lt;script&gt;") == 2
    assert page.count("assert failed: nlines") == 2, "the line is not there once more"
    assert page.count("\u202e") == page.count("<script") == 0
    for source in sources:
        assert (source.commit in page, f'<td class="number">{source.bench}' in page) == (True, True)
    assert "h/x: Tiny new, Tiny old: built for an earlier match" in page, "its games have builds"
    browser.login(scene.secret)
    plain = browser.get("/m/dev-1").text
    assert "disconnect 3" in plain
    for hidden in ("first line", sources[0].commit):
        assert hidden not in plain, "who only plays sees score and graphs"


def _source(name: str) -> test_gateway.remote.SourceBuild:
    return test_gateway.remote.SourceBuild(
        name=f"Tiny {name}",
        commit=name.encode().hex() * 4,
        archive="a" * 64,
        make="make",
        program="tiny",
        bench=9_000 + len(name) + ord(name[0]),
    )


def test_what_is_no_form_is_refused(scene: test_gateway.Scene, browser: Browser) -> None:
    """By its size before it is read, by its fields' number, by bytes that are no text."""
    browser.login(_author(scene, "berta"))
    where = f"{pages.HOME}/m/dev-1/stop"
    for body, status in (
        (b"x" * (pages.FORM_BYTES + 1), 413),
        (b"&".join(b"a%d=1" % at for at in range(100)), 400),
        (b"form=%ff%fe", 400),
        (b"\xff\xfe", 400),
        (b"", 403),
    ):
        assert browser.client.post(where, content=body).status_code == status, body[:20]
    assert browser.client.put(where).status_code == 405


def test_an_author_steers_by_the_form(scene: test_gateway.Scene, browser: Browser) -> None:
    """Each form is the desk's verb: priority, share, stop, a copy, to go on, to withdraw."""
    scene.open("dev-1")
    browser.login(_author(scene, "berta"))
    assert browser.post("/m/dev-1/change", priority="2", share="").status_code == 200
    assert browser.post("/m/dev-1/change", priority="", share="").status_code == 422
    assert browser.post("/m/dev-1/change", priority="²").status_code == 422
    copied = {"name": "dev-2", "time_control": "60+0.6", "games": "10"}
    assert "Submitted" in browser.post("/m/dev-1/copy", **copied).text
    assert browser.post("/m/dev-1/copy", name="x").status_code == 409
    assert browser.post("/m/dev-1/continue").status_code == 409, "it is open"
    scene.lanes.close_match("dev-1")
    assert "Submitted" in browser.post("/m/dev-1/continue").text
    waiting = submissions.RedisSubmissions(scene.ledger.server)
    goes_on, copy = sorted(waiting.all(), key=lambda each: each.match)
    assert (goes_on.goes_on, goes_on.ready) == (True, False)
    assert (copy.copy_of, copy.changes["time_control"]["base_ms"]) == ("dev-1", 60_000)
    assert "Taken out" in browser.post("/m/dev-2/refuse", reason="rebased").text
    assert waiting.find("dev-2").refused_by.startswith("berta@token:")  # type: ignore[union-attr]
