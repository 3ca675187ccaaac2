"""The finished games of a match: their moves, from what its page has seen, else from its PGN.

The journal of ``farm match`` holds results, no moves. A game whose moves nobody has is shown by
its result alone.
"""

from __future__ import annotations

import collections
import gzip
import pathlib
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import record as pgn_record
from orchestrator.audit import reading
from orchestrator.broadcast.content import games, match_view, replays
from orchestrator.common import errors
from orchestrator.testmatch import match_journal

KEPT: Final = 2_000  # games that the page has seen: 5 kB each, packed
Reports = Mapping[contract.Side, contract.EngineReport]


class Games:
    """The moves of finished games by number."""

    def __init__(self, about: match_journal.About, pgn: pathlib.Path | None) -> None:
        """Read moves of games that were not seen from ``pgn``, where the match writes one."""
        self._about, self._path = about, pgn
        self._seen: collections.OrderedDict[int, bytes] = collections.OrderedDict()
        self._texts: dict[int, str] = {}
        self._size = -1

    def keep(
        self,
        order: contract.GameOrder,
        plies: Sequence[contract.PlyRecord],
        result: match_journal.Result,
        reports: Reports,
    ) -> None:
        """Keep a game that was seen."""
        made, _ = replays.record_of(order, match_view.result_told(result), tuple(plies))
        record = made.model_copy(update={str(side): one for side, one in reports.items()})
        self._seen[result.number] = gzip.compress(record.encode().encode(), compresslevel=3)
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)

    def replay(
        self, result: match_journal.Result, results: Sequence[match_journal.Result]
    ) -> replays.Replay:
        """Return a finished game; ``results`` are all of the journal, in its order."""
        packed = self._seen.get(result.number)
        if packed is not None:
            record = contract.GameRecord.decode(gzip.decompress(packed).decode())
            return replays.Replay(record, games.of_record(record))
        text = self.text(result, results)
        try:
            found = None if text is None else self._read(result, text)
        except (ValueError, errors.BookError, errors.UsageError):
            found = None
        return found or self._bare(result)

    def pgn(
        self, result: match_journal.Result, results: Sequence[match_journal.Result]
    ) -> str | None:
        """Return a game's PGN: as the match wrote it, else of the moves that were seen."""
        text = self.text(result, results)
        if text is not None:
            return text
        replay = self.replay(result, results)
        return pgn_record.pgn(replay.record) if replay.recorded else None

    def text(
        self, result: match_journal.Result, results: Sequence[match_journal.Result]
    ) -> str | None:
        """Return a game's text in the PGN file: games stand there in the journal's order."""
        try:
            size = -1 if self._path is None else self._path.stat().st_size
        except OSError:
            return None
        if size != self._size and result.number not in self._texts:
            self._index(results)
            self._size = size
        return self._texts.get(result.number)

    def _index(self, results: Sequence[match_journal.Result]) -> None:
        assert self._path is not None
        texts = reading.chunks(self._path.read_text(encoding="utf-8", errors="replace"))
        # A file may hold older matches, and may lack a game that is being written: the end counts.
        for missing in range(2):
            mine = results[: len(results) - missing]
            ends = texts[len(texts) - len(mine) :] if len(texts) >= len(mine) else []
            if ends and all(_is_of(text, one) for text, one in zip(ends, mine, strict=True)):
                self._texts = {one.number: text for one, text in zip(mine, ends, strict=True)}
                return

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
            season=match_view.SEASON,
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


def _is_of(text: str, result: match_journal.Result) -> bool:
    """Say whether a PGN is that of a result, by its players and its end."""
    head = text.partition("\n\n")[0]
    tags = (("White", result.white), ("Black", result.black), ("Result", result.result))
    return all(f'[{name} "{_escaped(value)}"]' in head for name, value in tags)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
