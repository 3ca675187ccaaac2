"""``farm exporter``: the farm's metrics for Prometheus, as a process."""

from __future__ import annotations

import pathlib
import signal
import threading

import click

from orchestrator import errors, logs
from orchestrator.commands import common

PORT = 9464


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--archive",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    help="The archive directory; default: archive/ in the data directory.",
)
@click.option(
    "--feeds",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    help="Where TCEC's files are written; default: feeds/ in the data directory.",
)
@click.option("--once", is_flag=True, help="Print the metrics once and end.")
def exporter(
    host: str, port: int, archive: pathlib.Path | None, feeds: pathlib.Path | None, *, once: bool
) -> None:
    """Serve the farm's metrics to Prometheus, computed from Redis at every scrape.

    Reads only; the Redis user `exporter` is enough. While Redis is away it goes on and
    says farm_redis_up 0. Runs until ended; port 0 takes a free one.

    Example: farm exporter --port 9464
    """
    import prometheus_client  # noqa: PLC0415 - keeps other commands light

    from orchestrator.metrics import collector  # noqa: PLC0415 - likewise

    logs.configure()
    data = common.data_directory()
    with common.open_ledger() as ledger:
        made = collector.FarmCollector(ledger, archive or data / "archive", feeds or data / "feeds")
        told = prometheus_client.CollectorRegistry()
        told.register(made)
        if once:
            click.echo(prometheus_client.generate_latest(told).decode(), nl=False)
            return
        _serve(told, host, port)


def _serve(told: object, host: str, port: int) -> None:
    import prometheus_client  # noqa: PLC0415 - as above

    assert isinstance(told, prometheus_client.CollectorRegistry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server, thread = prometheus_client.start_http_server(port, host, told)
    except OSError as error:
        raise errors.HostError(
            f"the exporter cannot listen on {host}:{port}: {error.strerror};"
            " choose another --host or --port"
        ) from error
    click.echo(f"farm: metrics at http://{host}:{server.server_port}/metrics", err=True)
    stop.wait()
    server.shutdown()
    thread.join()
