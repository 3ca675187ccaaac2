"""From a numbered game to the referee's order: engines, clock, rules and opening."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from orchestrator import contract
from orchestrator.arbiter import chess960, openings
from orchestrator.common import bounds, errors
from orchestrator.testmatch import openings as testmatch_openings
from worker_cpu.match import arguments, engines, schedule, switches

Deal: TypeAlias = Callable[[int], contract.Opening]

LISTED = 100_000  # positions: beyond, each is drawn for itself instead of shuffling all


class Orders:
    """Writes the orders of one match."""

    def __init__(self, settings: arguments.Settings, match: str) -> None:
        """Read the book; raise ``BookError`` when it cannot be played from."""
        self._settings, self._match = settings, match
        self._deal = deal(settings)

    def order(self, slot: schedule.Slot, attempt: int = 1) -> contract.GameOrder:
        """Return the order of a game."""
        settings = self._settings
        white, black = settings.engines[slot.white], settings.engines[slot.black]
        same = (white.control, white.margin_ms) == (black.control, black.margin_ms)
        return contract.GameOrder(
            season="match",
            season_name="",
            event="match",
            event_name=settings.event,
            game=f"{self._match}-{slot.number}-{attempt}",
            number=slot.number,
            round=f"{slot.round}.{slot.number}" if len(settings.engines) > 2 else f"{slot.number}",
            white=white.spec if same else _own_clock(white),
            black=black.spec if same else _own_clock(black),
            time_control=white.control,
            time_margin_ms=white.margin_ms,
            opening=self._deal(slot.opening),
            limits=contract.Limits(free=True),
            timeouts=settings.timeouts,
            variant=settings.variant,
            adjudication=settings.adjudication,
            journaled=False,  # a match keeps games, not plies: no clock waits for it
            recorded=settings.pgn is not None,
            traffic=settings.listens,
            # a sandbox is made for two engines: it hides each from the other
            keep=_staying(white, black) if settings.sandbox == "plain" else (),
        )


def _staying(white: engines.Engine, black: engines.Engine) -> tuple[contract.Side, ...]:
    sides: dict[contract.Side, engines.Engine] = {"white": white, "black": black}
    return tuple(side for side, engine in sides.items() if engine.stays)


def _own_clock(engine: engines.Engine) -> contract.EngineSpec:
    update = {"time_control": engine.control, "time_margin_ms": engine.margin_ms}
    return engine.spec.model_copy(update=update)


# -- openings ----------------------------------------------------------------------------


def deal(settings: arguments.Settings) -> Deal:
    """Return how openings are dealt by their index; the book starts again at its end."""
    wanted = settings.openings
    if wanted is not None and wanted.file is not None:
        exits = read_book(wanted.file, wanted.kind, wanted.plies)
        order = testmatch_openings.order(len(exits), wanted.order, settings.seed, wanted.start)
        return lambda index: exits[order[index % len(order)]]
    if wanted is not None:
        return _numbered(wanted, settings.seed)
    if settings.variant == "standard":
        return lambda _: contract.Opening()
    return _numbered(switches.Openings(kind="frc", order="random"), settings.seed)


def _numbered(wanted: switches.Openings, seed: int) -> Deal:
    """Deal Chess960 positions by number: those listed, else all of them."""
    make = chess960.double if wanted.kind == "dfrc" else chess960.opening
    listed: Sequence[int] = wanted.positions
    if not listed:
        listed = range(chess960.DOUBLE if wanted.kind == "dfrc" else chess960.POSITIONS)
    if wanted.order == "random" and len(listed) > LISTED:
        return lambda index: make(testmatch_openings.draw(f"{seed}/dfrc/{index}") % len(listed))
    order = testmatch_openings.order(len(listed), wanted.order, seed, wanted.start)
    return lambda index: make(listed[order[index % len(order)]])


def read_book(path: pathlib.Path, kind: switches.Kind, plies: int | None) -> list[contract.Opening]:
    """Read a book, compressed with gzip or not; raise ``BookError``."""
    text = read_text(path)
    return openings.parse(text, "epd" if kind == "epd" else "pgn", plies, str(path))


def read_text(path: pathlib.Path) -> str:
    """Read a text file, by gzip when it is compressed; raise ``BookError``."""
    try:
        content = bounds.content(path, bounds.BOOK_BYTES)
    except bounds.DAMAGED as error:
        raise errors.BookError(f"{path}: cannot be read: {error}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # older PGN collections
