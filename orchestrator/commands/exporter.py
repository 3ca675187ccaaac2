"""``farm exporter``: the farm's metrics for Prometheus, as a process."""

from __future__ import annotations

import pathlib

import click

from orchestrator.commands import common, paths, services
from orchestrator.common import logs

PORT = 9464


@click.command()
@services.address(PORT)
@paths.archive
@paths.feeds
@click.option(
    "--outbox",
    type=click.Path(path_type=pathlib.Path, dir_okay=False),
    default=lambda: _outbox(),  # noqa: PLW0108 - defined below
    help="The outbox of `farm notify run`; default: notify/outbox.json in the data directory.",
)
@click.option("--once", is_flag=True, help="Print the metrics once and end.")
def exporter(
    host: str,
    port: int,
    archive: pathlib.Path,
    feeds: pathlib.Path,
    outbox: pathlib.Path,
    *,
    once: bool,
) -> None:
    """Serve the farm's metrics to Prometheus, computed from Redis at every scrape.

    Reads only; the Redis user `exporter` is enough. While Redis is away it goes on and
    says farm_redis_up 0. Runs until stopped; port 0 takes a free one.

    Example: farm exporter --port 9464
    """
    import prometheus_client  # noqa: PLC0415 - keeps other commands light

    from orchestrator.metrics import collector  # noqa: PLC0415 - likewise

    logs.configure()
    with common.open_ledger() as ledger:
        made = collector.FarmCollector(ledger, archive, feeds, outbox)
        registry = prometheus_client.CollectorRegistry()
        registry.register(made)
        if once:
            click.echo(prometheus_client.generate_latest(registry).decode(), nl=False)
            return
        services.shorten_pauses()
        _serve(registry, host, port)


def _outbox() -> pathlib.Path:
    from orchestrator.notify import runner  # noqa: PLC0415 - keeps other commands light

    return runner.paths(common.data_directory())[1]


def _serve(registry: object, host: str, port: int) -> None:
    import prometheus_client  # noqa: PLC0415 - as above

    assert isinstance(registry, prometheus_client.CollectorRegistry)
    ended = services.until_ended()
    try:
        server, thread = prometheus_client.start_http_server(port, host, registry)
    except OSError as error:
        raise services.taken("exporter", host, port, error) from error
    click.echo(f"farm: metrics at http://{host}:{server.server_port}/metrics", err=True)
    ended.wait()
    server.shutdown()
    thread.join()
