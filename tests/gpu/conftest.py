"""A fake of NVIDIA's management library, built once: GPUs as a file tells of them."""

from __future__ import annotations

import ctypes
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
        pytest.skip("package gcc is not installed")
    place = tmp_path_factory.mktemp("nvml")
    library = place / "libnvidia-ml.so.1"
    named = f"-Wl,-soname,{library.name}"
    subprocess.run(["gcc", "-shared", "-fPIC", named, "-o", library, str(SOURCE)], check=True)
    return place


@pytest.fixture
def told(
    nvml: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """Let this process's driver be the fake; return the file that tells it of GPUs.

    Whoever loads the library by its name gets the one that is loaded already.
    """
    ctypes.CDLL(str(nvml / "libnvidia-ml.so.1"))
    listed = tmp_path / "gpus.txt"
    monkeypatch.setenv("FARM_FAKE_NVML", str(listed))
    return listed
