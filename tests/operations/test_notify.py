"""Notices: each kind from a real journal, sent by SMTP and webhook, reminded, acknowledged."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import click.testing
import harness
import pytest
import watched_run
from twins import memory

from orchestrator import commands, contract
from orchestrator.commands import common, launch
from orchestrator.common import errors
from orchestrator.ledger import api, farm_journal, lanes, store, submissions, vitals
from orchestrator.notify import channels as sending
from orchestrator.notify import notices, outbox, runner, settings, templates
from orchestrator.season.file import load
from orchestrator.season.fold import abandoning, entries

_RESUMED = entries.Resumed(reason="mended", name="ann")


class _Smtp(socketserver.StreamRequestHandler):
    """The few words of SMTP that a sender needs."""

    mails: ClassVar[list[str]] = []
    refuse: ClassVar[bool] = False

    def handle(self) -> None:
        """Take one mail."""
        self.wfile.write(b"220 test\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper().strip()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b""
                while not text.endswith(b"\r\n.\r\n"):
                    text += self.rfile.readline()
                self.mails.append(text.decode())
            if self.refuse and word == b"MAIL":
                self.wfile.write(b"451 later\r\n")
                continue
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


class _Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that keeps what it is told."""

    told: ClassVar[list[tuple[bytes, str]]] = []

    def do_POST(self) -> None:
        """Keep body and signature."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.told.append((body, self.headers.get("X-Farm-Signature", "")))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def listening(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    """Serve in a thread; yield the port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def channels(tmp_path: pathlib.Path) -> Iterator[settings.Settings]:
    """Return settings of a mailbox and a webhook that really listen."""
    _Smtp.mails.clear()
    _Hook.told.clear()
    _Smtp.refuse = False
    (tmp_path / "secret").write_text("s3cret\n")
    with listening(_Smtp) as smtp, listening(_Hook) as hook:
        file = tmp_path / "notify.toml"
        file.write_text(
            f"""remind_minutes = 60
[[channel]]
kind = "mail"
name = "mail"
host = "127.0.0.1"
port = {smtp}
tls = "none"
sender = "farm@example.org"
to = ["anna@example.org"]
[[channel]]
kind = "webhook"
name = "hook"
url = "http://127.0.0.1:{hook}/x"
secret_file = "{tmp_path}/secret"
only = ["crash", "second-crash"]
"""
        )
        yield settings.load(file)


class Clock:
    """Redis' time of day, moved by hand."""

    def __init__(self) -> None:
        """Start at some moment."""
        self.ms = 1_800_000_000_000

    def __call__(self) -> int:
        """Return the moment."""
        return self.ms


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands."""
    return Clock()


@pytest.fixture
def ledger(clock: Clock, tmp_path: pathlib.Path) -> memory.MemoryLedger:
    """Return a ledger with a launched league, its event started, a crash journaled."""
    made = memory.MemoryLedger(clock)
    engines = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    path = harness.league(tmp_path / "season.toml", engines, double_rounds=2)
    text = path.read_text().replace('id = "league"', 'id = "league"\ndisqualify_after = 3')
    path.write_text(text)
    launch.start(made, load.load(path), "s", harness.HALL, "00", "test")
    return made


def crash(ledger: memory.MemoryLedger, root: pathlib.Path, number: int) -> None:
    """Let the next game be lost by a crash of Black, through the loop and the hall's verbs."""
    harness.serve_once(ledger, root / "archive")
    game = ledger.offered(harness.HALL)["s"]
    claim = harness.claim("s", game, f"a{number}")
    claimed = ledger.claim(claim)
    assert isinstance(claimed, api.Claimed)
    order = contract.GameOrder.decode(claimed.order)
    finished, record = harness.invented(order, claim, claimed.token)
    ledger.complete(harness.HALL, claimed.token, "s", finished, record)
    harness.serve_once(ledger, root / "archive")


def made(ledger: memory.MemoryLedger, told: settings.Settings, root: pathlib.Path) -> runner.Runner:
    """Return a runner on the outbox that a runner before it has left."""
    return runner.Runner(ledger, told, outbox.Outbox(root / "outbox.json"))


def test_a_crash_is_told_once_by_every_channel(
    ledger: memory.MemoryLedger, channels: settings.Settings, tmp_path: pathlib.Path
) -> None:
    """Mail and webhook get it, signed; a restart tells nothing again; the past is not told."""
    made(ledger, channels, tmp_path).once()
    assert _Smtp.mails == []
    crash(ledger, tmp_path, 1)
    made(ledger, channels, tmp_path).once()
    made(ledger, channels, tmp_path).once()
    [mail] = _Smtp.mails
    assert "Subject: Test Season: scripted-" in mail
    assert "farm game evidence league.1" in mail
    [(body, signature)] = _Hook.told
    wanted = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert signature == f"sha256={wanted}"
    assert json.loads(body)["kind"] == "crash"


def told_of_three_crashes(
    ledger: memory.MemoryLedger, channels: settings.Settings, tmp_path: pathlib.Path
) -> runner.Runner:
    """Return a notifier that has just told of three crashes: it asks about one engine's second."""
    made(ledger, channels, tmp_path).once()
    for number in range(1, 4):
        crash(ledger, tmp_path, number)
    running = made(ledger, channels, tmp_path)
    running.once()
    return running


def test_an_asking_notice_is_told_again_until_it_is_acknowledged(
    ledger: memory.MemoryLedger,
    channels: settings.Settings,
    clock: Clock,
    tmp_path: pathlib.Path,
) -> None:
    """The second crash of three is reminded each hour, and no more after the journaled ack."""
    running = told_of_three_crashes(ledger, channels, tmp_path)
    asking = [mail for mail in _Smtp.mails if "one crash from" in mail]
    assert len(asking) == 1, "two engines, three crashes: one engine has two"
    before = len(_Smtp.mails)
    clock.ms += 59 * 60_000
    running.once()
    assert len(_Smtp.mails) == before
    clock.ms += 2 * 60_000
    running.once()
    assert len(_Smtp.mails) == before + 1
    assert "Subject: Reminder: " in _Smtp.mails[-1]
    [waiting] = outbox.Outbox(tmp_path / "outbox.json").waiting
    fact = contract.Draft(runner.ACKNOWLEDGED, {"notice": waiting, "name": "anna", "reason": ""})
    ledger.append(api.FARM, ledger.last(api.FARM), [fact], "anna")
    clock.ms += 120 * 60_000
    running.once()
    assert len(_Smtp.mails) == before + 1
    assert not outbox.Outbox(tmp_path / "outbox.json").waiting


def test_an_abandoned_season_asks_nobody_any_more(
    ledger: memory.MemoryLedger,
    channels: settings.Settings,
    clock: Clock,
    tmp_path: pathlib.Path,
) -> None:
    """Its end is told once, with the reason; what asked in it is closed and never told again."""
    running = told_of_three_crashes(ledger, channels, tmp_path)
    assert outbox.Outbox(tmp_path / "outbox.json").waiting
    state = common.fold(ledger, "s")
    ledger.append("s", state.seq, abandoning.abandon(state, "ann", "a mistake"), "ann")
    running.once()
    (told,) = [mail for mail in _Smtp.mails if "is abandoned" in mail]
    assert "a mistake (ann)" in told
    assert not outbox.Outbox(tmp_path / "outbox.json").waiting
    before = len(_Smtp.mails)
    clock.ms += 120 * 60_000
    running.once()
    assert len(_Smtp.mails) == before


def test_a_season_that_goes_on_is_held_no_more(
    ledger: memory.MemoryLedger, channels: settings.Settings, tmp_path: pathlib.Path
) -> None:
    """What asked about the hold is over with it, told or not."""
    running = made(ledger, channels, tmp_path)
    running.once()
    for fact, waiting in ((entries.Held(reason="the hall"), ["held"]), (_RESUMED, [])):
        kind = entries.RESUMED if fact is _RESUMED else entries.HELD
        ledger.append("s", ledger.last("s"), [contract.Draft.of(kind, fact)], "ann")
        running.once()
        kept = outbox.Outbox(tmp_path / "outbox.json").waiting.values()
        assert [one.about for one in kept] == [f"s:{about}" for about in waiting]
    assert sum("held" in mail for mail in _Smtp.mails) == 1


def test_a_channel_that_fails_is_tried_again_and_delays_no_other(
    ledger: memory.MemoryLedger,
    channels: settings.Settings,
    clock: Clock,
    tmp_path: pathlib.Path,
) -> None:
    """While the mail server refuses, the webhook is told; the mail follows a minute later."""
    running = made(ledger, channels, tmp_path)
    running.once()
    _Smtp.refuse = True
    crash(ledger, tmp_path, 1)
    running.once()
    assert (len(_Smtp.mails), len(_Hook.told)) == (0, 1)
    [waiting] = outbox.Outbox(tmp_path / "outbox.json").waiting.values()
    assert "451" in waiting.failed["mail"]
    _Smtp.refuse = False
    for part in (0, runner.RETRY_MS // 2):  # looks meanwhile do not put it off
        clock.ms += part
        running.once()
        assert _Smtp.mails == []
    clock.ms += runner.RETRY_MS // 2
    running.once()
    assert (len(_Smtp.mails), len(_Hook.told)) == (1, 1)


def test_a_silent_host_is_told_until_it_is_back(
    ledger: memory.MemoryLedger,
    channels: settings.Settings,
    clock: Clock,
    tmp_path: pathlib.Path,
) -> None:
    """Silence is told once and reminded; the host's next word ends it."""
    running = made(ledger, channels, tmp_path)
    ledger.set_vitals("cpu", vitals.Vitals(host="cpu", at_ms=clock.ms).encode())
    running.once()
    assert _Smtp.mails == []
    clock.ms += 200_000
    running.once()
    running.once()
    assert len(_Smtp.mails) == 1
    assert "cpu is away" in _Smtp.mails[0]
    ledger.set_vitals("cpu", vitals.Vitals(host="cpu", at_ms=clock.ms).encode())
    running.once()
    clock.ms += 10_000
    running.once()
    assert not outbox.Outbox(tmp_path / "outbox.json").waiting


def test_nobody_is_told_of_a_host_whose_hall_was_drained(
    ledger: memory.MemoryLedger,
    channels: settings.Settings,
    clock: Clock,
    tmp_path: pathlib.Path,
) -> None:
    """Its silence is wanted, of its drained worker alone: a later one that is away is told of."""
    running = made(ledger, channels, tmp_path)
    ledger.set_vitals("cpu", vitals.Vitals(host="cpu", at_ms=clock.ms, hall="hall-2").encode())
    ledger.open_hall("hall-2", "cpu", "first")
    effect = api.Drain("hall-2", "first", "upgrade")
    ledger.append(api.FARM, ledger.last(api.FARM), [contract.Draft("x", {})], "ann", [effect])
    clock.ms += 200_000
    running.once()
    assert _Smtp.mails == []
    ledger.open_hall("hall-2", "cpu", "second")
    running.once()
    assert "cpu is away" in "".join(_Smtp.mails)


FACTS: dict[str, Any] = {
    name: name.upper()
    for name in (
        *("season", "season_name", "event", "engine", "game", "details", "crashes", "limit"),
        *("decision", "question", "reason", "best", "champion", "what", "minutes", "host", "who"),
        *("then", "service", "match", "about", "why", "engines", "score"),
    )
}


@pytest.mark.parametrize("kind", notices.Kind)
def test_each_kind_has_words_without_gaps(kind: notices.Kind, tmp_path: pathlib.Path) -> None:
    """Every name in a template is a fact; a file replaces the words of its kind alone."""
    assert kind in templates.WORDS, (
        f"{kind!r} has no words: WORDS of orchestrator/notify/templates.py"
    )
    notice = notices.Notice("n", kind, 0, "x", FACTS)
    subject, body = templates.render(notice, None)
    assert "$" not in subject + body, (
        f"{kind!r}: no notice has such a fact; if notices.py gives it one now: FACTS of this file"
    )
    (tmp_path / f"{kind.value}.txt").write_text("Own $season\n\nBody $nobody\n")
    assert templates.render(notice, tmp_path) == ("Own SEASON", "Body $nobody\n")


def test_the_manual_lists_every_kind_and_which_are_repeated() -> None:
    """A table in docs/operating.md: the names that `only` and files of texts want."""
    section = (watched_run.ROOT / "docs" / "operating.md").read_text().split("## Notices\n")[1]
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]*) \|$", section.split("\n## ")[0], re.MULTILINE)
    assert [kind for kind, _ in rows] == [kind.value for kind in notices.Kind]
    repeated = {kind for kind, repeats in rows if repeats != "no"}
    assert repeated == {kind.value for kind in notices.ASKING}


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("crashes.txt", r"texts/crashes\.txt is no kind's; kinds: .*second-crash.*test-waits"),
        ("crash.txt", ""),
        ("crash.txt~", ""),
        (None, "templates: no folder .*texts"),
    ],
)
def test_a_file_of_texts_that_nobody_would_read_is_refused(
    file: str | None, words: str, tmp_path: pathlib.Path
) -> None:
    """By its name, with those that are allowed, as soon as the settings are read."""
    if file is not None:
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / file).write_text("Subject\n\nbody\n")
    path = tmp_path / "notify.toml"
    with listening(_Hook) as port:
        path.write_text(
            f'templates = "{tmp_path}/texts"\n[[channel]]\nkind = "webhook"\nname = "all"\n'
            f'url = "http://127.0.0.1:{port}/"\n'
        )
        asked = ["notify", "test", "--settings", str(path)]
        done = click.testing.CliRunner().invoke(commands.farm, asked)
    assert done.exit_code == (errors.UsageError.exit_code if words else 0), done.output
    assert re.search(words, " ".join(done.output.split())), done.output


@pytest.mark.parametrize(
    "text",
    [
        *(f'kind = "webhook"\nurl = "{url}"' for url in ("http://a b/", "http://[x/", "file:///x")),
        'kind = "webhook"\nurl = "http://127.0.0.1:{talker}/"',
        'kind = "mail"\nhost = "127.0.0.1"\nsender = "a\\nb"\nto = ["c@d"]',
    ],
)
def test_whatever_a_channel_is_the_notifier_goes_on(text: str, tmp_path: pathlib.Path) -> None:
    """No address, a server that talks another language, a broken header: told as what failed."""
    notice = notices.Notice("n", notices.Kind.CRASH, 0, "x", FACTS)
    with listening(_Smtp) as talker:
        (tmp_path / "notify.toml").write_text(
            f'[[channel]]\nname = "c"\n{text.replace("{talker}", str(talker))}'
        )
        (channel,) = settings.load(tmp_path / "notify.toml").channel
        with pytest.raises((errors.HostError, errors.UsageError)) as refused:
            sending.send(channel, notice, "subject", "body")
    assert "a b" not in str(refused.value), "an address may be a secret"


class _Chat(http.server.BaseHTTPRequestHandler):
    """A chat service: it refuses what lacks its one key, and keeps the rest."""

    told: ClassVar[list[dict[str, object]]] = []

    def do_POST(self) -> None:
        """Take JSON with the key that stands in the path."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append(body)
        self.send_response(204 if self.path.strip("/") in body else 400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("service", "key"),
    [
        ("discord", "content"),
        ("slack", "text"),
        ("mattermost", "text"),
        ("google-chat", "text"),
        ("teams", "attachments"),
    ],
)
def test_each_chat_service_gets_what_it_takes(
    service: str, key: str, tmp_path: pathlib.Path
) -> None:
    """No key of another service's, and a text that is not too long."""
    _Chat.told.clear()
    notice = notices.Notice("n", notices.Kind.CRASH, 0, "x", FACTS)
    with listening(_Chat) as port:
        url = f"http://127.0.0.1:{port}/{key}"
        (tmp_path / "notify.toml").write_text(
            f'[[channel]]\nname = "c"\nkind = "webhook"\nurl = "{url}"\nservice = "{service}"\n'
        )
        (channel,) = settings.load(tmp_path / "notify.toml").channel
        sending.send(channel, notice, "subject", "body " * 1_000)
    (told,) = _Chat.told
    assert set(told) <= {key, "type", "allowed_mentions"}
    assert service != "discord" or len(str(told["content"])) <= 2_000


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://discord.com/api/webhooks/1/x", "discord"),
        ("https://hooks.slack.com/services/T/B/x", "slack"),
        ("https://chat.googleapis.com/v1/spaces/x", "google-chat"),
        ("https://example.webhook.office.com/webhookb2/x", "teams"),
        ("https://notdiscord.com/x", "farm"),
        ("http://[x/", "farm"),
    ],
)
def test_a_service_is_known_by_its_host(url: str, service: str) -> None:
    """Whoever writes the address alone is understood; another host gets all facts."""
    assert sending._service(url) == service


def test_a_name_breaks_no_header() -> None:
    """A line end in a fact stays in one subject line: no header can be smuggled in."""
    facts = FACTS | {"engine": "a\r\nBcc: all@example.org"}
    subject, _ = templates.render(notices.Notice("n", notices.Kind.CRASH, 0, "x", facts), None)
    assert "\n" not in subject
    assert "\r" not in subject


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("channel = []", "channel"),
        ('[[channel]]\nkind = "pigeon"\nname = "p"', "pigeon"),
        ('[[channel]]\nkind = "webhook"\nname = "h"', "url"),
        ("= 1", "cannot be read"),
    ],
)
def test_bad_settings_are_refused_by_their_place(
    text: str, told: str, tmp_path: pathlib.Path
) -> None:
    """The message names the file and what is wrong in it."""
    path = tmp_path / "notify.toml"
    path.write_text(text)
    with pytest.raises(errors.UsageError, match=rf"(?s)notify\.toml.*{told}"):
        settings.load(path)


def test_a_failed_service_is_told_at_once(tmp_path: pathlib.Path) -> None:
    """Without Redis; by each channel that wants it; without settings nobody is told."""
    path = tmp_path / "notify.toml"
    words = ["notify", "failed", "farm-backup.service", "--settings", str(path)]
    done = click.testing.CliRunner().invoke(commands.farm, words)
    assert (done.exit_code, "nobody is told" in done.output) == (0, True)
    with listening(_Hook) as port:
        path.write_text(
            f'[[channel]]\nname = "all"\nkind = "webhook"\nurl = "http://127.0.0.1:{port}/"\n'
            f'[[channel]]\nname = "some"\nkind = "webhook"\nurl = "http://127.0.0.1:{port}/"\n'
            'only = ["crash"]\n'
        )
        done = click.testing.CliRunner().invoke(commands.farm, words)
    assert done.exit_code == 0, done.output
    assert done.output == "all: sent\n"
    path.write_text('[[channel]]\nname = "all"\nkind = "webhook"\nurl = "http://127.0.0.1:1/"\n')
    done = click.testing.CliRunner().invoke(commands.farm, words)
    assert done.exit_code == errors.HostError.exit_code


def test_the_example_is_valid(tmp_path: pathlib.Path) -> None:
    """What ``farm notify example`` prints can be read back."""
    done = click.testing.CliRunner().invoke(commands.farm, ["notify", "example"])
    path = tmp_path / "notify.toml"
    path.write_text(done.output)
    assert len(settings.load(path).channel) == 2


def test_who_may_approve_a_test_match_is_told_that_it_waits(
    ledger: memory.MemoryLedger, channels: settings.Settings, tmp_path: pathlib.Path
) -> None:
    """Of one that waits for nobody nothing is said."""
    made = runner.Runner(ledger, channels, outbox.Outbox(tmp_path / "outbox.json"))
    made.once()
    for name, asks in (("dev-1", False), ("dev-2", True)):
        facts = {"match": name, "about": "Dev against Base", "asks": asks}
        draft = contract.Draft(submissions.SUBMITTED, facts)
        farm_journal.append(ledger, draft, "anna@anna")
    made.once()
    (mail,) = [mail for mail in _Smtp.mails if "waits for approval" in mail]
    assert "Subject: dev-2 waits for approval" in mail
    assert "farm match approve dev-2" in mail


def test_the_end_of_a_test_match_is_told_once(
    ledger: memory.MemoryLedger, channels: settings.Settings, tmp_path: pathlib.Path
) -> None:
    """What ended before this outbox was begun is nobody's news."""
    made = runner.Runner(ledger, channels, outbox.Outbox(tmp_path / "outbox.json"))
    facts = {"engines": ["Dev", "Base"], "why": "H1 accepted", "score": "40/40  +30 =5 -5"}
    for name in ("old", "dev-1"):
        draft = contract.Draft(lanes.ENDED, {"match": name, **facts})
        farm_journal.append(ledger, draft, "op")
        made.once()
        made.once()
    subjects = [mail for mail in _Smtp.mails if "H1 accepted" in mail]
    assert len(subjects) == 1
    assert "Subject: dev-1: H1 accepted" in subjects[0]
    assert "Dev - Base" in subjects[0]


class _Deadly(http.server.BaseHTTPRequestHandler):
    """A webhook in whose fourth answer the notifier is killed."""

    taken: ClassVar[list[tuple[str, str]]] = []
    notifier: ClassVar[subprocess.Popen[bytes]]

    def do_POST(self) -> None:
        """Keep who was told of which match; kill who sent the fourth."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.taken.append((self.path, body["facts"]["match"]))
        if len(self.taken) == 4:
            self.notifier.kill()
            self.notifier.wait()
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_notifier_that_is_killed_repeats_the_message_it_was_sending_and_no_other(
    tmp_path: pathlib.Path,
) -> None:
    """Two notices for two channels: after a kill in the fourth message the fourth comes again."""
    _Deadly.taken.clear()
    with harness.Redis(tmp_path / "redis") as redis, listening(_Deadly) as port:
        channel = '[[channel]]\nkind = "webhook"\nname = "{0}"\nurl = "http://127.0.0.1:{1}/{0}"\n'
        text = "".join(channel.format(name, port) for name in "ab")
        (tmp_path / "notify.toml").write_text(text)
        environment = harness.without_farm() | {
            "FARM_REDIS_URL": redis.url,
            "FARM_DATA": str(tmp_path),
        }
        notify = ("notify", "run", "--once")
        first = harness.run_farm(environment, *notify)
        assert first.returncode == 0, first.stderr
        with store.connect(redis.url) as ledger:
            for name in ("dev-1", "dev-2"):
                facts = {"match": name, "engines": ["Dev", "Base"], "why": "over", "score": ""}
                farm_journal.append(ledger, contract.Draft(lanes.ENDED, facts), "op")
        command = [str(harness.PROGRAM), *notify]
        with subprocess.Popen(command, env=environment) as _Deadly.notifier:
            pass
        assert len(_Deadly.taken) == 4, "killed before it could send"
        again = harness.run_farm(environment, *notify)
        assert again.returncode == 0, again.stderr
    messages = [("/a", "dev-1"), ("/b", "dev-1"), ("/a", "dev-2"), ("/b", "dev-2")]
    assert _Deadly.taken == [*messages, messages[-1]]
