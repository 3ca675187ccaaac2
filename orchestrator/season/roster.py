"""Put a season's roster together: listed engines, found ones, fillers (in this order)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from orchestrator import contract
from orchestrator.season import eligibility, model, problems

# Debian installs engines where a service's PATH may not look.
_SEARCH: Final = (None, "/usr/games", "/usr/local/bin", "/usr/local/games")

Finder: TypeAlias = Callable[[Sequence[str]], list[contract.EngineSpec]]


def find_installed(names: Sequence[str]) -> list[contract.EngineSpec]:
    """Return those of the named programs that this machine has, by absolute path."""
    found = []
    for name in names:
        path = next(filter(None, (shutil.which(name, path=where) for where in _SEARCH)), None)
        if path is not None:
            found.append(contract.EngineSpec(id=_slug(name), name=name, command=(path,)))
    return found


def assemble(
    roster: model.Roster, find: Finder
) -> tuple[tuple[contract.EngineSpec, ...], list[problems.Problem]]:
    """Return the engines of a season, and what is wrong with its roster."""
    engines = [_spec(entry) for entry in roster.engines]
    listed = {engine.id for engine in engines}
    wanted = len(engines) if roster.size is None else roster.size
    if roster.find and (roster.size is None or len(engines) < wanted):
        found = [engine for engine in find(roster.find) if engine.id not in listed]
        engines += found if roster.size is None else found[: wanted - len(engines)]
    engines += [_spec(entry) for entry in roster.fill[: max(0, wanted - len(engines))]]
    return tuple(engines), list(_problems(roster, engines))


def id_of(entry: model.EngineEntry) -> str:
    """Return the id of an entry, which follows from its name where none is given."""
    return entry.id or _slug(entry.name or "")


def competitions(listed: model.Roster) -> dict[str, Literal["cpu", "gpu"]]:
    """Return the competition of each engine that a roster names (S17-2)."""
    return {id_of(entry): entry.competition for entry in (*listed.engines, *listed.fill)}


def _spec(entry: model.EngineEntry) -> contract.EngineSpec:
    engine_id = id_of(entry)
    return contract.EngineSpec(
        id=engine_id,
        name=entry.name or engine_id,
        author=entry.author,
        protocol=entry.protocol,
        command=entry.command,
        directory=entry.directory,
        options=entry.options,
        rating=entry.rating,
        settings=entry.settings,
        init=entry.init,
        white_pov=entry.white_pov,
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _problems(
    roster: model.Roster, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    yield from _size_problems(roster, engines)
    yield from eligibility.uniqueness(roster.engines)
    for key in ("id", "name"):
        for value in _repeated(getattr(engine, key) for engine in engines):
            yield problems.Problem(
                f"[roster.engine {value}] {key}",
                f"{value!r} for two engines",
                f"one {key} for each engine",
            )
    for engine in engines:
        if not engine.id:
            where = f"[roster.engine {engine.name or engine.command[0]}] id"
            yield problems.Problem(where, "neither id nor usable name", "an id or a name")


def _size_problems(
    roster: model.Roster, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    if roster.size is None:
        if roster.fill:
            allowed = "size, which says how far to fill up"
            yield problems.Problem("[roster] fill", "fillers but no size", allowed)
    elif len(engines) > roster.size:
        found = f"{roster.size}, but {len(engines)} engines are listed"
        yield problems.Problem("[roster] size", found, f"{len(engines)} or more")
    elif len(engines) < roster.size:
        found = f"{roster.size}, but only {len(engines)} engines are listed, found or fill in"
        yield problems.Problem("[roster] size", found, f"{len(engines)}, or more engines")
    if not engines:
        yield problems.Problem("[roster] engine", "no engine", "two engines or more")


def _repeated(values: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for value in values:
        if value in seen:
            repeated[value] = None
        seen.add(value)
    return list(repeated)
