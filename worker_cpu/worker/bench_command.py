"""``farm bench-host``: measure this hall and its GPU boxes, record the figures, compare them."""

from __future__ import annotations

import contextlib
import json
import os

import click

from orchestrator.common import errors
from orchestrator.ledger import seat_store, store
from worker_cpu import settings
from worker_cpu.hall import directory as hall_directory
from worker_cpu.hall import gpu_hosts, gpu_seats
from worker_cpu.worker import fairness, test_game


@click.command("bench-host")
@click.option("--hall", "name", default="hall-1", show_default=True, help="The hall's name.")
@click.option("--record", is_flag=True, help="Record the figures: from now on they are the band.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def bench_host(name: str, *, record: bool, as_json: bool) -> None:
    """Measure this host and its GPU boxes, and compare with what was recorded.

    Speed and signature of each host, round trip, jitter and clock offset of each box. The
    hall does the same before the first game of every event, and is held when a host is out
    of its band. Run it on the hall's host, while no game runs there. Exit code 5: out of band.

    Example: farm bench-host --record
    """
    environment = {"FARM_REDIS_URL": test_game.NOWHERE, **os.environ, "FARM_HALL": name}
    configured = settings.from_environment(environment)
    boxes = gpu_hosts.load(configured.boxes, configured.dead_man_seconds)
    directory = hall_directory.HallDirectory(configured.directory)
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(store.connect(configured.redis_url))
        if stack.enter_context(directory.locked(test_game.LOCK_SECONDS)) is None:
            raise errors.RefusedError(f"a game runs in {name}; measure while none does")
        now = fairness.measure(
            configured, gpu_seats.GpuSeats(seat_store.RedisSeats(ledger.server), boxes)
        )
    before = fairness.recorded(configured.directory)
    if record:
        fairness.keep(configured.directory, now)
    wrong = [] if record or before is None else fairness.problems(before, now)
    if as_json:
        figures = now.model_dump(mode="json")["hosts"]
        report = {"hosts": figures, "recorded": record or before is not None, "out_of_band": wrong}
        click.echo(json.dumps(report, indent=2))
    else:
        for host in now.hosts.values():
            click.echo(str(host))
        _tell_band(record=record, recorded=before is not None, wrong=wrong)
    if wrong:
        raise errors.HostError("out of band: " + "; ".join(wrong))


def _tell_band(*, record: bool, recorded: bool, wrong: list[str]) -> None:
    if record:
        click.echo("recorded: every event begins only while the hosts are like this")
    elif not recorded:
        click.echo("nothing is recorded yet: farm host bench --record")
    elif not wrong:
        click.echo("all within the recorded band")
