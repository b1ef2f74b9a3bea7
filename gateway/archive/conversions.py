"""Closed journals become segments in another process, one at a time; it reads no rows itself.

Another process, because Parquet would cost the sidecar its memory and the hot path its time.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_PACKAGES: Final = str(Path(__file__).resolve().parents[2])  # the child finds the same code
_REPORT: Final = 2_000  # characters of a converter's report in the log


class Conversions:
    """Mutable: it owns the running converter and the journals that wait for the next."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: list[Path] = []
        self._taken: list[Path] = []
        self._child: subprocess.Popen[str] | None = None

    @property
    def busy(self) -> bool:
        return self._child is not None

    def add(self, journals: Iterable[Path]) -> None:
        """Convert `journals`, and those an earlier converter left; returns at once."""
        self._waiting.extend(journals)
        self.poll()
        if self._child is None and self._waiting:
            self._start()

    def poll(self) -> None:
        """Take note of a converter that ended."""
        if self._child is not None and self._child.poll() is not None:
            self._ended(self._child)

    def finish(self, timeout: float) -> list[Path]:
        """Convert what waits within `timeout` seconds; the journals left are for the next start."""
        deadline = time.monotonic() + timeout
        self._wait(deadline)
        if self._waiting and time.monotonic() < deadline:
            self._start()
            self._wait(deadline)
        return self._waiting

    def _start(self) -> None:
        self._taken, self._waiting = self._waiting, []
        command = [sys.executable, "-m", "gateway.archive.segments", str(self._root)]
        paths = filter(None, (_PACKAGES, os.environ.get("PYTHONPATH")))
        try:
            self._child = subprocess.Popen(  # noqa: S603  # our own module, no shell
                [*command, *map(str, self._taken)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # an interrupt at the terminal is not for the converter
            )
        except OSError as error:
            log.warning("archive: the converter did not start: %s; the journals stay", error)
            self._waiting = self._taken

    def _wait(self, deadline: float) -> None:
        if self._child is None:
            return
        try:
            self._child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.warning("archive: the converter was stopped; the next start converts the rest")
            self._child.kill()
        self._ended(self._child)

    def _ended(self, child: subprocess.Popen[str]) -> None:
        """Log what it reported; a journal it could not convert waits for the next one."""
        _, report = child.communicate()
        if report:
            log.warning("archive: %s", report.strip()[-_REPORT:])
        self._child = None
        self._waiting = [path for path in self._taken if path.exists()] + self._waiting
