"""The switches of ``farm match``, one by one: allowed values and effect.

A switch without a reader is refused by name, with what is used here instead.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from orchestrator import contract
from orchestrator.arbiter import chess960, record
from orchestrator.rating import sprt
from orchestrator.testmatch import openings
from worker_cpu.engines import sandbox
from worker_cpu.match import cli_values, engines

Kind = Literal["pgn", "epd", "frc", "dfrc"]
Dialect: TypeAlias = Literal["farm", "fastchess", "cutechess"]

# Accepted because scripts have them, with or without a value; the remark says what is lost.
IDLE = {
    "autosaveinterval": "every finished game is saved at once",
    "bookmode": "",
    "show-latency": "not printed: times are measured around the engine's own moment of thought",
    "resultformat": "the table at the end stays as it is, and --json has every number",
    "randomseed": "without -srand the seed is drawn for each match, and printed",
}
REFUSED = {
    # Words of earlier versions of both programs, which scripts still have.
    "fcp": "write -engine, once for each engine",
    "scp": "write -engine, once for each engine",
    "both": "write -each",
    "pgnin": "write -openings file=FILE format=pgn",
    "pgndepth": "write plies=N behind -openings",
    "epdin": "write -openings file=FILE format=epd",
    "book": "write -each book=FILE",
    "bookdepth": "write -each bookdepth=MOVES",
    "affinity": "write -use-affinity",
    "seed": "write -srand N",
    "engines": "the engines that conf= knows are those of engines.json; print that file",
    "loop": "start farm match again from the shell",
    "gauntlet": "write -tournament gauntlet",
    "pgn": "write -pgnout FILE",
}
UNPLAYED = {  # tournaments of cutechess-cli
    "knockout": "a season file has it (docs/season-file.md), farm season launch plays it",
    "pyramid": "write one match for each newcomer, -tournament gauntlet",
}
DIALECTS = ("farm", "fastchess", "cutechess")
KINDS = ("pgn", "epd", "frc", "dfrc")
MOST_PATIENCE = 100.0
PGN_FILE = "farm-match.pgn"
EPD_FILE = "farm-match.epd"
LOG_FILE = pathlib.Path("farm-match.log")
LOG = (("append", "true"), ("compress", "false"))  # what -log does, whatever is asked
TOURNAMENTS = {
    "round-robin": "round-robin",
    "roundrobin": "round-robin",
    "gauntlet": "gauntlet",
    "adaptive": "adaptive",
}
VARIANTS = ("standard", "fischerandom")
TB_MODES = ("BOTH", "DRAW", "WIN_LOSS")
FLAGS = {"-testEnv": "test_env"}
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LAST_PORT = 65_535
MOST_MEN = 7  # of a position that tables decide: there are none for more
FASTCHESS_RULES = {"movenumber": "0", "movecount": "1", "score": "0"}  # without these words
Output: TypeAlias = Literal["farm", "cutechess", "fastchess"]
OUTPUTS = ("cutechess", "fastchess", "farm")


@dataclasses.dataclass(frozen=True)
class Openings:
    """Where openings come from; ``file`` is ``None`` for numbered Chess960 positions."""

    file: pathlib.Path | None = None
    kind: Kind = "pgn"
    order: openings.Order = "sequential"
    plies: int | None = None
    start: int = 1
    positions: tuple[int, ...] = ()


def dealt(wanted: Openings | None, variant: str) -> Openings | None:
    """Return what openings are dealt from where ``wanted`` was asked for; ``None``: all are bare.

    Without a wish, games of Chess960 begin at numbered positions, drawn by the seed.
    """
    if wanted is None and variant != "standard":
        return Openings(kind="frc", order="random")
    return wanted


@dataclasses.dataclass(frozen=True)
class Live:
    """Where the match's live page is served, and whether it stays when the match is over."""

    host: str = "127.0.0.1"
    port: int = 8080
    stays: bool = False


@dataclasses.dataclass
class Draft:
    """What has been read so far."""

    own: list[engines.Wishes] = dataclasses.field(default_factory=list)
    each: engines.Wishes = dataclasses.field(default_factory=engines.Wishes)
    plan: dict[str, Any] = dataclasses.field(default_factory=dict)
    rules: dict[str, Any] = dataclasses.field(default_factory=dict)
    tables: dict[str, Any] = dataclasses.field(default_factory=dict)
    timeouts: dict[str, int] = dataclasses.field(default_factory=dict)
    match: dict[str, Any] = dataclasses.field(default_factory=dict)
    remarks: list[str] = dataclasses.field(default_factory=list)
    dialect: Dialect = "farm"
    unplayed: str = ""  # the tournament that is a match where two engines play it
    patience: float = 1.0  # times the time-outs off the clock


Reader = Callable[[Draft, str, list[str]], None]


def _engine(draft: Draft, where: str, group: list[str]) -> None:
    draft.own.append(engines.wishes("engine", _own_words(draft, where, group)))


def _each(draft: Draft, where: str, group: list[str]) -> None:
    draft.each = engines.wishes("each", _own_words(draft, where, group)).over(draft.each)


def _own_words(draft: Draft, where: str, group: list[str]) -> list[str]:
    """Return an engine's words but for those of cutechess-cli's that concern the match."""
    kept = []
    for word in group:
        key, _, value = word.partition("=")
        if key == "debug":
            _debug(draft, f"{where} debug", [])
        elif key == "trust":
            draft.remarks.append(f"{where} trust: claims are always checked on the board")
        elif key == "tscale":
            scale = cli_values.real(f"{where} tscale", value)
            if not 0 < scale <= MOST_PATIENCE:
                raise cli_values.refuse(f"{where} tscale", value, f"above 0 to {MOST_PATIENCE}")
            draft.patience = max(draft.patience, scale)
        else:
            kept.append(word)
    return kept


def _quick(draft: Draft, where: str, group: list[str]) -> None:
    """Read fastchess' short form: two programs and a book, the rest as it has it."""
    commands = [word for word in group if word.startswith("cmd=")]
    books = [word.removeprefix("book=") for word in group if word.startswith("book=")]
    if len(commands) != 2 or len(books) != 1 or len(group) != 3:
        raise cli_values.refuse(where, " ".join(group), "cmd=ONE cmd=OTHER book=FILE")
    names = [f"name={word.removeprefix('cmd=')}" for word in commands]
    for command, name in zip(commands, names, strict=True):
        _engine(draft, where, [command, name, "tc=10+0.1"])
    _openings(draft, where, [f"file={books[0]}", "order=random"])
    _draw(draft, where, ["movenumber=30", "movecount=8", "score=8"])
    games = max(1, len(os.sched_getaffinity(0)) - 2)
    draft.plan |= {"games": 2, "rounds": 25_000}
    draft.match |= {"concurrency": games, "output": "cutechess", "recover": True}
    draft.remarks.append(
        f"{where}: as fastchess has it: tc=10+0.1, 25,000 rounds of 2 games, order=random,"
        f" -concurrency {games}, -draw movenumber=30 movecount=8 score=8"
    )


def _openings(draft: Draft, where: str, group: list[str]) -> None:
    keys = ("file", "format", "order", "plies", "start", "policy", "positions")
    values = cli_values.pairs(where, group, keys)
    file = cli_values.file(f"{where} file", values["file"]) if "file" in values else None
    kind = cli_values.choice(f"{where} format", values.get("format") or _kind(file), KINDS)
    if (file is None) != (kind in ("frc", "dfrc")):
        allowed = "file=NAME with format=pgn or epd; format=frc or dfrc without a file"
        raise cli_values.refuse(where, " ".join(group), allowed)
    limit = chess960.DOUBLE if kind == "dfrc" else chess960.POSITIONS
    draft.match["openings"] = Openings(
        file=file,
        kind=kind,  # type: ignore[arg-type] # `choice` has checked it
        order=cli_values.choice(  # type: ignore[arg-type] # likewise
            f"{where} order", values.get("order", "sequential"), ("sequential", "random")
        ),
        plies=cli_values.number(f"{where} plies", values["plies"]) if "plies" in values else None,
        start=cli_values.number(f"{where} start", values.get("start", "1"), 1),
        positions=_positions(f"{where} positions", values.get("positions", ""), limit),
    )
    if "policy" in values:
        policies = ("default", "encounter", "round")
        draft.plan["policy"] = cli_values.choice(f"{where} policy", values["policy"], policies)


def _kind(file: pathlib.Path | None) -> str:
    if file is None:
        return "pgn"
    suffix = pathlib.Path(file.name.removesuffix(".gz")).suffix
    return "epd" if suffix in (".epd", ".fen") else "pgn"


def _positions(where: str, text: str, limit: int) -> tuple[int, ...]:
    """Read ``518,0-9``."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin = cli_values.number(where, first, 0, limit - 1)
        numbers += range(begin, cli_values.number(where, last or first, begin, limit - 1) + 1)
    return tuple(numbers)


def _draw(draft: Draft, where: str, group: list[str]) -> None:
    draft.rules["draw"] = _by_moves(draft, where, group, contract.DRAW_WORDS)


def _resign(draft: Draft, where: str, group: list[str]) -> None:
    draft.rules["resign"] = _by_moves(draft, where, group, contract.RESIGN_WORDS)


def _by_moves(
    draft: Draft, where: str, group: list[str], allowed: Mapping[str, tuple[str, str | None]]
) -> dict[str, int]:
    """Read a rule's words; 0 moves are 1, as for both programs."""
    bare = ["twosided=true" if word == "twosided" else word for word in group]
    values = cli_values.pairs(where, bare, allowed)
    missing = contract.missing_words(values, allowed)
    if missing and values and draft.dialect == "fastchess":
        usual = {word: FASTCHESS_RULES[word] for word in missing}
        lacking = ", ".join(f"{word}=" for word in missing)
        draft.remarks.append(
            f"{where} without {lacking}: {', '.join(usual.values())}, as fastchess has it"
        )
        values |= usual
    else:
        _require(where, missing, [f"{word}=" for word in allowed])
    rule: dict[str, int] = {}
    for word, (field, default) in allowed.items():
        text = values.get(word, default or "")
        if field == "twosided":
            rule[field] = cli_values.truth(where, text)
        else:
            rule[field] = max(int(field != "score_cp"), cli_values.number(where, text))
    return rule


def _require(where: str, missing: Sequence[str], allowed: Sequence[str]) -> None:
    if missing:
        lacking = ", ".join(f"{word}=" for word in missing)
        raise cli_values.refuse(where, f"no {lacking}", ", ".join(allowed))


def _maxmoves(draft: Draft, where: str, group: list[str]) -> None:
    limit = cli_values.number(where, cli_values.only(where, group))
    draft.rules |= {"max_moves": limit} if limit else {}


def _tb(draft: Draft, where: str, group: list[str]) -> None:
    draft.match["tables"] = cli_values.only(where, group).replace(";", ":")


def _tbpieces(draft: Draft, where: str, group: list[str]) -> None:
    """Read how many men at most; 0 is no bound, as with fastchess."""
    text = cli_values.only(where, group)
    draft.tables.pop("men", None)
    if text != "0":
        draft.tables["men"] = cli_values.number(where, text, 3, MOST_MEN)


def _tbadjudicate(draft: Draft, where: str, group: list[str]) -> None:
    mode = cli_values.choice(where, cli_values.only(where, group), TB_MODES)
    draft.tables |= {"draw_only": mode == "DRAW", "decided_only": mode == "WIN_LOSS"}


def _tbignore50(draft: Draft, where: str, group: list[str]) -> None:
    cli_values.none(where, group)
    draft.tables["ignore_fifty"] = True


def _tournament(draft: Draft, where: str, group: list[str]) -> None:
    wanted = cli_values.only(where, group)
    draft.unplayed = wanted if wanted in UNPLAYED else ""
    draft.plan["kind"] = (
        "round-robin" if draft.unplayed else cli_values.choice(where, wanted, TOURNAMENTS)
    )


def _until(draft: Draft, where: str, group: list[str]) -> None:
    """Read when the list of an adaptive match is in order."""
    values = cli_values.pairs(where, group, ("ordered", "within"))
    ordered = cli_values.real(f"{where} ordered", values.get("ordered", "0.95"))
    within = cli_values.real(f"{where} within", values.get("within", "0"))
    if not 0.5 < ordered < 1:
        raise cli_values.refuse(f"{where} ordered", f"{ordered:g}", "a chance above 0.5, below 1")
    if within < 0:
        raise cli_values.refuse(f"{where} within", f"{within:g}", "0 Elo or more")
    draft.plan |= {"confidence": ordered, "within": within}


def _sandbox(draft: Draft, where: str, group: list[str]) -> None:
    draft.match["sandbox"] = cli_values.choice(where, cli_values.only(where, group), sandbox.WISHES)


def _variant(draft: Draft, where: str, group: list[str]) -> None:
    draft.match["variant"] = cli_values.choice(where, cli_values.only(where, group), VARIANTS)


def _repeat(draft: Draft, where: str, group: list[str]) -> None:
    draft.plan["repeat"] = (
        cli_values.number(where, cli_values.only(where, group), 1) if group else 2
    )
    if draft.dialect == "fastchess":  # there it is another word for -games: the last counts
        draft.plan.pop("games", None)


def _games(draft: Draft, where: str, group: list[str]) -> None:
    draft.plan["games"] = cli_values.number(where, cli_values.only(where, group), 1)
    if draft.dialect == "fastchess":
        draft.plan.pop("repeat", None)


def _pgnout(draft: Draft, where: str, group: list[str]) -> None:
    """Read ``FILE [min] [fi]`` and ``file=FILE [min=true] [comments=STYLE] [nodes=true …]``."""
    bare = {"min": "min=true", "fi": "fi=true"}
    patterns = [word.partition("=")[2] for word in group if word.startswith("match_line=")]
    for pattern in patterns:
        _check_pattern(f"{where} match_line", pattern)
    draft.match["match_lines"] = tuple(patterns)
    switches = [bare.get(word, word) for word in group if not word.startswith("match_line=")]
    if switches and "=" not in switches[0]:
        switches[0] = f"file={switches[0]}"
    fields = ("nodes", "seldepth", "nps", "hashfull", "tbhits", "pv", "timeleft", "latency")
    keys = ("file", "min", "fi", "append", "notation", "comments", *fields)
    values = cli_values.pairs(where, switches, keys)
    if "file" not in values:
        draft.remarks.append(f"{where} without file=: the games are written to {PGN_FILE}")
    if values.get("notation") == "lan":
        raise cli_values.unsupported(f"{where} notation=lan", "write san, or uci")
    draft.match["notation"] = cli_values.choice(
        f"{where} notation", values.get("notation", "san"), ("san", "uci")
    )
    draft.match["pgn"] = cli_values.file(where, values.get("file", PGN_FILE))
    draft.match["minimal"] = cli_values.truth(where, values.get("min", "false"))
    draft.match["append"] = cli_values.truth(where, values.get("append", "true"))
    if "comments" in values:
        draft.match["comments"] = cli_values.choice(
            f"{where} comments", values["comments"], record.COMMENTS
        )
    if "latency" in values:
        draft.remarks.append(f"{where} latency=: {IDLE['show-latency']}")
    draft.match["fields"] = frozenset(
        name for name in fields if cli_values.truth(f"{where} {name}", values.get(name, "false"))
    )


def _check_pattern(where: str, text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        allowed = "a regular expression as Python reads it"
        raise cli_values.refuse(where, f"{text!r} ({error})", allowed) from None


def _epdout(draft: Draft, where: str, group: list[str]) -> None:
    bare = [word if "=" in word else f"file={word}" for word in group]
    values = cli_values.pairs(where, bare, ("file", "append"))
    if not cli_values.truth(f"{where} append", values.get("append", "true")):
        draft.remarks.append(f"{where}: positions are written behind what the file holds")
    if "file" not in values:
        draft.remarks.append(f"{where} without file=: the positions are written to {EPD_FILE}")
    draft.match["epd"] = cli_values.file(where, values.get("file", EPD_FILE))


def _sprt(draft: Draft, where: str, group: list[str]) -> None:
    words = ("elo0", "elo1", "alpha", "beta", "model")
    values = cli_values.pairs(where, group, words)
    required = words[:2] if draft.dialect == "farm" else words[:4]
    missing = [word for word in required if word not in values]
    _require(where, missing, [f"{word}=" for word in words])
    elo0, elo1 = (cli_values.real(where, values[key]) for key in ("elo0", "elo1"))
    if elo0 == elo1 and draft.dialect == "cutechess":  # a soak test: its ratio stays 0
        draft.remarks.append(f"{where}: equal bounds decide nothing; all games are played")
        return
    usual = "logistic" if draft.dialect == "cutechess" else "normalized"
    if "model" not in values and draft.dialect == "cutechess":
        draft.remarks.append(
            f"{where}: with -dialect cutechess elo0= and elo1= are logistic Elo; the test rests on"
            " pairs where there are any, and needs fewer games than one on single games"
        )
    if values.get("model") == "bayesian":
        instead = "its bounds hang on the draw rate; model=logistic takes them in Elo"
        raise cli_values.unsupported(f"{where} model=bayesian", instead)
    draft.match["test"] = sprt.Test(
        elo0=elo0,
        elo1=elo1,
        alpha=cli_values.real(where, values.get("alpha", "0.05")),
        beta=cli_values.real(where, values.get("beta", "0.05")),
        model=cli_values.choice(f"{where} model", values.get("model", usual), sprt.MODELS),  # type: ignore[arg-type] # `choice` has checked it
    )


def _affinity(draft: Draft, where: str, group: list[str]) -> None:
    text = cli_values.only(where, group) if group else ""
    draft.match["cpus"] = frozenset(_positions(where, text, 4096))


def _log(draft: Draft, where: str, group: list[str]) -> None:
    keys = ("file", "level", "append", "compress", "realtime", "engine")
    values = cli_values.pairs(
        where, [word if "=" in word else f"file={word}" for word in group], keys
    )
    truths = {key: cli_values.truth(f"{where} {key}", values.get(key, usual)) for key, usual in LOG}
    if truths != {key: usual == "true" for key, usual in LOG}:
        draft.remarks.append(f"{where}: plain text, written behind what the file holds")
    if "file" not in values:
        draft.remarks.append(f"{where} without file=: no log is written")
        return
    if {"level", "realtime"} & values.keys() or values.get("engine") == "false":
        draft.remarks.append(f"{where}: the file has all that engines are told and say, no more")
    draft.match["log"] = cli_values.file(where, values["file"])


def _report(draft: Draft, where: str, group: list[str]) -> None:
    values = cli_values.pairs(where, group, ("penta",))
    draft.match["penta"] = cli_values.truth(where, values.get("penta", "true"))


def _output(draft: Draft, where: str, group: list[str]) -> None:
    values = cli_values.pairs(where, group, ("format",))
    draft.match["output"] = cli_values.choice(where, values.get("format", "cutechess"), OUTPUTS)


def _crc32(draft: Draft, where: str, group: list[str]) -> None:
    values = cli_values.pairs(where, group, ("pgn",))
    draft.match["crc32"] = cli_values.truth(where, values.get("pgn", "true"))


def _dialect(draft: Draft, where: str, group: list[str]) -> None:
    draft.dialect = cli_values.choice(where, cli_values.only(where, group), DIALECTS)  # type: ignore[assignment] # `choice` has checked it


def _debug(draft: Draft, where: str, group: list[str]) -> None:
    """Read cutechess-cli's wish to see what engines say: a file has it, not the output."""
    if group != ["all"]:
        cli_values.none(where, group)
    draft.match.setdefault("log", LOG_FILE)
    draft.remarks.append(f"{where}: all that engines say is kept in {draft.match['log']}")


def _config(draft: Draft, where: str, group: list[str]) -> None:
    values = cli_values.pairs(where, group, ("file", "outname", "discard", "stats"))
    if "file" in values and values.get("discard") != "true":
        instead = "farm match -resume -journal FILE goes on with a match from its journal"
        raise cli_values.unsupported(f"{where} file={values['file']}", instead)
    draft.remarks.append(f"{where}: the journal is what a match is resumed from, -journal names it")


def _concurrency(draft: Draft, where: str, group: list[str]) -> None:
    """Read how many games at a time; 0 or less is fastchess' "all cores but so many"."""
    games = cli_values.number(where, cli_values.only(where, group), -4096)
    if games <= 0:
        games = max(1, cores() + games)
        draft.remarks.append(f"{where}: {games} games at a time, of {cores()} cores")
    draft.match["concurrency"] = games


def cores() -> int:
    """Return how many logical CPUs this machine has."""
    return os.cpu_count() or 1


def _text(field: str) -> Reader:
    def read_text(draft: Draft, where: str, group: list[str]) -> None:
        draft.match[field] = cli_values.only(where, [" ".join(group)] if group else [])

    return read_text


def _live(draft: Draft, where: str, group: list[str]) -> None:
    """Read PORT or HOST:PORT; loopback unless a host is named, since the page has no password."""
    address = cli_values.only(where, [word for word in group if word != "stay"])
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or Live.host
    number = cli_values.number(where, port, 0)
    if number > LAST_PORT:
        allowed = f"PORT or HOST:PORT, up to {LAST_PORT}; 0 is a free one"
        raise cli_values.refuse(where, address, allowed)
    draft.match["live"] = Live(host, number, "stay" in group)
    if host not in LOOPBACK:
        draft.remarks.append(f"{where}: whoever reaches {host} sees the page; it has no password")


def _path(field: str) -> Reader:
    def read_path(draft: Draft, where: str, group: list[str]) -> None:
        draft.match[field] = cli_values.file(where, cli_values.only(where, group))

    return read_path


def _count(field: str, low: int) -> Reader:
    def read_count(draft: Draft, where: str, group: list[str]) -> None:
        draft.match[field] = cli_values.number(where, cli_values.only(where, group), low)

    return read_count


def _shape(field: str) -> Reader:
    def read_shape(draft: Draft, where: str, group: list[str]) -> None:
        draft.plan[field] = cli_values.number(where, cli_values.only(where, group), 1)

    return read_shape


def _patience(field: str) -> Reader:
    def read_patience(draft: Draft, where: str, group: list[str]) -> None:
        draft.timeouts[field] = cli_values.number(where, cli_values.only(where, group), 1)

    return read_patience


def _turn(draft: Draft, where: str, group: list[str]) -> None:
    cli_values.none(where, group)
    draft.plan |= {"swap": False} if where == "-noswap" else {"reverse": True}


def _flag(draft: Draft, where: str, group: list[str]) -> None:
    cli_values.none(where, group)
    draft.match[FLAGS.get(where, where.removeprefix("-").replace("-", "_"))] = True


READERS: Mapping[str, Reader] = {
    "engine": _engine,
    "each": _each,
    "quick": _quick,
    "games": _games,
    "rounds": _shape("rounds"),
    "repeat": _repeat,
    "noswap": _turn,
    "reverse": _turn,
    "seeds": _shape("seeds"),
    "tournament": _tournament,
    "until": _until,
    "concurrency": _concurrency,
    "use-affinity": _affinity,
    "sandbox": _sandbox,
    "openings": _openings,
    "variant": _variant,
    "draw": _draw,
    "resign": _resign,
    "maxmoves": _maxmoves,
    "tb": _tb,
    "tbpieces": _tbpieces,
    "tbadjudicate": _tbadjudicate,
    "tbignore50": _tbignore50,
    "sprt": _sprt,
    "srand": _count("seed", 0),
    "wait": _count("wait_ms", 0),
    "event": _text("event"),
    "site": _text("site"),
    "pgnout": _pgnout,
    "epdout": _epdout,
    "log": _log,
    "journal": _path("journal"),
    "boxes": _path("boxes"),
    "live": _live,
    "recover": _flag,
    "resume": _flag,
    "resume-other-builds": _flag,
    "strict": _flag,
    "check-mate-pvs": _flag,
    "testEnv": _flag,
    "force-concurrency": _flag,
    "ratinginterval": _count("rating_interval", 0),
    "outcomeinterval": _count("outcome_interval", 0),
    "scoreinterval": _count("outcome_interval", 0),
    "output": _output,
    "report": _report,
    "crc32": _crc32,
    "debug": _debug,
    "config": _config,
    "dialect": _dialect,
    "startup-ms": _patience("start_ms"),
    "ucinewgame-ms": _patience("ready_ms"),
    "ping-ms": _patience("ready_ms"),
    "json": _flag,
}
