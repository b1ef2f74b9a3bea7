"""Walk through a tutorial in an empty folder: `python -m tests.tutorials.walk PAGE [LEFT_OUT...]`.

A program, run in a network of its own. It types each command but those that begin with a text of
LEFT_OUT, and ends with the first output that is not as printed.
"""

from __future__ import annotations

import re
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Final

from tests.own_network import start_loopback
from tests.tutorials.shell import Shell
from tests.tutorials.steps import SavedFile, TypedCommand, is_as_printed, steps_of
from tests.waiting import PATIENCE, until

# A reader repeats such a command until it shows what the page says; it changes nothing.
LOOKS: Final = ("cat ", "curl ", "gateway dead-letters list ", "gateway status", "grep ", "tail ")
PORT: Final = re.compile(r"-?-p(?:ort)? (\d+)")


def main() -> None:
    """Type the commands of the page of the first argument."""
    start_loopback()
    page, *left_out = sys.argv[1:]
    shell = Shell(Path.cwd())
    try:
        for step in steps_of(Path(page).read_text("utf-8")):
            if isinstance(step, SavedFile):
                file = Path(step.name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text, "utf-8")
            elif not step.text.startswith(tuple(left_out)):
                take(step, shell)
    finally:
        shell.end()


def take(step: TypedCommand, shell: Shell) -> None:
    """Type a command and compare its output.

    Raises:
        AssertionError: the output is not as printed.
    """
    subscriptions = shell.subscriptions()
    last = ("", 0)

    def typed() -> bool:
        nonlocal last
        last = shell.type(step.text)
        # A silent failure would look like a success.
        return is_as_printed(last[0], step.output) and bool(step.output or last[1] == 0)

    sys.stdout.write(f"$ {step.text}\n")
    try:
        until(typed, seconds=PATIENCE if step.text.startswith(LOOKS) else 0)
    except AssertionError:
        raise AssertionError(f"$ {step.text}\n{last[0]}\nexit status {last[1]}") from None
    if step.text.endswith("&"):
        for port in PORT.findall(step.text):
            until(partial(listens, int(port)), step.text)
        if step.text.startswith("mosquitto_sub "):
            until(lambda: shell.subscriptions() > subscriptions, step.text)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
