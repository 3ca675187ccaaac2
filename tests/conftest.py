"""Rules for all tests: in CI a test may be skipped for missing hardware only."""

from __future__ import annotations

import os
import signal
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

# A job that a script starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A process of a parallel run takes a file at a time. What takes longest, in few tests, comes first:
# begun last it would keep one process at work when the others have nothing left to do.
LONGEST_FIRST = (
    "chaos/test_storm.py",
    "lab/test_lab.py",
    "operations/test_compose.py",
    "integration/test_cheating_engines.py",
    "release/test_completion.py",
    "operations/test_runbooks.py",
    "integration/test_recovery.py",
    "forecast/test_forecast.py",
    "integration/test_season.py",
    "integration/test_lost_writes.py",
    "integration/test_celery_commands.py",
    "integration/test_up.py",
    "broadcast/test_harm.py",
    "broadcast/test_outlook.py",
    "gpu/test_farm.py",
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
