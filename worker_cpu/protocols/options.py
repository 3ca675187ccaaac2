"""What is set on an engine: the event's limits first, then its author's options.

RULEBOOK §2 "Limits". Invariants:

* Threads is set first: engines size their tables by it;
* the event's limits are the same for both sides, lowered to an engine's own maximum, and
  win over an author's option of the same name;
* own books and pondering are off wherever an engine offers them;
* every option asked for is recorded: what was asked, what is offered, what was set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from orchestrator import contract
from worker_cpu.protocols import uci

Value: TypeAlias = str | int | bool

EMPTY = "<empty>"  # UCI's way to write an empty string


@dataclasses.dataclass(frozen=True)
class Plan:
    """The options of one engine, and the commands that set them, in order."""

    settings: tuple[contract.OptionSetting, ...]
    commands: tuple[bytes, ...]


@dataclasses.dataclass(frozen=True)
class _Choice:
    """What is set: ``value`` for the record, '' with no command where nothing is."""

    value: str | None
    command: bytes | None = None
    remark: str = ""


def plan(
    offered: Iterable[uci.Option],
    order: contract.GameOrder,
    spec: contract.EngineSpec,
) -> Plan:
    """Decide what is set on an engine that offers these options."""
    known = {option.name.lower(): option for option in offered}
    settings: list[contract.OptionSetting] = []
    commands: list[bytes] = []
    for name, asked, by_author in _wanted(order, spec, known):
        option = known.get(name.lower())
        if by_author and _is_farm_option(name, order):
            choice = _Choice(None, remark="the event sets this option")
        elif option is None:
            choice = _Choice(None, remark="engine has no such option")
        else:
            choice = _choose(option, asked)
        settings.append(
            contract.OptionSetting(
                name=name if option is None else option.name,
                asked=_text(asked),
                offered=None if option is None else option.describe(),
                set=choice.value,
                remark=choice.remark,
            )
        )
        commands += [] if choice.command is None else [choice.command]
    return Plan(tuple(settings), tuple(commands))


def _wanted(
    order: contract.GameOrder, spec: contract.EngineSpec, known: dict[str, uci.Option]
) -> Iterator[tuple[str, Value, bool]]:
    """Yield name, value and whether the author asks for it, in the order of setting."""
    yield "Threads", order.limits.threads, False
    yield "Hash", order.limits.hash_mb, False
    if order.limits.syzygy_path is not None:
        yield "SyzygyPath", order.limits.syzygy_path, False
    if order.variant == "fischerandom":
        yield "UCI_Chess960", True, False
    for name in ("OwnBook", "Ponder"):
        if name.lower() in known:
            yield name, False, False
    for name, value in spec.options.items():
        yield name, value, True


def _is_farm_option(name: str, order: contract.GameOrder) -> bool:
    farm = {"threads", "hash", "ownbook", "ponder", "uci_chess960"}
    if order.limits.syzygy_path is not None:
        farm.add("syzygypath")
    return name.lower() in farm


def _choose(option: uci.Option, asked: Value) -> _Choice:
    text = _text(asked)
    if option.type == "button":
        return _button(option, text)
    if option.type == "spin":
        return _spin(option, text)
    if option.type == "check" and text.lower() not in ("true", "false"):
        return _Choice(None, remark=f"not set: {text!r} is neither true nor false")
    if option.type == "check":
        return _set(option, text.lower())
    if option.type == "combo":
        return _combo(option, text)
    return _set(option, text or EMPTY)


def _button(option: uci.Option, text: str) -> _Choice:
    if text.lower() == "true":
        return _Choice("pressed", uci.set_option(option.name))
    return _Choice(None, remark="button not pressed")


def _spin(option: uci.Option, text: str) -> _Choice:
    try:
        number = int(text)
    except ValueError:
        return _Choice(None, remark=f"not set: {text!r} is no whole number")
    if option.max is not None and number > option.max:
        return _set(option, str(option.max), f"lowered to the engine's maximum {option.max}")
    if option.min is not None and number < option.min:
        return _set(option, str(option.min), f"raised to the engine's minimum {option.min}")
    return _set(option, text)


def _combo(option: uci.Option, text: str) -> _Choice:
    for choice in option.choices:
        if choice.lower() == text.lower():
            return _set(option, choice)
    return _Choice(None, remark=f"not set: the engine has no choice {text!r}")


def _set(option: uci.Option, value: str, remark: str = "") -> _Choice:
    return _Choice(value, uci.set_option(option.name, value), remark)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
