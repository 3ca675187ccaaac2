"""How this hall reaches the GPU boxes: ``FARM_BOXES`` names a TOML file, a table a box.

    [box.gpu-1]
    address = "10.0.0.2"
    user = "farm"
    key = "/etc/farm/boxes/play"          # may start and rejoin agents, nothing else
    push_key = "/etc/farm/boxes/push"     # may put files into the box's `incoming`
    host_key = "ssh-ed25519 AAAA..."      # pinned: a box with another key is not spoken to

Invariant: link grace < dead man, so an engine elsewhere is dead before its lease can be
given to somebody else.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pydantic

from orchestrator import contract
from orchestrator.common import bounds, errors

GRACE_SECONDS = 30.0  # s: a link may be away for so long before a game is interrupted
BEAT_SECONDS = 2.0  # s: agents ask for their permission


class BoxAddress(contract.Message):
    """One box, as the hall's file has it; ``incoming`` is on the box."""

    address: str
    port: int = pydantic.Field(default=22, ge=1, le=65535)
    user: str = "farm"
    key: str
    push_key: str = ""
    host_key: str = pydantic.Field(pattern=r"^\S+ \S+$")
    incoming: str = "incoming"
    grace_seconds: float = pydantic.Field(default=GRACE_SECONDS, gt=0)
    beat_seconds: float = pydantic.Field(default=BEAT_SECONDS, gt=0)

    @pydantic.model_validator(mode="after")
    def _grace_holds_beats(self) -> BoxAddress:
        if self.grace_seconds < 4 * self.beat_seconds:
            raise ValueError("grace_seconds holds four beats or more")
        return self

    def seat(
        self, box: str, seat: str, gpus: tuple[str, ...] = (), secret: str = ""
    ) -> contract.SeatAddress:
        """Return how the referee reaches a seat of this box."""
        return contract.SeatAddress(
            box=box,
            seat=seat,
            address=self.address,
            port=self.port,
            user=self.user,
            key=self.key,
            host_key=self.host_key,
            grace_ms=round(self.grace_seconds * 1000),
            beat_ms=round(self.beat_seconds * 1000),
            gpus=gpus,
            secret=secret,
        )


class BoxesFile(contract.Message):
    """The whole file."""

    boxes: Mapping[str, BoxAddress] = pydantic.Field(default={}, alias="box")


def load(path: pathlib.Path | None, dead_man_seconds: float) -> Mapping[str, BoxAddress]:
    """Read the boxes; none without a file. Raise ``UsageError`` that names what is wrong."""
    if path is None:
        return {}
    try:
        boxes_file = BoxesFile.model_validate(bounds.toml(path))
    except OSError as error:
        why = errors.reason(error)
        raise errors.UsageError(f"FARM_BOXES: {path} cannot be read: {why}") from error
    except ValueError as error:  # no TOML, too large, or wrong
        raise errors.UsageError(f"{path}: {error}") from error
    for name, box in boxes_file.boxes.items():
        if box.grace_seconds >= dead_man_seconds:
            raise errors.UsageError(
                f"{path}: [box.{name}] grace_seconds: found {box.grace_seconds:g}; allowed: less"
                f" than FARM_DEAD_MAN_SECONDS={dead_man_seconds:g}"
            )
    return boxes_file.boxes
