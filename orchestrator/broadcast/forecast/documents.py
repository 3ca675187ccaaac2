"""Rating list and forecast as documents, from folded journals (S16-14).

The same journals give the same documents, but for ``made_ms``. Where there is nothing to
tell, ``absent`` is a sentence that says why, else None. The rating list is what
``farm ratings --white-advantage --draw-rate --errors 100 --average A`` prints, and a
forecast what ``farm forecast --runs N`` does, engines named; its end counts from the journal's last
moment, as the starts in the schedule do.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.arbiter import redact
from orchestrator.broadcast.content import rank_odds, tables
from orchestrator.common import errors
from orchestrator.forecast import forecast as forecasts
from orchestrator.forecast import rating_list
from orchestrator.rating import lists, ordo
from orchestrator.season import views
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState
ERROR_RUNS: Final = 100  # simulations of the list: errors to a tenth, in half a second
SEED: Final = 1  # of the runs: who forecasts by hand from the same journal sees the same


# -- the rating list -------------------------------------------------------------------


def ratings(
    states: Sequence[State],
    games: Sequence[rating_list.Result],
    families: Mapping[str, str],
    now_ms: int,
) -> dict[str, Any]:
    """Return the farm's rating list from ``games``, the official ones of all its seasons."""
    counted = collections.Counter(games)
    scale = rating_list.scale(states, counted, families)
    head = {
        "made_ms": now_ms,
        "games": len(games),
        "average": scale.average,
        "rosters": scale.rosters,
        "journals": {state.launched.id: state.seq for state in states},
    }
    wanted = ordo.Settings(white=None, draws=None, average=scale.average)
    kept = rating_list.RatingList(wanted, families)
    try:
        spread, rows = kept.listed(counted, states, ERROR_RUNS)
    except errors.RefusedError:
        return head | {"absent": "No game has been finished yet.", "ratings": []}
    document = lists.as_json(spread, rows)
    for line, row in zip(document["ratings"], rows, strict=True):
        line.update(percent=round(row.percent, 2))
    return head | {"absent": None} | document


# -- the forecast ----------------------------------------------------------------------


def forecast(state: State, runs: int, now_ms: int) -> dict[str, Any]:
    """Return what the rest of a season may bring, by ``runs`` of it."""
    head = {
        "season": state.launched.id,
        "journal": state.seq,
        "made_ms": now_ms,
        "games": sum(event.tally.games for event in state.events.values()),
        "unrated": [engine.name for engine in state.engines.values() if engine.rating is None],
    }
    absent = _why_absent(state, runs)
    if absent is not None:
        return head | {"absent": absent, "runs": 0}
    try:
        asked = forecasts.Forecast(state, SEED)
        odds = forecasts.forecast(asked, runs, processes=1)
    except errors.OrganizerError as error:
        why = redact.text(str(error))
        return head | {"absent": f"The rest cannot be played out: {why}.", "runs": 0}
    document = forecasts.as_json(asked, odds, tables.base_ms(state))
    document["champion"] = [_named(state, line) for line in document["champion"]]
    document["events"] = [_event(state, event) for event in document["events"]]
    return head | {"absent": None} | document


def _why_absent(state: State, runs: int) -> str | None:
    if runs == 0:
        return "This farm shows no forecast."
    if state.over:
        return "The season was abandoned." if state.abandoned else "The season is over."
    if all(engine.rating is None for engine in state.engines.values()):
        return "No engine of this season has a rating to forecast by."
    return None


def _named(state: State, line: dict[str, Any]) -> dict[str, Any]:
    return {"engine": line["engine"], "name": views.name(state, line["engine"])} | line


def _event(state: State, odds: dict[str, Any]) -> dict[str, Any]:
    """Return an event's chances; ``relegates`` says how many its table sends down."""
    spec = state.events[odds["id"]].spec
    return {
        "event": odds["id"],
        "name": odds["name"],
        "relegates": spec.relegate,
        "promotes": [
            {"to": to, "name": state.events[to].spec.name}
            for to in dict.fromkeys(promotion.to for promotion in spec.promote)
        ],
        "engines": [_named(state, line) for line in odds["engines"]],
    }


# -- kept up to date -------------------------------------------------------------------

# Entries that change no chance: a game begins, is interrupted, is judged to go on.
UNMOVED: Final = frozenset({"attempt_started", "attempt_ended", "attempt_judged", "abort_wished"})


class Outlook:
    """Folds journals as they grow, and makes the documents again that they change."""

    def __init__(self, runs: int, families: Mapping[str, str]) -> None:
        """Start without a season."""
        self._runs, self._families = runs, families
        self._states: dict[str, State] = {}
        self._moved: set[str] = set()
        self._rated: tuple[object, object] | None = None

    def take(self, season: str, entries: Sequence[contract.Entry]) -> None:
        """Fold a journal's next entries; raise ``LedgerDamagedError``."""
        state = self._states.setdefault(season, State())
        for entry in season_state.fold_each(state, entries):
            if entry.kind not in UNMOVED:
                self._moved.add(season)

    def documents(self, now_ms: int) -> dict[str, Any]:
        """Return the documents that have changed since the last call, by their places."""
        made = {
            rank_odds.forecast(season): forecast(self._states[season], self._runs, now_ms)
            for season in sorted(self._moved)
        }
        self._moved.clear()
        states = list(self._states.values())
        games = rating_list.results(states)
        basis = (games, rating_list.established_families(states, self._families))
        if basis != self._rated:
            self._rated = basis
            made[rank_odds.RATINGS] = ratings(states, games, self._families, now_ms)
        return made
