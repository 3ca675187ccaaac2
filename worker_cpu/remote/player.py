"""The player of a remote worker: a process that plays what lies in the spool's inbox.

It is ``farm match``'s runner on orders of the gateway: one process without a thread, referees of
their own, kept engines where no sandbox forbids it. It ends when there is nothing more to play;
the worker starts it again. It hears Ctrl-C and SIGTERM from the worker as ``farm match`` does, and
SIGTERM from the kernel when the worker dies.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterable, Iterator

from orchestrator import contract
from orchestrator.common import errors, files, output
from orchestrator.contract import remote
from orchestrator.testmatch import match_journal, standings
from orchestrator.testmatch import orders as testmatch_orders
from worker_cpu.engines import sandbox, supervisor
from worker_cpu.match import arguments, cores, game, runner, schedule
from worker_cpu.referee import result
from worker_cpu.remote import spool
from worker_cpu.wire import frames

BOTH: tuple[contract.Side, ...] = ("white", "black")
STOPPED = 130  # exit code after Ctrl-C or SIGTERM
SHOW_SECONDS = 2.0  # s: how the shown game stands is written so often at most
_NS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Options:
    """How this machine plays: games at a time, cores of each, which CPUs, what confines engines."""

    spool: pathlib.Path
    concurrency: int
    threads: int
    cpus: frozenset[int]
    sandbox: sandbox.Wish

    def command(self) -> list[str]:
        """Return the command line of a player that ends with this process."""
        cpus = ",".join(map(str, sorted(self.cpus)))
        values = (os.getpid(), self.spool, self.concurrency, self.threads, cpus, self.sandbox)
        return [sys.executable, "-m", __name__, *map(str, values)]

    @classmethod
    def read(cls, values: list[str]) -> Options:
        """Read what ``command`` wrote."""
        folder, concurrency, threads, cpus, wish = values
        numbers = frozenset(map(int, filter(None, cpus.split(","))))
        kind = sandbox.wish(wish, "--sandbox")
        return cls(pathlib.Path(folder), int(concurrency), int(threads), numbers, kind)


class Player:
    """Writes the runner's orders, keeps its games and tells of them."""

    def __init__(self, kept: spool.Spool, *, stays: bool) -> None:
        self._spool, self._stays = kept, stays
        self._games: dict[int, tuple[spool.Batch, int]] = {}  # by the runner's own numbers
        self._noted: set[str] = set()
        self._watched = 0  # the game that people may look at, by the runner's number

    def more(self) -> Iterator[schedule.Slot]:
        """Yield what lies in the inbox, under numbers that no two batches share."""
        for batch, number in self._spool.take():
            at = len(self._games) + 1
            self._games[at] = (batch, number)
            yield schedule.Slot(at, 1, 1, white=0, black=1, opening=0, pair=None)

    def order(self, slot: schedule.Slot, attempt: int = 1) -> contract.GameOrder:
        """Return a game's order; of all that run plies of one alone are sent while it does.

        That is the first one whose order is written when no other is; never a check.
        """
        batch, number = self._games[slot.number]
        if not self._watched and not testmatch_orders.is_check(number):
            self._watched = slot.number
        order, shown = batch.order(number), self._watched == slot.number
        changes = {"game": f"{order.game}-{attempt}", "traffic": False, "recorded": True}
        changes["shown"] = shown
        return order.model_copy(update={**changes, "keep": BOTH if self._stays else ()})

    def write(self, slot: schedule.Slot, ended: result.Ended) -> None:
        """Put a finished game into the spool."""
        batch, number = self._games[slot.number]
        assert ended.record is not None  # each order is recorded
        whole = ended.record()
        thought_ms = math.ceil(sum(ply.think_ns for ply in whole.plies) / _NS)
        self._spool.write(
            batch.name,
            remote.PlayedGame(
                number=number,
                plies=tuple(ply.model_copy(update={"pv": ()}) for ply in whole.plies),
                outcome=whole.outcome,
                final_fen=whole.final_fen,
                white=whole.white,
                black=whole.black,
                wall_ms=max(whole.ended_ms - whole.started_ms, thought_ms),
            ),
        )

    # -- what people look at -------------------------------------------------------------

    def begin(self, _: int, slot: schedule.Slot, order: contract.GameOrder) -> game.Watch | None:
        """Return who takes a game's frames as they come: those of the one that is shown."""
        batch, number = self._games[slot.number]
        if not order.shown:
            return None
        return self._watch(batch.name, number)

    def end(self, order: contract.GameOrder) -> None:
        """Show a game no longer: it has ended, or begins again."""
        if order.shown:
            self._watched = 0
            self._spool.show_none()

    def _watch(self, batch: str, number: int) -> game.Watch:
        moves: list[str] = []
        next_write = 0.0

        def watch(frame: frames.Frame) -> None:
            nonlocal next_write
            if frame.kind is not frames.Kind.PLY:
                return
            ply = contract.loads(frame.payload)
            moves.append(ply["move"])
            if time.monotonic() < next_write:
                return
            next_write = time.monotonic() + SHOW_SECONDS
            clocks = {name: ply[name] for name in ("white_clock_ns", "black_clock_ns")}
            self._spool.show(batch, number, {"moves": moves, **clocks})

        return watch

    # -- what people read ----------------------------------------------------------------

    def say(self, text: str) -> None:
        """Print a line at once."""
        print(output.plain(text), flush=True)  # a match and its engines have strangers' names

    def beat(self) -> float:
        """Show nothing: a log has lines of what happened alone."""
        return math.inf

    def started(self, slot: schedule.Slot) -> None:
        """Tell that a game begins."""
        self.say(f"{self._name(slot)}: started")

    def finished(self, slot: schedule.Slot, result: match_journal.Result) -> None:
        """Tell a result."""
        self.say(f"{self._name(slot)}: {result.result}, {result.sentence}")

    def notes(self, notes: Iterable[str | result.Unmet | result.Warned]) -> None:
        """Tell each of these sentences once."""
        for note in map(str, notes):
            if note not in self._noted:
                self._noted.add(note)
                self.say(f"note: {note}")

    def interrupted(self, slot: schedule.Slot, cause: str, evidence: str) -> None:
        """Tell that a game ended without a verdict and is played again."""
        self.say(f"{self._name(slot)}: interrupted: {cause} {evidence.strip()[-200:]}".rstrip())

    def _name(self, slot: schedule.Slot) -> str:
        batch, number = self._games[slot.number]
        order, check = batch.order(number), testmatch_orders.is_check(number)
        what = f"check {number - testmatch_orders.LAST_GAME}" if check else f"game {number}"
        return f"{batch.match} {what} ({order.white.name} - {order.black.name})"


def play(options: Options) -> int:
    """Play until nothing is left; return the exit code. Raise ``FarmError``."""
    stays = sandbox.choose(options.sandbox) == "plain"  # a sandbox is made for two engines
    player = Player(spool.Spool(options.spool), stays=stays)
    settings = arguments.Settings(
        engines=(),
        plan=schedule.Plan(engines=2),
        concurrency=options.concurrency,
        sandbox=options.sandbox,
    )
    with (
        cores.held(options.concurrency, options.threads, options.cpus) as share,
        files.scratch("work") as scratch,
    ):
        if not share.bound:
            player.say(
                f"note: games are not bound to cores: {options.concurrency} games of"
                f" {options.threads} threads need more than the {len(share.cpus)} CPUs there are"
            )
        table = standings.Standings(["White", "Black"])
        reason = runner.Runner(
            settings,
            share.lanes,
            player,
            player,
            table,
            player,
            scratch,
            player.more,
            player,
        ).run(list(player.more()))
    return 0 if reason is runner.Reason.COMPLETE else STOPPED


def _stop(*_: object) -> None:
    """End before the first game; the runner hears Ctrl-C by itself."""
    sys.exit(STOPPED)


def main() -> int:
    """Run a player for the worker that started it."""
    supervisor.prctl(supervisor.PR_SET_PDEATHSIG, signal.SIGTERM)
    worker, *values = sys.argv[1:]
    if os.getppid() != int(worker):
        return STOPPED  # it died before the kernel knew of the wish
    signal.signal(signal.SIGINT, _stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked since before it began
    try:
        return play(Options.read(values))
    except errors.FarmError as error:
        print(f"farm: {error}", file=sys.stderr, flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
