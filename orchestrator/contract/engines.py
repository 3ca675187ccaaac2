"""An engine as a hall starts it, there or on a seat of a GPU box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pydantic

from orchestrator.contract import codec, timecontrol


class EngineSpec(codec.Message):
    """What a hall needs to know to start an engine: the roster's entry, pinned."""

    id: str
    name: str
    author: str = ""
    protocol: codec.ProtocolName = "uci"
    command: tuple[str, ...] = pydantic.Field(min_length=1)
    directory: str | None = None
    options: Mapping[str, str | int | bool] = {}
    rating: int | None = None
    white_pov: bool = False  # it reports scores from White's side, not the mover's
    init: tuple[str, ...] = ()  # lines sent right after the handshake
    ponder: bool = False  # it thinks in its opponent's turns, too (``farm match``)
    time_control: timecontrol.TimeControl | None = None  # its own, before the order's
    time_margin_ms: int | None = None  # likewise
    settings: Mapping[str, Mapping[str, str | int | bool]] = {}  # by event, before ``options``
    version: str = ""
    family: str = ""  # what all versions of an engine share; '': it is known by its id
    country: str = ""
    builds: Mapping[str, tuple[str, ...]] = {}  # by host class, before ``command``
    build: str = ""  # the class that the hall has chosen
    network: str | None = None  # its network file
    checksums: Mapping[str, str] = {}  # SHA-256 by file, as the commands name it
    provisional: bool = False  # its rating comes from tests, until it has finished an event
    box: str = ""  # the GPU box that it runs on; '': the hall itself


class SeatAddress(codec.Message):
    """Where the hall finds a prepared seat of a GPU box; never part of a record.

    ``key`` is the hall's private key (a path), ``host_key`` the box's pinned one as
    ``known_hosts`` writes it (type and key). ``gpus`` are shown.
    """

    box: str
    seat: str
    address: str
    port: int = 22
    user: str
    key: str
    host_key: str
    grace_ms: int
    beat_ms: int
    gpus: tuple[str, ...] = ()
    secret: str = ""  # the agent's: it hears nobody else
    command: str = ""  # what starts or rejoins it; '': the key's own, told the seat


class SeatRequest(codec.Message):
    """What an attempt wants of a GPU box: seats for these engines.

    ``gpus`` says whether both sides think in turn on all GPUs or have one each; ``token``
    is ``trial`` for games that count nowhere. Without engines it asks for a bench.
    """

    schema_version: int = codec.SCHEMA
    hall: str
    attempt: str
    token: str
    game: str
    engines: Mapping[codec.Side, EngineSpec]
    gpus: Literal["shared", "each"] = "shared"
    grace_ms: int
    beat_ms: int


class GpuUse(codec.Message):
    """What a GPU did during a game, as its driver told every few seconds; Hz, °C, W."""

    uuid: str
    name: str
    samples: int
    sm_clock_min_hertz: float | None = None
    sm_clock_max_hertz: float | None = None
    temperature_max_celsius: float | None = None
    power_max_watts: float | None = None
    throttled: tuple[str, ...] = ()  # every reason that was seen
    lost: str = ""  # why the driver did not show it when it was last asked


class HostBench(codec.Message):
    """A host's speed, and a signature that is the same on every sound one; its GPUs."""

    host: str
    nps: int
    signature: str
    gpus: tuple[str, ...] = ()


class SeatAnswer(codec.Message):
    """What a GPU box answers: seats, files it lacks (path by SHA-256), or why not.

    ``files`` are checksums that nobody had pinned; ``use`` grows while the game runs, with
    each of the ``looks`` at the GPUs.
    """

    schema_version: int = codec.SCHEMA
    state: Literal["ready", "missing", "refused"]
    reason: str = ""
    seats: Mapping[codec.Side, str] = {}
    secrets: Mapping[codec.Side, str] = {}
    gpus: Mapping[codec.Side, tuple[str, ...]] = {}
    missing: Mapping[str, str] = {}
    files: Mapping[codec.Side, Mapping[str, str]] = {}
    use: tuple[GpuUse, ...] = ()
    looks: int = 0
    bench: HostBench | None = None  # to a request without engines
