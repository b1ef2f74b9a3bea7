"""The process of `tests.brokers.jms_victim`: its questions, its answers and its end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PASSWORD = "the-secret-word"  # noqa: S105  # for a broker of this test
STORE_PASSWORD = "trusted"  # noqa: S105  # as above
TOLD = "NotConnectedError: victim: "


class Victim:
    """A process that opens the endpoint with the settings it gets.

    Mutable: it is started again after its end.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, url: str, **facts: object) -> dict[str, dict[str, object]]:
        """Return what a source and a sink with these settings do; fail if the process ends."""
        if self._process is None:
            self._process = subprocess.Popen(  # this interpreter
                [sys.executable, "-m", "tests.brokers.jms_victim"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=ROOT,
            )
        settings = {
            "urls": [url],
            "connect_timeout": 1.0,
            "answer_timeout": 1.0,
            "close_timeout": 0.5,
            "username": "gateway",
            "password": PASSWORD,
        }
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings | facts) + "\n")
        process.stdin.flush()
        timer = threading.Timer(2 * PATIENCE, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        assert PASSWORD not in line
        assert line.startswith("{"), f"{line}, {process.poll()}"
        found: dict[str, dict[str, object]] = json.loads(line)
        return found

    def code(self) -> int:
        """Wait for the end of the process, and return its code; a failed test shows its output."""
        assert self._process is not None
        sys.stdout.write(self._process.communicate(timeout=PATIENCE)[0])
        return self._process.returncode

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    found = Victim()
    yield found
    found.stop()


def check_refused(found: dict[str, dict[str, object]], *reasons: str) -> None:
    for side in ("source", "sink"):
        told = str(found[side]["told"])
        assert told.startswith(TOLD), told
        assert not reasons or any(each in told for each in reasons), told
