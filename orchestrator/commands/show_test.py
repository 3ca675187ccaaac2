"""``farm match show``: a test match as its directory has it, while it runs and afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import click
import rich.table

from orchestrator.commands import common, keeping
from orchestrator.common import output
from orchestrator.testmatch import sprt_match


@click.command("show-test")
@click.argument("name", required=False)
@common.json_option
def show_test(name: str | None, *, as_json: bool) -> None:
    """Show the test match NAME of this machine, or all of them in a line each.

    Its score and test, its engines' faults and what they wrote to stderr last, who has played how
    many games, how its engines are built, and what became of that on each worker, with the logs
    of builds that failed.

    Example: farm match show dev-1
    """
    root = common.matches_folder()
    if name is None:
        rows = {path.name: _as_json(path.name) for path in sprt_match.kept(root)}
        if as_json:
            common.print_json(list(rows.values()))
            return
        for match in rows:
            spec, terms = sprt_match.load(root / match)
            standing = sprt_match.shown(root / match, spec, terms).standing
            click.echo(output.plain(f"{match}: {keeping.line(standing, terms.test)}"))
        if not rows:
            click.echo(f"no test match is in {root}")
        return
    if as_json:
        common.print_json(_as_json(name))
        return
    _show(name)


def _as_json(name: str) -> dict[str, Any]:
    directory = common.match_folder(name)
    spec, terms = sprt_match.load(directory)
    shown = sprt_match.shown(directory, spec, terms)
    return {
        "match": name,
        "engines": [build.name for build in spec.engines],
        "sprt": None if terms.test is None else dataclasses.asdict(terms.test),
        **shown.standing.as_json(),
        "by_host": dict(shown.by_host),
        "sources": [
            None if build is None else {"id": build.id, **build.model_dump(mode="json")}
            for build in spec.builds
        ],
        "builds": list(shown.builds),
    }


def _show(name: str) -> None:
    directory = common.match_folder(name)
    spec, terms = sprt_match.load(directory)
    shown = sprt_match.shown(directory, spec, terms)
    names = ", ".join(build.name for build in spec.engines[1:])
    say(f"{name}: {spec.engines[0].name} against {names}, {spec.time_control.spoken}")
    say(keeping.line(shown.standing, terms.test))
    for text in () if shown.standing.course is None else keeping.tuned(shown.standing.course):
        say(text)
    if shown.standing.verdict:
        say(f"decided: {shown.standing.verdict}")
    for text in (*keeping.faults(shown.standing), *keeping.never_sound(shown.standing, spec)):
        say(text)
    for host, games in shown.by_host.items():
        say(f"{host}: {games} games")
    sources = [*filter(None, spec.builds)]
    for source in sources:
        say(
            f"source: {source.name}, commit {source.commit or 'none (binaries)'}, bench"
            f" {source.bench}, archive {source.archive[:16] or 'none'}"
        )
    if shown.builds:
        _show_builds(shown.builds)
    workers = [host for host in shown.by_host if "/" in host]  # of a token: lanes have their own
    for text in sprt_match.built_before(sources, workers, shown.builds):
        say(text)


def _show_builds(builds: tuple[Mapping[str, Any], ...]) -> None:
    """Show each build on each worker; the same compiler makes the same program."""
    table = rich.table.Table("worker", "engine", "machine", "compiler", "SHA-256", "bench", "s")
    failed = []
    for build in builds:
        bench = "" if build["bench"] is None else str(build["bench"])
        program = build["program"][:16] or "failed"
        cells = (
            build["worker"],
            build["name"],
            build["machine"],
            build["compiler"],
            program,
            bench,
        )
        table.add_row(*map(output.plain, cells), f"{build['seconds']:.1f}")
        if build["why"]:
            failed.append(build)
    common.console().print(table)
    for build in failed:
        say(f"{build['worker']}: {build['name']} was not built: {build['why']}")
        for line in build["log"].splitlines():
            say(f"  {line}")


def say(text: str) -> None:
    """Print a line; workers' words are strangers'."""
    click.echo(output.plain(text))
