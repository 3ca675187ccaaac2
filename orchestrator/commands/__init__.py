"""The ``farm`` command group: ``celery -A orchestrator farm …`` and the program ``farm``.

This module is imported by every ``celery`` command, so it imports click alone and loads
a command only when it is called or listed. Commands that play games are registered by
the halls' package under the entry-point group ``farm.commands``.

Exit codes: 0 ok, 2 usage or wrong input, 3 refused by the present state, 4 Redis cannot
be reached, 5 the host cannot do its work.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import importlib
import importlib.util
import inspect
import os
import pathlib
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from orchestrator.commands import families

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint

COMMANDS = {
    "check": "orchestrator.commands.rules:check",
    "new": "orchestrator.commands.new:new",
    "cup": "orchestrator.commands.new:cup",
    "league": "orchestrator.commands.new:league",
    "schema": "orchestrator.commands.rules:schema",
    "completion": "orchestrator.commands.completion:completion",
    "launch": "orchestrator.commands.launch:launch",
    "serve": "orchestrator.commands.serve:serve",
    "serve-web": "orchestrator.commands.serve_web:serve_web",
    "export-site": "orchestrator.commands.export_site:export_site",
    "serve-gateway": "orchestrator.commands.serve_gateway:serve_gateway",
    "exporter": "orchestrator.commands.exporter:exporter",
    "notify": "orchestrator.commands.notify:notify",
    "hosts": "orchestrator.commands.hosts:hosts",
    "doctor": "orchestrator.commands.doctor:doctor",
    "preflight": "orchestrator.commands.doctor:preflight",
    "up": "orchestrator.commands.up:up",
    "demo": "orchestrator.commands.up:demo",
    "status": "orchestrator.commands.show:status",
    "standings": "orchestrator.commands.show:standings",
    "schedule": "orchestrator.commands.show:schedule",
    "games": "orchestrator.commands.show:games",
    "graph": "orchestrator.commands.show:graph",
    "watch": "orchestrator.commands.watch:watch",
    "console": "orchestrator.commands.console:console",
    "pause": "orchestrator.commands.operate:pause",
    "resume": "orchestrator.commands.operate:resume",
    "open-gate": "orchestrator.commands.operate:open_gate",
    "abort": "orchestrator.commands.operate:abort",
    "abandon": "orchestrator.commands.abandon:abandon",
    "drain": "orchestrator.commands.operate:drain",
    "undrain": "orchestrator.commands.operate:undrain",
    "release-hall": "orchestrator.commands.operate:release_hall",
    "decisions": "orchestrator.commands.organize:decisions",
    "decide": "orchestrator.commands.organize:decide",
    "adjudicate": "orchestrator.commands.organize:adjudicate",
    "replay": "orchestrator.commands.organize:replay",
    "void": "orchestrator.commands.organize:void",
    "withdraw": "orchestrator.commands.organize:withdraw",
    "amend": "orchestrator.commands.amend:amend",
    "flags": "orchestrator.commands.disqualify:flags",
    "dismiss": "orchestrator.commands.disqualify:dismiss",
    "disqualify": "orchestrator.commands.disqualify:disqualify",
    "import": "orchestrator.commands.importing:import_",
    "log": "orchestrator.commands.log:log",
    "test": "orchestrator.commands.test:test",
    "tune": "orchestrator.commands.tune:tune",
    "stop-test": "orchestrator.commands.steer_test:stop",
    "change-test": "orchestrator.commands.steer_test:change",
    "approve-test": "orchestrator.commands.submitting:approve",
    "refuse-test": "orchestrator.commands.submitting:refuse",
    "waiting-tests": "orchestrator.commands.submitting:waiting",
    "keep-tests": "orchestrator.commands.keep_tests:keep_tests",
    "continue-test": "orchestrator.commands.steer_test:continue_",
    "copy-test": "orchestrator.commands.steer_test:copy",
    "import-openbench": "orchestrator.commands.move_in:import_openbench",
    "import-fishtest": "orchestrator.commands.move_in:import_fishtest",
    "show-test": "orchestrator.commands.show_test:show_test",
    "test-workers": "orchestrator.commands.test_workers:test_workers",
    "lanes": "orchestrator.commands.lanes:lanes",
    "set-aside": "orchestrator.commands.lanes:set_aside",
    # Of the workers' package; it needs no hall, so it is there whatever else is registered.
    "work": "worker_cpu.remote.command:work",
    "build": "worker_cpu.remote.build_command:build",
    "worker-token": "orchestrator.commands.worker_token:worker_token",
    "engine": "orchestrator.commands.engine:engine",
    "outcome": "orchestrator.commands.rules:outcome",
    "simulate": "orchestrator.commands.simulate:simulate",
    "acl": "orchestrator.commands.acl:acl",
    "deploy": "orchestrator.commands.deploy:deploy",
    "verify-draws": "orchestrator.commands.rules:verify_draws",
    "audit": "orchestrator.commands.audit:audit",
    "rate": "orchestrator.commands.rate:rate",
    "ratings": "orchestrator.commands.ratings:ratings",
    "forecast": "orchestrator.commands.forecast:forecast",
    "export": "orchestrator.commands.recover:export",
    "backup": "orchestrator.commands.recover:backup",
    "restore": "orchestrator.commands.recover:restore",
    "fsck": "orchestrator.commands.fsck:fsck",
    "evidence": "orchestrator.commands.evidence:evidence",
    "trace": "orchestrator.commands.trace:trace",
    "rehearse": "orchestrator.commands.rehearse:rehearse",
}
ENTRY_POINTS = "farm.commands"
_BOARDLESS = {"completion", "rate"}  # commands that never look at a chess board
_UNIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}  # modules that Windows has not
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # a write's: they name no file
ONE_THREAD = "OPENBLAS_NUM_THREADS"  # read when numpy is loaded: its tables here are small, and
# threads that wait for each other on a busy machine cost more than they bring


class FarmGroup(click.Group):
    """A group that loads its commands late and turns the farm's errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the families, then the farm's own commands, those of installed packages last."""
        own = [*COMMANDS, *sorted(_registered())]
        alone = [name for name in own if name not in {*families.ALIASES, *families.FAMILIES}]
        return [*families.FAMILIES, *alone]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load a family, or a command by its name alone."""
        if cmd_name in families.FAMILIES:
            return families.FamilyGroup(cmd_name, families.FAMILIES[cmd_name], self)
        return self.registered(cmd_name)

    def registered(self, cmd_name: str) -> click.Command | None:
        """Load a command by its name alone; its help says commands as they are said now."""
        try:
            with _no_collections():
                command = self._load(cmd_name)
        except ModuleNotFoundError as error:
            if error.name not in _UNIX:
                raise
            from orchestrator.common import errors  # noqa: PLC0415 - keeps `celery` light

            said = " ".join(families.words_now([cmd_name]))
            raise errors.HostError(
                f"`farm {said}` runs on Linux alone ({error}); on Windows: in WSL. `rate`,"
                " `audit`, `check`, `simulate`, `forecast` and `new` run everywhere"
            ) from error
        if command is not None:
            families.renew(command)
        return command

    def _load(self, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            os.environ.setdefault(ONE_THREAD, "1")
            if cmd_name not in _BOARDLESS:
                _import_chess()
            module, _, name = COMMANDS[cmd_name].partition(":")
            command: click.Command = getattr(importlib.import_module(module), name)
            return command
        entry = _own().get(cmd_name) or _registered().get(cmd_name)
        return entry.load() if entry is not None else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List families with their commands, then the rest with a line of help each."""
        with formatter.section("Families (`farm season --help` explains one)"):
            rows = []
            for name, family in families.FAMILIES.items():
                about, verbs = family.help.splitlines()[0], ", ".join(family.verbs)
                rows.append((name, f"{about} ({'…, ' if family.base else ''}{verbs})"))
            formatter.write_dl(rows)
        names = [name for name in self.list_commands(ctx) if name not in families.FAMILIES]
        with formatter.section("Commands of the farm itself"):
            rows = [(name, self.outline(ctx, name).get_short_help_str(60)) for name in names]
            formatter.write_dl(rows)

    def outline(self, ctx: click.Context, name: str) -> click.Command:
        """Return a command with its help as its source has it; load it where that is not found."""
        if name in families.FAMILIES:
            return click.Command(name, help=families.FAMILIES[name].help)
        target = COMMANDS.get(name) or _registered()[name].value
        text = _docstring(*target.split(":"))
        if text is not None:
            return click.Command(name, help=text)
        loaded = self.get_command(ctx, name)
        return click.Command(name) if loaded is None else loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name similar ones when there is no such command.

        Words that are no UTF-8 end here: no journal could hold them.
        """
        if broken := [word for word in args if _text(word) != word]:
            ctx.fail(f"not UTF-8: {_text(broken[0])!r}")
        if args[:2] == ["check", "engine"] and len(args) > 2:
            args = ["check-engine", *args[2:]]  # `check` alone takes a season file
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None:
            import difflib  # noqa: PLC0415 - needed only for a typing error

            close = difflib.get_close_matches(
                args[0], [*self.list_commands(ctx), *families.ALIASES]
            )
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print an error of the farm as one message and exit by its code."""
        from orchestrator.common import errors, output  # noqa: PLC0415 - keeps `celery` light

        try:
            return super().invoke(ctx)
        except errors.FarmError as error:
            click.secho(f"farm: {output.plain(str(error))}", err=True, fg="red")
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.filename is None and error.errno not in _DISK:
                raise  # a reader that went away is click's to tell
            where = "a file cannot be written" if error.filename is None else _text(error.filename)
            message = f"{where}: {error.strerror}"
            click.secho(f"farm: {output.plain(message)}", err=True, fg="red")
            # No system takes such a name: it is the command line's fault, not the host's.
            mistyped = error.errno == errno.ENAMETOOLONG
            ctx.exit((errors.UsageError if mistyped else errors.HostError).exit_code)


def _docstring(module: str, function: str) -> str | None:
    """Return the help that a command's function begins with, without importing its module."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    source = pathlib.Path(spec.origin).read_text(encoding="utf-8")
    begin = rf'^def {function}\(.*?:\n    r?"""(?P<text>.*?)(?<!\\)"""'
    match = re.search(begin, source, re.DOTALL | re.MULTILINE)
    return None if match is None else inspect.cleandoc(match["text"].replace(r"\b", "\b"))


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the garbage collector out of imports: they leave next to nothing that it could free.

    It looked through all that had been imported some 170 times, a seventh of a command's start.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _import_chess() -> None:
    """Import the chess library on a stack of its own, which is shallow.

    Its tables take 50,000 calls at import. CPython (3.11 to 3.13) keeps its frames in chunks of
    16 KB: where the imports above it happen to end just below the end of a chunk, each of these
    calls maps and unmaps memory, and a command starts a second later. A thread begins a chunk.
    """
    if "chess" not in sys.modules:
        thread = threading.Thread(target=importlib.import_module, args=("chess",))
        thread.start()
        thread.join()


def _text(word: object) -> str:
    """Return a word of the system's as text that can be shown."""
    return str(word).encode(errors="replace").decode()


@functools.cache
def _own() -> dict[str, EntryPoint]:
    """Return the halls' commands as the farm's own package names them: one file is read."""
    import importlib.metadata  # noqa: PLC0415 - keeps `celery` commands light

    try:
        entry_points = importlib.metadata.distribution("tournament-farm").entry_points
    except importlib.metadata.PackageNotFoundError:  # it runs from its source
        return {}
    return {entry.name: entry for entry in entry_points if entry.group == ENTRY_POINTS}


def _registered() -> dict[str, EntryPoint]:
    """Return the commands of all installed packages: the files of each are looked at."""
    import importlib.metadata  # noqa: PLC0415 - keeps `celery` commands light

    return {entry.name: entry for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)}


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001 - click's signature
    if asked and not ctx.resilient_parsing:
        from orchestrator.common import version  # noqa: PLC0415 - keeps `celery` light

        click.echo(f"farm, version {version.described()}")
        ctx.exit()


@click.group(name="farm", cls=FarmGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show version, checksum of the files and commit, and exit.",
)
def farm() -> None:
    """Run chess-engine championships: launch a season, watch it, decide.

    \b
    Examples:
    farm up --launch demo --until-finished    play the demo season on this machine
    farm season launch my-season.toml         start a season on a running farm
    farm match stockfish ethereal-chess       play two engines, without a farm
    farm watch                                the game in flight, in this terminal

    The farm's Redis is taken from FARM_REDIS_URL, else from the data directory of a
    running `farm up` (FARM_DATA, default ./.farm). Documents that texts name (docs/...)
    are in the checkout, below /docs on the page of `farm up`, and among the files that
    `farm deploy export DIR` writes.
    """  # noqa: D301 - click reads the backspace as "do not wrap"


DIALECTS = {"fastchess": "fastchess", "fast-chess": "fastchess", "cutechess": "cutechess"}


def main() -> None:
    """Run the program ``farm``: the same group without ``celery -A orchestrator``."""
    sys.exit(farm(linked(sys.argv), prog_name="farm"))


def linked(arguments: list[str]) -> list[str]:
    """Return the words of ``farm``, of ``farm match`` under the name of another match runner.

    A link such as ``fastchess`` or ``cutechess-cli`` to the program is all that scripts need.
    """
    name = os.path.basename(arguments[0])  # noqa: PTH119 - keeps `celery` commands light
    dialect = next((DIALECTS[prefix] for prefix in DIALECTS if name.startswith(prefix)), None)
    if dialect is None:
        return arguments[1:]
    return ["match", "-dialect", dialect, *(arguments[1:] or ["--help"])]
