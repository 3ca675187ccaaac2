"""Whether a season's tablebases are on this machine: said before a season is launched.

A warning and never a refusal, as of programs (``programs``): the hall may be another host.
There ``farm doctor`` says the same, and positions without a table are played on (S16-11d).
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from orchestrator.commands import paths
from orchestrator.engines import limits
from orchestrator.ops.doctor import season as doctor
from orchestrator.season.spec import model


def warnings(season: model.Season) -> list[str]:
    """Return what to say of directories of tables that are not whole here, by directory."""
    if paths.at_desk():
        return []
    events: dict[tuple[str, int], list[str]] = {}
    for event in season.events:
        for path, men in _asked(event):
            events.setdefault((path, men), []).append(event.id)
    texts = []
    for (path, men), names in events.items():
        present = doctor.count(path, men)
        if present < doctor.WHOLE[men]:
            texts.append(_missing(path, present, men, names))
    return [*texts, *_directories(season)]


def _directories(season: model.Season) -> Iterator[str]:
    """Yield the directories of tables that engines alone read, where they are not here."""
    events: dict[tuple[str, str], list[str]] = {}
    for event in season.events:
        for role in (limits.Role.NALIMOV, limits.Role.GAVIOTA, limits.Role.SCORPIO):
            for path in (limits.path(event.limits, role) or "").split(":"):
                if path and not pathlib.Path(path).is_dir():
                    kind = role.value.partition(" ")[0]
                    events.setdefault((kind, path), []).append(event.id)
    for (kind, path), names in events.items():
        yield (
            f"no {kind} tables on this machine in {path} (for {', '.join(names)}); if it is the"
            " hall, engines play without them"
        )


def _asked(event: model.Event) -> Iterator[tuple[str, int]]:
    """Yield each directory (or several, joined by ``:``) with the men that it is asked for."""
    rule, engines = event.adjudication.syzygy, event.limits.syzygy_path
    own = rule and (rule.path or engines)
    if rule and own:
        yield own, rule.men
    if engines and engines != own:
        yield engines, doctor.ENGINES_MEN


def _missing(path: str, present: int, men: int, events: list[str]) -> str:
    tables = (
        f"{present} of {doctor.WHOLE[men]} tablebases to {men} men" if present else "no tablebases"
    )
    return (
        f"{tables} on this machine in {path} (for {', '.join(events)}); if it is the hall,"
        " positions without a table are played on"
    )
