"""The figures of all runs as Markdown: medians of the runs, and which goals were met."""

from __future__ import annotations

import dataclasses
import pathlib
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence

import clock_figures
import clock_runners

QUIET_MS, BUSY_MS = 0.15, 0.20  # ms: overhead a ply that is the goal at 0 and at 200 lines
BIAS_MS, DRIFT_MS, BEYOND = 0.10, 10.0, 0.01
OURS = "farm match"
FASTER = ((1, "fastchess"), (2, "cutechess-cli"))  # whom whole runs are to equal, at so many games


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run of one runner at one setting."""

    figures: clock_figures.Figures
    foreign: float


@dataclasses.dataclass(frozen=True)
class Throughput:
    """One whole run without thinking: how many games a minute, how many at a time."""

    concurrency: int
    games_a_minute: float
    foreign: float


@dataclasses.dataclass
class Results:
    """All that was measured; runners in the order of the tables."""

    runners: Sequence[clock_runners.Runner]
    clock: dict[clock_runners.Setting, dict[str, list[Measured]]] = dataclasses.field(
        default_factory=dict
    )
    own: dict[clock_runners.Setting, list[list[float]]] = dataclasses.field(default_factory=dict)
    speed: dict[str, list[Throughput]] = dataclasses.field(default_factory=dict)


def markdown(results: Results, nice: int = 0) -> str:
    """Write everything that was measured; ``nice`` is the priority of all runners."""
    parts = [*_machine(results, nice), *_clock(results), *_own(results), *_speed(results)]
    return "\n".join([*parts, *_goals(results)]) + "\n"


def _machine(results: Results, nice: int) -> Iterator[str]:
    yield f"Machine: {_processor()}, {clock_runners.cores()} logical cores, {_kernel()}."
    yield f"All runners and engines at nice {nice}. Versions:\n"
    for runner in results.runners:
        yield f"* {runner.name}: {runner.version}"


def _processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _kernel() -> str:
    source = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    clock = source.read_text().strip() if source.exists() else "unknown"
    return f"Linux {platform.release().split('-')[0]}, clock source {clock}"


def _clock(results: Results) -> Iterator[str]:
    for setting, by_runner in results.clock.items():
        runs = max(len(measured) for measured in by_runner.values())
        yield f"\n#### {title(setting)}: medians of {runs} runs, ms\n"
        yield (
            "| runner | p50 | bias | p99 | largest | drift / 60 moves | off by > 1 ms "
            "| under by > 1 ms | overhead / ply [runs] | gap p99 | moves a run | others' load |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
        for name, measured in by_runner.items():
            yield _row(name, measured)


def title(setting: clock_runners.Setting) -> str:
    """Name a setting as its table does."""
    games = f"{setting.concurrency} game{'s' if setting.concurrency > 1 else ''} at a time"
    return f"think {setting.think_us / 1000:g} ms, {setting.lines} info lines, {games}"


def _row(name: str, measured: Sequence[Measured]) -> str:
    middle = medians(measured)
    overheads = [m.figures.overhead for m in measured if m.figures.overhead is not None]
    spread = f"{min(overheads):.3f}..{max(overheads):.3f}" if overheads else "-"
    load = statistics.median(m.foreign for m in measured)
    cells = [
        *(name, f"{middle.p50:+.3f}", f"{middle.bias:+.3f}", f"{middle.p99:+.2f}"),
        *(f"{middle.worst:+.2f}", f"{middle.drift:+.1f}", f"{middle.beyond:.2%}"),
        *(str(middle.undercharged), f"{_text(middle.overhead)} [{spread}]"),
        *(_text(middle.gap_p99), str(middle.moves), f"{load:.0%}"),
    ]
    return f"| {' | '.join(cells)} |"


def medians(measured: Sequence[Measured]) -> clock_figures.Figures:
    """Return the median of every figure over the runs; ``worst`` is that of all runs."""
    runs = [m.figures for m in measured]
    middle = {
        field.name: _median([getattr(run, field.name) for run in runs])
        for field in dataclasses.fields(clock_figures.Figures)
    }
    whole = {name: round(middle[name] or 0) for name in ("moves", "games")}
    worst = max((run.worst for run in runs), key=abs)
    under = sum(run.undercharged for run in runs)
    return clock_figures.Figures(**middle | whole | {"worst": worst, "undercharged": under})  # type: ignore[arg-type]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _own(results: Results) -> Iterator[str]:
    if not results.own:
        return
    yield "\n#### Our own nanosecond record minus the probe's stamps, µs\n"
    yield "| setting | p50 [runs] | p99 | largest | moves |"
    yield "|---|---|---|---|---|"
    for setting, runs in results.own.items():
        middles = [statistics.median(errors) for errors in runs]
        every = [error for errors in runs for error in errors]
        yield (
            f"| {title(setting)} | {statistics.median(middles) * 1000:.0f}"
            f" [{min(middles) * 1000:.0f}..{max(middles) * 1000:.0f}]"
            f" | {clock_figures.quantile(every, 0.99) * 1000:.0f}"
            f" | {max(every, key=abs) * 1000:.0f} | {len(every)} |"
        )


def _speed(results: Results) -> Iterator[str]:
    if not results.speed:
        return
    yield "\n#### Whole runs without thinking, games of 120 plies a minute\n"
    yield "| runner | games at a time | games a minute [runs] | farm match to it | others' load |"
    yield "|---|---|---|---|---|"
    for name, runs in results.speed.items():
        for concurrency in sorted({run.concurrency for run in runs}):
            own = [run for run in runs if run.concurrency == concurrency]
            rates = [run.games_a_minute for run in own]
            load = statistics.median(run.foreign for run in own)
            ratio = rate(results, OURS, concurrency) / statistics.median(rates)
            yield (
                f"| {name} | {concurrency} | {statistics.median(rates):.0f}"
                f" [{min(rates):.0f}..{max(rates):.0f}] | {ratio:.2f} | {load:.0%} |"
            )


def rate(results: Results, name: str, concurrency: int) -> float:
    """Return a runner's games a minute, the median of its runs; 0 where there are none."""
    runs = [run for run in results.speed.get(name, []) if run.concurrency == concurrency]
    return statistics.median(run.games_a_minute for run in runs) if runs else 0.0


# -- goals -------------------------------------------------------------------------------


def _goals(results: Results) -> Iterator[str]:
    judged = {
        title(setting): list(judge(setting, *(medians(runs) for runs in by_runner.values())))
        for setting, by_runner in results.clock.items()
    }
    for games, peer in FASTER:
        ours, theirs = rate(results, OURS, games), rate(results, peer, games)
        if ours and theirs:
            goal = f"games a minute at least {peer}'s"
            judged.setdefault(f"whole runs, {games} at a time", []).append((goal, ours >= theirs))
    if judged:
        yield "\n#### Goals\n"
        yield "| setting | met | missed |"
        yield "|---|---|---|"
    for where, goals in judged.items():
        met = ", ".join(goal for goal, kept in goals if kept)
        missed = ", ".join(goal for goal, kept in goals if not kept)
        yield f"| {where} | {met or '-'} | {missed or '-'} |"


def judge(
    setting: clock_runners.Setting, ours: clock_figures.Figures, *peers: clock_figures.Figures
) -> Iterator[tuple[str, bool]]:
    """Yield every goal of a setting, and whether it was met."""
    yield f"bias within {BIAS_MS} ms", abs(ours.bias) <= BIAS_MS
    yield f"drift below {DRIFT_MS:g} ms", abs(ours.drift) < DRIFT_MS
    yield "under 1 % off by more than 1 ms", ours.beyond < BEYOND
    yield "none under by more than 1 ms", ours.undercharged == 0
    limit: Mapping[int, float] = {0: QUIET_MS, 200: BUSY_MS}
    if setting.lines in limit and ours.overhead is not None:
        wanted = limit[setting.lines]
        yield f"overhead at most {wanted} ms", ours.overhead <= wanted
    for name in ("bias", "drift", "beyond", "undercharged", "overhead"):
        theirs = [abs(getattr(peer, name) or 0.0) for peer in peers]
        if theirs:
            own = abs(getattr(ours, name) or 0.0)
            yield f"{name} better than all peers", own < min(theirs) or own == min(theirs) == 0
