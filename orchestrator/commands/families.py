"""The families of the farm's commands: ``farm season launch``, ``farm game replay`` and so on.

A family shows and runs commands that are registered by one name each (``COMMANDS`` and the entry
points). That name alone (``farm launch``) is what commands had before there were families, and is
taken until release 0.3. Commands without a family are the farm's own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import click


class Family(NamedTuple):
    """What a family is about, and its commands: by the word in it, the registered name.

    ``base`` is a group whose commands belong to it; ``usual`` runs where no word of it is said.
    """

    help: str
    verbs: Mapping[str, str]
    base: str = ""
    usual: str = ""


def _same(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


FAMILIES: Final[Mapping[str, Family]] = {
    "season": Family(
        "Write, check, launch, run and review seasons.\n\n"
        "Example: farm season launch my-season.toml --by anna",
        _same(
            "new check schema simulate preflight rehearse launch pause resume open-gate decisions"
            " decide amend import abandon standings schedule graph log forecast ratings outcome"
            " audit verify-draws"
        ),
    ),
    "game": Family(
        "Show single games, end them, set or take back their results.\n\n"
        "Example: farm game replay league.7 --by anna --reason 'power cut'",
        {"list": "games", **_same("trace evidence abort adjudicate replay void")},
    ),
    "engine": Family(
        "Show, import, add, update and test engines; take them out of events.\n\n"
        "Example: farm engine list",
        {"check": "check-engine", **_same("build withdraw flags dismiss disqualify")},
        base="engine",
    ),
    "host": Family(
        "Show hosts and halls, drain them, release them, measure them.\n\nExample: farm host list",
        {
            **_same("lanes set-aside drain undrain"),
            "release": "release-hall",
            "bench": "bench-host",
            "kibitz": "kibitz",
        },
        base="hosts",
    ),
    "match": Family(
        "Play matches here, or in a farm's lanes; make books, rate games.\n\n"
        "Example: farm match stockfish ethereal-chess",
        {
            "play": "match",
            "test": "test",
            "tune": "tune",
            "stop": "stop-test",
            "continue": "continue-test",
            "copy": "copy-test",
            "change": "change-test",
            "approve": "approve-test",
            "refuse": "refuse-test",
            "waiting": "waiting-tests",
            "keep": "keep-tests",
            "show": "show-test",
            "workers": "test-workers",
            **_same("book rate import-openbench import-fishtest"),
        },
        usual="play",
    ),
}
ALIASES: Final[Mapping[str, str]] = {  # what was said before, and what is said now
    name: f"{family} {verb}"
    for family, (_, verbs, base, _) in FAMILIES.items()
    for verb, name in [*verbs.items(), *([("", base)] if base and base != family else [])]
    if name != family
}
# Only where a command line is shown: after a quote, a prompt's place or a sign of the shell.
_SHOWN: Final = re.compile(
    rf"(?m)(^ *|`|Example: |[(]see |&& |[|] )farm ({'|'.join(ALIASES)})(?![\w-])"
)


def said_now(text: str) -> str:
    """Return a help text with its commands by the names of their families."""
    return _SHOWN.sub(lambda match: f"{match[1]}farm {ALIASES[match[2]].strip()}", text)


def words_now(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, behind ``farm``, with its command as it is said now."""
    said = ALIASES.get(words[0]) if words else None
    return list(words) if said is None else [*said.split(), *words[1:]]


def renew(command: click.Command) -> None:
    """Let a command's help, and those below it, show commands by the names of their families."""
    command.help = said_now(command.help or "") or None
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        renew(inner)


class Registry(Protocol):
    """The whole group of commands."""

    def registered(self, cmd_name: str) -> click.Command | None:
        """Load a command by its name alone."""

    def outline(self, ctx: click.Context, name: str) -> click.Command:
        """Return a command with its help, not loaded."""


class FamilyGroup(click.Group):
    """One family: its commands are loaded when they are called."""

    def __init__(self, name: str, family: Family, farm: Registry) -> None:
        """Take the commands from the whole group."""
        super().__init__(name, help=family.help)
        self._family, self._farm = family, farm

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands of the group below it, then its own."""
        base = self._base(ctx)
        return [*([] if base is None else base.list_commands(ctx)), *self._family.verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command by its word in the family."""
        if cmd_name in self._family.verbs:
            return self._farm.registered(self._family.verbs[cmd_name])
        base = self._base(ctx)
        return None if base is None else base.get_command(ctx, cmd_name)

    def _base(self, ctx: click.Context) -> click.Group | None:  # noqa: ARG002 - as its callers
        base = self._farm.registered(self._family.base) if self._family.base else None
        return base if isinstance(base, click.Group) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with a line of help each; only those of a group below are loaded."""
        rows = []
        for word in self.list_commands(ctx):
            name = self._family.verbs.get(word)
            command = self.get_command(ctx, word) if name is None else self._farm.outline(ctx, name)
            rows.append((word, "" if command is None else command.get_short_help_str(60)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what the family takes, which is nothing where it has a usual command."""
        return super().parse_args(ctx, self._whole(args))

    def _whole(self, args: list[str]) -> list[str]:
        """Return the words with the usual command where none is named."""
        named = args[:1] and args[0] in self._family.verbs
        return args if named or not self._family.usual else [self._family.usual, *args]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name similar ones when there is no such command."""
        args = self._whole(args)
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            elsewhere = [name for name, family in FAMILIES.items() if args[0] in family.verbs]
            if elsewhere and args[0] not in close:
                hint = f" It is `farm {elsewhere[0]} {args[0]}`.{hint}"
            ctx.fail(f"No such command {args[0]!r} in `farm {self.name}`.{hint}")
        return super().resolve_command(ctx, args)
