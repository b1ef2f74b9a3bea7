"""A reader of the output that ends first, as `head` does: no command then looks successful."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.terminal.console import open_console

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from gateway.terminal.console import open_console

console = open_console(stderr=sys.argv[1] == "stderr")
console.print("a line")
console.print("another")
print("went on", file=sys.stdout)
"""


@pytest.mark.parametrize("words", ["match a/+ a/b --system mqtt", "match --help"])
def test_a_command_whose_answer_nobody_read_ends_as_by_sigpipe(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gateway", *words.split()]

    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)  # noqa: S603  # our own

    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "command",
    [
        ("match", "a/+", "a/b", "--system", "mqtt"),
        ("preflight", "names.txt", "--from", "mqtt", "--to", "smf"),
        ("init", "--from", "mqtt", "--to", "mqtt", "--names", "a"),
        ("schema",),
        ("--help",),
        ("check", "--help"),
        ("--version",),
    ],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_an_error(
    command: tuple[str, ...], unbuffered: str, tmp_path: Path
) -> None:
    (tmp_path / "names.txt").write_text("a/b\n")
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603  # our own
            [sys.executable, "-m", "gateway", *command],
            cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == "gateway: cannot write the output: No space left on device\n"


def test_a_full_disk_elsewhere_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("gateway.cli.mapping.schema.json_schema", fail)

    assert main(["schema"]) == 2
    assert "Traceback" in capfd.readouterr().err


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
