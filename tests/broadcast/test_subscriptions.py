"""Results for feed readers, the schedule for calendars: well formed whatever engines are called."""

from __future__ import annotations

import datetime as dt
import email.utils
import json
import pathlib
import re
from typing import Any
from xml.etree import ElementTree as ET

import harness
import httpx
import pytest
import theatre

from orchestrator.broadcast.subscriptions import ics, listing, rss

PAGE = "https://chess.example.org"
EVIL = '<b>A&B</b> ]]>; x, \\y\u0001\nBEGIN:VEVENT \u00e4\u2602 "q" \''
ATOM = "{http://www.w3.org/2005/Atom}"


def listed(root: pathlib.Path, share: float, evil: str = "") -> listing.Listing:
    """Return a part of the demo season; ``evil`` is the name of everybody and everything."""
    tape = theatre.simulated("demo")
    tape.shown = round(share * len(tape.journal))
    stage = theatre.projected(tape, root)
    stage.projector.look()

    def document(place: str) -> Any:
        found = stage.shelf.get(f"seasons/{tape.season}{place}")
        assert found is not None
        return json.loads(found.body)

    season = document("")
    schedules = [document(f"/events/{one['event']}/schedule") for one in season["events"]]
    if evil:
        season["name"] = evil
        for one in season["events"]:
            one["name"] = evil
        for game in (game for schedule in schedules for game in schedule):
            game.update({name: evil for name in ("white", "black", "details") if name in game})
    return listing.Listing(season, schedules, PAGE)


def entries(calendar: bytes) -> list[dict[str, str]]:
    """Read a calendar's entries: unfolded, unescaped; every line is short and ends with CRLF."""
    lines = calendar.decode().split("\r\n")
    assert lines.pop() == ""
    assert all(len(line.encode()) <= ics.LINE_BYTES for line in lines)
    assert not re.search(r"[\x00-\x1f\x7f]", "".join(lines))
    found: list[dict[str, str]] = []
    for line in re.sub("\r\n ", "", "\r\n".join(lines)).split("\r\n"):
        name, colon, value = line.partition(":")
        assert colon, line
        if line == "BEGIN:VEVENT":
            found.append({})
        elif found:
            assert name not in found[-1] or name == "END"
            if name in {"SUMMARY", "DESCRIPTION"}:
                assert not re.search(r"[,;]", re.sub(r"\\.", "", value)), line
            found[-1][name] = re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), value)
    assert (lines[0], lines[-1]) == ("BEGIN:VCALENDAR", "END:VCALENDAR")
    return found


def moment(text: str) -> int:
    """Read a time of a calendar."""
    return round(dt.datetime.strptime(text, "%Y%m%dT%H%M%S%z").timestamp() * 1000)


def test_the_latest_results_come_first(tmp_path: pathlib.Path) -> None:
    """Each is told once, with game, moment, end and link."""
    season = listed(tmp_path, 0.6)
    channel = ET.fromstring(rss.feed(season, f"{PAGE}/feeds/demo/results.rss")).find("channel")
    assert channel is not None
    link = channel.find(f"{ATOM}link")
    assert link is not None
    assert (link.get("href"), link.get("rel")) == (f"{PAGE}/feeds/demo/results.rss", "self")
    items = channel.findall("item")
    assert len(items) == season.season["games"]["played"] > 3
    moments = [email.utils.parsedate_to_datetime(str(one.findtext("pubDate"))) for one in items]
    assert moments == sorted(moments, reverse=True)
    assert len({one.findtext("guid") for one in items}) == len(items)
    for item, game in zip(items, season.finished, strict=True):
        assert item.findtext("link") == f"{PAGE}/#/demo/game/{game['game']}"
        assert item.findtext("title") == f"{game['white']} v {game['black']} {game['result']}"
        assert game["details"] in str(item.findtext("description"))


def test_the_calendar_has_what_was_played_and_what_is_ahead(tmp_path: pathlib.Path) -> None:
    """Played games stand, those ahead are tentative and keep their names when they move."""
    early, later = (
        {one["UID"]: one for one in entries(ics.calendar(listed(tmp_path / str(share), share)))}
        for share in (0.3, 0.6)
    )
    assert {one["STATUS"] for one in early.values()} == {"CONFIRMED", "TENTATIVE"}
    for one in (*early.values(), *later.values()):
        assert moment(one["DTSTART"]) < moment(one["DTEND"])
        assert one["URL"].startswith(f"{PAGE}/#/demo/")
        assert one["UID"].endswith("@tournament-farm")
    played = {
        name for name, one in early.items() if re.search(r" (1-0|0-1|1/2-1/2)$", one["SUMMARY"])
    }
    assert played
    assert all(later[name] | {"DTSTAMP": ""} == early[name] | {"DTSTAMP": ""} for name in played)
    moved = {name for name, one in early.items() if one["STATUS"] == "TENTATIVE"} & set(later)
    assert any(later[name]["STATUS"] == "CONFIRMED" for name in moved)
    stage = next(one for name, one in early.items() if "-event-final@" in name)
    assert stage["SUMMARY"].endswith("begins")
    assert moment(stage["DTSTART"]) > max(moment(early[name]["DTEND"]) for name in played)


@pytest.mark.parametrize("share", [0.4, 1])
def test_no_name_breaks_out_of_its_place(tmp_path: pathlib.Path, share: float) -> None:
    """Markup, separators, line ends and control characters are text, and nothing else."""
    season = listed(tmp_path, share, EVIL)
    channel = ET.fromstring(rss.feed(season, f"{PAGE}/x?a=1&b=<2>")).find("channel")
    assert channel is not None
    names = {one.tag for one in channel.iter()}
    assert names <= {
        *("channel", "title", "link", "description", "language", "pubDate", "ttl", "item", "guid"),
        f"{ATOM}link",
    }
    readable = EVIL.replace("\u0001", "\ufffd")
    for item in channel.findall("item"):
        assert str(item.findtext("title")).startswith(f"{readable} v {readable} ")
    plain = EVIL.replace("\u0001", "")
    found = entries(ics.calendar(season))
    assert len(found) == len(season.finished) + len(season.coming) + (share < 1)
    for one in found:
        assert one["SUMMARY"].startswith(plain)
        assert one["END"] in {"VEVENT", "VCALENDAR"}


def test_the_feeds_are_served(tmp_path: pathlib.Path) -> None:
    """With a season and without; they are made again when something has happened."""
    tape = theatre.simulated("demo")
    tape.shown = round(0.4 * len(tape.journal))
    with theatre.served(tape, tmp_path, public=PAGE) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        for name, media_type in (("results.rss", rss.MEDIA_TYPE), ("schedule.ics", ics.MEDIA_TYPE)):
            answer = httpx.get(f"{url}/feeds/{name}", headers={"Host": "evil.example"})
            assert answer.headers["content-type"] == f"{media_type}; charset=utf-8"
            assert answer.headers["access-control-allow-origin"] == "*"
            assert b"evil" not in answer.content
            assert PAGE.encode() in answer.content
            headers = {"If-None-Match": answer.headers["etag"]}
            assert httpx.get(f"{url}/feeds/{name}", headers=headers).status_code == 304
            assert httpx.get(f"{url}/feeds/demo/{name}").status_code == 200
            assert httpx.get(f"{url}/feeds/other/{name}").status_code == 404
        first = httpx.get(f"{url}/feeds/results.rss").content
        tape.shown = len(tape.journal)

        def grown() -> bool:
            return httpx.get(f"{url}/feeds/results.rss").content.count(b"<item>") == len(
                [game for game in tape.folded().games.values() if game.finished]
            )

        harness.wait(grown, "the other results")
        assert first.count(b"<item>") > 0
