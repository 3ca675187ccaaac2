"""Metrics of lanes: test games in flight, leases that nobody renews, games that wait."""

from __future__ import annotations

from orchestrator.ledger import lanes
from orchestrator.metrics import families


def write(sheet: families.Sheet, source: lanes.Lanes, hall: str, now_ms: int) -> None:
    """Write all samples of a hall's lanes; a hall without lanes has none."""
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
