"""``farm new``: a season file from a few answers, with a comment on what can be changed in it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from orchestrator import contract
from orchestrator.arbiter import data
from orchestrator.commands import common, paths, programs, starts, test_games
from orchestrator.common import errors, files
from orchestrator.engines import known_programs
from orchestrator.ledger import embedded_redis
from orchestrator.season.file import describe, load

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS: Final = {  # what the fourth question asks, and its usual answer
    "round-robin": ("Games between each two engines (an even number)", 2),
    "match": ("Games (an even number)", 20),
    "knockout": ("Games in a match (an even number)", 4),
    "gauntlet": ("Games of the first engine against each other one (an even number)", 2),
    "swiss": ("Rounds", 0),
}
TIME: Final = "3+2"
ENGINES: Final = 64  # beyond, a roster file is the better place


class Given(NamedTuple):
    """What options have said."""

    name: str | None
    engines: str | None
    kind: str | None
    games: int | None
    time: str | None
    final: int | None = None


class Answers(NamedTuple):
    """What a season is made of; ``engines`` are programs by name or path, the strongest first."""

    name: str
    engines: tuple[str, ...]
    format: str
    games: int
    time: str
    final: int | None = None  # games of a final of the first two


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=pathlib.Path))
@click.option("--name", help="The season's name.")
@click.option("--engines", help="Programs, by name or path, the strongest first: A,B,C.")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="How they meet.")
@click.option("--games", type=click.IntRange(1), help="Games of each two, of a match; rounds.")
@click.option("--time", help="Time control: minutes+seconds such as 3+2, or 10s+100ms.")
@click.option("--final", type=click.IntRange(2), help="Then the first two play so many games.")
@click.option("--yes", is_flag=True, help="Ask nothing: the usual where no option says more.")
@common.json_option
def new(
    file: pathlib.Path,
    name: str | None,
    engines: str | None,
    kind: str | None,
    games: int | None,
    time: str | None,
    final: int | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Write a season file: a few questions, or the same by options.

    FILE is new, such as autumn.toml; books/balanced.pgn is put beside it. The file is checked, its
    comments say what else it could hold. Each engine is started once, as in a game: the file says
    which protocol it speaks, and a warning which one does not play. Nothing is launched.

    \b
    Examples:
    farm new autumn.toml
    farm new autumn.toml --engines stockfish,ethereal-chess,./mine --format round-robin --yes
    farm new club.toml --final 4                asks the rest, and adds a final of the first two
    """  # noqa: D301 - click reads the backspace as "do not wrap"
    _refuse_taken(file)
    asks = sys.stdin.isatty() and not yes
    if not asks and not yes and not as_json:
        click.echo(
            "No terminal, so nothing is asked: what no option says is the usual (the answers as"
            " options: `farm season new --help`)",
            err=True,
        )
    here = starts.Programs(quiet=as_json)
    given = Given(name, engines, kind, games, time, final)
    _write(file, _answers(file, given, _Asker(asks=asks), here), here, as_json=as_json)


def _short(function: Function) -> Function:
    """Add what ``farm cup`` and ``farm league`` take."""
    kind = function.__name__
    options = (
        click.argument("engines", nargs=-1, required=True, metavar="ENGINE..."),
        click.option(
            "--tc", default="10+0.1", show_default=True, help="In seconds, or with units."
        ),
        click.option("--games", type=click.IntRange(1), help="Of each two; an even number."),
        click.option(
            "--file",
            default=f"{kind}.toml",
            show_default=True,
            type=click.Path(dir_okay=False, path_type=pathlib.Path),
            help="The season file that is written; it is new.",
        ),
        common.json_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@_short
def cup(
    engines: Sequence[str], tc: str, games: int | None, file: pathlib.Path, *, as_json: bool
) -> None:
    """Write the season file of a knockout of these engines, the strongest first.

    ENGINE is a program, by name or path. Nothing is launched; what to type next is printed.

    Example: farm cup stockfish ethereal-chess toga2 ./mine --tc 10+0.1
    """
    _from_line(file, engines, "knockout", games, tc, as_json=as_json)


@click.command()
@_short
def league(
    engines: Sequence[str], tc: str, games: int | None, file: pathlib.Path, *, as_json: bool
) -> None:
    """Write the season file of a round robin of these engines, the strongest first.

    ENGINE is a program, by name or path. Nothing is launched; what to type next is printed.

    Example: farm league stockfish ethereal-chess toga2 ./mine --tc 8+0.08 --games 4
    """
    _from_line(file, engines, "round-robin", games, tc, as_json=as_json)


def _from_line(
    file: pathlib.Path,
    engines: Sequence[str],
    kind: str,
    games: int | None,
    tc: str,
    *,
    as_json: bool,
) -> None:
    _refuse_taken(file)
    control = test_games.control(tc)
    given = Given(None, ",".join(engines), kind, games, _with_units(control))
    here = starts.Programs(quiet=as_json)
    _write(file, _answers(file, given, _Asker(asks=False), here), here, as_json=as_json)


def _with_units(control: contract.TimeControl) -> str:
    """Write a time control so that a season file reads it without doubt: ``10s+100ms``."""
    limits = {"nodes": control.nodes, "depth": control.depth}
    parts = [f"{name}={limit}" for name, limit in limits.items() if limit is not None]
    if control.move_ms is not None:
        parts.insert(0, f"{control.move_ms}ms/move")
    elif control.base_ms:
        period = f"{control.moves}/" if control.moves else ""
        parts.insert(0, f"{period}{_span(control.base_ms)}+{_span(control.increment_ms)}")
    return " ".join(parts)


def _span(ms: int) -> str:
    return f"{ms}ms" if ms % 1000 else f"{ms // 1000}s"


def _refuse_taken(file: pathlib.Path) -> None:
    if file.exists():
        raise errors.RefusedError(f"{file} is there already; name another file, or remove it")


def _write(file: pathlib.Path, answers: Answers, here: starts.Programs, *, as_json: bool) -> None:
    """Write and check the season file, and say what it is and what to do with it."""
    started = here.start([_command(program) for program in answers.engines])
    book_path = file.parent / "books" / data.BALANCED.name
    book_is_new = not book_path.exists()
    book_path.parent.mkdir(parents=True, exist_ok=True)
    if book_is_new:
        files.write(book_path, data.BALANCED.read_bytes())
    protocols = {program: start.protocol for program, start in started.items()}
    files.write(file, text(file, answers, protocols).encode())
    try:
        loaded = load.load(file)
    except errors.FarmError:
        file.unlink()
        if book_is_new:
            book_path.unlink()
        raise
    report = describe.explain(loaded) | {"file": str(file), "book": str(book_path)}
    report["warnings"] += programs.of_season(loaded)
    ids = {spec.command[0]: spec.id for spec in reversed(loaded.engines)}
    report["warnings"] += starts.warnings({ids[name]: start for name, start in started.items()})
    if as_json:
        common.print_json(report)
        return
    for line in describe.sentences(report):
        click.echo(line)
    click.echo(f"\nWritten: {file}, {book_path}. Look at it, change it, then:")
    click.echo(f"  farm season check {file}")
    # Where a farm is at work, here or elsewhere, `farm up` would be a second one.
    works = paths.at_desk() or embedded_redis.running_here() is not None
    begin = f"season launch {file}" if works else f"up --launch {file} --until-finished"
    click.echo(f"  farm {begin}")


# -- the questions -------------------------------------------------------------------------


class _Asker:
    """Gives what an option said, else asks, else takes the usual."""

    def __init__(self, *, asks: bool) -> None:
        self.asks, self._number = asks, 0

    def answer(
        self,
        option: str,
        given: Any,
        question: str,
        usual: Any,
        read: Callable[[Any], Any],
        kind: Any = None,
    ) -> Any:
        """Return what ``read`` makes of the next answer; what it refuses is asked again.

        Raise ``UsageError`` where an option or the usual is refused: nobody is there to ask.
        """
        self._number += 1
        if given is None and self.asks:
            asked = f"{self._number}. {question}"
            return click.prompt(asked, default=usual, type=kind, value_proc=_asked_again(read))
        try:
            return read(usual if given is None else given)
        except ValueError as error:
            raise errors.UsageError(f"{option}: {error}") from None


def _asked_again(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(answer: Any) -> Any:
        try:
            return read(answer)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return checked


def _answers(file: pathlib.Path, given: Given, asker: _Asker, here: starts.Programs) -> Answers:
    """Return the answers; raise ``UsageError`` for what cannot be."""
    usual: Any = re.sub(r"[-_]+", " ", file.stem).title()
    name = asker.answer("--name", given.name, "Name of the season", usual, str)
    question = "Engines, by name or path, the strongest first"
    usual = None if given.engines else " ".join(_playing(here, asks=asker.asks)) or None
    read_engines = _doubted() if asker.asks and given.engines is None else _engines_of
    engines = asker.answer("--engines", given.engines, question, usual, read_engines)
    usual = "match" if len(engines) == 2 else "round-robin"
    form = functools.partial(_format_of, len(engines))
    choice = click.Choice(list(FORMATS))
    kind = asker.answer("--format", given.kind, "Format", usual, form, choice)
    question, usual = FORMATS[kind]
    usual = usual or min((len(engines) + 1) // 2, math.ceil(math.log2(len(engines))) + 1)
    read = _rounds_of if kind == "swiss" else _games_of
    games = asker.answer("--games", given.games, question, usual, read)
    question = (
        "Time control as chess writes it (3+2: 3 minutes, and 2 seconds a move), or in seconds"
        " (10s+100ms)"
    )
    time = asker.answer("--time", given.time, question, TIME, _time_of)
    if given.final is not None and kind in {"match", "knockout"}:
        raise errors.UsageError(f"--final: found a {kind}, which ends with its winner")
    final = None
    if kind not in {"match", "knockout"}:
        question = "Games of a final of the first two (an even number; 0: no final)"
        final = asker.answer("--final", given.final, question, 0, _final_of) or None
    return Answers(name, engines, kind, games, time, final)


def _playing(here: starts.Programs, *, asks: bool) -> list[str]:
    """Return the programs known by name that are here and play; say which ones do not."""
    installed = known_programs.installed([programs.search_path()])
    if asks and installed:
        click.echo(
            f"Of the engines that are here, {', '.join(installed)}, each is started once now, to"
            " offer those that play. What you type meanwhile is not read."
        )
    started = here.start(installed)
    if asks and installed:
        _forget_typed()
    left_out = [name for name, start in started.items() if start.tried and start.problem]
    for name in left_out:
        click.echo(f"farm: {name} is here and does not play: {started[name].problem}", err=True)
    return [name for name in installed if name not in left_out]


def _forget_typed() -> None:
    """Drop what was typed before its question was there; Windows' console keeps it."""
    with contextlib.suppress(ImportError):
        import termios  # noqa: PLC0415 - Windows has none, and needs no less of this command

        termios.tcflush(sys.stdin, termios.TCIFLUSH)


EVEN: Final = "an even number, so that both have White as often"


def _engines_of(answer: str | None) -> tuple[str, ...]:
    """Read names and paths, commas or blanks between; with commas a path may have blanks."""
    words = answer or ""
    listed = common.listed(words) if "," in words else tuple(words.split())
    if not 2 <= len(listed) <= ENGINES:
        here = ", ".join(known_programs.installed([programs.search_path()]))
        raise ValueError(
            f"found {len(listed)}; allowed: 2 to {ENGINES} programs by name or path, commas or"
            f" blanks between; here are {here or 'none by a known name'}"
        )
    return tuple(listed)


def _doubted() -> Callable[[str | None], tuple[str, ...]]:
    """Return a reader of engines that refuses programs which are not here, the first time.

    They may be the hall's, where it is another machine; more often a name was mistyped.
    """
    before: list[tuple[str, ...]] = []

    def read(answer: str | None) -> tuple[str, ...]:
        listed = _engines_of(answer)
        away = [program for program in listed if starts.is_away(_command(program))]
        if away and listed not in before:
            before.append(listed)
            raise ValueError(
                f"no program on this machine: {_names(away)}; if the hall has it, give the same"
                f" answer again{_blanks_in(away)}"
            )
        return listed

    return read


def _names(listed: Sequence[str]) -> str:
    """Join names; one with a blank in it is quoted, as it may have been meant as several."""
    return ", ".join(f"{name!r}" if " " in name else name for name in listed)


def _blanks_in(listed: Sequence[str]) -> str:
    if not any(" " in name for name in listed):
        return ""
    return ". With a comma in the answer blanks do not part names: put a comma behind each"


def _format_of(engines: int, answer: str) -> str:
    kind = "-".join(answer.lower().split())
    if kind not in FORMATS:
        raise ValueError(f"found {answer!r}; allowed: {', '.join(FORMATS)}")
    if kind == "match" and engines != 2:
        raise ValueError(
            f"found a match of {engines} engines; allowed: two; in a `gauntlet` the first one"
            " meets all others"
        )
    return kind


def _rounds_of(answer: str | int) -> int:
    try:
        rounds = int(answer)
    except ValueError:
        raise ValueError(f"found {answer!r}; allowed: a number") from None
    if rounds < 1:
        raise ValueError(f"found {rounds}; allowed: 1 and more")
    return rounds


def _games_of(answer: str | int) -> int:
    games = _rounds_of(answer)
    if games % 2:
        raise ValueError(f"found {games}; allowed: {EVEN}")
    return games


def _final_of(answer: str | int) -> int:
    return 0 if str(answer).strip() == "0" else _games_of(answer)


def _time_of(answer: str) -> str:
    try:
        contract.TimeControl.parse(answer)
    except ValueError as error:
        allowed = "minutes+seconds such as 3+2, or with units, such as 10s+100ms"
        raise ValueError(f"found {answer!r} ({error}); allowed: {allowed}") from None
    return answer


# -- the file ------------------------------------------------------------------------------


def text(file: pathlib.Path, answers: Answers, protocols: Mapping[str, str]) -> str:
    """Return the season file of these answers; ``protocols`` are known of commands."""
    identity = _slug(file.stem) or "season"
    return "\n".join(
        [
            f"# {_line(answers.name)}. Check this file: farm season check {file}",
            f"# Play it: farm up --launch {file}. All that a file can say: docs/season-file.md",
            "# (/docs/season-file on the page of `farm up`);",
            "# keys and mistakes in your editor: farm season schema season.",
            "",
            "schema = 1",
            f"id = {_quoted(identity)}",
            f"name = {_quoted(_line(answers.name))}",
            '# site = "Our club"             # the PGN\'s Site; default: the hall',
            "",
            "# The engines in the order of their seeds, the strongest first.",
            *itertools.chain.from_iterable(_engines(answers.engines, protocols)),
            "# Openings of three to five moves, balanced for Stockfish; `farm match book`: more.",
            "[books.balanced]",
            f'file = "books/{data.BALANCED.name}"',
            'order = "random"                # drawn once at launch; or "sequential"',
            "repeat = true                   # begin again when an event has used all",
            "",
            *_events(answers),
        ]
    )


def _command(program: str) -> str:
    """Return how a hall is told of a program: a path whole, for it knows no other folder."""
    return str(pathlib.Path(program).expanduser().absolute()) if "/" in program else program


def _engines(programs_: Sequence[str], protocols: Mapping[str, str]) -> Iterator[list[str]]:
    taken: set[str] = set()
    for number, program in enumerate(programs_):
        path, command = pathlib.Path(program).expanduser(), _command(program)
        protocol = protocols.get(command) or known_programs.protocol(path.name)
        base = _slug(path.name) or f"engine-{number + 1}"
        identity = base
        while identity in taken:
            identity = f"{base}-{len(taken) + 1}"
        taken.add(identity)
        yield [
            "[[roster.engine]]",
            f"id = {_quoted(identity)}",
            f"name = {_quoted(path.name if identity == base else identity)}",
            f"command = [{_quoted(command)}]",
            *(['protocol = "xboard"'] if protocol == "xboard" else []),
            *(_EXAMPLES if not number else []),
            "",
        ]


_EXAMPLES: Final = (
    '# version = "1.0"               # what the tables and the PGN show',
    '# author = "Me"',
    "# rating = 3000                 # forecasts go by ratings; without any all count as equal",
    '# options = { "Move Overhead" = 10 }',
)


def _events(answers: Answers) -> Iterator[str]:
    """Yield the event, or the rounds of a knockout; the usual rules are written out."""
    if answers.format != "knockout":
        promote = 'promote = [{ top = 2, to = "final" }]'
        ends: tuple[str, ...] = ()
        if answers.final is not None:
            ends = (promote,)
        elif answers.format == "round-robin":
            ends = (f"# {promote}   # to the final below",)
        form = _format(answers)
        name = answers.format.replace("-", " ").capitalize()
        yield from _event("main", name, form, answers.time, first=True, more=ends)
        if ends:
            yield from _final(answers)
        return
    rounds = math.ceil(math.log2(len(answers.engines)))
    names = ["final", "semifinal", "quarterfinal"]
    names += [f"round-of-{2**power}" for power in range(4, rounds + 1)]
    pairs = answers.games // 2
    for at in range(rounds - 1, -1, -1):
        first, left = at == rounds - 1, 2**at
        bracket = ', bracket = "equal-distance"' if first else ""
        placed = f", placed = {min(8, left)}" if first and left > 1 else ""
        form = f'{{ kind = "knockout", pairs = {pairs}{bracket}{placed} }}'
        more = ['tiebreaks = ["organizers"]    # none: pairs are added until one is won']
        if at:
            more += [f'promote = [{{ top = {left}, to = "{names[at - 1]}" }}]']
        name = names[at].replace("-", " ").capitalize()
        yield from _event(names[at], name, form, answers.time, first=first, more=more)


def _format(answers: Answers) -> str:
    rounds = answers.games // 2
    return {
        "round-robin": f'{{ kind = "round-robin", double_rounds = {rounds} }}',
        "gauntlet": f'{{ kind = "gauntlet", double_rounds = {rounds} }}',
        "swiss": f'{{ kind = "swiss", rounds = {answers.games} }}',
        "match": f'{{ kind = "match", games = {answers.games},'
        " extensions = [{ games = 2, repeat = true }] }",
    }[answers.format]


def _event(
    identity: str, name: str, form: str, time: str, *, first: bool, more: Sequence[str] = ()
) -> Iterator[str]:
    yield "[[event]]"
    yield f"id = {_quoted(identity)}"
    yield f"name = {_quoted(_line(name))}"
    yield f"format = {form}"
    if first:
        yield 'entrants = "roster"             # all; or a list of ids'
        wait = f"farm season amend gate {identity} --at TIME"
        yield f'# break = "operator"           # launched, it waits for you: {wait}'
    yield f'time_control = "{time}"'
    yield 'book = "balanced"'
    yield "limits = { threads = 1, hash_mb = 64 }"
    yield from more
    yield "# Games that are decided end early, as most testers end them."
    yield "[event.adjudication]"
    yield "draw = { move_number = 34, move_count = 8, score_cp = 20 }"
    yield "resign = { move_count = 3, score_cp = 600 }"
    yield ""


def _final(answers: Answers) -> Iterator[str]:
    """Yield a final of the first two, by the rules of the event before it.

    Nobody asked for one: as comments that become one when their marks are taken away.
    """
    asked = answers.final is not None
    form = _format(answers._replace(format="match", games=answers.final or FORMATS["match"][1]))
    lines = list(_event("final", "Final", form, answers.time, first=False))
    gate = 'break = "10m"                  # opens that long after; "operator": when you open it'
    lines.insert(lines.index(f"format = {form}") + 1, f"# {gate}" if asked else gate)
    if asked:
        yield from lines
        return
    yield "# A final of the first two: take the marks away here, and at `promote` above."
    yield from (f"# {line}" if line else "" for line in lines if not line.startswith("#"))


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")


def _line(answer: str) -> str:
    return " ".join(answer.split())


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))
