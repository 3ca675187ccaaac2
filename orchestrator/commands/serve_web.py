"""``farm serve-web``: the broadcast as a process: page, read API, TCEC's and Lichess' feeds."""

from __future__ import annotations

import contextlib
import pathlib
import socket
from typing import Final

import click

from orchestrator.broadcast.forecast import settings as outlook
from orchestrator.commands import common, paths, rate, services
from orchestrator.common import errors, logs
from orchestrator.ledger import kibitz_store

BACKLOG = 2_048  # connections that wait while all others are served
PORT = 8080  # one of the ports that Lichess' broadcaster reads from
UDP = "a UDP port, or ADDRESS:PORT as 0.0.0.0:16061 or [::]:16061"
EVERY: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared only
LISTENING = "the descriptor of a listening socket that this process inherits"


def listen(host: str, port: int, option: str = "--host or --port") -> socket.socket:
    """Return a socket that listens; raise ``HostError``, naming ``option``, where none can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise services.taken("web server", host, port, error, option) from error
    return listening


def datagrams(host: str, port: int) -> socket.socket:
    """Return a UDP socket; raise ``HostError`` where the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.settimeout(0)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise services.taken("feed for TLCS", host, port, error, "--tlcs") from error
    return opened


def udp_address(text: str, host: str) -> tuple[str, int]:
    """Return address and port of ``[ADDRESS:]PORT``; raise ``UsageError`` for other words."""
    before, _, number = text.strip().rpartition(":")
    port = int(number) if number.isascii() and number.isdigit() else 0
    if not 0 < port < 65_536:
        raise errors.UsageError(f"--tlcs: found {text!r}; allowed: {UDP}")
    return before.strip("[]") or host, port


def inherited(fd: int) -> socket.socket:
    """Return the socket of a descriptor; raise ``UsageError`` where none listens there."""
    try:
        listening = socket.socket(fileno=fd)
    except OSError as error:
        raise errors.UsageError(f"--fd {fd}: {error.strerror}; allowed: {LISTENING}") from error
    if not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listening.detach()  # it is not ours to close
        raise errors.UsageError(f"--fd {fd}: it does not listen; allowed: {LISTENING}")
    listening.set_inheritable(False)
    return listening


@click.command("serve-web")
@services.address(PORT)
@click.option(
    "--fd",
    type=click.IntRange(3),
    help="Serve the listening socket inherited as this descriptor, not --host and --port.",
)
@paths.feeds
@paths.archive
@paths.tests
@click.option("--no-tests", is_flag=True, help="Show no test matches.")
@click.option(
    "--forecast",
    "runs",
    type=click.IntRange(0, 10_000),
    default=outlook.RUNS,
    show_default=True,
    help="Seasons played for the forecast; 0 shows none.",
)
@click.option(
    "--families",
    type=click.Path(path_type=pathlib.Path),
    metavar="FILE",
    help="For the rating list: a family's name, and the names of its versions (TOML).",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy's address or network; may be repeated; default: 127.0.0.1 and ::1."
    " It says whose a request is, and is not held to one spectator's connections.",
)
@click.option(
    "--public-url",
    default="",
    envvar="FARM_PUBLIC_URL",
    metavar="URL",
    help="The page's address as spectators type it, for the links in PGN and feeds"
    " (FARM_PUBLIC_URL); default: what each request calls this server.",
)
@click.option(
    "--tlcs",
    default="",
    envvar="FARM_TLCS",
    metavar="[ADDRESS:]PORT",
    help="Serve viewers of TLCS too, at this UDP port (FARM_TLCS); default address: --host.",
)
@click.option(
    "--eager",
    is_flag=True,
    help="Compute ratings and forecast at normal priority: for hosts that are always busy.",
)
def serve_web(
    host: str,
    port: int,
    fd: int | None,
    feeds: pathlib.Path,
    archive: pathlib.Path,
    tests: pathlib.Path,
    runs: int,
    families: pathlib.Path | None,
    *,
    eager: bool,
    no_tests: bool,
    proxies: tuple[str, ...],
    public_url: str,
    tlcs: str,
) -> None:
    """Serve the public live page, the read API, and TCEC's and Lichess' feeds.

    Reads journal, plies, archive and test matches, changes nothing, and may be stopped and
    started at any time: the season never waits for it. Ratings and forecasts are computed by a
    background process of low priority. Runs until stopped; port 0 takes a free one.

    Example: farm serve-web --host 0.0.0.0 --port 8080
    """
    from orchestrator.broadcast import test_matches  # noqa: PLC0415 - structures of the web
    from orchestrator.broadcast.web import (  # noqa: PLC0415 - the web's libraries
        app,
        connection_limits,
        server,
    )

    logs.configure()
    services.shorten_pauses()
    computed = outlook.Settings(runs, rate.families_of(families), humble=not eager)
    listening = listen(host, port) if fd is None else inherited(fd)
    with common.open_ledger() as ledger, listening, contextlib.ExitStack() as opened:
        at = udp_address(tlcs, host) if tlcs else None
        viewers = opened.enter_context(datagrams(*at)) if at else None
        comments = kibitz_store.RedisKibitzing(ledger.server)
        matches = test_matches.Place(tests, test_matches.RedisEvidence(ledger))
        made = app.create(
            ledger,
            archive,
            feeds,
            computed,
            comments,
            public_url,
            viewers,
            None if no_tests else matches,
        )
        serving = server.make(
            made,
            host,
            port,
            connection_limits.ConnectionLimits(proxies or connection_limits.LOOPBACK),
        )
        click.echo(f"farm: the live page is at {url(listening)}{from_others(listening)}", err=True)
        serving.run(sockets=[listening])


def url(listening: socket.socket) -> str:
    """Return the address of the page that a listening socket serves, for this computer."""
    host, port = listening.getsockname()[:2]
    return f"http://{EVERY.get(host, host)}:{port}/"


def from_others(listening: socket.socket) -> str:
    """Say where other computers find the page of a socket that listens to all, '' to none."""
    host, port = listening.getsockname()[:2]
    if host not in EVERY:
        return ""
    return f" (for other computers http://{socket.gethostname()}:{port}/, or this one's address)"
