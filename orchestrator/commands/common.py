"""What all commands share: the way to the ledger, the choice of a season, the audit options."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import pathlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import click

from orchestrator import contract
from orchestrator.commands import shell_offers
from orchestrator.common import errors, output
from orchestrator.ledger import address, api, embedded_redis, farm_journal, services, store
from orchestrator.season import current
from orchestrator.season.file import wording
from orchestrator.season.fold import entries, state
from orchestrator.serve import archive

Function = TypeVar("Function", bound=Callable[..., Any])

APPEND_TRIES = 20  # a journal that grows between reading and writing is read again
REDIS = embedded_redis.FOLDER
data_directory = embedded_redis.data_directory


def redis_url() -> str:
    """Return the farm's Redis: that of the environment, else that of a running ``farm up``."""
    if url := address.url():
        return url
    if (running_url := embedded_redis.running_here()) is not None:
        return running_url
    nowhere = f"no Redis is known: FARM_REDIS_URL is not set and no farm runs on {data_directory()}"
    if below := _running_below():
        commands = " or ".join(f"`{in_data(folder)}farm ...`" for folder in below)
        raise errors.LedgerUnreachableError(f"{nowhere}; one runs below it, for {commands}")
    raise errors.LedgerUnreachableError(
        f"{nowhere}; start one with `farm up`, or set FARM_REDIS_URL or FARM_DATA"
    )


def _running_below() -> list[pathlib.Path]:
    """Return the folders of the data directory on which farms run: each demo has one of its own."""
    folders = sorted(data_directory().glob(f"*/{REDIS}"))
    with contextlib.suppress(OSError):  # it is another user's
        return [
            folder.parent for folder in folders if embedded_redis.running_url(folder) is not None
        ]
    return []


def in_data(folder: pathlib.Path) -> str:
    """Return what stands before a command for it to find the farm on a data directory."""
    return f"FARM_DATA={shlex.quote(str(folder))} "


def matches_folder() -> pathlib.Path:
    """Return where this machine keeps its test matches."""
    return data_directory() / "tests"


def match_folder(match: str) -> pathlib.Path:
    """Return where this machine keeps a test match."""
    return matches_folder() / match


@contextlib.contextmanager
def open_ledger() -> Iterator[store.RedisLedger]:
    """Open the ledger for one command and close it afterwards."""
    ledger = store.connect(redis_url())
    try:
        yield ledger
    finally:
        ledger.close()


def fold(ledger: store.RedisLedger, season: str) -> state.SeasonState:
    """Fold a season's journal up to now; raise ``RefusedError`` when there is none."""
    folded = state.SeasonState(season)
    _catch_up(ledger, season, folded)
    if not folded.seq:
        launched = ", ".join(ledger.seasons()) or "none"
        raise errors.RefusedError(f"there is no season {season!r}; launched seasons: {launched}")
    return folded


def _catch_up(ledger: store.RedisLedger, season: str, folded: state.SeasonState) -> None:
    for _ in follow(ledger, season, folded):
        pass


def follow(
    ledger: store.RedisLedger, season: str, folded: state.SeasonState
) -> Iterator[contract.Entry]:
    """Fold what was journaled since a state; yield each entry as soon as it is folded."""
    return state.follow(folded, functools.partial(ledger.read, season))


def journal(ledger: store.RedisLedger, season: str, after: int = 0) -> Iterator[contract.Entry]:
    """Yield a journal's entries after a sequence number, however many there are."""
    while batch := ledger.read(season, after):
        yield from batch
        after = batch[-1].seq


def choose(ledger: store.RedisLedger, season: str | None) -> state.SeasonState:
    """Fold the season named, else the one to be looked at (``choice.shown``)."""
    if season is not None:
        return fold(ledger, season)
    candidates = open_seasons(ledger)
    return current.shown(candidates) or candidates[-1]


def choose_open(ledger: store.RedisLedger, season: str | None) -> state.SeasonState:
    """Fold the season named, else the only one that is not over, for what changes it.

    Raise ``UsageError`` where several are open.
    """
    if season is not None:
        return fold(ledger, season)
    candidates = open_seasons(ledger)
    return current.only_open(candidates) or candidates[-1]


def several_open(ledger: store.RedisLedger) -> bool:
    """Say whether more than one season is not over: a change must name its season then."""
    return len(open_seasons(ledger)) > 1


def open_seasons(ledger: store.RedisLedger) -> list[state.SeasonState]:
    """Fold all seasons that are not over, else the latest; one that is damaged is passed over."""
    seasons = ledger.seasons()
    if not seasons:
        for name, reason in (ledger.alarms() or emptied(seasons)).items():
            raise errors.LedgerDamagedError(f"season {name}: {reason}")
        raise errors.RefusedError("no season has been launched; see `farm season launch --help`")
    going, resting = [], ledger.resting()
    for name in seasons:
        if name in resting:
            continue
        try:
            folded = None if _over(ledger, name) else fold(ledger, name)
        except errors.FarmError as error:
            skip(name, error)
        else:
            if folded is not None and not folded.over:
                going.append(folded)
    return going or [fold(ledger, seasons[-1])]


def skip(season: str, error: errors.FarmError) -> None:
    """Say that a season cannot be read and is left out; raise an error of Redis as a whole."""
    if errors.is_outage(error):
        raise error
    text = f"farm: season {season} was skipped: {error}"
    click.secho(output.plain(text), err=True, fg="red")


def _over(ledger: store.RedisLedger, season: str) -> bool:
    """Say whether a journal's last entry ends its season: nothing of it has to be folded then."""
    last = ledger.read(season, ledger.last(season) - 1, 1)
    return bool(last) and last[0].kind in entries.ENDS


def emptied(launched: Sequence[str]) -> dict[str, str]:
    """Return the seasons that this host's archive has and Redis has not, with what to do.

    ``farm serve`` publishes the same as an alarm; this is for the time when it does not run.
    """
    if address.url() and "FARM_DATA" not in os.environ:
        return {}  # a farm elsewhere: what is in this folder may be another one's
    folder = data_directory() / "archive"
    try:
        gone = [name for name in archive.journals(folder) if name not in {*launched, api.FARM}]
    except OSError:
        return {}  # it is another host's, or another user's
    reason = (
        f"{folder} has this season, Redis does not know it: Redis was emptied, or is another one."
        " Stop `farm serve` if it runs, then `farm restore` brings it back"
    )
    return dict.fromkeys(gone, reason)


def silence(report: services.Serve | None, now_ms: int) -> str:
    """Say that no ``farm serve`` is at work, by its last report; '' where one is, or never was."""
    silent = 0.0 if report is None else (now_ms - report.at_ms) / 1000
    if report is None or silent <= services.SILENT_SECONDS:
        return ""
    where = f" on {report.host}" if report.host else ""
    return (
        f"no `farm serve` has been at work for {wording.duration(silent)}: nothing is decided and"
        f" no game offered. The last one ran{where}; start `farm up` there again, on hosts"
        " `sudo systemctl start farm-serve`"
    )


def listed(text: str) -> tuple[str, ...]:
    """Read the words of an option that takes several: A,B,C."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def author(ledger: store.RedisLedger, name: str) -> str:
    """Return who is written into the journal: the name given and the Redis user behind it."""
    return f"{name}@{ledger.whoami()}"


def append_farm(
    ledger: store.RedisLedger, draft: contract.Draft, by: str, effects: Sequence[api.Effect] = ()
) -> None:
    """Append one fact to the farm's own journal, whatever its end is by now."""
    farm_journal.append(ledger, draft, by, effects)


def append_season(
    ledger: store.RedisLedger,
    folded: state.SeasonState,
    drafts: Callable[[state.SeasonState], Sequence[contract.Draft]],
    by: str,
    effects: Callable[[state.SeasonState], Sequence[api.Effect]],
) -> state.SeasonState:
    """Append what ``drafts`` makes of a season's state, brought up to date; return that state."""
    season = folded.launched.id
    for _ in range(APPEND_TRIES):
        folded.require_not_abandoned()
        reply = ledger.append(season, folded.seq, drafts(folded), by, effects(folded))
        if isinstance(reply, api.Appended):
            return folded
        _catch_up(ledger, season, folded)
    raise errors.RefusedError(f"the journal of {season} grows too fast to write to it; try again")


def change_season(
    ledger: store.RedisLedger,
    season: str | None,
    change: Callable[[state.SeasonState], Sequence[contract.Draft]],
    by: str,
    *,
    dry_run: bool,
    effects: Callable[[state.SeasonState], Sequence[api.Effect]] = lambda _: (),
    unoffered: bool = False,
) -> state.SeasonState:
    """Journal a change with its effects, checked against the present state in a dry run too.

    ``unoffered`` takes the hall's offer back first, so that no game can begin that the
    change concerns. Return the state before the change.
    """
    chosen = choose_open(ledger, season)
    chosen.require_not_abandoned()
    change(chosen)
    if dry_run:
        return chosen
    if unoffered:
        ledger.withdraw(chosen.hall, chosen.launched.id)
    return append_season(ledger, chosen, change, author(ledger, by), effects)


# -- options -----------------------------------------------------------------------

json_option = output.json_option


def season_argument(function: Function) -> Function:
    """Add the optional argument SEASON, which ``--season`` may name as well."""

    @functools.wraps(function)
    def call(*context: Any, season: str | None, season_named: str | None, **options: Any) -> Any:
        if season and season_named and season != season_named:
            raise errors.UsageError(f"SEASON {season} or --season {season_named}: name one season")
        return function(*context, season=season or season_named, **options)

    named = click.option(
        "--season",
        "season_named",
        callback=no_file,
        shell_complete=shell_offers.seasons,
        help="The same as SEASON.",
    )
    return cast("Function", season_word(required=False)(named(call)))


def season_word(*, required: bool) -> Callable[[Function], Function]:
    """Return the argument SEASON."""
    return click.argument(
        "season", required=required, callback=no_file, shell_complete=shell_offers.seasons
    )


def no_file(_context: click.Context, _parameter: click.Parameter, season: str | None) -> str | None:
    """Refuse a file in the place of a season's id."""
    if season is not None and season.endswith(".toml"):
        raise errors.UsageError(
            f"{season} names a file; a season has the id that it was launched with (`farm status`"
            f" lists them). A file is looked at by `farm season check {season}` and `farm season"
            f" simulate {season}`, its engines by `farm engine list --file {season}`"
        )
    return season


def season_option(function: Function) -> Function:
    """Add ``--season``, for commands whose argument is something else."""
    return click.option(
        "--season",
        callback=no_file,
        shell_complete=shell_offers.seasons,
        help="The season; default: the one that is played; to change one, the only open one.",
    )(function)


def login() -> str:
    """Return the name of who runs this; a container may run it as a number without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter since Python 3.13
        return f"uid {os.getuid()}"


def by_option(what: str) -> Callable[[Function], Function]:
    """Return ``--by``: who is written into the journal."""
    return click.option("--by", default=login, show_default="your login", help=what)


def audited(function: Function) -> Function:
    """Add ``--by``, ``--reason`` and ``--dry-run`` to a command that changes something."""
    options = (
        by_option("Who."),
        click.option("--reason", default="", help="Why; kept in the journal."),
        click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing."),
    )
    for option in reversed(options):
        function = option(function)
    return function


# -- output: in a module of its own, for commands that need nothing of the above ------

console = output.console
print_json = output.print_json
report = output.report
