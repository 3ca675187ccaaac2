"""The kibitzer's loop: follow the hall's game, let the engine think, publish what it says.

Nothing waits for it. Invariants:

* it only reads slot, plies and vitals, and writes nothing but what it found;
* its engine is started again, with growing pauses, whenever it is lost; while Redis is
  away it rests;
* it ends with a ``HostError`` as soon as a hall is known to play on its cores.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import pydantic
import structlog

from orchestrator import contract
from orchestrator.arbiter import board
from orchestrator.common import errors
from orchestrator.ledger import api, kibitz_store
from worker_cpu.kibitz import analyst

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.1  # s: between two looks at the hall
TELL_SECONDS: Final = 1.0  # s: between two words on a position; each is a synced write of Redis
BEAT_SECONDS: Final = 10.0  # s: the desk is kept and the cores are checked
AWAY_SECONDS: Final = 2.0  # s: while Redis is away
BACKOFF_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 60.0)  # s: before a lost engine's next start
STEADY_SECONDS: Final = 120.0  # s: an engine that lived so long has not failed in a row
PV_PLIES: Final = 32  # plies of a variation: no viewer shows more
NEVER: Final = float("-inf")


class Followed:
    """One attempt at a game: the order's opening, then its plies as far as they have been read."""

    def __init__(self, attempt: str, order: contract.GameOrder) -> None:
        """Set up the opening; raise ``BookError`` for one that cannot be played."""
        self.attempt = attempt
        self.ids = {"season": order.season, "game": order.game, "attempt": attempt}
        self._board = board.GameBoard(order.opening, order.variant)

    @property
    def ply(self) -> int:
        """Return the number of plies, book plies included."""
        return self._board.ply

    @property
    def chess960(self) -> bool:
        """Say whether it is a game of Chess960."""
        return self._board.chess960

    def take(self, plies: Iterable[tuple[int, str]]) -> None:
        """Play what the ledger has; raise ``ValueError`` for a ply that does not follow."""
        for number, payload in plies:
            ply = contract.PlyRecord.decode(payload)
            move = self._board.legal(ply.move)
            if move is None or number != self.ply + 1:
                raise ValueError(f"ply {number}, {ply.move!r}, does not follow ply {self.ply}")
            self._board.push(move)

    def position(self) -> analyst.Place | None:
        """Return the position on the board, None where there is no move to think about."""
        if not any(self._board.position().generate_legal_moves()):
            return None
        command = self._board.position_command()
        return analyst.Place(self.attempt, self.ply, command, self.chess960)


class Ledger(Protocol):
    """What is read of the ledger."""

    def slot(self, hall: str) -> api.Slot | None:
        """Return who holds the hall now."""

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the written plies of an attempt after ply ``after``."""


@dataclasses.dataclass(frozen=True)
class Seat:
    """Whom a kibitzer follows, where it tells what it finds, and as whom."""

    hall: str
    desk: int
    holder: str
    name: str = ""
    description: str = ""


class Kibitzer:
    """Follows one hall with one engine."""

    def __init__(
        self,
        ledger: Ledger,
        desks: kibitz_store.RedisKibitzing,
        seat: Seat,
        engine: analyst.Engine,
        check: Callable[[], None],
    ) -> None:
        """Prepare; ``check`` raises ``HostError`` when the cores are a hall's."""
        self._ledger, self._desks, self._seat = ledger, desks, seat
        self._engine, self._check = engine, check
        self._game: Followed | None = None
        self._refused = ""  # an attempt that cannot be followed
        self._place: analyst.Place | None = None  # what the engine was asked last
        self._pending: analyst.Heard | None = None
        self._told_at = self._beat_at = NEVER
        self._told: tuple[analyst.Place, contract.Evaluation] | None = None

    def run(self, stop: threading.Event) -> None:
        """Kibitz until ``stop`` is set.

        Raises:
            HostError: its cores are a hall's.
            RefusedError: another kibitzer has its desk.
            UsageError: the engine does not offer an option.
        """
        failures = 0
        while not stop.is_set():
            self._guarded(self._beat)  # before the engine uses any core
            began = time.monotonic()
            try:
                with analyst.Analyst(self._engine, stop.is_set) as engine:
                    log.info("kibitzer.ready", engine=engine.name, hall=self._seat.hall)
                    self._follow(engine, stop)
            except analyst.LostEngineError as error:
                failures = 0 if time.monotonic() - began > STEADY_SECONDS else failures
                pause = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)]
                failures += 1
                if not stop.is_set():
                    log.warning("kibitzer.engine_lost", error=str(error), again_in_seconds=pause)
                self._pause(pause, stop)
        self._leave()

    def _pause(self, seconds: float, stop: threading.Event) -> None:
        """Wait for the next start of the engine; the desk is kept meanwhile."""
        ends = time.monotonic() + seconds
        while not stop.is_set() and (left := ends - time.monotonic()) > 0:
            self._guarded(self._beat)
            stop.wait(min(left, BEAT_SECONDS))

    def _follow(self, engine: analyst.Analyst, stop: threading.Event) -> None:
        self._game = self._place = self._pending = self._told = None
        while not stop.is_set():
            if not self._guarded(functools.partial(self._look, engine)):
                engine.analyse(None)
                self._place = None
                stop.wait(AWAY_SECONDS)
            heard = engine.listen(LOOK_SECONDS)
            self._guarded(functools.partial(self._tell, heard, engine.name))

    @staticmethod
    def _guarded(work: Callable[[], None]) -> bool:
        """Do something with Redis; say whether it was there."""
        try:
            work()
        except errors.LedgerAwayError as error:
            log.warning("redis.away", error=str(error))
            return False
        return True

    # -- the hall ----------------------------------------------------------------------

    def _beat(self) -> None:
        """Keep the desk and look at the cores, now and then."""
        if time.monotonic() - self._beat_at < BEAT_SECONDS:
            return
        self._check()
        seat = self._seat
        holder = self._desks.take_desk(seat.desk, seat.holder)
        if holder != seat.holder:
            raise errors.RefusedError(
                f"desk {seat.desk} is {holder}'s: take the other one (--desk), or end that kibitzer"
            )
        self._beat_at = time.monotonic()

    def _leave(self) -> None:
        self._guarded(lambda: self._desks.leave_desk(self._seat.desk, self._seat.holder))

    def _look(self, engine: analyst.Analyst) -> None:
        """Bring the engine to the position that is on the board now."""
        self._beat()
        slot = self._ledger.slot(self._seat.hall)
        if slot is None:
            self._game = None
        elif self._game is None or self._game.attempt != slot.attempt:
            self._game = self._begin(slot)
        position = None if self._game is None else self._position(self._game)
        if position is not None and position.chess960 and not engine.offers_chess960():
            position = None
        if position != self._place:
            engine.analyse(position)
            self._place = position

    def _begin(self, slot: api.Slot) -> Followed | None:
        if slot.attempt == self._refused:
            return None
        try:
            order = contract.GameOrder.decode(slot.order)
            return Followed(slot.attempt, order)
        except (pydantic.ValidationError, errors.BookError) as error:
            ids = {"season": slot.season, "game": slot.game, "attempt": slot.attempt}
            self._refuse(ids, error)
            return None

    def _position(self, game: Followed) -> analyst.Place | None:
        try:
            game.take(self._ledger.plies(game.attempt, game.ply))
        except ValueError as error:
            self._refuse(game.ids, error)
            self._game = None
            return None
        return game.position()

    def _refuse(self, ids: Mapping[str, str], error: Exception) -> None:
        """Leave a game alone that this version cannot read; the next one may be better."""
        self._refused = ids["attempt"]
        log.error("kibitzer.game_refused", error=str(error), **ids)

    # -- what is told ------------------------------------------------------------------

    def _tell(self, heard: analyst.Heard | None, name: str) -> None:
        """Publish what was heard: at once of a new position and at its end, else now and then."""
        self._pending = heard or self._pending
        pending = self._pending
        if pending is None:
            return
        new = self._told is None or self._told[0] != pending.place
        if not (new or pending.final or time.monotonic() - self._told_at >= TELL_SECONDS):
            return
        position, evaluation = pending.place, self._evaluation(pending, name)
        if (position, evaluation) != self._told:
            self._desks.tell(self._seat.desk, position.attempt, position.ply, evaluation.encode())
        self._told, self._told_at, self._pending = (position, evaluation), time.monotonic(), None

    def _evaluation(self, heard: analyst.Heard, name: str) -> contract.Evaluation:
        search = heard.search
        assert search.score is not None
        return contract.Evaluation(
            engine=self._seat.name or name or "kibitzer",
            description=self._seat.description,
            ply=heard.place.ply,
            score=search.score,
            depth=search.depth,
            seldepth=search.seldepth,
            nodes=search.nodes,
            nps=search.nps,
            tbhits=search.tbhits,
            hashfull=search.hashfull,
            pv=search.pv[:PV_PLIES],
            wdl=search.wdl,
        )
