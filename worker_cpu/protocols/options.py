"""What is set on an engine: the event's limits first, then its author's options.

What a name means is ``arbiter.limits``. Invariants:

* Threads is set first: engines size their tables by it;
* the event's limits are the same for both sides and lowered to an engine's own maximum;
  an author may ask for less, never for more;
* minor hashes together stay within the limit: all are lowered in proportion;
* own books, pondering and large pages are off wherever an engine offers them;
* whatever has a limit is recorded: what was asked, what is offered, what was set, and a
  remark where these differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TypeAlias

from orchestrator import contract
from orchestrator.engines import limits
from worker_cpu.protocols import option_policy, uci

Writer: TypeAlias = Callable[[uci.Option, str | None], bytes]

EMPTY = "<empty>"  # UCI's way to write an empty string
MISSING = "engine has no such option"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The options of one engine, and the commands that set them, in order."""

    settings: tuple[contract.OptionSetting, ...]
    commands: tuple[bytes, ...]


@dataclasses.dataclass(frozen=True)
class CecpFeatures:
    """What an XBoard engine takes besides its options: ``memory``, ``cores``, ``egtpath``."""

    memory: bool = False
    smp: bool = False
    egt: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Choice:
    """What is set: ``value`` for the record and for the engine, ``None`` for nothing."""

    value: str | None
    remark: str = ""


def plan(
    offered: Iterable[uci.Option],
    order: contract.GameOrder,
    spec: contract.EngineSpec,
) -> Plan:
    """Decide what is set on a UCI engine that offers these options."""
    return _plan(option_policy.Offer(offered, spec.options), order, _write_uci, spec)


def plan_xboard(
    offered: Iterable[uci.Option],
    features: CecpFeatures,
    order: contract.GameOrder,
    spec: contract.EngineSpec,
) -> Plan:
    """Decide what is set on an XBoard engine by features and by its own options.

    ``memory`` is asked for the main hash: CECP leaves to the engine what it keeps there.
    Chess960 is told by ``variant``, which is not an option.
    """
    extra = [uci.Option("cores", "spin", min=1)] if features.smp else []
    extra += [uci.Option("memory", "spin", min=1)] if features.memory else []
    extra += [uci.Option(f"egtpath {kind}", "string") for kind in features.egt]
    untold = order.model_copy(update={"variant": "standard"})
    return _plan(option_policy.Offer([*extra, *offered], spec.options), untold, _write_xboard)


def _plan(
    offer: option_policy.Offer,
    order: contract.GameOrder,
    write: Writer,
    own: contract.EngineSpec | None = None,
) -> Plan:
    settings: list[contract.OptionSetting] = []
    commands: list[bytes] = []
    for wish in option_policy.wishes(offer, order, own):
        choice = _Choice(wish.value, MISSING)
        if wish.option is not None:
            choice = _Choice(None) if wish.value is None else _choose(wish.option, wish.value)
            if choice.value is not None:
                commands.append(_command(wish.option, choice.value, write))
        settings.append(_setting(wish, choice))
    return Plan(tuple(settings), tuple(commands))


def _setting(wish: option_policy.Wish, choice: _Choice) -> contract.OptionSetting:
    return contract.OptionSetting(
        name=wish.name,
        asked=wish.asked,
        offered=None if wish.option is None else wish.option.describe(),
        set=None if wish.option is None else choice.value,
        remark="; ".join(filter(None, (wish.remark, choice.remark))),
    )


# -- what an option takes ------------------------------------------------------------------


def _choose(option: uci.Option, asked: str) -> _Choice:
    if option.type == "button":
        pressed = asked.lower() == "true"
        return _Choice("pressed") if pressed else _Choice(None, "button not pressed")
    if option.type == "spin":
        return _spin(option, asked)
    if option.type == "check" and asked.lower() not in ("true", "false"):
        return _Choice(None, f"not set: {asked!r} is neither true nor false")
    if option.type == "check":
        return _Choice(asked.lower())
    if option.type == "combo":
        return _combo(option, asked)
    return _Choice(asked or EMPTY)


def _spin(option: uci.Option, asked: str) -> _Choice:
    number = limits.whole(asked)
    if number is None:
        return _Choice(None, f"not set: {asked!r} is no whole number")
    if option.max is not None and number > option.max:
        return _Choice(str(option.max), f"lowered to the engine's maximum {option.max}")
    if option.min is not None and number < option.min:
        return _Choice(str(option.min), f"raised to the engine's minimum {option.min}")
    return _Choice(asked)


def _combo(option: uci.Option, asked: str) -> _Choice:
    for choice in option.choices:
        if choice.lower() == asked.lower():
            return _Choice(choice)
    number = limits.whole(asked)
    if number is not None and limits.role(option.name) in option_policy.LIMITED:
        below = [n for c in option.choices if (n := limits.whole(c)) is not None and n <= number]
        if below:
            return _Choice(str(max(below)), "lowered to the engine's next choice")
    return _Choice(None, f"not set: the engine has no choice {asked!r}")


# -- how it is said ------------------------------------------------------------------------


def _command(option: uci.Option, value: str, write: Writer) -> bytes:
    return write(option, None if option.type == "button" else value)


def _write_uci(option: uci.Option, value: str | None) -> bytes:
    return uci.set_option(option.name, value)


def _write_xboard(option: uci.Option, value: str | None) -> bytes:
    if option.name in ("memory", "cores") or option.name.startswith("egtpath "):
        return _line(f"{option.name} {value}")
    if value is None:
        return _line(f"option {option.name}")
    if option.type == "check":
        value = "1" if value == "true" else "0"
    return _line(f"option {option.name}={'' if value == EMPTY else value}")


def _line(text: str) -> bytes:
    """Write one line; line ends inside cannot be smuggled in."""
    return " ".join(text.splitlines()).encode() + b"\n"
