"""`gateway completion SHELL`: print a script that completes commands in a shell.

Bash and zsh: add eval "$(gateway completion bash)" or zsh to ~/.bashrc or ~/.zshrc, there after
compinit. Fish: write it to ~/.config/fish/completions/gateway.fish.
"""

from __future__ import annotations

import argparse
from typing import Final

from gateway.cli.parsers import CommandParser

SHELLS: Final = ("bash", "zsh", "fish")


def add_options(parser: CommandParser) -> None:
    parser.add("SHELL", ", ".join(SHELLS), choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # only this command needs it

    print(shellcode(["gateway"], shell=args.shell))
    return 0
