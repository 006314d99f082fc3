"""hakmem completion: shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_HAKMEM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Examples:
      eval "$(hakmem completion bash)"                            # in ~/.bashrc
      eval "$(hakmem completion zsh)"                             # in ~/.zshrc
      hakmem completion fish > ~/.config/fish/completions/hakmem.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "hakmem", VARIABLE).source())
