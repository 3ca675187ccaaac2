"""``farm console``: all that a director does in a running season, on one screen.

What it shows: what the season waits for, the games to come, the table of the running event,
what people did. What it does are the farm's own commands with the words that one would type,
so that rules, journal and refusals are the same: each is tried first (``--dry-run``), says what
it will change, and is done after a yes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import click
import rich.console
from prompt_toolkit import (
    application,
    buffer,
    completion,
    document,
    filters,
    formatted_text,
    key_binding,
)
from prompt_toolkit.layout import containers, controls, dimension, layout, menus

from orchestrator import commands
from orchestrator.commands import common, families, organize, tables
from orchestrator.commands import log as season_log
from orchestrator.common import errors, output
from orchestrator.ledger import services, store
from orchestrator.season import audit_log, consequences, needs, views
from orchestrator.season.fold import disqualification, events, state

REFRESH_SECONDS: Final = 1.0  # s: how long a change may be unseen
GAMES: Final = 6  # games to come that are listed
ACTS_SHOWN: Final = 6  # of what people did, the latest
CANDIDATES: Final = 8  # lines of the list that Tab opens
LEFT_BY_ESC: Final = "left; nothing was done"
HINT: Final = "Press a key of the last line, or the number of what waits."
DOUBT: Final = "Do it? y, or n"
LEFT: Final = 0.5  # of the width: what is waited for and what comes; the table has the rest
_FIELD: Final = re.compile(r"{(\w+)}")


@dataclasses.dataclass(frozen=True)
class Act:
    """A command of the farm with ``{fields}`` that the director is asked for.

    ``reason`` says that it is refused without one, ``corrects`` that the season must be paused.
    """

    key: str
    title: str
    words: tuple[str, ...]
    of_season: bool = True  # false: of a hall, whichever season it plays
    reason: bool = False
    corrects: bool = False

    def filled(self, **given: str) -> Act:
        """Return the act with some fields known already."""
        filled_words = tuple(
            given.get(word[1:-1], word) if _FIELD.fullmatch(word) else word for word in self.words
        )
        return dataclasses.replace(self, words=filled_words)


def _correction(key: str, title: str, words: tuple[str, ...]) -> Act:
    return Act(key, title, words, reason=True, corrects=True)


ACTS: Final = (
    Act("p", "pause", ("season", "pause")),
    Act("r", "resume", ("season", "resume")),
    Act("g", "open gate", ("season", "open-gate", "{gate}")),
    Act("b", "abort running game", ("game", "abort")),
    _correction("a", "adjudicate", ("game", "adjudicate", "{game}", "--result", "{result}")),
    _correction("e", "replay", ("game", "replay", "{game}")),
    _correction("v", "void", ("game", "void", "{game}")),
    _correction("w", "withdraw", ("engine", "withdraw", "{engine}", "--event", "{event}")),
    _correction("x", "disqualify", ("engine", "disqualify", "{engine}", "--event", "{event}")),
    Act("d", "drain hall", ("host", "drain", "{hall}"), of_season=False),
    Act("u", "undrain hall", ("host", "undrain", "{hall}"), of_season=False),
    Act("h", "release hall", ("host", "release", "{hall}"), of_season=False),
)
BY_KEY: Final = {act.key: act for act in ACTS}
BY_TITLE: Final = {act.title: act for act in ACTS}
YES, NO = "y", "n"  # keys that answer, and are no act's
DECIDE: Final = Act(
    "", "decide", ("season", "decide", "{decision}", "--choose", "{choose}"), reason=True
)
DISMISS: Final = Act(
    "", "dismiss the flag", ("engine", "dismiss", "{engine}", "--event", "{event}"), reason=True
)
ANSWERS: Final = {  # what a need is answered with
    needs.Kind.HALL: BY_TITLE["release hall"],
    needs.Kind.HOLD: BY_TITLE["resume"],
    needs.Kind.PAUSE: BY_TITLE["resume"],
    needs.Kind.DECISION: DECIDE,
    needs.Kind.FLAG: DISMISS,
    needs.Kind.GATE: BY_TITLE["open gate"],
}
LOOKS: Final = frozenset(
    (
        "status",
        "season standings",
        "season schedule",
        "game list",
        "season graph",
        "season decisions",
        "engine flags",
        "season log",
        "host list",
        "doctor",
        "season check",
        "season ratings",
        "game trace",
    )
)  # commands that change nothing and end by themselves
RESULTS: Final = tuple(
    word
    for parameter in organize.adjudicate.params
    if isinstance(parameter.type, click.Choice)
    for word in parameter.type.choices
)
LABELS: Final = {
    "event": "Event",
    "gate": "Event whose gate is shut",
    "game": "Game",
    "result": f"Result ({', '.join(RESULTS)})",
    "engine": "Engine",
    "hall": "Hall",
    "choose": "Choose",
    "reason": "Why (kept in the journal)",
    "command": "farm",
}


# -- what is seen --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Waiting:
    """Something that waits for a person, with the act that ends the waiting."""

    text: str
    act: Act | None = None
    offers: tuple[str, ...] = ()  # of a decision: what may be chosen


@dataclasses.dataclass(frozen=True)
class Picture:
    """What the screen shows, as it was at the last look."""

    season: str = ""
    title: str = ""
    waiting: tuple[Waiting, ...] = ()
    games: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()
    table: rich.console.RenderableType = ""
    choices: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    away: str = ""
    moves: str = ""  # why no correction is taken now, '' where one is
    checks: Mapping[str, Callable[[str], object]] = dataclasses.field(default_factory=dict)

    def check(self, field: str, answer: str) -> None:
        """Raise ``FarmError`` for an answer that no command would take, in its words."""
        offers = self.choices.get(field, {})
        if not answer or field == "command" or field not in self.choices or answer in offers:
            return
        if field in self.checks:
            self.checks[field](answer)
        there = ", ".join(offers) or "none"
        raise errors.UsageError(f"{LABELS[field]}: found {answer!r}; there are: {there}")


def waiting(now: state.SeasonState, holds: Mapping[str, str], alarm: str) -> Iterator[Waiting]:
    """Yield what waits for a person, the most urgent first.

    ``holds`` are the hall's own, ``alarm`` what ``farm serve`` says of the season, or that it is
    not at work.
    """
    if alarm:
        yield Waiting(f"ALARM: {alarm}")
    for need in (*needs.of_hall(now.hall, holds), *needs.of_season(now)):
        act = ANSWERS[need.kind].filled(**need.named) if need.command else None
        yield Waiting(f"{need.text} {tables.moment(need.until_ms)}".rstrip(), act, need.offers)


@functools.cache
def _commands() -> tuple[str, ...]:
    """Return the names behind ``farm``, those of a family with its word."""
    context = click.Context(commands.farm, info_name="farm")
    names: list[str] = []
    for name in commands.farm.list_commands(context):
        family = commands.farm.get_command(context, name) if name in families.FAMILIES else None
        words = family.list_commands(context) if isinstance(family, click.Group) else ()
        names += [f"{name} {word}" for word in words] or [name]
    return tuple(sorted(names))


class Look:
    """Reads what the screen shows; raises nothing."""

    def __init__(self, ledger: store.RedisLedger, chosen: state.SeasonState) -> None:
        """Begin with a season as it was folded."""
        self._ledger, self._state = ledger, chosen
        self._acts = list(audit_log.acts(common.journal(ledger, chosen.launched.id)))
        self._last = Picture()

    def __call__(self) -> Picture:
        """Return what is to be seen now; Redis away is said, and the last picture kept."""
        try:
            self._catch_up()
            self._last = self._picture()
        except errors.FarmError as error:
            return dataclasses.replace(self._last, away=str(error))
        return self._last

    def _catch_up(self) -> None:
        for entry in common.follow(self._ledger, self._state.launched.id, self._state):
            self._acts += audit_log.acts([entry])

    def _picture(self) -> Picture:
        now, ledger = self._state, self._ledger
        name = now.launched.id
        seen = views.season(now)
        games = seen["games"]
        score = f"{games['played']} of {games['total']} games"
        title = f"{seen['name']} ({name}): {seen['status']}, {score}"
        if running := seen["running"]:
            title += f", now {running['game']} {running['white']} - {running['black']}"
        holds = ledger.holds(f"hall:{now.hall}")
        serve = services.read(ledger, services.SERVE, services.Serve)
        silence = "" if now.over else common.silence(serve, ledger.now_ms())
        begun = [event for event in now.events.values() if event.entrants]
        return Picture(
            season=name,
            title=title,
            waiting=tuple(waiting(now, holds, ledger.alarms().get(name, silence))),
            games=tuple(_games(now, ledger.now_ms())),
            acts=tuple(season_log.line(act) for act in self._acts[-ACTS_SHOWN:]),
            table=tables.standings(views.standings(now, begun[-1].id)) if begun else "",
            choices={
                "event": {event.id: event.status.value for event in now.events.values()},
                "gate": {
                    event.id: event.spec.name
                    for event in now.events.values()
                    if event.status is events.Status.GATE
                },
                "engine": {engine: views.name(now, engine) for engine in now.engines},
                "game": {game: _players(now, game) for game in now.games},
                "hall": dict.fromkeys(ledger.halls(), ""),
                "result": dict.fromkeys(RESULTS, ""),
                "command": dict.fromkeys(_commands(), ""),
            },
            moves=_moves(now),
            checks={"event": now.event, "gate": now.event, "game": now.game},
        )


def _players(now: state.SeasonState, game_id: str) -> str:
    """Return who plays a game and how it stands, beside its id in the list of candidates."""
    game = now.games[game_id]
    return f"{consequences.players(now, game)}, {consequences.standing(now, game)}"


def _moves(now: state.SeasonState) -> str:
    """Say why no correction is taken now, '' where one is."""
    try:
        disqualification.require_still(now)
    except errors.RefusedError as refusal:
        return str(refusal)
    return ""


def _games(now: state.SeasonState, now_ms: int) -> Iterator[str]:
    """Yield a line for each of the next games, the running one first."""
    left = GAMES
    for event in now.events.values():
        for row in views.schedule(now, event.id, now_ms) if event.order else ():
            if left and not row["result"] and (row["running"] or "estimated_start_ms" in row):
                left -= 1
                start = "now" if row["running"] else tables.moment(row["estimated_start_ms"])
                yield f"{start:>8}  {row['game']}  {row['white']} - {row['black']}"


# -- what is asked -------------------------------------------------------------------------


class Dialog:
    """One act on its way: what is still asked, then its command line."""

    def __init__(self, act: Act, offers: Sequence[str] = ()) -> None:
        """Ask for the fields of an act, then why; ``offers`` are what may be chosen."""
        self.act, self.offers = act, dict.fromkeys(offers, "")
        fields = [match[1] for word in act.words if (match := _FIELD.fullmatch(word))]
        self._asked = [*fields, *([] if fields == ["command"] else ["reason"])]
        self._answers: dict[str, str] = {}

    @property
    def asks(self) -> str:
        """Return the field that is asked now, '' when nothing is."""
        return next((name for name in self._asked if name not in self._answers), "")

    def answer(self, text: str) -> bool:
        """Take the answer to what is asked; an empty one where a reason may be left out alone."""
        answer = text.strip()
        if not answer and (self.asks != "reason" or self.act.reason):
            return False
        self._answers[self.asks] = answer
        return True

    def command(self, season: str, by: str) -> list[str]:
        """Return the words behind ``farm``; a reason that is not asked yet stands there as such."""
        filled = self.act.filled(**self._answers)
        if "command" in self._answers:
            return signed(families.words_now(shlex.split(self._answers["command"])), by)
        of = ["--season", season] if self.act.of_season else []
        return [*filled.words, *of, "--by", by, "--reason", self._answers.get("reason", "-")]


COMMAND: Final = Act(":", "any command", ("{command}",))


def dry(line_words: Sequence[str]) -> list[str] | None:
    """Return a command line that changes nothing, None where it is no change at all.

    Raise ``UsageError`` for what the console does not run: what neither only looks nor can
    be tried.
    """
    name, _ = _called(line_words)
    if _takes(line_words, "dry_run"):
        return None if "--dry-run" in line_words else [*line_words, "--dry-run"]
    if name in LOOKS:
        return None
    raise errors.UsageError(
        f"`farm {name}` has no --dry-run: the console runs what it can try first, and"
        f" {', '.join(sorted(LOOKS))}; type this one in another terminal"
    )


def signed(line_words: Sequence[str], by: str) -> list[str]:
    """Return a command line with who acts, where it changes something and does not say who."""
    says = any(word == "--by" or word.startswith("--by=") for word in line_words)
    return [*line_words, *(["--by", by] if _takes(line_words, "by") and not says else [])]


def _takes(line_words: Sequence[str], parameter: str) -> bool:
    """Say whether the command of a line has a parameter; raise ``UsageError`` for no command."""
    _, command = _called(line_words)
    return command is not None and any(each.name == parameter for each in command.params)


def _called(line_words: Sequence[str]) -> tuple[str, click.Command | None]:
    """Return the name behind ``farm`` that a line calls, and its command; none of no words.

    Raise ``UsageError`` where there is no such command.
    """
    context = click.Context(commands.farm, info_name="farm")
    command: click.Command | None = None
    name: list[str] = []
    for word in line_words:
        group: Any = commands.farm if command is None else command
        if not isinstance(group, click.Group):
            break
        name.append(word)
        inner = group.get_command(context, word)
        if inner is None:
            raise errors.UsageError(f"there is no command `farm {' '.join(name)}`")
        command = inner
    return " ".join(name), command


def run(line_words: Sequence[str]) -> tuple[int, str]:
    """Run a command of the farm in this process; return its exit code and what it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            commands.farm.main(list(line_words), prog_name="farm")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        else:
            code = 0
    return code, said.getvalue().strip()


def refusal_first(said: str, beside: str = "") -> str:
    """Return what a refused command said with the refusal itself in front.

    Behind all that would be changed, a small terminal cuts it off.
    """
    changes, mark, refusal = f"\n{said}".rpartition("\nfarm: ")
    return f"refused: {refusal}{beside}{changes}" if mark else f"{said}{beside}"


def _told(line_words: Sequence[str], code: int, said: str) -> str:
    """Return a command line and what came of it; of a refused one the refusal first."""
    line = f"farm {shlex.join(line_words)}"
    return f"{refusal_first(said)}\n{line}" if code else f"{line}\n{said}"


# -- the screen ----------------------------------------------------------------------------


class Screen:
    """The full-screen program: panes above, the dialog below, a key for each act."""

    def __init__(self, look: Callable[[], Picture], by: str) -> None:
        """Show what ``look`` returns; ``by`` is who acts."""
        self._look, self._by = look, by
        self._seen = Picture()
        self._dialog: Dialog | None = None
        self._ready: list[str] | None = None  # tried, and waits for a yes
        self._busy = False
        self._said = HINT
        self._done_acts: tuple[str, ...] | None = None  # what people had done when "done" was said
        self._looking, self._running = asyncio.Lock(), asyncio.Lock()  # one at a time
        self._tasks: set[asyncio.Task[None]] = set()
        self._input = buffer.Buffer(
            multiline=False,
            accept_handler=self._accept,
            completer=completion.DynamicCompleter(self._completer),
            complete_while_typing=True,
        )
        self._app: application.Application[None] = application.Application(
            layout=self._layout(), key_bindings=self._keys(), full_screen=True
        )

    def run(self) -> None:
        """Show the screen until the director leaves it."""
        self._app.run(pre_run=lambda: self._start(self._refresh()))

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refresh(self) -> None:
        while True:
            await self._see()
            if self._done_acts is not None and self._done_acts != self._seen.acts:
                self._done_acts = None  # others have acted since: what was done may not be so now
                if self._dialog is None and not self._busy:
                    self._said = HINT
            self._app.invalidate()
            await asyncio.sleep(REFRESH_SECONDS)

    async def _see(self) -> None:
        async with self._looking:
            self._seen = await asyncio.to_thread(self._look)

    async def _run(self, line_words: Sequence[str]) -> tuple[int, str]:
        async with self._running:
            return await asyncio.to_thread(run, line_words)

    # keys and answers

    def _keys(self) -> key_binding.KeyBindings:
        keys = key_binding.KeyBindings()
        idle = filters.Condition(lambda: self._dialog is None and not self._busy)
        asking = filters.Condition(self._is_asking)
        tried = filters.Condition(self._is_tried)
        for key, act in {**BY_KEY, COMMAND.key: COMMAND}.items():
            keys.add(key, filter=idle)(lambda _event, act=act: self._begin(act))
        for number in range(1, 10):
            keys.add(str(number), filter=idle)(lambda _event, at=number - 1: self._begin_at(at))
        keys.add("q", filter=idle)(lambda event: event.app.exit())
        keys.add("c-c")(lambda event: event.app.exit())
        keys.add("escape", filter=asking | tried, eager=True)(
            lambda _event: self._leave(LEFT_BY_ESC)
        )
        keys.add(YES, filter=tried)(lambda _event: self._do())
        keys.add(NO, filter=tried)(lambda _event: self._leave("nothing was done"))
        return keys

    def _is_asking(self) -> bool:
        return self._dialog is not None and self._ready is None and not self._busy

    def _is_tried(self) -> bool:
        return self._ready is not None and not self._busy

    def _begin_at(self, index: int) -> None:
        if index < len(self._seen.waiting):
            chosen = self._seen.waiting[index]
            self._said = chosen.text
            if chosen.act is not None:
                self._begin(chosen.act, chosen.offers)

    def _begin(self, act: Act, offers: Sequence[str] = ()) -> None:
        if act.corrects and self._seen.moves:
            self._said = f"{self._seen.moves}. Until then you only see what it would change."
        fields = {match[1] for word in act.words if (match := _FIELD.fullmatch(word))}
        if "gate" in fields and not self._seen.choices.get("gate"):
            self._said = "no gate is shut"
            return
        only = {
            field: next(iter(offered))
            for field in fields
            if len(offered := self._seen.choices.get(field, {})) == 1
        }
        self._dialog, self._ready = Dialog(act.filled(**only), offers), None
        self._input.reset()
        self._app.layout.focus(self._input)
        self._foresee(self._dialog)

    def _leave(self, said: str) -> None:
        self._dialog = self._ready = None
        self._said = said

    def _accept(self, typed: buffer.Buffer) -> bool:
        """Take a line; try the command when it was the last one."""
        dialog = self._dialog
        if dialog is None or self._busy or self._ready is not None:
            return False
        try:
            text = self._meant(typed.text.strip())
            self._seen.check(dialog.asks, text)
        except errors.FarmError as error:
            self._said = str(error)
            return False
        if not dialog.answer(text):
            label = LABELS[dialog.asks]
            self._said = f"{label}: an answer is needed; Tab shows what there is, Esc goes back"
        elif not dialog.asks:
            self._busy = True
            self._start(self._try(dialog))
        else:
            self._foresee(dialog)
        return False  # the line is cleared

    def _meant(self, typed: str) -> str:
        """Return an answer; the only candidate that begins like it is meant."""
        if self._dialog is None or self._dialog.asks in {"reason", "command"}:
            return typed
        line = document.Document(typed)
        event = completion.CompleteEvent(completion_requested=True)
        candidates = list(self._completer().get_completions(line, event))
        if len(candidates) != 1:
            return typed
        return typed[: len(typed) + candidates[0].start_position] + candidates[0].text

    def _foresee(self, dialog: Dialog) -> None:
        """Try an act as soon as only its reason is missing: what is refused is said before that."""
        if dialog.asks == "reason":
            self._start(self._tried_early(dialog))

    async def _tried_early(self, dialog: Dialog) -> None:
        line_words = dialog.command(self._seen.season, self._by)
        code, said = await self._run([*line_words, "--dry-run"])
        if not code or self._dialog is not dialog or self._busy or self._ready is not None:
            return  # the director has gone on already
        # The reason may be half typed: it stays where it is.
        self._said = refusal_first(said, "; Esc goes back")
        self._app.invalidate()

    async def _try(self, dialog: Dialog) -> None:
        try:
            line_words = dialog.command(self._seen.season, self._by)
            tried = await asyncio.to_thread(dry, line_words)
            code, said = await self._run(line_words if tried is None else tried)
        except (errors.FarmError, ValueError) as error:
            self._leave(str(error))
        else:
            if tried is None or code:
                self._leave(_told(line_words, code, said))
            else:
                self._ready, self._said = line_words, _told(line_words, code, said)
        self._busy = False
        self._app.invalidate()

    def _do(self) -> None:
        line_words = self._ready or []
        self._busy = True
        self._start(self._done(line_words))

    async def _done(self, line_words: Sequence[str]) -> None:
        code, said = await self._run(line_words)
        await self._see()
        self._done_acts = self._seen.acts
        self._leave(("" if code else "done: ") + _told(line_words, code, said))
        self._busy = False
        self._app.invalidate()

    def _completer(self) -> completion.Completer:
        if self._dialog is None:
            return completion.DummyCompleter()
        asks = self._dialog.asks
        offers = self._dialog.offers if asks == "choose" else self._seen.choices.get(asks, {})
        return Candidates(offers, several=asks == "choose")

    # panes

    def _layout(self) -> layout.Layout:
        asking = filters.Condition(self._is_asking)
        tried = filters.Condition(self._is_tried)
        line = containers.VSplit(
            [
                containers.Window(
                    controls.FormattedTextControl(self._prompt),
                    dont_extend_width=True,
                    style="bold",
                ),
                containers.Window(controls.BufferControl(self._input)),
            ],
            height=1,
        )
        left = containers.HSplit([_pane(self._waits), _pane(self._coming)])
        body = containers.VSplit([left, containers.Window(width=2), _pane(self._table, wrap=False)])
        rows = [
            _pane(self._title, height=2),
            body,
            # What an act would change is read before all else: a small terminal shows that whole.
            containers.ConditionalContainer(
                _pane(self._acts, height=ACTS_SHOWN + 1), filter=~tried
            ),
            _pane(self._message, height=dimension.Dimension(min=3, max=16, weight=4)),
            containers.ConditionalContainer(_pane(lambda: DOUBT, height=1), filter=tried),
            containers.ConditionalContainer(line, filter=asking),
            _pane(self._footer, height=self._footer_height, style="reverse", wrap=False),
        ]
        candidates = menus.CompletionsMenu(max_height=CANDIDATES, scroll_offset=1)
        above = containers.Float(candidates, xcursor=True, ycursor=True)
        return layout.Layout(containers.FloatContainer(containers.HSplit(rows), [above]))

    def _title(self) -> str:
        away = f"\n{self._seen.away}" if self._seen.away else ""
        return output.plain(self._seen.title + away)

    def _waits(self) -> str:
        lines = [f" {at}  {task.text}" for at, task in enumerate(self._seen.waiting, start=1)]
        return output.plain("\n".join(["WAITS FOR YOU", *(lines or [" nothing"])]))

    def _coming(self) -> str:
        return output.plain("\n".join(["NEXT GAMES", *(self._seen.games or (" none is paired",))]))

    def _acts(self) -> str:
        # A small terminal cuts off the end: what was done last is what counts.
        latest_first = self._seen.acts[::-1]
        return output.plain("\n".join(["WHAT PEOPLE DID, the latest first", *latest_first]))

    def _table(self) -> formatted_text.ANSI:
        width = self._app.output.get_size().columns
        return formatted_text.ANSI(output.drawn(self._seen.table, int(width * (1 - LEFT)) - 2))

    def _message(self) -> str:
        return output.plain("working ..." if self._busy else self._said)

    def _prompt(self) -> str:
        return f"{LABELS[self._dialog.asks]}: " if self._dialog and self._dialog.asks else ""

    def _footer(self) -> str:
        return key_lines(self._app.output.get_size().columns)

    def _footer_height(self) -> int:
        return self._footer().count("\n") + 1


class Candidates(completion.Completer):
    """What may be answered, by its beginning; of several, behind commas, what is not there yet."""

    def __init__(self, offers: Mapping[str, str], *, several: bool) -> None:
        """Offer words, each with what is said beside it."""
        self._offers, self._several = offers, several

    def get_completions(
        self,
        document: document.Document,
        complete_event: completion.CompleteEvent,  # noqa: ARG002 - prompt_toolkit gives it
    ) -> Iterator[completion.Completion]:
        """Yield the words that begin like the one before the cursor."""
        typed = document.text_before_cursor
        *chosen, last = typed.split(",") if self._several else [typed]
        begun, taken = last.lstrip(), {word.strip() for word in chosen}
        for word, beside in self._offers.items():
            if word.startswith(begun) and word not in taken:
                yield completion.Completion(word, -len(begun), display_meta=beside)


def key_lines(columns: int) -> str:
    """Return what each key does, in lines of a terminal's width; none breaks inside a key."""
    keys = [(act.key, act.title) for act in (*ACTS, COMMAND)]
    keys += [("1-9", "what waits"), ("Esc", "back"), ("q", "leave")]
    lines = [""]
    for key, title in keys:
        text = f"{key} {title}"
        if lines[-1] and len(lines[-1]) + 2 + len(text) > columns:
            lines.append("")
        lines[-1] += f"  {text}" if lines[-1] else text
    return "\n".join(lines)


def _pane(
    text: Callable[[], Any], *, height: Any = None, style: str = "", wrap: bool = True
) -> containers.Window:
    control = controls.FormattedTextControl(text)
    return containers.Window(control, height=height, style=style, wrap_lines=wrap)


def _shown_once(picture: Picture) -> None:
    console = common.console()
    for line in (picture.title, *(f"waits: {task.text}" for task in picture.waiting)):
        console.print(line)
    for line in (*picture.games, *picture.acts):
        console.print(line)
    console.print(picture.table)


@click.command()
@common.season_argument
@common.by_option("Who acts.")
@click.option("--once", is_flag=True, help="Print what the screen shows now, and end.")
def console(season: str | None, by: str, *, once: bool) -> None:
    """Direct a running season on one screen: what needs you, games, table, a key an action.

    Each action is the command of the same name: it says what it will change, and asks first.
    Example: farm console --by anna
    """
    with common.open_ledger() as ledger:
        look = Look(ledger, common.choose(ledger, season))
        if once:
            _shown_once(look())
            return
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise errors.UsageError("farm console needs a terminal; --once prints the same once")
        Screen(look, by).run()
