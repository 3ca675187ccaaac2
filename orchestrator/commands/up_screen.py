"""What ``farm up`` shows: what happens in the seasons that it plays, and what is left of one."""

from __future__ import annotations

import pathlib
from typing import Any

import rich.console

from orchestrator import errors
from orchestrator.commands import common, tables
from orchestrator.ledger import store
from orchestrator.season import state, views


class Screen:
    """One line a finished game, and the table of a finished event."""

    def __init__(
        self, ledger: store.RedisLedger, console: rich.console.Console, *, quiet: bool
    ) -> None:
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
        if kind == "game_finished":
            row = views.game(folded, data["game"])
            done = folded.events[row["event"]].tally.games
            total = views.event(folded, row["event"])["games"]["total"]
            self._console.print(
                f"{row['event']} {done}/{total}  {row['white']} - {row['black']}"
                f"  {row['result']}  {row['details']}, {row['plies']} plies"
            )
        elif kind == "attempt_ended":
            self._console.print(f"{data['game']}: interrupted ({data['cause']}), played again")
        elif kind == "event_ranked" and not self._quiet:
            self._console.print(tables.standings(views.standings(folded, data["event"])))
        elif kind == "held":
            self._console.print(f"held: {data['reason']}", style="bold red")

    def finished(self, season: str | None) -> state.SeasonState | None:
        """Return the state of a season that is over; raise ``RefusedError`` for one held."""
        folded = self._states.get(season or "")
        if folded is not None and folded.held:
            raise errors.RefusedError(
                f"{season} is held: {folded.held}; look at the logs, run `farm up` on the same"
                " data, then `farm resume`"
            )
        return folded if folded is not None and folded.finished else None


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
