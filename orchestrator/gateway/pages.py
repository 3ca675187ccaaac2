"""The gateway's pages: what authors do by the API, with a form in a browser.

Who has an access token logs in with it and sees the test matches of its scope; with a token of
``--author`` also submits, approves, steers. Each form is one of the desk's verbs, with its checks
and limits. Invariants:

* nothing is shown, and nothing done, without a session; a token is in no address and no page;
* a form is taken from a page of the same session alone (its secret is in the form, and browsers say
  which site it comes from), so no other site's page can send one;
* whatever people and workers call themselves is text: all of it is escaped, and no script may run.
"""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import pydantic
import structlog
from starlette import concurrency, requests, responses, routing

from orchestrator import contract
from orchestrator.common import errors, text
from orchestrator.contract import remote
from orchestrator.gateway import desk, doors, html, match_page, watching
from orchestrator.ledger import submissions, worker_tokens
from orchestrator.testmatch import spsa

log = structlog.get_logger()

HOME: Final = "/work/tests"
FORM_BYTES: Final = 32_768  # of what a form sends
FIELDS: Final = 64
ENDED: Final = 50  # matches that are over in the list: the newest
LOOKS_A_SECOND: Final = 0.5  # matches looked at, of one token: an old one takes seconds to read
LOOKS_AT_ONCE: Final = 30
OWNERS: Final = 200  # in the list of workers: those heard of last
RECENT_MS: Final = 600_000  # ms: a worker that was heard of since is at work
DONE: Final = {  # what is said after a form was taken; its key stands in the address
    "submitted": "Submitted. Somebody else has to approve it.",
    "approved": "Approved. It begins as soon as its sources are fetched.",
    "refused": "Taken out.",
    "steered": "Written down. The match's keeper follows within a few seconds.",
}
MODELS: Final = (("normalized", "normalized Elo"), ("logistic", "logistic Elo"))


class Visit(NamedTuple):
    """A request of somebody who is logged in: whose token it is, and what its forms carry."""

    token: worker_tokens.WorkerToken
    secret: str
    query: Mapping[str, str]
    fields: Mapping[str, str]
    path: Mapping[str, str]


Page: TypeAlias = Callable[[Visit], responses.Response]
Endpoint: TypeAlias = Callable[[requests.Request], Awaitable[responses.Response]]


class Pages:
    """The pages; ``routes`` are theirs."""

    def __init__(
        self,
        dealer: desk.Desk,
        tokens: worker_tokens.RedisTokens,
        at_the_door: doors.Doors,
        watched: watching.Watched,
    ) -> None:
        self._desk, self._tokens, self._doors, self._watched = dealer, tokens, at_the_door, watched
        self._looks = doors.Limits(LOOKS_A_SECOND, LOOKS_AT_ONCE)

    def close(self) -> None:
        """Let nothing go on behind the pages: the server ends."""
        self._watched.close()

    def routes(self) -> list[routing.Route]:
        """Return the addresses and what answers there."""
        shown: dict[str, Page] = {
            "": self._home,
            "/new": self._new,
            "/m/{match}": self._match,
            "/m/{match}/live": self._live,
        }
        taken: dict[str, Page] = {
            "/new": self._propose,
            "/m/{match}/copy": self._copy,
            "/m/{match}/stop": self._stop,
            "/m/{match}/change": self._change,
            "/m/{match}/continue": self._continue,
            "/m/{match}/approve": self._approve,
            "/m/{match}/refuse": self._refuse,
        }
        return [
            routing.Route(f"{HOME}/style.css", _style),
            routing.Route(f"{HOME}/login", self._login, methods=["POST"]),
            routing.Route(f"{HOME}/logout", self._logout, methods=["POST"]),
            *(
                routing.Route(f"{HOME}{path}", self._endpoint(page), methods=["GET"])
                for path, page in shown.items()
            ),
            *(
                routing.Route(f"{HOME}{path}", self._endpoint(page), methods=["POST"])
                for path, page in taken.items()
            ),
        ]

    # -- coming in ---------------------------------------------------------------------------

    def _endpoint(self, page: Page) -> Endpoint:
        async def endpoint(request: requests.Request) -> responses.Response:
            try:
                token = await self._doors.by_session(request)
                if token is None:
                    return _login_page() if request.method != "POST" else _see(HOME)
                with self._doors.share(token.id):
                    secret = _form_secret(request)
                    fields = await self._fields(request, secret)
                    query, path = dict(request.query_params), dict(request.path_params)
                    visit = Visit(token, secret, query, fields, path)
                    return await concurrency.run_in_threadpool(page, visit)
            except (doors.AnsweredError, desk.RefusedBatchError, errors.FarmError) as error:
                return _refusal(error)

        return endpoint

    async def _fields(self, request: requests.Request, secret: str) -> dict[str, str]:
        """Return what a form has sent; raise ``AnsweredError`` unless it is one of this session."""
        if request.method != "POST":
            return {}
        fields = await _sent(request)
        if not hmac.compare_digest(fields.get("form", "").encode(), secret.encode()):
            raise doors.AnsweredError(403, "this form is of another session: load the page again")
        return fields

    async def _login(self, request: requests.Request) -> responses.Response:
        try:
            fields = await _sent(request)
            presented = fields.get("token", "").strip()
            token, session = await self._doors.begin_session(request, presented)
        except doors.AnsweredError as refused:
            return _login_page(str(refused), refused.answer.status_code)
        except errors.FarmError as error:
            return _refusal(error)
        log.info("session.begun", token=token.id, name=token.name)
        answer = _see(HOME)
        answer.set_cookie(
            doors.COOKIE,
            session,
            path=HOME,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def _logout(self, request: requests.Request) -> responses.Response:
        try:
            if await self._doors.by_session(request) is not None:
                await self._fields(request, _form_secret(request))
                await self._doors.end_session(request)
        except (doors.AnsweredError, errors.FarmError) as error:
            return _refusal(error)
        answer = _see(HOME)
        answer.delete_cookie(doors.COOKIE, path=HOME, httponly=True, samesite="strict")
        return answer

    # -- the list ----------------------------------------------------------------------------

    def _home(self, visit: Visit) -> responses.Response:
        lines = [line for line in self._watched.lines() if visit.token.allows(line["name"])]
        is_open = [line for line in lines if line["status"] != "finished"]
        over = [line for line in lines if line["status"] == "finished"][:ENDED]
        waits = self._desk.waiting(visit.token)
        done = DONE.get(visit.query.get("done", ""))
        heads = ("match", "engines", "time control", "games ", "score ", "Elo ", "LLR ", "state")
        return _page(
            "Test matches",
            visit,
            html.tag("div", done, class_="card notice", role="status") if done else None,
            html.tag("h2", f"Waiting ({len(waits)})") if waits else None,
            self._waiting(visit, waits) if waits else None,
            html.tag("h2", f"Open ({len(is_open)})"),
            html.table(heads, map(_line, is_open)) if is_open else _quiet("None is played now."),
            html.tag("h2", f"Finished ({len(over)})"),
            html.table(heads, map(_line, over)) if over else _quiet("None yet."),
            self._workers(visit),
        )

    def _waiting(self, visit: Visit, waits: list[submissions.Submission]) -> html.Markup:
        rows = [
            (
                _link(each.match),
                html.join([each.about, _asked(each)]),
                each.by.partition("@")[0],
                _moment(each.at_ms),
                _state(each),
                self._verdicts(visit, each),
            )
            for each in waits
        ]
        return html.table(("match", "what", "by", "since", "state", ""), rows)

    def _verdicts(self, visit: Visit, each: submissions.Submission) -> html.Markup | None:
        """Return what an author may do with a match that waits."""
        if not visit.token.author or each.refused_by or each.ready:
            return None
        own, place = self._desk.is_own(visit.token, each), f"{HOME}/m/{each.match}"
        forms = []
        if not own and each.asks and not each.approved_by and not each.failed:
            forms.append(html.form(f"{place}/approve", visit.secret, html.tag("button", "Approve")))
        word = html.tag("button", "Withdraw" if own else "Refuse", class_="danger")
        return html.join([*forms, html.form(f"{place}/refuse", visit.secret, word)])

    def _workers(self, visit: Visit) -> html.Markup:
        """Return who plays; of others' tokens authors alone see names."""
        uses, now_ms = self._tokens.uses(), self._desk.now_ms()
        rows = []
        used = (
            (int(uses[token.id].seen.get("at_ms", 0)), token, uses[token.id])
            for token in self._tokens.all()
            if token.id in uses and (visit.token.author or token.id == visit.token.id)
        )
        newest = sorted(used, key=lambda owner: owner[0], reverse=True)
        for seen_ms, token, use in newest[:OWNERS]:
            rows.append(
                (
                    token.name,
                    str(use.seen.get("host", "")),
                    use.games,
                    use.refused,
                    use.batches,
                    _moment(seen_ms) if seen_ms else "",
                    "at work" if now_ms - seen_ms < RECENT_MS else token.state(now_ms),
                )
            )
        heads = ("owner", "last machine", "games ", "refused ", "batches ", "last claim", "state")
        shown = html.table(heads, rows) if rows else _quiet("No worker has come yet.")
        return html.join([html.tag("h2", "Workers"), shown])

    # -- one match ---------------------------------------------------------------------------

    def _match(self, visit: Visit) -> responses.Response:
        name = _allowed(visit)
        if not self._looks.take(visit.token.id):
            raise doors.AnsweredError(429, "too many matches are looked at with this token", 5)
        shown = self._watched.find(name)
        if shown is None:
            waits = [each for each in self._desk.waiting(visit.token) if each.match == name]
            if waits:
                return _page(name, visit, self._waiting(visit, waits))
            raise doors.AnsweredError(404, f"there is no test match {name}")
        body = match_page.shown(
            shown, visit.secret, f"{HOME}/m/{name}", is_author=visit.token.author
        )
        return _page(name, visit, body)

    def _live(self, visit: Visit) -> responses.Response:
        name = _allowed(visit)
        boards = match_page.boards(self._watched.games(name))
        back = html.tag("p", html.tag("a", "The match", href=f"{HOME}/m/{name}"))
        return _page(f"{name}: live games", visit, back, boards, every_seconds=5)

    # -- a new one ---------------------------------------------------------------------------

    def _new(self, visit: Visit) -> responses.Response:
        if not visit.token.author:
            raise desk.RefusedBatchError(desk.NO_AUTHOR)
        return self._form(visit, {}, "")

    def _propose(self, visit: Visit) -> responses.Response:
        try:
            self._desk.propose(visit.token, _proposed(visit.fields))
        except pydantic.ValidationError as error:
            where, what = contract.first_wrong(error)
            return self._form(visit, visit.fields, f"{where or 'test'}: {what}", 422)
        except (ValueError, desk.RefusedBatchError) as error:
            return self._form(visit, visit.fields, str(error), 422)
        return _see(f"{HOME}?done=submitted")

    def _form(
        self, visit: Visit, given: Mapping[str, str], error: str, status: int = 200
    ) -> responses.Response:
        engines, books = self._desk.catalogue.engines(), self._desk.catalogue.books()

        def field(label: str, name: str, usual: object = "", **more: object) -> html.Markup:
            return html.field(label, name, given.get(name, usual), **more)

        def choice(label: str, name: str, options: list[tuple[str, str]]) -> html.Markup:
            return html.choice(label, name, options, given.get(name, ""))

        number = {"inputmode": "numeric"}
        named = [(key, recipe.name or key) for key, recipe in engines.items()]
        parts = (
            (
                "Engine",
                choice("Recipe", "engine", named),
                field("Tested: branch, tag, commit or FORK#BRANCH", "tested", required=True),
                field("Against", "against", "main"),
                field("Nodes of its bench, if its commit does not say", "bench", **number),
                field("Bench of the other one", "bench_against", **number),
                field("Options (Threads=1 Hash=16)", "options"),
                field("Options of the other one", "options_against"),
            ),
            (
                "Games",
                field(f"Name of the test, as {visit.token.scope}", "name", required=True),
                field("Seconds (8+0.08)", "time_control", "8+0.08", required=True),
                choice("Openings", "book", [("", "the farm's"), *((key, key) for key in books)]),
                field("Games at most", "games", 40_000, required=True, **number),
                field("Priority", "priority", 0, **number),
                field("Share", "share", 1, **number),
            ),
            (
                "Sequential test (empty: all games are played)",
                field("Elo of H0", "elo0", "0"),
                field("Elo of H1", "elo1", "2"),
                choice("Model", "model", list(MODELS)),
                field("Alpha", "alpha", 0.05),
                field("Beta", "beta", 0.05),
            ),
            (
                "Several opponents: a gauntlet, without a sequential test",
                html.lines("Further opponents, one a line", "also", given.get("also", "")),
            ),
            (
                "Tune by SPSA instead: without an opponent and a sequential test",
                html.lines(f"Parameters, one a line: {spsa.LINE}", "tuned", given.get("tuned", "")),
                field("Iterations", "iterations", **number),
                field("Pairs of games in each", "pairs", **number),
            ),
            (
                "Early ends (empty: none)",
                field("Draw: from move", "draw_number", 34, **number),
                field("Draw: moves in a row", "draw_count", 8, **number),
                field("Draw: within centipawns", "draw_score", 20, **number),
                field("Resign: moves in a row", "resign_count", 3, **number),
                field("Resign: centipawns", "resign_score", 600, **number),
                field("Draw after moves", "max_moves", **number),
            ),
        )
        fieldsets = [
            html.tag("fieldset", html.tag("legend", legend), html.tag("div", *inner, class_="grid"))
            for legend, *inner in parts
        ]
        send = html.tag("button", "Submit for approval")
        none = "The farm's operator has put up no recipe (docs/workers.md)."
        return _page(
            "New test",
            visit,
            html.tag("div", error, class_="card error", role="alert") if error else None,
            _quiet(none) if not engines else None,
            html.form(f"{HOME}/new", visit.secret, *fieldsets, send),
            status=status,
        )

    # -- what forms ask ----------------------------------------------------------------------

    def _copy(self, visit: Visit) -> responses.Response:
        fields = {"match": _allowed(visit), "name": visit.fields.get("name", "")}
        games, control = (visit.fields.get(key, "").strip() for key in ("games", "time_control"))
        asked = _read(
            remote.Copied,
            fields | ({"games": games} if games else {}),
            control=control,
        )
        self._desk.copy(visit.token, asked)
        return _see(f"{HOME}?done=submitted")

    def _stop(self, visit: Visit) -> responses.Response:
        fields = {"match": _allowed(visit), "reason": visit.fields.get("reason", "")}
        self._desk.steer(visit.token, _read(remote.Steered, fields | {"stop": True}))
        return _see(f"{HOME}?done=steered")

    def _change(self, visit: Visit) -> responses.Response:
        given = {key: visit.fields.get(key, "").strip() for key in ("priority", "share")}
        fields = {"match": _allowed(visit), "reason": visit.fields.get("reason", "")}
        fields |= {key: value for key, value in given.items() if value}
        self._desk.steer(visit.token, _read(remote.Steered, fields))
        return _see(f"{HOME}?done=steered")

    def _continue(self, visit: Visit) -> responses.Response:
        self._desk.go_on(visit.token, _read(remote.Agreed, {"match": _allowed(visit)}))
        return _see(f"{HOME}?done=submitted")

    def _approve(self, visit: Visit) -> responses.Response:
        self._desk.approve(visit.token, _read(remote.Agreed, {"match": _allowed(visit)}))
        return _see(f"{HOME}?done=approved")

    def _refuse(self, visit: Visit) -> responses.Response:
        fields = {"match": _allowed(visit), "reason": visit.fields.get("reason", "")}
        self._desk.refuse(visit.token, _read(remote.Refused, fields))
        return _see(f"{HOME}?done=refused")


# -- what is read ------------------------------------------------------------------------------


async def _sent(request: requests.Request) -> dict[str, str]:
    """Return a form's fields; raise ``AnsweredError`` for another site's, and what is none."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    elsewhere = site != "same-origin" if site is not None else False
    if site is None and origin is not None:
        elsewhere = urllib.parse.urlsplit(origin).hostname != request.url.hostname
    if elsewhere:
        raise doors.AnsweredError(403, "this form was sent by another site")
    body = await doors.read_body(request, FORM_BYTES)
    try:
        pairs = urllib.parse.parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=FIELDS, errors="strict"
        )
    except ValueError:
        raise doors.AnsweredError(400, "the body is no form") from None
    return dict(pairs)


def _allowed(visit: Visit) -> str:
    """Return the match that an address names; raise ``AnsweredError`` beyond the token's scope."""
    name = visit.path["match"]
    if not visit.token.allows(name):
        raise doors.AnsweredError(404, "there is no such test match")
    return name


def _read(kind: type[contract.Message], fields: Mapping[str, Any], control: str = "") -> Any:
    """Return a message of a form's fields; raise ``AnsweredError``."""
    try:
        clock = {"time_control": _control(control)} if control else {}
        return kind.model_validate({**fields, **clock})
    except pydantic.ValidationError as error:
        where, what = contract.first_wrong(error)
        raise doors.AnsweredError(422, f"{where}: {what}") from None
    except ValueError as error:
        raise doors.AnsweredError(422, str(error)) from None


def _control(words: str) -> contract.TimeControl:
    try:
        return contract.TimeControl.parse(words, "s")
    except ValueError:
        raise ValueError(f"time control: found {words[:40]!r}; allowed: 8+0.08") from None


def _proposed(fields: Mapping[str, str]) -> remote.Proposed:
    """Read the form of a new test; raise ``ValueError``. What is empty is left out."""
    given = {key: value.strip() for key, value in fields.items() if value.strip()}
    if "tuned" in given:  # instead of what the form suggests
        given = {key: given[key] for key in given.keys() - {"against", "also", "elo0", "elo1"}}
    plain = (
        *("name", "engine", "tested", "against", "bench", "bench_against", "options"),
        *("options_against", "book", "games", "priority", "share", "max_moves"),
    )
    wanted: dict[str, Any] = {key: given[key] for key in plain if key in given}
    wanted["time_control"] = _control(given.get("time_control", ""))
    if "elo0" in given or "elo1" in given:
        keys = ("elo0", "elo1", "alpha", "beta", "model")
        wanted["test"] = {key: given[key] for key in keys if key in given}
    if "also" in given:
        wanted["also"] = given["also"].split()
    tuned = {"parameters": "tuned", "iterations": "iterations", "pairs": "pairs"}
    if any(word in given for word in tuned.values()):
        wanted["tuning"] = {key: given[word] for key, word in tuned.items() if word in given}
    for rule, words in (
        (
            "draw",
            {"move_number": "draw_number", "move_count": "draw_count", "score_cp": "draw_score"},
        ),
        ("resign", {"move_count": "resign_count", "score_cp": "resign_score"}),
    ):
        parts = {key: given[word] for key, word in words.items() if word in given}
        if len(parts) not in (0, len(words)):
            raise ValueError(f"{rule}: give all of its {len(words)} numbers, or none")
        if parts:
            wanted[rule] = parts
    return remote.Proposed.model_validate(wanted)


def _form_secret(request: requests.Request) -> str:
    """Return what a session's own forms carry; nobody else can make it."""
    session = request.cookies.get(doors.COOKIE, "")
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


# -- what is shown -----------------------------------------------------------------------------


def _page(
    title: str,
    visit: Visit | None,
    *parts: object,
    status: int = 200,
    every_seconds: int = 0,
) -> responses.Response:
    head = [
        html.tag("meta", charset="utf-8"),
        html.tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html.tag("title", title),
        html.tag("link", rel="stylesheet", href=f"{HOME}/style.css"),
    ]
    if every_seconds:
        head.append(html.tag("meta", http_equiv="refresh", content=str(every_seconds)))
    bar: list[object] = [html.tag("h1", html.tag("a", "Test matches", href=HOME))]
    if visit is not None:
        if visit.token.author:
            bar.append(html.tag("a", "New test", href=f"{HOME}/new"))
        out = html.tag("button", "Log out", class_="plain")
        bar.append(html.form(f"{HOME}/logout", visit.secret, visit.token.name, " ", out))
    main = html.tag("main", html.tag("h2", title), *parts)
    body = html.tag("body", html.tag("header", *bar), main)
    whole = f"<!doctype html>{html.tag('html', html.tag('head', *head), body, lang='en')}"
    return responses.Response(whole.encode(), status, html.POLICY, "text/html")


def _login_page(error: str = "", status: int = 200) -> responses.Response:
    token = html.field("Access token", "token", type="password", autocomplete="off", required=True)
    form = html.tag(
        "form",
        token,
        html.tag("p", html.tag("button", "Log in")),
        method="post",
        action=f"{HOME}/login",
    )
    return _page(
        "Log in",
        None,
        html.tag("div", error, class_="card error", role="alert") if error else None,
        html.tag("div", form, class_="card"),
        _quiet("The farm's operator makes tokens (farm worker-token create NAME --author)."),
        status=status,
    )


def _refusal(error: Exception) -> responses.Response:
    status, headers = 409, {}
    if isinstance(error, doors.AnsweredError):
        status = error.answer.status_code
        headers = {
            key: value for key, value in error.answer.headers.items() if key == "retry-after"
        }
    elif isinstance(error, errors.LedgerAwayError):
        log.warning("redis.away", error=str(error))
        status, headers = 503, {"Retry-After": str(doors.REDIS_RETRY_SECONDS)}
    back = html.tag("p", html.tag("a", "Back to the list", href=HOME))
    why = "the farm's ledger cannot be reached at this moment" if status == 503 else str(error)
    answer = _page("Refused", None, html.tag("div", why, class_="card error"), back, status=status)
    answer.headers.update(headers)
    return answer


def _see(address: str) -> responses.Response:
    return responses.RedirectResponse(address, 303, dict(html.POLICY))


async def _style(_: requests.Request) -> responses.Response:
    headers = {"Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"}
    return responses.FileResponse(html.STYLE, headers=headers, media_type="text/css")


def _quiet(sentence: str) -> html.Markup:
    return html.tag("p", sentence, class_="quiet")


def _moment(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(min(at_ms, contract.LATEST_MS) / 1000))


def _state(each: submissions.Submission) -> html.Markup:
    if each.failed:
        return html.tag("span", f"failed: {each.failed}", class_="bad")
    if each.refused_by:
        return html.tag("span", f"taken out by {each.refused_by.partition('@')[0]}")
    if each.ready:
        return html.tag("span", "is begun", class_="good")
    return html.tag("span", "waits for approval by somebody else")


def _asked(each: submissions.Submission) -> html.Markup | str:
    """Return all that is asked with a submission: who approves it has to know."""
    asked = {
        key: value
        for key, value in {**each.proposed, **each.changes}.items()
        if value not in (None, "", (), []) and key not in {"schema_version", "name"}
    }
    if not asked:
        return ""
    lines = "\n".join(f"{key}: {_words(value)}" for key, value in sorted(asked.items()))
    return html.tag("details", html.tag("summary", "all of it"), html.tag("pre", lines))


def _words(value: object) -> str:
    """Return a value of a message; what has none of its own is left out."""
    if isinstance(value, Mapping):
        pairs = (f"{key} {part}" for key, part in value.items() if part is not None)
        return ", ".join(pair for pair in pairs if not pair.startswith("schema_version"))
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _link(match: str) -> html.Markup:
    return html.tag("a", match, href=f"{HOME}/m/{urllib.parse.quote(match)}")


def _line(line: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of a match in the list."""
    score, test = line["score"] or {}, line["sprt"]
    return (
        _link(line["name"]),
        " against ".join(line["engines"]),
        line["time_control"],
        f"{line['games']['played']} / {line['games']['total']}",
        f"+{score['wins']} ={score['draws']} -{score['losses']}" if score else "",
        match_page.elo(score),
        "" if test is None else f"{test['llr']:+.2f} [{test['lower']:.2f}, {test['upper']:.2f}]",
        text.one_line(line["reason"] or line["status"]),
    )
