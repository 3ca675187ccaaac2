"""A remote worker's directory: what it was dealt, and results that are not reported yet.

::

    batches/BATCH.json          what was dealt: orders as they are played here, the lease's token
    results/BATCH/NUMBER.json   a finished game that the gateway has not acknowledged
    results/BATCH/NUMBER.sent   one that it has
    inbox/BATCH.json            numbers of games that the player is to take up
    shown.json                  how one of the running games stands

Files are complete or absent. One process writes batches and reads results, another one, the
player, writes results: whichever of them dies, the other's files stand, and a worker that is
started again goes on with what it finds. A lock lets one worker at a time use a directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.contract import remote


@dataclasses.dataclass(frozen=True)
class Batch:
    """Games that this worker was dealt, until it has told them or their lease has ended."""

    name: str
    gateway: str
    token: str
    match: str
    lease_ms: int
    orders: tuple[contract.GameOrder, ...]

    def order(self, number: int) -> contract.GameOrder:
        """Return the order of one of its games."""
        return next(order for order in self.orders if order.number == number)

    def encode(self) -> bytes:
        """Return the batch as it is kept."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["orders"] = [order.model_dump(mode="json") for order in self.orders]
        return contract.dumps(fields).encode()

    @classmethod
    def decode(cls, content: bytes) -> Batch:
        """Read what ``encode`` returned."""
        raw = contract.loads(content)
        orders = tuple(contract.GameOrder.model_validate(order) for order in raw["orders"])
        return cls(**{**raw, "orders": orders})


class Spool:
    """The directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        """Make it where it is missing; raise ``HostError``."""
        self.directory = directory
        self._batches, self._results = directory / "batches", directory / "results"
        self._inbox = directory / "inbox"
        self._shown = directory / "shown.json"
        try:
            for folder in (self._batches, self._results, self._inbox):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise errors.HostError(f"--spool {directory}: {errors.reason(error)}") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other workers out; raise ``RefusedError`` where there is one."""
        handle = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise errors.RefusedError(
                    f"another worker uses {self.directory}: end it, or give this one another"
                    " directory (--spool)"
                ) from None
            yield
        finally:
            os.close(handle)

    # -- batches -------------------------------------------------------------------------

    def keep(self, batch: Batch) -> None:
        """Write a batch down."""
        (self._results / batch.name).mkdir(exist_ok=True, mode=0o700)
        files.write(self._batches / f"{batch.name}.json", batch.encode())

    def batches(self) -> list[Batch]:
        """Return the batches that were dealt and are not over, in the order of their names."""
        return [self.batch(path.stem) for path in sorted(self._batches.glob("*.json"))]

    def batch(self, name: str) -> Batch:
        """Return a batch by its name; raise ``HostError`` for one that cannot be read."""
        path = self._batches / f"{name}.json"
        try:
            return Batch.decode(path.read_bytes())
        except (ValueError, LookupError, TypeError) as error:
            raise errors.HostError(
                f"{path} cannot be read ({type(error).__name__}): it is of another version, or"
                f" damaged; delete {self.directory}, its games are then dealt to others"
            ) from error

    def forget(self, batch: Batch) -> None:
        """Delete a batch and what is left of its results."""
        (self._batches / f"{batch.name}.json").unlink(missing_ok=True)
        shutil.rmtree(self._results / batch.name, ignore_errors=True)

    # -- results -------------------------------------------------------------------------

    def write(self, batch: str, game: remote.PlayedGame) -> None:
        """Write a finished game down, for the gateway; a batch that was given up takes none."""
        with contextlib.suppress(FileNotFoundError):
            path = self._results / batch / f"{game.number}.json"
            files.write(path, game.encode().encode())

    def unsent(self, batch: Batch) -> list[tuple[int, bytes]]:
        """Return the games that the gateway has not acknowledged."""
        paths = sorted((self._results / batch.name).glob("*.json"), key=_number)
        return [(_number(path), path.read_bytes()) for path in paths]

    def sent(self, batch: Batch, number: int) -> None:
        """Note that the gateway has a game."""
        path = self._results / batch.name / f"{number}.json"
        path.replace(path.with_suffix(".sent"))

    def missing(self, batch: Batch) -> list[int]:
        """Return the games of a batch that have no result yet."""
        folder = self._results / batch.name
        there = {_number(path) for path in folder.iterdir() if path.suffix in (".json", ".sent")}
        return [order.number for order in batch.orders if order.number not in there]

    # -- a running game ------------------------------------------------------------------

    def show(self, batch: str, number: int, stands: Mapping[str, object]) -> None:
        """Write down how a running game stands; what is lost of it nobody misses."""
        with contextlib.suppress(OSError):
            part = self._shown.with_suffix(".part")
            part.write_text(contract.dumps({"batch": batch, "number": number, **stands}))
            part.replace(self._shown)

    def show_none(self) -> None:
        """Forget the running game."""
        self._shown.unlink(missing_ok=True)

    def shown(self) -> dict[str, Any] | None:
        """Return how a running game stands, ``None`` where none is told."""
        try:
            shown: dict[str, Any] = contract.loads(self._shown.read_bytes())
        except (OSError, ValueError):
            return None
        return shown

    # -- the player's inbox --------------------------------------------------------------

    def put(self, batch: Batch, numbers: list[int]) -> None:
        """Give games of a batch to the player."""
        files.write(self._inbox / f"{batch.name}.json", contract.dumps(numbers).encode())

    def take(self) -> list[tuple[Batch, int]]:
        """Take what was put into the inbox."""
        taken = []
        for path in sorted(self._inbox.glob("*.json")):
            numbers = contract.loads(path.read_bytes())
            path.unlink()
            with contextlib.suppress(FileNotFoundError):  # it was given up meanwhile
                batch = self.batch(path.stem)
                taken += [(batch, number) for number in numbers]
        return taken

    def empty_inbox(self) -> None:
        """Take back what the player has not taken."""
        for path in self._inbox.glob("*.json"):
            path.unlink(missing_ok=True)


def _number(path: pathlib.Path) -> int:
    return int(path.stem)
