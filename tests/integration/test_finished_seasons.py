"""What a farm's processes ask of Redis for seasons that are over and archived: nothing."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import theatre

from orchestrator import contract
from orchestrator.commands import common
from orchestrator.ledger import embedded_redis, restoring, store
from orchestrator.metrics import collector
from orchestrator.notify import outbox, runner, settings

JOURNAL = theatre.simulated("demo").journal
FEW, MANY = 6, 9  # seasons; the exporter shows the latest five


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


def test_finished_seasons_cost_no_process_a_command(tmp_path: pathlib.Path) -> None:
    """Page, notices, exporter and ``farm status``, beside few and beside many finished seasons."""
    counted = []
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as server,
        store.connect(server.url) as ledger,
    ):
        for seasons in (FEW, MANY):
            for number in range(len(ledger.seasons()), seasons):
                finished(ledger, f"s{number}")
            assert len(ledger.resting()) == seasons
            counted.append(commands_of_a_pass(ledger, tmp_path / str(seasons)))
        assert counted[0] == counted[1]
        draft = contract.Draft("paused", {"name": "ann", "reason": "too late"})
        ledger.append("s1", ledger.last("s1"), [draft], "test")
        assert "s1" not in ledger.resting(), "it has grown"
        ledger.raise_epoch(2)
        assert not ledger.resting(), "a restore compares all of them again"
