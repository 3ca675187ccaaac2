"""``farm work``: play games of a farm's test matches on this machine, through its gateway.

One process speaks with the gateway and starts another one, the player, which plays
(``player``); between them is a directory (``spool``). Invariants:

* a finished game is on disk until the gateway has acknowledged it, whatever dies meanwhile;
* a request may be repeated: a batch is named here before its first claim, a game is counted once;
* the gateway may be away for as long as leases last: games go on, and are told when it is back;
* a host that is too busy to play gives its games back, rests, and goes on;
* this process ends in an orderly way at Ctrl-C: running games are finished (the second one drops
  them), results are told, the other games are given back.

Exit codes: 0 nothing is left to play (``--until-idle``), 2 wrong usage or a token that is refused,
3 the gateway refuses a result, 5 this host cannot play, 130 stopped.
"""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import random
import secrets
import select
import signal
import subprocess
import sys
import time
from typing import Final

import click

from orchestrator.common import bounds, errors, output
from orchestrator.contract import remote
from orchestrator.testmatch import orders as testmatch_orders
from worker_cpu import settings
from worker_cpu.engines import sandbox
from worker_cpu.match import stopping
from worker_cpu.remote import builder, engines, gateway, player, spool

LOOK_SECONDS: Final = 1.0  # s: between two looks into the spool
SEND_SECONDS: Final = 3.0  # s: results are told together, this often at most
SENT_AT_ONCE: Final = 16  # games of one request: about a megabyte
SENT_BYTES: Final = 4 << 20  # of one request, unless one game has more: the gateway takes 8 MiB
RENEWALS: Final = 3.0  # renewals of a lease before it would end
BACKOFF_SECONDS: Final = 1.0  # s: after the first failure; doubled by each further one
LONGEST_BACKOFF_SECONDS: Final = 60.0
LAST_TRIES: Final = 4  # attempts to tell what is left, before the worker ends
UNPLAYABLE_SECONDS: Final = 60.0  # s: after games that this worker cannot play
UNSHOWN_SECONDS: Final = 10.0  # s: after a game whose moves the gateway does not want
TRIES: Final = 3  # players that may end without a word and without a game between them
SETBACKS: Final = 6  # players in a row that could not play a single game: an hour with the rests
REST_SECONDS: Final = 60.0  # s: after the first of them; doubled by each further one
LONGEST_REST_SECONDS: Final = 1_800.0
STOPPED: Final = 130  # what shells say of a program that Ctrl-C ended
VARIABLE: Final = "FARM_WORKER_TOKEN"


class Worker:
    """One worker: its batches, its player, its way to the gateway."""

    def __init__(
        self,
        there: gateway.Gateway,
        kept: spool.Spool,
        own_engines: list[engines.Engine],
        options: player.Options,
        builds: builder.Builder | None,
        *,
        until_idle: bool,
    ) -> None:
        self._gateway, self._spool, self._roster, self._options = there, kept, own_engines, options
        self._builder = builds
        self._until_idle = until_idle
        self._batches: dict[str, spool.Batch] = {}
        self._renew_at: dict[str, float] = {}
        self._player: subprocess.Popen[bytes] | None = None
        self._stop = stopping.Stop()
        self._heeded = 0  # how urgent the stop was that the player was told of
        self._claiming = ""  # the name of a claim whose answer has not come
        self._ask_at = self._send_at = self._claim_at = self._play_at = self._show_at = 0.0
        self._failures = self._deaths = self._setbacks = 0
        self._waits = ""
        self._counted = self._checks = 0
        self._idle = self._greeted = False

    def run(self) -> int:
        """Play until there is a reason to stop; return the exit code. Raise ``FarmError``."""
        with self._spool.locked(), self._stop.heard() as signals:
            self._read_spool()
            try:
                while not self._done():
                    self._ask()
                    self._tend_player()
                    self._wait(signals)
                return self._leave()
            finally:
                self._end_player()
                if self._builder is not None:
                    self._builder.stop()

    @property
    def _engines(self) -> list[engines.Engine]:
        """Return the roster's engines and those that were built here."""
        return [*self._roster, *(() if self._builder is None else self._builder.engines())]

    def _say(self, text: str) -> None:
        click.echo(output.plain(text))

    def _read_spool(self) -> None:
        for batch in self._spool.batches():
            if batch.gateway != self._gateway.url:
                raise errors.RefusedError(
                    f"{self._spool.directory} has games of {batch.gateway}: finish them there, or"
                    " give this worker another directory (--spool)"
                )
            self._batches[batch.name] = batch
            self._renew_at[batch.name] = 0.0
        if self._batches:
            self._keep_programs()
            left = self._missing()
            self._say(
                f"going on with {output.some(left, 'game')} of before"
                if left
                else "going on: the results of before are all played, and are told now"
            )

    def _missing(self) -> int:
        return sum(len(self._spool.missing(batch)) for batch in self._batches.values())

    def _done(self) -> bool:
        if self._player is not None:
            return False
        if self._builder is not None and self._builder.busy and not self._stop.urgency:
            return False
        idle = self._until_idle and self._idle and not self._batches
        return idle or bool(self._stop.urgency)

    def _wait(self, signals: int) -> None:
        """Wait for a signal, for the player's end, or until it is time to look again."""
        poll = select.poll()
        poll.register(signals, select.POLLIN)
        with contextlib.ExitStack() as stack:
            builds = None if self._builder is None else self._builder.process
            for process in filter(None, (self._player, builds)):
                ended = os.pidfd_open(process.pid)
                stack.callback(os.close, ended)
                poll.register(ended, select.POLLIN)
            for fd, _ in poll.poll(LOOK_SECONDS * 1000):
                if fd == signals:
                    os.read(fd, 64)

    # -- the gateway ---------------------------------------------------------------------

    def _ask(self) -> None:
        """Tell results, renew leases, claim games; while the gateway is away, wait."""
        if time.monotonic() < self._ask_at:
            return
        try:
            if not self._greeted:
                self._greet()
            self._tell_or_renew()
            self._renew()
            self._build()
            self._claim()
            self._show()
        except gateway.AwayError as error:
            self._back_off(error)
        else:
            if self._failures:
                self._say("the gateway is back")
            self._failures = 0

    def _greet(self) -> None:
        """Say whose token this is, and what this worker plays."""
        token = self._gateway.token()
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(token["until_ms"] / 1000))
        names = ", ".join(engine.name for engine in self._roster) or "built from source"
        at_a_time = output.some(self._options.concurrency, "game")
        self._greeted = True
        self._say(
            f"worker of {token['name']} at {self._gateway.url}: {at_a_time} at a time, engines"
            f" {names}; matches {' '.join(token['matches'])}, until {until}"
        )

    def _back_off(self, error: gateway.AwayError) -> None:
        seconds = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**self._failures)
        # Workers that lost the same gateway do not come back in the same moment.
        seconds = max(seconds, error.seconds or 0.0) * random.uniform(0.75, 1.25)
        if not self._failures:
            self._say(f"the gateway is away ({error}); games go on, results are kept")
        self._failures += 1
        self._ask_at = time.monotonic() + seconds

    def _tell_or_renew(self) -> None:
        """Tell results; a batch does not run out because its gateway puts them off."""
        try:
            self._tell()
        except gateway.AwayError as error:
            if error.seconds is not None:  # it is there, and takes what is no result
                self._renew()
            raise

    def _tell(self) -> None:
        """Tell what was played; forget batches that are told whole."""
        if time.monotonic() < self._send_at and self._player is not None:
            return
        self._send_at = time.monotonic() + SEND_SECONDS
        for batch in list(self._batches.values()):
            while unsent := self._spool.unsent(batch):
                if not self._report_games(batch, _portion(unsent)):
                    break
            if batch.name in self._batches and not self._spool.missing(batch):
                self._forget(batch)

    def _report_games(self, batch: spool.Batch, unsent: list[tuple[int, bytes]]) -> bool:
        """Tell some games; return whether there is more to tell of the batch."""
        try:
            heard = self._gateway.results(batch.name, batch.token, [game for _, game in unsent])
        except gateway.BatchOverError as error:
            self._drop(batch, str(error))
            return False
        for number in heard.recorded:
            self._spool.sent(batch, number)
        if heard.recorded:
            self._setbacks = 0
            checks = sum(map(testmatch_orders.is_check, heard.recorded))
            self._checks += checks
            self._counted += len(heard.recorded) - checks
            self._say(f"{self._totals()}; {self._missing()} to play")
            self._renew_at[batch.name] = time.monotonic() + batch.lease_ms / 1000 / RENEWALS
        if heard.refused:
            number, why = next(iter(heard.refused.items()))
            self._forget(batch)
            raise errors.RefusedError(
                f"the gateway refuses {batch.match} game {number}: {why}; tell the operator, and"
                " look at this machine (its clock, memory, engines) before you start again"
            )
        if heard.over:
            self._drop(batch, heard.over)
        # A gateway that neither takes a game nor says why is asked again later, not at once.
        return bool(heard.recorded) and not heard.over

    def _totals(self) -> str:
        """Say how much was counted: checks are no games of a match."""
        checks = f", {output.some(self._checks, 'check')} answered" if self._checks else ""
        return f"{output.some(self._counted, 'game')} counted{checks}"

    def _renew(self) -> None:
        for batch in list(self._batches.values()):
            if time.monotonic() < self._renew_at[batch.name]:
                continue
            try:
                renewed = self._gateway.renew(batch.name, batch.token)
            except gateway.BatchOverError as error:
                self._drop(batch, str(error))
                continue
            self._renew_at[batch.name] = time.monotonic() + batch.lease_ms / 1000 / RENEWALS
            if renewed.abort:
                self._drop(batch, renewed.abort)

    def _show(self) -> None:
        """Tell how a running game stands, for people who look at the match; it counts for nothing.

        The gateway says how often. One that is older than this worker is told nothing.
        """
        if self._player is None or time.monotonic() < self._show_at:
            return
        stands = self._spool.shown()
        batch = None if stands is None else self._batches.get(stands["batch"])
        if stands is None or batch is None:
            return
        try:
            game = remote.GameShown.model_validate({**stands, "token": batch.token})
            seconds = self._gateway.show(game)
        except (gateway.BatchOverError, ValueError):  # it has ended meanwhile, or is too long
            seconds = UNSHOWN_SECONDS
        except errors.RefusedError:
            seconds = math.inf
        self._show_at = time.monotonic() + seconds

    def _build(self) -> None:
        """Fetch and build what the gateway asked for, beside no game; tell what became of it."""
        if self._builder is None or self._stop.urgency:
            return
        process = self._builder.process
        if process is not None:
            if process.poll() is None:
                return
            for line in self._builder.ended():
                self._say(line)
        elif self._builder.wanted and self._player is None:
            for line in self._builder.begin(self._gateway):
                self._say(line)
        self._builder.tell(self._gateway, gateway.hostname())

    def _claim(self) -> None:
        """Ask for games when all that are left are being played."""
        if self._builder is not None and self._builder.busy:
            return
        running = self._options.concurrency if self._player is not None else 0
        if self._stop.urgency or time.monotonic() < self._claim_at or self._missing() > running:
            return
        self._claiming = self._claiming or secrets.token_hex(12)
        dealt = self._gateway.claim(self._wanted(self._claiming))
        name, self._claiming = self._claiming, ""
        if dealt.builds and self._builder is not None:
            self._say(f"{dealt.match}: to build: {', '.join(build.name for build in dealt.builds)}")
            self._builder.want(dealt.match, dealt.builds)
            self._idle = False
            return
        # Others may play a check of this token's and host's, or hold all batches that it may have.
        self._idle = not dealt.orders and dealt.why.startswith(remote.NOTHING)
        if not dealt.orders:
            self._claim_at = time.monotonic() + dealt.wait_ms / 1000
            if self._player is None:  # while a game is played nobody waits
                if dealt.why != self._waits:
                    self._say(f"waiting: {dealt.why}")
                self._waits = dealt.why
            return
        self._waits = ""
        self._take(name, dealt)

    def _wanted(self, name: str) -> remote.BatchWanted:
        options = self._options
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        digests = {digest for engine in self._engines for digest in engine.files}
        return remote.BatchWanted(
            batch=name,
            host=gateway.hostname(),
            games=min(remote.MOST_GAMES, 2 * options.concurrency),
            cores=options.threads,
            memory_mb=memory // options.concurrency,
            files=tuple(sorted(digests)),
            builds=self._builder is not None,
            declined=() if self._builder is None else self._builder.declined(),
        )

    def _take(self, name: str, dealt: remote.BatchDealt) -> None:
        try:
            own_engines = self._engines
            orders = tuple(engines.localized(order, own_engines) for order in dealt.orders)
        except engines.UnplayableError as error:
            self._gateway.give_back(name, dealt.token)
            self._claim_at = time.monotonic() + UNPLAYABLE_SECONDS
            self._say(f"given back: {error}")
            return
        batch = spool.Batch(
            name, self._gateway.url, dealt.token, dealt.match, dealt.lease_ms, orders
        )
        self._spool.keep(batch)
        self._batches[name] = batch
        self._renew_at[name] = time.monotonic() + batch.lease_ms / 1000 / RENEWALS
        self._keep_programs()
        numbers = [order.number for order in orders]
        checks = sum(map(testmatch_orders.is_check, numbers))
        games = output.some(len(numbers) - checks, "game") if checks < len(numbers) else ""
        parts = (games, output.some(checks, "check") if checks else "")
        self._say(f"{batch.match}: dealt {' and '.join(filter(None, parts))}")
        if self._player is not None:
            self._spool.put(batch, numbers)

    def _forget(self, batch: spool.Batch) -> None:
        self._spool.forget(batch)
        del self._batches[batch.name], self._renew_at[batch.name]
        self._keep_programs()

    def _keep_programs(self) -> None:
        """Keep what was built for the batches that are here, however much is built beside."""
        if self._builder is not None:
            folders = (
                pathlib.PurePath(engine.command[0]).parent.name
                for batch in self._batches.values()
                for order in batch.orders[:1]  # a batch is of one match, all its games of two
                for engine in (order.white, order.black)
            )
            self._builder.play(set(folders))

    def _drop(self, batch: spool.Batch, why: str) -> None:
        """Give up a batch that the gateway no longer wants; its running games end."""
        self._say(f"{batch.match}: {why}")
        wanted = self._spool.missing(batch)
        self._forget(batch)
        if wanted and self._player is not None:
            self._player.send_signal(signal.SIGTERM)  # the games of other batches begin again

    # -- the player ----------------------------------------------------------------------

    def _tend_player(self) -> None:
        """Start the player where there are games for it, tell it to stop, and see it end."""
        if self._player is None:
            if not self._stop.urgency and self._missing() and time.monotonic() >= self._play_at:
                self._start_player()
            return
        if self._stop.urgency > self._heeded:
            drop = self._stop.urgency >= stopping.DROP
            self._player.send_signal(signal.SIGTERM if drop else signal.SIGINT)
            self._heeded = stopping.DROP if drop else stopping.FINISH
        code = self._player.poll()
        if code is not None:
            self._player = None
            self._send_at = 0.0
            self._judge(code)

    def _start_player(self) -> None:
        self._spool.empty_inbox()
        self._spool.show_none()
        for batch in self._batches.values():
            if numbers := self._spool.missing(batch):
                self._spool.put(batch, numbers)
        # In a session of its own: Ctrl-C is this process' to hear. Until the player can hear of it,
        # the signal waits.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._player = subprocess.Popen(
                self._options.command(), stdin=subprocess.DEVNULL, start_new_session=True
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _judge(self, code: int) -> None:
        """Look at how a player ended; raise ``HostError`` where another one would end so, too."""
        if code in (0, player.STOPPED) or self._stop.urgency:
            self._deaths = 0
            return
        if code == errors.HostError.exit_code and self._setbacks < SETBACKS:
            self._rest()
            return
        self._deaths += 1
        if code > 0 or self._deaths >= TRIES:
            self._leave()
            raise errors.HostError(
                f"the player ended with code {code}; what it said last stands above. Its games"
                " were given back"
            )
        self._say(f"the player was ended by signal {-code}; its games begin again")

    def _rest(self) -> None:
        """Give the games back after one that could not be played, and let the host be for a while.

        On a machine that somebody works at, cores and memory may be away for minutes.
        """
        seconds = min(LONGEST_REST_SECONDS, REST_SECONDS * 2**self._setbacks)
        self._setbacks += 1
        self._play_at = self._claim_at = time.monotonic() + seconds
        try:
            self._give_back()
        except gateway.AwayError as error:  # what is left is played here then
            self._back_off(error)
        self._say(
            "this machine could not play a game, what it said last stands above: the next try in"
            f" {seconds / 60:.0f} min"
        )

    def _end_player(self) -> None:
        """Leave no process behind, whatever has happened."""
        if self._player is not None:
            self._player.terminate()
            self._player.wait()
            self._player = None

    # -- the end -------------------------------------------------------------------------

    def _leave(self) -> int:
        """Tell what is left, give back what was not played; return the exit code."""
        for _ in range(LAST_TRIES):
            self._ask_at = 0.0
            try:
                self._give_back()
            except gateway.AwayError as error:
                self._back_off(error)
                time.sleep(max(0.0, min(5.0, self._ask_at - time.monotonic())))
            else:
                break
        if kept := sum(len(self._spool.unsent(batch)) for batch in self._batches.values()):
            self._say(
                f"{kept} results are kept in {self._spool.directory}: start the worker again before"
                " their lease ends, and they count"
            )
        self._say(f"stopped; {self._totals()}")
        return STOPPED if self._stop.urgency else 0

    def _give_back(self) -> None:
        """Tell all results, and give back what was not played; raise ``AwayError``."""
        self._send_at = 0.0
        self._tell()
        for batch in list(self._batches.values()):
            self._gateway.give_back(batch.name, batch.token)
            left = output.some(len(self._spool.missing(batch)), "game")
            self._say(f"{batch.match}: gave back {left}")
            self._forget(batch)


def _portion(unsent: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the first games that fit into one request, at least one."""
    size = 0
    for at, (_, game) in enumerate(unsent[:SENT_AT_ONCE]):
        size += len(game)
        if at and size > SENT_BYTES:
            return unsent[:at]
    return unsent[:SENT_AT_ONCE]


@click.command()
@click.argument("url")
@click.option(
    "--engines",
    "roster",
    type=click.Path(path_type=pathlib.Path, dir_okay=False),
    help="A roster file (engines.toml): the engines that this machine has.",
)
@click.option(
    "--build",
    is_flag=True,
    help="Build matches' engines from source, in the sandbox, and play them in it.",
)
@click.option(
    "--toolchain",
    "toolchains",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path),
    help="A directory outside of the system whose bin builds may use (a Rust toolchain).",
)
@click.option(
    "--token",
    type=click.Path(path_type=pathlib.Path, dir_okay=False, allow_dash=True),
    help=f"The file with your access token, - for standard input; default: {VARIABLE}.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1_024),
    help="Games at a time; default: one for each core, but one core.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 1_024),
    default=1,
    show_default=True,
    help="Cores of each game: matches whose engines have more threads are not for this worker.",
)
@click.option("--cpus", default="", metavar="LIST", help="Play on these CPUs alone, as 0-3,8.")
@click.option(
    "--sandbox",
    "confined",
    type=click.Choice(sandbox.WISHES),
    default="auto",
    show_default=True,
    help="What confines engines. plain keeps them between games, and from nothing.",
)
@click.option(
    "--spool",
    "place",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    help="Where games lie until they are told; default: ~/.local/state/farm-work.",
)
@click.option("--until-idle", is_flag=True, help="End when no match has games for this worker.")
def work(
    url: str,
    roster: pathlib.Path | None,
    token: pathlib.Path | None,
    concurrency: int | None,
    threads: int,
    cpus: str,
    confined: sandbox.Wish,
    place: pathlib.Path | None,
    toolchains: tuple[pathlib.Path, ...],
    *,
    build: bool,
    until_idle: bool,
) -> None:
    """Play games of a farm's test matches on this machine, for the gateway at URL.

    Needs outbound HTTPS and an access token from the farm's operator; no Redis and no open port.
    Only engines of the roster file are started, and only for matches that pin the same files;
    with --build also those that matches give as source, within bubblewrap.
    Ctrl-C finishes the running games and gives the others back; the second one drops them.

    Example: farm work https://farm.example.org --token anna.token --engines engines.toml
    """
    wanted = settings.cpus_of(cpus, "--cpus")
    if away := wanted - os.sched_getaffinity(0):
        raise errors.UsageError(f"--cpus: this process may not use CPU {min(away)}")
    cores = len(wanted or os.sched_getaffinity(0))
    if roster is None and not build:
        raise errors.UsageError(
            "give --engines FILE, your engines, or --build to build matches' own"
        )
    if build and confined == "plain":
        raise errors.UsageError("--build: other people's source needs --sandbox bubblewrap or auto")
    if build:
        confined = "bubblewrap"
        sandbox.choose(confined)
    kept = spool.Spool((place or _state()).absolute())
    options = player.Options(
        spool=kept.directory,
        concurrency=concurrency or max(1, (cores - 1) // threads),
        threads=threads,
        cpus=wanted,
        sandbox=confined,
    )
    there = gateway.Gateway(url, _token(token))
    own_engines = [] if roster is None else engines.read(roster)
    builds = builder.Builder(
        kept.directory, [str(toolchain.absolute()) for toolchain in toolchains]
    )
    worker = Worker(
        there, kept, own_engines, options, builds if build else None, until_idle=until_idle
    )
    if code := worker.run():
        sys.exit(code)


def _state() -> pathlib.Path:
    """Return the user's directory for what outlives a run (XDG base directories)."""
    home = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(home) / "farm-work"


def _token(path: pathlib.Path | None) -> str:
    """Read the access token; never from an argument, which every user of this machine can read."""
    if path is None:
        token = os.environ.pop(VARIABLE, "")  # the player and its engines have no use for it
    elif str(path) == "-":
        token = sys.stdin.readline()
    else:
        try:
            token = bounds.text(path, 4_096)
        except bounds.DAMAGED as error:
            raise errors.UsageError(f"--token {path}: cannot be read: {error}") from error
    if not token.strip().isascii() or not token.strip().isprintable() or not token.strip():
        raise errors.UsageError(
            f"no access token: give --token FILE, or set {VARIABLE}; the farm's operator makes one"
            " by `farm worker-token create`"
        )
    return token.strip()
