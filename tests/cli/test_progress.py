"""Progress of commands on a real terminal: it is on standard error, and the answer stays clean."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

NAMES = 20_000  # of 60 characters: more than 1 MiB


def run_on_terminal(folder: Path, *arguments: str, term: str = "xterm") -> tuple[str, str]:
    """Return standard output, and what a terminal at standard error has got."""
    master, slave = pty.openpty()
    received: list[bytes] = []

    def receive() -> None:
        try:
            while data := os.read(master, 1 << 16):
                received.append(data)
        except OSError:  # Linux: the last writer has closed it
            return

    reader = threading.Thread(target=receive)
    reader.start()
    found = subprocess.run(  # noqa: S603  # this Python
        [sys.executable, "-m", "gateway", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=slave, stdin=subprocess.DEVNULL, text=True,
        timeout=PATIENCE * 2, check=False, env={**os.environ, "TERM": term, "COLUMNS": "80"},
    )  # fmt: skip
    os.close(slave)
    reader.join(PATIENCE)
    os.close(master)
    return found.stdout, b"".join(received).decode()


@pytest.fixture
def names(tmp_path: Path) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("".join(f"plant/line/{n:>049}\n".replace(" ", "0") for n in range(NAMES)))
    assert path.stat().st_size > 1 << 20
    return path


def test_preflight_of_a_large_file_shows_a_bar_and_prints_clean_json(names: Path) -> None:
    out, shown = run_on_terminal(
        names.parent, "preflight", "names.txt", "--from", "mqtt", "--to", "ems", "--json"
    )

    assert [json.loads(line)["line"] for line in out.splitlines()] == list(range(1, NAMES + 1))
    assert "checking names.txt" in shown
    assert "%" in shown
    assert shown.endswith(f"ems: {NAMES} fit\r\n")


def test_preflight_of_a_small_file_shows_none(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("a/b\n")

    assert run_on_terminal(tmp_path, "preflight", "names.txt", "--from", "mqtt", "--to", "ems") == (
        "ems: 1 fit\n",
        "",
    )


def test_a_dumb_terminal_has_no_bar(names: Path) -> None:
    arguments = ("preflight", "names.txt", "--from", "mqtt", "--to", "ems", "--json")
    _, shown = run_on_terminal(names.parent, *arguments, term="dumb")

    assert "\x1b" not in shown
    assert shown.endswith(f"ems: {NAMES} fit\r\n")


def test_the_generator_shows_its_share(tmp_path: Path) -> None:
    out, shown = run_on_terminal(
        tmp_path, "archive", "generate", "new", "--messages", "4000", "--segment", "1000"
    )

    assert out.startswith("4,000 messages of ")
    assert "generating 4,000 messages" in shown
    assert "%" in shown
