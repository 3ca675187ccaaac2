"""What people did to a season, told from its journal: who, when, what, why.

Only facts that an operator or the organizers caused are told: the launch, and those which
carry a name. None of the lines tells an opening or the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.season.fold import amendment_entries, engine_update_entries, entries

# What is said of a fact besides its kind: the keys of its data, in this order.
_TELLING: Final = (
    "event",
    "game",
    "engine",
    "decision",
    "choose",
    "book",
    "host",
    "engines",
    "policy",
    "cause",
    "events",
    "replay",
    "played",
    "before",
    "source",
    "sha256",
    "doubts",
)


def acts(journal: Iterable[contract.Entry]) -> Iterator[dict[str, Any]]:
    """Yield the facts that people caused, oldest first."""
    for entry in journal:
        if entry.kind == entries.LAUNCHED:
            yield _launch(entry)
        elif entry.data.get("name"):
            yield {
                "seq": entry.seq,
                "at_ms": entry.at_ms,
                "kind": entry.kind,
                "by": entry.by,
                "name": entry.data["name"],
                "reason": entry.data.get("reason", ""),
                "about": _about(entry.kind, entry.data),
            }


def _launch(entry: contract.Entry) -> dict[str, Any]:
    """Tell the launch; of the seed only what was published then."""
    launched = entry.data
    return {
        "seq": entry.seq,
        "at_ms": entry.at_ms,
        "kind": entry.kind,
        "by": entry.by,
        "name": entry.by.partition("@")[0],
        "reason": launched.get("reason", ""),
        "about": {
            "hall": launched["hall"],
            "engines": len(launched["engines"]),
            "version": launched["version"],
            "seed_sha256": launched["seed_sha256"],
        },
    }


def _about(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    details = {key: data[key] for key in _TELLING if data.get(key)}
    if kind == amendment_entries.ENGINE_REPLACED:
        details |= {"substitute": data["substitute"]["id"], "games": len(data["games"])}
    if (
        kind in {engine_update_entries.ENGINE_UPDATED, engine_update_entries.ENGINE_ADDED}
        and data["engine"]["version"]
    ):
        details["version"] = data["engine"]["version"]
    if kind == amendment_entries.BOOK_MENDED:
        details["exits"] = len(data["exits"])
    if kind == amendment_entries.GAMES_IMPORTED:
        details["games"] = len(data["games"])
    if kind == entries.GAME_ADJUDICATED:
        details["result"] = data["finished"]["result"]
    for key in ("at_ms", "opens_at_ms"):
        details |= {key: data[key]} if key in data else {}
    return details
