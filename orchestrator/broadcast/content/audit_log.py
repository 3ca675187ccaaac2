"""What has been decided in a season, and what has gone wrong: its log for spectators.

Made from the journal's entries as they come. Only kinds that are named here appear, and
of each only named facts: ``launched``, ``games_paired`` and ``book_mended`` tell the seed
and coming openings, so nothing of them is ever read. What hosts and people said
is told without paths, and nobody's name or login (``farm log`` has them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.arbiter import redact, verdict
from orchestrator.season import views
from orchestrator.season.fold import amendment_entries, entries
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import holding

FAULTS: Final = {
    contract.Ending.DISCONNECT: "crash",
    contract.Ending.STALL: "crash",
    contract.Ending.TIME: "time",
    contract.Ending.ILLEGAL: "illegal move",
}
_Facts = Mapping[str, Any]


def _exclusion(fields: _Facts) -> str:
    games = f"{len(fields['annulled'])} games annulled, {len(fields['cancelled'])} not played"
    return f"out of the event by {fields['cause']} ({games})"


def _replacement(fields: _Facts) -> str:
    disqualified = "disqualified, " if fields.get("cause") == "disqualification" else ""
    return f"{disqualified}replaced by {fields['substitute']['name']}"


def _gate(fields: _Facts) -> str:
    return f"the break is over ({fields['cause']})"


def _judged(fields: _Facts) -> str:
    ruling = f"{fields['scenario']}: {fields['evidence']}"
    return f"{ruling}; the organizers are asked" if fields.get("asks") else ruling


def _decided(fields: _Facts) -> str:
    return "the organizers have decided" if fields["name"] else f"decided by {fields['reason']}"


_TEXTS: Final[Mapping[str, Callable[[_Facts], str]]] = {
    entries.ATTEMPT_ENDED: lambda facts: f"interrupted at ply {facts['ply']}: {facts['cause']}",
    entries.ATTEMPT_JUDGED: _judged,
    entries.PAUSED: lambda _: "the season is paused",
    entries.RESUMED: lambda _: "the season goes on",
    entries.HELD: lambda _: "the farm holds the season",
    entries.GATE_OPENED: _gate,
    entries.ABORT_WISHED: lambda _: "the running game is interrupted by the operator",
    entries.SEASON_ABANDONED: lambda _: "the season is abandoned: nothing more of it is played",
    entries.ENGINE_EXCLUDED: _exclusion,
    entries.GAMES_CANCELLED: lambda facts: f"{len(facts['games'])} games will not be played",
    entries.DECISION_NEEDED: lambda facts: f"the organizers are asked: {facts['about']}",
    entries.EVENT_ADDED: lambda facts: f"a tie is played off: {facts['playoff']['name']}",
    entries.DECIDED: _decided,
    entries.GAME_ADJUDICATED: lambda facts: f"the organizers set {facts['finished']['result']}",
    entries.GAME_VOIDED: lambda facts: (
        "counts no longer" + (", is played again" if facts["replay"] else "")
    ),
    entries.EVENTS_UNDONE: lambda _: "what was built on its table is taken back",
    amendment_entries.ENGINE_REPLACED: _replacement,
    amendment_entries.BOOK_MENDED: lambda _: "openings that were not played yet were replaced",
    amendment_entries.GATE_MOVED: lambda _: "the break ends at another time",
    amendment_entries.HOST_AWAY: lambda _: "a host is away",
    amendment_entries.HOST_BACK: lambda _: "a host is back",
    amendment_entries.GAMES_IMPORTED: lambda facts: f"{len(facts['games'])} games were imported",
    amendment_entries.ENGINE_FLAGGED: lambda _: "answered without a search out of the book",
    amendment_entries.FLAG_DISMISSED: lambda _: "the organizers let it play on",
}


class Chronicle:
    """The log of one season, oldest first."""

    def __init__(self) -> None:
        """Start before the launch."""
        self.lines: list[dict[str, Any]] = []

    def note(self, entry: contract.Entry, state: season_state.SeasonState) -> None:
        """Note an entry that spectators should know of; ``state`` is the one after it."""
        if entry.kind == entries.GAME_FINISHED:
            self._note_fault(entry, state)
        elif entry.kind in _TEXTS:
            self.lines.append(_line(entry, state))

    def _note_fault(self, entry: contract.Entry, state: season_state.SeasonState) -> None:
        finished = contract.GameFinished.model_validate(entry.data)
        fault = FAULTS.get(finished.ending)
        if fault is None or finished.loser is None:
            return
        game = state.game(finished.game)
        loser = game.white if finished.loser == "white" else game.black
        self.lines.append(
            {
                "seq": entry.seq,
                "at_ms": entry.at_ms,
                "kind": "fault",
                "fault": fault,
                "event": game.event,
                "game": game.id,
                "engines": [views.name(state, loser, game.event)],
                "text": verdict.with_note(finished.details, redact.text(finished.note)),
                "reason": "",
            }
        )


def _line(entry: contract.Entry, state: season_state.SeasonState) -> dict[str, Any]:
    fields = entry.data
    game = fields.get("game", "")
    event = fields.get("event") or (state.games[game].event if game in state.games else "")
    return {
        "seq": entry.seq,
        "at_ms": entry.at_ms,
        "kind": entry.kind,
        "fault": None,
        "event": event or (fields.get("events") or [""])[0],
        "game": game,
        "engines": [
            views.name(state, engine, event)
            for engine in _engines(fields)
            if engine in state.engines
        ],
        "text": redact.text(_TEXTS[entry.kind](fields)),
        "reason": redact.text(_reason(entry)),
    }


def _reason(entry: contract.Entry) -> str:
    reason = str(entry.data.get("reason", ""))
    return holding.in_public(reason) if entry.kind == entries.HELD else reason


def _engines(fields: _Facts) -> list[str]:
    """Return whom an entry is about; ``choose`` is whom organizers chose, or only how many."""
    if fields.get("engine"):
        return [fields["engine"]]
    chosen = fields.get("choose")
    return list(chosen if isinstance(chosen, list) else fields.get("engines") or ())
