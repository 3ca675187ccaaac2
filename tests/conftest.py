"""Rules for all tests: in CI a test may be skipped for missing hardware only."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from collections.abc import Generator

import hypothesis
import pytest

# A busy machine is no reason to fail, and the short form tries the same examples each time:
# what is found by drawing others is for the long forms.
hypothesis.settings.register_profile(
    "farm",
    deadline=None,
    derandomize=os.environ.get("FARM_LONG") != "1",
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("farm")

# Scripted engines write down when they lived, which no sandbox lets them; tests of
# sandboxes ask for one by name.
os.environ.setdefault("FARM_SANDBOX", "plain")

# As make does it: the program that is tried is this checkout's, not another one that is installed.
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# A job that a script starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A process of a parallel run takes a file at a time. What takes longest comes first, the longest of
# all before the others (as measured with --durations): begun last, a file of minutes would keep one
# process at work when the others have nothing left to do.
LONGEST_FIRST = (
    "chaos/test_storm.py",
    "lab/test_lab.py",
    "integration/test_cheating_engines.py",
    "integration/test_up.py",
    "integration/test_celery_commands.py",
    "integration/test_season.py",
    "operations/test_playbooks.py",
    "integration/test_commands.py",
    "referee/test_fault_matrix.py",
    "referee/test_games.py",
    "season/test_season_simulation.py",
    "integration/test_lost_writes.py",
    "integration/test_serve.py",
    "integration/test_small_season.py",
    "integration/test_lane_games.py",
    "operations/test_redis_role.py",
    "broadcast/test_web.py",
    "browser/test_page.py",
    "referee/test_sandbox.py",
    "operations/test_monitoring.py",
    "integration/test_drill.py",
    "operations/test_compose.py",
    "gpu/test_link.py",
    "gpu/test_farm.py",
    "integration/test_access.py",
)

HARDWARE = "hardware:"  # how the reason of an allowed skip begins


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is marked as long to the targets that set FARM_LONG=1; begin with long files."""
    if os.environ.get("FARM_LONG") != "1":
        left = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    places = {config.rootpath / "tests" / name: place for place, name in enumerate(LONGEST_FIRST)}
    assert all(path.is_file() for path in places), "a file of LONGEST_FIRST is elsewhere now"
    items.sort(key=lambda item: places.get(item.path, len(places)))


CORES = os.sched_getaffinity(0)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Give the process its cores back: a test that binds it would leave the next ones with few."""
    os.sched_setaffinity(0, CORES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip for a missing package into a failure when CI is set."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if HARDWARE not in reason:
            report.outcome = "failed"
            report.longrepr = f"skipped in CI, where only missing hardware may skip: {reason}"
    return report


class FailedAtOnce:
    """Name a test when it fails: the summary of a run that takes half an hour is far off."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a line of its own, as the summary has it; with -v there is one already."""
        if report.failed and self._reporter.verbosity <= 0:
            if self._reporter.currentfspath is None:  # else `write_line` ends the line of dots
                self._reporter.line("")
            word = "ERROR" if report.when in {"setup", "teardown"} else "FAILED"
            self._reporter.write_line(f"{word} {report.nodeid}", red=True)
            self._reporter.flush()


@pytest.hookimpl(trylast=True)  # once the reporter is there; the processes of xdist have none
def pytest_configure(config: pytest.Config) -> None:
    """Have who writes to the terminal name what fails."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedAtOnce(reporter))
