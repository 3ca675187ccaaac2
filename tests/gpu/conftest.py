"""A fake of NVIDIA's management library, built once: GPUs as a file tells of them."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

os.environ.setdefault("FARM_SANDBOX", "plain")
SOURCE = pathlib.Path(__file__).with_name("fake_nvml.c")


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Build the library and return the directory that the loader has to search."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    place = tmp_path_factory.mktemp("nvml")
    library = str(place / "libnvidia-ml.so.1")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, str(SOURCE)], check=True)
    return place
