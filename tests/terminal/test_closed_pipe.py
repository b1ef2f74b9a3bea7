"""A reader of the output that ends first, as `head` does: no command then looks successful."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gateway.terminal.console import open_console

PROGRAM = """
import sys
from gateway.terminal.console import open_console

console = open_console(stderr=sys.argv[1] == "stderr")
console.print("a line")
console.print("another")
print("went on", file=sys.stdout)
"""


def test_a_command_whose_answer_nobody_read_ends_as_by_sigpipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gateway", "match", "a/+", "a/b", "--system", "mqtt"]

    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)  # noqa: S603  # our own

    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_only_standard_output_is_the_answer(stream: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
    command = [sys.executable, "-c", PROGRAM, stream]

    done = subprocess.run(command, **pipes, text=True, check=False)  # type: ignore[call-overload]  # noqa: S603  # our own

    os.close(writer)
    if stream == "stderr":
        assert (done.returncode, done.stdout) == (0, "went on\n")
    else:
        assert "BrokenPipeError" in done.stderr


def test_a_console_prints_to_an_open_stream(capsys: pytest.CaptureFixture[str]) -> None:
    open_console().print("a [b]")

    assert capsys.readouterr().out == "a [b]\n"
