"""What ``farm up`` shows: what happens in the seasons that it plays, and what is left of one."""

from __future__ import annotations

import pathlib
from typing import Any

import rich.console
import rich.markup

from orchestrator import errors
from orchestrator.arbiter import verdict
from orchestrator.commands import common, tables
from orchestrator.ledger import api
from orchestrator.season import entries, state, views


class Screen:
    """One line a finished game, interruption or decision; the table of a finished event."""

    def __init__(self, ledger: api.Ledger, console: rich.console.Console, *, quiet: bool) -> None:
        self._ledger = ledger
        self._console = console
        self._quiet = quiet
        self._states: dict[str, state.SeasonState] = {}

    def look(self) -> None:
        """Print what has happened since the last look."""
        for season in self._ledger.seasons():
            known = season in self._states
            folded = self._states.setdefault(season, state.SeasonState())
            while entries := self._ledger.read(season, folded.seq):
                for entry in entries:
                    folded.apply(entry)
                    if known:
                        self._tell(folded, entry.kind, entry.data)

    def _tell(self, folded: state.SeasonState, kind: str, data: Any) -> None:
        line = _line(folded, kind, data)
        if line:
            several = len(self._states) > 1  # then a line names its season
            self._console.print(f"{folded.launched.id}: {line}" if several else line)
        if kind in {entries.EVENT_RANKED, entries.DECIDED} and not self._quiet:
            self._console.print(tables.standings(views.standings(folded, data["event"])))
        if kind == entries.HELD:
            self._console.print(f"held: {data['reason']}", style="bold red")

    def finished(self, season: str | None) -> state.SeasonState | None:
        """Return the state of a season that is finished.

        Raise ``RefusedError`` for one that will not be finished: abandoned, or held.
        """
        folded = self._states.get(season or "")
        if folded is not None:
            folded.require_not_abandoned()
        if folded is not None and folded.held:
            raise errors.RefusedError(
                f"{season} is held: {folded.held}; look at the logs, run `farm up` on the same"
                " data, then `farm resume`"
            )
        return folded if folded is not None and folded.finished else None


def _line(folded: state.SeasonState, kind: str, data: Any) -> str:
    """Return the one line that tells a fact, '' where it needs none."""
    match kind:
        case entries.GAME_FINISHED:
            return _result(folded, data["game"])
        case entries.ATTEMPT_ENDED:
            return f"{data['game']}: interrupted ({data['cause']})"
        case entries.ATTEMPT_JUDGED:
            asked = "; the organizers are asked (`farm decisions`)" if data.get("asks") else ""
            return f"{data['game']}: {data['scenario']}: {data['evidence']}{asked}"
        case entries.DECISION_NEEDED:
            return f"{data['decision']}: the organizers are asked (`farm decisions`)"
        case entries.DECIDED:
            return f"{data['decision']}: decided by {data['name']}: {', '.join(data['choose'])}"
        case entries.SEASON_ABANDONED:
            return f"the season is abandoned by {data['name']}: {data['reason']}"
    return ""


def _result(folded: state.SeasonState, game: str) -> str:
    row = views.game(folded, game)
    done = folded.events[row["event"]].tally.games
    total = views.event(folded, row["event"])["games"]["total"]
    how = verdict.with_note(row["details"], rich.markup.escape(row["note"]))
    return (
        f"{row['event']} {done}/{total}  {row['white']} - {row['black']}"
        f"  {row['result']}  {how}, {row['plies']} plies"
    )


def report(
    season: state.SeasonState,
    data: pathlib.Path,
    console: rich.console.Console,
    *,
    tables_shown: bool,
    as_json: bool,
) -> None:
    """Say who has won a finished season, by which tables, and where its files are."""
    archive = data / "archive" / season.launched.id
    if as_json:
        common.print_json(
            {
                "season": views.season(season),
                "standings": [views.standings(season, event) for event in season.events],
                "journal": str(archive / "journal.jsonl"),
                "pgn": [str(archive / f"{event}.pgn") for event in season.events],
            }
        )
        return
    for event in () if tables_shown else season.events:
        console.print(tables.standings(views.standings(season, event)))
    console.print(f"champion: {views.name(season, season.champion)}")
    console.print(f"journal:  {archive / 'journal.jsonl'}")
    for event in season.events:
        console.print(f"PGN:      {archive / f'{event}.pgn'}")
