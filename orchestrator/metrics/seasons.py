"""Metrics of seasons, events and engines: all of them follow from a season's journal.

Counters are counts over the journal, so they never go back but by a restore or an undone
event, and survive any restart of the exporter.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption
from orchestrator.metrics import families, histogram
from orchestrator.season import current, decisions, views
from orchestrator.season.fold import entries, events, openings, own_book, pairing, progress, tally
from orchestrator.season.fold import state as season_state

STATUSES: Final = ("running", "waiting", "paused", "held", "finished", "abandoned")
SCENARIOS: Final = {scenario.value: scenario.name.lower() for scenario in interruption.Scenario}
ORGANIZERS: Final = "decided"  # what they answered
DURATIONS: Final = (10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0, 14400.0)  # s


class Watched:
    """One season: its fold, and counts of what the fold does not keep."""

    def __init__(self, season: str) -> None:
        """Start before the launch."""
        self.id = season
        self.state = season_state.SeasonState(season)
        self.ended_ms: int | None = None
        self.freed_ms = 0  # when a game of it left its hall last
        self.counts: collections.Counter[str] = collections.Counter()
        self.scenarios: collections.Counter[tuple[str, str]] = collections.Counter()

    def follow(self, read: Callable[[int], Sequence[contract.Entry]]) -> None:
        """Fold and count what ``read`` has behind the state; raise ``LedgerDamagedError``."""
        for entry in season_state.follow(self.state, read):
            self._count(entry)

    def _count(self, entry: contract.Entry) -> None:
        if entry.kind in {"game_finished", "attempt_ended"}:
            self.freed_ms = entry.at_ms
        if entry.kind in {entries.PAUSED, entries.HELD}:
            self.counts[entry.kind] += 1
        elif entry.kind == entries.ATTEMPT_JUDGED:
            event = self.state.game(entry.data["game"]).event
            self.scenarios[event, SCENARIOS.get(entry.data["scenario"], ORGANIZERS)] += 1
        elif entry.kind in entries.ENDS:
            self.ended_ms = entry.at_ms


def write(sheet: families.Sheet, season: Watched, now_ms: int, mirrored: int) -> None:
    """Write all samples of a season."""
    state, name = season.state, season.id
    whole = progress.of_season(state)
    ends_ms = season.ended_ms or now_ms + whole.remaining_seconds * 1000
    launched = state.launched
    sheet.set("farm_season_info", 1, season=name, name=launched.season.name, hall=state.hall)
    gauges: Mapping[str, float | None] = {
        "launch_timestamp_seconds": state.launched_ms / 1000,
        "progress_ratio": whole.share,
        "games_expected": whole.total,
        "end_timestamp_seconds": ends_ms / 1000,
        "journal_entries": state.seq,
        "mirror_lag_entries": state.seq - mirrored,
        "decisions_open": len(list(decisions.outstanding(state))),
        "flags_open": len(list(own_book.standing(state))),
        "hosts_away": len(state.away),
        "next_gate_timestamp_seconds": _seconds(state.next_deadline_ms()),
    }
    for gauge, value in gauges.items():
        sheet.set(f"farm_season_{gauge}", value, season=name)
    status = views.status(state)
    for status_name in STATUSES:
        sheet.set("farm_season_status", status_name == status, season=name, status=status_name)
    sheet.set("farm_pauses_total", season.counts[entries.PAUSED], season=name)
    sheet.set("farm_holds_total", season.counts[entries.HELD], season=name)
    for event in state.events.values():
        _event(sheet, season, event, now_ms)


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000


def waiting(sheet: families.Sheet, watched: Sequence[Watched], busy: Collection[str]) -> None:
    """Write since when the next game of each free hall could be begun.

    Of several seasons in a hall only the first in the order of launches, which is that of
    ``watched``, is next: the others wait for it, however long, and nothing is wrong. ``busy`` are
    the halls that play.
    """
    halls = dict.fromkeys(season.state.hall for season in watched)
    for hall in (name for name in halls if name not in busy):
        here = [season for season in watched if season.state.hall == hall]
        ready = [season for season in here if season.state.ready_game() is not None]
        if ready and not any(season.state.running for season in here):
            since_ms = max(ready[0].state.at_ms, *(season.freed_ms for season in here))
            labels = {"season": ready[0].id, "hall": hall}
            sheet.set("farm_season_ready_since_timestamp_seconds", since_ms / 1000, **labels)


def followed(sheet: families.Sheet, watched: Sequence[Watched]) -> None:
    """Write which season the page and TCEC's feeds show: of several halls they show one."""
    shown = current.shown(season.state for season in watched)
    if shown is not None:
        sheet.set("farm_feed_followed", 1, season=shown.launched.id, hall=shown.hall)


def _event(sheet: families.Sheet, season: Watched, event: events.EventState, now_ms: int) -> None:
    labels = {"season": season.id, "event": event.id}
    done = progress.of_event(season.state, event.id)
    ends_ms = event.ranked_ms or now_ms + done.remaining_seconds * 1000
    sheet.set("farm_event_progress_ratio", done.share, **labels)
    sheet.set("farm_event_games_expected", done.total, **labels)
    if event.entrants:
        sheet.set("farm_event_end_timestamp_seconds", ends_ms / 1000, **labels)
    for status in events.Status:
        sheet.set("farm_event_status", status is event.status, status=status.value, **labels)
    for scenario in (*SCENARIOS.values(), ORGANIZERS) if event.entrants else ():
        count = season.scenarios[event.id, scenario]
        sheet.set("farm_interruptions_total", count, scenario=scenario, **labels)
    games = [season.state.games[game] for game in event.order]
    played = [game for game in games if game.finished is not None]
    _games(sheet, played, labels)
    _engines(sheet, season.state, event, played, labels)


def _games(sheet: families.Sheet, played: list[events.Game], labels: dict[str, str]) -> None:
    ends: collections.Counter[tuple[str, str]] = collections.Counter()
    lengths = histogram.Histogram(DURATIONS)
    for game in played:
        assert game.finished is not None
        ends[game.finished.result, game.finished.ending.value] += 1
        if not game.finished.imported:
            lengths.add((game.finished.ended_ms - game.finished.started_ms) / 1000)
    for (result, ending), count in sorted(ends.items()):
        sheet.set("farm_games_finished_total", count, result=result, termination=ending, **labels)
    if lengths.count:
        sheet.buckets("farm_game_duration_seconds", lengths.buckets(), lengths.total, **labels)


_LOST: Final = {
    contract.Ending.TIME: "farm_engine_time_losses_total",
    contract.Ending.ILLEGAL: "farm_engine_illegal_moves_total",
}
_CRASHED: Final = "farm_engine_crashes_total"


def _engines(
    sheet: families.Sheet,
    state: season_state.SeasonState,
    event: events.EventState,
    played: list[events.Game],
    labels: dict[str, str],
) -> None:
    faults: collections.Counter[tuple[str, str]] = collections.Counter()
    used: collections.Counter[str] = collections.Counter()
    given: collections.Counter[str] = collections.Counter()
    games: collections.Counter[str] = collections.Counter()
    for game in played:
        fact = game.finished
        assert fact is not None
        games.update((game.white, game.black))
        side = tally.crashed(fact)
        fault = _CRASHED if side else _LOST.get(fact.ending)
        if fault and (side or fact.loser):
            faults[fault, game.white if (side or fact.loser) == "white" else game.black] += 1
        for engine, had, left in _clocks(state, event, game, fact):
            given[engine] += had
            used[engine] += had - left
    for engine in event.entrants:
        engine_labels = labels | {"engine": engine}
        sheet.set("farm_engine_games_total", games[engine], **engine_labels)
        for name in (*_LOST.values(), _CRASHED):
            sheet.set(name, faults[name, engine], **engine_labels)
        sheet.set("farm_engine_time_given_seconds_total", given[engine] / 1e9, **engine_labels)
        sheet.set("farm_engine_time_used_seconds_total", used[engine] / 1e9, **engine_labels)
        sheet.set("farm_engine_crashes_left", _crashes_left(event, engine), **engine_labels)
        sheet.set("farm_engine_excluded", engine in event.excluded, **engine_labels)
    for row in event.rows or pairing.table(state, event):
        engine_labels = labels | {"engine": row.engine}
        sheet.set("farm_engine_points", row.points, **engine_labels)
        sheet.set("farm_engine_rank", row.rank, **engine_labels)


def _crashes_left(event: events.EventState, engine: str) -> int | None:
    """Return how many crashes disqualify the engine (S16-15c), None where none will."""
    limit, crashed = event.spec.disqualify_after, event.tally.crashed.get(engine, 0)
    never = not limit or not crashed or engine in event.excluded
    return None if never else max(0, limit - crashed)


def _clocks(
    state: season_state.SeasonState,
    event: events.EventState,
    game: events.Game,
    fact: contract.GameFinished,
) -> list[tuple[str, int, int]]:
    """Return of both engines what their clocks were given and what was left, in ns.

    Only of controls without periods, whose games were begun on a full clock.
    """
    control = game.time_control or event.spec.time_control
    if fact.imported or not control.base_ms or control.moves:
        return []
    opening = openings.of_game(state, game)
    first = len(opening.moves)
    black_begins = opening.fen is not None and opening.fen.split()[1] == "b"
    sides = ((game.white, fact.white_clock_ns), (game.black, fact.black_clock_ns))
    clocks = []
    for side, (engine, left) in enumerate(sides):
        had = given(control, own_moves(first, fact.plies, side ^ black_begins))
        clocks.append((engine, had, min(left, had)))
    return clocks


def own_moves(first: int, plies: int, side: int) -> int:
    """Return how many of the plies after the book's are of a side (0: who began the game)."""
    return len(range(first + (first + side) % 2, plies, 2))


def given(control: contract.TimeControl, moves: int) -> int:
    """Return the nanoseconds of a clock for so many moves."""
    return (control.base_ms + moves * control.increment_ms) * 1_000_000
