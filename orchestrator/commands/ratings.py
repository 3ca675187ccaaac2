"""``farm ratings``: the rating list of the farm's own seasons."""

from __future__ import annotations

import collections
import json
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.audit import unpacking
from orchestrator.commands import common
from orchestrator.commands import rate as rating
from orchestrator.common import errors, files, numbers
from orchestrator.forecast import rating_list
from orchestrator.ledger import store
from orchestrator.rating import error_bars, lists
from orchestrator.season.fold import state as season_state

LOOK = 1.0  # seconds between two looks at the journals with --follow
LAST = 2  # seasons of the scope `last`: this one and the one before (S16-14b)


@click.command()
@rating.model_options
@click.option(
    "--scope",
    default="all",
    show_default=True,
    metavar="all|last|SEASON",
    help="All seasons, this and the last one, or one by its id (S16-14b).",
)
@click.option(
    "--tests",
    multiple=True,
    metavar="PGN",
    type=click.Path(path_type=pathlib.Path),
    help="Count the test games of an archive too; may be given again.",
)
@click.option("--tests-from", metavar="TC", help="Of these, only slower ones: 30+5.")
@click.option("--live", is_flag=True, help="nTCEC's live Elo instead (N1).")
@click.option(
    "--unrated",
    type=numbers.Number(),
    default=3000.0,
    show_default=True,
    help="First live Elo of an engine without one.",
)
@click.option(
    "--write", type=click.Path(path_type=pathlib.Path), help="Write the list as JSON there."
)
@click.option("--follow", is_flag=True, help="With --write: update it after each official game.")
@common.json_option
def ratings(
    scope: str,
    tests: Sequence[pathlib.Path],
    tests_from: str | None,
    unrated: float,
    write: pathlib.Path | None,
    *,
    live: bool,
    follow: bool,
    as_json: bool,
    **model: Any,
) -> None:
    """Show the rating list of the farm, from the games of all its seasons.

    Games lost on time or by a crash and annulled ones count; an engine is provisional
    until it has finished an event, and without a rating while no chain of wins and draws
    leads from it to the rest and back. Engines of one name, and of one family, are one.

    Example: farm ratings --white-advantage --draw-rate --anchor "Engine 1" --at 3500
    """
    rating.check_output(model, as_json=as_json)
    _check_purpose(model, live=live, follow=follow, write=write)
    families = rating.families_of(model["families"])
    extra = _tests(tests, tests_from)
    with common.open_ledger() as ledger:
        states = _Seasons(ledger, scope)
        if live:
            _show_live(rating_list.live_elo(states.look(), families, unrated), as_json=as_json)
            return
        kept = rating_list.RatingList(rating.settings(model, families), families)

        def listed() -> tuple[error_bars.Spread, tuple[lists.Row, ...]]:
            games = collections.Counter(rating_list.results(states.look())) + extra
            return kept.listed(games, states.look(), model["runs"])

        if write is not None:
            _write(write, listed, states, follow=follow)
            return
        spread, rows = listed()
    rating.print_list(spread, rows, model, as_json=as_json)


def _check_purpose(
    model: Mapping[str, Any], *, live: bool, follow: bool, write: pathlib.Path | None
) -> None:
    """Refuse options that the list which is asked for would leave aside."""
    if follow and write is None:
        raise errors.UsageError("--follow needs --write FILE: the list is written there")
    aside = {"--csv": model["as_csv"], "--ordo": model["as_ordo"], "--los": model["los"]}
    if live:
        aside["--write"] = write is not None
    wished = ", ".join(option for option, given in aside.items() if given)
    if wished and live:
        raise errors.UsageError(f"--live and {wished}: live Elo is a table, or --json")
    if wished and write is not None:
        raise errors.UsageError(f"--write and {wished}: the file is the list as JSON")


class _Seasons:
    """The folded journals of the seasons in scope, read on at each look."""

    def __init__(self, ledger: store.RedisLedger, scope: str) -> None:
        self._ledger, self._scope = ledger, scope
        self._states: dict[str, season_state.SeasonState] = {}
        self._damaged: set[str] = set()  # what was said of them is not said at each look

    def look(self) -> list[season_state.SeasonState]:
        """Read what was journaled since the last look; a damaged season is left out.

        Raises:
            LedgerDamagedError: the one season that was asked for is damaged.
        """
        if self._scope == "last":
            return self._last_two()
        if self._scope != "all":
            return [self._folded(name) for name in self._names()]
        return [state for state in map(self._readable, self._names()) if state is not None]

    def _folded(self, name: str) -> season_state.SeasonState:
        folded = self._states.setdefault(name, season_state.SeasonState(name))
        for _ in common.follow(self._ledger, name, folded):
            pass
        if not folded.seq:
            raise errors.LedgerDamagedError(f"Redis names season {name!r} and has no journal of it")
        return folded

    def _readable(self, name: str) -> season_state.SeasonState | None:
        if name in self._damaged:
            return None
        try:
            return self._folded(name)
        except errors.FarmError as error:
            common.skip(name, error)
            self._damaged.add(name)
            return None

    def _last_two(self) -> list[season_state.SeasonState]:
        """Return this and the last season, with what was abandoned between or after them."""
        states: list[season_state.SeasonState] = []
        for name in reversed(self._ledger.seasons()):
            if (state := self._readable(name)) is None:
                continue
            states.insert(0, state)
            if sum(not kept.abandoned for kept in states) == LAST:
                break
        return states

    def games(self) -> int:
        """Return how many results there are now."""
        return len(rating_list.results(self.look()))

    def _names(self) -> Sequence[str]:
        seasons = self._ledger.seasons()
        if self._scope == "all":
            return seasons
        if self._scope not in seasons:
            launched = ", ".join(seasons) or "none"
            raise errors.UsageError(
                f"--scope: found {self._scope!r}; allowed: all, last, or a launched season:"
                f" {launched}"
            )
        return [self._scope]


def _tests(archives: Sequence[pathlib.Path], least: str | None) -> collections.Counter[Any]:
    if least is not None and not archives:
        raise errors.UsageError("--tests-from says which games of --tests count; none is given")
    games: collections.Counter[Any] = collections.Counter()
    try:
        slowest = None if least is None else contract.TimeControl.parse(least)
    except ValueError as error:
        raise errors.UsageError(f"--tests-from: found {least!r} ({error}); allowed: 30+5") from None
    for path in rating.files(archives):
        games.update(rating_list.long_enough(unpacking.content(path), slowest))
    return games


def _write(
    path: pathlib.Path,
    listed: Callable[[], tuple[error_bars.Spread, tuple[lists.Row, ...]]],
    states: _Seasons,
    *,
    follow: bool,
) -> None:
    """Write the list whole or not at all; with ``follow`` until the command is interrupted."""
    written = -1
    while True:
        games = states.games()
        if games != written and (games or not follow):
            spread, rows = listed()
            try:
                files.write(path, f"{json.dumps(lists.as_json(spread, rows), indent=2)}\n".encode())
            except OSError as error:
                why = errors.reason(error)
                raise errors.HostError(f"{path}: cannot be written: {why}") from error
            written = games
        if not follow:
            click.echo(f"{path}: the rating list after {written} games")
            return
        time.sleep(LOOK)


def _show_live(rated: Any, *, as_json: bool) -> None:
    ordered = sorted(rated.ratings.items(), key=lambda item: -item[1])
    if as_json:
        common.print_json(
            {"ratings": [{"engine": name, "rating": round(at, 2)} for name, at in ordered]}
        )
        return
    table = rich.table.Table(title="Live Elo")
    table.add_column("#", justify="right")
    table.add_column("Engine")
    table.add_column("Elo", justify="right")
    for number, (name, at) in enumerate(ordered, start=1):
        table.add_row(str(number), name, f"{at:.0f}")
    common.console().print(table)
