"""A hall with a hostile engine, and its games in a bubblewrap."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import hall
import hostile_hall
import pytest

from worker_cpu.engines import sandbox


@pytest.fixture
def place(tmp_path: pathlib.Path) -> hostile_hall.Place:
    """A host with a hall and two engines."""
    return hostile_hall.Place(tmp_path)


@pytest.fixture
def bubblewrap() -> None:
    """Skip where no bubblewrap works."""
    found = sandbox.describe()
    if found.kind != "bubblewrap":
        pytest.skip(f"no bubblewrap sandbox works here: {found.problem}")


@pytest.fixture
def boxed(place: hostile_hall.Place, bubblewrap: None) -> Callable[..., hall.Played]:
    """Play a deed in a bubblewrap."""
    return lambda *deed, **more: place.play("bubblewrap", *deed, **more)
