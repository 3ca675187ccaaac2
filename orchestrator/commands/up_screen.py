"""What ``farm up`` shows: what happens in the seasons that it plays, and what is left of one."""

from __future__ import annotations

import pathlib
from typing import Any, Final

import rich.console

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.commands import common, log, tables
from orchestrator.common import errors, output, processor
from orchestrator.ledger import store
from orchestrator.season import audit_log, decide, needs, views
from orchestrator.season.fold import entries, events, openings, state
from orchestrator.season.spec import interruption_rules

_SUBSTITUTE: Final = "--with ID --entry engines.toml --played replay --reason WHY"
_REMEDIES: Final = (  # for an engine that does not start, in the order in which they are typed
    ("first", "season pause --reason WHY"),
    ("once it is repaired, try it", "engine test {engine}"),
    ("and play its lost games again", "game replay GAME --reason WHY"),
    ("or replace it", f"season amend engine {{engine}} --event {{event}} {_SUBSTITUTE}"),
    ("or take it out", "engine withdraw {engine} --event {event} --reason WHY"),
    ("then", "season resume"),
)
_LAST: Final = frozenset({entries.EVENT_RANKED, entries.DECIDED, entries.PAUSED})
_TOLD_ELSEWHERE: Final = frozenset({entries.LAUNCHED, entries.PAUSED})  # acts, too
REFEREE: Final = 1  # cores beside the thinking engine's: the referee's, and the farm's


class Screen:
    """One line a finished game, interruption or decision; the table of a finished event."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        console: rich.console.Console,
        others: processor.Others,
        *,
        awaited: str | None,
        data: pathlib.Path,
        environment: str,
        quiet: bool,
    ) -> None:
        """Show the ledger's seasons; the end of an ``awaited`` one is told by ``report``.

        ``environment`` stands before commands that people are told to type.
        """
        self._ledger = ledger
        self._console = console
        self._others = others
        self._awaited, self._environment = awaited, environment
        self._data = data
        self._quiet = quiet
        self._states: dict[str, state.SeasonState] = {}
        self._alarms: dict[str, str] = {}  # season to what was wrong with it last
        self._looked = False  # at what was there when this began
        self._measured = self._blamed = False  # others' load has been told: at the start, at a loss
        self._unstarted: set[tuple[str, str, str]] = set()  # season, event and engine: told of

    def look(self) -> None:
        """Print what has happened since the last look."""
        for season in self._ledger.seasons():
            try:
                self._follow(season)
            except Exception as error:  # an alarm says so; the other seasons are told of
                if errors.is_outage(error):
                    raise
        for season, reason in self._ledger.alarms().items():
            if self._alarms.get(season) != reason:
                self._alarms[season] = reason
                self._console.print(f"farm: ALARM, {season}: {reason}")
        if not self._looked:
            self._looked = True
            self._tell_rest()
            self._tell_needs()
        self._tell_load()

    def _follow(self, season: str) -> None:
        folded = self._states.setdefault(season, state.SeasonState(season))
        for entry in common.follow(self._ledger, season, folded):
            if self._looked:  # else it was there before
                self._tell(folded, entry)

    def _tell_load(self) -> None:
        """Say once, as soon as it has been measured, that others use what engines need."""
        self._others.look()
        if self._others.used is not None and not self._measured:
            self._measured = True
            if crowd := self._crowd():
                self._console.print(f"farm: {crowd}: engines may lose on time because of them")

    def _crowd(self) -> str:
        events = (event for folded in self._states.values() for event in folded.events.values())
        threads = max((event.spec.limits.threads for event in events), default=1)
        return self._others.crowd(threads + REFEREE)

    def _tell_rest(self) -> None:
        """Say what there is to do where a farm has nothing to play from its start on."""
        if not self._states and not self._alarms and not common.emptied(()):
            self._console.print(
                f"farm: no season yet: {self._command('season launch FILE')} begins one"
            )
        elif all(folded.over for folded in self._states.values()):
            last = list(self._states.values())[-1]
            if not last.finished:
                self._console.print(f"{last.launched.id} was abandoned", style="bold")
            self._tell_end(last)

    def _tell_needs(self) -> None:
        """Say what the seasons that were there before wait for."""
        for season, folded in self._states.items():
            for need in needs.of_season(folded):
                line = f"{season} waits: {tables.need(need, self._environment)}"
                style = "bold red" if need.urgent else None
                self._console.print(line, style=style, soft_wrap=True)

    def _tell_end(self, folded: state.SeasonState) -> None:
        """Say who has won a season, and what can be done next."""
        season = folded.launched.id
        if folded.finished:
            champion = views.name(folded, folded.champion)
            self._console.print(f"{season} is over: {champion} is the champion", style="bold")
        self._console.print(f"its tables: {self._command(f'season standings {season}')}")
        self._console.print(f"its games: {_archive(self._data, folded) / '*.pgn'}", soft_wrap=True)
        if all(folded_season.over for folded_season in self._states.values()):
            another = self._command("season launch FILE --id ANOTHER")
            self._console.print(f"another season: {another}; Ctrl-C ends the farm")

    def _command(self, arguments: str) -> str:
        return f"`{self._environment}farm {arguments}`"

    def _tell(self, folded: state.SeasonState, entry: contract.Entry) -> None:
        kind, data = entry.kind, entry.data
        if kind == entries.LAUNCHED:
            launched = folded.launched
            name, engines = launched.season.name, len(launched.engines)
            line = f"{launched.id} is launched: {name}, {output.some(engines, 'engine')}"
            self._console.print(line, style="bold")
        line = _line(folded, kind, data)
        if not line and kind not in _TOLD_ELSEWHERE:
            line = "".join(map(log.what_was_done, audit_log.acts([entry])))  # what a person did
        if line:
            several = len(self._states) > 1  # then a line names its season
            self._console.print(f"{folded.launched.id}: {line}" if several else line)
        if kind in {entries.EVENT_RANKED, entries.DECIDED} and not self._quiet:
            self._console.print(tables.standings(views.standings(folded, data["event"])))
        if kind in _LAST and decide.waits_to_end(folded):
            resume = self._command(f"season resume {folded.launched.id}")
            self._console.print(f"every game is played: {resume} ends the season")
        if kind in {entries.HELD, entries.PAUSED}:
            self._tell_stop(folded, kind)
        if kind == entries.GAME_FINISHED and data["ending"] == contract.Ending.TIME:
            self._tell_blame()
        if kind == entries.GAME_FINISHED:
            self._tell_start(folded, folded.game(data["game"]))
        if kind in entries.ENDS and folded.launched.id != self._awaited:
            self._tell_end(folded)

    def _tell_stop(self, folded: state.SeasonState, kind: str) -> None:
        """Say that a season is held or paused, why, and what goes on with it."""
        season, held = folded.launched.id, kind == entries.HELD
        why = f"held: {folded.held}" if held else f"paused: {folded.paused}"
        resume = self._command(f"season resume {season}")
        line = f"{season} is {why}; {resume} goes on"
        self._console.print(line, style="bold red" if held else None, soft_wrap=True)

    def _tell_blame(self) -> None:
        """Say once that a loss on time may come from others' load."""
        crowd = "" if self._blamed else self._crowd()
        if crowd:
            self._blamed = True
            self._console.print(f"{crowd}: this loss on time may come from them")

    def _tell_start(self, folded: state.SeasonState, game: events.Game) -> None:
        """Say once of an engine that it crashed before a move was played, and what to do."""
        played = game.finished
        if played is None or played.loser is None or played.refused:
            return
        if played.ending not in verdict.CRASHES:
            return
        engine, event = getattr(game, played.loser), folded.events[game.event]
        key = (folded.launched.id, game.event, engine)
        if played.plies > len(openings.of_game(folded, game).moves) or key in self._unstarted:
            return
        self._unstarted.add(key)
        after = event.spec.disqualify_after
        out = f"it is disqualified after {after} crashes" if after else "nothing disqualifies it"
        self._console.print(
            f"{engine} DID NOT START in {game.id}, and loses each game like that:"
            f" {out} (disqualify_after = {after})",
            style="bold red",
        )
        named = {"engine": engine, "event": game.event}
        for what, command in _REMEDIES:
            line = f"  {what}: {self._command(command.format(**named))}"
            self._console.print(line, soft_wrap=True)

    def tell_last_game(self, hall: str) -> None:
        """Print the result that was waited for, or what becomes of the game that was given up."""
        try:
            self.look()
        except (errors.LedgerAwayError, errors.LedgerDamagedError) as error:
            self._console.print(f"the last game's result cannot be read now: {error}")
            self._console.print(f"the farm keeps it; later: {self._command('season schedule')}")
            return
        for folded in self._states.values():
            if folded.running is not None and folded.running.hall == hall:
                game = folded.running.game
                rules = folded.events[folded.game(game).event].spec.interruptions
                self._console.print(f"{game} is given up: next time it {_goes_on(rules)}")

    def how_it_goes_on(self) -> str:
        """Return the end of the last line: how what is not over is played on, '' if all is over."""
        if all(folded.over for folded in self._states.values()):
            return ""
        return f"; {self._command('up')} goes on"

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
                " data, then `farm season resume`"
            )
        return folded if folded is not None and folded.finished else None


def _goes_on(rules: contract.Interruptions) -> str:
    """Return what an event's rules make of a game that is interrupted now."""
    how = "begins again" if rules.otherwise == "restart" else "goes on from its last move"
    judged = any(getattr(rules, bound) is not None for bound in interruption_rules.BOUNDS)
    return f"{how}, unless the event's rules decide it there" if judged else how


def _line(folded: state.SeasonState, kind: str, data: Any) -> str:
    """Return the one line that tells a fact, '' where it needs none."""
    match kind:
        case entries.GAME_FINISHED:
            return _result(folded, data["game"])
        case entries.ATTEMPT_ENDED:
            return f"{data['game']}: interrupted ({data['cause']})"
        case entries.ATTEMPT_JUDGED:
            asked = (
                "; the organizers are asked (`farm season decisions`)" if data.get("asks") else ""
            )
            return f"{data['game']}: {data['scenario']}: {data['evidence']}{asked}"
        case entries.DECISION_NEEDED:
            return f"{data['decision']}: the organizers are asked (`farm season decisions`)"
        case entries.DECIDED:
            by = data["name"] or data["reason"]
            return f"{data['decision']}: decided by {by}: {', '.join(data['choose'])}"
        case entries.GATE_SET:
            event = data["event"]
            name = folded.events[event].spec.name
            if data["opens_at_ms"] is None:
                return f"{name} waits for you: `farm season open-gate {event}` begins it"
            return f"{name} opens {tables.moment(data['opens_at_ms'])}"
        case entries.EVENT_ADDED:
            tied = ", ".join(data["asked"]["engines"])
            return f"{data['playoff']['name']}: {tied} play their tie off"
        case entries.SEASON_ABANDONED:
            return f"the season is abandoned by {data['name']}: {data['reason']}"
    return ""


def _result(folded: state.SeasonState, game: str) -> str:
    row = views.game(folded, game)
    done = folded.events[row["event"]].tally.games
    total = views.event(folded, row["event"])["games"]["total"]
    return f"{game} ({done} of {total})  {tables.played(row)}, {row['plies']} plies"


def report(
    season: state.SeasonState,
    data: pathlib.Path,
    console: rich.console.Console,
    *,
    tables_shown: bool,
    as_json: bool,
) -> None:
    """Say who has won a finished season, by which tables, and where its files are."""
    archive = _archive(data, season)
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


def _archive(data: pathlib.Path, season: state.SeasonState) -> pathlib.Path:
    return data / "archive" / season.launched.id
