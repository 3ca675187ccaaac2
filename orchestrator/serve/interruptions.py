"""Judge interrupted attempts for ``serve``: fetch their plies, open tables, keep the record.

The verdict itself is ``season.judgement``'s. The plies come from Redis, or from the archive
when Redis has forgotten them. Tables are the orchestrator's own: those that the event names
(``interruptions.syzygy_path``, else its adjudication's or the engines'), opened for one look.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
from collections.abc import Iterator, Sequence

import chess
import chess.syzygy
import pydantic
import structlog

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.arbiter import record as records
from orchestrator.arbiter.adjudication import tablebase
from orchestrator.ledger import api, store
from orchestrator.season import interruption
from orchestrator.season.fold import entries
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model
from orchestrator.serve import archive

log = structlog.get_logger()

_MISSING = (KeyError, OSError, ValueError, IndexError, struct.error)  # no table, or a broken one
_NO_PATH = frozenset({"", "<empty>"})  # how UCI options write that there is none


class _Tables:
    """Syzygy tables in some directories (``tablebase.Prober``); what is missing is None."""

    def __init__(self, tables: chess.syzygy.Tablebase) -> None:
        self._tables = tables

    def wdl(self, board: chess.Board) -> int | None:
        """Return 2, 1, 0, -1 or -2 for the side to move, ``None`` if a table is missing."""
        try:
            return self._tables.probe_wdl(board.copy(stack=False))
        except _MISSING:
            return None

    def dtz(self, board: chess.Board) -> int | None:
        """Return the plies to the next zeroing move, ``None`` if a table is missing."""
        try:
            return self._tables.probe_dtz(board.copy(stack=False))
        except _MISSING:
            return None


def verdict(
    ledger: store.RedisLedger, kept: archive.SeasonArchive, state: season_state.SeasonState
) -> tuple[list[contract.Draft], list[api.Effect]]:
    """Return the facts and effects of the verdict that a season waits for, or nothing."""
    if follows := interruption.following(state):
        return follows, effects(state, follows)
    if state.lost is None:
        return [], []
    game = state.game(state.lost.ended.game)
    with structlog.contextvars.bound_contextvars(season=state.launched.id):
        plies, played = _plies(ledger, kept, game.id, state.lost.ended.attempt)
    with _tables(state.events[game.event].spec) as prober:
        drafts = interruption.judge(state, plies, prober, played)
    log.warning(
        "attempt.judged",
        season=state.launched.id,
        game=game.id,
        attempt=state.lost.ended.attempt,
        scenario=drafts[0].data.get("scenario") or game.verdict,
    )
    return drafts, effects(state, drafts)


def effects(state: season_state.SeasonState, drafts: Sequence[contract.Draft]) -> list[api.Effect]:
    """Return what must be atomic with a verdict: no hall may tell a result any more."""
    results = [draft for draft in drafts if draft.kind == entries.GAME_FINISHED]
    return [api.Settle(state.launched.id, str(draft.data["game"])) for draft in results]


def packed(state: season_state.SeasonState, finished: contract.GameFinished) -> bytes:
    """Return the packed record of a game that a verdict ended, from the journal alone."""
    made = interruption.record(state, finished)
    return game_zip.pack(made, records.pgn(made), gzip.compress(b"", mtime=0))


def _plies(
    ledger: store.RedisLedger, kept: archive.SeasonArchive, game: str, attempt: str
) -> tuple[list[contract.PlyRecord], int]:
    """Return an attempt's plies up to the first that cannot be read, and the last one's number."""
    journaled = ledger.plies(attempt)
    played = journaled[-1][0] if journaled else 0
    payloads = [payload for _, payload in journaled] or kept.given_up(game, attempt)
    plies: list[contract.PlyRecord] = []
    try:
        for payload in payloads:
            plies.append(contract.PlyRecord.decode(payload))  # noqa: PERF401 - the first are kept
    except pydantic.ValidationError:
        log.exception("plies.unreadable", game=game, attempt=attempt)
        played = max(played, plies[-1].ply + 1 if plies else 1)
    return plies, played


@contextlib.contextmanager
def _tables(spec: model.Event) -> Iterator[tablebase.Prober | None]:
    """Open the tables that an event names on this host, None where there are none."""
    syzygy = spec.adjudication.syzygy
    path = spec.interruptions.syzygy_path or (syzygy and syzygy.path) or spec.limits.syzygy_path
    names = [name for name in (path or "").split(os.pathsep) if name not in _NO_PATH]
    with chess.syzygy.Tablebase() as tables:
        tables_count = 0
        for name in names:
            with contextlib.suppress(OSError):
                tables_count += tables.add_directory(name)
        yield _Tables(tables) if tables_count else None
