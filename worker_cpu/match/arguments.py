"""The command line of ``farm match``: cutechess-cli's and fastchess' language, read strictly.

Every switch is known or refused by name, with what is allowed; nothing is ignored in
silence (``switches`` has them one by one). Where the two programs differ,
``docs/match.md`` says whom we follow.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import random
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from orchestrator import contract
from orchestrator.arbiter import record
from orchestrator.engines import known_programs
from orchestrator.rating import sprt
from worker_cpu.engines import sandbox
from worker_cpu.match import cli_values, engines, schedule, switches

SCALED = ("start_ms", "ready_ms")  # by tscale=
PLACES = frozenset({"journal", "pgnout", "resume"})  # where a match that is resumed lies
# What concerns one run of a match, not the match: the next resume has its own.
OF_RUN = frozenset({"journal", "json", "live", "resume", "resume-other-builds"})
# What games are begun from, and what they are played and judged by: a resume changes neither.
DEALT = frozenset({"openings", "variant", "quick"})
JUDGED = frozenset(
    {"engine", "each", "quick", "sprt", "draw", "resign", "maxmoves"}
    | {"tb", "tbpieces", "tbadjudicate", "tbignore50"}
)
SEVERAL = frozenset({"engine", "each", "dialect"})  # these say more each time
SEVERAL_KEYS = frozenset({"arg", "initstr", "match_line"})
OUTPUT = {"farm": "farm", "fastchess": "fastchess", "cutechess": "cutechess"}
PLENTY = 1_000  # games an engine that an adaptive match without a budget has
NO_RULES = contract.Adjudication()
PATIENCE = contract.Timeouts()


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that a match was told."""

    engines: tuple[engines.Engine, ...]
    plan: schedule.Plan
    openings: switches.Openings | None = None
    variant: Literal["standard", "fischerandom"] = "standard"
    adjudication: contract.Adjudication = NO_RULES
    timeouts: contract.Timeouts = PATIENCE
    test: sprt.Test | None = None
    seed: int = 0
    concurrency: int = 1
    cpus: frozenset[int] = frozenset()
    sandbox: sandbox.Wish = "plain"
    wait_ms: int = 0
    event: str = "farm match"
    site: str = ""
    pgn: pathlib.Path | None = None
    minimal: bool = False
    comments: record.Comments | None = None
    fields: frozenset[str] = frozenset()
    notation: Literal["san", "uci"] = "san"
    append: bool = True
    match_lines: tuple[str, ...] = ()
    check_mate_pvs: bool = False
    test_env: bool = False
    epd: pathlib.Path | None = None
    log: pathlib.Path | None = None
    journal: pathlib.Path = pathlib.Path("farm-match.jsonl")
    live: switches.Live | None = None
    resume: bool = False
    resume_other_builds: bool = False
    rating_interval: int = 10
    outcome_interval: int = 1
    json: bool = False
    remarks: tuple[str, ...] = ()
    dialect: switches.Dialect = "farm"
    output: switches.Output = "farm"
    penta: bool = True
    crc32: bool = False
    force_concurrency: bool = False
    recover: bool = True  # a crash costs a game, not the match
    strict: bool = False
    boxes: pathlib.Path | None = None

    @property
    def comment_style(self) -> record.Comments:
        """Return what is behind every move in the PGN: as asked, else as the output is."""
        return self.comments or ("tcec" if self.output == "farm" else self.output)

    @property
    def ponders(self) -> bool:
        """Say whether an engine thinks in its opponent's turns, too."""
        return any(engine.spec.ponder for engine in self.engines)

    @property
    def listens(self) -> bool:
        """Say whether anybody wants to read what engines say."""
        wanted = self.log is not None or self.live is not None or self.check_mate_pvs
        return wanted or bool(self.match_lines) or any(engine.stderr for engine in self.engines)


def read(arguments: Sequence[str]) -> Settings:
    """Read a command line; raise ``UsageError`` naming the wrong switch."""
    draft = switches.Draft(dialect=_dialect(arguments))
    groups = cli_values.grouped(arguments)
    draft.remarks += _repeated(groups)
    for name, group in groups:
        if name in switches.REFUSED:
            raise cli_values.unsupported(f"-{name}", switches.REFUSED[name])
        if name in switches.IDLE:
            draft.remarks += [f"-{name}: {switches.IDLE[name]}"] if switches.IDLE[name] else []
        elif name in switches.READERS:
            switches.READERS[name](draft, f"-{name}", group)
        elif name in engines.KEYS:
            ways = f"-each {name}=... for all engines, -engine {name}=... for one"
            raise cli_values.refuse("farm match", f"-{name}, an engine's key", ways)
        else:
            names = [f"-{switch}" for switch in (*switches.READERS, *switches.IDLE)]
            listed = "those of `farm match -help`, and all that docs/match.md has of both programs"
            raise cli_values.unknown("farm match", f"-{name}", names, listed)
    return _settings(draft)


def _repeated(groups: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Say which switches and keys stand twice: the last counts, as with fastchess."""
    names = collections.Counter(name for name, _ in groups)
    twice = [f"-{name}" for name, count in names.items() if count > 1 and name not in SEVERAL]
    for name, group in groups:
        if name != "quick":
            twice += [f"-{name} {key}=" for key in cli_values.repeated(group, SEVERAL_KEYS)]
    return [f"{option} is given more than once: the last counts" for option in twice]


def _dialect(arguments: Sequence[str]) -> switches.Dialect:
    return cli_values.choice("-dialect", dialect_of(arguments), switches.DIALECTS)  # type: ignore[return-value] # `choice` has checked it


def dialect_of(arguments: Sequence[str]) -> str:
    """Return the dialect that a command line names last, ``farm`` without one."""
    named = [group for name, group in cli_values.grouped(arguments) if name == "dialect"]
    return cli_values.only("-dialect", named[-1]) if named else Settings.dialect


def names_engines(arguments: Sequence[str]) -> bool:
    """Say whether a command line has engines of its own: else it can only resume."""
    return any(name == "engine" for name, _ in cli_values.grouped(arguments))


def journal_of(arguments: Sequence[str]) -> pathlib.Path | None:
    """Return the journal of a command line that only resumes; ``None`` if it does not."""
    draft = switches.Draft()
    for name, group in cli_values.grouped(arguments):
        if name in PLACES:
            switches.READERS[name](draft, f"-{name}", group)
    if "resume" not in draft.match:
        return None
    return pathlib.Path(_journal(draft.match).get("journal", Settings.journal))


def dealt_from(arguments: Sequence[str], *, named: bool = True) -> str:
    """Say what the openings of a command line are dealt from: book, part, order, variant.

    A book that is compared by its content need not be ``named``: it may lie elsewhere now.
    """
    draft = _drafted(arguments, DEALT)
    variant, openings = draft.match.get("variant", "standard"), draft.match.get("openings")
    dealt = switches.dealt(openings, variant)
    parts = [f"-variant {variant}"]
    if openings is not None:
        book = openings.file and (openings.file.absolute() if named else "BOOK")
        file = f"file={book} " if book else ""
        parts.append(f"-openings {file}format={openings.kind} order={openings.order}")
        parts.append(f"start={openings.start} plies={openings.plies}")
        parts += [f"positions={openings.positions}"] if openings.positions else []
    if dealt is not None and dealt.order == "random":
        parts.append(
            "shuffled as " + ("cutechess" if draft.dialect == "cutechess" else "fastchess")
        )
    return " ".join(parts)


def played_by(arguments: Sequence[str]) -> dict[str, str]:
    """Say by what the games of a command line are played and judged: words by switch, '' for none.

    What engines are told beside their clocks is not among it: their specifications have that.
    """
    draft = _drafted(arguments, JUDGED)
    wishes = [
        own.over(draft.each) if draft.dialect == "farm" else own.under(draft.each)
        for own in draft.own
    ]
    test = draft.match.get("test") if len(wishes) == 2 else None
    rules = contract.Adjudication.model_validate(draft.rules)
    return {
        "time control": _of_all(map(_clock, wishes)),
        "-each book=": _of_all(map(_book, wishes)),
        "-sprt": "" if test is None else test.spoken,
        "-draw": _rule_words(rules.draw, contract.DRAW_WORDS),
        "-resign": _rule_words(rules.resign, contract.RESIGN_WORDS),
        "-maxmoves": str(rules.max_moves or ""),
        "-tb": _tables(draft),
    }


def srand_of(arguments: Sequence[str]) -> int | None:
    """Return the seed that a command line names, ``None`` without one."""
    seed: int | None = _drafted(arguments, {"srand"}).match.get("seed")
    return seed


def _drafted(arguments: Sequence[str], names: Container[str]) -> switches.Draft:
    """Read these switches of a command line alone."""
    draft = switches.Draft(dialect=_dialect(arguments))
    for name, group in cli_values.grouped(arguments):
        if name in names:
            switches.READERS[name](draft, f"-{name}", group)
    return draft


def _of_all(texts: Iterable[str]) -> str:
    """Return what holds for all engines once, else that of each in turn."""
    each = list(texts)
    return each[0] if len(set(each)) == 1 else " against ".join(text or "none" for text in each)


def _clock(wishes: engines.Wishes) -> str:
    clock = engines.control(wishes.values, "-engine").spoken
    margin = int(wishes.values.get("timemargin", 0))
    return f"{clock}, timemargin={margin}" if margin else clock


def _book(wishes: engines.Wishes) -> str:
    """Say how deep an engine's book is read: its content is compared by its checksum."""
    depth = wishes.values.get("bookdepth", engines.BOOK_MOVES)
    return f"bookdepth={depth}" if "book" in wishes.values else ""


def _rule_words(
    rule: contract.MovesDraw | contract.MovesResign | None,
    words: Mapping[str, tuple[str, str | None]],
) -> str:
    if rule is None:
        return ""
    values = {word: getattr(rule, field) for word, (field, _) in words.items()}
    return " ".join(f"{word}={str(value).lower()}" for word, value in values.items())


def _tables(draft: switches.Draft) -> str:
    """Say how tablebases end games; in which folders they lie is this machine's business."""
    if "tables" not in draft.match:
        return ""
    asked = draft.tables
    mode = "DRAW" if asked.get("draw_only") else "BOTH"
    mode = "WIN_LOSS" if asked.get("decided_only") else mode
    parts = [f"-tbpieces {asked.get('men', 'all')}", f"-tbadjudicate {mode}"]
    return " ".join([*parts, *["-tbignore50"] * bool(asked.get("ignore_fifty"))])


def resumed(first: Sequence[str], words: Sequence[str], journal: pathlib.Path) -> list[str]:
    """Return the command line of a match that goes on: its first one, with what ``words`` change.

    A switch of ``words`` replaces the first one's: the last counts. ``journal`` is where it lies.
    """
    changes = [group for group in cli_values.grouped(words) if group[0] not in PLACES]
    changes += [("resume", []), ("journal", [str(journal)])]
    replaced = {name for name, _ in changes} - SEVERAL
    kept = [group for group in cli_values.grouped(first) if group[0] not in replaced]
    return [word for name, group in (*kept, *changes) for word in (f"-{name}", *group)]


def of_match(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the switches of a command line that say what is played, and how."""
    return [group for group in cli_values.grouped(words) if group[0] not in OF_RUN]


def kept(first: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the command line that the journal keeps of a resumed match, as ``words`` change it."""
    own = [group for group in cli_values.grouped(first) if group[0] in OF_RUN]
    return [word for name, group in (*of_match(words), *own) for word in (f"-{name}", *group)]


def with_seed(settings: Settings, seed: int) -> Settings:
    """Return the settings with another seed."""
    return dataclasses.replace(settings, seed=seed)


def _settings(draft: switches.Draft) -> Settings:
    if len(draft.own) < 2:
        raise cli_values.refuse("-engine", f"{len(draft.own)} engines", "two or more")
    draft.remarks += _both(draft)
    if draft.dialect == "farm":
        field = engines.engines(draft.each, draft.own)
    else:
        whole = [draft_engine.under(draft.each) for draft_engine in draft.own]
        field = engines.engines(engines.Wishes(), whole, stems=draft.dialect == "fastchess")
        if draft.dialect == "cutechess" and any(
            not {"name", "conf"} & e.values.keys() for e in whole
        ):
            draft.remarks.append(
                "-dialect cutechess: an engine without name= has its program's; in cutechess-cli"
                " it has the one that it reports"
            )
    _for_two(draft, len(field))
    draft.remarks += [
        f"{engine.spec.name}: programs of that name speak XBoard; if it stalls: proto=xboard"
        for engine in field
        if known_programs.wants_xboard(engine.spec.command, engine.spec.protocol)
    ]
    if any(engine.control.base_ms == engines.LONGEST_MS for engine in field):
        draft.remarks.append(
            "tc=inf without nodes= or depth=: a clock of 10 days, since an engine that is told to"
            " search without end need not answer"
        )
    if "tables" in draft.match:
        path = draft.match.pop("tables")
        draft.rules["syzygy"] = {"men": _most_men(path), **draft.tables, "path": path}
    settings = Settings(
        engines=field,
        plan=_plan(draft, len(field)),
        adjudication=contract.Adjudication.model_validate(draft.rules),
        timeouts=_timeouts(draft),
        **(_defaults(draft.dialect) | _journal(draft.match)),
        dialect=draft.dialect,
    )
    _check(settings)
    return dataclasses.replace(settings, remarks=(*draft.remarks, *_idle(draft, settings)))


def _idle(draft: switches.Draft, settings: Settings) -> Iterator[str]:
    """Say of what is meant to stand beside something else that it has no effect without that."""
    if draft.tables and settings.adjudication.syzygy is None:
        yield "-tbpieces, -tbadjudicate, -tbignore50: no effect without -tb"
    if settings.resume_other_builds and not settings.resume:
        yield "-resume-other-builds: no effect without -resume"
    if "seeds" in draft.plan and settings.plan.kind != "gauntlet":
        yield "-seeds: no effect without -tournament gauntlet"
    if settings.boxes is not None and not any(engine.spec.box for engine in settings.engines):
        yield "-boxes: no effect without an engine with host="
    if settings.crc32 and settings.pgn is None:
        yield "-crc32: no effect without -pgnout"
    if settings.fields and (settings.minimal or settings.comment_style == "cutechess"):
        fields = ", ".join(f"{name}=" for name in sorted(settings.fields))
        kept = "min" if settings.minimal else "comments=cutechess"
        yield f"-pgnout {fields}: no effect with {kept}"
    yield from _idle_of_openings(draft, settings)


def _idle_of_openings(draft: switches.Draft, settings: Settings) -> Iterator[str]:
    dealt = switches.dealt(settings.openings, settings.variant) or switches.Openings()
    has_books = any(engine.book for engine in settings.engines)
    if dealt.plies is not None and dealt.kind != "pgn":
        yield f"-openings plies=: no effect with format={dealt.kind}, which has no moves"
    if dealt.positions and dealt.file is not None:
        yield "-openings positions=: no effect but with format=frc or dfrc"
    if "seed" in draft.match and dealt.order == "sequential" and not has_books:
        yield "-srand: no effect without order=random or a book="
    if not has_books and any("bookdepth" in w.values for w in (draft.each, *draft.own)):
        yield "bookdepth=: no effect without book="


def _most_men(path: str) -> int:
    """Return the men of the largest table that is there: who names no bound has all of them."""
    places = map(pathlib.Path, path.split(":"))
    names = [table.stem for place in places for table in place.glob("*.rtbw")]  # such as KQvKR
    largest = max((len(name) - 1 for name in names), default=contract.Syzygy().men)
    return min(largest, switches.MOST_MEN)


def _for_two(draft: switches.Draft, count: int) -> None:
    """Settle what only two engines can have: a test; of a knockout nothing but a match is left."""
    if draft.unplayed and count > 2:
        wanted = f"-tournament {draft.unplayed}"
        raise cli_values.unsupported(wanted, switches.UNPLAYED[draft.unplayed])
    if draft.unplayed:
        draft.remarks.append(
            f"-tournament {draft.unplayed}: of two engines it is a match; a level one ends level"
        )
    if count > 2 and draft.match.pop("test", None) is not None:
        draft.remarks.append(
            f"-sprt: a test is between two engines; the match of {count} is played to its end"
        )


def _timeouts(draft: switches.Draft) -> contract.Timeouts:
    scaled = {key: round(getattr(PATIENCE, key) * draft.patience) for key in SCALED}
    return PATIENCE.model_copy(update=scaled | draft.timeouts)


def _both(draft: switches.Draft) -> list[str]:
    """Say what -engine and -each set to different values, and which counts."""
    each = draft.each.values | draft.each.options
    keys = {
        key
        for own in draft.own
        for key, value in (own.values | own.options).items()
        if key in each and each[key] != value
    }
    if not keys:
        return []
    keys_text = ", ".join(sorted(keys))
    if draft.dialect == "farm":
        return [f"{keys_text}: -engine goes before -each; fastchess and cutechess-cli take -each"]
    return [f"-dialect {draft.dialect}: {keys_text}: -each goes before -engine"]


def _defaults(dialect: switches.Dialect) -> dict[str, Any]:
    return {
        "seed": random.randrange(1 << 32),
        "output": OUTPUT[dialect],
        "recover": dialect == "farm",
    }


def _journal(match: Mapping[str, Any]) -> dict[str, Any]:
    """Put the journal beside the PGN file unless it was named."""
    if "journal" in match or "pgn" not in match:
        return dict(match)
    return {**match, "journal": match["pgn"].with_name(match["pgn"].name + ".jsonl")}


def _plan(draft: switches.Draft, count: int) -> schedule.Plan:
    """Settle what scripts leave open, as the dialect has it; say what it decided."""
    wishes = dict(draft.plan)
    if wishes.get("kind") == "adaptive":
        return schedule.Plan(engines=count, **_adaptive(draft, wishes, count))
    if "confidence" in wishes:
        raise cli_values.refuse("-until", "another tournament", "-tournament adaptive beside it")
    decided = {"farm": _as_farm, "fastchess": _as_fastchess, "cutechess": _as_cutechess}
    remark = decided[draft.dialect](draft.plan, wishes)
    if remark:
        draft.remarks.append(remark)
    return schedule.Plan(engines=count, **wishes)


def _adaptive(draft: switches.Draft, given: dict[str, Any], count: int) -> dict[str, Any]:
    """Settle the budget: ``-games`` altogether, or as many as ``-rounds`` of all couples' pairs."""
    if count < 3:
        raise cli_values.refuse("-tournament adaptive", "2 engines", "three or more; -sprt for two")
    games, rounds = given.pop("games", None), given.pop("rounds", None)
    pairs_alone = {"swap": True, "reverse": False, "policy": "default", "seeds": 1, "repeat": 2}
    for name, default in pairs_alone.items():
        if given.pop(name, default) != default:
            word = {"swap": "-noswap", "policy": "-openings policy="}.get(name, f"-{name}")
            allowed = "pairs of games with colours exchanged, each pair with its own opening"
            raise cli_values.refuse("-tournament adaptive", word, allowed)
    if rounds is not None and games not in (None, 2):
        limits = f"-games {games} and -rounds {rounds}"
        raise cli_values.refuse("-tournament adaptive", limits, "-games: all games, or -rounds")
    given.setdefault("confidence", 0.95 if rounds is None and games is None else 0.0)
    if rounds is not None:
        games = rounds * count * (count - 1)
    elif games is not None and games < count:
        raise cli_values.refuse("-games", str(games), f"all games of {count} engines: more of them")
    elif games is None:
        games = count * PLENTY
    if rounds is None and games % 2:
        draft.remarks.append(f"-games {games}: games come in pairs, so {games - 1} are played")
    return {**given, "games": 2, "repeat": 2, "budget": games - games % 2}


def _as_farm(given: Mapping[str, Any], wishes: dict[str, Any]) -> str:
    """``-repeat`` means two games, two games one opening."""
    if given.get("repeat") and "games" not in given:
        wishes["games"] = wishes["repeat"]
    if wishes.get("games") == 2 and "repeat" not in given:
        wishes["repeat"] = 2
    if "rounds" in given and not {"games", "repeat"} & given.keys():
        return (
            "-rounds without -games: one game a round, each with an opening of its own, as"
            " cutechess-cli plays; fastchess plays two of one opening (-games 2, or -dialect"
            " fastchess)"
        )
    return ""


def _as_fastchess(given: Mapping[str, Any], wishes: dict[str, Any]) -> str:
    """Two rounds of two games of one opening; ``-repeat`` is another word for ``-games``."""
    games = given.get("repeat", given.get("games", 2))
    rounds = given.get("rounds", 2)
    if games > 2:
        games, rounds = rounds, games
    if games > 2:
        allowed = "at most 2 games a round with -dialect fastchess; -rounds N for more rounds"
        raise cli_values.refuse("-games", f"{rounds}, and -rounds {games}", allowed)
    wishes |= {"games": games, "rounds": rounds, "repeat": games, "listed": True}
    missing = {"games", "rounds"} - {"games" if key == "repeat" else key for key in given}
    swapped = rounds != given.get("rounds", 2)
    if not missing and not swapped:
        return ""
    return f"-dialect fastchess: {rounds} rounds, each of {games} games of one opening"


def _as_cutechess(given: Mapping[str, Any], wishes: dict[str, Any]) -> str:
    """One game an encounter; ``-repeat`` deals an opening to two games running."""
    wishes.setdefault("games", 1)
    if "repeat" in given and "games" not in given:
        return (
            f"-dialect cutechess: {given.get('rounds', 1)} games, since -repeat adds none;"
            f" {given['repeat']} running share an opening"
        )
    return ""


def check_machine(settings: Settings) -> None:
    """Refuse more games at a time than there are cores, unless that is wanted."""
    cores = switches.cores()
    if settings.concurrency <= cores or settings.force_concurrency:
        return
    if settings.dialect != "cutechess":  # which has no such bound
        allowed = (
            f"at most the {cores} cores of this machine; -force-concurrency beside it for more"
        )
        raise cli_values.refuse("-concurrency", str(settings.concurrency), allowed)


def _check(settings: Settings) -> None:
    plan, openings = settings.plan, settings.openings
    away = [engine.spec.name for engine in settings.engines if engine.spec.box]
    if away and settings.sandbox == "bubblewrap":
        allowed = "-sandbox plain: a sandbox confines engines of this machine alone"
        raise cli_values.refuse("host=", f"-sandbox bubblewrap, and {', '.join(away)}", allowed)
    if plan.seeds >= plan.engines:
        raise cli_values.refuse("-seeds", str(plan.seeds), f"fewer than the {plan.engines} engines")
    if len({engine.book is None for engine in settings.engines}) > 1:
        allowed = "book= for every engine (-each book=FILE), or -openings for all"
        raise cli_values.refuse("book=", "engines with a book and without one", allowed)
    if openings is not None and openings.file is None and settings.variant == "standard":
        raise cli_values.refuse(
            "-openings", f"format={openings.kind}", "-variant fischerandom beside"
        )
