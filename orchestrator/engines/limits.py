"""What an engine option's name means to the rules, and what breaks an event's limits.

Engines name the same thing in many ways; the patterns here are
those of the engines in TCEC's public archive and in Debian. Invariants:

* a name has exactly one role, whatever its case, spaces and hyphens;
* sizes are counted in KiB, so that tables given in KB and in MB can be added up;
* a cache counted in entries (lc0's ``NNCacheSize``) has no size in MB and is no hash here.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from orchestrator import contract

Value: TypeAlias = str | int | bool


class Role(enum.Enum):
    """What the rules have to say about an option."""

    THREADS = "threads"  # at most the event's (N1 Number of Cores)
    HASH = "main hash"  # at most the event's (N1 Main Hash Size)
    MINOR_HASH = "minor hashes"  # at most the event's, all together (N1 Minor Hash Sizes)
    TABLEBASE_CACHE = "tablebase cache"  # at most the event's, all together (N1 Tablebase Cache)
    SYZYGY = "Syzygy path"  # the event's
    NALIMOV = "Nalimov path"  # the event's
    GAVIOTA = "Gaviota path"  # the event's
    SCORPIO = "Scorpio bitbase path"  # the event's
    OWN_BOOK = "own book"  # off (N1 Own Opening Book)
    PONDER = "pondering"  # off (N1 Ponder)
    LARGE_PAGES = "large pages"  # off (N1 Large Pages)
    KEEP_HASH = "keep hash tables"  # on, unless the author says otherwise
    CHESS960 = "Chess960"  # as the game is
    SHOW_WDL = "wins, draws and losses"  # on, unless the author says otherwise: for spectators
    OPPONENT = "opponent"  # whom it plays, where the event tells it; never the author's
    CONTEMPT = "contempt"  # as it is, unless the author says otherwise (N1 Contempt: never)
    SPLIT_DEPTH = "split depth"  # as it is, unless the author says otherwise (N1 Split Depth)
    OTHER = "other"  # its default, unless the author says otherwise


_TABLEBASES = r"(nalimov|gaviota|egtb|egbb|bitbases?|tablebases?|tb|syzygy|scorpio)"
_MINORS = r"(pawns?|eval(uation)?|material|mcts|nnue|king(safety)?|qsearch|score|minor)"
_BOOKS = r"(use|(use)?own|(use|fallbackto)?internal|(use)?opening|(use)?ownopening|usepolyglot)"
# Ordered: the first pattern that matches the whole name, in small letters and digits, counts.
_NAMES: Final[Mapping[Role, str]] = {
    Role.THREADS: r"(smp|max|num|n|numberof)?(threads|cpus|cores|processors)|threadcount",
    Role.HASH: r"(main|tt)?hash(table)?(size)?(mb)?|transpositiontable(size)?(mb)?|memory",
    Role.MINOR_HASH: rf"({_MINORS}(hash|cache|table)(table|size)?|(table|thread)memory)(kb|mb)?",
    Role.TABLEBASE_CACHE: rf".*{_TABLEBASES}.*cache(size)?(kb|mb)?",
    Role.SYZYGY: r".*syzygy.*path|(wdl|dtz)path|egtpathsyzygy",
    Role.NALIMOV: r".*nalimov.*path|egtpathnalimov",
    Role.GAVIOTA: r".*gaviota.*path|egtpathgaviota",
    Role.SCORPIO: r".*(scorpio|egbb|bitbase).*path|egtpath(scorpio|bitbases)",
    Role.OWN_BOOK: rf"{_BOOKS}?book",
    Role.PONDER: r"ponder(ing)?|permanentbrain",
    Role.LARGE_PAGES: r"(use|try|enable)?(large|huge)(memory)?pages?",
    Role.KEEP_HASH: r"(neverclear|keep|preserve|persistent)(the)?hash(tables?)?|preserveanalysis",
    Role.CHESS960: r"ucichess960",
    Role.SHOW_WDL: r"ucishowwdl",
    Role.OPPONENT: r"uci(opponent|ratingadv)",
    Role.CONTEMPT: r".*contempt.*|draw(score|penalty)",
    Role.SPLIT_DEPTH: r"(min(imum)?)?split(point)?depth",
}
_PATTERNS: Final = tuple((role, re.compile(pattern)) for role, pattern in _NAMES.items())

PATHS: Final = (Role.NALIMOV, Role.GAVIOTA, Role.SCORPIO, Role.SYZYGY)  # N1 Endgame Tablebases
SIZES: Final = frozenset({Role.HASH, Role.MINOR_HASH, Role.TABLEBASE_CACHE})
ON: Final = (Role.KEEP_HASH, Role.SHOW_WDL)
OFF: Final = (Role.OWN_BOOK, Role.PONDER, Role.LARGE_PAGES)
# N1 Other Settings: nothing else is adjusted there.
ALWAYS_OPEN: Final = frozenset({Role.SPLIT_DEPTH, Role.KEEP_HASH})


def role(name: str) -> Role:
    """Return what the rules call an option of this name."""
    plain = _plain(name)
    return next((role for role, pattern in _PATTERNS if pattern.fullmatch(plain)), Role.OTHER)


def unit_kib(name: str) -> int:
    """Return what one unit of a size option is worth, in KiB: 1 or, in MB, 1024."""
    return 1 if _plain(name).endswith("kb") else 1024


def path(limits: contract.Limits, kind: Role) -> str | None:
    """Return where the event's tablebases of a kind lie; raise ``KeyError`` for no kind."""
    return {
        Role.SYZYGY: limits.syzygy_path,
        Role.NALIMOV: limits.nalimov_path,
        Role.GAVIOTA: limits.gaviota_path,
        Role.SCORPIO: limits.scorpio_path,
    }[kind]


def together_mb(limits: contract.Limits, kind: Role) -> int | None:
    """Return how many MB all options of a role may have together, ``None``: no limit."""
    return {
        Role.MINOR_HASH: limits.minor_hash_mb,
        Role.TABLEBASE_CACHE: limits.tablebase_cache_mb,
    }[kind]


def may_set(limits: contract.Limits, kind: Role) -> bool:
    """Say whether an author's setting of an option without a limit counts in the event."""
    return limits.author_settings == "free" or kind in ALWAYS_OPEN


def merged(options: Mapping[str, Value], settings: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return an author's options with those for one event in their place.

    Names are the same in any case, as in UCI; the order is the author's.
    """
    instead = {name.lower(): (name, value) for name, value in settings.items()}
    result = dict(instead.pop(name.lower(), (name, value)) for name, value in options.items())
    return result | dict(instead.values())


# -- what breaks a limit -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Breach:
    """An author's setting that an event does not allow: the option, its value, the limit."""

    name: str
    value: str
    limit: str


def breaches(options: Mapping[str, Value], limits: contract.Limits) -> Iterator[Breach]:
    """Yield the settings of an author that break an event's limits."""
    if limits.free:
        return
    for name, value in options.items():
        limit = _broken(name, value, limits)
        if limit is not None:
            yield Breach(name, text(value), limit)
    for kind in (Role.MINOR_HASH, Role.TABLEBASE_CACHE):
        yield from _together(options, kind, together_mb(limits, kind))


def _broken(name: str, value: Value, limits: contract.Limits) -> str | None:
    """Return the limit that one setting breaks by itself."""
    match role(name):
        case Role.THREADS:
            return _above(value, limits.threads, f"{limits.threads} threads or less")
        case Role.HASH:
            most = limits.hash_mb * 1024 // unit_kib(name)
            return _above(value, most, f"{limits.hash_mb} MB or less")
        case Role.MINOR_HASH | Role.TABLEBASE_CACHE:
            return None if whole(value) is not None else "a whole number"
        case (Role.OWN_BOOK | Role.PONDER | Role.LARGE_PAGES) as kind:
            return None if text(value) == "false" else f"false ({kind.value} off)"
        case Role.CHESS960 | Role.OPPONENT:
            return "the farm sets it, as the game is"
        case kind:
            if may_set(limits, kind):
                return None
            return "only split depth and keep hash tables are open to authors"


def _above(value: Value, most: int, allowed: str) -> str | None:
    number = whole(value)
    if number is None:
        return f"a whole number, {allowed}"
    return allowed if number > most else None


def _together(options: Mapping[str, Value], kind: Role, limit_mb: int | None) -> Iterator[Breach]:
    if limit_mb is None:
        return
    sizes = {
        name: number * unit_kib(name)
        for name, value in options.items()
        if role(name) is kind and (number := whole(value)) is not None
    }
    if sum(sizes.values()) > limit_mb * 1024:
        values = " + ".join(text(options[name]) for name in sizes)
        yield Breach(" + ".join(sizes), values, f"{limit_mb} MB together or less ({kind.value})")


def whole(value: Value) -> int | None:
    """Read a setting as a whole number; ``None`` when it is none."""
    try:
        return None if isinstance(value, bool) else int(value)
    except ValueError:
        return None


def text(value: Value) -> str:
    """Write a setting as protocols do: ``true``, ``false``, digits, text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isascii() and letter.isalnum())
