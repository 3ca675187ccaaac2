"""``farm serve-gateway``: the door for remote workers of test matches, as a process."""

from __future__ import annotations

import click

from orchestrator.broadcast.web import connection_limits, server
from orchestrator.commands import common, serve_web, services
from orchestrator.common import logs
from orchestrator.engines import sources
from orchestrator.gateway import app, desk
from orchestrator.ledger import batches, worker_tokens

PORT = 8090
LEASE_SECONDS = 600.0  # s: a worker that is silent for so long loses its games


@click.command("serve-gateway")
@services.address(PORT)
@click.option(
    "--lease-seconds",
    type=click.FloatRange(1, 86_400),
    default=LEASE_SECONDS,
    show_default=True,
    help="A worker that is silent for so long loses its games; they are dealt again.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy's address or network; may be repeated; default: 127.0.0.1 and ::1."
    " It says whose a request is.",
)
def serve_gateway(host: str, port: int, lease_seconds: float, proxies: tuple[str, ...]) -> None:
    """Serve remote workers: deal them games of test matches, check and record results.

    Workers connect by `farm work` with a token of `farm worker-token create`. The gateway speaks
    plain HTTP: put a reverse proxy with TLS in front of it (docs/workers.md). It stores nothing:
    it may be stopped and started at any time, and several may run. Port 0 takes a free one.

    Example: farm serve-gateway --port 8090
    """
    logs.configure()
    listening = serve_web.listen(host, port)
    with common.open_ledger() as ledger, listening:
        tokens = worker_tokens.RedisTokens(ledger.server)
        ledger_batches = batches.RedisBatches(ledger.server)
        dealer = desk.Desk(ledger_batches, tokens, round(lease_seconds * 1000))
        store = sources.Store(common.data_directory() / "sources")
        made = app.Gateway(dealer, tokens, store).app()
        doors = connection_limits.ConnectionLimits(proxies or connection_limits.LOOPBACK)
        serving = server.make(made, host, port, doors)
        click.echo(f"farm: workers come to {serve_web.url(listening)}", err=True)
        serving.run(sockets=[listening])
