"""``farm engine build``: build a revision of an engine here, as workers of test matches build it.

``farm match test --build`` runs it for both engines of a match (``python -m`` this module): what
cannot be built here, or has another bench than its author says, is dealt to nobody.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import click

from orchestrator.common import errors, output
from orchestrator.engines import sources
from orchestrator.ledger import embedded_redis
from worker_cpu.engines import source_build

LOG_LINES = 40  # of a failed build's log that are shown; `--json` has all that is kept


@click.command()
@click.argument("recipe", type=click.Path(path_type=pathlib.Path, dir_okay=False))
@click.argument("revisions", nargs=-1, required=True, metavar="REVISION...")
@click.option("--repository", help="Instead of the recipe's: an address, or a path.")
@click.option(
    "--bench",
    "benches",
    multiple=True,
    type=click.IntRange(0),
    help="Nodes that the bench must have, one for each revision; 0: as its commit's message says.",
)
@click.option(
    "--toolchain",
    "toolchains",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path),
    help="A directory outside of the system whose bin the build may use (a Rust toolchain).",
)
@output.json_option
def build(
    recipe: pathlib.Path,
    revisions: tuple[str, ...],
    repository: str | None,
    benches: tuple[int, ...],
    toolchains: tuple[pathlib.Path, ...],
    *,
    as_json: bool,
) -> None:
    """Build each REVISION of an engine by its RECIPE in the sandbox, and run its bench.

    The source is fetched by git; the build itself has no network. The program, its SHA-256, its
    nodes and its log are kept in FARM_DATA/builds, so that the same source is built once.

    Example: farm engine build berserk.toml main
    """
    if benches and len(benches) != len(revisions):
        raise errors.UsageError(
            f"--bench: found {len(benches)}, allowed: none, or one for each of the"
            f" {len(revisions)} revisions"
        )
    data = embedded_redis.data_directory()
    store, cache = sources.Store(data / "sources"), source_build.Cache(data / "builds")
    read = sources.Recipe.read(recipe)
    if repository is not None:
        read = read.model_copy(update={"repository": repository})
    tools = [str(tool.absolute()) for tool in toolchains]
    finished = []
    for revision, bench in zip(revisions, benches or [0] * len(revisions), strict=True):
        source, commit = sources.describe(store, read, revision, bench or None)
        there = {digest: store.path(digest) for digest in source.needed}
        built = source_build.make(source, there, cache, tools)
        if built.why:
            raise errors.RefusedError(_refusal(source.name, commit, built))
        finished.append((source.model_copy(update={"bench": built.bench}), built))
    if as_json:
        output.print_json(
            [
                {
                    "source": source.model_dump(mode="json"),
                    "built": dataclasses.asdict(built),
                    "options": read.options,
                    "protocol": read.protocol,
                    "nps": read.nps,
                }
                for source, built in finished
            ]
        )
        return
    for source, built in finished:
        maker = built.compiler or ("nobody here" if source.binaries else "")
        click.echo(
            output.plain(
                f"{source.name} ({source.commit[:12] or 'binaries'}): {built.bench} nodes, built in"
                f" {built.seconds:.1f} s{maker and f' by {maker}'}\n{built.program}\n"
                f"SHA-256 {built.sha256}"
            )
        )


def _refusal(name: str, finished: sources.Revision, built: source_build.Built) -> str:
    lines = built.log.strip().splitlines()[-LOG_LINES:]
    absent = f"\n(submodules are not fetched: {', '.join(finished.submodules)})"
    return "\n".join(
        [
            f"{name} ({finished.commit[:12]}) was not built: {built.why}"
            + (absent if finished.submodules else ""),
            *(f"  {line}" for line in lines),
        ]
    )


def main() -> int:
    """Run the command for another one of the farm's."""
    try:
        build(standalone_mode=False)
    except errors.FarmError as error:
        print(output.plain(str(error)), file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
