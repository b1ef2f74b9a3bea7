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
from contextlib import suppress
from pathlib import Path
from typing import Final

import gateway
from gateway.archive.location import Place

log = logging.getLogger(__name__)

_PACKAGES: Final = str(Path(gateway.__file__).resolve().parents[1])  # the child finds the same code
_NICE: Final = ("--nice", "19")  # the messages go first
_FRUGAL: Final = {"MIMALLOC_PURGE_DELAY": "0"}  # what Arrow frees goes back at once
_MANY: Final = 4  # journals; where more have piled up the disk goes first
_LONGEST: Final = 30.0  # seconds between two tries when it keeps failing
_REPORT: Final = 2_000  # characters of a converter's report in the log


class Conversions:
    """Mutable: it owns the running converter and the journals that wait for the next."""

    def __init__(self, place: Place, keep_days: int | None = None) -> None:
        self._command = [sys.executable, "-m", "gateway.archive.segments", str(place.local)]
        self._command += ["--to", place.url] if place.url else []
        self._command += [] if keep_days is None else ["--keep-days", str(keep_days)]
        self._sizes: dict[Path, int] = {}  # of the journals that are not converted yet
        self._waiting: list[Path] = []
        self._taken: list[Path] = []
        self._child: subprocess.Popen[str] | None = None
        self._failures = 0
        self._again = 0.0
        self._said = ""

    @property
    def busy(self) -> bool:
        """Whether `poll` has something to do, now or later."""
        return self._child is not None or bool(self._waiting)

    @property
    def held_bytes(self) -> int:
        """What the journals take that are not converted yet."""
        return sum(self._sizes.values())

    def add(self, journals: Iterable[Path]) -> None:
        """Convert `journals`, and those an earlier converter left; returns at once."""
        for path in journals:
            self._waiting.append(path)
            with suppress(OSError):
                self._sizes[path] = path.stat().st_size
        self.poll()

    def tidy(self) -> None:
        """Start a converter even when no journal waits: it removes old days too."""
        if self._child is None:
            self._start()

    def poll(self) -> None:
        """Take note of a converter that ended, and start the next one when it is due."""
        if self._child is not None and self._child.poll() is not None:
            self._ended(self._child)
        if self._child is None and self._waiting and time.monotonic() >= self._again:
            self._start()

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
        given = _NICE if len(self._taken) <= _MANY else ()
        paths = filter(None, (_PACKAGES, os.environ.get("PYTHONPATH")))
        try:
            self._child = subprocess.Popen(  # noqa: S603  # our own module, no shell
                [*self._command, *given, *map(str, self._taken)],
                env={**os.environ, **_FRUGAL, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # An interrupt at the terminal is not for the converter. In a session of its own
                # it would not be nice to us: Linux shares cores among sessions first (autogroup).
                process_group=0,
            )
        except OSError as error:
            self._failed(f"the converter did not start: {error}; the journals stay")
            self._waiting = self._taken + self._waiting

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
        """Log what it reported; a journal it could not convert waits for a later one."""
        _, report = child.communicate()
        self._child = None
        left = [path for path in self._taken if path.exists()]
        for path in self._taken:
            if path not in left:
                self._sizes.pop(path, None)
        self._waiting = left + self._waiting
        if child.returncode:
            self._failed(report.strip()[-_REPORT:])
            return
        if report:
            log.warning("archive: %s", report.strip()[-_REPORT:])
        if self._failures and not left:
            log.warning("archive: the converter works again")
            self._failures, self._said = 0, ""

    def _failed(self, report: str) -> None:
        """Wait longer each time; the same trouble is logged once."""
        self._failures += 1
        self._again = time.monotonic() + min(_LONGEST, 2.0 ** min(self._failures, 10) / 2)
        if report != self._said:
            log.warning("archive: %s", report)
            self._said = report
