"""What commands print, for people and for programs.

No ledger, no season and no message of the farm's is imported here: a command that needs
none of them (``farm rate``) starts in half the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import rich.console

Function = TypeVar("Function", bound=Callable[..., Any])

PIPE_WIDTH = 160  # columns of tables that go into a file or pipe


def json_option(function: Function) -> Function:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(
        function
    )


def console(*, stderr: bool = False) -> rich.console.Console:
    """Return the console for people; names are never read as markup.

    Colours and width follow the terminal; into a file or pipe a table is as wide as it is.
    """
    import rich.console  # noqa: PLC0415 - not for those who print JSON

    made = rich.console.Console(highlight=False, markup=False, stderr=stderr)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def report(as_json: bool, facts: dict[str, Any], sentence: str) -> None:  # noqa: FBT001 - the flag of --json
    """Print what a command did: facts for programs, a sentence for people."""
    if as_json:
        print_json(facts)
    else:
        click.echo(sentence)
