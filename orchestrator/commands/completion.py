"""``farm completion``: the script that makes a shell complete the farm's commands."""

from __future__ import annotations

import click
from click import shell_completion

VARIABLE = "_FARM_COMPLETE"  # what click derives from the program's name
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: commands, options, seasons, events, engines.

    A season's names come from the farm that this shell's environment points to. Load the
    script in ~/.bashrc or ~/.zshrc, or save it among fish's completions:

    \b
    bash  eval "$(farm completion bash)"
    zsh   eval "$(farm completion zsh)"
    fish  farm completion fish > ~/.config/fish/completions/farm.fish

    Example: farm completion bash > ~/.farm-completion.bash
    """  # noqa: D301 - click reads the backspace as "do not wrap"
    made = shell_completion.get_completion_class(shell)
    if made is None:
        raise click.BadParameter(f"this click completes no {shell}; upgrade click")
    click.echo(made(context.find_root().command, {}, "farm", VARIABLE).source())
