"""The engines of a match: ``-engine``, ``-each`` and ``engines.json``.

Keys are cutechess-cli's and fastchess's. What stands behind ``-engine`` goes before what
stands behind ``-each``, and both before the configuration of ``conf=``. Invariants: names
are unique (a second ``X`` is ``X_2``); commands and directories are absolute, and are
there: a program that is not is wrong usage, before the first game (decision 007).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import pydantic

from orchestrator import contract
from orchestrator.common import bounds, files
from orchestrator.engines import cutechess
from worker_cpu.match import cli_values, programs

FLAGS = frozenset({"whitepov", "ponder"})
KEYS = (
    *("conf", "name", "cmd", "dir", "arg", "args", "proto", "tc", "st", "nodes", "depth", "plies"),
    *("timemargin", "restart", "stderr", "initstr", "whitepov", "ponder", "book"),
    *("bookdepth", "host", "gpus"),
    "option.NAME",
)
TIMES = "seconds, minutes:seconds or hours:minutes:seconds; a unit is only s"
ENDLESS = ("inf", "infinite")
ENV = "/usr/bin/env"
BOOK_MOVES = 1000  # of a Polyglot book without bookdepth=: as cutechess-cli has it
LONGEST_MS = 10 * 86_400_000  # of a clock: what tc=inf alone is here
RESTARTS = ("auto", "on", "off")
CONFIGURATION = "engines.json"
_OF_CONFIGURATION = {
    "name": "name",
    "command": "cmd",
    "directory": "dir",
    "protocol": "proto",
    "stderr": "stderr",
    "restart": "restart",
}


@dataclasses.dataclass(frozen=True)
class Engine:
    """One engine of a match: what the referee needs, and its own clock."""

    spec: contract.EngineSpec
    control: contract.TimeControl
    margin_ms: int = 0
    stderr: pathlib.Path | None = None
    book: pathlib.Path | None = None
    book_moves: int = BOOK_MOVES
    gpus: tuple[str, ...] = ()  # those it sees, by number or UUID; none: as its machine has it
    stays: bool = True  # its process plays the next game, too, where its protocol allows it

    @property
    def threads(self) -> int:
        """Return the cores the engine was told to use."""
        for name, value in self.spec.options.items():
            if name.lower() in ("threads", "cores") and str(value).isdigit():
                return max(1, int(value))
        return 1


@dataclasses.dataclass
class Wishes:
    """What was written for one engine, key by key, before defaults."""

    values: dict[str, str] = dataclasses.field(default_factory=dict)
    arguments: list[str] = dataclasses.field(default_factory=list)
    init: list[str] = dataclasses.field(default_factory=list)
    options: dict[str, str] = dataclasses.field(default_factory=dict)

    def over(self, other: Wishes) -> Wishes:
        """Return these wishes with those of ``other`` where these say nothing.

        A clock is one wish: ``st`` here means no ``tc`` of the other's. So are arguments.
        """
        hidden = {"tc", "st"} if {"tc", "st"} & self.values.keys() else set()
        own_arguments = bool(self.arguments) or "args" in self.values
        hidden |= {"args"} if own_arguments else set()
        below = {key: value for key, value in other.values.items() if key not in hidden}
        return Wishes(
            below | self.values,
            self.arguments if own_arguments else other.arguments,
            self.init or other.init,
            other.options | self.options,
        )

    def under(self, further: Wishes) -> Wishes:
        """Return these wishes below further ones, as the other programs read a line.

        ``arg=`` and ``initstr=`` add to what stood before; of all other keys the last counts.
        """
        merged = further.over(self)
        merged.arguments = self.arguments + further.arguments
        merged.init = self.init + further.init
        if "args" in self.values:
            merged.values.setdefault("args", self.values["args"])
        return merged


def wishes(switch: str, group: Sequence[str]) -> Wishes:
    """Read the words behind ``-engine`` or ``-each``."""
    made = Wishes()
    for word in filter(None, group):  # an empty one is a script's variable that is not set
        key, equals, value = word.partition("=")
        if not equals and key in FLAGS:
            made.values[key] = "true"
        elif not equals:
            raise cli_values.unknown(f"-{switch}", word, [f"{name}=" for name in KEYS])
        else:
            _wish(made, switch, key, value)
    return made


def _wish(made: Wishes, switch: str, key: str, value: str) -> None:
    if key.startswith("option."):
        made.options[key.removeprefix("option.")] = value
    elif key == "arg":
        made.arguments.append(value)
    elif key == "initstr":
        made.init += value.replace("\\n", "\n").splitlines()
    elif key in KEYS:
        made.values["depth" if key == "plies" else key] = value
    elif key[:1].isupper():  # as nearly all options of engines begin
        raise cli_values.refuse(f"-{switch}", f"{key}=, an engine's option", f"option.{key}=")
    else:
        raise cli_values.unknown(f"-{switch}", key, [f"{name}=" for name in KEYS])


# -- engines.json --------------------------------------------------------------------


def configured(name: str, places: Iterable[pathlib.Path] | None = None) -> Wishes:
    """Return the wishes of an engine in the first ``engines.json`` that there is."""
    paths = list(_places() if places is None else places)
    path = next(filter(files.is_file, paths), None)
    if path is None:
        allowed = "a file " + " or ".join(map(str, paths))
        raise cli_values.refuse(f"-engine conf={name}", f"no {CONFIGURATION}", allowed)
    entries = _entries(path)
    if name not in entries:
        raise cli_values.unknown(f"-engine conf ({path})", name, entries)
    return _of_entry(entries[name])


def _places() -> list[pathlib.Path]:
    home = os.environ.get("XDG_CONFIG_HOME") or pathlib.Path.home() / ".config"
    return [pathlib.Path(CONFIGURATION), pathlib.Path(home) / "cutechess" / CONFIGURATION]


def _entries(path: pathlib.Path) -> dict[str, cutechess.Configured]:
    try:
        return cutechess.parse(bounds.content(path, bounds.SETTINGS_BYTES))
    except ValueError as error:
        allowed = "a JSON list of engines, each with name and command"
        raise cli_values.refuse(str(path), str(error), allowed) from None


def _of_entry(entry: cutechess.Configured) -> Wishes:
    settings = {ours: getattr(entry, theirs) for theirs, ours in _OF_CONFIGURATION.items()}
    given = {key: value for key, value in settings.items() if value}
    if entry.white_pov:
        given["whitepov"] = "true"
    if entry.ponder:
        given["ponder"] = "true"
    return Wishes(given, list(entry.arguments), list(entry.init), dict(entry.options))


# -- from wishes to engines ------------------------------------------------------------


def engines(each: Wishes, own: Sequence[Wishes], *, stems: bool = False) -> tuple[Engine, ...]:
    """Make the engines of a match; raise ``UsageError`` naming the wrong word.

    ``stems``: an engine without a name has its program's without what is behind the last dot.
    """
    made: list[Engine] = []
    taken: set[str] = set()
    for position, wanted in enumerate(own, start=1):
        whole = wanted.over(each)
        if "conf" in whole.values:
            whole = configured(whole.values["conf"]).under(whole)
        if stems and "cmd" in whole.values:
            whole.values.setdefault("name", pathlib.Path(whole.values["cmd"]).stem)
        made.append(_engine(whole, f"-engine {position}", taken))
    return tuple(made)


def _engine(wanted: Wishes, where: str, taken: set[str]) -> Engine:
    values = wanted.values
    if "cmd" not in values:
        raise cli_values.refuse(where, "no command", "cmd=PROGRAM or conf=NAME")
    if "name" in values:
        where = f"{where} ({values['name']})"
    gpus = tuple(filter(None, values.get("gpus", "").split(",")))
    command, directory = _program(values, where)
    shelled = programs.shell_words(values["args"], f"{where} args") if "args" in values else []
    name = _unique(values.get("name") or pathlib.Path(command[0]).name, taken)
    if gpus and "host" not in values:
        command = [ENV, *(f"{key}={value}" for key, value in visible(gpus).items()), *command]
    protocols = get_args(contract.ProtocolName)
    restart = cli_values.choice(f"{where} restart", values.get("restart", "auto"), RESTARTS)
    spec = contract.EngineSpec.model_validate(
        {
            "id": f"engine-{len(taken)}",
            "name": name,
            "protocol": cli_values.choice(f"{where} proto", values.get("proto", "uci"), protocols),
            "command": (*command, *wanted.arguments, *shelled),
            "directory": directory,
            "options": wanted.options,
            "white_pov": cli_values.truth(f"{where} whitepov", values.get("whitepov", "false")),
            "init": tuple(wanted.init),
            "ponder": _ponders(wanted, where),
            "box": values.get("host", ""),
        }
    )
    margin = cli_values.number(f"{where} timemargin", values.get("timemargin", "0"))
    stderr = _file(values, "stderr", where)
    return Engine(
        spec=spec,
        control=control(values, where),
        margin_ms=margin,
        stderr=stderr and stderr.absolute(),
        book=_file(values, "book", where),
        book_moves=cli_values.number(
            f"{where} bookdepth", values.get("bookdepth", str(BOOK_MOVES)), 1
        ),
        gpus=gpus,
        stays=restart != "on",
    )


def _file(values: Mapping[str, str], key: str, where: str) -> pathlib.Path | None:
    return cli_values.file(f"{where} {key}", values[key]) if key in values else None


def _program(values: Mapping[str, str], where: str) -> tuple[list[str], str | None]:
    """Return an engine's command and directory: found here, or as they are on its ``host=``."""
    if "host" in values:
        if not values["host"]:
            raise cli_values.refuse(where, "host=", "host=USER@MACHINE, or a name of -boxes")
        return programs.shell_words(values["cmd"], where), values.get("dir")
    directory = programs.directory(values.get("dir") or ".", where)
    command = programs.command(values["cmd"], directory, where, key="cmd=", home_key="dir=")
    return command, str(directory)


def visible(gpus: tuple[str, ...]) -> dict[str, str]:
    """Return the environment that shows an engine these GPUs alone."""
    if not gpus:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}


def _ponders(wanted: Wishes, where: str) -> bool:
    """Say whether an engine is to ponder; refuse an option that says the opposite."""
    ponders = cli_values.truth(f"{where} ponder", wanted.values.get("ponder", "false"))
    options = {name.lower(): value.lower() for name, value in wanted.options.items()}
    if ponders and options.get("ponder", "true") != "true":
        raise cli_values.refuse(where, "both ponder and option.Ponder=false", "one of the two")
    return ponders


def _unique(name: str, taken: set[str]) -> str:
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    taken.add(chosen)
    return chosen


# -- clocks ----------------------------------------------------------------------------


def control(values: Mapping[str, str], where: str) -> contract.TimeControl:
    """Read ``tc``, ``st``, ``nodes`` and ``depth``; raise ``UsageError``."""
    if "tc" in values and "st" in values:
        raise cli_values.refuse(where, "both tc and st", "one of the two")
    clock: dict[str, int] = {}
    if "st" in values:
        clock["move_ms"] = cli_values.seconds_as_ms(f"{where} st", values["st"])
    elif values.get("tc", "inf") not in ENDLESS:
        clock = _tc(values["tc"], f"{where} tc")
    elif "tc" in values and not {"nodes", "depth"} & values.keys():
        clock["base_ms"] = LONGEST_MS  # an engine that is to search without end need not answer
    for key in ("nodes", "depth"):
        if key in values:
            clock[key] = cli_values.number(f"{where} {key}", values[key], 1)
    try:
        return contract.TimeControl.model_validate(clock)
    except pydantic.ValidationError:
        given = [f"{key}={values[key]}" for key in ("tc", "st") if key in values]
        allowed = (
            "tc=MOVES/TIME+INCREMENT or st=SECONDS (above 0, at most 10 days); nodes=N or depth=N,"
            " alone or beside tc=inf"
        )
        raise cli_values.refuse(where, "".join(given) or "no time control", allowed) from None


def _tc(text: str, where: str) -> dict[str, int]:
    """Read ``40/1:30+0.5``: moves, then seconds or minutes and seconds, then increment."""
    moves, slash, rest = text.rpartition("/")
    base, plus, increment = rest.partition("+")
    if base.startswith("hg"):
        raise cli_values.unsupported(f"{where}={text}", "hourglass clocks; write TIME+INCREMENT")
    clock = {"base_ms": _clock_ms(base, where)}
    if plus:
        clock["increment_ms"] = round(_seconds(where, increment) * 1000)
    if slash and moves not in ENDLESS and cli_values.number(where, moves):
        clock["moves"] = cli_values.number(where, moves, 1)
    return clock


def _clock_ms(text: str, where: str) -> int:
    parts = text.split(":")
    if len(parts) > 3:
        raise cli_values.refuse(where, repr(text), TIMES)
    total = 0.0
    for part in parts:
        total = total * 60 + _seconds(where, part)
    return round(total * 1000)


def _seconds(where: str, text: str) -> float:
    """Read seconds, with their unit or without, as fastchess does."""
    return cli_values.real(where, text.removesuffix("s"), TIMES)
