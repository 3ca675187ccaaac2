"""What commands print, for people and for programs.

What people see on a terminal holds no control characters but those of the farm's own colours:
names, last words and reasons may be a stranger's. JSON writes them as they are, escaped.

No ledger, no season and no message of the farm's is imported here: a command that needs
none of them (``farm rate``) starts in half the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.common import text as common_text

if TYPE_CHECKING:
    import rich.console

Function = TypeVar("Function", bound=Callable[..., Any])

PIPE_WIDTH = 400  # columns of tables that go into a file or pipe: a Cup's round of 32 fits
_KEPT = "\n\t"
_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in _KEPT}
# JSON escapes the first 32
_ESCAPED = {ord(letter): json.dumps(letter)[1:-1] for letter in common_text.UNSEEN if letter > "~"}


def some(count: int, word: str) -> str:
    """Return a count with its word: ``1 game``, ``2 games``."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def plain(text: str) -> str:
    """Return text without control characters: no colour, no title, no turned words."""
    return common_text.visible(text.translate(_CONTROL))


def json_option(function: Function) -> Function:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(
        function
    )


def drawn(renderable: rich.console.RenderableType, width: int) -> str:
    """Return what people see of tables and texts, in the terminal's own codes of colour."""
    made = console()
    made.width = max(1, width)
    with made.capture() as got:
        made.print(renderable)
    return got.get()


def console(*, stderr: bool = False) -> rich.console.Console:
    """Return the console for people; names are never read as markup.

    Colours and width follow the terminal; into a file or pipe a table is as wide as it is.
    """
    import rich.console  # noqa: PLC0415 - not for those who print JSON
    import rich.segment  # noqa: PLC0415

    class Plain(rich.console.Console):
        """A console that styles words, and lets them style nothing themselves."""

        def render(
            self, renderable: Any, options: rich.console.ConsoleOptions | None = None
        ) -> Iterable[rich.segment.Segment]:
            """Render into segments; those that are text are plain."""
            for segment in super().render(renderable, options):
                yield (
                    segment
                    if segment.control
                    else rich.segment.Segment(plain(segment.text), segment.style)
                )

    made = Plain(highlight=False, markup=False, stderr=stderr)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def print_json(value: Any) -> None:
    """Print a value as JSON, in letters that no terminal obeys."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False).translate(_ESCAPED))


def report(as_json: bool, fields: dict[str, Any], sentence: str) -> None:  # noqa: FBT001 - the flag of --json
    """Print what a command did: facts for programs, a sentence for people."""
    if as_json:
        print_json(fields)
    else:
        click.echo(plain(sentence))
