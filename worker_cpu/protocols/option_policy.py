"""Which options are set on an engine: the event's limits, then what its author asks for.

Pure: an engine's offer, an author's wishes and an order in, wishes
out, in the order of setting; whether an option takes the value is ``options``' to find out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator import contract
from orchestrator.engines import limits
from worker_cpu.protocols import uci

DEFAULT = "default"  # asked of an option that is only looked at
_NAMES = {limits.Role.THREADS: "Threads", limits.Role.HASH: "Hash"}  # for those without
_PATH_NAMES = {
    limits.Role.SYZYGY: "SyzygyPath",
    limits.Role.NALIMOV: "NalimovPath",
    limits.Role.GAVIOTA: "GaviotaTbPath",
    limits.Role.SCORPIO: "Bitbases Path",
}
LIMITED = limits.SIZES | {limits.Role.THREADS}  # an author's value is in the event's wish
_FIXED = frozenset({*limits.OFF, limits.Role.CHESS960, limits.Role.OPPONENT})


@dataclasses.dataclass(frozen=True)
class Wish:
    """One option to be set to ``value``, ``None`` for one that is only recorded."""

    name: str
    option: uci.Option | None
    asked: str
    value: str | None
    remark: str = ""


class Offer:
    """What an engine offers and what its author asks for, by role and by name."""

    def __init__(self, offered: Iterable[uci.Option], author: Mapping[str, limits.Value]) -> None:
        self.author = author
        self._known = {option.name.lower(): option for option in offered}
        self._asked = {name.lower(): limits.text(value) for name, value in author.items()}

    def option(self, name: str) -> uci.Option | None:
        """Return the option of a name, in any case."""
        return self._known.get(name.lower())

    def asked(self, option: uci.Option) -> str | None:
        """Return what the author asks of an option."""
        return self._asked.get(option.name.lower())

    def of(self, role: limits.Role, *types: uci.OptionType) -> list[uci.Option]:
        """Return the options of a role that have one of these types."""
        return [
            option
            for option in self._known.values()
            if option.type in types and limits.role(option.name) is role
        ]


# -- what is wished ------------------------------------------------------------------------


def wishes(
    offer: Offer, order: contract.GameOrder, own: contract.EngineSpec | None = None
) -> Iterator[Wish]:
    """Yield all that is set and recorded, in the order of setting; ``own`` is the engine."""
    event = order.limits
    handled: set[str] = set()
    first = [*(_events(offer, event) if not event.free else ()), *_chess960(offer, order)]
    if own is not None and order.tell_opponent:
        first += _opponent(offer, order, own)
    if own is not None and own.ponder and event.free:
        first.append(Wish("Ponder", offer.option("Ponder"), "true", "true"))
    for wish in first:
        yield wish
        handled.add(wish.name.lower())
    yield from _authors(offer, event, handled)


def _events(offer: Offer, event: contract.Limits) -> Iterator[Wish]:
    yield from _limited(offer, limits.Role.THREADS, event.threads, "")
    yield from _limited(offer, limits.Role.HASH, event.hash_mb, " MB")
    for role in (limits.Role.MINOR_HASH, limits.Role.TABLEBASE_CACHE):
        yield from _together(offer, role, limits.together_mb(event, role))
    yield from _paths(offer, event)
    for role in limits.OFF:
        yield from (Wish(o.name, o, "false", "false") for o in offer.of(role, "check"))
    for role in limits.ON:
        for option in offer.of(role, "check"):
            if offer.asked(option) is None:
                yield Wish(option.name, option, "true", "true")
    for option in offer.of(limits.Role.CONTEMPT, "spin", "check", "combo", "string"):
        if offer.asked(option) is None:
            yield Wish(option.name, option, DEFAULT, None, "left at its default")


def _chess960(offer: Offer, order: contract.GameOrder) -> Iterator[Wish]:
    options = offer.of(limits.Role.CHESS960, "check")
    if order.variant != "fischerandom":
        for option in options:  # on by default, it writes castling as king takes rook
            if option.default == "true":
                yield Wish(option.name, option, "false", "false")
        return
    for option in options:
        yield Wish(option.name, option, "true", "true")
    if not options:
        yield Wish("UCI_Chess960", None, "true", None)


def _opponent(offer: Offer, order: contract.GameOrder, own: contract.EngineSpec) -> Iterator[Wish]:
    """Yield whom an engine plays, and by how much it is rated higher, where it asks for that.

    The protocol's form is ``title Elo computer name``; nobody here has a title.
    """
    rival = order.black if own.id == order.white.id else order.white
    elo = "none" if rival.rating is None else str(rival.rating)
    offers = {"UCI_Opponent": f"none {elo} computer {rival.name} {rival.version}".strip()}
    if own.rating is not None and rival.rating is not None:
        offers["UCI_RatingAdv"] = str(own.rating - rival.rating)
    for name, value in offers.items():
        option = offer.option(name)
        if option is not None:
            yield Wish(option.name, option, value, value)


def _limited(offer: Offer, role: limits.Role, most: int, unit: str) -> Iterator[Wish]:
    """Yield options that get the event's limit, or what the author asks for below it."""
    options = offer.of(role, "spin", "combo")
    if not options:
        yield Wish(_NAMES[role], None, str(most), None)
    for option in options:
        top = most * 1024 // limits.unit_kib(option.name) if unit else most
        asked = offer.asked(option)
        number = None if asked is None else limits.whole(asked)
        if asked is None:
            yield Wish(option.name, option, str(top), str(top))
        elif number is None:
            remark = f"the author's {asked!r} is no whole number"
            yield Wish(option.name, option, str(top), str(top), remark)
        else:
            remark = f"lowered to the event's limit {most}{unit}" if number > top else ""
            yield Wish(option.name, option, asked, str(min(number, top)), remark)


def _paths(offer: Offer, event: contract.Limits) -> Iterator[Wish]:
    """Yield the tablebase paths by the engine's own names; N1 Endgame Tablebases: one kind."""
    taken: limits.Role | None = None
    for role in limits.PATHS:
        path = limits.path(event, role)
        if path is None:
            continue
        options = offer.of(role, "string", "combo")
        if not options:
            yield Wish(_PATH_NAMES[role], None, path, None)
        elif taken is not None and event.tablebases == "one":
            remark = f"one kind an engine: {taken.value}"
            yield from (Wish(option.name, option, path, None, remark) for option in options)
        else:
            taken = role
            yield from (Wish(option.name, option, path, path) for option in options)


def _authors(offer: Offer, event: contract.Limits, handled: set[str]) -> Iterator[Wish]:
    """Yield the author's options that no limit has dealt with, Threads before all."""
    names = sorted(offer.author, key=lambda name: limits.role(name) is not limits.Role.THREADS)
    for name in names:
        option, asked = offer.option(name), limits.text(offer.author[name])
        role = limits.role(name)
        shown = name if option is None else option.name
        if shown.lower() in handled and role in LIMITED:
            continue
        if shown.lower() in handled or (not event.free and role in _FIXED):
            yield Wish(shown, option, asked, None, "the event sets this option")
        elif not event.free and not limits.may_set(event, role):
            yield Wish(shown, option, asked, None, "the event leaves this at its default")
        else:
            yield Wish(shown, option, asked, asked)


# -- sizes that are limited together -------------------------------------------------------


def _together(offer: Offer, role: limits.Role, limit_mb: int | None) -> Iterator[Wish]:
    """Yield the minor hashes, or the tablebase caches, lowered where they are too large.

    A hash is left at its default unless its author asks for more; a cache may be as
    large as the limit (N1 Tablebase Cache). All are lowered in proportion.
    """
    options = offer.of(role, "spin", "combo")
    if limit_mb is None or not options:
        return
    asked = [offer.asked(option) for option in options]
    sizes = [
        _size_kib(option, asked, limit_mb if role is limits.Role.TABLEBASE_CACHE else None)
        for option, asked in zip(options, asked, strict=True)
    ]
    floors = [_kib(option, option.min or 0) for option in options]
    fitting = fit(sizes, floors, limit_mb * 1024)
    for option, wanted, size, allowed in zip(options, asked, sizes, fitting, strict=True):
        units = allowed // limits.unit_kib(option.name)
        remark = f"{sum(sizes) // 1024} MB together; lowered to {limit_mb} MB"
        if allowed < size:
            yield Wish(option.name, option, wanted or _units(option, size), str(units), remark)
        elif wanted is None and role is limits.Role.MINOR_HASH:
            yield Wish(option.name, option, DEFAULT, None, f"within {limit_mb} MB together")
        else:
            yield Wish(option.name, option, wanted or str(units), str(units))


def fit(sizes: Sequence[int], floors: Sequence[int], limit: int) -> list[int]:
    """Lower sizes in proportion until their sum is within a limit; none below its floor.

    Where even the floors are too much, the floors are returned.
    """
    fitting = [max(size, floor) for size, floor in zip(sizes, floors, strict=True)]
    if sum(fitting) <= limit:
        return fitting
    fixed: set[int] = set()
    while True:
        free = [at for at in range(len(sizes)) if at not in fixed]
        rest = max(0, limit - sum(floors[at] for at in fixed))
        whole = sum(fitting[at] for at in free)
        share = {at: fitting[at] * rest // whole if whole else 0 for at in free}
        low = {at for at in free if share[at] < floors[at]}
        if not low:
            return [share.get(at, floors[at]) for at in range(len(sizes))]
        fixed |= low


def _size_kib(option: uci.Option, asked: str | None, otherwise_mb: int | None) -> int:
    """Return what an option would take: as asked, else as said, else by its default."""
    number = None if asked is None else limits.whole(asked)
    if number is None and otherwise_mb is not None:
        top = otherwise_mb * 1024
        return top if option.max is None else min(top, _kib(option, option.max))
    if number is None and option.default is not None:
        number = limits.whole(option.default)
    return _kib(option, max(0, number or 0))


def _kib(option: uci.Option, units: int) -> int:
    return units * limits.unit_kib(option.name)


def _units(option: uci.Option, kib: int) -> str:
    return str(kib // limits.unit_kib(option.name))
