"""The arithmetic of one engine's clock: nanoseconds inside, milliseconds outside.

No clock is read here; thinking times are arguments. Invariants:

* the clock starts at the base time, without an increment; the increment is added after
  each move that arrived in time, and the base time once more after
  the last move of a period. Book moves count for the period, they take no time;
* with a fixed time a move the clock shows that time before every move;
* an engine without a clock still has a bound: no search goes on without end;
* what is left is kept in whole nanoseconds and never rounded, so no error builds up;
* an engine is told the whole milliseconds it has (rounded down), never more than there
  is; the one exception is the last part of a millisecond, told as 1, because engines
  take 0 for "no clock";
* a move is late only if it took strictly more than what was left plus the margin. The
  margin tolerates, it is not given back: time taken from it is missing afterwards, so
  the debt of a whole game never exceeds it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from orchestrator import contract

NS_PER_MS = 1_000_000
_SIDES: Final[tuple[contract.Side, ...]] = ("white", "black")


class Charge(NamedTuple):
    """What one move did to a clock.

    ``margin_ns`` is what was left when the move arrived, before the increment (negative
    when it came after the flag, or lived on the margin); ``remaining_ns`` is what is
    left now, with the increment unless the flag fell.
    """

    think_ns: int
    margin_ns: int
    remaining_ns: int
    flagged: bool


class EngineClock:
    """The clock of one engine in one game."""

    def __init__(
        self,
        time_control: contract.TimeControl,
        margin_ms: int = 0,
        *,
        book_moves: int = 0,
        bound_ms: int = 600_000,
    ) -> None:
        """Start the clock; ``margin_ms`` is tolerated beyond the flag.

        ``book_moves`` are the moves of this side that the referee played out;
        ``bound_ms`` is the longest move where the control has no clock.
        """
        self.control, self.clocked = time_control, time_control.clocked
        self.increment_ms = time_control.increment_ms
        self.remaining_ns = time_control.start_ms * NS_PER_MS
        self._increment_ns = time_control.increment_ms * NS_PER_MS
        self._margin_ns = margin_ms * NS_PER_MS
        self._bound_ns = bound_ms * NS_PER_MS
        self._moves = 0
        for _ in range(book_moves):
            self.remaining_ns += self._period_ns()

    @property
    def moves_to_go(self) -> int | None:
        """Return the moves left in this period, ``None`` when there are no periods."""
        period = self.control.moves
        return None if period is None else period - self._moves % period

    def told_ms(self) -> int:
        """Return the milliseconds to tell the engines before a move, at least 1."""
        return max(1, self.remaining_ns // NS_PER_MS)

    def allowance_ns(self) -> int:
        """Return the longest thinking time that is not a loss on time."""
        return (self.remaining_ns if self.clocked else self._bound_ns) + self._margin_ns

    def charge(self, think_ns: int) -> Charge:
        """Take a move's thinking time off the clock and add the increment.

        A flagged move gets no increment. Raise ``ValueError`` for a negative time.
        """
        if think_ns < 0:
            raise ValueError(f"a move cannot take {think_ns} ns")
        allowance_ns = self.allowance_ns()
        flagged = think_ns > allowance_ns
        margin_ns = allowance_ns - self._margin_ns - think_ns
        if flagged:
            self.remaining_ns = margin_ns
        elif self.control.base_ms:
            self.remaining_ns = margin_ns + self._increment_ns + self._period_ns()
        return Charge(think_ns, margin_ns, self.remaining_ns, flagged)

    def resume(self, remaining_ns: int, moves: int) -> None:
        """Go on where an interrupted game stood: what is left, after so many engine moves."""
        for _ in range(moves):
            self._period_ns()
        self.remaining_ns = remaining_ns

    def _period_ns(self) -> int:
        """Count a move; return the time that the end of a period brings."""
        self._moves += 1
        ends = self.control.moves is not None and self._moves % self.control.moves == 0
        return self.control.base_ms * NS_PER_MS if ends else 0


def of_order(order: contract.GameOrder) -> dict[contract.Side, EngineClock]:
    """Make the clocks of a game's engines; the book's moves count for their periods."""
    fen = order.opening.fen
    plies, black_first = len(order.opening.moves), fen is not None and fen.split()[1:2] == ["b"]
    played = {"white": (plies + (not black_first)) // 2, "black": (plies + black_first) // 2}
    return {
        side: EngineClock(
            order.control(side),
            order.margin_ms(side),
            book_moves=played[side],
            bound_ms=order.timeouts.move_ms,
        )
        for side in _SIDES
    }


def whole_ms(ns: int) -> int:
    """Round nanoseconds down to milliseconds."""
    return ns // NS_PER_MS
