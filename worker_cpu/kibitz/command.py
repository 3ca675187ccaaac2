"""``farm kibitz``: the command, from its options to the loop."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import socket
import threading
from collections.abc import Iterable, Sequence

import click

from orchestrator.common import errors, logs
from orchestrator.ledger import address, kibitz_store, kibitzing, store, vitals
from worker_cpu import settings
from worker_cpu.engines import mounts, sandbox
from worker_cpu.host import heartbeat as samples
from worker_cpu.kibitz import analyst, service

HASH_MB = 256  # MB: a default that harms nobody; a kibitzer of its own host takes more


@click.command()
@click.option(
    "--engine",
    "command",
    envvar="FARM_KIBITZ_ENGINE",
    required=True,
    help="The UCI engine's command line.",
)
@click.option(
    "--hall", envvar="FARM_HALL", default="hall-1", show_default=True, help="The hall to follow."
)
@click.option(
    "--desk",
    envvar="FARM_KIBITZ_DESK",
    type=click.IntRange(0, kibitzing.DESKS - 1),
    default=0,
    show_default=True,
    help="0 writes liveeval.json and data.json, 1 liveeval1.json and data1.json.",
)
@click.option(
    "--name", envvar="FARM_KIBITZ_NAME", default="", help="The name to show; default: its own."
)
@click.option(
    "--description",
    envvar="FARM_KIBITZ_DESCRIPTION",
    default="",
    help="What spectators read beside it: hardware, tables.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An engine option; may be repeated. FARM_KIBITZ_OPTIONS: one a line, or parted by ;",
)
@click.option(
    "--threads",
    envvar="FARM_KIBITZ_THREADS",
    type=click.IntRange(1),
    help="The engine's threads; default: one for each of its cores.",
)
@click.option(
    "--hash",
    "hash_mb",
    envvar="FARM_KIBITZ_HASH_MB",
    type=click.IntRange(1),
    default=HASH_MB,
    show_default=True,
    metavar="MB",
    help="The engine's hash table.",
)
@click.option(
    "--cpus",
    envvar="FARM_KIBITZ_CPUS",
    default="",
    metavar="LIST",
    help="The cores it may use, such as 8-15; default: all that this process may use.",
)
@click.option(
    "--sandbox",
    "wish",
    envvar="FARM_SANDBOX",
    default="auto",
    show_default=True,
    help="The engine's sandbox: auto, bubblewrap or plain.",
)
@click.option(
    "--reveal",
    multiple=True,
    metavar="PATH",
    help="A further file or folder that the engine may read in its sandbox; may be repeated.",
)
@click.option("--check", is_flag=True, help="Start the engine, look at the cores, and end.")
@click.option("--json", "as_json", is_flag=True, help="With --check: print JSON for programs.")
def kibitz(
    command: str,
    hall: str,
    desk: int,
    name: str,
    description: str,
    options: tuple[str, ...],
    threads: int | None,
    hash_mb: int,
    cpus: str,
    wish: str,
    reveal: tuple[str, ...],
    *,
    check: bool,
    as_json: bool,
) -> None:
    """Let an engine follow a hall's games for spectators: liveeval.json and data.json.

    It has a host, or at least cores, of its own: on a hall's cores it does not start (exit
    code 5). The Redis user `kibitzer` is enough (docs/security.md). The season never waits
    for it; it may be stopped and started at any time. Runs until ended.

    Example: farm kibitz --engine stockfish --hash 16384 --description "64 cores"
    """
    arguments = _arguments(command)
    wanted = _options(options or _listed(os.environ.get("FARM_KIBITZ_OPTIONS", "")))
    own = bind_cores(settings.cpus_of(cpus, "--cpus"))
    logs.configure()
    mounts.prefer_own_programs()
    engine = analyst.Engine(
        command=arguments,
        options=wanted,
        threads=threads or len(own),
        hash_mb=hash_mb,
        kind=sandbox.choose(sandbox.wish(wish, "--sandbox")),
        reveal=reveal,
        hidden=_farm_places(),
    )
    host = os.environ.get("FARM_HOST", socket.gethostname())
    seat = service.Seat(hall, desk, host, name, description)
    with store.connect(_redis_url()) as ledger:

        def free() -> None:
            check_cores(own, samples.boot_id(), host, vitals.read(ledger).values())

        if check:
            free()
            _report(engine, own, as_json=as_json)
            return
        desks = kibitz_store.RedisKibitzing(ledger.server)
        service.Kibitzer(ledger, desks, seat, engine, free).run(_until_signalled())


def _until_signalled() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _redis_url() -> str:
    url = address.url()
    if not url:
        raise errors.UsageError(
            "neither FARM_REDIS_URL nor FARM_REDIS_URL_FILE is set: a kibitzer needs the farm's"
            " Redis, best as its user `kibitzer` (docs/security.md)"
        )
    return url


def _farm_places() -> tuple[str, ...]:
    data = pathlib.Path(os.environ.get("FARM_DATA", ".farm")).absolute()
    return (str(data), *mounts.farm_places(os.environ, data, address.url()))


def _arguments(command: str) -> tuple[str, ...]:
    try:
        arguments = tuple(shlex.split(command))
    except ValueError as error:
        raise errors.UsageError(f"--engine: {command!r}: {error}") from error
    if not arguments:
        raise errors.UsageError("--engine: found nothing; allowed: a command line, as stockfish")
    return arguments


def _listed(text: str) -> tuple[str, ...]:
    """Return the options of an environment variable, one a line or parted by semicolons."""
    return tuple(part.strip() for part in text.replace("\n", ";").split(";") if part.strip())


def _options(pairs: Sequence[str]) -> dict[str, str]:
    by_name = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise errors.UsageError(f"--option: found {pair!r}; allowed: NAME=VALUE, as Contempt=0")
        by_name[name.strip()] = value.strip()
    return by_name


def _report(engine: analyst.Engine, own: frozenset[int], *, as_json: bool) -> None:
    """Start the engine once and say what would kibitz."""
    with analyst.Analyst(engine) as started:
        report = {
            "engine": started.name,
            "chess960": started.offers_chess960(),
            "cores": sorted(own),
            **{key: getattr(engine, key) for key in ("threads", "hash_mb", "kind")},
        }
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    click.echo(
        f"{report['engine']} answers ({engine.kind}), {engine.threads} threads,"
        f" {engine.hash_mb} MB of hash, on cores {_cpu_list(own)}: none is a hall's"
    )


def bind_cores(wanted: frozenset[int]) -> frozenset[int]:
    """Bind this process, and so its engine, to cores; return those it has.

    No wish means all that it may use. Raise ``HostError`` for cores that it may not use.
    """
    allowed = frozenset(os.sched_getaffinity(0))
    if not wanted <= allowed:
        raise errors.HostError(
            f"--cpus: found {_cpu_list(wanted)}; this process may use {_cpu_list(allowed)}:"
            " correct it, or AllowedCPUs= of its unit"
        )
    if wanted:
        os.sched_setaffinity(0, wanted)
    return wanted or allowed


def check_cores(
    own: frozenset[int], boot: str, host: str, heartbeats: Iterable[vitals.Vitals]
) -> None:
    """Raise ``HostError`` when a hall or a GPU box on this machine has one of these cores.

    Halls report their cores with every heartbeat (``ledger.vitals``). Which of them are on
    this machine the kernel's boot id says, whatever the hosts are called; without one their
    names. A hall that is bound to no cores has all of its machine.
    """
    for seen in heartbeats:
        here = seen.boot == boot if seen.boot and boot else seen.host == host
        if here and (not seen.cores or own & set(seen.cores)):
            raise errors.HostError(_cores_refusal(seen, own))


def _cores_refusal(seen: vitals.Vitals, own: frozenset[int]) -> str:
    occupant = f"hall {seen.hall}" if seen.hall else f"{seen.role} {seen.host}"
    remedy = (
        "run the kibitzer on another host, or give it cores (--cpus, FARM_KIBITZ_CPUS) that are"
        f" not the hall's; a host that is gone: `farm host forget {seen.host}`"
    )
    if not seen.cores:
        return (
            f"{occupant} is on this machine and bound to no cores (FARM_ENGINE_CPUS and"
            f" FARM_REFEREE_CPUS are not set): a kibitzer would disturb its games; {remedy}"
        )
    shared = _cpu_list(own & set(seen.cores))
    return (
        f"{occupant} plays on this machine's cores {shared}, which the kibitzer would use; {remedy}"
    )


def _cpu_list(cpus: Iterable[int]) -> str:
    """Write cores as ``0,1,5``."""
    return ",".join(map(str, sorted(cpus)))
