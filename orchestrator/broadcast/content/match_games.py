"""The finished games of a match: their moves, from what its page has seen, else from its PGN.

The journal of ``farm match`` holds results, no moves. A game whose moves nobody has is shown by
its result alone.
"""

from __future__ import annotations

import array
import collections
import gzip
import pathlib
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from orchestrator import contract
from orchestrator.arbiter import record as pgn_record
from orchestrator.audit import reading
from orchestrator.broadcast.content import games, match_view, replays
from orchestrator.common import errors
from orchestrator.testmatch import match_journal

KEPT: Final = 2_000  # games that the page has seen: 5 kB each, packed
BLOCK: Final = 8 << 20  # bytes of a PGN file that are looked through at once
Reports = Mapping[contract.Side, contract.EngineReport]
_Ends = tuple[str, str, str]  # White, Black, Result: what a game in the file is known by
_NAMED: Final = re.compile(r'^\[(White|Black|Result) "((?:[^"\\]|\\.)*)"\]', re.MULTILINE)


class Texts(Protocol):
    """Where the PGN of finished games lies."""

    def text(self, number: int) -> str | None:
        """Return a game's PGN, None where it is not there."""


class PgnFile:
    """The PGN file of a match: where in it each game lies; one game is read when it is asked for.

    Games stand there in the order of ``take``, behind those of older matches; the last one may not
    be written yet. What the file grew by is looked through when a game is asked for: memory is
    twelve bytes a game, and nothing is read twice.
    """

    def __init__(self, path: pathlib.Path) -> None:
        """Know nothing of the file yet; it need not exist."""
        self._path = path
        self._lock = threading.Lock()  # asked for by threads of the page
        self._places: dict[int, int] = {}  # by a game's number: how many were taken before it
        self._wanted = array.array("L")  # in the order of ``take``: what its ends are numbered
        self._ends: dict[_Ends, int] = {}
        self._forget()

    def _forget(self) -> None:
        self._starts, self._found = array.array("Q"), array.array("L")
        self._size = 0  # bytes that were looked through; a game that is written may go on there
        self._before: int | None = None  # games of older matches

    def take(self, result: match_journal.Result) -> None:
        """Expect one more game, behind those that were taken before."""
        with self._lock:
            self._places.setdefault(result.number, len(self._wanted))
            self._wanted.append(self._numbered((result.white, result.black, result.result)))

    def text(self, number: int) -> str | None:
        """Return the PGN of a game that was taken, None where the file has it not."""
        with self._lock:
            index = self._places.get(number)
            try:
                if index is None or not self._grow():
                    return None
                if not self._stands(index):
                    self._before = self._aligned()
                return self._read(index) if self._stands(index) else None
            except OSError:
                return None

    def _numbered(self, ends: _Ends) -> int:
        return self._ends.setdefault(ends, len(self._ends))

    def _grow(self) -> bool:
        """Look through what is new; say whether the file is there."""
        if not self._path.exists():
            return False
        size = self._path.stat().st_size
        if size < self._size:
            self._forget()  # it was written again
        if size == self._size:
            return True
        with self._path.open("rb") as file:
            begin = self._starts.pop() if self._starts else 0
            del self._found[len(self._starts) :]
            file.seek(begin)
            rest = b""
            while block := file.read(BLOCK):
                # One character a byte: a game's place in the text is its place in the file.
                text = (rest + block).decode("latin-1")
                spans = reading.spans(text)
                for first, last in spans[:-1]:
                    self._add(begin + first, text[first:last])
                at = spans[-1][0] if spans else 0
                rest, begin = text[at:].encode("latin-1"), begin + at
            if rest.strip():
                self._add(begin, rest.decode("latin-1"))
            self._size = file.tell()
        return True

    def _add(self, begin: int, text: str) -> None:
        head = text.strip().partition("\n\n")[0].encode("latin-1").decode(errors="replace")
        tags = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _NAMED.findall(head)}
        self._starts.append(begin)
        self._found.append(
            self._numbered((tags.get("White", ""), tags.get("Black", ""), tags.get("Result", "")))
        )

    def _stands(self, index: int) -> bool:
        """Say whether the file has, at a game's place, a game of the same ends."""
        at = -1 if self._before is None else self._before + index
        return 0 <= at < len(self._found) and self._found[at] == self._wanted[index]

    def _aligned(self) -> int | None:
        """Return how many games of older matches there are, by all games that were taken."""
        for missing in range(2):  # the last one's result may be told before its moves
            mine = self._wanted[: len(self._wanted) - missing]
            before = len(self._found) - len(mine)
            if mine and before >= 0 and self._found[before:] == mine:
                return before
        return None

    def _read(self, index: int) -> str:
        at = (self._before or 0) + index
        end = self._starts[at + 1] if at + 1 < len(self._starts) else self._size
        with self._path.open("rb") as file:
            file.seek(self._starts[at])
            return file.read(end - self._starts[at]).decode("utf-8", "replace").strip()


class Games:
    """The moves of finished games by number."""

    def __init__(
        self,
        about: match_journal.About,
        texts: Texts | None,
        season: str = match_view.SEASON,
    ) -> None:
        """Read moves of games that were not seen from ``texts``, where the match writes them."""
        self._about, self._texts, self._season = about, texts, season
        self._seen: collections.OrderedDict[int, bytes] = collections.OrderedDict()

    def keep(
        self,
        order: contract.GameOrder,
        plies: Sequence[contract.PlyRecord],
        result: match_journal.Result,
        reports: Reports,
    ) -> None:
        """Keep a game that was seen."""
        made, _ = replays.record_of(order, match_view.result_told(result), tuple(plies))
        record = made.model_copy(update={str(side): report for side, report in reports.items()})
        self._seen[result.number] = gzip.compress(record.encode().encode(), compresslevel=3)
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)

    def replay(self, result: match_journal.Result) -> replays.Replay:
        """Return a finished game."""
        packed = self._seen.get(result.number)
        if packed is not None:
            record = contract.GameRecord.decode(gzip.decompress(packed).decode())
            return replays.Replay(record, games.of_record(record))
        text = self._text(result)
        try:
            replay = None if text is None else self._read(result, text)
        except (ValueError, errors.BookError, errors.UsageError):
            replay = None
        return replay or self._bare(result)

    def pgn(self, result: match_journal.Result) -> str | None:
        """Return a game's PGN: as the match wrote it, else of the moves that were seen."""
        text = self._text(result)
        if text is not None:
            return text
        replay = self.replay(result)
        return pgn_record.pgn(replay.record) if replay.recorded else None

    def _text(self, result: match_journal.Result) -> str | None:
        return None if self._texts is None else self._texts.text(result.number)

    def _read(self, result: match_journal.Result, text: str) -> replays.Replay | None:
        read = next(reading.games(text), None)
        if read is None:
            return None
        update = {"opening": read.opening, "variant": read.variant}
        order = self._order(result).model_copy(update=update)
        plies = tuple(replays.plies_of(order, read))
        record, line = replays.record_of(order, match_view.result_told(result), plies)
        return replays.Replay(record, line, timed=replays.has_clocks(read))

    def _bare(self, result: match_journal.Result) -> replays.Replay:
        order = self._order(result)
        record, line = replays.record_of(order, match_view.result_told(result), ())
        return replays.Replay(record, line, recorded=False)

    def _order(self, result: match_journal.Result) -> contract.GameOrder:
        named = {engine.name: engine for engine in self._about.engines}
        return contract.GameOrder(
            season=self._season,
            season_name="",
            site=self._about.site,
            event=match_view.EVENT,
            event_name=self._about.event,
            game=str(result.number),
            number=result.number,
            round=str(result.round),
            white=named[result.white],
            black=named[result.black],
            time_control=self._about.time_control,
            variant=self._about.variant,
        )
