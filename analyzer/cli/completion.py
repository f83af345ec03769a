"""``analyze completion``."""

from __future__ import annotations

import click

from analyzer.cli import _console
from analyzer.cli._options import example

_LINES = {
    "bash": 'eval "$(_ANALYZE_COMPLETE=bash_source analyze)"',
    "zsh": 'eval "$(_ANALYZE_COMPLETE=zsh_source analyze)"',
    "fish": "_ANALYZE_COMPLETE=fish_source analyze | source",
}


@click.command(
    "completion",
    epilog=example(
        "analyze completion bash >> ~/.bashrc",
        "analyze completion zsh >> ~/.zshrc",
        "analyze completion fish > ~/.config/fish/completions/analyze.fish",
    ),
)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(tuple(_LINES)))
def command(*, shell: str) -> None:
    """Print the line that makes Tab complete commands, options, rules, readers and tables."""
    _console.out(f"{_LINES[shell]}\n")
