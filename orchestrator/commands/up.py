"""``farm up``: the whole farm on one machine: Redis, orchestrator, one hall's worker, the page.

Everything it starts it also ends. What it leaves behind is the data directory: started
again on the same one, the farm goes on where its journal ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import pathlib
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

import click
import rich.console

from orchestrator.commands import (
    common,
    launch,
    programs,
    serve_web,
    tables,
    up_screen,
)
from orchestrator.common import errors, processor
from orchestrator.ledger import address, embedded_redis, services, store
from orchestrator.ops import supervisor
from orchestrator.season.file import load
from orchestrator.season.fold import state

LOOK_SECONDS = 0.5  # s: between two looks at the processes and the season
WEB_HOST = "127.0.0.1"  # the page of one's own machine; `farm serve-web` serves the world
USUAL_DATA = ".farm"  # where commands look for a farm that nothing else names
READERLESS = frozenset({errno.EPIPE, errno.EIO})  # of a pipe, of a terminal that is closed
QUICK_SECONDS = 10.0  # s: how long a process may take to end when no game is waited for


@dataclasses.dataclass
class Farm:
    """The running processes of ``farm up``; ``redis`` where it is the farm's own.

    ``web`` shows the season; when it fails, the games go on without it (S16-15b i).
    """

    hall: str
    redis: embedded_redis.EmbeddedRedis | None
    serve: supervisor.Supervised
    worker: supervisor.Supervised
    web: supervisor.Supervised | None = None
    lanes: tuple[supervisor.Supervised, ...] = ()

    def start(self) -> None:
        """Start all."""
        self.serve.start()
        self.worker.start()
        for lane in self.lanes:
            lane.start()
        if self.web is not None:
            self.web.start()

    def keep_alive(self) -> None:
        """Start again what has ended, and say so; raise ``HostError`` for what keeps ending."""
        self._keep_deciding()
        for process in (self.worker, *self.lanes):
            _keep(process)
        self._keep_showing()

    def _keep_deciding(self) -> None:
        """Keep Redis and ``serve`` alive: the last game's result is recorded there, too."""
        if self.redis is not None and self.redis.start():
            _tell_restart("Redis", self.redis.data_dir / "redis.log")
        _keep(self.serve)

    def _keep_showing(self) -> None:
        if self.web is None:
            return
        try:
            _keep(self.web)
        except errors.HostError as error:
            click.echo(f"farm: the live page cannot be served: {error}", err=True)
            for listening in self.web.sockets:
                listening.close()  # who comes is refused, and does not wait for nobody
            self.web = None

    def stop(self, given_up: Callable[[], bool]) -> None:
        """End all: after the running game, or at once as soon as it is given up.

        Games in lanes are given up at once: they are test games, and played again.
        Redis keeps running: what became of the last game is read from it.
        """
        for lane in self.lanes:
            lane.kill()
        try:
            if not given_up():
                self.worker.signal(signal.SIGTERM)
            while not given_up() and not self.worker.wait(LOOK_SECONDS):
                self._keep_deciding()
        finally:
            self.worker.kill()  # its child dies with it, and the dead man ends the engines
            self.serve.stop(QUICK_SECONDS)
            if self.web is not None:
                self.web.stop(QUICK_SECONDS)


def _require_no_other(ledger: store.RedisLedger) -> None:
    """Raise ``RefusedError`` where another host's ``farm serve`` is at work on the same Redis."""
    report = services.read(ledger, services.SERVE, services.Serve)
    here = {"", socket.gethostname()}
    if report is None or report.host in here or common.silence(report, ledger.now_ms()):
        return
    raise errors.RefusedError(
        f"a farm is at work on {report.host} with this Redis: `farm season launch FILE` launches a"
        " season there, docs/how-to/add-and-remove-halls.md makes this machine a hall of it. For a"
        " farm of its own here unset FARM_REDIS_URL"
    )


def _keep(process: supervisor.Supervised) -> None:
    if process.keep_alive():
        _tell_restart(process.name, process.log)


def _tell_restart(name: str, log: pathlib.Path) -> None:
    """Say that a process had ended: what becomes of its game and why is asked later."""
    at = tables.moment(time.time_ns() // 1_000_000)
    click.echo(f"farm: {at}: {name} had ended and was started again; its log: {log}", err=True)


_page_port = click.option(
    "--web",
    "web_port",
    type=click.IntRange(0, 65535),
    help="The live page's port; default: 8080, or a free one where that is taken.",
)
_no_page = click.option("--no-web", is_flag=True, help="Serve no live page.")


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    envvar="FARM_DATA",
    default=USUAL_DATA,
    show_default=True,
    help="Where the farm keeps everything.",
)
@click.option("--hall", default="hall-1", show_default=True, help="The name of the hall.")
@click.option("--lane", "lanes", multiple=True, help="NAME=CORES[:MB][:BOXES], for test matches.")
@click.option("--launch", "season_file", help="Launch this season file first (or: demo).")
@click.option("--id", "season_id", help="The launched season's id; default: the file's.")
@click.option("--seed", help="The launched season's seed; default: a fresh secret one.")
@common.by_option("Who launches the season.")
@click.option(
    "--until-finished",
    is_flag=True,
    help="End when the launched season is over; without --launch the one that goes on here.",
)
@_page_port
@_no_page
@click.option("--quiet", is_flag=True, help="Print one line for each game, and no tables.")
@common.json_option
def up(
    data: pathlib.Path,
    hall: str,
    lanes: tuple[str, ...],
    season_file: str | None,
    season_id: str | None,
    seed: str | None,
    by: str,
    web_port: int | None,
    *,
    until_finished: bool,
    no_web: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the farm on this machine: Redis (unless FARM_REDIS_URL is set), serve, one worker.

    Ctrl-C, or a terminal that is closed, ends it after the running game, a second Ctrl-C (or
    SIGTERM) at once: the game is then an interruption, and goes on next time as its event's
    rules say. Logs are in the data directory. The live page is for this computer; for others
    on your network run `farm serve-web --host 0.0.0.0 --port 8081` in another terminal.

    Example: farm up --launch demo --until-finished
    """
    if no_web and web_port is not None:
        raise errors.UsageError("--no-web and --web contradict each other")
    for lane in lanes:
        supervisor.lane_of(lane)  # refused before anything is started
    loaded = load.load(launch.season_file(season_file)) if season_file else None
    data = data.absolute()
    os.environ["FARM_DATA"] = str(data)
    console = common.console(stderr=as_json)
    with (
        _unread_output_lost(),
        _page(web_port, wished=not no_web) as page,
        _redis(data) as redis,
        store.connect(_url(redis)) as ledger,
    ):
        url = _url(redis)
        if redis is None:  # else its Redis is its own: in a container the host has another name now
            _require_no_other(ledger)
        chosen = None
        if loaded is not None:
            chosen = season_id or loaded.season.id
            secret = seed or launch.fresh_seed()
            launch.start(ledger, loaded, chosen, hall, secret, common.author(ledger, by))
            programs.warn(programs.of_season(loaded))
        elif until_finished:
            chosen = _going_on(ledger)
        farm = _farm(redis, data, hall, page)
        farm.lanes = tuple(supervisor.lane(text, farm.worker, hall) for text in lanes)
        console.print(f"farm: Redis {address.masked(url)}, hall {hall}, data {data}")
        if environment := _environment(data):
            watch, status = f"{environment}farm watch", f"{environment}farm status"
            hint = f"farm: in another terminal: `{watch}`, `{status}`"
            console.print(hint, soft_wrap=True)
        if page is not None:
            console.print(_address(page, web_port))
            console.print(f"farm: the documents are at {serve_web.url(page)}docs")
        awaited = chosen if until_finished else None
        shown = up_screen.Screen(
            ledger,
            console,
            processor.Others(),
            awaited=awaited,
            data=data,
            environment=_environment(data),
            quiet=quiet,
        )
        season = run(farm, shown, awaited, console)
    if season is not None:
        up_screen.report(season, data, console, tables_shown=not quiet, as_json=as_json)
        if not as_json:
            _tell_what_next(data, console)


def _going_on(ledger: store.RedisLedger) -> str:
    """Return the only season that is not over; raise ``RefusedError`` where it is not one."""
    going = [folded.launched.id for folded in common.open_seasons(ledger) if not folded.over]
    if not going:
        raise errors.RefusedError(
            "--until-finished: no season goes on here; begin one with --launch FILE"
        )
    if len(going) > 1:
        raise errors.RefusedError(
            f"--until-finished: several seasons go on here ({', '.join(going)}); `farm up` without"
            " it plays them all, and Ctrl-C ends it"
        )
    return going[0]


@click.command()
@_page_port
@_no_page
@click.pass_context
def demo(context: click.Context, web_port: int | None, *, no_web: bool) -> None:
    """Play the bundled demo season on this machine, within a minute or two, and end.

    Four engines, those that are installed here first; the address of a live page is printed, and
    how to watch it in a terminal. It is kept in a new folder below .farm: it can be played again,
    and the last lines say how its page is seen again.

    Example: farm demo
    """
    data = pathlib.Path(USUAL_DATA) / time.strftime("demo-%Y%m%d-%H%M%S")
    context.invoke(
        up, data=data, season_file="demo", until_finished=True, web_port=web_port, no_web=no_web
    )


@contextlib.contextmanager
def _redis(data: pathlib.Path) -> Iterator[embedded_redis.EmbeddedRedis | None]:
    """Run the farm's own Redis, unless the environment names another."""
    if address.url():
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(embedded_redis.EmbeddedRedis(data / common.REDIS))
        except errors.OwnedError as error:
            raise errors.OwnedError(
                f"{error}: `{_in_data(data)}farm season launch FILE` launches a season there; for a"
                " second farm choose another data directory (--data)"
            ) from None
        yield server


def _url(redis: embedded_redis.EmbeddedRedis | None) -> str:
    return address.url() if redis is None else redis.url


@contextlib.contextmanager
def _page(wanted: int | None, *, wished: bool) -> Iterator[socket.socket | None]:
    """Listen where the live page will be, so that nobody takes the port that is told."""
    if not wished:
        yield None
        return
    with _listen(wanted) as listening:
        yield listening


def _listen(wanted: int | None) -> socket.socket:
    """Listen on the port that is wanted, else on the usual or a free one."""
    try:
        return serve_web.listen(WEB_HOST, serve_web.PORT if wanted is None else wanted, "--web")
    except errors.HostError:
        if wanted is not None:
            raise
    return serve_web.listen(WEB_HOST, 0)


def _address(page: socket.socket, wanted: int | None) -> str:
    other = wanted is None and page.getsockname()[1] != serve_web.PORT
    taken = f" (port {serve_web.PORT} is taken)" if other else ""
    return f"farm: the live page is at {serve_web.url(page)}{taken}"


def _farm(
    redis: embedded_redis.EmbeddedRedis | None,
    data: pathlib.Path,
    hall: str,
    page: socket.socket | None,
) -> Farm:
    environment = supervisor.environment(_url(redis), data, hall)
    logs = data / "logs"
    return Farm(
        hall=hall,
        redis=redis,
        serve=supervisor.Supervised(
            "serve", supervisor.serve_command(), environment, logs / "serve.log", bound=True
        ),
        worker=supervisor.Supervised(
            "worker",
            supervisor.worker_command(hall),
            environment,
            logs / f"worker-{hall}.log",
            bound=True,
        ),
        web=None
        if page is None
        else supervisor.Supervised(
            "serve-web",
            supervisor.web_on_socket(page),
            environment,
            logs / "web.log",
            (page,),
            bound=True,
        ),
    )


def _environment(data: pathlib.Path) -> str:
    """Return what must stand before a command for it to find this farm, '' if nothing."""
    return "" if address.url() else _in_data(data)


def _in_data(data: pathlib.Path) -> str:
    return "" if data == pathlib.Path(USUAL_DATA).absolute() else common.in_data(data)


def _tell_what_next(data: pathlib.Path, console: rich.console.Console) -> None:
    """Say how the page of a season that is over is seen again, and how one of your own begins."""
    again = f"`{_in_data(data)}farm up` shows page and games again; Ctrl-C ends it"
    own = "`farm season new FILE` writes a season of your own, `farm up --launch FILE` plays it"
    for line in (f"again:    {again}", f"next:     {own}"):
        console.print(line, soft_wrap=True)


class _Lasting:
    """A stream whose reader may go: what is printed from then on is lost, and ends nothing.

    In `farm up 2>&1 | tee LOG` a Ctrl-C ends ``tee``, too, and the farm has its game to end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._reader_may_go():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._reader_may_go():
            self._stream.flush()

    @contextlib.contextmanager
    def _reader_may_go(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in READERLESS:
                raise
            # What is still in its buffer is written when this process ends, and must not fail then.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextlib.contextmanager
def _unread_output_lost() -> Iterator[None]:
    """Let nothing that is printed inside the block fail because nobody reads it any more."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Lasting(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Ending:
    """What the person at the terminal asked for by signals; it is read between two steps.

    A signal only sets a mark. If it raised an exception instead, it could fall between reading
    a result and printing it, and the result would never be printed.
    """

    def __init__(self) -> None:
        self.asked = False  # end, after the running game where there is one
        self.give_up = False  # end at once: a second Ctrl-C, or SIGTERM

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGINT, SIGTERM and, unless ``nohup`` has it ignored, SIGHUP inside the block."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._take) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take(self, number: int, _: object) -> None:
        if number != signal.SIGHUP:  # a terminal that is closed behind a Ctrl-C is no second one
            self.give_up = self.asked or number == signal.SIGTERM
        self.asked = True


def run(
    farm: Farm,
    shown: up_screen.Screen,
    season: str | None,
    console: rich.console.Console,
) -> state.SeasonState | None:
    """Run until somebody ends it (return None) or the season is over (return its state).

    What a person waited for is printed before the last line: the result of the game that was
    running, or what becomes of it.
    """
    ending = _Ending()
    with ending.listening():
        with contextlib.suppress(errors.LedgerAwayError):
            shown.look()  # what was there before the first game
        try:
            farm.start()
            finished = _watch(farm, shown, season, ending)
        except BaseException:
            ending.give_up = True
            raise
        finally:
            if ending.asked and not ending.give_up:
                console.print("ending after the running game; Ctrl-C again gives it up")
            farm.stop(lambda: ending.give_up)
            shown.tell_last_game(farm.hall)
            console.print(f"farm: everything is stopped{shown.how_it_goes_on()}", soft_wrap=True)
    return finished


def _watch(
    farm: Farm, shown: up_screen.Screen, season: str | None, ending: _Ending
) -> state.SeasonState | None:
    """Keep the farm alive until somebody ends it (None) or the season is over (its state)."""
    while not ending.asked:
        farm.keep_alive()
        with contextlib.suppress(errors.LedgerAwayError):
            shown.look()
        finished = shown.finished(season)
        if finished is not None:
            return finished
        time.sleep(LOOK_SECONDS)
    return None
