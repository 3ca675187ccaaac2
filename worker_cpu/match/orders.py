"""From a numbered game to the referee's order: engines, clock, rules and opening."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from orchestrator import contract
from worker_cpu.match import arguments, books, engines, schedule


class Elsewhere(Protocol):
    """Seats of engines on other machines: ``hosts.Hosts``."""

    def seats(
        self, game: str, sides: Mapping[contract.Side, contract.EngineSpec]
    ) -> Mapping[contract.Side, contract.SeatAddress]:
        """Return a seat for each of a game's engines that plays elsewhere."""


class Orders:
    """Writes the orders of one match."""

    def __init__(
        self, settings: arguments.Settings, match: str, elsewhere: Elsewhere | None = None
    ) -> None:
        """Read the book; raise ``BookError`` when it cannot be played from."""
        self._settings, self._match, self._elsewhere = settings, match, elsewhere
        self._deal = books.deal(settings)
        self._books = books.Polyglot(settings)

    @property
    def openings(self) -> int | None:
        """Return how many different openings there are; ``None``: games begin at the start."""
        return self._deal.different

    def order(self, slot: schedule.Slot, attempt: int = 1) -> contract.GameOrder:
        """Return the order of a game."""
        settings = self._settings
        white, black = settings.engines[slot.white], settings.engines[slot.black]
        game = f"{self._match}-{slot.number}-{attempt}"
        sides: dict[contract.Side, contract.EngineSpec] = {
            "white": white.spec,
            "black": black.spec,
        }
        # The referee writes the PGN, unless engines' lines are to stand in it: it keeps none.
        copies = bool(settings.match_lines) and settings.pgn is not None
        same = (white.control, white.margin_ms) == (black.control, black.margin_ms)
        return contract.GameOrder(
            season="match",
            season_name="",
            site=settings.site,
            event="match",
            event_name=settings.event,
            game=game,
            number=slot.number,
            round=str(slot.round),
            white=white.spec if same else _own_clock(white),
            black=black.spec if same else _own_clock(black),
            time_control=white.control,
            time_margin_ms=white.margin_ms,
            opening=self._opening(slot),
            limits=contract.Limits(free=True),
            timeouts=settings.timeouts,
            variant=settings.variant,
            adjudication=settings.adjudication,
            journaled=False,  # a match keeps games, not plies: no clock waits for it
            recorded=copies,
            pgn=None if settings.pgn is None or copies else _style(settings),
            traffic=settings.listens,
            seats={} if self._elsewhere is None else self._elsewhere.seats(game, sides),
            shown=settings.live is not None,
            hand_on=settings.sandbox == "plain",
            # a sandbox is made for two engines: it hides each from the other
            keep=_staying(white, black) if settings.sandbox == "plain" else (),
        )

    def _opening(self, slot: schedule.Slot) -> contract.Opening:
        dealt = self._deal.opening(slot.opening)
        players = [self._settings.engines[engine] for engine in slot.engines]
        return self._books.extended(dealt, slot.opening, players)


def _style(settings: arguments.Settings) -> contract.PgnStyle:
    return contract.PgnStyle(
        minimal=settings.minimal,
        comments=settings.comment_style,
        fields=tuple(sorted(settings.fields)),
        notation=settings.notation,
    )


def _staying(white: engines.Engine, black: engines.Engine) -> tuple[contract.Side, ...]:
    sides: dict[contract.Side, engines.Engine] = {"white": white, "black": black}
    return tuple(side for side, engine in sides.items() if engine.stays)


def _own_clock(engine: engines.Engine) -> contract.EngineSpec:
    update = {"time_control": engine.control, "time_margin_ms": engine.margin_ms}
    return engine.spec.model_copy(update=update)
