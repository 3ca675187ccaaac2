"""What the benchmarks' tests need of the machine; what measures knows no pytest."""

from __future__ import annotations

import os

import clock_runners
import pytest


def compiler_or_skip() -> None:
    """Skip a test by name where the probe cannot be built; fail in CI."""
    if clock_runners.compiler() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("gcc is not installed")
        pytest.skip("gcc is not installed")
