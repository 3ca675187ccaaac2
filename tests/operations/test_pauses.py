"""Services collect garbage in short pauses, however much a season has kept: counted, not timed."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref

import pytest
import theatre

LONG = 80_000  # objects: gone through in 10 ms

SERVICE = """
import gc, json, sys
from orchestrator.commands import services
services.TIDY_SECONDS = 10_000  # by hand
automatic, looked = [], []
gc.callbacks.append(
    lambda phase, info: looked.append(len(gc.get_objects()))
    if phase == "start" and info["generation"] == 2 else None
)
services.shorten_pauses()
kept = [[n] for n in range(int(sys.argv[1]))]
automatic += looked
services.set_apart()
for _ in range(5):
    kept.append([[n] for n in range(20_000)])
    lost = []
    lost.append(lost)
    del lost
    for n in range(3): gc.collect(1)
    services.tidy()
print(json.dumps([len(automatic), len(looked), max(looked), gc.get_freeze_count()]))
"""


@pytest.mark.parametrize("kept", [1_000, 300_000])
def test_a_pause_is_short_whatever_is_kept(kept: int) -> None:
    """No collection goes through what lived for a while, and new garbage is collected."""
    run = [sys.executable, "-c", SERVICE, str(kept)]
    said = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
    automatic, collections, most, frozen = json.loads(said)
    assert automatic == 0
    assert collections >= 5
    assert most < LONG
    assert frozen > kept


START = """
import gc, json, sys
from orchestrator.commands import services
services.START_SECONDS = services.TIDY_SECONDS = 10_000  # by hand
looked = []
services.shorten_pauses()
gc.callbacks.append(
    lambda phase, info: looked.append(len(all_objects()))
    if phase == "start" and info["generation"] == 2 else None
)
counted = []
all_objects, frozen = gc.get_objects, gc.get_freeze_count
gc.get_objects = lambda *of, **how: counted.append(1) or all_objects(*of, **how)
gc.get_freeze_count = lambda: counted.append(1) or frozen()
kept = []
for number in range(int(sys.argv[1])):
    kept += [[n] for n in range(30_000)]
    for n in range(3): gc.collect(1)
    services.set_apart()
    left = gc.get_count()[2]
for _ in range(5):
    kept += [[n] for n in range(1_000)]
    for n in range(3): gc.collect(1)
    services.tidy()
print(json.dumps([left, len(looked), max(looked), len(counted), frozen()]))
"""


@pytest.mark.parametrize("seconds", [6, 12])
def test_what_is_read_at_a_start_is_never_gone_through(seconds: int) -> None:
    """However much a service reads as it starts: it is set apart, and not even counted."""
    run = [sys.executable, "-c", START, str(seconds)]
    said = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
    left, collections, most, counted, frozen = json.loads(said)
    assert left == 0
    assert collections == 5
    assert most < 60_000
    assert counted == 0
    assert frozen > seconds * 30_000


CROWD = """
import gc, json
from orchestrator.commands import services
services.TIDY_SECONDS = 10_000  # by hand
services.shorten_pauses()
most = 0
for _ in range(30):
    connections = [[] for n in range(20_000)]
    for one in connections:
        one.append(one)
    for n in range(3): gc.collect(1)
    services.tidy()  # while they live
    most = max(most, gc.get_freeze_count())
print(json.dumps([most, gc.get_freeze_count()]))
"""


def test_what_ends_after_it_was_set_apart_is_freed_in_the_end() -> None:
    """A crowd that comes and goes for weeks leaves no more behind than there was at a time."""
    run = [sys.executable, "-c", CROWD]
    said = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
    most, last = json.loads(said)
    assert most < 300_000 < 30 * 20_000
    assert last <= most


def test_a_folded_season_is_freed_by_its_last_reference() -> None:
    """What is set apart from collections must hold no cycles, or it would stay for ever."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    gc.disable()
    try:
        state = tape.folded()
        gone = weakref.ref(state)
        del state
        assert gone() is None
    finally:
        gc.enable()
