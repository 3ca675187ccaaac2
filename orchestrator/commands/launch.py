"""``farm launch``: check a season file, seal its draws, write the season's first fact."""

from __future__ import annotations

import dataclasses
import pathlib
import secrets
from collections.abc import Iterator
from typing import Any

import click

from orchestrator import contract
from orchestrator.commands import common, programs, shell_offers
from orchestrator.common import errors, version
from orchestrator.ledger import address, api, store
from orchestrator.season import views
from orchestrator.season.amend import operations
from orchestrator.season.file import describe, load
from orchestrator.season.fold import entries, plan, titles
from orchestrator.season.spec import model, seeded_random

SEASONS = pathlib.Path(__file__).parent.parent / "seasons"
PAUSED = "launched paused"  # the reason of such a pause


def season_file(name: str) -> pathlib.Path:
    """Return the season file of a path, or of the name of one that comes with the farm."""
    path = pathlib.Path(name)
    shipped = SEASONS / f"{name}.toml"
    if not path.is_file() and shipped.exists():
        return shipped
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in SEASONS.glob("*.toml")))
        raise errors.UsageError(f"{name}: season file not found. Bundled seasons: {names}")
    return path


def fresh_seed() -> str:
    """Return a secret seed that nobody can guess."""
    return secrets.token_hex(16)


def start(
    ledger: store.RedisLedger,
    loaded: load.Loaded,
    season: str,
    hall: str,
    seed: str,
    by: str,
    reason: str = "",
    *,
    paused: bool = False,
) -> None:
    """Write the season's first facts; raise ``RefusedError`` when its id is taken."""
    if gone := {**common.emptied(ledger.seasons()), **ledger.alarms()}.get(season):
        raise errors.RefusedError(f"season {season!r} exists already: {gone}")
    drafts = operations.launch(titled(ledger, loaded), season, seed, hall, version.VERSION, reason)
    effects: list[api.Effect] = []
    if paused:
        drafts.append(contract.Draft.of(entries.PAUSED, entries.Paused(reason=PAUSED, name="")))
        effects.append(api.Hold(season, "pause", PAUSED))
    reply = ledger.append(season, 0, drafts, by, effects)
    if isinstance(reply, api.Stale):
        raise _taken(ledger, season)
    common.append_farm(ledger, contract.Draft("season_launched", {"season": season}), by)


def titled(ledger: store.RedisLedger, loaded: load.Loaded) -> load.Loaded:
    """Return the season with the holder of its title, as the farm's last season of it says.

    Raise ``SeasonFileError`` where the file names another one (CUP-1e, FRC-1e).
    """
    title = loaded.season.title
    if title is None:
        return loaded
    alarms = ledger.alarms()  # of seasons that Redis has lost
    folded = (common.fold(ledger, name) for name in ledger.seasons() if name not in alarms)
    winner = titles.last_winner(title.name, folded)
    season = titles.settled(loaded.season, winner, loaded.file)
    engines = titles.seeded(season.title, loaded.engines)
    return dataclasses.replace(loaded, season=season, engines=engines)


def _taken(ledger: store.RedisLedger, season: str) -> errors.RefusedError:
    """Say that an id is taken, and how a season that is not over goes on."""
    taken, another_id = (
        f"a season {season!r} has been launched already",
        "give another id with --id",
    )
    folded = common.fold(ledger, season)
    if folded.over:
        return errors.RefusedError(f"{taken} and is over; {another_id}")
    games = views.season(folded)["games"]
    goes_on = "it goes on where a farm is at work"
    if not address.url():  # else that farm is elsewhere
        goes_on += ": here by `farm up` without --launch"
    return errors.RefusedError(
        f"{taken} and is not over ({games['played']} of {games['total']} games): {goes_on};"
        f" to begin another one, {another_id}"
    )


@click.command()
@click.argument("file", shell_complete=shell_offers.season_files)
@click.option("--id", "season", help="The season's id; default: the file's.")
@click.option("--hall", default="hall-1", show_default=True, help="The hall that plays it.")
@click.option(
    "--seed", help="Seed of all draws, to play a season again; default: a fresh secret one."
)
@click.option("--paused", is_flag=True, help="Begin no game before `farm season resume`.")
@click.option("--insist", is_flag=True, help="Launch although Redis may lose acknowledged writes.")
@common.audited
@common.json_option
def launch(
    file: str,
    season: str | None,
    hall: str,
    seed: str | None,
    by: str,
    reason: str,
    *,
    paused: bool,
    insist: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Launch the season of FILE (a path, or the name of a bundled one: demo).

    Everything the season depends on is checked and journaled; nothing is launched when
    anything is wrong. The hash of the seed is published now, the seed when it is over.

    Example: farm launch my-season.toml --id autumn --by anna
    """
    loaded = load.load(season_file(file))
    chosen = season or loaded.season.id
    secret = seed or fresh_seed()
    with common.open_ledger() as ledger:
        _require_durable(ledger, insist=insist)
        if chosen in ledger.seasons():
            raise _taken(ledger, chosen)
        loaded = titled(ledger, loaded)
        if not dry_run:
            who = common.author(ledger, by)
            start(ledger, loaded, chosen, hall, secret, who, reason, paused=paused)
        warned = [*_hall_warnings(ledger, hall), *_name_warnings(ledger, loaded, chosen)]
    warned += programs.of_season(loaded)
    programs.warn(warned)
    report = _as_json(loaded, chosen, hall, secret)
    report |= {"paused": paused, "dry_run": dry_run, "reason": reason, "warnings": warned}
    common.report(as_json, report, _sentence(report))


def _hall_warnings(ledger: store.RedisLedger, hall: str) -> list[str]:
    """Return what to say of a hall that plays nothing now; nothing while none has been opened."""
    opened = {name: worker for name in ledger.halls() if (worker := ledger.worker(name))}
    if not opened:
        return []
    if hall not in opened:
        unknown = f"no worker has opened {hall}, and the season waits until one does"
        mistyped = (
            "a season stays in its hall: if the name is mistyped, abandon this one (`farm season"
            " abandon`) and launch it again under another --id"
        )
        return [f"{unknown}; halls: {', '.join(sorted(opened))}; {mistyped}"]
    if reason := ledger.drained(hall, opened[hall]):
        started = f"its worker is started again on its host (`systemctl start farm-hall@{hall}`)"
        return [f"{hall} is drained ({reason}), and the season waits until {started}"]
    return []


def _name_warnings(ledger: store.RedisLedger, loaded: load.Loaded, chosen: str) -> Iterator[str]:
    """Say which season has the name already: viewers' files are named by it."""
    name = entries.full_name(loaded.season, chosen)
    for season in ledger.seasons():
        first = next(iter(ledger.read(season, limit=1)), None)
        if season == chosen or first is None or first.kind != entries.LAUNCHED:
            continue
        of_it = model.Season.model_validate(first.data["season"])  # its books are not read
        if entries.full_name(of_it, season) == name:
            yield (
                f"{season} has the name {loaded.season.name!r}, too: in the archive of TCEC's"
                " viewers the files of the one replace the other's; give this one another `name`"
            )


def _as_json(loaded: load.Loaded, season: str, hall: str, seed: str) -> dict[str, Any]:
    return {
        "season": season,
        "name": loaded.season.name,
        "hall": hall,
        "events": [event.id for event in loaded.season.events],
        "games": sum(s.games for s in plan.schedules(loaded.season, len(loaded.engines)).values()),
        "seed_sha256": seeded_random.commitment(seed),
    }


def _sentence(report: dict[str, Any]) -> str:
    verb = "would be launched" if report["dry_run"] else "is launched"
    paused, begins = (
        (", paused,", "; `farm season resume` begins it") if report["paused"] else ("", "")
    )
    return (
        f"{report['season']} {verb}{paused} in {report['hall']}:"
        f" {describe.events(report['events'])},"
        f" {report['games']} games; SHA-256 of the seed {report['seed_sha256']}{begins}"
    )


def _require_durable(ledger: store.RedisLedger, *, insist: bool) -> None:
    complaints = ledger.check_durability()
    if complaints and not insist:
        raise errors.RefusedError(
            "this Redis may lose acknowledged writes: "
            + "; ".join(complaints)
            + ". Fix its configuration, or launch with --insist"
        )
