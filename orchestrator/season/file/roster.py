"""Put a season's roster together: listed engines, found ones, fillers (in this order).

An engine that the organizers have dropped plays nowhere, and the next one moves up
(CUP-1c, FRC-1c). The order is the organizers' seeding, the last winner first (CUP-1e, FRC-1d,
FRC-1e), where no event asks for another.

``engines.toml`` is written here too: what ``farm engine import`` (``--pin``) leaves
behind. Only what differs from the defaults is written, in the order of the model; reading the
text again (``load.load_engines``) gives the same entries.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from orchestrator import contract
from orchestrator.engines import builds, cutechess
from orchestrator.season.spec import eligibility, model, problems

# Debian installs engines where a service's PATH may not look.
_SEARCH: Final = (None, "/usr/games", "/usr/local/bin", "/usr/local/games")

Finder: TypeAlias = Callable[[Sequence[str]], list[contract.EngineSpec]]
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def find_installed(names: Sequence[str]) -> list[contract.EngineSpec]:
    """Return those of the named programs that this machine has, by absolute path."""
    installed = []
    for name in names:
        path = next(filter(None, (shutil.which(name, path=where) for where in _SEARCH)), None)
        if path is not None:
            installed.append(contract.EngineSpec(id=_slug(name), name=name, command=(path,)))
    return installed


def found(
    roster: model.Roster, engines: Iterable[contract.EngineSpec]
) -> list[contract.EngineSpec]:
    """Return those of a season's engines that no entry lists: they were found by their names."""
    listed = {id_of(entry) for entry in (*roster.engines, *roster.fill)}
    return [spec for spec in engines if spec.id not in listed]


def find_recorded(played: Collection[str]) -> Finder:
    """Return the finder of an audit: those of the named programs that played were installed.

    ``played`` are the names of a record, with versions behind them or without.
    """
    recorded = tuple(f"{name.lower()} " for name in played)

    def find(names: Sequence[str]) -> list[contract.EngineSpec]:
        there = [
            name for name in names if any(full.startswith(f"{name.lower()} ") for full in recorded)
        ]
        return [contract.EngineSpec(id=_slug(name), name=name, command=(name,)) for name in there]

    return find


def assemble(
    roster: model.Roster, find: Finder
) -> tuple[tuple[contract.EngineSpec, ...], list[problems.Problem]]:
    """Return the engines of a season, and what is wrong with its roster."""
    entered = [entry for entry in roster.engines if not entry.dropped]
    engines = [spec(entry) for entry in entered]
    listed = {id_of(entry) for entry in roster.engines}
    wanted = len(engines) if roster.size is None else roster.size
    if roster.find and (roster.size is None or len(engines) < wanted):
        installed = [engine for engine in find(roster.find) if engine.id not in listed]
        engines += installed if roster.size is None else installed[: wanted - len(engines)]
    fillers = [entry for entry in roster.fill if not entry.dropped]
    engines += [spec(entry) for entry in fillers[: max(0, wanted - len(engines))]]
    return tuple(engines), list(_problems(roster, engines))


def id_of(entry: model.EngineEntry) -> str:
    """Return the id of an entry, which follows from its name where none is given."""
    return entry.id or _slug(entry.name or "")


def competitions(listed: model.Roster) -> dict[str, Literal["cpu", "gpu"]]:
    """Return the competition of each engine that a roster names (S17-2)."""
    return {id_of(entry): entry.competition for entry in (*listed.engines, *listed.fill)}


def dropped(listed: model.Roster) -> dict[str, str]:
    """Return the engines that the organizers have left out, with the reason (CUP-1c)."""
    return {id_of(entry): entry.dropped for entry in listed.engines if entry.dropped}


def spec(entry: model.EngineEntry) -> contract.EngineSpec:
    """Return what a hall needs to know of an entry.

    An engine of the GPU competition plays with its build for it, where it has one (S17-2).
    """
    engine_id = id_of(entry)
    others = {name: command for name, command in entry.builds.items() if name != builds.GPU}
    on_gpu = entry.competition == "gpu" and builds.GPU in entry.builds
    return contract.EngineSpec(
        id=engine_id,
        name=entry.name or engine_id,
        author=entry.author,
        protocol=entry.protocol,
        command=entry.builds[builds.GPU] if on_gpu else entry.command,
        directory=entry.directory,
        options=entry.options,
        rating=entry.rating,
        provisional=entry.provisional,
        settings=entry.settings,
        init=entry.init,
        white_pov=entry.white_pov,
        version=entry.version,
        family=entry.family,
        country=entry.country,
        builds={} if on_gpu else others,
        network=entry.network,
        checksums=entry.checksums,
        box=entry.box or "",
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _problems(
    roster: model.Roster, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    yield from _size_problems(roster, engines)
    yield from eligibility.uniqueness([*roster.engines, *roster.fill])
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
    yield from unplaced(engines, "roster.engine")


def unplaced(engines: Iterable[contract.EngineSpec], table: str) -> Iterator[problems.Problem]:
    """Yield programs that no hall can find: engines are started in a folder of their own.

    ``table`` is where the file lists them.
    """
    for engine in engines:
        where = f"[{table} {engine.id}]"
        if engine.directory is None:
            yield from _lost(engine, where)
        elif not engine.directory.startswith("/"):
            yield problems.Problem(
                f"{where} directory",
                f"{engine.directory!r}, a relative path",
                "an absolute path on the hall's host",
            )


def _lost(engine: contract.EngineSpec, where: str) -> Iterator[problems.Problem]:
    """Yield the programs of an engine without a directory that are sought from one."""
    programs = {command[0] for command in (engine.command, *engine.builds.values())}
    for program in sorted(programs):
        if "/" in program and not program.startswith("/"):
            yield problems.Problem(
                f"{where} command",
                f"{program!r}, a relative path without `directory`",
                "a program in PATH, an absolute path on the hall's host, or an absolute"
                " `directory` there, from which it is found",
            )


def _size_problems(
    roster: model.Roster, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    if roster.size is None:
        if roster.fill:
            allowed = "size, which says how far to fill up"
            yield problems.Problem("[roster] fill", "fillers but no size", allowed)
    elif len(engines) > roster.size:
        actual = f"{roster.size}, but {len(engines)} engines are listed"
        yield problems.Problem("[roster] size", actual, f"{len(engines)} or more")
    elif len(engines) < roster.size:
        actual = f"{roster.size}, but only {len(engines)} engines are listed, found or fill in"
        yield problems.Problem("[roster] size", actual, f"{len(engines)}, or more engines")
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


def as_toml(entries: Sequence[model.EngineEntry]) -> str:
    """Return the text of an engines file."""
    lines = ["schema = 1"]
    for entry in entries:
        lines += ["", "[[engine]]", *_lines(entry)]
    return "\n".join(lines) + "\n"


def _lines(entry: model.EngineEntry) -> Iterator[str]:
    table = entry.model_dump(mode="json", exclude_defaults=True)
    by_class = table.pop("builds", None)
    for key, value in table.items():
        yield f"{key} = {_value(by_class if key == 'command' and by_class else value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Mapping():
            return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return _string(str(value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(value: str) -> str:
    # JSON's escapes are TOML's; only DEL is allowed in the one and not in the other.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def of_cutechess(configured: cutechess.Configured, command: Sequence[str]) -> model.EngineEntry:
    """Return the entry of an engine of cutechess' ``engines.json``; raise ``ValueError``.

    ``command`` is its command, split and with its arguments.
    """
    return model.EngineEntry.model_validate(
        {
            "name": configured.name,
            "protocol": configured.protocol or "uci",
            "command": tuple(command),
            "directory": configured.directory or None,
            "options": dict(configured.options),
            "init": configured.init,
            "white_pov": configured.white_pov,
        }
    )
