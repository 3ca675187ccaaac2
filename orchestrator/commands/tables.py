"""Tables for people: the views of a season on a terminal."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import rich.console
import rich.table
import rich.text

from orchestrator.arbiter import verdict
from orchestrator.season import needs
from orchestrator.season.file import wording
from orchestrator.season.fold import standings as season_standings

COLOURS = {  # the colours spectators know from event tabs
    "waiting": "yellow",
    "gate": "yellow",
    "open": "yellow",
    "running": "green",
    "paused": "magenta",
    "held": "bold red",
    "ranked": "red",
    "finished": "red",
    "abandoned": "dim",
}

_UNBOUND = 10_000  # columns that no terminal has: what a table takes if nothing cuts it
_FOLDED = 8  # results in a line of a cell: a longer row of them folds without harm
_DECIDED = 9  # columns that a line of *Decided by* keeps where it is folded: "sonneborn"
_GAME_HEADS = ("Game", "Round", "White", "Black", "Result", "How", "Plies", "Start", "Took")
_HOW_WIDTH = 20  # columns to which *How* may be folded before others are left out
_NOTE = 80  # characters in *How* behind the verdict; --json has all
_NARROW_HEADS = ("Game", "White", "Black", "Result", "How", "Start")
_UNDECIDED = "not decided"
_CAPTIONS = {  # beneath a table, by what decided a place of it
    season_standings.EXCLUDED: "excluded: its games (in brackets) are annulled, count for nobody",
    _UNDECIDED: f"{_UNDECIDED}: level, and nothing depends on it",
}

TIEBREAK_HEADS = {
    "crashes": "Cr",
    "direct-encounter": "DE",
    "wins": "Wins",
    "sonneborn-berger": "SB",
    "opponents-score": "COS",
    "black-games": "Black",
    "black-wins": "BWins",
    "r-mobility": "RMob",
}
# Counts that every table has without a chain that asks for them: no column of their own.
IN_COLUMNS = frozenset({"wins"})  # the column +


def word(status: str) -> rich.text.Text:
    """Write a status in its colour."""
    return rich.text.Text(status, style=COLOURS.get(status, ""))


def moment(at_ms: int | None) -> str:
    """Write a time in this machine's zone: the clock's alone today, else date and zone, too."""
    if at_ms is None:
        return ""
    local = dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).astimezone()
    today = dt.datetime.now(dt.UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M %Z")


def played(row: Mapping[str, Any]) -> str:
    """Write who played a finished game and how it ended."""
    how = verdict.with_note(row["details"], row["note"])
    return f"{row['white']} - {row['black']}  {row['result']}  {how}"


def need(waits: needs.Need, environment: str = "") -> str:
    """Say what waits for a person, and what is typed then, behind what finds the farm."""
    text = " ".join(filter(None, (waits.text, moment(waits.until_ms))))
    return f"{text} (`{environment}farm {waits.command}`)" if waits.command else text


def season(view: Mapping[str, Any]) -> rich.console.Group:
    """Show where a season stands, event by event, and below the table what there is to say."""
    title = f"{view['name']} ({view['season']}) in {view['hall']}: "
    caption = _how_far(view)
    if view["flags"]:
        names = ", ".join(flag["engine"] for flag in view["flags"])
        caption.append(f"flagged for a hidden book: {names} (`farm engine flags`)")
    caption += [
        f"excused in {event['event']}: {count} {'loss' if count == 1 else 'losses'} of {engine},"
        f" its host's fault ({_allowed(event)})"
        for event in view["events"]
        for engine, count in event["excused"].items()
    ]
    if view["pauses_at_ms"]:
        caption.append(f"pauses at {moment(view['pauses_at_ms'])}")
    if view["away"]:
        caption.append(f"away: {', '.join(view['away'])} (policy: {view['away_policy']})")
    if view["reason"] and view["status"] != "held":  # that is an alarm, with its reason
        caption.append(f"{view['status']}: {view['reason']}")
    if view["status"] in {"paused", "held"} and not _to_play(view):
        caption.append("every game is played: `farm season resume` ends the season")
    if view["running"]:
        running = view["running"]
        caption.append(f"now: {running['game']} {running['white']} - {running['black']}")
    table = rich.table.Table(
        title=rich.text.Text(title).append_text(word(view["status"])), title_justify="left"
    )
    for head in ("Event", "Name", "State", "Games", "Time control", "Left"):
        table.add_column(head)
    for event in view["events"]:
        table.add_row(*_event_cells(event))
    # No caption of the table: that would be folded to the table's width.
    below = rich.text.Text(", ".join(caption), style="table.caption")
    return rich.console.Group(table, below)


def _to_play(view: Mapping[str, Any]) -> bool:
    """Say whether a season still has games to come, or places to be decided."""
    return bool(view["decisions"]) or any(
        event["status"] not in {"ranked", "abandoned"} for event in view["events"]
    )


def _allowed(event: Mapping[str, Any]) -> str:
    allowed = event["excused_allowed"]
    return "any number may be" if allowed is None else f"at most {allowed}"


def _how_far(view: Mapping[str, Any]) -> list[str]:
    games = view["games"]
    played = f"{games['played']} of {games['total']} games"
    if view["status"] == "abandoned":
        return [played]
    title = view["title"]
    if view["champion"]:
        won = title["name"] if title else "champion"
        return [played, f"{won}: {view['champion']}"]
    if title and title["holder"]:
        played += f"; {title['name']}, until there is a winner: {title['holder']}"
    return [played, f"about {wording.duration(view['remaining_seconds'])} left"]


def _event_cells(event: Mapping[str, Any]) -> list[str | rich.text.Text]:
    over = event["status"] in {"ranked", "abandoned"}
    left = "" if over else wording.duration(event["remaining_seconds"])
    if event["status"] == "gate":
        left = f"opens {moment(event['opens_at_ms'])}"
        if event["opens_at_ms"] is None:
            left = f"`farm season open-gate {event['event']}`"
    played = f"{event['games']['played']}/{event['games']['total']}"
    state = word(event["status"])
    return [event["event"], event["name"], state, played, event["time_control_words"], left]


def hall(view: Mapping[str, Any], waiting: Sequence[str] = ()) -> str:
    """Show what a hall does; ``waiting`` are the seasons in it that are not over."""
    doing, unit = "no game", f"`systemctl start farm-hall@{view['hall']}`"
    if not view["worker"] and not view["problems"]:
        doing += (
            f", no worker has been started there yet (`farm up --hall {view['hall']}`, on hosts"
            f" {unit}; is it a mistyped name?)"
        )
    if view["game"]:
        doing = f"{view['game']} of {view['season']}, ply {view['ply']}, on {view['host']}"
        if view["overdue"]:
            doing += ", its lease is OVERDUE"
    if view["silent_seconds"] is not None:
        doing += f", {silent(view)}"
    if view["drained"]:
        doing += f", drained ({view['drained']}): {_drained(view, unit, waiting)}"
    holds = "; ".join(f"{hold}: {reason}" for hold, reason in view["holds"].items())
    failed = "".join(
        f"\n  the worker on {host} ended, it cannot open this hall: {problem}"
        for host, problem in view["problems"].items()
    )
    return f"{view['hall']}: {doing}" + (f" (held: {holds})" if holds else "") + failed


def silent(view: Mapping[str, Any]) -> str:
    """Say for how long a hall's hosts are not heard."""
    hosts, silence = ", ".join(view["hosts"]), wording.duration(view["silent_seconds"])
    return f"{hosts} silent for {silence} (runbook FarmHostSilent)"


def _drained(view: Mapping[str, Any], unit: str, waiting: Sequence[str]) -> str:
    if view["game"]:
        return "its worker ends after its game"
    waits = f"; {', '.join(waiting)} waits for it" if waiting else ""
    if not view["hosts"]:
        forgotten = "its worker has ended and its host was forgotten"
        return forgotten + (f"{waits}: make a host of that name again" if waits else "")
    return f"its worker has ended{waits}; {unit} on {', '.join(view['hosts'])} starts it again"


@dataclasses.dataclass(frozen=True)
class Standings:
    """An event's table with the criteria, and its crosstable where there is room for both."""

    view: Mapping[str, Any]

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        """Leave columns out rather than cut ranks, points and names short."""
        table = _standings(self.view, crosstable=False)
        unbound = options.update(width=_UNBOUND, no_wrap=True)
        needed = console.measure(table, options=unbound).maximum
        more = needed + _crosstable_width(self.view) - options.max_width
        if more <= 0:
            yield _standings(self.view, crosstable=True)
            return
        reasons = ["Decided by", *(_decided(self.view, row) for row in self.view["rows"])]
        if needed - max(map(len, reasons)) + _DECIDED > options.max_width:
            table = _points(self.view)
        room = f"crosstable: in a terminal {more} columns wider, on the live page, or by --json"
        table.caption = "\n".join(filter(None, [str(table.caption or ""), room]))
        yield table


def _crosstable_width(view: Mapping[str, Any]) -> int:
    """Return the room that results need, with rules and padding; long rows of them fold."""
    columns = zip(*(_cells(view, row) for row in view["rows"]), strict=True)
    longest = (max(map(len, column)) for column in columns)
    return sum(3 + max(2, min(_FOLDED, cells)) for cells in longest)


def standings(view: Mapping[str, Any]) -> Standings:
    """Show an event's table with the criteria, and its crosstable."""
    return Standings(view)


def _standings(view: Mapping[str, Any], *, crosstable: bool) -> rich.table.Table:
    rows: Sequence[Mapping[str, Any]] = view["rows"]
    title = f"{view['name']}: {_finality(view)}"
    table = rich.table.Table(title=title, title_justify="left", caption_justify="left")
    criteria = [c for c in view["chain"] if c in TIEBREAK_HEADS and c not in IN_COLUMNS]
    for head in ("#", "Engine", "Pts", "Gm", "+", "=", "-"):
        table.add_column(head, justify="left" if head == "Engine" else "right", no_wrap=True)
    for criterion in criteria:
        table.add_column(TIEBREAK_HEADS[criterion], justify="right", no_wrap=True)
    for number in range(1, len(rows) + 1) if crosstable else ():
        table.add_column(str(number), overflow="fold")
    table.add_column("Decided by", no_wrap=crosstable, overflow="fold")
    for position, row in enumerate(rows, start=1):
        cells = list(_cells(view, row)) if crosstable else []
        table.add_row(*_standing(position, row, criteria), *cells, _decided(view, row))
    decided = {_decided(view, row) for row in rows}
    table.caption = "; ".join(text for word, text in _CAPTIONS.items() if word in decided) or None
    return table


def _cells(view: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cells of a line; those of an engine that is out stand in brackets."""
    for against, cell in zip(view["rows"], row["results"], strict=True):
        out = season_standings.EXCLUDED in (row["decided_by"], against["decided_by"])
        yield "·" if cell is None else f"({cell})" if cell and out else cell


def _points(view: Mapping[str, Any]) -> rich.table.Table:
    """Show ranks and points alone, where there is no room for more."""
    title = f"{view['name']}: {_finality(view)}"
    table = rich.table.Table(title=title, title_justify="left", caption_justify="left")
    for head in ("#", "Engine", "Pts", "Gm"):
        left = head == "Engine"
        table.add_column(
            head, justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    for position, row in enumerate(view["rows"], start=1):
        table.add_row(*_standing(position, row, ())[:4])
    return table


def _decided(view: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Say what gave a row its place; a tie that stands in a final table decides nothing."""
    return row["decided_by"] or (_UNDECIDED if view["final"] else "")


def _finality(view: Mapping[str, Any]) -> str:
    if view["final"]:
        return "final table"
    undecided = view["open_decisions"]
    plural = "" if undecided == 1 else "s"
    if undecided:
        return f"table so far ({undecided} decision{plural} open)"
    return "table so far (a tie is played off)" if view["status"] == "ranked" else "standings"


def _standing(position: int, row: Mapping[str, Any], criteria: Sequence[str]) -> list[str]:
    counts = [str(row[key]) for key in ("games", "wins", "draws", "losses")]
    numbers = row["tiebreaks"]
    tiebreaks = [f"{numbers[c]:g}" if c in numbers else "-" for c in criteria]
    rank = str(row["rank"]) if row["rank"] == position else ""
    name = f"{row['name']} (provisional rating)" if row["provisional"] else row["name"]
    return [rank, name, f"{row['points']:g}", *counts, *tiebreaks]


@dataclasses.dataclass(frozen=True)
class Games:
    """Games in their order of play, with all that a terminal has room for."""

    rows: Sequence[Mapping[str, Any]]
    title: str

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        """Leave columns out rather than cut names short that a director types again."""
        whole = self._table(_GAME_HEADS)
        needed = console.measure(whole, options=options.update(width=_UNBOUND)).maximum
        folds = max([0, *(len(_game(row)[5]) - _HOW_WIDTH for row in self.rows)])
        yield whole if needed - folds <= options.max_width else self._table(_NARROW_HEADS)

    def _table(self, heads: Sequence[str]) -> rich.table.Table:
        table = rich.table.Table(title=self.title, title_justify="left")
        for head in heads:
            right = head in {"Plies", "Took"}
            whole = head in {"Game", "Result", "Start"}
            table.add_column(
                head, justify="right" if right else "left", no_wrap=whole, overflow="fold"
            )
        for row in self.rows:
            cells = dict(zip(_GAME_HEADS, _game(row), strict=True))
            table.add_row(*(cells[head] for head in heads))
        return table


def games(rows: Sequence[Mapping[str, Any]], title: str) -> Games:
    """Show games in their order of play."""
    return Games(rows, title)


def _short(note: str) -> str:
    """Cut what the end of a game rests on: people's reasons are as long as they like."""
    return note if len(note) <= _NOTE else f"{note[: _NOTE - 3].rstrip()}..."


def _game(row: Mapping[str, Any]) -> list[str]:
    pairing = [row["game"], row["round"], row["white"], row["black"]]
    if row["cancelled"]:
        return [*pairing, row["result"] or "", "cancelled", "", "", ""]
    if row["result"] is not None:
        took = wording.duration(row["duration_seconds"])
        details = verdict.with_note(row["details"], _short(row["note"]))
        result = f"({row['result']})" if row["annulled"] else row["result"]
        end = [result, details, str(row["plies"])]
        return [*pairing, *end, moment(row["started_ms"]), took]
    if row["running"]:
        return [*pairing, "*", "being played", "", moment(row["started_ms"]), ""]
    return [*pairing, "", "", "", f"~{moment(row['estimated_start_ms'])}", ""]
