"""Test games in the hall (``farm engine test``): played under its lock, counted nowhere.

The commands of the orchestrator find ``play`` through the entry-point group
``farm.players``. Invariants:

* no official game runs beside a test game: the hall's lock is held from the first to the
  last, and an official game that waits ends the test after the game in progress;
* engines are looked for, started, confined, pinned and refereed as in an official game;
  nothing is journaled.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.ledger import seat_store, store
from worker_cpu import settings
from worker_cpu.engines import handles
from worker_cpu.hall import checksums, gpu_hosts, gpu_seats
from worker_cpu.hall import directory as hall_directory
from worker_cpu.match import game
from worker_cpu.referee import session

LOCK_SECONDS = 1.0  # s: an official game that has just ended needs so long to clean up
FEED_SECONDS = 5.0  # s: beat towards the dead man, well below ``session.LIMIT_SECONDS``
NOWHERE = "unix://"  # the address of no Redis: a hall of its own has none
GAMES = "/usr/games"  # where Debian has engines: in a hall's PATH, but in few accounts'


def play(
    orders: Sequence[contract.GameOrder], hall_name: str, redis_url: str | None
) -> Iterator[contract.GameRecord]:
    """Play orders in a hall of this host, one after the other; yield each finished game.

    Raise ``RefusedError`` while an official game runs or waits there, ``HostError`` when
    this host cannot play, or its files are not the pinned ones.
    """
    configured = settings.from_environment(
        {**os.environ, "FARM_HALL": hall_name, "FARM_REDIS_URL": redis_url or NOWHERE}
    )
    os.environ["PATH"] = _search_path(os.environ)
    with contextlib.ExitStack() as stack:
        official = _Official(stack, configured, redis_url)
        official.require_none()
        scratch = stack.enter_context(files.scratch("test"))
        # Where no farm has ever been, a test leaves none of its folders behind.
        is_kept = redis_url is not None or configured.directory.is_dir()
        directory = hall_directory.HallDirectory(
            configured.directory if is_kept else scratch / "hall"
        )
        lock = stack.enter_context(directory.locked(LOCK_SECONDS))
        if lock is None:
            raise errors.RefusedError(
                f"a game runs in {hall_name}; test games are played while the season is at a gate"
            )
        yield from _games(orders, configured, lock, scratch, official)


def _search_path(environment: Mapping[str, str]) -> str:
    """Return the PATH of a hall that was started here: an operator's shell may know less."""
    programs = str(pathlib.Path(sys.executable).parent)
    return os.pathsep.join([programs, environment.get("PATH", os.defpath), GAMES])


class _Official:
    """What the ledger says of the hall's official games; nothing where there is no ledger."""

    def __init__(
        self, stack: contextlib.ExitStack, configured: settings.HallSettings, url: str | None
    ) -> None:
        self._hall, self._host = configured.hall, configured.host
        self._ledger = None if url is None else store.connect(url)
        if self._ledger is not None:
            stack.callback(self._ledger.close)

    @property
    def waits(self) -> bool:
        """Say whether a game is offered to the hall."""
        return self._ledger is not None and bool(self._ledger.offered(self._hall))

    def places(self, configured: settings.HallSettings) -> gpu_seats.GpuSeats:
        """Return where engines may play beside the hall: nowhere without a ledger."""
        server = (self._ledger or store.connect(NOWHERE)).server
        boxes = gpu_hosts.load(configured.boxes, configured.dead_man_seconds)
        wishes = seat_store.RedisSeats(server)
        return gpu_seats.GpuSeats(wishes, {} if self._ledger is None else boxes)

    def require_none(self) -> None:
        """Raise ``RefusedError`` unless the hall is this host's, and free."""
        if self._ledger is None:
            return
        host = self._ledger.worker(self._hall).partition("/")[0]
        if host not in {"", self._host}:
            raise errors.RefusedError(
                f"{self._hall} is on {host}; engines are tried there"
                " (docs/how-to/operate-hosts.md, On a hall's host)"
            )
        if self._ledger.slot(self._hall) is not None or self.waits:
            raise errors.RefusedError(
                f"an official game runs or waits in {self._hall}; test games are played once"
                " it is over, while the season is at a gate or paused"
            )


def _games(
    orders: Sequence[contract.GameOrder],
    configured: settings.HallSettings,
    lock: int,
    scratch: pathlib.Path,
    official: _Official,
) -> Iterator[contract.GameRecord]:
    fork_server, pinned = handles.ForkServer(configured.confinement()), checksums.FileChecksums()
    places = official.places(configured)
    cores = handles.Cores(configured.referee_cpus, configured.engine_cpus)
    try:
        for order in orders:
            if official.waits:
                return
            seated = session.seat(fork_server, cores, scratch, lock)
            elsewhere = places.of(configured.hall, f"trial-{secrets.token_hex(8)}", None)
            try:
                ready = elsewhere.seat(pinned.verify(order).order, seated.feed).order
                yield _played(seated, ready, configured.hall)
            finally:
                seated.leave()
                elsewhere.free()
    finally:
        fork_server.end()


def _played(
    seated: session.Seated, order: contract.GameOrder, hall_name: str
) -> contract.GameRecord:
    """See one game through; raise ``HostError`` when it is interrupted."""
    end = game.play(seated, game.Sealed(order), hall_name, lambda: FEED_SECONDS, seated.feed)
    if isinstance(end, session.Interrupted):
        raise errors.HostError(f"{order.game}: {end.cause}: {end.evidence}")
    assert end.record is not None
    return end.record()
