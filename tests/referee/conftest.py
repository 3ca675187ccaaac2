"""A hall with a hostile engine, and its games in a bubblewrap."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import hall
import hostile_hall
import pytest

from worker_cpu.seats import sandbox


@pytest.fixture
def place(tmp_path: pathlib.Path) -> hostile_hall.Place:
    """A host with a hall and two engines."""
    return hostile_hall.Place(tmp_path)


@pytest.fixture
def boxed(place: hostile_hall.Place) -> Callable[..., hall.Played]:
    """Play a deed in a bubblewrap; skip where none works."""
    found = sandbox.describe()
    if found.kind != "bubblewrap":
        pytest.skip(f"no bubblewrap sandbox works here: {found.problem}")
    return lambda *deed, **more: place.play("bubblewrap", *deed, **more)
