"""What a shell offers at a Tab: season files, and the seasons, events and engines of the farm.

Invariants: a completion prints nothing but offers, never fails, and asks the farm for
``PATIENCE_SECONDS`` at most: where none answers by then, nothing is offered. It reads the first
entries of one journal, so that a long season costs no more than a short one; engines that
came later are typed by hand.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Callable, Iterable, Iterator

import click
from click import shell_completion

from orchestrator.common import errors
from orchestrator.ledger import store
from orchestrator.season.fold import state

PATIENCE = "FARM_COMPLETION_SECONDS"  # in the environment: how long a Tab may take
PATIENCE_SECONDS = 2.0  # s: a person waits no longer
SHIPPED = pathlib.Path(__file__).parent.parent / "seasons"


def season_files(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[shell_completion.CompletionItem]:
    """Offer the bundled seasons and the TOML files here, else whatever path fits."""
    names = [path.stem for path in SHIPPED.glob("*.toml")]
    names += [path.name for path in pathlib.Path().glob("*.toml")]
    fitting = _fitting(sorted(set(names)), typed)
    items = [shell_completion.CompletionItem(name) for name in fitting]
    return items or [shell_completion.CompletionItem(typed, type="file")]


def seasons(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Offer the launched seasons."""
    return _fitting(_asked(lambda ledger: ledger.seasons()), typed)


def events(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Offer the events of the season named so far, else of the latest."""
    return _fitting(_asked(lambda ledger: _begun(ledger, context).events), typed)


def engines(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Offer the engines of the season named so far, else of the latest."""
    return _fitting(_asked(lambda ledger: _begun(ledger, context).engines), typed)


def _fitting(names: Iterable[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def _begun(ledger: store.RedisLedger, context: click.Context) -> state.SeasonState:
    """Return the season meant as it was launched, empty where there is none.

    Behind an option without its value click has sorted nothing yet: SEASON is among ``args``.
    """
    launched = ledger.seasons()
    typed = [*map(context.params.get, ("season", "season_named")), *context.args]
    meant = [*launched[-1:], *(season for season in launched if season in typed)]
    return state.fold(ledger.read(meant[-1], 0, 1) if meant else ())


def _asked(question: Callable[[store.RedisLedger], Iterable[str]]) -> list[str]:
    """Ask the farm, if one answers."""
    # `common` completes its own options by this module.
    from orchestrator.commands import common  # noqa: PLC0415

    with (
        contextlib.suppress(errors.FarmError, ValueError),
        _hurried(),
        common.open_ledger() as ledger,
    ):
        return list(question(ledger))
    return []


@contextlib.contextmanager
def _hurried() -> Iterator[None]:
    """End the process with nothing said when the block takes too long."""
    before = signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    seconds = float(os.environ.get(PATIENCE, PATIENCE_SECONDS))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
