"""Seasons that are over and archived, and what a farm's processes ask of Redis beside them."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import theatre

from orchestrator.commands import common
from orchestrator.ledger import restoring, store
from orchestrator.metrics import collector
from orchestrator.notify import outbox, runner, settings

JOURNAL = theatre.simulated("demo").journal


def commands_of_a_pass(ledger: store.RedisLedger, root: pathlib.Path) -> dict[str, int]:
    """Return how many commands Redis gets from a pass of each process, its start apart."""
    page = theatre.projected(ledger, root).projector  # type: ignore[arg-type]
    hook = settings.Webhook(kind="webhook", name="nobody", url="http://127.0.0.1:9/")
    box = outbox.Outbox(root / "outbox.json")
    notices = runner.Runner(ledger, settings.Settings(channel=(hook,)), box)
    exporter = collector.FarmCollector(ledger, root, root)

    def compared() -> None:
        page._compared = float("-inf")
        page.look()

    passes: dict[str, Callable[[], object]] = {
        "page": compared,
        "notices": notices.once,
        "exporter": lambda: list(exporter.collect()),
        "status": lambda: common.choose(ledger, None),
    }
    client, counted = ledger.server.client, {}
    for name, once in passes.items():
        once()
        before = client.info("stats")["total_commands_processed"]
        once()
        counted[name] = client.info("stats")["total_commands_processed"] - before
    return counted


def finished(ledger: store.RedisLedger, name: str) -> None:
    """Write a season that is over and archived."""
    launched = dataclasses.replace(JOURNAL[0], data={**JOURNAL[0].data, "id": name})
    ledger.load(name, [launched, *JOURNAL[1:]])
    nothing: dict[str, str] = {}
    ledger.reindex(
        restoring.Index(name, nothing, nothing, nothing, nothing, {}, nothing, len(JOURNAL))
    )
    assert ledger.set_checked(name, ledger.run_id(), over=len(JOURNAL))
