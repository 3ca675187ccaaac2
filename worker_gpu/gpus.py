"""The GPUs of this host as NVIDIA's driver tells of them, and whether one may be played on.

Through NVML (``nvidia-ml-py``), never by parsing a tool's output. What a driver does not
support is ``None``. Invariants: a GPU is named by its UUID, never by its index; nothing here
changes a GPU's settings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pynvml

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import vitals

MAX_CELSIUS = 83.0  # °C: a GPU that begins so hot is throttled within the game
MHZ = 1_000_000  # Hz per MHz
REASONS = {  # bits of NVML's clocks event reasons, by nvidia-smi's names
    0x04: "sw power cap",
    0x08: "hw slowdown",
    0x20: "sw thermal slowdown",
    0x40: "hw thermal slowdown",
    0x80: "hw power brake slowdown",
}
SICK = frozenset(REASONS.values()) - {"sw power cap"}  # a power cap is a setting of the host


class NvmlError(errors.HostError):
    """The driver does not answer."""


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that computes on a GPU."""

    pid: int
    memory_bytes: int | None
    name: str


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU at one moment."""

    index: int
    uuid: str
    name: str
    driver: str
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    utilization_ratio: float | None
    temperature_celsius: float | None
    sm_clock_hertz: float | None
    sm_clock_max_hertz: float | None
    power_watts: float | None
    power_limit_watts: float | None
    throttled: tuple[str, ...]
    processes: tuple[Process, ...]

    @property
    def label(self) -> str:
        """Return name and UUID, as records tell them."""
        return f"{self.name} {self.uuid}"

    def vitals(self) -> vitals.Gpu:
        """Return what metrics show of it."""
        return vitals.Gpu(
            index=self.index,
            uuid=self.uuid,
            name=self.name,
            utilization_ratio=self.utilization_ratio,
            memory_used_bytes=self.memory_used_bytes,
            memory_total_bytes=self.memory_total_bytes,
            temperature_celsius=self.temperature_celsius,
            power_watts=self.power_watts,
            sm_clock_hertz=self.sm_clock_hertz,
            throttled=bool(self.throttled),
        )


@contextlib.contextmanager
def _driver() -> Iterator[None]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlError(f"NVML: {error}; is NVIDIA's driver loaded (nvidia-smi)?") from error
    try:
        yield
    except pynvml.NVMLError as error:
        raise NvmlError(f"NVML: {error}; look at the host's kernel log for an Xid") from error
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def inventory() -> list[Gpu]:
    """Return all GPUs of this host; raise ``NvmlError`` where no driver answers."""
    with _driver():
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        return [_gpu(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]


def _gpu(index: int, driver: str) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
    use = _asked(pynvml.nvmlDeviceGetUtilizationRates, handle)
    clock = _asked(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM)
    highest = _asked(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM)
    heat = _asked(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    reasons = _asked(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    return Gpu(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        driver=driver,
        memory_total_bytes=None if memory is None else int(memory.total),
        memory_used_bytes=None if memory is None else int(memory.used),
        utilization_ratio=None if use is None else use.gpu / 100,
        temperature_celsius=None if heat is None else float(heat),
        sm_clock_hertz=_times(clock, MHZ),
        sm_clock_max_hertz=_times(highest, MHZ),
        power_watts=_times(_asked(pynvml.nvmlDeviceGetPowerUsage, handle), 1e-3),
        power_limit_watts=_times(_asked(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1e-3),
        throttled=tuple(name for bit, name in REASONS.items() if reasons & bit),
        processes=tuple(map(_process, _asked(_computing, handle) or ())),
    )


def _computing(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetComputeRunningProcesses(handle)


def _process(sample: Any) -> Process:
    memory = None if sample.usedGpuMemory is None else int(sample.usedGpuMemory)
    try:
        name = pathlib.Path(f"/proc/{sample.pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        name = ""
    return Process(int(sample.pid), memory, name)


def _asked(question: Callable[..., Any], *arguments: Any) -> Any:
    """Ask the driver; None for what this GPU does not support."""
    try:
        return question(*arguments)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return None


def _times(number: int | None, factor: float) -> float | None:
    return None if number is None else number * factor


def _text(raw: str | bytes) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw


def refusal(
    gpus: Sequence[Gpu],
    wanted: Collection[str],
    own: Collection[int] = (),
    max_celsius: float = MAX_CELSIUS,
) -> str:
    """Return why the wanted GPUs cannot be played on, '' when they can.

    ``own`` are processes of agents, which are ended before they are in the way.
    """
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    missing = sorted(set(wanted) - by_uuid.keys())
    if missing:
        return (
            f"GPU {', '.join(missing)} is missing; the driver shows {', '.join(by_uuid) or 'none'}"
        )
    problems = (_problem(by_uuid[uuid], own, max_celsius) for uuid in wanted)
    return "; ".join(filter(None, problems))


def _problem(gpu: Gpu, own: Collection[int], max_celsius: float) -> str:
    foreign = [process for process in gpu.processes if process.pid not in own]
    if foreign:
        who = ", ".join(f"{process.pid} {process.name}".strip() for process in foreign)
        return f"{gpu.label} is busy with a foreign process: {who}"
    if gpu.temperature_celsius is not None and gpu.temperature_celsius > max_celsius:
        return f"{gpu.label} is too hot: {gpu.temperature_celsius:g} °C, allowed {max_celsius:g}"
    sick = [reason for reason in gpu.throttled if reason in SICK]
    return f"{gpu.label} is throttled: {', '.join(sick)}" if sick else ""


def used(before: contract.GpuUse | None, uuid: str, seen: Gpu | str) -> contract.GpuUse:
    """Add one look to what is known of a GPU's use: a sample, or why there is none."""
    use = before or contract.GpuUse(uuid=uuid, name="", samples=0)
    return use.model_copy(update={"lost": seen}) if isinstance(seen, str) else _added(use, seen)


def _added(use: contract.GpuUse, gpu: Gpu) -> contract.GpuUse:
    return contract.GpuUse(
        uuid=gpu.uuid,
        name=gpu.name,
        samples=use.samples + 1,
        sm_clock_min_hertz=_extreme(min, use.sm_clock_min_hertz, gpu.sm_clock_hertz),
        sm_clock_max_hertz=_extreme(max, use.sm_clock_max_hertz, gpu.sm_clock_hertz),
        temperature_max_celsius=_extreme(max, use.temperature_max_celsius, gpu.temperature_celsius),
        power_max_watts=_extreme(max, use.power_max_watts, gpu.power_watts),
        throttled=tuple(dict.fromkeys((*use.throttled, *gpu.throttled))),
    )


def _extreme(
    choose: Callable[[float, float], float], first: float | None, second: float | None
) -> float | None:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)
