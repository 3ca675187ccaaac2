"""A whole farm with GPU boxes: Redis, serve, hall, boxes, sshd, engines; the library is a fake."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import bed
import harness
import pytest

from orchestrator import contract
from orchestrator.ops import supervisor

GRACE_SECONDS = 20  # s: a busy machine takes seconds for a handshake
LEASE = {"FARM_DEAD_MAN_SECONDS": "25", "FARM_LEASE_SECONDS": "30"}  # beyond the grace
HEALTHY = "GPU-aaaa RTX-2080-Ti 45 1545 120 0 0\nGPU-bbbb RTX-2080 50 1800 90 4 0\n"
GPUS = {"box-1": HEALTHY, "box-2": "GPU-cccc RTX-3090 40 1700 200 0 0\n"}


@dataclasses.dataclass
class Site:
    """A GPU box and its worker; ``gpus`` is the file that its driver tells."""

    box: bed.Box
    worker: supervisor.Supervised
    gpus: pathlib.Path


@dataclasses.dataclass
class Boxed:
    """A farm and its GPU boxes by name."""

    farm: harness.Farm
    sites: dict[str, Site]

    @property
    def site(self) -> Site:
        """Return the first box."""
        return next(iter(self.sites.values()))

    def records(self, season: str) -> list[contract.GameRecord]:
        """Return the records of all finished games."""
        found = sorted((self.farm.archive / season).rglob("record.json"))
        return [contract.GameRecord.decode(path.read_bytes()) for path in found]

    def interrupted_at(self, season: str) -> int:
        """Return the ply at which a season's last attempt ended."""
        ends = [e.data for e in self.farm.ledger.read(season) if e.kind == "attempt_ended"]
        return int(ends[-1]["ply"])

    def held(self) -> str:
        """Return why the hall is held, '' while it is not."""
        return " ".join(self.farm.ledger.holds(f"hall:{harness.HALL}").values())


@contextlib.contextmanager
def running(
    root: pathlib.Path, nvml: pathlib.Path, *names: str, **settings: str
) -> Iterator[Boxed]:
    """Run a farm whose hall knows these boxes; one without names."""
    known = root / "boxes.toml"
    with contextlib.ExitStack() as stack:
        boxes = {
            name: stack.enter_context(
                bed.loopback(root / name, beat_ms=300, grace_ms=GRACE_SECONDS * 1000)
            )
            for name in names or ("box-1",)
        }
        known.write_text("".join(_table(name, box) for name, box in boxes.items()))
        lives = harness.running(root / "farm", LEASE | {"FARM_BOXES": str(known)})
        farm = stack.enter_context(lives)
        sites = {}
        for name, box in boxes.items():
            sites[name] = _site(farm, name, box, root, nvml, settings)
            stack.callback(sites[name].worker.kill)
        yield Boxed(farm, sites)
    for box in boxes.values():
        assert bed.gone(box.farm), bed.survivors(box.farm)


def _table(name: str, box: bed.Box) -> str:
    return (
        f'[box.{name}]\naddress = "{box.address}"\nport = {box.port}\nuser = "{bed.user()}"\n'
        f'key = "{box.root / "play"}"\npush_key = "{box.root / "push"}"\n'
        f'host_key = "{box.host_key}"\nincoming = "{box.farm / "incoming"}"\n'
        f"grace_seconds = {GRACE_SECONDS}\nbeat_seconds = 0.3\n"
    )


def _site(
    farm: harness.Farm,
    name: str,
    box: bed.Box,
    root: pathlib.Path,
    nvml: pathlib.Path,
    settings: dict[str, str],
) -> Site:
    gpus = root / f"{name}.gpus"
    gpus.write_text(GPUS[name])
    environment = supervisor.environment(farm.redis.url_of("worker"), root, harness.HALL) | {
        "FARM_BOX": name,
        "FARM_HOST": f"host-of-{name}",  # a host of its own, as every box is
        "FARM_BOX_DIR": str(box.farm),
        "FARM_BOX_SAMPLE_SECONDS": "0.2",
        "FARM_FAKE_NVML": str(gpus),
        "LD_LIBRARY_PATH": str(nvml),
        **settings,
    }
    command = supervisor.box_command(name)
    worker = supervisor.Supervised(name, command, environment, root / f"{name}.log")
    worker.start()
    return Site(box, worker, gpus)


def engine(farm: harness.Farm, strength: int, *extra: str, **more: Any) -> dict[str, Any]:
    """Describe a scripted engine, on the box where ``more`` says so."""
    return harness.scripted(farm.life, strength, *extra) | more


def toml(value: dict[str, Any]) -> str:
    """Write a flat table inline."""
    pairs = (
        f"{key} = {toml(v) if isinstance(v, dict) else json.dumps(v)}" for key, v in value.items()
    )
    return f"{{ {', '.join(pairs)} }}"


def season17(path: pathlib.Path, engines: list[dict[str, Any]], control: str) -> pathlib.Path:
    """Write S17's step from both Leagues 1 to the entrance playoff, small and fast."""
    ids = {
        kind: [e["id"] for e in engines if e.get("competition", "cpu") == kind]
        for kind in ("cpu", "gpu")
    }
    path.write_text(
        f"""
schema = 1
id = "s17"
name = "TCEC Season 17, small"
roster.engine = [{", ".join(map(toml, engines))}]
[[event]]
id = "l1-cpu"
name = "CPU League 1"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = {json.dumps(ids["cpu"])}
competition = "cpu"
tier = "league-1"
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
promote = [{{ top = 1, to = "playoff" }}]
[[event]]
id = "l1-gpu"
name = "GPU League 1"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = {json.dumps(ids["gpu"])}
competition = "gpu"
gpus = "each"
tier = "league-1"
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
promote = [{{ top = 1, to = "playoff" }}]
[[event]]
id = "playoff"
name = "DivP Entrance Playoff"
format = {{ kind = "round-robin", double_rounds = 1 }}
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
"""
    )
    return path


def league(
    boxed: Boxed,
    delay_ms: int = 100,
    *faults: str,
    control: str = "20s+1s",
    gpus: str = "each",
) -> pathlib.Path:
    """Write a league of two engines, one on the first box, one on the last.

    Interruptions do not hold it; ``faults`` are switches of the second one.
    """
    names = list(boxed.sites)
    engines = [
        engine(boxed.farm, strength, "--delay-ms", str(delay_ms), *more, competition="gpu", box=box)
        for strength, (more, box) in enumerate((((), names[0]), (faults, names[-1])))
    ]
    path = season17(boxed.farm.root / "league.toml", engines, control)
    head, _, events = path.read_text().partition("[[event]]")
    gpu_league = events.split("[[event]]")[1].replace(', to = "playoff"', "")
    text = f"{head}[[event]]{gpu_league}"
    text = "\n".join(line for line in text.splitlines() if not line.startswith("promote"))
    text = text.replace('gpus = "each"', f'gpus = "{gpus}"')
    path.write_text(text.replace('id = "s17"', 'id = "gpu"\nhold_after_attempts = 50'))
    return path


def identity(site: Site, *gpus: str) -> dict[str, int]:
    """Return the process ids of the living agent that has these GPUs, and of its engine."""
    for order in (site.box.farm / "seats").glob("*.json"):
        run = site.box.farm / "run" / order.stem
        if json.loads(order.read_bytes())["gpus"] == list(gpus) and not (run / "ended").exists():
            with contextlib.suppress(FileNotFoundError):
                found: dict[str, int] = json.loads((run / "identity").read_bytes())
                return found
    pytest.fail(f"no agent has {gpus}")


def evidence(boxed: Boxed, season: str) -> list[str]:
    """Return why attempts of a season were given up, in their order."""
    entries = boxed.farm.ledger.read(season)
    return [
        f"{entry.data['cause']}: {entry.data['evidence']}"
        for entry in entries
        if entry.kind == "attempt_ended"
    ]


def playing(boxed: Boxed, after: int = 0) -> None:
    """Wait until both engines of a game on the box have moved, after the plies it began with."""

    def both_moved() -> bool:
        slot = boxed.farm.ledger.slot(harness.HALL)
        return slot is not None and len(boxed.farm.ledger.plies(slot.attempt)) >= after + 2

    boxed.farm.wait(both_moved, 40, "a game on the box")
