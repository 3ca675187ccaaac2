"""What mkdocs puts into the reference pages: commands, metrics, contract, clauses.

Nothing of it is committed, so it cannot be stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import clauses
import click
import pydantic

from orchestrator import commands as farm_commands
from orchestrator import contract
from orchestrator.metrics import families
from orchestrator.season import amendments, entries


def commands() -> str:
    """Return every command with its help."""
    context = click.Context(farm_commands.farm, info_name="farm")
    return "\n".join(_command(farm_commands.farm, context))


def _command(one: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{one.get_help(context)}\n```\n"
    if isinstance(one, click.Group):
        for name in one.list_commands(context):
            inner = one.get_command(context, name)
            if inner is not None:
                yield from _command(inner, click.Context(inner, info_name=name, parent=context))


def metrics() -> str:
    """Return the table of metrics."""
    rows = ["| metric | kind | labels | what |", "|---|---|---|---|"]
    for name, family in families.FAMILIES.items():
        labels = ", ".join(family.labels)
        rows.append(f"| `{name}` | {family.kind} | {labels} | {family.help} |")
    return "\n".join(rows)


def messages() -> str:
    """Return every message and journal entry with its fields."""
    parts = []
    for module in (contract, entries, amendments):
        for name, found in vars(module).items():
            ours = isinstance(found, type) and issubclass(found, pydantic.BaseModel)
            if ours and found.__module__.startswith(module.__name__) and found.model_fields:
                parts.append(_message(name, found))
    return "\n".join(parts)


def _message(name: str, found: type[pydantic.BaseModel]) -> str:
    rows = "\n".join(
        f"| `{field}` | `{_type(info.annotation)}` | {'yes' if info.is_required() else ''} |"
        for field, info in found.model_fields.items()
    )
    summary = (found.__doc__ or "").strip().split("\n\n")[0]
    return f"## {name}\n\n{summary}\n\n| field | type | required |\n|---|---|---|\n{rows}\n"


def _type(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    short = re.sub(r"(orchestrator\.\w+\.?\w*\.|typing\.|collections\.abc\.)", "", text)
    return short.replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "metrics": metrics,
    "contract": messages,
    "clauses": clauses.table,
}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put a generated part where a page asks for it (mkdocs' hook)."""
    return re.sub(r"<!-- generated: (\w+) -->", lambda found: PAGES[found[1]](), markdown)
