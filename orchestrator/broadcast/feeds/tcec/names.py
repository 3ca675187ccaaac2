"""How TCEC's viewers name seasons and events: file stems, links, numbers that sort."""

from __future__ import annotations

import functools
import itertools
import re
import string
from collections.abc import Iterable, Iterator
from typing import Final

from orchestrator.season.fold import entries, events, plan
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.+-]+")
STAGES: Final = {32: "round32", 16: "round16", 8: "qf", 4: "sf", 2: "fl"}  # by entrants
BRONZE: Final = "bz"


def title(state: season_state.SeasonState, event: events.EventState) -> str:
    """Return the event's title as the Event tag of its games has it."""
    return f"{state.launched.season.name} - {event.spec.name}"


def season(state: season_state.SeasonState) -> str:
    """Return what tells the season's files from those of others."""
    return entries.full_name(state.launched.season, state.launched.id)


def stem(state: season_state.SeasonState, event: events.EventState) -> str:
    """Return the stem of all files of an event in the archive."""
    return _UNSAFE.sub("_", f"{season(state)} - {event.spec.name}").strip("_")


def link(state: season_state.SeasonState, event: events.EventState) -> str:
    """Return the event's address inside TCEC's viewers."""
    stages = cup_stages(state)
    if event.id in stages:
        return f"season={state.launched.id}&round={stages[event.id]}"
    return f"season={state.launched.id}&div={event.id}"


def number(state: season_state.SeasonState) -> int:
    """Return the season's number: the last one in its name or id, else 1."""
    numbers = re.findall(r"\d+", f"{state.launched.id} {state.launched.season.name}")
    return int(numbers[-1]) if numbers else 1


def is_cup(state: season_state.SeasonState) -> bool:
    """Say whether the season is a Cup: all of its events are rounds of a knockout."""
    return all(isinstance(e.spec.format, model.Knockout) for e in state.events.values())


def cup_stages(state: season_state.SeasonState) -> dict[str, str]:
    """Return the stage of each round of a Cup, {} for other seasons.

    Two rounds of two engines end a Cup: the match for bronze, then the final.
    """
    if not is_cup(state):
        return {}
    ids = list(state.events)
    sizes = list(_sizes(state, ids))
    stages = {
        event_id: STAGES.get(size, event_id) for event_id, size in zip(ids, sizes, strict=True)
    }
    if sizes[-2:] == [2, 2]:
        stages[ids[-2]] = BRONZE
    return stages


def _sizes(state: season_state.SeasonState, ids: Iterable[str]) -> Iterator[int]:
    fields = plan.fields(state.launched.season, len(state.launched.engines))
    for event_id in ids:
        size = fields[event_id]
        yield 1 << (size - 1).bit_length()


def abbreviations(names: Iterable[str]) -> dict[str, str]:
    """Return two letters for each engine, no two the same; more where there are no two left."""
    short: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        first = _first(name)
        choices = itertools.chain(_pairs(name), (f"{first}{n}" for n in itertools.count(10)))
        short[name] = next(two for two in choices if two not in taken)
        taken.add(short[name])
    return short


def _first(name: str) -> str:
    return next(filter(str.isalnum, name), "X").upper()


@functools.lru_cache(maxsize=1_024)  # asked for again whenever an event's order changes
def _pairs(name: str) -> tuple[str, ...]:
    first, *others = [letter for letter in name if letter.isalnum()] or ["X"]
    own = [f"{first.upper()}{second.lower()}" for second in others]
    own += [f"{first.upper()}{digit}" for digit in string.digits]
    return *own, *map("".join, itertools.product(string.ascii_uppercase, string.digits))
