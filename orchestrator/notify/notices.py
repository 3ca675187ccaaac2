"""What is worth a notice: a pure function of the journal's entries, the state and the time.

A notice is told once; one that ``asks`` is told again until somebody acknowledges it, or
until what it is about is over (a question answered, a season resumed, a host back).
Nothing tells a coming opening or the seed: only counts, names and reasons are taken.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.ledger import lanes, submissions, vitals
from orchestrator.season import decisions, interruption
from orchestrator.season.fold import amendment_entries, entries, events, own_book, tally
from orchestrator.season.fold import state as season_state


class Kind(enum.StrEnum):
    """What a notice is about."""

    DECISION = "decision-needed"
    CRASH = "crash"
    SECOND_CRASH = "second-crash"
    DISQUALIFIED = "disqualification"
    EVENT_OVER = "event-over"
    SEASON_OVER = "season-over"
    ABANDONED = "season-abandoned"
    DEADLINE = "deadline-near"
    HOST_AWAY = "host-away"
    HELD = "season-held"
    FLAGGED = "hidden-book"
    SERVICE_FAILED = "service-failed"
    TEST_OVER = "test-over"
    TEST_WAITS = "test-waits"


ASKING: Final = frozenset(
    {Kind.DECISION, Kind.SECOND_CRASH, Kind.DISQUALIFIED, Kind.HOST_AWAY, Kind.HELD, Kind.FLAGGED}
)

# Over as soon as the season's state says so (``standing``).
STANDING: Final = frozenset({Kind.DECISION, Kind.HOST_AWAY, Kind.HELD, Kind.FLAGGED})


@dataclasses.dataclass(frozen=True)
class Notice:
    """One notice; ``about`` is what it is over with, ``facts`` fill the template."""

    id: str
    kind: Kind
    at_ms: int
    about: str
    facts: Mapping[str, str]

    @property
    def asks(self) -> bool:
        """Say whether somebody has to acknowledge it."""
        return self.kind in ASKING


def of_entry(state: season_state.SeasonState, entry: contract.Entry) -> Iterator[Notice]:
    """Yield the notices of an entry that the state has just applied."""
    for kind, about, fields in _notices_of(state, entry):
        season = state.launched
        shown = {"season": season.id, "season_name": season.season.name, **fields}
        notice_id = f"{season.id}:{entry.seq}:{kind.value}"
        yield Notice(notice_id, kind, entry.at_ms, f"{season.id}:{about}", shown)


def of_farm(entry: contract.Entry) -> Iterator[Notice]:
    """Yield the notices of an entry of the farm's own journal: of test matches.

    They have ended, or wait until somebody approves them.
    """
    if entry.kind == lanes.ENDED:
        fields = {key: str(entry.data.get(key, "")) for key in ("match", "why", "score")}
        fields["engines"] = " - ".join(map(str, entry.data.get("engines", ())))
        fields |= {"season": "", "season_name": fields["match"], "who": entry.by}
        notice_id = f"farm:{entry.seq}:{Kind.TEST_OVER.value}"
        yield Notice(notice_id, Kind.TEST_OVER, entry.at_ms, f"test:{fields['match']}", fields)
    elif entry.kind == submissions.SUBMITTED and entry.data.get("asks"):
        fields = {key: str(entry.data.get(key, "")) for key in ("match", "about")}
        fields |= {"season": "", "season_name": fields["match"], "who": entry.by}
        notice_id = f"farm:{entry.seq}:{Kind.TEST_WAITS.value}"
        yield Notice(notice_id, Kind.TEST_WAITS, entry.at_ms, f"test:{fields['match']}", fields)


_Told = tuple[Kind, str, dict[str, str]]


def _notices_of(state: season_state.SeasonState, entry: contract.Entry) -> Iterator[_Told]:
    data = entry.data
    if entry.kind == entries.DECISION_NEEDED:
        fields = {"decision": data["decision"], "question": data["about"]}
        yield Kind.DECISION, f"decision:{data['decision']}", fields
    elif entry.kind == entries.ATTEMPT_JUDGED and data["asks"]:
        named = f"{data['game']}:interruption"
        fields = {"decision": named, "question": data["evidence"]}
        yield Kind.DECISION, f"decision:{named}", fields
    elif entry.kind == entries.GAME_FINISHED:
        yield from _crash(state, contract.GameFinished.model_validate(data))
    elif entry.kind in {entries.ENGINE_EXCLUDED, amendment_entries.ENGINE_REPLACED}:
        yield from _out(data)
    elif entry.kind == entries.EVENT_RANKED:
        best = ", ".join(row["engine"] for row in data["rows"][:3])
        yield Kind.EVENT_OVER, f"event:{data['event']}", {"event": data["event"], "best": best}
    elif entry.kind in entries.ENDS:
        yield _over(entry)
    elif entry.kind == entries.HELD:
        yield Kind.HELD, "held", {"reason": data["reason"]}
    elif entry.kind == amendment_entries.HOST_AWAY:
        fields = {"host": data["host"], "reason": data["reason"]}
        yield Kind.HOST_AWAY, f"away:{data['host']}", fields
    elif entry.kind == amendment_entries.ENGINE_FLAGGED:
        fields = {"engine": data["engine"], "event": data["event"]}
        yield Kind.FLAGGED, f"flag:{data['event']}:{data['engine']}", fields


def _out(data: Mapping[str, Any]) -> Iterator[_Told]:
    """Tell who is out of an event; a substitute without a cause is no such news."""
    if not data.get("cause"):
        return
    then = "Its results there count for nobody."
    if "substitute" in data:
        then = f"{data['substitute']['id']} takes its seat."
    fields = {"engine": data["engine"], "event": data["event"], "reason": data["reason"]}
    about = f"excluded:{data['event']}:{data['engine']}"
    yield Kind.DISQUALIFIED, about, fields | {"then": then}


def _over(entry: contract.Entry) -> _Told:
    data = entry.data
    if entry.kind == entries.SEASON_FINISHED:
        return Kind.SEASON_OVER, "season", {"champion": data["champion"]}
    return Kind.ABANDONED, "season", {"reason": data["reason"], "who": data["name"]}


def _crash(state: season_state.SeasonState, fact: contract.GameFinished) -> Iterator[_Told]:
    if tally.crashed(fact) is None or fact.loser is None:
        return
    game = state.game(fact.game)
    engine = game.white if fact.loser == "white" else game.black
    event = state.events[game.event]
    count, limit = event.tally.crashed.get(engine, 0), event.spec.disqualify_after
    fields = {
        "engine": engine,
        "event": event.id,
        "game": game.id,
        "details": fact.details,
        "crashes": str(count),
        "limit": str(limit or "no limit"),
    }
    last = bool(limit) and count == (limit or 0) - 1
    yield (Kind.SECOND_CRASH if last else Kind.CRASH), f"crash:{game.id}", fields


def standing(state: season_state.SeasonState) -> frozenset[str]:
    """Return what the notices of the kinds ``STANDING`` may still be about; all else is over.

    By the state and not by single entries: a question also ends with a correction, its game,
    or the engine that it is about.
    """
    asking = [f"decision:{needed.decision}" for needed in decisions.outstanding(state)]
    asking += [f"decision:{question}" for question in interruption.outstanding(state)]
    asking += [f"flag:{flag.event}:{flag.engine}" for flag in own_book.standing(state)]
    asking += [f"away:{host}" for host in state.away]
    asking += ["held"] if state.held else []
    return frozenset(f"{state.launched.id}:{about}" for about in asking)


def of_deadlines(state: season_state.SeasonState, now_ms: int, ahead_ms: int) -> Iterator[Notice]:
    """Yield a notice for every gate and submission deadline that is near."""
    season = state.launched
    for event in state.events.values():
        for what, at_ms in _deadlines(event):
            if now_ms <= at_ms <= now_ms + ahead_ms:
                notice_id = f"{season.id}:deadline:{event.id}:{at_ms}"
                minutes = str((at_ms - now_ms) // 60_000)
                fields = {"season": season.id, "season_name": season.season.name}
                fields |= {"event": event.id, "what": what, "minutes": minutes}
                yield Notice(notice_id, Kind.DEADLINE, now_ms, notice_id, fields)


def _deadlines(event: events.EventState) -> Iterator[tuple[str, int]]:
    if event.status is events.Status.GATE and event.opens_at_ms is not None:
        yield "its gate opens", event.opens_at_ms
    if event.status in {events.Status.WAITING, events.Status.GATE}:
        for engine, at_ms in event.deadlines.items():
            yield f"the deadline of {engine or 'all engines'} for updates", at_ms


def of_hosts(
    heartbeats: Mapping[str, vitals.Vitals], now_ms: int, silent_ms: int
) -> Iterator[Notice]:
    """Yield a notice for every host that has been silent for too long."""
    for host, seen in heartbeats.items():
        if now_ms - seen.at_ms > silent_ms:
            silent = str((now_ms - seen.at_ms) // 1000)
            fields = {"season": "", "season_name": "the farm", "host": host}
            fields["reason"] = f"it has been silent for {silent} s"
            notice_id = f"silent:{host}:{seen.at_ms}"
            yield Notice(notice_id, Kind.HOST_AWAY, now_ms, f"silent:{host}", fields)
