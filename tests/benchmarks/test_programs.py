"""A benchmark ends by itself, or by Ctrl-C, with its figures and without an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.columns import INTERRUPTED, printed_rows
from tests.waiting import PATIENCE

YAMI4 = [sys.executable, "-u", "-m", "benchmarks.yami4", "--messages"]


@pytest.fixture
def heard() -> Iterator[None]:
    """A program hears Ctrl-C also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_benchmark_of_yami4_ends_without_an_error() -> None:
    command = [*YAMI4, "512"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # fixed

    assert not done.stderr
    assert "no subscriber" in done.stdout.splitlines()[-1]


@pytest.mark.usefixtures("heard")
def test_the_benchmark_of_yami4_ends_by_ctrl_c_with_its_rows() -> None:
    with subprocess.Popen(  # noqa: S603  # a fixed command
        [*YAMI4, "20480", "--rate", "10240"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first row; the next one is being measured
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=PATIENCE)

    assert not errors
    assert process.returncode == INTERRUPTED
    assert printed.splitlines()[-1].startswith("| publish to subscriber, decoded")


def test_rows_are_printed_as_they_come_and_all_of_them_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> None:
        with printed_rows() as add:
            add({"n": 1})
            assert capsys.readouterr().out == '{"n": 1}\n'
            raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        run()

    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().out == "ended by Ctrl-C\n| n |\n| - |\n| 1 |\n"


@pytest.mark.usefixtures("heard")
def test_a_run_of_all_ends_by_ctrl_c_with_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with subprocess.Popen(  # noqa: S603  # a fixed command
        [sys.executable, "-u", "-m", "benchmarks", "yami4", "columns", "--page", str(page)],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the name of the benchmark
        process.stdout.readline()  # its first row
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert "columns" not in printed
    assert f"| yami4     | with status {INTERRUPTED} |" in page.read_text()
    assert "| publish to subscriber, decoded |" in page.read_text()
