"""XBoard/WinBoard (CECP v2) as pure text: lines in, values out; command bytes out.

Source: the Chess Engine Communication Protocol of XBoard 4.9, and what Debian's engines
really write. Invariants:

* no bytes an engine writes raise: a line that is not understood is ``None`` or empty;
* an answer is a line that begins with ``move``, ``resign``, a result, ``Illegal move`` or
  one of the old forms of a move (``My move is: e2e4``, ``1. ... e7e5``);
* a score is exact (not marked as a bound), and the last one before the move; scores are
  centipawns, 100000 + N is mate in N moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator import contract
from worker_cpu.protocols import base, uci

MATE = 100_000  # scores beyond are mates
MATE_MOVES = 1_000  # and those further beyond are nonsense
TAIL_BYTES = 1 << 16  # bytes of a search's output that are searched for its last lines

_FEATURE = re.compile(r'([A-Za-z0-9_]+)=("[^"]*"|\S+)')
_OPTION = re.compile(
    r"(.+?) +-(check|spin|slider|combo|string|file|path|button|save|reset)(?: +(.*))?"
)
_MOVE = re.compile(rb"(?:move +|My move is ?: ?|\d+\. *\.\.\. *)(\S+)", re.IGNORECASE)
_RESULT = re.compile(rb"(1-0|0-1|1/2-1/2)(?:\s*\{.*|\s*)")
_RESIGN = re.compile(rb"resigns?\b", re.IGNORECASE)
_ILLEGAL = re.compile(rb"Illegal move\b")
_INFO = re.compile(
    rb"[ \t]*(\d{1,4})[.+&:]?[ \t]+([+-]?\d{1,9})[ \t]+(\d{1,18})[ \t]+(\d{1,18})"
    rb"(?:((?:[ \t]+\d{1,18}){1,4})[ \t]*\t)?[ \t]*([^\r\n]*)"
)
_PV_WORD = re.compile(
    r"[a-h][1-8]-?[a-h][1-8]=?[qrbnQRBN]?|[NBRQK]?[a-h]?[1-8]?[-x]?[a-h][1-8](?:=?[QRBN])?"
    r"|[Oo0]-[Oo0](?:-[Oo0])?"
)
COORDINATES = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")
_MOVE_NUMBER = re.compile(r"^\d+\.+")
_BOUNDS = ("!", "?", "++", "--", "<", ">")
_BOUNDS_BEFORE = ("(+)", "(-)", "++", "--")
_RESULTS: Mapping[bytes, contract.Result] = {
    b"1-0": "1-0",
    b"0-1": "0-1",
    b"1/2-1/2": "1/2-1/2",
}
_MARKS = (
    b"\nmove ",
    b"\nresign",
    b"\n1-0",
    b"\n0-1",
    b"\n1/2-1/2",
    b"\nMy move is",
    b"\nIllegal move",
    b" ... ",
)
_SPLIT_OPTIONS = " /// "


# -- the handshake -----------------------------------------------------------------------


def features(line: bytes) -> tuple[tuple[str, str], ...]:
    """Read a ``feature`` line: names and values, values without their quotes."""
    text = line.replace(b"\0", b"").decode(errors="replace").strip()
    if not text.startswith("feature "):
        return ()
    pairs = _FEATURE.findall(text)
    return tuple((name, value.strip('"')[: uci.TEXT_LIMIT * 8]) for name, value in pairs)


def option(text: str) -> uci.Option | None:
    """Read the value of ``feature option``: ``NAME -TYPE ARGUMENTS``."""
    match = _OPTION.fullmatch(text.strip())
    if match is None:
        return None
    name, kind, rest = match[1].strip(), match[2], (match[3] or "").strip()
    if kind in ("spin", "slider"):
        return _spin(name, rest.split())
    if kind == "check":
        return uci.Option(name, "check", "true" if rest == "1" else "false")
    if kind == "combo":
        return _combo(name, rest.split(_SPLIT_OPTIONS.strip()))
    if kind in ("string", "file", "path"):
        return uci.Option(name, "string", rest)
    return uci.Option(name, "button")


def _spin(name: str, numbers: list[str]) -> uci.Option | None:
    values = [uci.number(text) for text in numbers]
    if len(values) != 3 or None in values:
        return None
    return uci.Option(name, "spin", numbers[0], values[1], values[2])


def _combo(name: str, choices: list[str]) -> uci.Option:
    texts = [choice.strip() for choice in choices]
    chosen = [text[1:] for text in texts if text.startswith("*")]
    plain = tuple(text.removeprefix("*") for text in texts)
    return uci.Option(name, "combo", (chosen or list(plain))[0], choices=plain)


def is_pong(line: bytes, number: int) -> bool:
    """Say whether a line is ``pong`` with this number."""
    return line.split()[:2] == [b"pong", str(number).encode()]


def is_refusal(line: bytes) -> bool:
    """Say whether an engine says that it cannot take the position it was given."""
    text = line.strip().lower()
    refused = text.startswith(b"tellusererror") and b"illegal" in text
    return refused or bool(_ILLEGAL.match(line.strip()))


def is_complaint(line: bytes) -> bool:
    """Say whether an engine did not understand, or not allow, what it was sent."""
    return line.startswith((b"Error", b"Illegal move"))


def is_no_version_2(line: bytes) -> bool:
    """Say whether an engine complains that it does not know ``protover``."""
    return is_complaint(line) and b"protover" in line


# -- an answer ---------------------------------------------------------------------------


class AnswerFinder:
    """Finds the line that answers ``go`` in raw output; cheap enough while a clock runs.

    ``fresh`` tells whether the output stands at the start of a line: the rest of a line
    begun before ``go`` is no answer to it. Nor is ``last``, the engine's move before, said
    once more (gnuchess says each in two forms): no piece can make the same move again.
    """

    LINE_LIMIT = 1 << 16  # bytes kept of an unfinished line

    def __init__(self, *, fresh: bool = True, last: str = "") -> None:
        self._line = b"\n" if fresh else b"?"
        self._last = last if COORDINATES.fullmatch(last) else ""

    def feed(self, chunk: bytes) -> bytes | None:
        """Take output; return the first whole line that is an answer."""
        text = self._line + chunk
        starts = [at for mark in _MARKS if (at := self._first(text, mark)) >= 0]
        if starts:
            start = min(starts)
            return text[start : text.find(b"\n", start)]
        self._line = text[max(0, text.rfind(b"\n")) :][: self.LINE_LIMIT]
        return None

    def begun(self) -> bool:
        """Say whether an answer was begun and not ended."""
        return self._line.startswith(_MARKS[:-1])

    def _first(self, text: bytes, mark: bytes) -> int:
        """Return where the first whole answer that holds ``mark`` begins, -1 for none."""
        at = text.find(mark)
        while at >= 0:
            start = text.rfind(b"\n", 0, at + 1) + 1
            end = text.find(b"\n", start)
            if end < 0:
                return -1
            if text[start - 1 : start] == b"\n" and self._answers(text[start:end]):
                return start
            at = text.find(mark, end)
        return -1

    def _answers(self, line: bytes) -> bool:
        said = reply(line)
        return said is not None and (said.kind != "move" or said.text != (self._last or None))


def reply(line: bytes) -> base.Reply | None:
    """Read a line that answers ``go``, ``None`` when it is none."""
    text = line.replace(b"\0", b"").strip()
    if (match := _MOVE.match(text)) is not None:
        return base.Reply("move", _text(match[1]))
    if (match := _RESULT.fullmatch(text)) is not None:
        return base.Reply("claim", _text(text), result=_RESULTS[match[1]])
    if _RESIGN.match(text) is not None:
        return base.Reply("resign", _text(text))
    if _ILLEGAL.match(text) is not None:
        return base.Reply("claim", _text(text))
    return None


def aside(output: bytes) -> base.Aside:
    """Read what an engine wrote beside its answers; the first end of the game counts."""
    ends: base.Reply | None = None
    offers = False
    for line in output[-TAIL_BYTES:].split(b"\n"):
        offers = offers or line.strip() == b"offer draw"
        if ends is None and line[:1] in b"10rRI" and line:
            said = reply(line)
            ends = said if said is not None and said.kind != "move" else None
    return base.Aside(ends, offers)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")[: uci.TEXT_LIMIT]


# -- thinking output ---------------------------------------------------------------------


def last_search(output: bytes) -> base.Search:
    """Read the last exact line of thinking output, and the newest node count."""
    nodes: int | None = None
    for line in _lines_backwards(output):
        match = _INFO.fullmatch(line)
        if match is None or match[1] == b"0":
            continue
        nodes = int(match[4]) if nodes is None else nodes
        pv = match[6].decode(errors="replace").rstrip()
        if not pv.endswith(_BOUNDS) and not pv.startswith(_BOUNDS_BEFORE):
            return _search(match, pv, nodes)
    return base.Search(nodes=nodes)


def _search(match: re.Match[bytes], pv: str, nodes: int) -> base.Search:
    """Make a search of a line; the numbers behind the nodes stand before a tab."""
    extra = [int(word) for word in (match[5] or b"").split()]
    return base.Search(
        score=_score(int(match[2])),
        depth=int(match[1]),
        seldepth=extra[0] if extra else None,
        nodes=nodes,
        nps=extra[1] if len(extra) > 1 else None,
        tbhits=extra[2] if len(extra) > 2 else None,
        pv=tuple(_pv(pv)),
    )


def _score(points: int) -> contract.Score:
    moves = abs(points) - MATE
    if not 0 <= moves <= MATE_MOVES:
        return contract.Score(cp=points)
    return contract.Score(mate=max(1, moves) if points > 0 else -moves)


def _pv(text: str) -> Iterator[str]:
    """Yield the moves of a line of play as they are written, without signs around them."""
    for word in text.split()[: 2 * uci.PV_LIMIT]:
        move = _MOVE_NUMBER.sub("", word).strip("(){}[],;.").rstrip("+#!?")
        if _PV_WORD.fullmatch(move):
            yield move


def _lines_backwards(output: bytes) -> Iterator[bytes]:
    yield from reversed(output[-TAIL_BYTES:].replace(b"\r", b"").split(b"\n"))


# -- commands ----------------------------------------------------------------------------


def time_control(control: contract.TimeControl, bound_ms: int) -> bytes:
    """Write ``level`` or ``st``, and ``sd``: the control that every game begins with.

    ``level`` knows whole seconds only, so the base time is rounded up; what there really
    is stands in the ``time`` before every move. ``bound_ms`` is the time of a move where
    the control has no clock.
    """
    if control.base_ms:
        minutes, seconds = divmod(-(-control.base_ms // 1000), 60)
        base_time = f"{minutes}:{seconds:02}" if seconds else f"{minutes}"
        commands = f"level {control.moves or 0} {base_time} {control.increment_ms / 1000:g}\n"
    elif control.nodes is not None and control.move_ms is None:
        commands = f"st 1\nnps {control.nodes}\n"
    else:
        commands = f"st {(control.move_ms or bound_ms) / 1000:g}\n"
    return (commands + (f"sd {control.depth}\n" if control.depth else "")).encode()


def clocks(own_ms: int, other_ms: int) -> bytes:
    """Write both clocks in whole centiseconds, at least 1."""
    return b"time %d\notim %d\n" % (max(1, own_ms // 10), max(1, other_ms // 10))
