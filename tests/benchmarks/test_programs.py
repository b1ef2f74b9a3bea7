"""A benchmark ends by itself, with its figures and without an error."""

from __future__ import annotations

import subprocess
import sys


def test_the_benchmark_of_yami4_ends_without_an_error() -> None:
    command = [sys.executable, "-m", "benchmarks.yami4", "--messages", "512"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # fixed

    assert not done.stderr
    assert "no subscriber" in done.stdout.splitlines()[-1]
