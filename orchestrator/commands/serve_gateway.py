"""``farm serve-gateway``: the door for remote workers of test matches, as a process."""

from __future__ import annotations

import click

from orchestrator.broadcast.web import connection_limits, server
from orchestrator.commands import common, serve_web, services
from orchestrator.common import logs, numbers
from orchestrator.engines import sources
from orchestrator.gateway import app, desk, doors, pages, watching
from orchestrator.ledger import batches, live_games, sessions, worker_tokens
from orchestrator.testmatch import catalogue

PORT = 8090
LEASE_SECONDS = 600.0  # s: a worker that is silent for so long loses its games


@click.command("serve-gateway")
@services.address(PORT)
@click.option(
    "--lease-seconds",
    type=numbers.NumberRange(1, 86_400),
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
        offered = catalogue.Catalogue(common.data_directory())
        dealer = desk.Desk(ledger_batches, tokens, round(lease_seconds * 1000), offered)
        store = sources.Store(common.data_directory() / "sources")
        at_the_door = doors.Doors(tokens, sessions.RedisSessions(ledger.server))
        live = live_games.RedisLiveGames(ledger.server)
        watched = watching.Watched(common.matches_folder(), ledger_batches, live)
        for_browsers = pages.Pages(dealer, tokens, at_the_door, watched)
        made = app.Gateway(dealer, at_the_door, store, for_browsers).app()
        limits = connection_limits.ConnectionLimits(proxies or connection_limits.LOOPBACK)
        serving = server.make(made, host, port, limits)
        there = serve_web.url(listening)
        click.echo(f"farm: workers come to {there}", err=True)
        click.echo(f"farm: authors log in at {there.rstrip('/')}{pages.HOME}", err=True)
        serving.run(sockets=[listening])
