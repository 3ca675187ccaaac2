"""Metrics of halls: the lease, the game in flight, its clocks, searches and moves.

What the plies tell is counted as they are seen, so its counters begin again with the
exporter, as Prometheus expects; the picture that a hall publishes is shown, never relied on.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any, Final, Protocol

import pydantic

from orchestrator import contract
from orchestrator.arbiter import score
from orchestrator.ledger import (
    api,
    kibitz_store,
    kibitzing,
    lane_store,
    vitals,
    worker_tokens,
)
from orchestrator.metrics import families, histogram
from orchestrator.season.fold import orders
from orchestrator.season.fold import state as season_state

SIDES: Final[tuple[contract.Side, ...]] = ("white", "black")
MATE_PAWNS: Final = 100.0  # pawns: what a mate is drawn as
MOVES: Final = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0)  # s
SMALL: Final = (0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)  # s


class Source(Protocol):
    """What is read of the ledger here."""

    def slot(self, hall: str) -> api.Slot | None:
        """Return who holds a hall."""

    def holds(self, scope: str) -> dict[str, str]:
        """Return the holds of a scope."""

    def worker(self, hall: str) -> str:
        """Return the worker that opened the hall last."""

    def drained(self, hall: str, worker: str) -> str:
        """Return why this worker should end."""

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return an attempt's plies after a number."""

    def live(self, hall: str) -> str | None:
        """Return what a hall shows now."""


class Hall:
    """One hall: its lease and game now, and what its plies have told since the start."""

    def __init__(self, name: str) -> None:
        """Start without a ply."""
        self.name = name
        self._attempt = ""
        self._last: contract.PlyRecord | None = None
        self._seen = {
            "time": histogram.Histogram(MOVES),
            "overhead": histogram.Histogram(SMALL),
            "wait": histogram.Histogram(SMALL),
            "lag": histogram.Histogram(SMALL),
        }

    def write(
        self,
        sheet: families.Sheet,
        source: Source,
        season: season_state.SeasonState | None,
        slot: api.Slot | None,
        now_ms: int,
    ) -> None:
        """Write all samples of the hall; ``season`` is the one whose game is in flight."""
        held = source.holds(f"hall:{self.name}")
        sheet.set("farm_hall_playing", slot is not None, hall=self.name)
        sheet.set("farm_hall_held", bool(held), hall=self.name)
        drained = bool(vitals.drained(source, self.name))
        sheet.set("farm_hall_drained", drained, hall=self.name)
        if slot is not None:
            self._read(source, slot.attempt)
            _lease(sheet, slot, now_ms)
            if season is not None and season.running is not None:
                self._game(sheet, source, season, season.running, slot.last_move_ms)
        for name, seen in self._seen.items():
            if seen.count:
                metric = f"farm_move_{name}_seconds"
                sheet.buckets(metric, seen.buckets(), seen.total, hall=self.name)

    def _read(self, source: Source, attempt: str) -> None:
        if attempt != self._attempt:
            self._attempt, self._last = attempt, None
        after = self._last.ply if self._last else 0
        for _, payload in source.plies(attempt, after):
            try:
                self._add(contract.PlyRecord.decode(payload))
            except pydantic.ValidationError:
                return  # a later version's ply; what can be read goes on being shown

    def _add(self, ply: contract.PlyRecord) -> None:
        self._last = ply
        self._seen["time"].add(ply.think_ns / 1e9)
        self._seen["overhead"].add(ply.overhead_ns / 1e9)
        if ply.waited_ns is not None:
            self._seen["wait"].add(ply.waited_ns / 1e9)
        lag_ns = getattr(ply, "network_ns", None)
        if lag_ns is not None:
            self._seen["lag"].add(lag_ns / 1e9)

    def _game(
        self,
        sheet: families.Sheet,
        source: Source,
        season: season_state.SeasonState,
        running: season_state.Attempt,
        told_ms: int,
    ) -> None:
        order = orders.game_order(season, running.game)
        picture = _picture(source.live(self.name), running.attempt)
        labels = {"season": order.season, "event": order.event}
        names = {side: order.engine(side).id for side in SIDES}
        sheet.set("farm_game_info", 1, hall=self.name, **labels, **names)
        ply = self._last.ply if self._last else len(order.opening.moves)
        moved_ms = max(picture.get("since_ms") or 0, told_ms, running.started_ms)
        gauges: Mapping[str, float | None] = {
            "ply": ply,
            "start_timestamp_seconds": running.started_ms / 1000,
            "last_move_timestamp_seconds": moved_ms / 1000,
            "draw_rule_plies": _counter(self._last, "plies_to_draw"),
            "win_rule_plies": _counter(self._last, "plies_to_win"),
        }
        for name, value in gauges.items():
            sheet.set(f"farm_game_{name}", value, hall=self.name)
        for side in SIDES:
            self._side(sheet, side, names[side], order, picture)

    def _side(
        self,
        sheet: families.Sheet,
        side: contract.Side,
        engine: str,
        order: contract.GameOrder,
        picture: dict[str, Any],
    ) -> None:
        shown: dict[str, Any] = picture.get(side) or {}
        search: dict[str, Any] = shown.get("search") or self._searched(side)
        claimed = contract.Score(cp=search.get("cp"), mate=search.get("mate"))
        full = search.get("hashfull")
        gauges: Mapping[str, float | None] = {
            "clock_seconds": self._left(order, side, shown),
            "thinking": (self._next() or picture.get("thinking")) == side,
            "eval_pawns": pawns(score.white_view(claimed, side)),
            "depth": search.get("depth"),
            "nodes_per_second": search.get("nps"),
            "hash_full_ratio": None if full is None else full / 1000,
        }
        for name, value in gauges.items():
            sheet.set(f"farm_engine_{name}", value, hall=self.name, side=side, engine=engine)

    def _left(self, order: contract.GameOrder, side: contract.Side, shown: dict[str, Any]) -> float:
        """Return the seconds on a clock: the last ply's word, which is never behind."""
        if self._last is None:
            return float(shown.get("clock_ms", order.control(side).start_ms)) / 1000
        left = self._last.white_clock_ns if side == "white" else self._last.black_clock_ns
        return left / 1e9

    def _next(self) -> str | None:
        return None if self._last is None else {"white": "black"}.get(self._last.side, "white")

    def _searched(self, side: contract.Side) -> dict[str, Any]:
        """Return what the last ply tells, where it is this side's."""
        if self._last is None or self._last.side != side:
            return {}
        figures = self._last.model_dump(include={"depth", "nps", "hashfull"})
        return figures | (self._last.score.model_dump() if self._last.score else {})


def _picture(payload: str | None, attempt: str) -> dict[str, Any]:
    picture: dict[str, Any] = contract.loads(payload) if payload else {}
    return picture if picture.get("attempt") == attempt else {}


def _counter(ply: contract.PlyRecord | None, name: str) -> int | None:
    counters = ply.counters if ply else None
    return None if counters is None else getattr(counters, name)


def pawns(seen: contract.Score) -> float | None:
    """Return a score from White's side in pawns; a mate is ``MATE_PAWNS`` for its side."""
    if seen.mate is not None:
        return MATE_PAWNS if seen.mate > 0 else -MATE_PAWNS
    return None if seen.cp is None else seen.cp / 100


def _lease(sheet: families.Sheet, slot: api.Slot, now_ms: int) -> None:
    renewed_ms = slot.deadline_ms - slot.ttl_ms
    sheet.set("farm_lease_age_seconds", max(0, now_ms - renewed_ms) / 1000, hall=slot.hall)
    sheet.set("farm_lease_ttl_seconds", slot.ttl_ms / 1000, hall=slot.hall)
    sheet.set("farm_lease_overdue", slot.overdue, hall=slot.hall)


def write_lanes(
    sheet: families.Sheet, source: lane_store.RedisLanes, hall: str, now_ms: int
) -> None:
    """Write test games in flight, leases that nobody renews, games that wait; no lanes, none."""
    there = source.lanes_of(hall)
    if not there:
        return
    leases = {lease.lane: lease for lease in source.leases(hall)}
    for lane in there:
        lease = leases.get(lane.name)
        overdue_ms = max(0, now_ms - lease.deadline_ms) if lease else 0
        labels = {"hall": hall, "lane": lane.name}
        sheet.set("farm_lane_playing", lease is not None, **labels)
        sheet.set("farm_lane_lease_overdue_seconds", overdue_ms / 1000, **labels)
    waiting = sum(
        match.games - match.next + 1 + len(match.again)
        for match in source.matches().values()
        if hall in (match.halls or (hall,)) and any(not match.needs.unmet(lane) for lane in there)
    )
    sheet.set("farm_hall_test_games_waiting", waiting, hall=hall)


def write_tokens(
    sheet: families.Sheet, tokens: list[worker_tokens.WorkerToken], now_ms: int
) -> None:
    """Write how many access tokens are in which state; none where there is no token."""
    for state, number in collections.Counter(token.state(now_ms) for token in tokens).items():
        sheet.set("farm_worker_tokens", number, state=state)


def write_kibitzers(
    sheet: families.Sheet, source: kibitz_store.RedisKibitzing, attempts: Mapping[str, str]
) -> None:
    """Write who has a desk, and how much is told from it of the games in flight, by their hall.

    A kibitzer that hangs keeps its desk and tells nothing; one that is gone leaves its desk
    empty. A desk that was left on purpose has no sample: nobody is missed.
    """
    seated = source.kibitzers()
    for desk in set(range(kibitzing.DESKS)) - source.left():
        sheet.set("farm_kibitzer_seated", desk in seated, desk=str(desk))
    if not seated:
        return
    for hall, attempt in attempts.items():
        reports = source.marks(attempt)
        for desk in seated:
            sheet.set("farm_kibitzer_words", reports[desk], hall=hall, desk=str(desk))
