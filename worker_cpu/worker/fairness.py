"""The fairness gate: are this hall and its GPU boxes as fast as recorded?

A short reference bench of each host (speed, and a signature that is the same on every sound
one), and of each box's network (round trip, jitter, offset of the time of day). Recorded by
``farm bench-host --record``, it is measured again before the first game of every event; a
host out of its band holds the hall, with the figures (equal terms for both sides).
Without a record there is no gate.
"""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence

import chess
import pydantic
import structlog

from orchestrator import contract
from orchestrator.common import errors, files
from worker_cpu import settings
from worker_cpu.builtin_engine import search
from worker_cpu.hall import gpu_hosts, gpu_seats
from worker_cpu.host import speed

log = structlog.get_logger()

FILE = "band.json"  # in the hall's directory
SLOWEST, FASTEST = 0.9, 1.15  # of the recorded speed; a host much faster is another one, too
RTT_FACTOR, RTT_MS = 2.0, 5.0  # a round trip may be so much longer than the recorded one
JITTER_FACTOR, JITTER_MS = 3.0, 5.0
OFFSET_MS = 500.0  # of the time of day: dates of one game from two hosts
_SIGNED_NODES = 2_000


class Figures(contract.Message):
    """One host's figures; the network's stand where there is one. Times in milliseconds."""

    host: str
    nps: int
    signature: str
    rtt_ms: float | None = None
    jitter_ms: float | None = None
    offset_ms: float | None = None
    gpus: tuple[str, ...] | None = None  # with their driver; None where they were not asked for

    def __str__(self) -> str:
        """Write the figures in one line."""
        summary = f"{self.host}: {self.nps} nodes/s, signature {self.signature}"
        if self.rtt_ms is None:
            return summary
        return (
            f"{summary}, round trip {self.rtt_ms:.2f} ms, jitter {self.jitter_ms:.2f} ms, clock"
            f" offset {self.offset_ms:.1f} ms, GPUs: {_listed(self.gpus)}"
        )


class Band(contract.Message):
    """What was recorded, by host; the hall itself is ``hall``."""

    schema_version: int = contract.SCHEMA
    hosts: Mapping[str, Figures]


def measure(hall: settings.HallSettings, places: gpu_seats.GpuSeats) -> Band:
    """Measure the hall and all its boxes; raise ``HostError`` for one that does not answer."""
    figures = {"hall": of_hall(hall)}
    for name, box in places.known.items():
        figures[name] = of_box(name, box, places, hall.hall)
    return Band(hosts=figures)


def of_hall(hall: settings.HallSettings) -> Figures:
    """Measure this host, on the engines' own cores where it has some."""
    cpus = hall.engine_cpus or frozenset(os.sched_getaffinity(0))
    line = search.Search().run(
        chess.Board(speed.POSITION),
        search.Limits(nodes=_SIGNED_NODES),
        lambda: False,
        lambda _: None,
    )
    signature = "".join(move.uci() for move in line)
    return Figures(host=hall.host, nps=speed.nps(cpus), signature=signature)


def of_box(name: str, box: gpu_hosts.BoxAddress, places: gpu_seats.GpuSeats, hall: str) -> Figures:
    """Measure a box and the way to it, by a seat that runs nothing."""
    # Its SSH library is 8 MB of memory in every hall and lane; few of them have a box.
    from worker_cpu.worker import box_echoes  # noqa: PLC0415

    attempt = f"bench-{secrets.token_hex(4)}"
    wished = places.of(hall, attempt, None)
    try:
        answer = wished.bench(name, box)
        echoes = box_echoes.measure(
            box.seat(name, answer.seats["white"], secret=answer.secrets.get("white", ""))
        )
    finally:
        wished.free()
    assert answer.bench is not None
    rtts = sorted(rtt for rtt, _ in echoes)
    middle = statistics.median(rtts)
    return Figures(
        host=answer.bench.host,
        nps=answer.bench.nps,
        signature=answer.bench.signature,
        rtt_ms=middle / 1e6,
        jitter_ms=(rtts[int(len(rtts) * 0.95)] - middle) / 1e6,
        offset_ms=min(echoes)[1] / 1e6,  # of the fastest echo: the least of it is network
        gpus=answer.bench.gpus,
    )


# -- the band ----------------------------------------------------------------------------


def problems(recorded: Band, now: Band) -> list[str]:
    """Return what is out of its band, each with both figures."""
    deviations = []
    for name, before in recorded.hosts.items():
        seen = now.hosts.get(name)
        if seen is None:
            deviations.append(f"{name}: recorded, and not there now")
        else:
            deviations += [f"{name}: {text}" for text in _differences(before, seen)]
    return deviations


def _differences(before: Figures, now: Figures) -> Iterator[str]:
    ratio = now.nps / before.nps
    if not SLOWEST <= ratio <= FASTEST:
        yield (
            f"{now.nps} nodes/s, {ratio:.0%} of the recorded {before.nps}; allowed:"
            f" {SLOWEST:.0%} to {FASTEST:.0%}"
        )
    if now.signature != before.signature:
        yield f"signature {now.signature}; recorded: {before.signature}"
    if before.gpus is not None and now.gpus != before.gpus:
        yield f"GPUs: {_listed(now.gpus)}; recorded: {_listed(before.gpus)}"
    if now.rtt_ms is None or before.rtt_ms is None:
        return
    allowed = before.rtt_ms * RTT_FACTOR + RTT_MS
    if now.rtt_ms > allowed:
        yield f"round trip {now.rtt_ms:.1f} ms; allowed: {allowed:.1f} ms"
    allowed = (before.jitter_ms or 0.0) * JITTER_FACTOR + JITTER_MS
    if (now.jitter_ms or 0.0) > allowed:
        yield f"jitter {now.jitter_ms:.1f} ms; allowed: {allowed:.1f} ms"
    if abs(now.offset_ms or 0.0) > OFFSET_MS:
        yield f"clock offset {now.offset_ms:.0f} ms; allowed: {OFFSET_MS:.0f} ms"


def _listed(gpus: Sequence[str] | None) -> str:
    return "; ".join(gpus or ()) or "none"


def keep(directory: pathlib.Path, band: Band) -> pathlib.Path:
    """Record a band as the one to be held to."""
    path = directory / FILE
    files.write(path, json.dumps(band.model_dump(mode="json"), indent=2).encode() + b"\n")
    return path


def recorded(directory: pathlib.Path) -> Band | None:
    """Return the recorded band, None where there is none; raise ``HostError``."""
    path = directory / FILE
    try:
        return Band.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, pydantic.ValidationError) as error:
        raise errors.HostError(
            f"{path} cannot be read; record it again: farm host bench --record"
        ) from error


class FairnessGate:
    """Shut before an event's first game while a host is out of its band."""

    def __init__(self, hall: settings.HallSettings, places: gpu_seats.GpuSeats) -> None:
        self._hall, self._places = hall, places
        self._passed: set[tuple[str, str]] = set()

    def why_shut(self, season: str, game: str) -> str:
        """Return the figures that keep an event from being begun, '' when it may be."""
        event = (season, game.partition(".")[0])
        if event in self._passed:
            return ""
        try:
            band = recorded(self._hall.directory)
            if band is not None:
                now = measure(self._hall, self._places)
                wrong = problems(band, now)
                log.info("bench.measured", hosts=[str(host) for host in now.hosts.values()])
                if wrong:
                    return f"fairness gate before {event[1]}: {'; '.join(wrong)}"
        except errors.HostError as error:
            return f"fairness gate before {event[1]}: {error}"
        self._passed.add(event)
        return ""
