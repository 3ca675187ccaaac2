"""The results of a season as RSS 2.0 (rssboard.org/rss-specification), the latest first."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from typing import Final
from xml.etree import ElementTree as ET

from orchestrator.broadcast.subscriptions import listing

MEDIA_TYPE: Final = "application/rss+xml"
ITEMS: Final = 50
_ATOM: Final = "http://www.w3.org/2005/Atom"
_MINUTES: Final = "5"  # how long a reader may keep it
# XML 1.0 has no place for these, not even escaped.
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def feed(listed: listing.Listing, address: str) -> bytes:
    """Return the feed, which is served at ``address``."""
    ET.register_namespace("atom", _ATOM)
    root = ET.Element("rss", version="2.0")
    channel = ET.SubElement(root, "channel")
    _add(channel, "title", f"{listed.season['name']}: results")
    _add(channel, "link", listed.link)
    _add(channel, "description", f"The results of {listed.season['name']}, as they come.")
    _add(channel, "language", "en")
    _add(channel, "pubDate", _moment(listed.at_ms))
    _add(channel, "ttl", _MINUTES)
    ET.SubElement(
        channel,
        f"{{{_ATOM}}}link",
        {"href": _clean(address), "rel": "self", "type": MEDIA_TYPE},
    )
    for game in listed.finished[:ITEMS]:
        item = ET.SubElement(channel, "item")
        _add(item, "title", f"{listing.players(game)} {game['result']}")
        _add(item, "link", listed.link_of(game))
        # A game that is played again is news again.
        name = f"{listed.id}/{game['game']}/{game['started_ms']}"
        _add(item, "guid", name, isPermaLink="false")
        _add(item, "pubDate", _moment(listing.ended_ms(game)))
        _add(item, "description", f"{listed.event_and_round(game)}: {listing.summary(game)}.")
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _add(parent: ET.Element, name: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, name, attributes).text = _clean(text)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _moment(at_ms: int) -> str:
    """Write a moment as RFC 822 does."""
    return email.utils.format_datetime(dt.datetime.fromtimestamp(at_ms // 1000, dt.UTC))
