"""``farm deploy``: the files that hosts are made from, out of the program that is installed."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Final

import click

from orchestrator.commands import common
from orchestrator.common import built, errors, version

ROOT: Final = pathlib.Path(__file__).parents[2]


@click.group()
def deploy() -> None:
    """Write the files that hosts are made from (docs/how-to/operate-hosts.md).

    Example: farm deploy export farm-hosts
    """


@deploy.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=pathlib.Path, file_okay=False))
@click.option("--overwrite", is_flag=True, help="Replace files that are there and differ.")
@common.json_option
def export(folder: pathlib.Path, *, overwrite: bool, as_json: bool) -> None:
    """Write playbooks, units, dashboards, rules and compose files into DIR.

    With the program's source and the documents: all that the playbooks install. Where a file is
    there and differs, it is named and nothing is written; others, as an inventory, are left alone.

    Example: farm deploy export farm-hosts && cd farm-hosts
    """
    shipped = {name: (content, mode) for name, content, mode in _shipped()}
    try:
        differ = sorted(n for n, (content, _) in shipped.items() if _differs(folder / n, content))
        if differ and not overwrite:
            more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
            raise errors.RefusedError(
                f"{folder} has other versions of {', '.join(differ[:3])}{more}: nothing was"
                " written. Choose an empty folder, or give --overwrite"
            )
        for name, (content, mode) in shipped.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
    except OSError as error:
        raise errors.HostError(f"{folder} cannot be written: {errors.reason(error)}") from error
    if as_json:
        common.print_json(
            {"folder": str(folder), "files": len(shipped), "version": version.described()}
        )
        return
    click.echo(f"{len(shipped)} files of {version.described()} are in {folder}.")
    click.echo(f"Next: cd {folder}, and there as docs/how-to/operate-hosts.md says")


def _differs(path: pathlib.Path, content: bytes) -> bool:
    return path.exists() and (not path.is_file() or path.read_bytes() != content)


def _shipped() -> Iterator[tuple[str, bytes, int]]:
    """Yield name, content and mode of each file; of a checkout its own, else what was built in."""
    if all((ROOT / part).exists() for part in built.PARTS):
        packed = built.pack(ROOT)
    else:
        try:
            packed = (ROOT / built.FILES).read_bytes()
        except OSError as error:
            raise errors.HostError(
                "this installation does not carry the files of hosts (it was installed from a"
                " host's source archive): install the wheel, or use a checkout"
            ) from error
    yield from built.unpack(packed)
    for package in version.PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and path.suffix not in version.COMPILED and not version.added(name):
                yield name, path.read_bytes(), 0o644
    for name, fact in built.contents(ROOT):  # the folder has no git to ask
        yield name, fact, 0o644
