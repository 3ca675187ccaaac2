"""UCI as pure text: lines in, values out; command bytes out.

Source: the UCI protocol text of April 2006. Invariants:

* no bytes an engine writes raise: a line that is not understood is ``None``;
* a score is exact (no lowerbound, no upperbound) and of the first line of play, and it is
  the last one before the move;
* nothing here is called while a clock runs, except ``MoveFinder``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from orchestrator import contract
from worker_cpu.protocols import base

Search: TypeAlias = base.Search
OptionType: TypeAlias = Literal["check", "spin", "combo", "button", "string"]

TEXT_LIMIT = 4096  # characters kept of a name, a value or a move an engine writes
PV_LIMIT = 256  # moves kept of a principal variation
NUMBER_LIMIT = 1 << 63  # numbers beyond are nonsense, and JSON readers cut them
_TYPES: Mapping[str, OptionType] = {
    "check": "check",
    "spin": "spin",
    "combo": "combo",
    "button": "button",
    "string": "string",
}
_OPTION_WORDS = frozenset({"name", "type", "default", "min", "max", "var"})
_COUNTERS = frozenset({"nodes", "nps", "tbhits", "hashfull"})
_NUMBERS = _COUNTERS | {"depth", "seldepth", "multipv"}
_INFO_WORDS = _NUMBERS | {"string", "pv", "wdl", "lowerbound", "upperbound", "cp", "mate"}
# What wins, draws and losses add up to: engines round each of the three by itself.
_PERMILLE = range(990, 1011)
_SPACE = b" \t\r\v\f"
_AFTER = frozenset({b"", b" ", b"\t", b"\r", b"\n", b"\0"})  # what may follow a whole word


@dataclasses.dataclass(frozen=True)
class Identity:
    """``id name`` or ``id author``."""

    field: Literal["name", "author"]
    text: str


@dataclasses.dataclass(frozen=True)
class Option:
    """An option the engine offers, as its ``option`` line describes it."""

    name: str
    type: OptionType
    default: str | None = None
    min: int | None = None
    max: int | None = None
    choices: tuple[str, ...] = ()

    def describe(self) -> str:
        """Write the offer for the record: ``spin 1..1024, default 1``."""
        description: str = self.type
        if self.min is not None or self.max is not None:
            description += f" {_number(self.min)}..{_number(self.max)}"
        if self.choices:
            description += f" {'|'.join(self.choices)}"
        return description if self.default is None else f"{description}, default {self.default}"


class BestMove(NamedTuple):
    """``bestmove``: the move's text as the engine wrote it, '' when there is none."""

    move: str
    ponder: str | None = None


# -- the handshake -----------------------------------------------------------------------


def tokens(line: bytes) -> list[str]:
    """Split a line into its words; bytes that are no UTF-8 are replaced."""
    return line.replace(b"\0", b"").decode(errors="replace").split()


def is_reply(line: bytes, reply: bytes) -> bool:
    """Say whether a line is the reply ``uciok`` or ``readyok``."""
    return line.split()[:1] == [reply]


def identity(line: bytes) -> Identity | None:
    """Read ``id name ...`` and ``id author ...``."""
    text = tokens(line)
    if len(text) < 2 or text[0] != "id":
        return None
    value = " ".join(text[2:])[:TEXT_LIMIT]
    if text[1] == "name":
        return Identity("name", value)
    return Identity("author", value) if text[1] == "author" else None


def option(line: bytes) -> Option | None:
    """Read an ``option`` line; names, defaults and choices may hold spaces."""
    text = tokens(line)
    if text[:2] != ["option", "name"]:
        return None
    fields: dict[str, str] = {}
    choices: list[str] = []
    for key, value in _option_fields(text[1:]):
        if key == "var":
            choices.append(value)
        else:
            fields.setdefault(key, value)
    kind = _TYPES.get(fields.get("type", "").lower())
    if kind is None or not fields.get("name"):
        return None
    return Option(
        name=fields["name"],
        type=kind,
        default=fields.get("default"),
        min=number(fields.get("min", "")),
        max=number(fields.get("max", "")),
        choices=tuple(choices),
    )


def _option_fields(text: list[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value; ``name`` and the words of a name end only at ``type``."""
    key, value = "", list[str]()
    for word in text:
        starts = word == "type" if key == "name" else word in _OPTION_WORDS
        if starts or not key:
            if key:
                yield key, " ".join(value)[:TEXT_LIMIT]
            key, value = word, []
        else:
            value.append(word)
    yield key, " ".join(value)[:TEXT_LIMIT]


# -- a move ------------------------------------------------------------------------------


class MoveFinder:
    """Finds the line ``bestmove`` in raw output; cheap enough while a clock runs.

    ``fresh`` tells whether the output stands at the start of a line: the rest of a line
    begun before ``go`` is no answer to it.
    """

    LINE_LIMIT = 1 << 16  # bytes kept of an unfinished line

    def __init__(self, *, fresh: bool = True) -> None:
        self._line = b"" if fresh else b"?"

    def feed(self, chunk: bytes) -> bytes | None:
        """Take output; return the whole ``bestmove`` line when it is complete."""
        text = self._line + chunk
        at = text.find(b"bestmove")
        while at >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            if not text[start:at].strip(_SPACE) and text[at + 8 : at + 9] in _AFTER:
                end = text.find(b"\n", at)
                if end >= 0:
                    return text[at:end]
                break
            end = text.find(b"\n", at)  # what else is on this line does not stand at its start
            at = text.find(b"bestmove", end) if end >= 0 else -1
        self._line = text[text.rfind(b"\n") + 1 :][: self.LINE_LIMIT]
        return None

    def begun(self) -> bool:
        """Say whether a ``bestmove`` line was begun and not ended."""
        return self._line.lstrip(_SPACE).startswith(b"bestmove")


def best_move(line: bytes) -> BestMove:
    """Read a ``bestmove`` line; what follows is kept as it was written."""
    text = tokens(line)[1:]
    ponder = text[2][:TEXT_LIMIT] if len(text) > 2 and text[1] == "ponder" else None
    return BestMove(text[0][:TEXT_LIMIT] if text else "", ponder)


def last_search(output: bytes) -> Search:
    """Read the last exact score in an engine's output, and the newest counters.

    Depth, selective depth, line of play and wins, draws and losses are those of the score;
    nodes, speed, table base hits and hash use are the last ones written.
    """
    if b"info" not in output:
        return base.SAID_NOTHING
    counters: dict[str, int] = {}
    for line in _lines_backwards(output):
        if b"info" not in line:
            continue
        text = tokens(line)
        if not text or text[0] != "info" or (len(text) > 1 and text[1] == "string"):
            continue
        info = _info(text)
        for name in _COUNTERS & info.numbers.keys():
            counters.setdefault(name, info.numbers[name])
        if info.score is not None and info.exact and info.numbers.get("multipv", 1) == 1:
            return _search(info, counters)
    return _search(_Info({}), counters)


def _search(info: _Info, counters: Mapping[str, int]) -> Search:
    return Search(
        score=info.score,
        depth=info.numbers.get("depth"),
        seldepth=info.numbers.get("seldepth"),
        nodes=counters.get("nodes"),
        nps=counters.get("nps"),
        tbhits=counters.get("tbhits"),
        hashfull=counters.get("hashfull"),
        wdl=info.wdl,
        pv=info.pv,
    )


@dataclasses.dataclass
class _Info:
    numbers: dict[str, int]
    score: contract.Score | None = None
    exact: bool = True
    wdl: contract.Wdl | None = None
    pv: tuple[str, ...] = ()


def _info(text: list[str]) -> _Info:
    info, end = _Info({}), 0  # of the line of play, whose moves are no keywords
    for at, word in enumerate(text):
        if word not in _INFO_WORDS or at < end:
            continue
        if word == "string":
            break
        if word == "pv":
            info.pv = tuple(_moves(text[at + 1 :]))
            end = at + 1 + len(info.pv)
        elif word == "wdl":
            info.wdl = _wdl(text[at + 1 : at + 4])
        elif word in ("lowerbound", "upperbound"):
            info.exact = False
        elif at + 1 < len(text):
            value = text[at + 1]
            if word in ("cp", "mate"):
                info.score = _score(word, value) or info.score
            elif (count := number(value)) is not None:
                info.numbers[word] = count
    return info


def _score(kind: str, value: str) -> contract.Score | None:
    points = number(value)
    if points is None:
        return None
    if kind == "cp":
        return contract.Score(cp=points)
    return contract.Score(mate=points)


def _wdl(text: list[str]) -> contract.Wdl | None:
    """Read wins, draws and losses per mille, the mover's; what cannot be such a share is none."""
    counts = [count for word in text if (count := number(word)) is not None and 0 <= count <= 1000]
    if len(counts) != 3 or sum(counts) not in _PERMILLE:
        return None
    return counts[0], counts[1], counts[2]


def _moves(text: list[str]) -> Iterator[str]:
    """Yield the words of a line of play up to the first that cannot be a move."""
    for word in text[:PV_LIMIT]:
        if not 4 <= len(word) <= 5 or not word.isalnum() or not word.isascii():
            return
        yield word


def _lines_backwards(output: bytes) -> Iterator[bytes]:
    end = len(output)
    while end >= 0:
        start = output.rfind(b"\n", 0, end) + 1
        yield output[start:end][: MoveFinder.LINE_LIMIT]
        end = start - 1


def number(text: str) -> int | None:
    """Read a number as engines write it; nonsense and the absurdly large are ``None``."""
    if not text.isascii() or len(text) > 20 or not text.removeprefix("-").isdigit():
        return None
    value = int(text)
    return value if -NUMBER_LIMIT < value < NUMBER_LIMIT else None


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


# -- commands ----------------------------------------------------------------------------


def set_option(name: str, value: str | None = None) -> bytes:
    """Write ``setoption``; a button has no value. Line ends cannot be smuggled in."""
    text = f"setoption name {name}" if value is None else f"setoption name {name} value {value}"
    return " ".join(text.splitlines()).encode() + b"\n"


def position_and_go(position: str, limits: str, *, ponder: bool = False) -> bytes:
    """Write ``position`` and ``go`` as the one piece that starts a clock.

    ``limits`` are the arguments of ``go``, a space before each. With ``ponder`` no clock starts
    before ``ponderhit``.
    """
    return f"{position}\ngo{' ponder' if ponder else ''}{limits}\n".encode()
