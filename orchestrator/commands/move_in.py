"""``farm match import-openbench`` and ``import-fishtest``: test settings of the other farms.

Both write files that a person reads and runs: recipes, and a script for each test. Nothing is
fetched and nothing is started.
"""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Sequence
from typing import Final

import click

from orchestrator.common import errors, files, output
from orchestrator.testmatch import openbench

DATABASES: Final = ("db.sqlite3", "OpenSite/db.sqlite3")
_OUT = click.Path(path_type=pathlib.Path, file_okay=False)


@click.command("import-openbench")
@click.argument("directory", type=click.Path(file_okay=False, path_type=pathlib.Path))
@click.option("--out", type=_OUT, default="openbench", show_default=True, help="Written here.")
@click.option("--engine", "only", multiple=True, help="Only this engine; may be repeated.")
@click.option(
    "--books",
    type=click.Path(file_okay=False, path_type=pathlib.Path),
    help="Where unpacked books are; their SHA-256 is checked.",
)
def import_openbench(
    directory: pathlib.Path, out: pathlib.Path, only: tuple[str, ...], books: pathlib.Path | None
) -> None:
    """Read an OpenBench instance: DIRECTORY is its checkout, or a copy of its folders.

    Engines become recipes (engines/NAME.toml), books a list with checksums and a script that
    fetches them (books), presets and the open tests of db.sqlite3 scripts that run `farm match
    test` or `tune` (tests). What has no counterpart stands there as a comment.

    Example: farm match import-openbench OpenBench --out moved --engine Berserk
    """
    engine_files = sorted((directory / "Engines").glob("*.json"))
    if not engine_files:
        raise errors.UsageError(f"{directory}: no Engines/*.json; give an OpenBench checkout")
    if missing := set(only) - {path.stem for path in engine_files}:
        raise errors.UsageError(f"--engine: {directory} has no {min(missing)!r}")
    chosen = [path for path in engine_files if not only or path.stem in only]
    for path in chosen:
        _write_engine(out, openbench.engine(path))
    listed_books = [openbench.book(path) for path in sorted((directory / "Books").glob("*.json"))]
    _write_books(out, listed_books, books)
    tests = [test for path in chosen for test in openbench.presets(path)]
    open_ = [
        test
        for name in DATABASES
        if (directory / name).is_file()
        for test in openbench.open_tests(directory / name)
        if not only or test.engine in only
    ]
    for test in (*tests, *open_):
        _write_test(out, test)
    click.echo(
        f"{out}: {len(chosen)} engines, {len(listed_books)} books, {len(tests)} presets,"
        f" {len(open_)} open tests"
    )


@click.command("import-fishtest")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
)
@click.option("--out", type=_OUT, default="fishtest", show_default=True, help="Written here.")
def import_fishtest(runs: tuple[pathlib.Path, ...], out: pathlib.Path) -> None:
    """Read fishtest's RUNS, as files of https://HOST/api/get_run/ID.

    Each becomes a script that runs `farm match test` or `tune`; they share a recipe of the engine.

    Example: farm match import-fishtest run.json --out moved
    """
    read = [openbench.fishtest(path) for path in runs]
    nets = {name: source for engine, _ in read for name, source in engine.recipe["files"].items()}
    engine = read[0][0]
    _write_engine(out, openbench.Engine(engine.name, {**engine.recipe, "files": nets}))
    for _, test in read:
        _write_test(out, test)
    click.echo(f"{out}: {len(read)} tests")


def _write(path: pathlib.Path, text: str, *, run: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, text.encode())
    path.chmod(0o755 if run else 0o644)


def _write_engine(out: pathlib.Path, engine: openbench.Engine) -> None:
    name = openbench.file_name(engine.name)
    text = openbench.toml(engine.recipe, engine.notes)
    _write(out / "engines" / f"{name}.toml", text)


def _write_books(
    out: pathlib.Path, books: Sequence[openbench.Book], there: pathlib.Path | None
) -> None:
    """Write where books come from; say which of those that lie here are not what they should be."""
    lines = ["#!/bin/sh", "# Fetch the books that tests name: ./fetch.sh NAME ...", "set -e"]
    lines += ['cd "$(dirname "$0")"', 'for book in "$@"; do', '  case "$book" in']
    for book in books:
        lines.append(
            f"  {shlex.quote(book.name)}) from={shlex.quote(book.source)} sha256={book.sha256} ;;"
        )
    lines += [
        '  *) echo "$book: no such book" >&2; exit 2 ;;',
        "  esac",
        '  curl --fail --location --output "$book.zip" -- "$from"',
        '  unzip -p "$book.zip" | tr -d "\\r" > "$book"',
        '  echo "$sha256  $book" | sha256sum --check -',
        '  rm "$book.zip"',
        "done",
    ]
    if books:
        _write(out / "books" / "fetch.sh", "\n".join(lines) + "\n", run=True)
    for book in books if there is not None else ():
        path = there / book.name  # type: ignore[operator] # looked at above
        if not path.exists():
            continue
        if not book.is_there(path):
            raise errors.UsageError(f"{path}: its SHA-256 is not the one that the instance lists")
        (out / "books").mkdir(parents=True, exist_ok=True)
        (out / "books" / book.name).write_bytes(path.read_bytes())


def _write_test(out: pathlib.Path, test: openbench.Test) -> None:
    """Write a script that runs a test: revisions, further words, and what its comments say."""
    lines = ["#!/bin/sh", *(f"# {output.plain(' '.join(note.split()))}" for note in test.notes)]
    against = test.against or "main"
    tunes = test.verb == "tune"
    if test.tested:
        lines += ["# usage: [further words, such as --remote]"]
        tested, opponent = shlex.quote(test.tested), shlex.quote(against)
    else:
        lines += ["# usage: TESTED [AGAINST] [further words, such as --remote]"]
        lines += ['tested=${1:?"name the branch or commit to test"}; shift']
        lines += [f"against={shlex.quote(against)}"]
        lines += ['case "${1:--}" in -*) ;; *) against=$1; shift ;; esac']
        tested, opponent = '"$tested"', '"$against"'
    lines += ['here=$(dirname "$0")/..']
    if not test.arguments:
        lines += ['echo "this is no test match; see the comments" >&2', "exit 2"]
    else:
        recipe = f'"$here"/engines/{shlex.quote(openbench.file_name(test.engine))}.toml'
        arguments = [f"--build {recipe}"]
        if test.book and test.book.upper() != "NONE":
            arguments.append(f'--book "$here"/books/{shlex.quote(test.book)}')
            if "FRC" in test.book.upper():
                arguments.append("--variant fischerandom")
        arguments.append(shlex.join(test.arguments))
        sides = tested if tunes else f"{tested} --against {opponent}"
        lines.append(f'exec farm match {test.verb} {sides} {" ".join(arguments)} "$@"')
    name = openbench.file_name(test.name.lower())
    _write(out / "tests" / f"{name}.sh", "\n".join(lines) + "\n", run=True)
