"""Completion in real shells: the command line as a person types it, with the tabulator key."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.cli import all_commands, main
from gateway.cli.shell.completion import SHELLS
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SET_UP = {
    "bash": 'eval "$(gateway completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(gateway completion zsh)"',
}
COLOURS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x08|\r")
LINES = [  # typed, and what the key makes of the last word
    ("gateway recon\t", "gateway reconcile "),
    ("gateway reconcile archive --metr\t", "--metrics "),
    ("gateway reconcile archive --date 2026-\t", "--date 2026-03-14"),
    ("gateway reconcile arch\t", "gateway reconcile archive/"),
    ("gateway translate a --from smart\t", "--from smartsockets"),
    ("gateway preflight names.txt --to mqtt,smart\t", "--to mqtt,smartsockets"),
    ("gateway preflight names.txt --to mqtt,aws\t", "--to mqtt,aws-iot"),
    ("gateway replay archive --config gateway.yaml --route tele\t", "--route telemetry"),
    ("gateway dead-letters list gateway.yaml --route tele\t", "--route telemetry"),
    ("gateway explain a --config gateway.yaml --from pla\t", "--from plant"),
    ("gateway run --log-level warn\t", "--log-level warning"),
    ("gateway explain a --config ~/gateway.yaml --from pla\t", "--from plant"),
    ("gateway reconcile ~/archive --date 2026-\t", "--date 2026-03-14"),
    ("gateway  check --str\t", "--strict "),
    ("gateway archive verif\t", "gateway archive verify "),
]
CONFIG = """
endpoints: {plant: {kind: memory, dialect: mqtt, password: "${env:ABSENT}"}}
routes: {telemetry: {from: {endpoint: plant}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an archive, and a configuration with an error."""
    (tmp_path / "archive" / "date=2026-03-14").mkdir(parents=True)
    (tmp_path / "archive" / "_reconciled").mkdir()
    (tmp_path / "gateway.yaml").write_text(CONFIG)
    return tmp_path


class Terminal:
    """A shell on a pseudo-terminal; `output` is what it has shown since the last line."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.output = b""

    def type(self, text: str) -> None:
        self.output = b""
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in COLOURS.sub(b"", self.output):
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} is not in {self.output!r}"
            if select.select([self._master], [], [], left)[0]:
                self.output += os.read(self._master, 1 << 16)


@contextmanager
def shell(name: str, folder: Path) -> Iterator[Terminal]:
    """Start an interactive shell with completion in `folder`."""
    environment = {
        "PATH": PATH,
        "PS1": "$ ",
        "HOME": str(folder),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
    }
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 200))
    with subprocess.Popen(  # noqa: S603  # a shell of the tests
        START[name], cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(slave)
        terminal = Terminal(master)
        try:
            terminal.type(f"{SET_UP[name]}; echo rea''dy\n")
            terminal.wait_for("ready")
            yield terminal
        finally:
            process.kill()
            process.wait()
            os.close(master)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["bash", pytest.param("zsh", marks=pytest.mark.nightly)])
def test_a_shell_completes_commands_options_and_values(name: str, folder: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    with shell(name, folder) as terminal:
        for typed, completed in LINES:
            terminal.type(typed)
            terminal.wait_for(completed)
            terminal.type("\x15")  # Ctrl-U: forget the line


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_options_and_values(folder: Path) -> None:
    lines = [(typed.rstrip("\t"), completed.split()[-1]) for typed, completed in LINES]
    asked = "; ".join(f"complete -C '{line}' | cut -f1" for line, _ in lines)
    (folder / "ask.fish").write_text(f"gateway completion fish | source\n{asked}\n")
    found = subprocess.run(  # noqa: S603  # a shell of the tests
        [shutil.which("fish") or "fish", "--no-config", "ask.fish"], cwd=folder, text=True,
        env={"PATH": PATH, "HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8"},
        capture_output=True, timeout=PATIENCE * 4, check=True,
    )  # fmt: skip

    assert found.stdout.split() == [completed for _, completed in lines]


def test_every_command_is_completed(folder: Path) -> None:
    found = subprocess.run(  # as a script of `gateway completion` does
        [sys.executable, "-c", "import os; os.dup2(1, 8); from gateway.cli import main; main()"],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=True,
        env={"PATH": PATH, "PYTHONPATH": str(ROOT), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n",
             "_ARGCOMPLETE_SHELL": "bash", "COMP_LINE": "gateway ", "COMP_POINT": "8"},
    )  # fmt: skip

    words = [word for word in found.stdout.split() if not word.startswith("-")]
    assert words == list(all_commands())


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_of_each_shell_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", name]) == 0
    assert "_ARGCOMPLETE" in capsys.readouterr().out


def test_a_command_that_needs_no_completion_does_not_load_it() -> None:
    loaded = "import sys; from gateway.cli import make_parser; make_parser('run'); "
    found = subprocess.run(  # noqa: S603  # this Python
        [sys.executable, "-c", f"{loaded}print({{'argcomplete', 'rich'}} & set(sys.modules))"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip

    assert found.stdout == "set()\n"
