"""``farm match``: the command, from the command line to the exit code.

Exit codes: 0 all games are played or the sequential test is decided, 1 with ``-strict`` an engine
was at fault, 2 wrong usage, 3 the journal holds games of another match, another book or another
build, 5 this host cannot play, 130 stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.metadata
import pathlib
import secrets
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import click

from orchestrator import contract
from orchestrator.common import errors, files, output
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import (
    adaptive_schedule,
    arguments,
    cli_values,
    cores,
    engine_check_command,
    engines,
    journal,
    live,
    orders,
    peer_reports,
    programs,
    quick_match,
    report,
    runner,
    schedule,
    stopping,
)

Deals: TypeAlias = Sequence[schedule.Slot] | adaptive_schedule.Dealer  # all games, or a dealer
FAULTY = 1  # of -strict, and of a crash without -recover, as fastchess has it
COMPLIANCE = "--compliance"  # fastchess' word: check an engine instead of playing
NEW_MATCH = "or begin a new match (another -pgnout and -journal, or without -resume)"
AS_BEFORE = "resume with the arguments of the match, or with -resume and -journal alone"
HELP_WORDS = {"-h", "-help", "--help"}
VERSION_WORDS = {"-v", "-version", "--version"}
SPOKEN = {"fastchess": "1.8.2", "cutechess": "1.5.1"}  # the versions whose words were read


class ArgumentCommand(click.Command):
    """A command that reads its arguments itself: one dash, several words behind a switch."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments as they are; print the help when that is asked."""
        ctx.params["words"] = tuple(args)
        if _compliance(args) is not None:
            return []
        if HELP_WORDS & set(args) or not args:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit(0 if args else errors.UsageError.exit_code)
        if VERSION_WORDS & set(args):
            click.echo(_version(args))
            ctx.exit(0)
        return []


HELP = """Play engines against each other on this machine, without Redis.

Engines can be named alone: clock, pairs, openings and rules are then the usual ones, and the whole
command line is printed. Otherwise the arguments are those of cutechess-cli and fastchess. Examples:

\b
farm match stockfish ethereal-chess          20 games in pairs, 5+0.05, balanced openings
farm match ./new ./old -each tc=10+0.1 -rounds 100
farm match -engine cmd=new name=New -engine cmd=old name=Old \\
           -each tc=8+0.08 option.Hash=16 -openings file=book.epd order=random \\
           -games 2 -rounds 500 -repeat -concurrency 4 -pgnout games.pgn \\
           -resign movecount=3 score=600 -draw movenumber=34 movecount=8 score=20 \\
           -sprt elo0=0 elo1=5 alpha=0.05 beta=0.05
farm match -resume -pgnout games.pgn         goes on with what is missing
farm match --compliance ./new                the same as farm engine check ./new:
                                             does it keep its protocol (--help: how)

\b
engines     -engine KEY=VALUE ... (two or more), -each KEY=VALUE ...
            keys: conf name cmd dir arg args proto tc st nodes depth timemargin
            restart stderr initstr whitepov ponder book bookdepth host gpus
            option.NAME; -boxes FILE: how host=NAME is reached
schedule    -tournament round-robin|gauntlet|adaptive -seeds N -games N -rounds N
            -until ordered=0.95 within=ELO (adaptive: until the list is in order)
            -repeat [N] -noswap -reverse -use-affinity [CPUS] -concurrency N
            -wait MS -sandbox plain|bubblewrap|auto, -dialect fastchess|cutechess
openings    -openings file=NAME format=pgn|epd|frc|dfrc plies=N start=N
            order=sequential|random policy=default|encounter|round
            positions=518,0-9; -srand N, -variant standard|fischerandom
early ends  -draw movenumber= movecount= score=
            -resign movecount= score= [twosided], -maxmoves N
            -tb DIRECTORIES -tbpieces N -tbignore50 -tbadjudicate BOTH|DRAW|WIN_LOSS
            -sprt elo0= elo1= [alpha= beta= model=normalized|logistic]
output      -pgnout FILE [min] [fi] [comments=tcec|fastchess|cutechess],
            -output format=farm|fastchess|cutechess, -epdout FILE, -log FILE, -journal FILE,
            -live PORT|HOST:PORT [stay], -resume, -resume-other-builds, -event NAME,
            -site NAME, -ratinginterval N, -outcomeinterval N, --json
time-outs   -startup-ms N, -ucinewgame-ms N, -ping-ms N; -recover is always on here, and
            has to be said with -dialect fastchess and cutechess: else a crash ends the match
exit codes  0 all games are played, or the test is decided (--json: which way), 1 -strict and a
            fault, or a crash in fastchess' dialect without -recover, 2 wrong usage, 3 another
            match's journal, another book or another build, 5 this host cannot, 130 stopped

docs/match.md explains each, with examples. `farm match book`, `farm match test` and
`farm match rate` are other commands, with a help of their own.
"""


@click.command(
    cls=ArgumentCommand,
    help=HELP,
    add_help_option=False,
    options_metavar="ENGINE ENGINE ... | -engine ... -engine ... [SWITCHES]",
)
def match(words: tuple[str, ...]) -> None:
    """Play engines against each other on this machine, without Redis."""
    if (check := _compliance(list(words))) is not None:
        engine_check_command.check_engine.main(check, "farm engine check")
    with stopping.ending():
        code = play(words)
    if code:
        sys.exit(code)


def _compliance(words: list[str]) -> list[str] | None:
    """Return the words of ``farm engine check`` where fastchess' word for it comes first.

    A link named ``fastchess`` says its dialect before it. The engine's arguments may follow it in
    one word of their own, as in fastchess.
    """
    words = words[2:] if words[:1] == ["-dialect"] else words
    if words[:1] != [COMPLIANCE]:
        return None
    engine, *rest = words[1:] or [""]
    check = engine_check_command.check_engine
    own_options = {option for parameter in check.params for option in parameter.opts} | HELP_WORDS
    if rest and not engine.startswith("-") and rest[0].partition("=")[0] not in own_options:
        return [f"{shlex.quote(engine)} {rest[0]}", *rest[1:]]
    return list(words[1:])


def play(given: Sequence[str]) -> int:
    """Play the match of a command line; return the exit code. Raise ``FarmError``."""
    words_read = quick_match.whole(given)
    settings = _settings(words_read)
    arguments.check_machine(settings)
    with live.page(settings.live) as page:
        return _prepare(
            settings, words_read, page, quick=bool(given) and not given[0].startswith("-")
        )


def _prepare(
    settings: arguments.Settings, words_read: list[str], page: live.Page | None, *, quick: bool
) -> int:
    slots = schedule.slots(settings.plan)
    kept = journal.Journal(journal.Outputs(settings.journal, settings.pgn, settings.epd))
    adaptive = settings.plan.kind == "adaptive"
    table = standings.Standings(
        [engine.spec.name for engine in settings.engines], adaptive=adaptive
    )
    telling = peer_reports.of(settings, table, settings.plan.budget if adaptive else len(slots))
    deals = _deals(settings, settings.seed, table, slots)
    if quick:
        telling.say(f"farm match {shlex.join(words_read)}")
    match_id = f"match-{secrets.token_hex(4)}"
    with _elsewhere(settings, match_id) as elsewhere:
        written = orders.Orders(settings, match_id, elsewhere)
        return _play(settings, deals, kept, table, telling, written, words_read, page)


def _deals(
    settings: arguments.Settings,
    seed: int,
    table: standings.Standings,
    slots: Sequence[schedule.Slot],
) -> Deals:
    """Return all games of a match, or who chooses them by the results in ``table``."""
    if settings.plan.kind != "adaptive":
        return slots
    return adaptive_schedule.Dealer(settings.plan, seed, settings.concurrency, table)


def _play(
    settings: arguments.Settings,
    deals: Deals,
    kept: journal.Journal,
    table: standings.Standings,
    telling: report.Report,
    written: orders.Orders,
    words_read: list[str],
    page: live.Page | None,
) -> int:
    dealer = deals if isinstance(deals, adaptive_schedule.Dealer) else None
    slots = deals if isinstance(deals, Sequence) else ()
    games = settings.plan.budget if dealer else len(slots)
    checksums = files.Checksums()
    about = live.about(settings, games, checksums)
    missing, remarks = _missing(settings, kept, table, deals, words_read, about, telling)
    wanted = games // 2 if dealer else len({slot.opening for slot in slots})
    telling.opens(games - table.played, _openings(settings, wanted, written.openings))
    here = [engine.threads for engine in settings.engines if not engine.spec.box]
    threads = max(here, default=1)
    apart = settings.ponders and len(here) > 1  # else no two think at once on this machine
    with files.scratch("match") as scratch:
        with cores.held(settings.concurrency, threads, settings.cpus, apart=apart) as share:
            if apart:
                _check_cores(settings, threads, share)
            telling.notes(_cores(settings, threads, share))
            telling.notes([*settings.remarks, *remarks])
            telling.notes(_unpaired(slots))
            telling.notes(_repeated(settings, slots, wanted, written.openings))
            telling.notes(_tables(settings.adjudication.syzygy))
            feed = None if page is None else page.open(settings, about, scratch)
            if page is not None:
                telling.say(f"Live page: {page.url}")
            more = tuple if dealer is None else dealer.more
            playing = runner.Runner(
                settings,
                share.lanes,
                written,
                kept,
                table,
                telling,
                scratch,
                more,
                feed=feed,
                changed=_rebuilt(settings, about, checksums, telling),
            )
            reason = playing.run(missing)
        kept.close()
        if page is not None:
            page.end(reason.value)
        complete = table.played == games if dealer is None else dealer.complete
        order = adaptive_schedule.order_facts(settings.plan, table) if dealer else None
        complete = complete or reason is runner.Reason.DECIDED
        code = _end(settings, telling, reason, order, complete=complete)
        if page is not None and page.stays:
            telling.say(f"The live page stays at {page.url} until Ctrl-C")
            page.stay()
    return code


def _elsewhere(
    settings: arguments.Settings, match: str
) -> contextlib.AbstractContextManager[orders.Elsewhere | None]:
    """Return the other machines of a match, ``None`` where it needs none."""
    if not any(engine.spec.box for engine in settings.engines):
        return contextlib.nullcontext()
    from worker_cpu.match import hosts  # noqa: PLC0415 - its SSH library takes 0.25 s

    return hosts.Hosts(settings.engines, hosts.boxes_file(settings.boxes), match)


def _version(given: Sequence[str]) -> str:
    """Return the version; a dialect's own comes first, because scripts compare it."""
    own = f"farm match {importlib.metadata.version('tournament-farm')}"
    dialect = arguments.dialect_of(given)
    return f"{dialect} {SPOKEN[dialect]}, spoken by {own}" if dialect in SPOKEN else own


def _settings(words_read: list[str]) -> arguments.Settings:
    """Read the arguments; a resumed match takes what is not given from its journal."""
    if arguments.names_engines(words_read):
        settings = arguments.read(words_read)
        if not settings.resume:
            return settings
        past = match_journal.past(settings.journal)
        return _going_on(settings, past, words_read)
    journal_path = arguments.journal_of(words_read)
    if journal_path is None:
        return arguments.read(words_read)  # says what is missing
    past = match_journal.past(journal_path)
    words_read[:] = arguments.resumed(past.arguments, words_read, journal_path)
    try:
        settings = arguments.read(words_read)
    except errors.UsageError as error:
        raise errors.UsageError(
            f"{error} (what is not said here is the line that {journal_path} keeps; where its files"
            " have moved, give the whole line, with -resume)"
        ) from error
    return _going_on(settings, past, words_read)


def _going_on(
    settings: arguments.Settings, past: match_journal.Past, words_read: Sequence[str]
) -> arguments.Settings:
    """Take the seed of the match that is resumed; refuse openings that are dealt otherwise.

    The numbers of games would agree.
    """
    named = past.about is None or not past.about.books  # else by content, which is compared later
    played, wanted = (
        arguments.dealt_from(switches, named=named) for switches in (past.arguments, words_read)
    )
    if played != wanted:
        raise errors.RefusedError(
            f"-resume: {settings.journal}: its openings are dealt from {played}; here from"
            f" {wanted}; {AS_BEFORE}"
        )
    seed = arguments.srand_of(words_read)
    if seed not in (None, past.seed, arguments.srand_of(past.arguments)):
        raise errors.RefusedError(
            f"-resume: {settings.journal}: its games are dealt by -srand {past.seed}; here by"
            f" -srand {seed}; {AS_BEFORE}"
        )
    return arguments.with_seed(settings, past.seed)


def _missing(
    settings: arguments.Settings,
    kept: journal.Journal,
    table: standings.Standings,
    deals: Deals,
    words_read: Sequence[str],
    about: match_journal.About,
    telling: report.Report,
) -> tuple[list[schedule.Slot], list[str]]:
    """Open the journal; return the games that are not in it, and what is to be said of it."""
    if not settings.resume:
        behind = _unfinished(settings, words_read, deals, about.games)
        kept.open(
            words_read, settings.seed, about, append=settings.append, again=behind is not None
        )
        missing = list(deals) if isinstance(deals, Sequence) else deals.more()
        return missing, [] if behind is None else [behind]
    past = kept.resume()
    slots = _replayed(settings, past.results, table, deals)
    if past.results:
        _check_same(settings, past, words_read, about)
    remarks = [
        *_check_books(settings, past.about, about),
        *_check_builds(settings, past.about, about),
    ]
    if past.about is None or arguments.of_match(past.arguments) != arguments.of_match(words_read):
        kept.change(arguments.kept(past.arguments, words_read), _as_played(past.about, about))
    done = {result.number: result for result in past.results}
    by_number = {slot.number: slot for slot in slots}
    for number, result in done.items():
        telling.played_before(by_number[number], result)
    missing = [slot for slot in slots if slot.number not in done]
    return missing if isinstance(deals, Sequence) else [*missing, *deals.more()], remarks


def _as_played(before: match_journal.About | None, now: match_journal.About) -> match_journal.About:
    """Return what a match is now, with the builds and books that its first games were played by.

    A journal that does not say them goes on not saying them: those of now may be others.
    """
    earlier = [] if before is None else [spec.checksums for spec in before.engines]
    checksums = [*earlier, *({} for _ in now.engines[len(earlier) :])]
    engines = [
        spec.model_copy(update={"checksums": played})
        for spec, played in zip(now.engines, checksums, strict=False)
    ]
    books = {} if before is None else before.books
    return now.model_copy(update={"engines": tuple(engines), "books": books})


def _replayed(
    settings: arguments.Settings,
    results: Iterable[match_journal.Result],
    table: standings.Standings,
    deals: Deals,
) -> Sequence[schedule.Slot]:
    """Count the games of a journal; return all games of the match that are known by them."""
    done = {result.number: result for result in results}
    for result in done.values():
        table.white_points[result.number] = standings.HALF_POINTS[result.result]
    slots = deals if isinstance(deals, Sequence) else deals.resumed(done)
    by_number = {slot.number: slot for slot in slots}
    for number, result in sorted(done.items()):
        _agree(settings, by_number.get(number), result)
        table.add(by_number[number], result)
    return slots


def _unfinished(
    settings: arguments.Settings, words_read: Sequence[str], deals: Deals, games: int
) -> str | None:
    """Say that this command line's last match stands unfinished in the journal, if it does.

    Nobody could say how it goes on when it was killed, and from this match's first game on it
    cannot any more.
    """
    if not settings.append or not files.is_file(settings.journal):
        return None
    try:
        past = match_journal.past(settings.journal)
        same = arguments.of_match(past.arguments) == arguments.of_match(words_read)
        if not (past.results and same):
            return None
        table = standings.Standings(
            [engine.spec.name for engine in settings.engines],
            adaptive=settings.plan.kind == "adaptive",
        )
        slots = deals if isinstance(deals, Sequence) else ()
        before = _deals(settings, past.seed, table, slots)
        _replayed(settings, past.results, table, before)
    except (errors.UsageError, errors.RefusedError):
        return None  # something else stands there
    test = settings.test
    decided = test is not None and test.verdict(table.between(0, 1)) is not None
    complete = table.played == games if isinstance(before, Sequence) else before.complete
    if decided or complete:
        return None
    return (
        f"{settings.journal} has an unfinished match of this command line"
        f" ({table.played} of {games} games); this is a new one. To go on with the unfinished one,"
        " end this one before its first game is finished (Ctrl-C twice: once lets it finish), then:"
        f" farm match -resume -journal {shlex.quote(str(settings.journal))}"
    )


def _check_same(
    settings: arguments.Settings,
    past: match_journal.Past,
    words_read: Sequence[str],
    about: match_journal.About,
) -> None:
    """Refuse to go on with another clock, test, rule or option: one score would be of two matches.

    More games, and all that concerns this machine and the output, are no difference.
    """
    played, wanted = (arguments.played_by(words) for words in (past.arguments, words_read))
    others = [
        f"{subject} was {text or 'none'}, here it is {wanted[subject] or 'none'}"
        for subject, text in played.items()
        if text != wanted[subject]
    ]
    earlier = () if past.about is None else past.about.engines
    for old, new in zip(earlier, about.engines, strict=False):
        before, now = (_how_it_plays(spec, (old, new)) for spec in (old, new))
        others += [
            f"{new.name}: {subject} was {before.get(subject, 'none')}, here it is"
            f" {now.get(subject, 'none')}"
            for subject in dict.fromkeys([*before, *now])
            if before.get(subject) != now.get(subject)
        ]
    if others:
        raise errors.RefusedError(
            f"-resume: {settings.journal}: its games are of another match: {'; '.join(others)};"
            f" {AS_BEFORE}, {NEW_MATCH}"
        )


def _how_it_plays(
    spec: contract.EngineSpec, both: Sequence[contract.EngineSpec]
) -> Mapping[str, str]:
    """Return what an engine is told, by key, but for its clock.

    A file may lie elsewhere now, since its content is compared, and so may a log; GPUs are this
    machine's.
    """
    compared = {file for either in both for file in either.checksums}
    hidden = engines.visible(("",)).keys()

    def neutral(word: str) -> str:
        return "=".join("FILE" if part in compared else part for part in word.split("="))

    command = [word for word in spec.command if word.partition("=")[0] not in hidden]
    if len(command) < len(spec.command):
        command = command[1:]  # the program that sets them
    given = [neutral(word) for word in command[1:] if not programs.is_log(word)]
    return {
        "proto": spec.protocol,
        "ponder": str(spec.ponder).lower(),
        "whitepov": str(spec.white_pov).lower(),
        **({"arguments": shlex.join(given)} if given else {}),
        **({"initstr": shlex.join(spec.init)} if spec.init else {}),
        **{
            f"option.{name}": neutral(str(value))
            for name, value in spec.options.items()
            if not programs.is_log(name)
        },
    }


def _check_books(
    settings: arguments.Settings, before: match_journal.About | None, now: match_journal.About
) -> list[str]:
    """Refuse to go on with another content of a book: a pair would have two openings."""
    earlier = {} if before is None else before.books
    if now.books and not earlier:
        unsaid = "does not say which book its openings are from (an earlier version wrote it)"
        return [f"-resume: {settings.journal} {unsaid}: go on only if it is that of now"]
    others = [
        f"{book} has SHA-256 {digest}, before it had"
        f" {earlier.get(book) or ', '.join(earlier.values())}"
        for book, digest in now.books.items()
        if digest not in earlier.values()
    ]
    if others:
        raise errors.RefusedError(
            f"-resume: {settings.journal}: another opening book than the one that its games are"
            f" from: {'; '.join(others)}; put that book back, {NEW_MATCH}"
        )
    return []


def _check_builds(
    settings: arguments.Settings, before: match_journal.About | None, now: match_journal.About
) -> list[str]:
    """Refuse to go on with another build of an engine: its results would be of neither."""
    earlier = () if before is None else before.engines
    here = [spec for spec in now.engines if not spec.box]
    if not all(spec.checksums for spec in earlier if not spec.box) or (here and not earlier):
        unsaid = "does not say which builds played its games (an earlier version wrote it)"
        return [f"-resume: {settings.journal} {unsaid}: go on only if they are those of now"]
    others = [
        f"{new.name}: {change}"
        for old, new in zip(earlier, now.engines, strict=False)
        for change in _changes(old, new)
    ]
    if not others:
        return []
    said = "; ".join(others)
    if settings.resume_other_builds:
        return [f"-resume-other-builds: the results are of several builds: {said}"]
    raise errors.RefusedError(
        f"-resume: {_another_build(settings, said)}; put that build back, {NEW_MATCH}, or go on all"
        " the same with -resume-other-builds"
    )


def _another_build(settings: arguments.Settings, said: str) -> str:
    return f"{settings.journal}: another build than the one that played its games: {said}"


def _rebuilt(
    settings: arguments.Settings,
    about: match_journal.About,
    checksums: files.Checksums,
    telling: report.Report,
) -> Callable[[int], str]:
    """Return who is asked before an engine starts: it says why the match must not go on, or ''."""

    def changed(number: int) -> str:
        old, engine = about.engines[number], settings.engines[number]
        new = programs.with_checksums(engine.spec, checksums)
        said = "; ".join(f"{new.name}: {change}" for change in _changes(old, new))
        if said and settings.resume_other_builds:
            telling.notes([f"-resume-other-builds: the results are of several builds: {said}"])
            return ""
        if not said:
            return ""
        return (
            f"{_another_build(settings, said)}; the match has stopped, its finished games are kept;"
            " put that build back, then farm match -resume -journal"
            f" {shlex.quote(str(settings.journal))}, {NEW_MATCH}, or go on all the same with"
            " -resume -resume-other-builds; a match is best played with a copy of the build"
        )

    return changed


def _changes(old: contract.EngineSpec, new: contract.EngineSpec) -> Iterator[str]:
    """Say which of an engine's files are others now; a file that has only moved is the same."""
    for file, digest in old.checksums.items():
        if digest in new.checksums.values():
            continue
        path = new.command[0] if file == old.command[0] else file
        fresh = new.checksums.get(path)
        there = "is not there or not named" if fresh is None else f"has SHA-256 {fresh}"
        yield f"{path} {there}, before it had {digest}"


def _agree(
    settings: arguments.Settings, slot: schedule.Slot | None, result: match_journal.Result
) -> None:
    """Refuse a journal whose game is not the one this schedule has under its number."""
    played = f"{result.white} vs {result.black}, opening {result.opening}"
    if slot is None:
        wanted = "no such game"
    else:
        names = [settings.engines[engine].spec.name for engine in (slot.white, slot.black)]
        wanted = f"{names[0]} vs {names[1]}, opening {slot.opening}"
    if played != wanted:
        hint = AS_BEFORE
        if slot is None:  # a journal of before has no longer line than the first
            hint = "the match has more games than these arguments: say its -rounds beside -resume"
        raise errors.RefusedError(
            f"-resume: {settings.journal}: game {result.number} was {played}; here it is {wanted};"
            f" {hint}"
        )


def _unpaired(slots: Sequence[schedule.Slot]) -> list[str]:
    """Say how games are counted that have no second game of their opening."""
    single = sum(slot.pair is None for slot in slots)
    if not 0 < single < len(slots):
        return []
    note = (
        f"{single} of {len(slots)} games belong to no pair of one opening and both colours: Elo and"
        " test take them as single games beside the pairs; -games 2 -repeat pairs all"
    )
    return [note]


def _openings(settings: arguments.Settings, wanted: int, different: int | None) -> str:
    """Say from which openings games are played that want so many, where so many are different."""
    if _own_books(settings):
        return "openings from the engines' books"
    if different is None:
        return "from the start position"
    return output.some(min(wanted, different), "opening") + " in turn" * (wanted > different)


def _repeated(
    settings: arguments.Settings, slots: Sequence[schedule.Slot], wanted: int, different: int | None
) -> list[str]:
    """Say where two engines play more often than there are openings for them."""
    dealt = {(frozenset(slot.engines), slot.opening) for slot in slots}
    most = max(collections.Counter(couple for couple, _ in dealt).values(), default=wanted)
    if most <= (different or 1) or _own_books(settings):
        return []
    cause = "without -openings every game begins at the start position"
    if different is not None:
        openings = output.some(different, "opening")
        cause = f"{openings} for {most}: behind the last comes the first again"
    return [f"{cause}; engines that always think alike play the same games again"]


def _own_books(settings: arguments.Settings) -> bool:
    return any(engine.book for engine in settings.engines)


def _tables(rule: contract.Syzygy | None) -> list[str]:
    """Say which directories of ``-tb`` hold no table: a misspelt one would adjudicate nothing."""
    places = rule.path.split(":") if rule and rule.path is not None else []
    empty = [directory for directory in places if not any(pathlib.Path(directory).glob("*.rtbw"))]
    return [f"-tb: no tablebases in {pathlib.Path(directory)}" for directory in empty]


def _check_cores(settings: arguments.Settings, threads: int, share: cores.Share) -> None:
    """Refuse engines that ponder where both sides do not have cores of their own."""
    if share.bound or settings.force_concurrency:
        return
    games = settings.concurrency
    busy = f", {len(share.busy)} of them another match's" if share.busy else ""
    raise cli_values.refuse(
        "ponder",
        f"{games} games of two engines with {threads} threads each, which think at the same time,"
        f" on {len(share.cpus)} CPUs{busy}",
        f"a core for every thread: fewer games (-concurrency), fewer Threads, or no ponder;"
        f" -force-concurrency lets engines take each other's time (here {2 * games * threads}"
        " CPUs are needed)",
    )


def _cores(settings: arguments.Settings, threads: int, share: cores.Share) -> Iterator[str]:
    """Say which cores the games do not have, though they were named or are there."""
    if away := settings.cpus.difference(share.cpus):
        unusable, used = _list(away), _list(share.cpus)
        yield f"-use-affinity: {unusable} cannot be used on this machine; used are {used}"
    of_each = output.some(threads * (1 + settings.ponders), "thread")
    need = f"{output.some(settings.concurrency, 'game')} of {of_each}"
    need += " needs" if settings.concurrency == 1 else " need"
    if share.bound:
        if share.busy:
            used = _list(cpu for lane in share.lanes for cpu in lane.referee | lane.engines)
            yield f"another match on this machine has CPU {_list(share.busy)}; used are {used}"
    elif share.busy:
        yield (
            f"games are not bound to cores: another match on this machine has CPU"
            f" {_list(share.busy)}, and {need} more than the rest of the"
            f" {len(share.cpus)} CPUs"
        )
    else:
        yield (
            f"games are not bound to cores: {need} more than the {len(share.cpus)} CPUs there are"
        )


def _list(cpus: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(cpus))))


def _end(
    settings: arguments.Settings,
    telling: report.Report,
    reason: runner.Reason,
    order: Mapping[str, Any] | None,
    *,
    complete: bool,
) -> int:
    telling.end(reason.value)
    if order is not None:
        neighbours = settings.plan.engines - 1
        telling.say(adaptive_schedule.order_line(settings.plan, order, neighbours))
    stopped = reason in (runner.Reason.STOPPED, runner.Reason.DROPPED)
    crashed = reason is runner.Reason.CRASHED
    if (stopped or crashed) and not complete:
        command = f"farm match -resume -journal {shlex.quote(str(settings.journal))}"
        if settings.resume_other_builds:  # else these builds would be refused again
            command += " -resume-other-builds"
        telling.say(f"Go on with what is missing: {command}")
    if settings.json:
        summary = telling.as_json(reason.value, complete=complete)
        click.echo(report.encoded(summary if order is None else {**summary, "order": order}))
    if settings.strict and not telling.faultless and not stopped:
        return FAULTY
    if crashed and settings.dialect == "fastchess":  # cutechess-cli ends with 0 then
        return FAULTY
    return stopping.STOPPED if stopped else 0
